//! Chat completions (`spec/agents.md` 6.4).

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use super::{Api, Script, refused, stream};

pub(super) async fn respond(
    State(script): State<Arc<Script>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let parsed: Value = serde_json::from_slice(&body).unwrap();
    if parsed["tools"].as_array().is_none_or(Vec::is_empty) {
        // A title for the conversation; it belongs to no step.
        return stream(&Value::Null, events(&json!({"say": "A title"}), 0, &parsed["model"]));
    }
    let (step, index) = script.next(Api::Chat, &headers, &body);
    if let Some(answer) = refused(&step).await {
        return answer;
    }
    stream(&step, events(&step, index, &parsed["model"]))
}

fn events(step: &Value, index: usize, model: &Value) -> String {
    let chunk = |choices: Value, usage: Value| {
        json!({"id": format!("chat_{index}"), "object": "chat.completion.chunk", "created": 1, "model": model,
            "choices": choices, "usage": usage})
    };
    let delta = |delta: Value, end: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": end}]), Value::Null)
    };
    let mut all = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
    if !step["say"].is_null() {
        let text = step["say"].as_str().map_or_else(|| step["say"].to_string(), str::to_owned);
        all.push(delta(json!({"content": text}), Value::Null));
    }
    if let Some(name) = step["tool"].as_str() {
        let call = json!({"index": 0, "id": format!("call_{index}"), "type": "function",
            "function": {"name": name, "arguments": step["args"].to_string()}});
        all.push(delta(json!({"tool_calls": [call]}), Value::Null));
    }
    let end = if step["tool"].is_string() { "tool_calls" } else { "stop" };
    all.push(delta(json!({}), json!(end)));
    let number = |key: &str| step["usage"][key].as_u64().unwrap_or(0);
    let usage = json!({"prompt_tokens": number("in"), "completion_tokens": number("out"),
        "total_tokens": number("in") + number("out")});
    all.push(chunk(json!([]), usage));
    let lines: String = all.iter().map(|event| format!("data: {event}\n\n")).collect();
    lines + "data: [DONE]\n\n"
}
