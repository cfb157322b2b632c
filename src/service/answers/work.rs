//! What is being worked on, and what could be.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::domain::gate::Gate;
use crate::domain::item::{Item, ItemStatus};
use crate::domain::request::Request;
use crate::domain::state::State;
use crate::engine::sprint::backlog::priority_key;
use crate::engine::standing::LINES;

/// The gates that are open, oldest first, with their requests.
pub(super) fn waiting(state: &State) -> Vec<(&Gate, &Request)> {
    let mut all: Vec<(&Gate, &Request)> = state
        .gates
        .values()
        .filter_map(|gate| Some((&**gate, &**state.requests.get(&gate.request_id)?)))
        .collect();
    all.sort_by_key(|(gate, _)| gate.created_at);
    all
}

pub(super) fn backlog(state: &State) -> Value {
    let mut items: Vec<&Item> = state.backlog.values().map(Arc::as_ref).collect();
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
        "pending": count(ItemStatus::Pending),
        "blocked": count(ItemStatus::Blocked),
        "items": shown,
        "more": items.len().saturating_sub(LINES),
    })
}
