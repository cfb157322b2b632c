//! Answers to questions about the open records. They change nothing, so no decision is made for them.

use serde_json::{Value, json};

use crate::discord::Question;
use crate::domain::backlog::BacklogItem;
use crate::domain::incoming::Actor;
use crate::domain::outgoing::Content;
use crate::domain::policy::{Policy, Right};
use crate::domain::request::Language;
use crate::domain::sprint::Sprint;
use crate::domain::state::State;
use crate::engine::authorize::authorize;

/// Lines of a list: an answer has to fit into one message, and be read on a phone.
const LINES: usize = 12;

/// What `actor` is told.
pub(super) fn answer(
    state: &State,
    policy: &Policy,
    actor: &Actor,
    question: Question,
    language: Language,
) -> Content {
    let (key, values) = if authorize(policy, actor, Right::Ask).is_err() {
        ("not_allowed", json!({}))
    } else {
        match question {
            Question::Sprint => sprint(state),
            Question::Backlog => ("backlog.shown", backlog(state)),
        }
    };
    let values = values.as_object().cloned().unwrap_or_default();
    Content { key: key.to_owned(), values, language }
}

fn sprint(state: &State) -> (&'static str, Value) {
    let active = state.active_sprint();
    let latest = || state.sprints.values().max_by_key(|sprint| sprint.started_at);
    match active.or_else(latest) {
        Some(sprint) => ("sprint.shown", shown(state, sprint, active.is_some())),
        None => ("sprint.none", json!({})),
    }
}

fn shown(state: &State, sprint: &Sprint, active: bool) -> Value {
    let milestone = match sprint.milestone_title.trim() {
        "" => sprint.sprint_id.as_str(),
        title => title,
    };
    let done = sprint.todos.iter().filter(|todo| todo.status.is_success()).count();
    let todos: Vec<Value> = sprint
        .todos
        .iter()
        .take(LINES)
        .map(|todo| json!({ "title": todo.title, "status": todo.status.as_str() }))
        .collect();
    let slot = state.scheduler.next_slot_at.filter(|_| !active);
    json!({
        "sprint_id": sprint.sprint_id,
        "milestone": milestone,
        "status": sprint.status,
        "active": active,
        "done": done,
        "total": sprint.todos.len(),
        "more": sprint.todos.len() - todos.len(),
        "todos": todos,
        "next_slot_at": slot.map_or_else(String::new, |at| at.kst("%Y-%m-%d %H:%M")),
    })
}

fn backlog(state: &State) -> Value {
    let mut items: Vec<&BacklogItem> = state.backlog.values().collect();
    items.sort_by_key(|item| item.place());
    let shown: Vec<Value> = items
        .iter()
        .take(LINES)
        .map(|item| {
            let (rank, status) = (item.priority_rank, item.status.as_str());
            json!({ "title": item.title, "rank": rank, "status": status })
        })
        .collect();
    json!({ "total": items.len(), "more": items.len() - shown.len(), "items": shown })
}
