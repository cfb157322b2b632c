//! A sprint and its todos as values for templates.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::assets::AssetError;
use crate::domain::ids::TodoId;
use crate::domain::sprint::{Sprint, Todo};

pub(super) fn record(sprint: &Sprint) -> Result<Value, AssetError> {
    let mut value = as_value(sprint)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("todos");
        if sprint.kickoff.reply_route.is_dm {
            // What somebody said to the team alone stays there.
            for words in ["kickoff_brief", "kickoff_request_text"] {
                fields.insert(words.to_owned(), json!(""));
            }
        }
    }
    Ok(value)
}

/// Todos as the templates show them: the record, and the titles of what they wait on.
pub(super) fn todos(sprint: &Sprint) -> Result<Vec<Value>, AssetError> {
    let titles: BTreeMap<&TodoId, &str> = sprint
        .work
        .todos
        .iter()
        .map(|todo| (&todo.progress.todo_id, todo.title.as_str()))
        .collect();
    let values = in_order(sprint).into_iter().map(|todo| {
        let mut value = as_value(todo)?;
        let waits_on: Vec<&str> =
            todo.depends_on.iter().filter_map(|id| titles.get(id).copied()).collect();
        value["waits_on"] = json!(waits_on);
        Ok(value)
    });
    values.collect()
}

/// By rank; unranked todos last.
pub(super) fn in_order(sprint: &Sprint) -> Vec<&Todo> {
    let mut order: Vec<&Todo> = sprint.work.todos.iter().collect();
    order.sort_by_key(|todo| match todo.priority_rank {
        0 => u32::MAX,
        rank => rank,
    });
    order
}

pub(super) fn as_value(record: &impl serde::Serialize) -> Result<Value, AssetError> {
    serde_json::to_value(record).map_err(|error| AssetError::Template {
        name: "documents/sprint".to_owned(),
        message: error.to_string(),
    })
}
