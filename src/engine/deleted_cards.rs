//! Cards of gates and of questions that were deleted in Discord, alone or with the room that they stood in: they are
//! posted again, because who has to decide would see nothing, and time decides.

use std::sync::Arc;

use super::decision::Answer;
use super::turn::Turn;
use super::{gates, questions};
use crate::domain::gate::Gate;
use crate::domain::ids::{ChannelId, MessageId};
use crate::domain::request::Request;
use crate::domain::time::Timestamp;

/// Seconds after the posting of a card before which it is not posted again.
const BY_HAND: u64 = 10;

/// A message was deleted.
pub(super) fn deleted(turn: &mut Turn<'_>, channel_id: ChannelId, message_id: MessageId) -> Answer {
    post_again(turn, |_, card| card == (channel_id, message_id))
}

/// A channel or a thread was deleted; of the threads of a channel Discord tells nothing then.
pub(super) fn channel_deleted(turn: &mut Turn<'_>, channel_id: ChannelId) -> Answer {
    post_again(turn, |request, (channel, _)| {
        let conversation = &request.conversation;
        let is_above = conversation.reply_route.channel_id == Some(channel_id);
        channel == channel_id || is_above && conversation.thread() == Some(channel)
    })
}

fn post_again(
    turn: &mut Turn<'_>,
    is_gone: impl Fn(&Request, (ChannelId, MessageId)) -> bool,
) -> Answer {
    let state = turn.before();
    let is_gate = |gate: &&Arc<Gate>| {
        let request = state.requests.get(&gate.request_id);
        request.zip(gate.card).is_some_and(|(request, card)| is_gone(request, card))
    };
    let asks = |request: &&Arc<Request>| {
        request.work.questions_card.is_some_and(|card| is_gone(request, card))
    };
    let gates: Vec<Arc<Gate>> = state.gates.values().filter(is_gate).cloned().collect();
    let asked: Vec<Arc<Request>> = state.requests.values().filter(asks).cloned().collect();
    if gates.is_empty() && asked.is_empty() {
        return Answer::Ignored("no card that waits");
    }
    for gate in gates {
        let since = (gate.version > 1).then_some(gate.created_at);
        let not_before = not_before(gate.card, since);
        let again = Gate { version: gate.version + 1, card: None, ..Gate::clone(&gate) };
        gates::card::post(turn, again, not_before);
    }
    for request in asked {
        let since = request.blocked.as_ref().map(|it| it.since);
        let not_before = not_before(request.work.questions_card, since);
        if let Some(request) = turn.edit(&request.request_id) {
            request.work.questions_card = None;
        }
        questions::post_card(turn, &request.request_id, not_before);
    }
    Answer::Accepted
}

/// What a program deletes again and again comes back ever more seldom: not before twice the time has passed since the
/// first one.
fn not_before(card: Option<(ChannelId, MessageId)>, since: Option<Timestamp>) -> Option<Timestamp> {
    let posted = card?.1.written_at();
    let stood = since.map_or(0, |since| posted.seconds_since(since));
    Some(posted.plus_seconds(BY_HAND.max(stood)))
}
