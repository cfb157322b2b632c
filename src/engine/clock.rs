//! The engine's sense of time. Nothing is polled: it names the next instant at which time alone changes
//! something, and is told when that has come.

use std::collections::BTreeSet;

use super::decision::Answer;
use super::turn::Turn;
use super::{gates, sprint};
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

/// An instant has come.
pub(super) fn tick(turn: &mut Turn<'_>) -> Answer {
    gates::expire(turn);
    sprint::tick(turn)
}
