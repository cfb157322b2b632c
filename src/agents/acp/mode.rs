//! The mode of an agent that a role works in.

use serde_json::{Value, json};

use super::turn_start::TurnStart;
use crate::agents::codec::text;
use crate::agents::sandbox::WriteAccess;

/// Modes by which agents name what a role may do; the first that the agent has is set.
const READING: &[&str] = &["read-only"];
const WRITING: &[&str] = &["workspace-write", "acceptEdits", "auto_edit", "autoEdit"];
/// Modes of agents that would put a sandbox of their own within the one that they are in.
const CONFINED: &[&str] = &["agent-full-access"];

/// The request that sets the mode, by its method and parameters without the conversation; none where the agent
/// has no mode that fits, and none was asked for. `opened` is its answer to the opening of a conversation.
pub(super) fn setting(opening: &TurnStart, opened: &Value) -> Option<(&'static str, Value)> {
    let modes = opened.pointer("/modes/availableModes").and_then(Value::as_array);
    let listed = |mode: &str| modes.into_iter().flatten().any(|it| text(it, "id") == mode);
    let options = opened.get("configOptions").and_then(Value::as_array);
    let mut options = options.into_iter().flatten();
    // Where an agent lists no modes, they are one of its options.
    let option = options.find(|it| text(it, "category") == "mode" && text(it, "type") == "select");
    let optional = |mode: &str| option.is_some_and(|it| offers(it, mode));
    let fitting = match opening.access {
        WriteAccess::ReadOnly => READING,
        WriteAccess::Worktree | WriteAccess::Documents(_) => WRITING,
    };
    let mut by_role = CONFINED.iter().filter(|_| opening.confined).chain(fitting);
    let mode = match &opening.mode {
        Some(mode) => mode.clone(),
        None => (*by_role.find(|mode| listed(mode) || optional(mode))?).to_owned(),
    };
    Some(match option {
        Some(option) if optional(&mode) && !listed(&mode) => {
            let params = json!({"configId": text(option, "id"), "value": mode});
            ("session/set_config_option", params)
        }
        Some(_) | None => ("session/set_mode", json!({"modeId": mode})),
    })
}

/// Whether an option can have this value; its values may stand in groups.
fn offers(option: &Value, value: &str) -> bool {
    let list = |holder: &Value| holder.get("options").and_then(Value::as_array).cloned();
    let values = list(option).unwrap_or_default();
    let grouped = values.iter().filter_map(list).flatten();
    values.iter().cloned().chain(grouped).any(|it| text(&it, "value") == value)
}
