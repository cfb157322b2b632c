//! The order of a sprint's todos, what each waits for, and where each stands (`spec/teams.md` 4.4, 9.5).

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::{BacklogId, TodoId};
use crate::domain::request::{Request, RequestStatus};
use crate::domain::sprint::{Todo, TodoStatus};
use crate::engine::closeout::is_about_the_commit;

/// The order in which todos are worked on, as indexes: what a restart put first, what runs, then by rank (none
/// is last), then by age.
#[must_use]
pub fn order(todos: &[Todo]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..todos.len()).collect();
    order.sort_by_cached_key(|index| {
        todos.get(*index).map(|todo| {
            (
                !todo.is_checkpoint(),
                todo.status != TodoStatus::Running,
                rank_or_last(todo.priority_rank),
                todo.created_at.or(todo.started_at),
                todo.todo_id.clone(),
            )
        })
    });
    order
}

/// A rank for sorting: 0 means none, which is last.
pub(super) const fn rank_or_last(rank: u32) -> u32 {
    if rank == 0 { u32::MAX } else { rank }
}

/// The todos that have to be delivered before this one begins.
///
/// Where any todo of the sprint names what it depends on, only that counts. Otherwise ranks say it: a todo of
/// rank 2 or more waits for every lower rank, apart from those that were withdrawn. A todo that a restart put
/// first waits for nothing.
#[must_use]
pub fn waiting_on(todo: &Todo, all: &[Todo]) -> Vec<TodoId> {
    if todo.is_checkpoint() {
        return Vec::new();
    }
    if all.iter().any(|other| !other.depends_on.is_empty()) {
        let delivered =
            |id: &TodoId| all.iter().any(|other| other.todo_id == *id && other.status.is_success());
        return todo.depends_on.iter().filter(|id| !delivered(id)).cloned().collect();
    }
    if todo.priority_rank < 2 {
        return Vec::new();
    }
    all.iter()
        .filter(|other| (1..todo.priority_rank).contains(&other.priority_rank))
        .filter(|other| !other.status.is_success() && other.status != TodoStatus::Cancelled)
        .map(|other| other.todo_id.clone())
        .collect()
}

/// A cycle among items that depend on each other, in the order of the dependencies; none where there is
/// none. What is not among the items depends on nothing.
#[must_use]
pub fn cycle(items: &[(BacklogId, Vec<BacklogId>)]) -> Option<Vec<BacklogId>> {
    let edges: BTreeMap<&BacklogId, &[BacklogId]> =
        items.iter().map(|(id, on)| (id, on.as_slice())).collect();
    let mut through: BTreeSet<&BacklogId> = BTreeSet::new();
    for start in edges.keys() {
        // Each entry of the path: an item and how many of its dependencies were followed.
        let mut path: Vec<(&BacklogId, usize)> = vec![(*start, 0)];
        while let Some((id, followed)) = path.last_mut() {
            let next = edges.get(*id).and_then(|on| on.get(*followed));
            *followed += 1;
            match next {
                None => {
                    through.insert(*id);
                    path.pop();
                }
                Some(next) if through.contains(next) => {}
                Some(next) => {
                    if let Some(from) = path.iter().position(|(id, _)| *id == next) {
                        return Some(
                            path.split_off(from).into_iter().map(|(id, _)| id.clone()).collect(),
                        );
                    }
                    path.push((next, 0));
                }
            }
        }
    }
    None
}

/// Where a todo stands, by its request's own status and nothing else (13.A #1): what a role reported on the way
/// does not count.
#[must_use]
pub fn status_of(request: &Request) -> TodoStatus {
    match request.status {
        RequestStatus::Queued => TodoStatus::Queued,
        RequestStatus::Delegated => TodoStatus::Running,
        RequestStatus::Completed => TodoStatus::Completed,
        RequestStatus::Committed => TodoStatus::Committed,
        RequestStatus::Uncommitted => TodoStatus::Uncommitted,
        RequestStatus::Blocked => {
            let code = request.blocked.as_ref().map_or("", |blocked| blocked.code.as_str());
            if is_about_the_commit(code) { TodoStatus::Uncommitted } else { TodoStatus::Blocked }
        }
        RequestStatus::Failed => TodoStatus::Failed,
        RequestStatus::Cancelled => TodoStatus::Cancelled,
    }
}
