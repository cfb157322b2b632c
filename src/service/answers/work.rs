//! What is being worked on, and what could be.

use serde_json::{Value, json};

use super::LINES;
use crate::domain::backlog::{BacklogItem, BacklogStatus};
use crate::domain::gate::Gate;
use crate::domain::request::Request;
use crate::domain::sprint::TodoStatus;
use crate::domain::state::State;
use crate::engine::sprint::backlog::priority_key;

/// What is open, and what waits for a person.
pub(super) fn status(state: &State) -> Value {
    let open: Vec<&Request> = open(state).collect();
    let lines: Vec<Value> = open
        .iter()
        .take(LINES)
        .map(|request| {
            json!({
                "request_id": request.request_id,
                "title": title(request),
                "status": if request.gate_id.is_some() { "waiting" } else { request.status.as_str() },
                "role": request.current_role,
                "who": request.reply_route.author_name,
            })
        })
        .collect();
    json!({ "open": open.len(), "lines": lines, "waiting": state.gates.len() })
}

/// The open requests, those that wait for a person first, then the newest first.
pub(super) fn open(state: &State) -> impl Iterator<Item = &Request> {
    let mut all: Vec<&Request> =
        state.requests.values().filter(|request| !request.status.is_terminal()).collect();
    all.sort_by_key(|request| {
        let waits = request.gate_id.is_some() || request.blocked.is_some();
        (!waits, std::cmp::Reverse(request.created_at))
    });
    all.into_iter()
}

/// The gates that are open, oldest first, with their requests.
pub(super) fn waiting(state: &State) -> Vec<(&Gate, &Request)> {
    let mut all: Vec<(&Gate, &Request)> = state
        .gates
        .values()
        .filter_map(|gate| Some((gate, state.requests.get(&gate.request_id)?)))
        .collect();
    all.sort_by_key(|(gate, _)| gate.created_at);
    all
}

/// The first line of what was asked for.
pub(super) fn title(request: &Request) -> String {
    request.scope.lines().next().unwrap_or_default().chars().take(80).collect()
}

/// The active sprint, or else the last one, in the words in which the team answers plain questions.
pub(super) fn sprint(state: &State) -> Value {
    let slot = state.scheduler.next_slot_at.map(|at| at.kst("%Y-%m-%d %H:%M")).unwrap_or_default();
    let latest = || state.sprints.values().max_by_key(|sprint| sprint.started_at);
    let Some(sprint) = state.active_sprint().or_else(latest) else {
        return json!({ "next_slot_at": slot });
    };
    let running: Vec<Value> = sprint
        .todos
        .iter()
        .filter(|todo| todo.status == TodoStatus::Running)
        .take(LINES)
        .map(|todo| json!({ "title": todo.title, "request_id": todo.request_id }))
        .collect();
    json!({
        "sprint_id": sprint.sprint_id,
        "milestone": sprint.milestone_title,
        "status": sprint.status,
        "phase": sprint.phase,
        "step": sprint.initial_phase_step,
        "done": sprint.todos.iter().filter(|todo| todo.status.is_success()).count(),
        "total": sprint.todos.len(),
        "running": running,
        "next_slot_at": slot,
    })
}

pub(super) fn backlog(state: &State) -> Value {
    let mut items: Vec<&BacklogItem> = state.backlog.values().collect();
    items.sort_by_key(|item| priority_key(item));
    let count = |status| items.iter().filter(|item| item.status == status).count();
    let shown: Vec<Value> = items
        .iter()
        .take(LINES)
        .map(|item| {
            json!({
                "backlog_id": item.backlog_id,
                "title": item.title,
                "rank": item.priority_rank,
                "status": item.status,
            })
        })
        .collect();
    json!({
        "pending": count(BacklogStatus::Pending),
        "blocked": count(BacklogStatus::Blocked),
        "items": shown,
    })
}
