//! A Discord of which every frame and every answer is the test's own: for what no well-behaved server does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use teams::assets::catalog::Catalog;
use teams::discord::{ConnectionLimits, Facts, Limits, Link, LinkConfig, VoiceMode};
use teams::domain::language::Language;
use tokio::sync::mpsc;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

/// For tests that end many connections on purpose.
pub(crate) const UNLIMITED: Limits = Limits {
    between_sessions: Duration::ZERO,
    connections: ConnectionLimits { in_ten_seconds: 1_000, an_hour: 1_000 },
    ..Limits::THIS_MACHINE
};

/// A call as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) at: Instant,
    pub(crate) method: String,
    /// Below `/api/v10`, without the query.
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// Status, headers, body.
pub(crate) type Answer = (u16, Vec<(&'static str, String)>, Value);

type Rule = dyn Fn(&Call) -> Option<Answer> + Send + Sync;

struct Shared {
    calls: Mutex<Vec<Call>>,
    rule: Mutex<Box<Rule>>,
    lines: mpsc::UnboundedSender<Line>,
    gateway: String,
    starts: Mutex<(u32, u64)>,
}

pub(crate) struct Wire {
    pub(crate) base: String,
    shared: Arc<Shared>,
    lines: mpsc::UnboundedReceiver<Line>,
}

/// One gateway connection, as the server sees it.
pub(crate) struct Line {
    socket: WebSocket,
    pub(crate) path: String,
    pub(crate) at: Instant,
    sequence: u64,
}

impl Wire {
    pub(crate) async fn open() -> Wire {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, lines) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            calls: Mutex::default(),
            rule: Mutex::new(Box::new(|_| None)),
            lines: tell,
            gateway: format!("ws://{address}"),
            starts: Mutex::new((1_000, 1_000)),
        });
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Wire { base: format!("http://{address}"), shared, lines }
    }

    /// Answers calls by a rule; what it leaves is answered as if all were well.
    pub(crate) fn answer(&self, rule: impl Fn(&Call) -> Option<Answer> + Send + Sync + 'static) {
        *self.shared.rule.lock().unwrap() = Box::new(rule);
    }

    /// How many sessions may be begun, and after how many milliseconds there are more.
    pub(crate) fn starts(&self, remaining: u32, reset_after: u64) {
        *self.shared.starts.lock().unwrap() = (remaining, reset_after);
    }

    pub(crate) fn resume_url(&self, path: &str) -> String {
        format!("{}/{path}", self.shared.gateway)
    }

    pub(crate) fn calls(&self, method: &str, part: &str) -> Vec<Call> {
        let calls = self.shared.calls.lock().unwrap();
        calls.iter().filter(|it| it.method == method && it.path.contains(part)).cloned().collect()
    }

    /// The next gateway connection.
    pub(crate) async fn accept(&mut self) -> Line {
        timeout(PATIENCE, self.lines.recv()).await.expect("a connection comes").unwrap()
    }

    /// Connections that were made and not accepted.
    pub(crate) fn unaccepted(&mut self) -> usize {
        std::iter::from_fn(|| self.lines.try_recv().ok()).count()
    }

    /// A team's link to this Discord.
    pub(crate) fn link(&self, workspace: &Path, limits: Limits) -> (Link, Facts) {
        link_by(workspace, limits, self.base.clone(), None)
    }
}

/// A team's link to a Discord that is reached at these addresses.
pub(crate) fn link_by(
    workspace: &Path,
    limits: Limits,
    base_url: String,
    gateway_url: Option<String>,
) -> (Link, Facts) {
    let config = LinkConfig {
        voice: VoiceMode::Personas { token: "wire.token".to_owned().into() },
        base_url,
        gateway_url,
        names: BTreeMap::new(),
        language: Language::En,
        zone: teams::domain::config::Zone::default(),
        workspace: workspace.to_owned(),
        attachments: PathBuf::from("shared_workspace/attachments"),
        guilds: std::collections::BTreeSet::new(),
        limits: Some(limits),
        access: std::sync::Arc::new(super::team::Everybody),
    };
    Link::start(config, Catalog::builtin().unwrap()).unwrap()
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if request.headers().contains_key("upgrade") {
        let (mut parts, _) = request.into_parts();
        let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &shared).await.unwrap();
        return upgrade.on_upgrade(async move |socket| {
            let _ = shared.lines.send(Line { socket, path, at: Instant::now(), sequence: 0 });
        });
    }
    let method = request.method().to_string();
    let bytes: Bytes = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    let path = path.strip_prefix("/api/v10").unwrap_or(&path).to_owned();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let call = Call { at: Instant::now(), method, path, body };
    let number = {
        let mut calls = shared.calls.lock().unwrap();
        calls.push(call.clone());
        calls.len()
    };
    let answer = shared.rule.lock().unwrap()(&call);
    let (status, headers, body) =
        answer.unwrap_or_else(|| (200, Vec::new(), usual(&shared, &call, number)));
    let mut response =
        (axum::http::StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

fn usual(shared: &Shared, call: &Call, number: usize) -> Value {
    let last = call.path.rsplit('/').next().unwrap_or_default();
    match (call.method.as_str(), last) {
        ("GET", "bot") => {
            let (remaining, reset_after) = *shared.starts.lock().unwrap();
            json!({"url": shared.gateway, "shards": 1, "session_start_limit": {
                "total": 1000, "remaining": remaining, "reset_after": reset_after, "max_concurrency": 1,
            }})
        }
        ("GET", "@me") => json!({"id": "90", "username": "teams"}),
        ("GET", "roles" | "commands" | "messages" | "webhooks") | ("PUT", "commands") => json!([]),
        ("GET", id) if call.path.contains("/members/") => json!({"user": {"id": id}, "roles": []}),
        ("GET", id) => json!({"id": id, "type": 0, "guild_id": "6"}),
        _ => json!({"id": (1_000_000 + number).to_string()}),
    }
}

/// A message of a person, as an event's data.
pub(crate) fn message(id: u64, content: &str) -> Value {
    json!({
        "id": id.to_string(), "channel_id": "5", "guild_id": "6", "type": 0,
        "author": {"id": "7", "username": "mina", "discriminator": "0", "avatar": null},
        "member": {"roles": [], "flags": 0, "deaf": false, "mute": false}, "content": content, "timestamp": "2026-03-24T00:00:00Z", "edited_timestamp": null,
        "tts": false, "mention_everyone": false, "mentions": [], "mention_roles": [],
        "attachments": [], "embeds": [], "pinned": false,
    })
}

impl Line {
    pub(crate) async fn raw(&mut self, text: &str) -> bool {
        self.socket.send(Message::Text(Utf8Bytes::from(text))).await.is_ok()
    }

    pub(crate) async fn op(&mut self, op: u8, data: Value) {
        self.raw(&json!({"op": op, "d": data, "s": null, "t": null}).to_string()).await;
    }

    /// Sends an event with the next number; whether the client is still there.
    pub(crate) async fn event(&mut self, name: &str, data: Value) -> bool {
        self.sequence += 1;
        let frame = json!({"op": 0, "t": name, "s": self.sequence, "d": data});
        self.raw(&frame.to_string()).await
    }

    /// The next event's number belongs to an event that is never sent.
    pub(crate) fn skip(&mut self) {
        self.sequence += 1;
    }

    /// The next frame but heartbeats; `None` at the end.
    pub(crate) async fn frame(&mut self) -> Option<Value> {
        loop {
            let next = timeout(PATIENCE, self.socket.recv()).await.expect("a frame comes");
            let Message::Text(text) = next?.ok()? else { continue };
            let frame: Value = serde_json::from_str(&text).unwrap();
            if frame["op"] != 1 {
                return Some(frame);
            }
        }
    }

    /// Says hello and returns what the client begins with: op 2 or op 6.
    pub(crate) async fn hello(&mut self, heartbeat_ms: u64) -> Value {
        self.op(10, json!({"heartbeat_interval": heartbeat_ms})).await;
        self.frame().await.expect("the client says who it is")
    }

    /// Greets a new session.
    pub(crate) async fn ready(&mut self, session: &str, resume_url: &str) {
        let begun = self.hello(41_250).await;
        assert_eq!(begun["op"], 2, "{begun}");
        self.welcome(session, resume_url).await;
    }

    pub(crate) async fn welcome(&mut self, session: &str, resume_url: &str) {
        let ready = json!({
            "v": 10, "session_id": session, "resume_gateway_url": resume_url,
            "user": {"id": "90", "username": "teams"}, "application": {"id": "90", "flags": 0},
            "guilds": [{"id": "6", "unavailable": true}],
        });
        self.event("READY", ready).await;
    }

    /// Greets a session that goes on; the number behind which it does.
    pub(crate) async fn resumed(&mut self, session: &str) -> u64 {
        let begun = self.hello(41_250).await;
        assert_eq!((&begun["op"], &begun["d"]["session_id"]), (&json!(6), &json!(session)));
        self.sequence = begun["d"]["seq"].as_u64().unwrap();
        self.sequence
    }

    pub(crate) async fn close(mut self, code: u16) {
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static("a test") };
        let _ = self.socket.send(Message::Close(Some(frame))).await;
        // Until the client has read it.
        while let Ok(Some(Ok(_))) = timeout(PATIENCE, self.socket.recv()).await {}
    }
}
