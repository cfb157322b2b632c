//! Answers to questions about the open records. They change nothing, so no decision is made for them.

use serde_json::{Value, json};

use crate::discord::Question;
use crate::domain::backlog::{BacklogItem, BacklogStatus};
use crate::domain::incoming::Actor;
use crate::domain::outgoing::Content;
use crate::domain::policy::Policy;
use crate::domain::request::Language;
use crate::domain::sprint::TodoStatus;
use crate::domain::state::State;
use crate::engine::authorize::{Granted, Resource, act, authorize};

/// Lines of a list: an answer has to fit into one message, and be read on a phone.
const LINES: usize = 10;

/// What `actor` is told.
pub(super) fn answer(
    state: &State,
    policy: &Policy,
    actor: &Actor,
    question: Question,
    language: Language,
) -> Content {
    let (key, values) = match authorize(policy, actor, Resource::Team) {
        Err(_) => ("not_allowed", json!({})),
        Ok(granted) => look(&granted, state, question),
    };
    let values = values.as_object().cloned().unwrap_or_default();
    Content { key: key.to_owned(), values, language }
}

fn look(_granted: &Granted<act::Look>, state: &State, question: Question) -> (&'static str, Value) {
    match question {
        Question::Sprint => ("sprint.status", sprint(state)),
        Question::Backlog => ("backlog.list", backlog(state)),
    }
}

/// The active sprint, or else the last one, in the words in which the team answers plain questions.
fn sprint(state: &State) -> Value {
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

fn backlog(state: &State) -> Value {
    let mut items: Vec<&BacklogItem> = state.backlog.values().collect();
    items.sort_by_key(|item| item.place());
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
