//! The engine's sense of time. Nothing is polled: it names the next instant at which time alone changes
//! something, and is told when that has come.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::decision::{Answer, Wake};
use super::turn::Turn;
use super::{gates, sprint};
use crate::domain::envelope::Envelope;
use crate::domain::outgoing::Outgoing;
use crate::domain::policy::Policy;
use crate::domain::state::State;
use crate::domain::time::Timestamp;

/// The instants at which the engine wants to hear [`crate::domain::event::Event::Tick`]; none while only people and
/// running work can change anything. One that has come and stays waits for something else as well.
#[must_use]
pub fn due(state: &State, policy: &Policy) -> BTreeSet<Timestamp> {
    let mut instants = sprint::due(state, policy);
    instants.extend(gates::due(state));
    instants
}

/// Seconds that something which is tried again waits at the most, unless a model's server has told when.
const LONGEST_PAUSE: u64 = 3_600;

/// What was to be tried again in a while waits by a clock that was ahead and is put right: it is tried now.
pub(super) fn put_right(turn: &mut Turn<'_>) {
    let (before, now) = (turn.before(), turn.now);
    let latest = now.plus_seconds(LONGEST_PAUSE);
    let is_beyond = |at: Option<Timestamp>| at.is_some_and(|at| at > latest);
    for outgoing in before.outgoing.values().filter(|it| is_beyond(it.not_before)) {
        turn.save(Outgoing { not_before: None, ..Outgoing::clone(outgoing) });
        turn.wake(Wake::Outbox);
    }
    // What a model's server has told is another matter.
    let was_ahead = |it: &&Arc<Envelope>| it.created_at > now && is_beyond(it.not_before);
    for envelope in before.envelopes.values().filter(was_ahead) {
        turn.save(Envelope { not_before: None, ..Envelope::clone(envelope) });
        turn.wake(Wake::Role(envelope.target_role));
        // The agent that it waits for was put to rest by the same clock.
        let at = envelope.not_before;
        turn.edit_spending().resting.retain(|_, until| Some(*until) != at);
    }
}

/// An instant has come.
pub(super) fn tick(turn: &mut Turn<'_>) -> Answer {
    put_right(turn);
    gates::expire(turn);
    sprint::tick(turn)
}
