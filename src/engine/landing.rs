//! The queue to the branch: changes land one at a time, in the order in which they came. The first is composed on
//! the branch's head and proven there, as often as the branch moves meanwhile, before the next one begins. Its
//! place is kept until it is on the branch, or a role, a gate or a person has it.

use std::sync::Arc;

use super::turn::Turn;
use crate::domain::effect::EffectKind;
use crate::domain::ids::RequestId;
use crate::domain::record::RecordId;
use crate::domain::request::{Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;

/// The requests in the queue, the first one first.
fn queue<'r>(requests: impl Iterator<Item = &'r Request>) -> Vec<RequestId> {
    let mut all: Vec<(Timestamp, &RequestId)> = requests
        .filter_map(|request| Some((request.work.landing_since?, &request.request_id)))
        .collect();
    all.sort_unstable();
    all.into_iter().map(|(_, id)| id.clone()).collect()
}

fn place_in(queue: &[RequestId], id: &RequestId) -> Option<usize> {
    queue.iter().position(|other| other == id).map(|at| at + 1)
}

/// The requests in the queue to the branch, the first one first.
#[must_use]
pub(super) fn in_order(state: &State) -> Vec<RequestId> {
    queue(state.requests.values().map(Arc::as_ref))
}

/// The place of a request in the queue to the branch, from 1; `None` where it does not stand in it.
#[must_use]
pub fn place(state: &State, id: &RequestId) -> Option<usize> {
    state.requests.get(id)?.work.landing_since?;
    place_in(&queue(state.requests.values().map(Arc::as_ref)), id)
}

/// The same with what this turn has changed so far.
pub(super) fn place_now(turn: &Turn<'_>, id: &RequestId) -> Option<usize> {
    turn.request(id)?.work.landing_since?;
    place_in(&queue(turn.requests()), id)
}

/// Puts a request at the end of the queue; one that stands in it keeps its place.
pub(super) fn join(turn: &mut Turn<'_>, id: &RequestId) {
    let last = turn.requests().filter_map(|request| request.work.landing_since).max();
    // Nobody comes before one who was there in the same millisecond.
    let now = last.map_or(turn.now, |last| turn.now.max(Timestamp::from_millis(last.millis() + 1)));
    let Some(request) = turn.edit(id) else { return };
    request.status = RequestStatus::Delegated;
    request.route.current_role = Some(Role::VersionController);
    request.work.landing_since.get_or_insert(now);
}

/// Whether the request still waits for the branch and for nothing else.
fn stays(request: &Request) -> bool {
    request.status == RequestStatus::Delegated
        && request.route.current_role == Some(Role::VersionController)
        && request.work.gate_id.is_none()
        && request.work.candidate.is_some()
}

/// Takes a request that waits for nothing but the branch, and whose merge has not begun, out of the queue; whether
/// it stood there. One that is being moved or proven stays: it comes by the gate before it lands.
pub(super) fn leave(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    if turn.request(id).is_none_or(|request| request.work.landing_since.is_none()) {
        return false;
    }
    let is_merge = |kind: &EffectKind| matches!(kind, EffectKind::Merge { .. });
    if turn.has_effect(|kind| kind.request_id() == Some(id) && !is_merge(kind)) {
        return false;
    }
    let merge = turn.effects().find(|it| it.kind.request_id() == Some(id));
    let merge = merge.map(|it| it.effect_id.clone());
    if let Some(merge) = merge {
        turn.remove(RecordId::Effect(merge));
    }
    true
}

/// Closes a decision: whoever no longer waits for the branch gives up its place, and the first one is moved on
/// where nothing moves it. Returns whose place is another one now.
pub(super) fn advance(turn: &mut Turn<'_>) -> Vec<RequestId> {
    let left: Vec<RequestId> = turn
        .requests()
        .filter(|request| request.work.landing_since.is_some() && !stays(request))
        .map(|request| request.request_id.clone())
        .collect();
    for id in &left {
        if let Some(request) = turn.edit(id) {
            request.work.landing_since = None;
        }
    }
    let now = queue(turn.requests());
    let Some(first) = now.first() else { return Vec::new() };
    let commit = turn.request(first).and_then(|request| request.work.candidate.as_ref());
    let commit = commit.map(|candidate| candidate.commit.clone());
    // The branch may still be moving for one that has left the queue since.
    let moves = turn.has_effect(|kind| {
        matches!(kind, EffectKind::Merge { .. } | EffectKind::Rebase { .. })
            || kind.change_of() == Some(first)
    });
    if let (Some(commit), false) = (commit, moves) {
        turn.plan(EffectKind::Merge { request_id: first.clone(), commit });
    }
    let before = queue(turn.before().requests.values().map(Arc::as_ref));
    let other = |id: &&RequestId| place_in(&before, id) != place_in(&now, id);
    now.iter().filter(other).cloned().collect()
}

/// Whether the branch may be moving for this request just now.
pub(super) fn is_merging(turn: &Turn<'_>, id: &RequestId) -> bool {
    turn.is_under_way(
        |kind| matches!(kind, EffectKind::Merge { request_id, .. } if request_id == id),
    )
}
