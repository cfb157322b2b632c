//! The board of the sprint as a pinned message in the startup channel, edited in place as the sprint goes on.

use super::board::board_of;
use super::say;
use super::turn::Turn;
use crate::domain::event::Event;
use crate::domain::ids::{ChannelId, MessageId, SprintId};
use crate::domain::outgoing::{Act, NamedChannel, Priority, Target, Voice};
use crate::domain::schedule::SprintBoard;
use crate::domain::sprint::Sprint;

/// Lines of each column: it has to fit into one message.
const LINES: usize = 4;

/// Whether the board is looked at after this event: whatever happens to a todo is also said somewhere, and when that is
/// delivered, the board is brought up to it.
pub(super) const fn may_be_shown(event: &Event) -> bool {
    matches!(
        event,
        Event::OutgoingFinished { .. }
            | Event::ChannelsChanged
            | Event::Started { .. }
            | Event::Tick
    )
}

/// Posts the board, or edits it where it would say something else, one edit at a time. It shows how things stood before
/// this event.
pub(super) fn refresh(turn: &mut Turn<'_>) {
    let state = turn.before();
    if turn.outbox().any(|it| matches!(it.act, Act::Board { .. }) && it.refused.is_none()) {
        return;
    }
    let pinned = turn.scheduler().board.clone();
    let active = state.active_sprint().filter(|sprint| !sprint.work.todos.is_empty());
    match (pinned, active) {
        (None, None) => {}
        (None, Some(sprint)) => show(turn, sprint, None),
        (Some(old), Some(sprint)) if old.sprint_id == sprint.sprint_id => {
            show(turn, sprint, Some(&old));
        }
        (Some(old), _) => {
            if let Some(sprint) = state.sprints.get(&old.sprint_id) {
                show(turn, sprint, Some(&old));
            }
            if let Some((channel, message)) = old.message {
                pin(turn, channel, message, false);
            }
            turn.edit_scheduler().board = None;
        }
    }
}

fn show(turn: &mut Turn<'_>, sprint: &Sprint, old: Option<&SprintBoard>) {
    let board = board_of(turn.before(), turn.policy, Some(sprint), turn.now).pinned(LINES);
    let digest = say::digest(&board);
    if old.is_some_and(|old| old.digest == digest) {
        return;
    }
    let values = serde_json::to_value(board).unwrap_or_default();
    let (sprint_id, message) = (sprint.sprint_id.clone(), old.and_then(|old| old.message));
    let act = Act::Board {
        content: say::content("board", sprint.language, values),
        sprint_id: sprint_id.clone(),
        message_id: message.map(|(_, message)| message),
    };
    let target =
        message.map_or(Target::Named(NamedChannel::Startup), |(at, _)| Target::Channel(at));
    let card = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
    turn.send(card);
    turn.edit_scheduler().board = Some(SprintBoard { sprint_id, message, digest });
}

/// The board of a sprint is this message: one that was just posted is pinned.
pub(super) fn posted(turn: &mut Turn<'_>, id: &SprintId, channel: ChannelId, message: MessageId) {
    let board = turn.scheduler().board.clone().filter(|board| board.sprint_id == *id);
    let now = Some((channel, message));
    let Some(board) = board.filter(|board| board.message != now) else { return };
    turn.edit_scheduler().board = Some(SprintBoard { message: now, ..board });
    pin(turn, channel, message, true);
}

fn pin(turn: &mut Turn<'_>, channel: ChannelId, message_id: MessageId, pinned: bool) {
    let act = Act::Pin { message_id, pinned };
    let pin = say::outgoing(turn, Target::Channel(channel), Voice::Team, Priority::Progress, act);
    turn.send(pin);
}
