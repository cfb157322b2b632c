//! The board: the todos of the sprint by what they wait for, the queue to the branch, and the longest chain that is
//! left. Derived each time, in the values of its text.

use serde::Serialize;
use serde_json::Value;

use super::say::CatalogText;
use super::sprint::todos::longest_chain;
use super::{standing, train, why};
use crate::domain::effect::EffectKind;
use crate::domain::ids::{RequestId, SprintId, TodoId};
use crate::domain::policy::Policy;
use crate::domain::sprint::{PlanningStep, Sprint, SprintStatus, Todo, TodoStatus};
use crate::domain::state::State;
use crate::domain::time::Timestamp;

/// Lines of each column in the text of the board.
const LINES: usize = 12;

/// The board, as its text takes it.
#[derive(Debug, Serialize)]
pub(super) struct Board<'s> {
    sprint: Option<SprintColumns<'s>>,
    queue: Vec<Car<'s>>,
    /// Lines of each column in the text.
    lines: usize,
}

#[derive(Debug, Serialize)]
struct SprintColumns<'s> {
    id: &'s SprintId,
    milestone: &'s str,
    status: SprintStatus,
    step: Option<PlanningStep>,
    done: usize,
    total: usize,
    columns: [Column<'s>; 5],
    chain: Vec<&'s str>,
}

#[derive(Debug, Serialize)]
struct Column<'s> {
    column: TodoStatus,
    todos: Vec<TodoLine<'s>>,
}

/// A todo, and in one word with its values what it waits for.
#[derive(Debug, Serialize)]
struct TodoLine<'s> {
    id: &'s TodoId,
    title: &'s str,
    request_id: Option<&'s RequestId>,
    wait: String,
    of: Value,
}

/// A change on its way to the branch.
#[derive(Debug, Serialize)]
struct Car<'s> {
    request_id: RequestId,
    title: String,
    commit: Option<&'s str>,
    doing: &'static str,
    is_in_line: bool,
    held: bool,
    clashes: bool,
}

impl Board<'_> {
    /// With so many lines of each column, and without what changes by itself from second to second.
    pub(super) fn pinned(mut self, lines: usize) -> Self {
        self.lines = lines;
        let columns = self.sprint.iter_mut().flat_map(|sprint| &mut sprint.columns);
        for todo in columns.flat_map(|column| &mut column.todos) {
            if let Some(of) = todo.of.as_object_mut() {
                of.remove("seconds");
            }
        }
        self
    }
}

/// The active sprint, or else the last one; only the queue where there was none.
#[must_use]
pub fn board(state: &State, policy: &Policy, now: Timestamp) -> Value {
    let sprint = state.active_sprint().or_else(|| state.last_sprint());
    serde_json::to_value(board_of(state, policy, sprint, now)).unwrap_or_default()
}

/// The board of this sprint.
pub(super) fn board_of<'s>(
    state: &'s State,
    policy: &Policy,
    sprint: Option<&'s Sprint>,
    now: Timestamp,
) -> Board<'s> {
    let sprint = sprint.map(|sprint| of_sprint(state, policy, sprint, now));
    Board { sprint, queue: queue(state, policy), lines: LINES }
}

fn of_sprint<'s>(
    state: &'s State,
    policy: &Policy,
    sprint: &'s Sprint,
    now: Timestamp,
) -> SprintColumns<'s> {
    let todos = &sprint.work.todos;
    let waits = why::TodoWaits::of(state, policy, sprint);
    let column = |column: TodoStatus, holds: fn(TodoStatus) -> bool| {
        let mine = todos.iter().filter(|todo| holds(todo.progress.status));
        let line = |todo| line(why::todo_reason(state, policy, &waits, todo, now), todo);
        Column { column, todos: mine.map(line).collect() }
    };
    SprintColumns {
        id: &sprint.sprint_id,
        milestone: &sprint.milestone_title,
        status: sprint.status,
        step: sprint.planning.step,
        done: todos.iter().filter(|todo| todo.progress.status.is_success()).count(),
        total: todos.len(),
        columns: [
            column(TodoStatus::Running, |it| {
                matches!(it, TodoStatus::Running | TodoStatus::Uncommitted)
            }),
            column(TodoStatus::Blocked, |it| {
                matches!(it, TodoStatus::Blocked | TodoStatus::Failed)
            }),
            column(TodoStatus::Queued, |it| it == TodoStatus::Queued),
            column(TodoStatus::Committed, TodoStatus::is_success),
            column(TodoStatus::Cancelled, |it| it == TodoStatus::Cancelled),
        ],
        chain: chain(todos),
    }
}

fn line((key, mut values): CatalogText, todo: &Todo) -> TodoLine<'_> {
    // What its request waits for says more than that it has one.
    let inner = values.get_mut("line").filter(|line| line.is_object()).map(Value::take);
    let key = inner.as_ref().and_then(|line| line["key"].as_str()).unwrap_or(key);
    let wait = key.trim_start_matches("why.").to_owned();
    let of = match inner {
        Some(mut line) => line["values"].take(),
        None => values,
    };
    let request_id = todo.progress.request_id.as_ref();
    TodoLine { id: &todo.progress.todo_id, title: &todo.title, request_id, wait, of }
}

/// The todos of the longest chain that is not delivered; none where nothing waits for anything.
fn chain(todos: &[Todo]) -> Vec<&str> {
    let chain = longest_chain(todos).into_iter().map(|todo| todo.title.as_str());
    Some(chain.collect::<Vec<_>>()).filter(|chain| chain.len() > 1).unwrap_or_default()
}

/// The changes on their way to the branch, the first one first, with what is done for them.
fn queue<'s>(state: &'s State, policy: &Policy) -> Vec<Car<'s>> {
    let of = |id: &RequestId| {
        let is_its = |kind: &EffectKind| {
            kind.request_id() == Some(id) || kind.lands().iter().any(|car| car.request_id == *id)
        };
        state.effects.values().find(|it| is_its(&it.kind))
    };
    let car = |request_id: RequestId| {
        let effect = of(&request_id);
        let request = state.requests.get(&request_id)?;
        Some(Car {
            title: standing::title(request),
            commit: request.work.candidate.as_ref().map(|it| it.commit.as_str()),
            doing: effect.map_or("", |effect| effect.kind.name()),
            is_in_line: effect.is_some_and(|it| standing::waits_for_check_run(state, policy, it)),
            held: request.work.held.is_some(),
            clashes: request.work.clashes_with.is_some(),
            request_id,
        })
    };
    train::in_order(state).into_iter().filter_map(car).collect()
}
