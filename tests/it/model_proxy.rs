//! The team's proxy to the models and out: who may pass, what passes on, what is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use secrecy::SecretString;
use serde_json::{Value, json};
use teams::agents::AgentOutcome;
use teams::domain::budget::{Allowance, Price, PriceTable, SharedBudgets};
use teams::domain::config::ModelApi;
use teams::domain::run::{AnswerFault, BadAnswer, FailKind, RunOutcome};
use teams::domain::time::Timestamp;
use teams::domain::usage::Usage;
use teams::model_proxy::{
    AllowedHosts, MeterReading, ModelProxy, ModelServers, ProxyOptions, RunAllowance, Server,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Notify;

use crate::support::agent_run::in_time;

const KEY: &str = "sk-real-0123456789abcdefghij";

/// A request as the model server saw it.
#[derive(Debug, Clone)]
struct Seen {
    method: Method,
    path: String,
    headers: HeaderMap,
}

#[derive(Default)]
struct Upstream {
    seen: Mutex<Vec<Seen>>,
    /// Lets the second half of a stream go.
    go_on: Notify,
}

async fn answer(
    State(upstream): State<Arc<Upstream>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    upstream.seen.lock().unwrap().push(Seen { method, path: uri.to_string(), headers });
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let event = |text: String| Ok::<_, std::io::Error>(Bytes::from(text));
    let usage = json!({"model": "m", "usage": {"input_tokens": 100, "output_tokens": 10}});
    let last = format!("data: {}\n\n", json!({"type": "response.completed", "response": usage}));
    match asked["play"].as_str().unwrap_or_default() {
        "elsewhere" => {
            (StatusCode::FOUND, [(header::LOCATION, "http://127.0.0.1:1/")]).into_response()
        }
        "silent" => {
            let first = futures_util::stream::iter([event("data: {}\n\n".to_owned())]);
            let stream = first.chain(futures_util::stream::pending());
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream))
                .into_response()
        }
        "refused" => {
            let part = json!({"type": "refusal", "refusal": "I will not."});
            let item = json!({"type": "message", "content": [part]});
            let done = json!({"type": "response.output_item.done", "item": item});
            let body = format!("data: {done}\n\n{last}");
            ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        "limited" => {
            (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "600")], "no").into_response()
        }
        "halves" => {
            let first = futures_util::stream::iter([event("data: {\"half\":1}\n\n".to_owned())]);
            let second = futures_util::stream::once(async move {
                upstream.go_on.notified().await;
                event(last)
            });
            let body = Body::from_stream(first.chain(second));
            ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        _ => ([(header::CONTENT_TYPE, "text/event-stream"), (header::SET_COOKIE, "c=1")], last)
            .into_response(),
    }
}

struct Place {
    folder: tempfile::TempDir,
    upstream: Arc<Upstream>,
    models: Arc<ModelServers>,
}

impl Place {
    async fn new() -> Place {
        Place::patient(Duration::from_secs(600)).await
    }

    async fn patient(silence: Duration) -> Place {
        let upstream = Arc::new(Upstream::default());
        let app = Router::new().fallback(answer).with_state(Arc::clone(&upstream));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/base", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let server = |api, base_url: &str| Server {
            api,
            base_url: base_url.to_owned(),
            key: Some(SecretString::from(KEY)),
        };
        let servers = BTreeMap::from([
            ("one".to_owned(), server(ModelApi::Responses, &base_url)),
            ("two".to_owned(), server(ModelApi::Messages, &base_url)),
            ("gone".to_owned(), server(ModelApi::Responses, "http://127.0.0.1:1")),
            ("not-given".to_owned(), server(ModelApi::Responses, &base_url)),
        ]);
        let price = Price { input: 1_000.0, cached: None, written: None, output: 10_000.0 };
        let prices = PriceTable([("m".to_owned(), price)].into());
        let models = ModelServers::patient(servers, prices, silence).unwrap();
        Place { folder: tempfile::tempdir().unwrap(), upstream, models: Arc::new(models) }
    }

    fn opening(&self) -> ProxyOptions {
        ProxyOptions {
            socket: self.folder.path().join("door.sock"),
            port: true,
            run_dir: self.folder.path().join("run"),
            servers: BTreeSet::from(["one", "two", "gone"].map(str::to_owned)),
            outside: AllowedHosts::Nothing,
            run: RunAllowance {
                run_id: "r1".parse().unwrap(),
                generation: 1,
                began: Timestamp::from_millis(0),
                model: String::new(),
                window: 200_000,
                allowance: Allowance::default(),
                shared: SharedBudgets::default(),
            },
            refused: tokio::sync::mpsc::channel(1).0,
        }
    }

    async fn open(&self, change: impl FnOnce(&mut ProxyOptions)) -> ModelProxy {
        let mut opening = self.opening();
        change(&mut opening);
        self.models.open(opening).await.unwrap()
    }

    fn seen(&self) -> Vec<Seen> {
        self.upstream.seen.lock().unwrap().clone()
    }
}

/// Asks through the proxy as an agent would.
async fn ask(proxy: &ModelProxy, path: &str, token: &str, body: &Value) -> reqwest::Response {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(proxy.address().url(path)).bearer_auth(token).header("cookie", "c=2");
    in_time(request.header("session_id", "s").json(body).send()).await.unwrap()
}

/// What was counted, as it stands in the run's folder.
fn counted(run_dir: &std::path::Path) -> MeterReading {
    let kept = std::fs::read_to_string(run_dir.join("door.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    serde_json::from_value(kept["counted"].clone()).unwrap()
}

#[tokio::test]
async fn the_key_is_put_on_and_the_token_goes_no_further() {
    let place = Place::new().await;
    let proxy = place.open(|_| {}).await;
    let token = proxy.address().token.clone();
    let answer = ask(&proxy, "one/responses", &token, &json!({})).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.headers().get("set-cookie").is_none());
    assert!(answer.text().await.unwrap().contains("response.completed"));
    let answer = ask(&proxy, "two/v1/messages?beta=true", &token, &json!({})).await;
    assert_eq!(answer.status(), 200);
    let seen = place.seen();
    assert_eq!(seen.len(), 2);
    let header = |seen: &Seen, name: &str| {
        seen.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("POST", "/base/responses"));
    assert_eq!(header(&seen[0], "authorization"), Some(format!("Bearer {KEY}")));
    assert_eq!(header(&seen[0], "session_id").as_deref(), Some("s"));
    assert_eq!(seen[1].path, "/base/v1/messages?beta=true");
    assert_eq!(
        (header(&seen[1], "x-api-key").as_deref(), header(&seen[1], "authorization")),
        (Some(KEY), None)
    );
    for one in &seen {
        assert_eq!(header(one, "cookie"), None);
        assert!(!format!("{:?}", one.headers).contains(&token), "{one:?}");
    }
    // Whatever is written down of either is masked.
    let told = teams::platform::redact::redact(&format!("{KEY} {token}")).into_owned();
    assert!(!told.contains(KEY) && !told.contains(&token), "{told}");
}

#[tokio::test]
async fn who_has_no_token_and_what_need_not_be_asked_is_refused() {
    let place = Place::new().await;
    let proxy = place.open(|_| {}).await;
    let token = proxy.address().token.clone();
    let table = [
        ("one/responses", "another", 401),
        ("one/responses", "", 401),
        ("one/files", token.as_str(), 404),
        ("one/responses/../files", token.as_str(), 404),
        ("two/v1/organizations/api_keys", token.as_str(), 404),
        ("not-given/responses", token.as_str(), 404),
        ("unknown/responses", token.as_str(), 404),
        ("gone/responses", token.as_str(), 502),
    ];
    for (path, token, status) in table {
        assert_eq!(ask(&proxy, path, token, &json!({})).await.status(), status, "{path}");
    }
    // A whole conversation is heard to its end before it is said so.
    let long = json!({"text": "x".repeat(16 << 20)});
    assert_eq!(ask(&proxy, "gone/responses", &token, &long).await.status(), 502);
    let wrong = ask(&proxy, "two/v1/messages", "another", &json!({})).await;
    let body: Value = wrong.json().await.unwrap();
    assert_eq!(body["error"]["type"], "authentication_error", "as its provider would say it");
    assert!(place.seen().is_empty());
    let moved = ask(&proxy, "one/responses", &token, &json!({"play": "elsewhere"})).await;
    assert_eq!(moved.status(), 502, "a redirect is not followed with the key");
    // A proxy that is closed is closed.
    let url = proxy.address().url("one/responses");
    drop(proxy);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let closed = async { while client.post(&url).bearer_auth(&token).send().await.is_ok() {} };
    in_time(closed).await;
    assert!(!place.folder.path().join("door.sock").exists());
}

#[tokio::test]
async fn a_body_that_does_not_go_on_is_not_announced_either() {
    let place = Place::new().await;
    let proxy = place.open(|_| {}).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request =
        client.get(proxy.address().url("one/models")).body("DELETE /base HTTP/1.1\r\n\r\n");
    let answer = request.bearer_auth(&proxy.address().token).send();
    // A server that was told of a body would wait for it.
    assert_eq!(in_time(answer).await.unwrap().status(), 200);
    let seen = place.seen();
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].headers.contains_key("content-length"), "{:?}", seen[0]);
}

#[tokio::test]
async fn an_answer_passes_piece_by_piece() {
    let place = Place::new().await;
    let proxy = place.open(|_| {}).await;
    let token = proxy.address().token.clone();
    let mut answer = ask(&proxy, "one/responses", &token, &json!({"play": "halves"})).await;
    // The first half is here while the second has not been written.
    let first = in_time(answer.chunk()).await.unwrap().unwrap();
    assert_eq!(&first[..], b"data: {\"half\":1}\n\n");
    // Its supervisor sees that something came.
    let traffic = proxy.address().traffic.clone().unwrap();
    in_time(async {
        while !traffic.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    place.upstream.go_on.notify_one();
    let second = in_time(answer.chunk()).await.unwrap().unwrap();
    assert!(second.starts_with(b"data: {\"type\":\"response.completed\""));
    drop(answer);
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    let place = Place::patient(Duration::from_secs(3)).await;
    let proxy = place.open(|_| {}).await;
    let token = proxy.address().token.clone();
    let answer = ask(&proxy, "one/responses", &token, &json!({"play": "silent"})).await;
    assert_eq!(answer.status(), 200);
    assert!(in_time(answer.bytes()).await.is_err(), "it goes on for ever");
}

#[tokio::test]
async fn what_runs_spend_at_the_same_time_ends_where_their_budget_does() {
    let place = Place::new().await;
    let open = async |name: &str| {
        let own = place.folder.path().join(name);
        let share = |opening: &mut ProxyOptions| {
            (opening.socket, opening.run_dir) = (own.with_extension("sock"), own.clone());
            opening.run.run_id = name.parse().unwrap();
            let left = Allowance { usd: None, tokens: Some(200) };
            opening.run.shared.left.insert("day 2026-03-24".to_owned(), left);
        };
        place.open(share).await
    };
    let (one, two) = (open("r1").await, open("r2").await);
    let status = async |proxy: &ModelProxy| {
        let answer = ask(proxy, "one/responses", &proxy.address().token, &json!({})).await;
        let status = answer.status();
        answer.bytes().await.unwrap();
        status
    };
    // Each answer has 110 tokens, and what the last one passes is not taken back.
    assert_eq!(status(&one).await, 200);
    assert_eq!(status(&two).await, 200);
    for proxy in [&one, &two] {
        assert_eq!(
            (status(proxy).await, proxy.counted().usage.tokens()),
            (StatusCode::BAD_REQUEST, 110)
        );
    }
    assert!(one.counted().over_budget && two.counted().over_budget);
}

#[tokio::test]
async fn what_is_spent_is_counted_kept_and_ends_where_it_has_to() {
    let place = Place::new().await;
    let limit = |opening: &mut ProxyOptions| opening.run.allowance.tokens = Some(200);
    let proxy = place.open(limit).await;
    let kind = |proxy: &ModelProxy, told| match proxy.complete(failed(told)).outcome {
        RunOutcome::Failed { kind, .. } => kind,
        RunOutcome::Result(_) => panic!("a result"),
    };
    let (token, port) = (proxy.address().token.clone(), proxy.address().port);
    let all = |answer: reqwest::Response| async move { answer.text().await.unwrap() };
    all(ask(&proxy, "one/responses", &token, &json!({})).await).await;
    let once = proxy.counted();
    assert_eq!((once.usage.input_tokens, once.usage.output_tokens), (100, 10));
    assert!((once.usage.cost_usd - 0.2).abs() < 1e-9, "{once:?}");
    assert_eq!((once.requests, once.last_input, once.guessed), (1, 100, false));
    // What the agent says itself may be its last step, and without a cost.
    let told = Usage { input_tokens: 7, ..Usage::default() };
    assert_eq!((proxy.settle(told), proxy.settle(Usage::default())), (once.usage, once.usage));
    let dear = Usage { cost_usd: 0.5, ..told };
    assert_eq!(proxy.settle(dear), Usage { cost_usd: 0.5, ..once.usage });
    assert_eq!(counted(&place.opening().run_dir), once);

    // A restart goes on where it was: the same token, the same port, the same count.
    drop(proxy);
    in_time(async { while TcpStream::connect(("127.0.0.1", port.unwrap())).await.is_ok() {} })
        .await;
    let again = place.open(limit).await;
    assert_eq!(again.address().port, port);
    assert_eq!((again.address().token.as_str(), again.counted()), (token.as_str(), once));
    all(ask(&again, "one/responses", &token, &json!({})).await).await;
    assert_eq!(again.counted().usage.tokens(), 220);
    // What is spent to the last token failed by itself, until more was asked for.
    assert_eq!(kind(&again, FailKind::Transport), FailKind::Transport);
    let spent = ask(&again, "one/responses", &token, &json!({})).await;
    assert_eq!(spent.status(), 400);
    assert!(all(spent).await.contains("the budget of this run is used up"));
    // A long conversation is heard to its end, and its answer comes instead of a connection that is reset.
    let long = json!({"text": "x".repeat(16 << 20)});
    let spent = ask(&again, "two/v1/messages", &token, &long).await;
    let body: Value = serde_json::from_str(&all(spent).await).unwrap();
    assert_eq!(body["type"], "error");
    // Whatever the agent makes of it, a restart knows why; what a person ended was ended by a person.
    assert!(counted(&place.opening().run_dir).over_budget);
    assert_eq!(kind(&again, FailKind::Transport), FailKind::Budget);
    assert_eq!(kind(&again, FailKind::Cancelled), FailKind::Cancelled);
    // What costs nothing is still answered.
    let free = ask(&again, "two/v1/messages/count_tokens", &token, &json!({})).await;
    assert_eq!(free.status(), 200);
    assert_eq!(again.counted().requests, 2);
}

#[tokio::test]
async fn a_call_that_a_kill_cuts_off_is_charged_as_was_expected_of_it() {
    let place = Place::new().await;
    let proxy = place.open(|_| {}).await;
    let token = proxy.address().token.clone();
    ask(&proxy, "one/responses", &token, &json!({})).await.text().await.unwrap();
    let once = proxy.counted();
    let mut answer = ask(&proxy, "one/responses", &token, &json!({"play": "halves"})).await;
    answer.chunk().await.unwrap();
    // What lies in the run's folder at this moment is what a start after a kill finds.
    let killed = place.folder.path().join("killed");
    std::fs::create_dir(&killed).unwrap();
    let kept = || std::fs::read_to_string(place.opening().run_dir.join("door.json")).unwrap();
    in_time(async {
        while serde_json::from_str::<Value>(&kept()).unwrap()["under_way"]["output_tokens"] == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    std::fs::write(killed.join("door.json"), kept()).unwrap();
    let charged = teams::model_proxy::usage_in(&killed);
    assert_eq!(charged.tokens(), 2 * once.usage.tokens(), "as the one before it");
    // One that is heard to its end costs what its server says, once.
    place.upstream.go_on.notify_one();
    while answer.chunk().await.unwrap().is_some() {}
    assert_eq!(proxy.counted().usage.tokens(), 220);
    assert_eq!(teams::model_proxy::usage_in(&place.opening().run_dir).tokens(), 220);
    // What no server has taken costs nothing.
    ask(&proxy, "gone/responses", &token, &json!({})).await.text().await.unwrap();
    in_time(async {
        while teams::model_proxy::usage_in(&place.opening().run_dir).tokens() != 220 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A run without a result, as its agent tells.
fn failed(kind: FailKind) -> AgentOutcome {
    AgentOutcome {
        outcome: RunOutcome::failed(kind, "no".to_owned()),
        usage: Usage::default(),
        session_id: None,
        repairs: 0,
        dropped_bytes: 0,
        agent: "codex".to_owned(),
        prompt_cut: Vec::new(),
        heard: Vec::new(),
        fill: None,
        handed_over: None,
    }
}

#[tokio::test]
async fn a_limit_and_a_refusal_are_known_by_the_servers_word_where_the_agent_has_none() {
    let place = Place::new().await;
    let proxy = place.open(|_| {}).await;
    let token = proxy.address().token.clone();
    let told = |kind| match proxy.complete(failed(kind)).outcome {
        RunOutcome::Failed { kind, until, .. } => (kind, until.is_some()),
        RunOutcome::Result(_) => panic!("a result"),
    };
    let limited = ask(&proxy, "one/responses", &token, &json!({"play": "limited"})).await;
    assert_eq!(
        (limited.status().as_u16(), limited.headers()["retry-after"].as_bytes()),
        (429, &b"600"[..])
    );
    assert_eq!(told(FailKind::RateLimit), (FailKind::RateLimit, true));
    // It waited for the server until nobody waited for it any more.
    assert_eq!(told(FailKind::Stuck), (FailKind::RateLimit, true));
    assert_eq!(told(FailKind::Auth), (FailKind::Auth, false));
    // A restart knows it, too.
    assert!(counted(&place.opening().run_dir).limited_until.is_some());
    ask(&proxy, "one/responses", &token, &json!({})).await.text().await.unwrap();
    assert_eq!(told(FailKind::RateLimit), (FailKind::RateLimit, false));
    assert_eq!(told(FailKind::Stuck), (FailKind::Stuck, false));
    // A refusal stands in no text of Codex: what it hands on is no result.
    assert_eq!(told(FailKind::Contract), (FailKind::Contract, false));
    ask(&proxy, "one/responses", &token, &json!({"play": "refused"})).await.text().await.unwrap();
    assert_eq!(told(FailKind::Contract), (FailKind::Refusal, false));
    let RunOutcome::Failed { answer, .. } = proxy.complete(failed(FailKind::Contract)).outcome
    else {
        panic!("a result");
    };
    let beginning = "I will not.".to_owned();
    assert_eq!(answer, Some(BadAnswer { fault: AnswerFault::Refused, beginning }));
}

#[tokio::test]
async fn a_server_that_does_not_count_is_counted_by_bytes() {
    let place = Place::new().await;
    let proxy = place.open(|_| {}).await;
    // No call came by here: the most that its agent told, which may say of its last step alone in the end.
    let told = |input_tokens| Usage { input_tokens, ..Usage::default() };
    assert!(!proxy.tell(told(900)));
    assert_eq!([0, 100, 1_000].map(|it| proxy.settle(told(it)).input_tokens), [900, 900, 1_000]);
    let token = proxy.address().token.clone();
    ask(&proxy, "one/responses", &token, &json!({})).await.text().await.unwrap();
    let before = proxy.counted().usage.cost_usd;
    // What the Messages API says stands elsewhere than in this answer, and so does its model: it costs what that of the
    // answer before does.
    let words = json!({"text": "x".repeat(4_000)});
    ask(&proxy, "two/v1/messages", &token, &words).await.text().await.unwrap();
    let MeterReading { usage, guessed, .. } = proxy.counted();
    assert!(guessed && usage.input_tokens > 1_000, "{usage:?}");
    assert_eq!(
        proxy.settle(told(100)),
        usage,
        "what an agent was told may be its first prompt alone"
    );
    assert_eq!(proxy.settle(told(1 << 20)), told(1 << 20));
    assert!(usage.cost_usd > before + 1.0, "{usage:?}");
}

#[tokio::test]
async fn the_socket_leads_to_the_same_proxy() {
    let place = Place::new().await;
    let proxy = place.open(|opening| opening.port = false).await;
    assert_eq!(proxy.address().port, None);
    let mut stream = UnixStream::connect(&proxy.address().socket).await.unwrap();
    let token = &proxy.address().token;
    let request = format!(
        "GET /one/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    in_time(stream.read_to_string(&mut said)).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert_eq!(place.seen()[0].path, "/base/models");
}

/// Asks the proxy for a way; the status, and the connection.
async fn way(proxy: &ModelProxy, to: &str, word: &str) -> (String, TcpStream) {
    use base64::Engine as _;
    let port = proxy.address().port.unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let word = base64::engine::general_purpose::STANDARD.encode(format!("run:{word}"));
    let request =
        format!("CONNECT {to} HTTP/1.1\r\nhost: {to}\r\nproxy-authorization: Basic {word}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), stream)
}

#[tokio::test]
async fn the_way_out_leads_where_the_policy_says_and_nowhere_else() {
    let place = Place::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"here").await;
        }
    });
    let listed = host.clone();
    let proxy = place.open(|opening| opening.outside = AllowedHosts::Hosts(vec![listed])).await;
    assert!(proxy.address().leads_out);
    let token = proxy.address().token.clone();
    let (status, mut stream) = way(&proxy, &host, &token).await;
    let mut said = [0; 4];
    in_time(stream.read_exact(&mut said)).await.unwrap();
    assert_eq!((status.as_str(), &said), ("200", b"here"));
    assert_eq!(way(&proxy, &host, "another").await.0, "407");
    for elsewhere in ["127.0.0.1:1", "example.com:443", "169.254.169.254:80"] {
        assert_eq!(way(&proxy, elsewhere, &token).await.0, "403", "{elsewhere}");
    }
    // What is open to everything public is not open to this machine.
    let open = place.open(|opening| {
        opening.outside = AllowedHosts::Public;
        opening.run_dir.push("open");
        opening.socket.set_extension("open");
    });
    let open = open.await;
    let token = open.address().token.clone();
    for here in [host.as_str(), "localhost:443", "127.0.0.1:443", "[::1]:443"] {
        assert_eq!(way(&open, here, &token).await.0, "403", "{here}");
    }
    let closed = place.open(|opening| {
        opening.run_dir.push("closed");
        opening.socket.set_extension("closed");
    });
    let closed = closed.await;
    assert!(!closed.address().leads_out);
    let token = closed.address().token.clone();
    assert_eq!(way(&closed, &host, &token).await.0, "403");
}
