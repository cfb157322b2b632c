//! What became of things to do in Discord.

use serde_json::json;

use super::decide::{Answer, Wake};
use super::turn::Turn;
use crate::domain::change::Change;
use crate::domain::gate::Gate;
use crate::domain::ids::OutgoingId;
use crate::domain::outgoing::{Act, Outgoing, OutgoingOutcome, OutgoingState};

/// Delivery is about to send, or has had a part confirmed.
pub(super) fn starting(turn: &mut Turn<'_>, id: &OutgoingId, parts_done: u32) -> Answer {
    let Some(old) = turn.before().outgoing.get(id).cloned() else {
        return Answer::Ignored("it was superseded");
    };
    let (since, attempts) = match old.state {
        OutgoingState::Queued => (turn.now, old.attempts + 1),
        OutgoingState::Sending { since, .. } => (since, old.attempts),
    };
    let state = OutgoingState::Sending { since, parts_done };
    turn.change(Change::Outgoing(Box::new(Outgoing { state, attempts, ..old })));
    Answer::Accepted
}

/// Delivery is done with it, for now or for good.
pub(super) fn finished(turn: &mut Turn<'_>, id: &OutgoingId, outcome: OutgoingOutcome) -> Answer {
    let Some(old) = turn.before().outgoing.get(id).cloned() else {
        return Answer::Ignored("it is gone");
    };
    match outcome {
        OutgoingOutcome::Later { at, .. } => {
            // It stays in the state of being sent: whether Discord took it is not known.
            let not_before = Some(at);
            turn.wake(Wake::Outbox);
            turn.change(Change::Outgoing(Box::new(Outgoing { not_before, ..old })));
            return Answer::Accepted;
        }
        OutgoingOutcome::Refused { reason } => {
            if let Some(request) = &old.request_id {
                turn.record(request, "message_refused", "discord", &reason, json!(old.act));
            }
        }
        OutgoingOutcome::RoomOpened { thread_id } => {
            let room = old.request_id.as_ref().and_then(|request| turn.edit(request));
            if let Some(room) = room.and_then(|request| request.room.as_mut()) {
                room.thread_id = Some(thread_id);
            }
        }
        OutgoingOutcome::Posted { channel_id, message_ids } => match &old.act {
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
            | Act::Envelope { .. } => {}
        },
        OutgoingOutcome::Done => {}
    }
    turn.change(Change::OutgoingGone(id.clone()));
    turn.wake(Wake::Outbox);
    Answer::Accepted
}
