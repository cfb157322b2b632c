//! Cards of gates and of questions that were deleted in Discord, alone or with the room that they stood in: they are
//! posted again, because who has to decide would see nothing, and time decides.

use std::sync::Arc;

use super::decision::Answer;
use super::turn::Turn;
use super::{gates, questions};
use crate::domain::gate::Gate;
use crate::domain::ids::{ChannelId, MessageId, RequestId};
use crate::domain::request::Request;
use crate::domain::time::Timestamp;

/// What stood for less than this, in seconds, was deleted by a program: it would delete the next one as well.
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
    let now = turn.now;
    // What is deleted again and again comes back ever more seldom: only where it stood for as long as all before it.
    let stood = |(_, id): (ChannelId, MessageId), since: Timestamp| {
        let posted = id.written_at();
        now.seconds_since(posted) >= BY_HAND.max(posted.seconds_since(since))
    };
    let state = turn.before();
    let is_gate = |gate: &&Arc<Gate>| {
        let request = state.requests.get(&gate.request_id);
        let card = gate.card.filter(|card| stood(*card, gate.created_at));
        request.zip(card).is_some_and(|(request, card)| is_gone(request, card))
    };
    let gates: Vec<Gate> = state.gates.values().filter(is_gate).map(|it| Gate::clone(it)).collect();
    let asks = |request: &&Arc<Request>| {
        let since = request.blocked.as_ref().map(|it| it.since);
        let card = request.work.questions_card.zip(since);
        card.is_some_and(|(card, since)| stood(card, since) && is_gone(request, card))
    };
    let asked: Vec<RequestId> =
        state.requests.values().filter(asks).map(|it| it.request_id.clone()).collect();
    if gates.is_empty() && asked.is_empty() {
        return Answer::Ignored("no card that waits");
    }
    for gate in gates {
        gates::card::post(turn, Gate { version: gate.version + 1, card: None, ..gate });
    }
    for id in asked {
        if let Some(request) = turn.edit(&id) {
            request.work.questions_card = None;
        }
        questions::post_card(turn, &id);
    }
    Answer::Accepted
}
