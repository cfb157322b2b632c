//! Sprints: when they begin, how they are planned, worked on and closed (`spec/teams.md` 9 and 10).

pub mod backlog;
pub mod closeout;
pub(in crate::engine) mod commands;
pub mod names;
pub mod planning;
pub mod slots;
pub mod todos;

use super::decide::Answer;
use super::turn::Turn;
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::policy::Policy;
use crate::domain::state::State;
use crate::domain::time::Timestamp;

/// The next instant at which the engine wants to hear [`crate::domain::event::Event::Tick`]; none while
/// only people and running work can change anything.
#[must_use]
pub fn due(_state: &State, _policy: &Policy) -> Option<Timestamp> {
    None
}

/// An instant has come.
pub(super) fn tick(_turn: &mut Turn<'_>) -> Answer {
    Answer::Accepted
}

/// Something was done for a sprint or for the team.
pub(super) fn effect_finished(_turn: &mut Turn<'_>, _kind: &EffectKind, _outcome: EffectOutcome) {}
