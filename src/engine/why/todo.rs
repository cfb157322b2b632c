//! What a todo, an item of the backlog or a sprint waits for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::request;
use crate::domain::ids::{ItemId, TodoId};
use crate::domain::item::{Item, ItemStatus};
use crate::domain::policy::Policy;
use crate::domain::sprint::{Sprint, SprintStatus, Todo, TodoStatus};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::budget;
use crate::engine::say::CatalogText;
use crate::engine::sprint::slots_of;
use crate::engine::sprint::todos::{self, TodoRecords, TodoWait};

/// The reason for whatever of these has the id; an item also by what the author of its plan calls it.
pub(super) fn reason(
    state: &State,
    policy: &Policy,
    id: &str,
    now: Timestamp,
) -> Option<CatalogText> {
    let sprints = || state.sprints.values().map(AsRef::as_ref);
    let todos =
        || sprints().flat_map(|it: &Sprint| it.work.todos.iter().map(move |todo| (it, todo)));
    if let Some((sprint, todo)) = todos().find(|(_, todo)| todo.progress.todo_id.as_str() == id) {
        return Some(of_todo(state, policy, &TodoWaits::of(state, policy, sprint), todo, now));
    }
    if let Some(sprint) = sprints().find(|sprint| sprint.sprint_id.as_str() == id) {
        return Some(of_sprint(state, policy, sprint, now));
    }
    let is_it = |item: &&Item| {
        item.backlog_id.as_str() == id
            || item.plan.as_ref().is_some_and(|plan| plan.item_id.as_str() == id)
    };
    let item = state.backlog.values().map(AsRef::as_ref).find(is_it);
    let delivered =
        || todos().find(|(_, todo)| todo.backlog_id.as_ref().is_some_and(|it| it.as_str() == id));
    match item {
        Some(item) => Some(of_item(state, policy, item, now)),
        None => delivered().map(|(sprint, todo)| {
            of_todo(state, policy, &TodoWaits::of(state, policy, sprint), todo, now)
        }),
    }
}

fn of_item(state: &State, policy: &Policy, item: &Item, now: Timestamp) -> CatalogText {
    let is_its = |todo: &&Todo| todo.backlog_id.as_ref() == Some(&item.backlog_id);
    let selected = state.active_sprint().and_then(|sprint| {
        let todo = sprint
            .work
            .todos
            .iter()
            .filter(|todo| !todo.progress.status.is_terminal())
            .find(is_its)?;
        Some((sprint, todo))
    });
    if let Some((sprint, todo)) = selected {
        return of_todo(state, policy, &TodoWaits::of(state, policy, sprint), todo, now);
    }
    let is_open = |id: &&ItemId| !state.settled_items.contains_key(*id);
    let name = |id: &ItemId| {
        let found = state.backlog.get(id);
        json!({ "title": found.map_or(id.as_str(), |it| it.title.as_str()), "status": found.map(|it| it.status) })
    };
    let after: Vec<Value> = item.depends_on.iter().filter(is_open).map(name).collect();
    let slot = state.scheduler.slots.next_slot_at;
    let values = json!({
        "id": item.backlog_id,
        "title": item.title,
        "status": item.status,
        "after": after,
        "slot": slot.map(|at| request::shown(policy, at)),
        "in_sprint": state.active_sprint().is_some(),
        "blocked": item.status == ItemStatus::Blocked,
        "detail": item.blocked_reason,
        "role": item.blocked_by_role,
        "inputs": item.required_inputs,
        "dropped": item.dropped_reason,
        "since": request::shown(policy, item.updated_at),
    });
    (if item.status.is_active() { "why.item" } else { "why.item_ended" }, values)
}

/// What the todo's own request waits for, or why it has not begun.
pub(in crate::engine) fn of_todo(
    state: &State,
    policy: &Policy,
    waits: &TodoWaits<'_>,
    todo: &Todo,
    now: Timestamp,
) -> CatalogText {
    let sprint = waits.sprint;
    let values = |more: Value| {
        let mut values = json!({ "id": todo.progress.todo_id, "title": todo.title, "status": todo.progress.status });
        if let (Some(all), Value::Object(more)) = (values.as_object_mut(), more) {
            all.extend(more);
        }
        values
    };
    let its = todo.progress.request_id.as_ref().and_then(|id| state.requests.get(id));
    if let Some(its) = its.filter(|_| todo.progress.status != TodoStatus::Queued) {
        let (key, inner) = request::reason(state, policy, its, now);
        return ("why.todo", values(json!({ "line": { "key": key, "values": inner } })));
    }
    if todo.progress.status != TodoStatus::Queued {
        return ("why.todo_ended", values(json!({})));
    }
    if sprint.closing.wrap_up.is_some() {
        return ("why.todo_ending", values(json!({})));
    }
    if let Some(by) = &sprint.work.paused_by {
        return ("why.todo_paused", values(json!({ "by": by })));
    }
    if sprint.status != SprintStatus::Running {
        let status = json!({ "sprint_status": sprint.status, "step": sprint.planning.step });
        return ("why.todo_planning", values(status));
    }
    let title =
        |id: &TodoId| sprint.todo(id).map_or(id.as_str(), |it| it.title.as_str()).to_owned();
    let wait = waits.waits.get(&todo.progress.todo_id).cloned();
    let declined = budget::declined_at(&state.spending, policy, now);
    let is_next = matches!(wait, Some(TodoWait::Nothing | TodoWait::Slot));
    if let Some(declined) = declined.filter(|_| is_next) {
        return ("why.todo_next_day", values(declined.values(sprint)));
    }
    match wait {
        Some(TodoWait::Dependencies(ids)) => {
            let after = ids.iter().map(
                |id| json!({ "title": title(id), "status": sprint.todo(id).map(|it| it.progress.status) }),
            );
            ("why.todo_after", values(json!({ "after": after.collect::<Vec<_>>() })))
        }
        Some(TodoWait::Paths(other)) => {
            ("why.todo_paths", values(json!({ "other": title(&other) })))
        }
        Some(TodoWait::Slot) => {
            let slots = slots_of(policy, sprint);
            ("why.todo_slot", values(json!({ "slots": slots })))
        }
        Some(TodoWait::Nothing) | None => ("why.todo_next", values(json!({}))),
    }
}

/// What each todo of a sprint that has not begun waits for.
pub(in crate::engine) struct TodoWaits<'s> {
    sprint: &'s Sprint,
    waits: BTreeMap<&'s TodoId, TodoWait>,
}

impl<'s> TodoWaits<'s> {
    /// Those of this sprint.
    pub(in crate::engine) fn of(state: &State, policy: &Policy, sprint: &'s Sprint) -> Self {
        let records = |todo: &Todo| {
            let item = todo.backlog_id.as_ref().and_then(|id| state.backlog.get(id));
            let request = todo.progress.request_id.as_ref().and_then(|id| state.requests.get(id));
            let gate = request.and_then(|it| state.gates.get(it.work.gate_id.as_ref()?));
            TodoRecords::of(item.map(|it| &**it), request.map(|it| &**it), gate.map(|it| &**it))
        };
        let todos = &sprint.work.todos;
        let waits = todos::waits(todos, slots_of(policy, sprint), records).into_iter();
        let waits = waits.filter_map(|(at, wait)| Some((&todos.get(at)?.progress.todo_id, wait)));
        TodoWaits { sprint, waits: waits.collect() }
    }
}

fn of_sprint(state: &State, policy: &Policy, sprint: &Sprint, now: Timestamp) -> CatalogText {
    let todos = &sprint.work.todos;
    let titles = |status: TodoStatus| -> Vec<&str> {
        todos.iter().filter(|it| it.progress.status == status).map(|it| it.title.as_str()).collect()
    };
    let own = sprint.planning_request_id.as_ref().and_then(|id| state.requests.get(id));
    let own = own.map(|own| request::reason(state, policy, own, now));
    let declined = budget::declined_at(&state.spending, policy, now);
    let declined = declined.filter(|_| sprint.status == SprintStatus::Running);
    let values = json!({
        "id": sprint.sprint_id,
        "milestone": sprint.milestone_title,
        "status": sprint.status,
        "step": sprint.planning.step,
        "done": todos.iter().filter(|it| it.progress.status.is_success()).count(),
        "total": todos.len(),
        "running": titles(TodoStatus::Running),
        "blocked": titles(TodoStatus::Blocked),
        "cutoff": sprint.cutoff_at.map(|at| request::shown(policy, at)),
        "paused_by": sprint.work.paused_by,
        "declined": declined.map(|it| it.values(sprint)),
        "line": own.map(|(key, values)| json!({ "key": key, "values": values })),
    });
    ("why.sprint", values)
}
