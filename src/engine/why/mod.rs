//! Why something does not move: what or whom it waits for, since when, and what would move it. One line each.

mod request;
mod todo;

pub use request::why;
pub(in crate::engine) use todo::{TodoWaits, of_todo as todo_reason};

use crate::domain::ids::SubjectId;
use crate::domain::outgoing::Content;
use crate::domain::policy::Policy;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::say;

/// The line about whatever has this id: a request, an item of the backlog or of a plan, a todo, a sprint or a gate.
/// `None` where nothing that is open has it.
#[must_use]
pub fn about(state: &State, policy: &Policy, id: &SubjectId, now: Timestamp) -> Option<Content> {
    let id = id.as_str();
    let requests = || state.requests.values();
    let waits_at = |gate: &str| requests().find(|it| it.request_id.as_str() == gate);
    let gate = state.gates.values().find(|gate| gate.gate_id.as_str() == id);
    let request = gate.map_or(id, |gate| gate.request_id.as_str());
    if let Some(request) = waits_at(request) {
        return Some(why(state, policy, request, now));
    }
    let (key, values) = todo::reason(state, policy, id, now)?;
    Some(say::content(key, policy.language, values))
}
