//! The order of a sprint's todos, and what each waits for (`spec/teams.md` 4.4, 9.5).

use crate::domain::budget::Scope;
use crate::domain::gate::{Gate, GateKind};
use crate::domain::ids::TodoId;
use crate::domain::item::Item;
use crate::domain::request::Request;
use crate::domain::sprint::{Todo, TodoStatus};
use crate::domain::work_span::WorkSpan;
use crate::engine::plan::graph::Graph;
use crate::engine::plan::paths::overlap;

/// The order in which todos are worked on, as indexes: what a restart put first, what runs, then the longest chain of
/// todos that wait for each other, then by rank (none is last), then by age.
#[must_use]
pub fn order(todos: &[Todo]) -> Vec<usize> {
    let chains = chains(todos);
    let mut order: Vec<usize> = (0..todos.len()).collect();
    order.sort_by_cached_key(|index| {
        todos.get(*index).map(|todo| {
            (
                !todo.progress.is_checkpoint(),
                todo.progress.status != TodoStatus::Running,
                std::cmp::Reverse(chains.get(*index).copied().unwrap_or(0)),
                rank_or_last(todo.priority_rank),
                todo.progress.created_at.or(todo.progress.started_at),
                todo.progress.todo_id.clone(),
            )
        })
    });
    order
}

/// For each todo, how much work is expected of the longest chain that begins with it.
fn chains(todos: &[Todo]) -> Vec<u64> {
    let expected = expected(todos);
    graph(todos).map_or_else(|| vec![0; todos.len()], |graph| graph.remaining(|at| expected[at]))
}

/// Of the todos that are not delivered, the chain that is expected to take the longest, the first one first.
#[must_use]
pub fn longest_chain(todos: &[Todo]) -> Vec<&Todo> {
    let expected = expected(todos);
    let left = |at: usize| if todos[at].progress.status.is_success() { 0 } else { expected[at] };
    let chain = graph(todos).map(|graph| graph.critical_path(left)).unwrap_or_default();
    chain
        .into_iter()
        .map(|at| &todos[at])
        .filter(|todo| !todo.progress.status.is_success())
        .collect()
}

fn graph(todos: &[Todo]) -> Option<Graph> {
    let edges: Vec<(&TodoId, Vec<&TodoId>)> = todos
        .iter()
        .map(|todo| (&todo.progress.todo_id, todo.depends_on.iter().collect()))
        .collect();
    Graph::of(&edges)
}

/// The work of a todo so far, in milliseconds.
fn work(todo: &Todo) -> u64 {
    todo.progress.spans.iter().map(WorkSpan::millis).sum::<i64>().unsigned_abs()
}

/// The work that each todo is expected to take. What an item says of itself is measured by what such work took in this
/// sprint; one that says nothing takes what the others take on average.
fn expected(todos: &[Todo]) -> Vec<u64> {
    let average = |of: &dyn Fn(&Todo) -> u64| {
        let all: Vec<u64> = todos.iter().map(of).filter(|it| *it > 0).collect();
        (!all.is_empty()).then(|| (all.iter().sum::<u64>() / all.len() as u64).max(1))
    };
    let effort = |todo: &Todo| u64::from(todo.effort);
    let took = |todo: &Todo| if todo.progress.status.is_success() { work(todo) } else { 0 };
    let usual_effort = average(&effort).unwrap_or(1);
    let usual_work = average(&took);
    let both = todos.iter().filter(|todo| todo.effort > 0 && took(todo) > 0);
    let (said, spent) =
        both.fold((0, 0), |(said, spent), todo| (said + effort(todo), spent + took(todo)));
    let unit = match usual_work {
        _ if said > 0 => spent / said,
        Some(work) => work / usual_effort,
        None => 1,
    };
    let of = |todo: &Todo| match effort(todo) {
        0 => usual_work.unwrap_or(usual_effort),
        effort => effort * unit.max(1),
    };
    todos.iter().map(of).collect()
}

/// How long a sprint's todos took.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// From the first one's begin to the last one's end, in seconds.
    pub makespan_seconds: u64,
    /// The chain of todos that depend on each other and took the most work, the first one first.
    pub chain: Vec<TodoId>,
    /// That work, in seconds.
    pub chain_seconds: u64,
}

/// How long these took, as far as they have begun.
#[must_use]
pub fn course(todos: &[Todo]) -> Course {
    let begun = todos.iter().filter_map(|todo| todo.progress.started_at).min();
    let ended = todos
        .iter()
        .filter_map(|todo| todo.progress.ended_at.filter(|_| todo.progress.started_at.is_some()));
    let makespan = begun.zip(ended.max()).map_or(0, |(begun, ended)| ended.seconds_since(begun));
    let work = |at: usize| work(&todos[at]);
    let chain = graph(todos).map(|graph| graph.critical_path(work)).unwrap_or_default();
    Course {
        makespan_seconds: makespan,
        chain_seconds: chain.iter().map(|at| work(*at)).sum::<u64>().div_ceil(1_000),
        chain: chain.into_iter().map(|at| todos[at].progress.todo_id.clone()).collect(),
    }
}

/// A rank for sorting: 0 means none, which is last.
pub(super) const fn rank_or_last(rank: u32) -> u32 {
    if rank == 0 { u32::MAX } else { rank }
}

/// The todos that have to be delivered before this one begins: those that it names. Ranks are an order and hold
/// nobody back; a todo that a restart put first waits for nothing.
#[must_use]
pub fn waiting_on(todo: &Todo, all: &[Todo]) -> Vec<TodoId> {
    if todo.progress.is_checkpoint() {
        return Vec::new();
    }
    let delivered = |id: &TodoId| {
        all.iter().any(|other| other.progress.todo_id == *id && other.progress.status.is_success())
    };
    todo.depends_on.iter().filter(|id| !delivered(id)).cloned().collect()
}

/// What keeps a todo from beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TodoWait {
    /// Nothing: it begins now.
    Nothing,
    /// These are not delivered.
    Dependencies(Vec<TodoId>),
    /// This one, which is under way or comes before it, has declared the same paths.
    Paths(TodoId),
    /// As many todos as may are under way.
    Slot,
}

/// What of the records about a todo the beginning of others follows from.
#[derive(Debug, Default)]
pub struct TodoRecords {
    /// The paths that its item declares.
    pub paths: Vec<String>,
    /// Whether its request waits for a person to decide about its work, or about its own budget; another budget stops the
    /// others as well.
    pub asks: bool,
}

impl TodoRecords {
    /// Those of its item, and of its request with the gate at which that waits.
    pub fn of(item: Option<&Item>, request: Option<&Request>, gate: Option<&Gate>) -> Self {
        let budget = request.and_then(|request| request.params.budget_at_gate.as_ref());
        let is_its_own = budget.is_some_and(|it| it.scope == Scope::Request);
        TodoRecords {
            paths: item.map(|item| item.allowed_paths.clone()).unwrap_or_default(),
            asks: gate.is_some_and(|gate| gate.kind != GateKind::Budget || is_its_own),
        }
    }
}

/// The todos that wait for nothing, by their indexes, in the order in which they begin. They are put in order only where
/// one could begin, which most decisions do not come to.
pub fn next(todos: &[Todo], slots: usize, records: impl Fn(&Todo) -> TodoRecords) -> Vec<usize> {
    let takes_slot =
        |todo: &&Todo| todo.progress.status == TodoStatus::Running && !records(todo).asks;
    let has_slot = todos.iter().filter(takes_slot).count() < slots;
    let is_queued = |todo: &Todo| todo.progress.status == TodoStatus::Queued;
    if !has_slot || !todos.iter().any(is_queued) {
        return Vec::new();
    }
    let waits = waits(todos, slots, &records).into_iter();
    waits.filter(|(_, wait)| *wait == TodoWait::Nothing).map(|(at, _)| at).collect()
}

/// What each todo that has not begun waits for, by its index, in the order in which they begin. At most `slots` todos
/// are under way at once; one that waits for a person takes no slot, and its paths all the same.
pub fn waits(
    todos: &[Todo],
    slots: usize,
    records: impl Fn(&Todo) -> TodoRecords,
) -> Vec<(usize, TodoWait)> {
    let running: Vec<(&TodoId, TodoRecords)> = todos
        .iter()
        .filter(|todo| todo.progress.status == TodoStatus::Running)
        .map(|todo| (&todo.progress.todo_id, records(todo)))
        .collect();
    let mut used = running.iter().filter(|(_, records)| !records.asks).count();
    let mut taken: Vec<(&TodoId, Vec<String>)> =
        running.into_iter().map(|(id, records)| (id, records.paths)).collect();
    let mut waits = Vec::new();
    for (at, todo) in order(todos).into_iter().filter_map(|at| Some((at, todos.get(at)?))) {
        if todo.progress.status != TodoStatus::Queued {
            continue;
        }
        let dependencies = waiting_on(todo, todos);
        let mine = records(todo).paths;
        let wait = if !dependencies.is_empty() {
            TodoWait::Dependencies(dependencies)
        } else if let Some((other, _)) = taken.iter().find(|(_, other)| overlap(other, &mine)) {
            TodoWait::Paths((*other).clone())
        } else if used >= slots {
            TodoWait::Slot
        } else {
            used += 1;
            taken.push((&todo.progress.todo_id, mine));
            TodoWait::Nothing
        };
        waits.push((at, wait));
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::request::{Blocked, Request, RequestStatus};
    use crate::domain::sprint::RESTART_CHECKPOINT;
    use crate::domain::time::Timestamp;

    fn todo(id: &str, status: TodoStatus, rank: u32) -> Todo {
        let mut todo = Todo::new(TodoId::parse(id).unwrap(), id, Timestamp::from_millis(0));
        (todo.progress.status, todo.priority_rank) = (status, rank);
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
        RESTART_CHECKPOINT.clone_into(&mut todos[4].progress.dependency_gate_bypass);
        let ordered: Vec<&str> =
            order(&todos).into_iter().map(|index| todos[index].title.as_str()).collect();
        assert_eq!(ordered, ["e", "b", "c", "a", "d"], "S05");
    }

    #[test]
    fn the_longest_chain_comes_before_ranks() {
        let mut todos: Vec<Todo> = ["a", "b", "c"]
            .iter()
            .zip(1..)
            .map(|(id, rank)| todo(id, TodoStatus::Queued, rank))
            .collect();
        todos[2].depends_on = vec![todos[1].progress.todo_id.clone()];
        let ordered: Vec<&str> =
            order(&todos).into_iter().map(|index| todos[index].title.as_str()).collect();
        assert_eq!(ordered, ["b", "a", "c"], "two todos wait in the chain of b");
    }

    #[test]
    fn a_chain_is_as_long_as_the_work_that_is_expected_of_it() {
        let named = |todos: &[Todo]| -> Vec<String> {
            order(todos).into_iter().map(|index| todos[index].title.clone()).collect()
        };
        let mut todos: Vec<Todo> =
            ["a", "b", "c", "d"].iter().map(|id| todo(id, TodoStatus::Queued, 0)).collect();
        todos[3].depends_on = vec![todos[2].progress.todo_id.clone()];
        (todos[1].effort, todos[2].effort) = (6, 1);
        let chain = |todos: &[Todo]| -> Vec<String> {
            longest_chain(todos).iter().map(|todo| todo.title.clone()).collect()
        };
        assert_eq!(named(&todos), ["b", "c", "a", "d"], "c and d take 1 and the average, 3");
        assert_eq!(chain(&todos), ["b"]);
        // What was said to take 1 took 10 s, and what nobody spoke of took 100 s: so does the rest of that.
        let spans = |seconds: i64| {
            let millis = seconds * 1_000;
            vec![WorkSpan::until(
                Timestamp::from_millis(millis),
                millis.unsigned_abs(),
                crate::domain::role::Role::Developer,
            )]
        };
        let mut done = todo("e", TodoStatus::Committed, 0);
        (done.effort, done.progress.spans) = (1, spans(10));
        let mut other = todo("f", TodoStatus::Committed, 0);
        other.progress.spans = spans(100);
        todos.extend([done, other]);
        assert_eq!(named(&todos)[..3], ["c", "b", "a"]);
        assert_eq!(chain(&todos), ["c", "d"]);
    }

    #[test]
    fn what_a_todo_names_is_waited_for_and_ranks_are_not() {
        let mut todos = vec![
            todo("one", TodoStatus::Blocked, 1),
            todo("two", TodoStatus::Queued, 2),
            todo("three", TodoStatus::Queued, 3),
        ];
        todos[2].depends_on =
            vec![todos[1].progress.todo_id.clone(), TodoId::parse("gone").unwrap()];
        assert!(waiting_on(&todos[1], &todos).is_empty(), "13.A #6");
        assert_eq!(names(&waiting_on(&todos[2], &todos)), ["two", "gone"]);
        todos[1].progress.status = TodoStatus::Committed;
        assert_eq!(names(&waiting_on(&todos[2], &todos)), ["gone"]);
        todos[1].progress.status = TodoStatus::Cancelled;
        assert_eq!(names(&waiting_on(&todos[2], &todos)), ["two", "gone"]);
        RESTART_CHECKPOINT.clone_into(&mut todos[2].progress.dependency_gate_bypass);
        assert!(waiting_on(&todos[2], &todos).is_empty(), "S27");
    }

    #[test]
    fn a_todo_says_what_it_waits_for() {
        let mut todos: Vec<Todo> =
            ["a", "b", "c", "d"].iter().map(|id| todo(id, TodoStatus::Queued, 0)).collect();
        todos[3].depends_on = vec![todos[0].progress.todo_id.clone()];
        let paths = |todo: &Todo| match todo.title.as_str() {
            "a" | "b" => vec!["src/**".to_owned()],
            _ => Vec::new(),
        };
        let paths = |todo: &Todo| TodoRecords { paths: paths(todo), asks: false };
        let id = |at: usize| todos[at].progress.todo_id.clone();
        let expected = |slots| {
            let third = if slots > 1 { TodoWait::Nothing } else { TodoWait::Slot };
            vec![
                (0, TodoWait::Nothing),
                (1, TodoWait::Paths(id(0))),
                (2, third),
                (3, TodoWait::Dependencies(vec![id(0)])),
            ]
        };
        assert_eq!(waits(&todos, 2, paths), expected(2));
        assert_eq!(waits(&todos, 1, paths), expected(1));
        let none = waits(&todos, 0, paths);
        assert!(none.iter().all(|(_, wait)| *wait != TodoWait::Nothing), "{none:?}");
        // Who waits for a person takes no slot, and the paths all the same.
        todos[0].progress.status = TodoStatus::Running;
        let asking = |todo: &Todo| TodoRecords { asks: todo.title == "a", ..paths(todo) };
        let left: Vec<TodoWait> = waits(&todos, 1, asking).into_iter().map(|it| it.1).collect();
        let a = todos[0].progress.todo_id.clone();
        let expected =
            [TodoWait::Paths(a.clone()), TodoWait::Nothing, TodoWait::Dependencies(vec![a])];
        assert_eq!(left, expected);
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
            paused_by: None,
            card: None,
        });
        assert_eq!(TodoStatus::of(&request), TodoStatus::Uncommitted, "G11");
    }
}
