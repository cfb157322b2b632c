//! Gemini's API (`spec/agents.md` 6.4).

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use super::{Api, Script, refused, stream};

pub(super) async fn respond(
    State(script): State<Arc<Script>>,
    Path(call): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if call.ends_with(":countTokens") {
        return Json(json!({"totalTokens": 100})).into_response();
    }
    let (step, _) = script.next(Api::Gemini, &headers, &body);
    if let Some(answer) = refused(&step).await {
        return answer;
    }
    let mut parts = Vec::new();
    if !step["say"].is_null() {
        let text = step["say"].as_str().map_or_else(|| step["say"].to_string(), str::to_owned);
        parts.push(json!({"text": text}));
    }
    if let Some(name) = step["tool"].as_str() {
        parts.push(json!({"functionCall": {"name": name, "args": step["args"]}}));
    }
    let number = |key: &str| step["usage"][key].as_u64().unwrap_or(0);
    let answer = json!({"candidates": [{"content": {"role": "model", "parts": parts},
            "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": number("in"), "candidatesTokenCount": number("out"),
            "totalTokenCount": number("in") + number("out")}});
    if call.ends_with(":streamGenerateContent") {
        return stream(&step, format!("data: {answer}\n\n"));
    }
    Json(answer).into_response()
}
