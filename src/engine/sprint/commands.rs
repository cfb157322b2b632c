//! Commands about sprints and the backlog.

use serde_json::{Value, json};

use crate::domain::backlog::BacklogSource;
use crate::domain::incoming::Actor;
use crate::domain::sprint::Kickoff;
use crate::engine::decide::Answer;
use crate::engine::say;
use crate::engine::turn::Turn;

fn not_yet(turn: &Turn<'_>) -> Answer {
    Answer::Say(say::content("sprint.not_yet", turn.policy.language, json!({})))
}

/// Begins a sprint.
pub(in crate::engine) fn start(turn: &mut Turn<'_>, _actor: &Actor, _kickoff: Kickoff) -> Answer {
    not_yet(turn)
}

/// Ends the active sprint.
pub(in crate::engine) fn stop(turn: &mut Turn<'_>, _actor: &Actor, _now: bool) -> Answer {
    not_yet(turn)
}

/// Goes on with the last sprint.
pub(in crate::engine) fn restart(turn: &mut Turn<'_>, _actor: &Actor) -> Answer {
    not_yet(turn)
}

/// Changes the backlog.
pub(in crate::engine) fn merge(
    turn: &mut Turn<'_>,
    _actor: &Actor,
    _payload: &Value,
    _source: BacklogSource,
) -> Answer {
    not_yet(turn)
}
