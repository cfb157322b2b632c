//! The board: the todos of the sprint by what they wait for, the queue to the branch, and the longest chain that is
//! left. Derived each time, in the values of its text.

use serde_json::{Value, json};

use super::sprint::todos::longest_chain;
use super::{standing, train, why};
use crate::domain::effect::EffectKind;
use crate::domain::ids::RequestId;
use crate::domain::policy::Policy;
use crate::domain::sprint::{Sprint, Todo, TodoStatus};
use crate::domain::state::State;
use crate::domain::time::Timestamp;

/// Lines of each column in the text of the board.
const LINES: usize = 12;

/// The active sprint, or else the last one; only the queue where there was none.
#[must_use]
pub fn board(state: &State, policy: &Policy, now: Timestamp) -> Value {
    match state.active_sprint().or_else(|| state.last_sprint()) {
        Some(sprint) => board_of(state, policy, sprint, now),
        None => json!({ "sprint": null, "queue": queue(state, policy), "lines": LINES }),
    }
}

/// The board of this sprint.
pub(super) fn board_of(state: &State, policy: &Policy, sprint: &Sprint, now: Timestamp) -> Value {
    let sprint = of_sprint(state, policy, sprint, now);
    json!({ "sprint": sprint, "queue": queue(state, policy), "lines": LINES })
}

fn of_sprint(state: &State, policy: &Policy, sprint: &Sprint, now: Timestamp) -> Value {
    let todos = &sprint.work.todos;
    let waits = why::TodoWaits::of(state, policy, sprint);
    let column = |holds: fn(TodoStatus) -> bool| -> Vec<Value> {
        let mine = todos.iter().filter(|todo| holds(todo.progress.status));
        mine.map(|todo| line(why::todo_reason(state, policy, &waits, todo, now), todo)).collect()
    };
    json!({
        "id": sprint.sprint_id,
        "milestone": sprint.milestone_title,
        "status": sprint.status,
        "step": sprint.planning.step,
        "done": todos.iter().filter(|todo| todo.progress.status.is_success()).count(),
        "total": todos.len(),
        "columns": [
            { "column": TodoStatus::Running, "todos": column(|it| matches!(it, TodoStatus::Running | TodoStatus::Uncommitted)) },
            { "column": TodoStatus::Blocked, "todos": column(|it| matches!(it, TodoStatus::Blocked | TodoStatus::Failed)) },
            { "column": TodoStatus::Queued, "todos": column(|it| it == TodoStatus::Queued) },
            { "column": TodoStatus::Committed, "todos": column(TodoStatus::is_success) },
            { "column": TodoStatus::Cancelled, "todos": column(|it| it == TodoStatus::Cancelled) },
        ],
        "chain": chain(todos),
    })
}

/// A todo, and in one word with its values what it waits for.
fn line((key, values): (&str, Value), todo: &Todo) -> Value {
    let inner = values.get("line").filter(|line| line.is_object());
    let key = inner.and_then(|line| line["key"].as_str()).unwrap_or(key);
    let values = inner.map_or(&values, |line| &line["values"]);
    json!({
        "id": todo.progress.todo_id,
        "title": todo.title,
        "request_id": todo.progress.request_id,
        "wait": key.trim_start_matches("why."),
        "of": values,
    })
}

/// The todos of the longest chain that is not delivered; none where nothing waits for anything.
fn chain(todos: &[Todo]) -> Vec<&str> {
    let chain = longest_chain(todos).into_iter().map(|todo| todo.title.as_str());
    Some(chain.collect::<Vec<_>>()).filter(|chain| chain.len() > 1).unwrap_or_default()
}

/// The changes on their way to the branch, the first one first, with what is done for them.
fn queue(state: &State, policy: &Policy) -> Vec<Value> {
    let of = |id: &RequestId| {
        let is_its = |kind: &EffectKind| {
            kind.request_id() == Some(id) || kind.lands().iter().any(|car| car.request_id == *id)
        };
        state.effects.values().find(|it| is_its(&it.kind))
    };
    let car = |id: RequestId| {
        let effect = of(&id);
        let request = state.requests.get(&id)?;
        let commit = request.work.candidate.as_ref().map(|it| it.commit.as_str());
        Some(json!({
            "request_id": id,
            "title": standing::title(request),
            "commit": commit,
            "doing": effect.map_or("", |effect| effect.kind.name()),
            "is_in_line": effect.is_some_and(|it| standing::waits_for_check_run(state, policy, it)),
            "held": request.work.held.is_some(),
            "clashes": request.work.clashes_with.is_some(),
        }))
    };
    train::in_order(state).into_iter().filter_map(car).collect()
}
