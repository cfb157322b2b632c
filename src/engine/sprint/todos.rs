//! The order of a sprint's todos, and what each waits for (`spec/teams.md` 4.4, 9.5).

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::{BacklogId, TodoId};
use crate::domain::sprint::{Todo, TodoStatus};

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

/// The todos that have to be delivered before this one begins: those that it names. Ranks are an order and hold
/// nobody back; a todo that a restart put first waits for nothing.
#[must_use]
pub fn waiting_on(todo: &Todo, all: &[Todo]) -> Vec<TodoId> {
    if todo.is_checkpoint() {
        return Vec::new();
    }
    let delivered =
        |id: &TodoId| all.iter().any(|other| other.todo_id == *id && other.status.is_success());
    todo.depends_on.iter().filter(|id| !delivered(id)).cloned().collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::request::{Blocked, Request, RequestStatus};
    use crate::domain::sprint::RESTART_CHECKPOINT;
    use crate::domain::time::Timestamp;
    use proptest::prelude::*;

    fn todo(id: &str, status: TodoStatus, rank: u32) -> Todo {
        let mut todo = Todo::new(TodoId::parse(id).unwrap(), id, Timestamp::from_millis(0));
        (todo.status, todo.priority_rank) = (status, rank);
        todo
    }

    fn names(ids: &[TodoId]) -> Vec<&str> {
        ids.iter().map(TodoId::as_str).collect()
    }

    #[test]
    fn s05_order() {
        let mut todos = vec![
            todo("a", TodoStatus::Queued, 3),
            todo("b", TodoStatus::Running, 5),
            todo("c", TodoStatus::Queued, 1),
            todo("d", TodoStatus::Queued, 0),
            todo("e", TodoStatus::Blocked, 9),
        ];
        RESTART_CHECKPOINT.clone_into(&mut todos[4].dependency_gate_bypass);
        let ordered: Vec<&str> =
            order(&todos).into_iter().map(|index| todos[index].title.as_str()).collect();
        assert_eq!(ordered, ["e", "b", "c", "a", "d"], "S05");
    }

    #[test]
    fn what_a_todo_names_is_waited_for_and_ranks_are_not() {
        let mut todos = vec![
            todo("one", TodoStatus::Blocked, 1),
            todo("two", TodoStatus::Queued, 2),
            todo("three", TodoStatus::Queued, 3),
        ];
        todos[2].depends_on = vec![todos[1].todo_id.clone(), TodoId::parse("gone").unwrap()];
        assert!(waiting_on(&todos[1], &todos).is_empty(), "13.A #6");
        assert_eq!(names(&waiting_on(&todos[2], &todos)), ["two", "gone"]);
        todos[1].status = TodoStatus::Committed;
        assert_eq!(names(&waiting_on(&todos[2], &todos)), ["gone"]);
        todos[1].status = TodoStatus::Cancelled;
        assert_eq!(names(&waiting_on(&todos[2], &todos)), ["two", "gone"]);
        RESTART_CHECKPOINT.clone_into(&mut todos[2].dependency_gate_bypass);
        assert!(waiting_on(&todos[2], &todos).is_empty(), "S27");
    }

    #[test]
    fn a_cycle_is_named() {
        let id = |text: &str| BacklogId::parse(text).unwrap();
        let graph = |edges: &[(&str, &[&str])]| {
            let edges: Vec<_> = edges
                .iter()
                .map(|(from, to)| (id(from), to.iter().map(|to| id(to)).collect()))
                .collect();
            cycle(&edges)
                .map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(graph(&[]), None);
        assert_eq!(graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &["elsewhere"])]), None);
        assert_eq!(graph(&[("a", &["a"])]).as_deref(), Some("a"));
        assert_eq!(
            graph(&[("a", &["b"]), ("b", &["d", "c"]), ("c", &["d", "b"]), ("d", &[])]).as_deref(),
            Some("b c")
        );
    }

    #[test]
    fn s07_s08_status_follows_from_the_request_alone() {
        let mut request = Request::default();
        for (status, expected) in [
            (RequestStatus::Queued, TodoStatus::Queued),
            (RequestStatus::Delegated, TodoStatus::Running),
            (RequestStatus::Completed, TodoStatus::Completed),
            (RequestStatus::Blocked, TodoStatus::Blocked),
            (RequestStatus::Failed, TodoStatus::Failed),
            (RequestStatus::Cancelled, TodoStatus::Cancelled),
            (RequestStatus::Committed, TodoStatus::Committed),
        ] {
            request.status = status;
            assert_eq!(TodoStatus::of(&request), expected, "S07 {status:?}");
        }
        request.status = RequestStatus::Delegated;
        request.work.result = Some(std::sync::Arc::new(crate::domain::result::RoleResult::new(
            crate::domain::role::Role::Developer,
            "r",
        )));
        assert_eq!(TodoStatus::of(&request), TodoStatus::Running, "S08, 13.A #1");
        request.status = RequestStatus::Blocked;
        request.blocked = Some(Blocked {
            code: crate::domain::block::BlockCode::PersonEdits,
            detail: String::new(),
            required_inputs: Vec::new(),
            since: Timestamp::from_millis(0),
        });
        assert_eq!(TodoStatus::of(&request), TodoStatus::Uncommitted, "G11");
    }

    proptest! {
        #[test]
        fn without_a_cycle_something_can_always_begin(
            edges in prop::collection::vec(prop::collection::vec(0_usize..12, 0..4), 1..12)
        ) {
            let id = |n: usize| BacklogId::parse(&format!("b{n}")).unwrap();
            let graph: Vec<_> = edges
                .iter()
                .enumerate()
                .map(|(n, on)| (id(n), on.iter().map(|on| id(*on)).collect::<Vec<_>>()))
                .collect();
            // Take away what depends on nothing that is left; a cycle is what then stays.
            let mut left: BTreeSet<usize> = (0..edges.len()).collect();
            loop {
                let free: Vec<usize> = left
                    .iter()
                    .copied()
                    .filter(|n| !edges[*n].iter().any(|on| left.contains(on)))
                    .collect();
                if free.is_empty() { break; }
                left.retain(|n| !free.contains(n));
            }
            let found = cycle(&graph);
            prop_assert_eq!(found.is_some(), !left.is_empty());
            if let Some(around) = found {
                for (n, from) in around.iter().enumerate() {
                    let to = &around[(n + 1) % around.len()];
                    let edges = &graph.iter().find(|(id, _)| id == from).unwrap().1;
                    prop_assert!(edges.contains(to));
                }
            }
        }
    }
}
