//! Why something does not move: what or whom it waits for, since when, and what would move it. One line each.

mod request;
mod todo;

use std::sync::Arc;

pub use request::why;
pub(in crate::engine) use todo::{TodoWaits, of_todo as todo_reason};

use crate::domain::ids::SubjectId;
use crate::domain::outgoing::Content;
use crate::domain::policy::Policy;
use crate::domain::request::Request;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::say;

/// The line about whatever has this id: a request, an item of the backlog or of a plan, a todo, a sprint or a gate.
/// `None` where nothing that is open has it.
#[must_use]
pub fn about(state: &State, policy: &Policy, id: &SubjectId, now: Timestamp) -> Option<Content> {
    if let Some(request) = request(state, id) {
        return Some(why(state, policy, request, now));
    }
    let (key, values) = todo::reason(state, policy, id.as_str(), now)?;
    Some(say::content(key, policy.language, values))
}

/// The open request that has this id, or whose gate has it.
#[must_use]
pub fn request<'s>(state: &'s State, id: &SubjectId) -> Option<&'s Arc<Request>> {
    let id = id.as_str();
    let gate = state.gates.values().find(|gate| gate.gate_id.as_str() == id);
    let request = gate.map_or(id, |gate| gate.request_id.as_str());
    state.requests.values().find(|it| it.request_id.as_str() == request)
}
