//! A scripted model server on loopback that speaks the Responses API, the Messages API, chat completions and
//! Gemini's API (`spec/agents.md` section 6).
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

mod chat;
mod gemini;
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
    /// Records a request; the step to be played, in the words of its API, and its number.
    fn next(&self, api: Api, headers: &HeaderMap, body: &[u8]) -> (Value, usize) {
        let body: Value = serde_json::from_slice(body).unwrap();
        let key = |name: &str| headers.get(name).is_some_and(|key| key != "none");
        let authorized = key("x-api-key") || headers.contains_key(header::AUTHORIZATION);
        let mut requests = self.requests.lock().unwrap();
        let index = requests.len();
        if asks_for_a_title(&body) {
            return (json!({"say": {"title": "A title"}}), index);
        }
        requests.push(Request { authorized, body: body.clone() });
        // Whoever chooses may wait for another request.
        drop(requests);
        let step = api.words((self.choose)(&body, index), &body);
        let requests = self.requests.lock().unwrap();
        self.count.send_replace(requests.len());
        (step, index)
    }
}

/// codex-acp names a new conversation beside it, in time or not: that is no step of a scenario.
fn asks_for_a_title(body: &Value) -> bool {
    let fields = body.pointer("/text/format/schema/properties").and_then(Value::as_object);
    fields.is_some_and(|fields| fields.keys().eq(["title"]))
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
    /// `usage` is `{in, cached, out}`; `hang` gets no answer at all, `stall` the beginning of one.
    /// Whatever the API is called there: `shell` (a command), `answer` (the result), `error` (a kind) with
    /// `status`, `message` and `more`, and `headers`.
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
            .route("/v1/chat/completions", post(chat::respond))
            .route("/v1beta/models/{call}", post(gemini::respond))
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
    let (step, index) = script.next(Api::Responses, &headers, &body);
    if let Some(answer) = refused(&step).await {
        return answer;
    }
    let events = play(&step, index);
    let mut text = String::new();
    for (number, mut event) in events.into_iter().enumerate() {
        event["sequence_number"] = json!(number);
        let kind = event["type"].as_str().unwrap().to_owned();
        text.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }
    stream(&step, text)
}

/// Whose words a step is in.
#[derive(Clone, Copy)]
enum Api {
    Responses,
    Messages,
    Chat,
    Gemini,
}

impl Api {
    /// A step in the words of the API.
    fn words(self, mut step: Value, body: &Value) -> Value {
        if let Some(command) = step["shell"].as_str() {
            let (name, key) = match self {
                Api::Responses => ("exec_command", "cmd"),
                Api::Messages => ("Bash", "command"),
                Api::Chat => ("bash", "command"),
                Api::Gemini => ("run_shell_command", "command"),
            };
            let mut args = json!({"description": "as asked"});
            args[key] = json!(command);
            step["tool"] = json!(name);
            step["args"] = args;
        }
        if step["answer"].is_object() {
            let tools = body["tools"].as_array().into_iter().flatten();
            if tools.into_iter().any(|tool| tool["name"] == "StructuredOutput") {
                step["tool"] = json!("StructuredOutput");
                step["args"] = step["answer"].clone();
            } else {
                step["say"] = step["answer"].clone();
            }
        }
        if let Some(kind) = step["error"].as_str() {
            let mut error = json!({"type": kind, "message": step["message"]});
            let fields = step["more"].as_object().cloned().unwrap_or_default();
            error.as_object_mut().unwrap().extend(fields);
            step["body"] = match self {
                Api::Responses | Api::Chat => {
                    error["code"] = json!(kind);
                    json!({"error": error})
                }
                Api::Messages => json!({"type": "error", "error": error}),
                Api::Gemini => json!({"error": {"code": step["status"], "status": kind,
                    "message": step["message"]}}),
            };
        }
        step
    }
}

/// The answer of a step that has no stream.
async fn refused(step: &Value) -> Option<Response> {
    if step["hang"] == true {
        return std::future::pending().await;
    }
    let status = StatusCode::from_u16(u16::try_from(step["status"].as_u64()?).unwrap()).unwrap();
    let mut answer = (status, axum::Json(step["body"].clone())).into_response();
    for (name, value) in step["headers"].as_object().into_iter().flatten() {
        let name: header::HeaderName = name.parse().unwrap();
        answer.headers_mut().insert(name, value.as_str().unwrap().parse().unwrap());
    }
    Some(answer)
}

/// A stream of events. A stalled one does not end.
fn stream(step: &Value, text: String) -> Response {
    use futures_util::stream::{StreamExt as _, once, pending};
    let body = if step["stall"] == true {
        let first = once(async { Ok::<_, std::convert::Infallible>(Bytes::from(text)) });
        Body::from_stream(first.chain(pending()))
    } else {
        Body::from(text)
    };
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .header(header::CONNECTION, "close")
        .body(body)
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
    if let Some(text) = step["refusal"].as_str() {
        items.push(json!({"id": format!("msg_{index}"), "type": "message", "role": "assistant",
            "status": "completed", "content": [{"type": "refusal", "refusal": text}]}));
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
    if step["cut"] == true || step["stall"] == true {
        return events;
    }
    let number = |key: &str| step["usage"][key].as_u64().unwrap_or(0);
    events.push(if step["stop"] == "max_tokens" {
        json!({"type": "response.incomplete", "response": {"id": id, "status": "incomplete", "output": items,
            "incomplete_details": {"reason": "max_output_tokens"}}})
    } else if step["failed"].is_object() {
        json!({"type": "response.failed", "response": {"id": id, "status": "failed", "error": step["failed"]}})
    } else {
        json!({"type": "response.completed", "response": {"id": id, "status": "completed", "output": items,
            "usage": {"input_tokens": number("in"), "input_tokens_details": {"cached_tokens": number("cached")},
                "output_tokens": number("out"), "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": number("in") + number("out")}}})
    });
    events
}
