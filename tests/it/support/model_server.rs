//! A scripted model server on loopback that speaks the Responses API and the Messages API (`spec/agents.md`
//! section 6).
//!
//! A scenario is a JSON array of steps; each request plays the next one, the last is repeated. Or a
//! function chooses the step by what was asked. Every request is recorded, so that a test can look at
//! what the agent sent.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::watch;

mod messages;

/// One recorded request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Whether it carried any key.
    pub(crate) authorized: bool,
    pub(crate) body: Value,
}

/// Chooses the step for the body of a request and its number, from 0.
pub(crate) type Choose = Box<dyn Fn(&Value, usize) -> Value + Send + Sync>;

struct Script {
    choose: Choose,
    requests: Mutex<Vec<Request>>,
    count: watch::Sender<usize>,
}

impl Script {
    /// Records a request; the step to be played, and its number.
    fn next(&self, headers: &HeaderMap, body: &[u8]) -> (Value, usize) {
        let body: Value = serde_json::from_slice(body).unwrap();
        let key = headers.get("x-api-key").is_some_and(|key| key != "none");
        let authorized = key || headers.contains_key(header::AUTHORIZATION);
        let mut requests = self.requests.lock().unwrap();
        let index = requests.len();
        let step = (self.choose)(&body, index);
        requests.push(Request { authorized, body });
        self.count.send_replace(requests.len());
        (step, index)
    }
}

/// The running server; it ends with its value.
pub(crate) struct ModelServer {
    /// What an agent's `model_url` is set to.
    pub(crate) url: String,
    /// The same for an agent that adds the version of the API itself.
    pub(crate) base: String,
    script: Arc<Script>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ModelServer {
    /// Starts a server that plays the steps of a JSON array. A step is one of: `say` (text or an
    /// object that is sent as text), `tool` with `args`, `custom` tool with `input`; a tool of an MCP server has a `namespace`; and, instead:
    /// `status` with `body`, `cut` (the stream ends early), `failed` with `code` and `message`.
    /// `usage` is `{in, cached, out}`; `hang` gets no answer at all.
    pub(crate) async fn start(steps: Value) -> ModelServer {
        let steps = steps.as_array().cloned().unwrap();
        ModelServer::choosing(Box::new(move |_, index| steps[index.min(steps.len() - 1)].clone()))
            .await
    }

    /// Starts a server that plays the step that `choose` gives.
    pub(crate) async fn choosing(choose: Choose) -> ModelServer {
        let script = Arc::new(Script {
            choose,
            requests: Mutex::new(Vec::new()),
            count: watch::Sender::new(0),
        });
        let app = Router::new()
            .route("/v1/responses", post(respond))
            .route("/v1/messages", post(messages::respond))
            .route("/v1/messages/count_tokens", post(messages::count))
            .route("/v1/models", get(models))
            .with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{base}/v1");
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        ModelServer { url, base, script, task }
    }

    /// Waits until this many requests have come.
    pub(crate) async fn asked(&self, times: usize) {
        self.script.count.subscribe().wait_for(|count| *count >= times).await.unwrap();
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.script.requests.lock().unwrap().clone()
    }
}

async fn models() -> Response {
    axum::Json(json!({"object": "list", "data": [], "models": []})).into_response()
}

async fn respond(State(script): State<Arc<Script>>, headers: HeaderMap, body: Bytes) -> Response {
    let (step, index) = script.next(&headers, &body);
    if step["hang"] == true {
        return std::future::pending().await;
    }
    if let Some(status) = step["status"].as_u64() {
        let status = StatusCode::from_u16(u16::try_from(status).unwrap()).unwrap();
        return (status, axum::Json(step["body"].clone())).into_response();
    }
    let events = play(&step, index);
    let mut text = String::new();
    for (number, mut event) in events.into_iter().enumerate() {
        event["sequence_number"] = json!(number);
        let kind = event["type"].as_str().unwrap().to_owned();
        text.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .header(header::CONNECTION, "close")
        .body(Body::from(text))
        .unwrap()
}

fn play(step: &Value, index: usize) -> Vec<Value> {
    let id = format!("resp_{index}");
    let mut events = vec![json!({"type": "response.created", "response": {
        "id": id, "object": "response", "status": "in_progress", "output": [], "usage": null}})];
    let mut items = Vec::new();
    if !step["say"].is_null() {
        let text = match step["say"].as_str() {
            Some(text) => text.to_owned(),
            None => step["say"].to_string(),
        };
        items.push(json!({"id": format!("msg_{index}"), "type": "message", "role": "assistant",
            "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}));
    }
    if let Some(name) = step["tool"].as_str() {
        items.push(json!({"id": format!("fc_{index}"), "type": "function_call", "name": name,
            "call_id": format!("call_{index}"), "arguments": step["args"].to_string(), "status": "completed"}));
        if step["namespace"].is_string() {
            items.last_mut().unwrap()["namespace"] = step["namespace"].clone();
        }
    }
    if let Some(name) = step["custom"].as_str() {
        items.push(json!({"id": format!("ct_{index}"), "type": "custom_tool_call", "name": name,
            "call_id": format!("call_{index}"), "input": step["input"], "status": "completed"}));
    }
    for (place, item) in items.iter().enumerate() {
        events.push(
            json!({"type": "response.output_item.added", "output_index": place, "item": item}),
        );
        events.push(
            json!({"type": "response.output_item.done", "output_index": place, "item": item}),
        );
    }
    if step["cut"] == true {
        return events;
    }
    let number = |key: &str| step["usage"][key].as_u64().unwrap_or(0);
    events.push(if step["failed"].is_object() {
        json!({"type": "response.failed", "response": {"id": id, "status": "failed", "error": step["failed"]}})
    } else {
        json!({"type": "response.completed", "response": {"id": id, "status": "completed", "output": items,
            "usage": {"input_tokens": number("in"), "input_tokens_details": {"cached_tokens": number("cached")},
                "output_tokens": number("out"), "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": number("in") + number("out")}}})
    });
    events
}
