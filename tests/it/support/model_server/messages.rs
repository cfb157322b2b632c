//! The Messages API (`spec/agents.md` 6.3).

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::{Api, Script, refused, stream};

pub(super) async fn count() -> Response {
    axum::Json(json!({"input_tokens": 100})).into_response()
}

pub(super) async fn respond(
    State(script): State<Arc<Script>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (step, index) = script.next(Api::Messages, &headers, &body);
    if let Some(answer) = refused(&step).await {
        return answer;
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let answer = whole(&step, index, &body["model"]);
    if body["stream"] != true {
        return axum::Json(answer).into_response();
    }
    let mut text = String::new();
    for event in events(&step, &answer) {
        // The line with the name is not optional here.
        let kind = event["type"].as_str().unwrap();
        text.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }
    stream(&step, text)
}

/// The answer as one message.
fn whole(step: &Value, index: usize, model: &Value) -> Value {
    let mut content = Vec::new();
    if !step["say"].is_null() {
        let text = step["say"].as_str().map_or_else(|| step["say"].to_string(), str::to_owned);
        content.push(json!({"type": "text", "text": text}));
    }
    if let Some(name) = step["tool"].as_str() {
        let id = format!("toolu_{index}");
        content.push(json!({"type": "tool_use", "id": id, "name": name, "input": step["args"]}));
    }
    let number = |key: &str| step["usage"][key].as_u64().unwrap_or(0);
    let reason = match step["stop"].as_str() {
        Some(reason) => reason,
        None if step["tool"].is_string() => "tool_use",
        None => "end_turn",
    };
    json!({"id": format!("msg_{index}"), "type": "message", "role": "assistant", "model": model,
        "content": content, "stop_reason": reason, "stop_sequence": null,
        "usage": {"input_tokens": number("in") - number("cached"), "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": number("cached"), "output_tokens": number("out")}})
}

fn events(step: &Value, answer: &Value) -> Vec<Value> {
    let mut start = answer.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in answer["content"].as_array().unwrap().iter().enumerate() {
        let (empty, delta) = if block["type"] == "text" {
            let delta = json!({"type": "text_delta", "text": block["text"]});
            (json!({"type": "text", "text": ""}), delta)
        } else {
            let input = block["input"].to_string();
            let mut empty = block.clone();
            empty["input"] = json!({});
            (empty, json!({"type": "input_json_delta", "partial_json": input}))
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    if step["cut"] == true || step["stall"] == true {
        return events;
    }
    let delta = json!({"stop_reason": answer["stop_reason"], "stop_sequence": null});
    let usage = json!({"output_tokens": answer["usage"]["output_tokens"]});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    events
}
