//! Cards that wait for somebody and were deleted in Discord, alone or with the room that they stood in: they are posted
//! again, because who has to decide would see nothing, and time decides.

use super::decision::Answer;
use super::turn::Turn;
use super::{gates, questions};
use crate::domain::gate::Gate;
use crate::domain::ids::{ChannelId, MessageId, RequestId};

/// What stands for less than this, in seconds, was deleted by a program: it would delete the next one as well.
const BY_HAND: u64 = 10;

/// A message of the team was deleted.
pub(super) fn deleted(turn: &mut Turn<'_>, channel_id: ChannelId, message_id: MessageId) -> Answer {
    post_again(turn, |card| card == (channel_id, message_id))
}

/// A channel or a thread was deleted.
pub(super) fn channel_deleted(turn: &mut Turn<'_>, channel_id: ChannelId) -> Answer {
    post_again(turn, |(channel, _)| channel == channel_id)
}

fn post_again(turn: &mut Turn<'_>, is_gone: impl Fn((ChannelId, MessageId)) -> bool) -> Answer {
    let now = turn.now;
    let has_gone = |card: Option<(ChannelId, MessageId)>| {
        let by_hand = |id: MessageId| now.seconds_since(id.written_at()) >= BY_HAND;
        card.is_some_and(|card| is_gone(card) && by_hand(card.1))
    };
    let state = turn.before();
    let gates: Vec<Gate> =
        state.gates.values().filter(|it| has_gone(it.card)).map(|it| Gate::clone(it)).collect();
    let asked: Vec<RequestId> = state
        .requests
        .values()
        .filter(|it| has_gone(it.work.questions_card))
        .map(|it| it.request_id.clone())
        .collect();
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
