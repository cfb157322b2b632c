//! What became of things to do in Discord.

use serde_json::json;

use super::decide::{Answer, Wake};
use super::say;
use super::turn::Turn;
use crate::domain::change::Change;
use crate::domain::gate::Gate;
use crate::domain::ids::{ChannelId, MessageId, OutgoingId, RequestId};
use crate::domain::outgoing::{
    Act, NamedChannel, Outgoing, OutgoingOutcome, OutgoingState, Priority, SET_ASIDE, Target, Voice,
};

/// Delivery is about to send, or has had a part confirmed.
pub(super) fn starting(turn: &mut Turn<'_>, id: &OutgoingId, parts_done: u32) -> Answer {
    let Some(old) = turn.before().outgoing.get(id).cloned() else {
        return Answer::Ignored("it was superseded");
    };
    let (since, attempts, before) = match old.state {
        OutgoingState::Queued => (turn.now, old.attempts + 1, 0),
        OutgoingState::Sending { since, parts_done } => (since, old.attempts, parts_done),
    };
    let state = OutgoingState::Sending { since, parts_done: parts_done.max(before) };
    turn.change(Change::Outgoing(Box::new(Outgoing { state, attempts, ..old })));
    Answer::Accepted
}

/// Delivery is done with it, for now or for good.
pub(super) fn finished(turn: &mut Turn<'_>, id: &OutgoingId, outcome: OutgoingOutcome) -> Answer {
    let Some(old) = turn.before().outgoing.get(id).cloned() else {
        return Answer::Ignored("it is gone");
    };
    match outcome {
        OutgoingOutcome::Later { at, reason, own } => {
            let own_failures = old.own_failures + u32::from(own);
            if own_failures < old.priority.patience() {
                // It stays in the state of being sent: whether Discord took it is not known.
                let not_before = Some(at);
                turn.wake(Wake::Outbox);
                let waiting = Outgoing { not_before, own_failures, ..old };
                turn.change(Change::Outgoing(Box::new(waiting)));
                return Answer::Accepted;
            }
            set_aside(turn, &old, &reason);
            elsewhere(turn, &old);
        }
        OutgoingOutcome::Refused { reason } => {
            if let Some(request) = &old.request_id {
                turn.record(request, "message_refused", "discord", &reason, json!(old.act));
            }
            elsewhere(turn, &old);
        }
        OutgoingOutcome::RoomOpened { thread_id } => {
            let room = old.request_id.as_ref().and_then(|request| turn.edit(request));
            if let Some(room) = room.and_then(|request| request.room.as_mut()) {
                room.thread_id = Some(thread_id);
            }
        }
        OutgoingOutcome::Posted { channel_id, message_ids } => {
            if let (Act::Post { room_of: Some(request), .. }, Some(first)) =
                (&old.act, message_ids.first())
            {
                hang_room(turn, request, channel_id, *first);
            }
            match &old.act {
                Act::Card { .. } => {
                    let room = old.request_id.as_ref().and_then(|request| turn.edit(request));
                    if let Some(room) = room.and_then(|request| request.room.as_mut()) {
                        room.card_id = message_ids.first().copied();
                    }
                }
                Act::Post { gate_id: Some(gate_id), .. } => {
                    let card = message_ids.last().map(|message| (channel_id, *message));
                    if let Some(gate) = turn.before().gates.get(gate_id) {
                        turn.change(Change::Gate(Gate { card, ..gate.clone() }));
                    }
                }
                Act::Post { gate_id: None, .. }
                | Act::OpenRoom { .. }
                | Act::React { .. }
                | Act::Unbutton { .. }
                | Act::Envelope { .. } => {}
            }
        }
        OutgoingOutcome::Done => {}
    }
    turn.change(Change::OutgoingGone(id.clone()));
    turn.wake(Wake::Outbox);
    Answer::Accepted
}

/// A message that Discord fails again and again while it takes others holds its lane no longer. It is kept,
/// words and all, where `teams status` finds it.
fn set_aside(turn: &mut Turn<'_>, old: &Outgoing, reason: &str) {
    if let Some(request) = &old.request_id {
        turn.record(request, "message_set_aside", "discord", reason, json!(old.act));
    }
    let line = json!({
        "at": turn.now,
        "outgoing_id": old.outgoing_id,
        "request_id": old.request_id,
        "target": old.target,
        "reason": reason,
        "act": old.act,
    });
    turn.change(Change::Append { file: SET_ASIDE.to_owned(), text: format!("{line}\n") });
}

/// The message that the room of a request was to hang on is there: the room is opened on it.
fn hang_room(turn: &mut Turn<'_>, id: &RequestId, channel_id: ChannelId, message_id: MessageId) {
    let Some(request) = turn.request(id) else {
        return;
    };
    if request.room.as_ref().is_none_or(|room| room.thread_id.is_some()) {
        return;
    }
    let title = if request.scope.trim().is_empty() { &request.body } else { &request.scope };
    let name = say::cut(&say::title(title), 90);
    let act = Act::OpenRoom { channel_id, message_id, name };
    let target = Target::Room(id.clone());
    let mut room = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
    room.request_id = Some(id.clone());
    turn.send(room);
}

/// What a person has to see and Discord refuses where it belongs (a room that was deleted, a channel
/// that was closed to the bot) is said one place further: where it was asked, then in the report
/// channel. Words of a direct message are nobody else's.
fn elsewhere(turn: &mut Turn<'_>, refused: &Outgoing) {
    let act = match (&refused.act, refused.priority) {
        (Act::Post { .. }, Priority::Final | Priority::Approval | Priority::Error) => {
            refused.act.clone()
        }
        (
            Act::Post { .. }
            | Act::Card { .. }
            | Act::OpenRoom { .. }
            | Act::React { .. }
            | Act::Unbutton { .. }
            | Act::Envelope { .. },
            _,
        ) => return,
    };
    let Some(request) = refused.request_id.as_ref().and_then(|id| turn.request(id)) else {
        return;
    };
    let route = &request.reply_route;
    let has_room = request.room.as_ref().is_some_and(|room| room.thread_id.is_some());
    let target = match (&refused.target, route.channel_id) {
        (Target::Room(_), Some(channel)) if has_room => Target::Channel(channel),
        (Target::Room(_) | Target::Channel(_), _) if !route.is_dm => {
            Target::Named(NamedChannel::Report)
        }
        (Target::Room(_) | Target::Channel(_) | Target::Named(_) | Target::Dm(_), _) => return,
    };
    let mut again = say::outgoing(turn, target, refused.voice, refused.priority, act);
    again.request_id.clone_from(&refused.request_id);
    turn.send(again);
}
