//! What an agent tells of its failures and of what it spent.

use serde_json::Value;

use crate::agents::blame::classify;
use crate::agents::codec::{Event, number, text};
use crate::domain::run::FailKind;
use crate::domain::usage::Usage;

/// The words of a JSON-RPC error.
pub(super) fn reason(error: &Value) -> String {
    let data = match error.get("data") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(data)) => format!(": {data}"),
        Some(data) => format!(": {data}"),
    };
    format!("{}{data}", text(error, "message"))
}

pub(super) fn failed(error: &Value) -> Event {
    let message = reason(error);
    let kind = match error.get("code").and_then(Value::as_i64) {
        // The code for "authentication required".
        Some(-32000) => classify(&message).unwrap_or(FailKind::Auth),
        Some(_) | None => classify(&message).unwrap_or(FailKind::Other),
    };
    Event::Failed { kind, message }
}

/// What an agent says apart from its messages about trouble with its model (codex-acp, where the client says that
/// it understands that). A warning is that it tries again; one in the answer to a prompt is why it ended.
pub(super) fn trouble(holder: &Value, ended: bool) -> Option<Event> {
    let told = holder.pointer("/_meta/jetbrains/air/sessionFailure")?;
    let message = text(told, "title");
    match text(told, "severity").as_str() {
        "error" => {}
        "warning" if !ended => return Some(Event::Retry(message)),
        _ => return None,
    }
    let has = |action: &str| {
        let actions = told.get("actions").and_then(Value::as_array);
        actions.into_iter().flatten().any(|it| it == action)
    };
    let by_category = match text(told, "category").as_str() {
        "connection" => FailKind::Transport,
        "access" => FailKind::Auth,
        "limit" if has("retry") => FailKind::RateLimit,
        "limit" if has("new_session") => FailKind::Context,
        "limit" => FailKind::Quota,
        "service" => FailKind::Overloaded,
        "request" => FailKind::BadRequest,
        _ => FailKind::Other,
    };
    let kind = classify(&message).unwrap_or(by_category);
    Some(Event::Failed { kind, message })
}

/// Tokens of a prompt: where the protocol has them, or where Gemini CLI puts them.
pub(super) fn spent(result: &Value) -> Usage {
    let of = |place: &str| result.pointer(place).filter(|it| it.is_object());
    match (of("/usage"), of("/_meta/quota/token_count")) {
        (Some(usage), _) => {
            let cached = number(usage, "cachedReadTokens");
            let written = number(usage, "cachedWriteTokens");
            Usage {
                input_tokens: number(usage, "inputTokens") + cached + written,
                cached_tokens: cached,
                written_tokens: written,
                output_tokens: number(usage, "outputTokens"),
                cost_usd: 0.0,
            }
        }
        (None, Some(count)) => Usage {
            input_tokens: number(count, "input_tokens"),
            output_tokens: number(count, "output_tokens"),
            ..Usage::default()
        },
        (None, None) => Usage::default(),
    }
}
