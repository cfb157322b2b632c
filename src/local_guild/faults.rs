//! Injected trouble, so that a bot can be tested against what the real platform does now and then
//! (`spec/discord.md` 5). Steered over `POST /_local/faults`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::broadcast;

use super::event::Frame;
use super::guild::Guild;
use super::ids::Id;
use super::session::Sessions;

/// What happens to a REST request instead of, or after, its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RestTrouble {
    /// Answered with the status; 429 comes with its headers.
    Status,
    /// Never answered, until faults are cleared.
    Hang,
    /// The connection is cut.
    Drop,
}

/// A fault for matching REST requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RestFault {
    /// Upper case; absent matches every method.
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) path_contains: String,
    #[serde(default = "status_kind")]
    pub(crate) trouble: RestTrouble,
    #[serde(default = "status_code")]
    pub(crate) status: u16,
    /// How many requests it meets.
    #[serde(default = "once")]
    pub(crate) times: u32,
    /// Seconds, for 429.
    #[serde(default = "one_second")]
    pub(crate) retry_after: f64,
    /// For 429: the whole bot, not one route.
    #[serde(default)]
    pub(crate) global: bool,
    /// The work is done first: the client cannot know.
    #[serde(default)]
    pub(crate) after: bool,
}

fn status_kind() -> RestTrouble {
    RestTrouble::Status
}

fn status_code() -> u16 {
    500
}

fn once() -> u32 {
    1
}

fn one_second() -> f64 {
    1.0
}

/// Trouble on open gateway connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GatewayTrouble {
    /// Closed with a code.
    Close { code: u16 },
    /// Cut without a closing frame.
    Drop,
    /// Asked to reconnect (op 7).
    Reconnect,
    /// Told that the session is invalid (op 9).
    InvalidSession { resumable: bool },
}

/// A request to change the faults. Every field is optional; what is absent stays. For example
/// `{"rest": [{"path_contains": "/messages", "status": 429, "times": 2}], "gateway": "reconnect"}`;
/// the other forms of `gateway` are `"drop"`, `{"close": {"code": 4000}}` and
/// `{"invalid_session": {"resumable": false}}`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// Ends every fault first.
    #[serde(default)]
    pub(crate) clear: bool,
    /// One fault, or a list.
    #[serde(default)]
    pub(crate) rest: Vec<RestFault>,
    /// Done at once to every open connection, or to those of `bot`.
    pub(crate) gateway: Option<GatewayTrouble>,
    /// The name of the bot that `gateway` is for.
    pub(crate) bot: Option<String>,
    /// Heartbeats are not acknowledged.
    pub(crate) mute_acks: Option<bool>,
    /// Everything but the local side is cut off.
    pub(crate) down: Option<bool>,
    /// The next so many events reach bots twice.
    pub(crate) duplicate_events: Option<u32>,
    /// The next so many events do not reach bots.
    pub(crate) lose_events: Option<u32>,
    /// The message-content intent is refused (4014).
    pub(crate) deny_message_content: Option<bool>,
}

#[derive(Debug, Default, Clone, Serialize)]
struct Settings {
    rest: Vec<RestFault>,
    mute_acks: bool,
    down: bool,
    duplicate_events: u32,
    lose_events: u32,
    deny_message_content: bool,
}

/// The faults in force.
#[derive(Debug)]
pub(crate) struct Faults {
    settings: Mutex<Settings>,
    /// With the bot that is meant, if not all are.
    gateway: broadcast::Sender<(Option<Id>, GatewayTrouble)>,
    /// Counts orders, to free requests that hang.
    orders: tokio::sync::watch::Sender<u64>,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            settings: Mutex::default(),
            gateway: broadcast::Sender::new(16),
            orders: tokio::sync::watch::Sender::new(0),
        }
    }
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out an order, its gateway part for one bot or all; returns what is in force afterwards.
    pub(crate) fn order(&self, order: Order, bot: Option<Id>) -> serde_json::Value {
        let mut settings = self.lock();
        if order.clear {
            *settings = Settings::default();
        }
        settings.rest.extend(order.rest);
        let set = |target: &mut bool, wish: Option<bool>| *target = wish.unwrap_or(*target);
        set(&mut settings.mute_acks, order.mute_acks);
        set(&mut settings.down, order.down);
        set(&mut settings.deny_message_content, order.deny_message_content);
        settings.duplicate_events = order.duplicate_events.unwrap_or(settings.duplicate_events);
        settings.lose_events = order.lose_events.unwrap_or(settings.lose_events);
        let down = order.down == Some(true);
        let now = json!(&*settings);
        drop(settings);
        self.orders.send_modify(|count| *count += 1);
        // Nobody listening is fine: then there is no connection to trouble.
        if let Some(trouble) = order.gateway {
            let _ = self.gateway.send((bot, trouble));
        }
        if down {
            let _ = self.gateway.send((None, GatewayTrouble::Drop));
        }
        now
    }

    /// Follows trouble for open connections.
    pub(crate) fn gateway(&self) -> broadcast::Receiver<(Option<Id>, GatewayTrouble)> {
        self.gateway.subscribe()
    }

    pub(crate) fn mute_acks(&self) -> bool {
        self.lock().mute_acks
    }

    pub(crate) fn deny_message_content(&self) -> bool {
        self.lock().deny_message_content
    }

    fn down(&self) -> bool {
        self.lock().down
    }

    /// Publishes an event, or loses or doubles it as ordered. The page always gets it once.
    pub(crate) fn publish(&self, sessions: &Sessions, frame: &Frame) {
        let mut settings = self.lock();
        let lose = settings.lose_events > 0;
        let double = !lose && settings.duplicate_events > 0;
        settings.lose_events = settings.lose_events.saturating_sub(1);
        if double {
            settings.duplicate_events -= 1;
        }
        drop(settings);
        if lose {
            sessions.publish_to_page(frame);
            return;
        }
        sessions.publish(frame);
        if double {
            sessions.publish_to_bots(frame);
        }
    }

    /// The fault that a request meets, counted down.
    fn meet(&self, method: &str, path: &str) -> Option<RestFault> {
        let mut settings = self.lock();
        let position = settings.rest.iter().position(|fault| {
            fault.method.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
                && path.contains(&fault.path_contains)
        })?;
        let fault = settings.rest.get_mut(position)?;
        fault.times = fault.times.saturating_sub(1);
        let met = fault.clone();
        if met.times == 0 {
            settings.rest.remove(position);
        }
        Some(met)
    }
}

/// A response whose body fails, upon which the server cuts the connection.
fn cut() -> Response {
    let broken = futures_util::stream::once(async {
        Err::<axum::body::Bytes, _>(std::io::Error::other("cut by an injected fault"))
    });
    (StatusCode::SERVICE_UNAVAILABLE, Body::from_stream(broken)).into_response()
}

fn refused(fault: &RestFault) -> Response {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status != StatusCode::TOO_MANY_REQUESTS {
        let body = json!({"message": format!("{status}"), "code": 0});
        return (status, axum::Json(body)).into_response();
    }
    let body = json!({
        "message": "You are being rate limited.", "retry_after": fault.retry_after,
        "global": fault.global,
    });
    let mut response = (status, axum::Json(body)).into_response();
    let headers = response.headers_mut();
    let wait = fault.retry_after.to_string();
    let whole = fault.retry_after.ceil().to_string();
    let mut put = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    put("retry-after", &whole);
    put("x-ratelimit-reset-after", &wait);
    put("x-ratelimit-limit", "5");
    put("x-ratelimit-remaining", "0");
    put("x-ratelimit-bucket", "local-fault");
    put("x-ratelimit-scope", if fault.global { "global" } else { "user" });
    if fault.global {
        put("x-ratelimit-global", "true");
    }
    response
}

/// Lets requests meet their faults. The local side is exempt: it is what steers them.
pub(crate) async fn layer(
    State(guild): State<Arc<Guild>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let bot_side = path.starts_with("/api/") || path.starts_with("/attachments/");
    let gateway = request.headers().contains_key("upgrade");
    if guild.faults.down() && (bot_side || gateway) {
        return cut();
    }
    if !bot_side {
        return next.run(request).await;
    }
    let Some(fault) = guild.faults.meet(request.method().as_str(), &path) else {
        return next.run(request).await;
    };
    let mut orders = guild.faults.orders.subscribe();
    if fault.after {
        next.run(request).await;
    }
    match fault.trouble {
        RestTrouble::Status => refused(&fault),
        RestTrouble::Drop => cut(),
        RestTrouble::Hang => {
            tokio::select! {
                _ = orders.changed() => {}
                () = guild.closing.cancelled() => {}
            }
            cut()
        }
    }
}
