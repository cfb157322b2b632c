//! Injected trouble, so that a bot can be tested against what the real platform does now and then
//! (`spec/discord.md` 5). Steered over `POST /_local/faults`.

mod limits;
mod rest;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::event::Frame;
use super::ids::Id;
use super::session::Sessions;
use limits::Counters;
pub(crate) use limits::{Edits, Limits, Scope};
pub(crate) use rest::layer;

/// What happens to a REST request instead of, before or after its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RestTrouble {
    /// Answered with the status; 429 comes with its headers.
    Status,
    /// Answered as usual, but late: after `delay_ms`.
    Slow,
    /// Never answered, until the next order.
    Hang,
    /// The connection is cut.
    Drop,
}

/// A fault for matching REST requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestFault {
    /// Upper case; absent matches every method.
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) path_contains: String,
    #[serde(default = "status_kind")]
    pub(crate) trouble: RestTrouble,
    #[serde(default = "status_code")]
    pub(crate) status: u16,
    /// The code in the body of a status.
    #[serde(default)]
    pub(crate) code: u32,
    /// How many requests it meets.
    #[serde(default = "once")]
    pub(crate) times: u32,
    /// Seconds, for 429.
    #[serde(default = "one_second")]
    pub(crate) retry_after: f64,
    /// For 429; absent means the user's.
    pub(crate) scope: Option<Scope>,
    /// For 429: the same as the global scope.
    #[serde(default)]
    pub(crate) global: bool,
    /// For 429: as the proxy in front of the platform writes it, a page and no headers but one.
    #[serde(default)]
    pub(crate) html: bool,
    /// The work is done first: the client cannot know.
    #[serde(default)]
    pub(crate) after: bool,
    /// For slow: milliseconds.
    #[serde(default)]
    pub(crate) delay_ms: u64,
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

/// Trouble on gateway connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GatewayTrouble {
    /// Closed with a code.
    Close { code: u16 },
    /// Cut without a closing frame.
    Drop,
    /// Left open, and nothing comes any more: neither events nor acknowledgements.
    Zombie,
    /// Asked to reconnect (op 7).
    Reconnect,
    /// Told that the session is invalid (op 9).
    InvalidSession { resumable: bool },
}

/// When a connection meets its trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moment {
    /// Instead of READY.
    Identify,
    /// Instead of what was missed.
    Resume,
}

/// Trouble for connections to come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginFault {
    pub(crate) at: Moment,
    pub(crate) trouble: GatewayTrouble,
    /// How many logins it meets.
    #[serde(default = "once")]
    pub(crate) times: u32,
    /// Set from the order's `bot`.
    #[serde(skip_deserializing)]
    pub(crate) bot: Option<Id>,
}

/// A request to change the faults. Every field is optional; what is absent stays. For example
/// `{"rest": [{"path_contains": "/messages", "status": 429, "times": 2}], "gateway": "reconnect"}`;
/// the other forms of `gateway` are `"drop"`, `"zombie"`, `{"close": {"code": 4000}}` and
/// `{"invalid_session": {"resumable": false}}`, and those of `login` the same in
/// `[{"at": "identify", "trouble": …, "times": 3}]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// Ends every fault first, and starts every count anew.
    #[serde(default)]
    pub(crate) clear: bool,
    #[serde(default)]
    pub(crate) rest: Vec<RestFault>,
    /// Done at once to every open connection, or to those of `bot`.
    pub(crate) gateway: Option<GatewayTrouble>,
    /// Done to connections that log in from now on, or to those of `bot`.
    #[serde(default)]
    pub(crate) login: Vec<LoginFault>,
    /// The name of the bot that `gateway` and `login` are for.
    pub(crate) bot: Option<String>,
    /// Heartbeats are not acknowledged.
    pub(crate) mute_acks: Option<bool>,
    /// Bots are greeted and acknowledged, and no events reach them.
    pub(crate) mute_events: Option<bool>,
    /// Milliseconds between heartbeats that new connections are told; zero is the usual number.
    pub(crate) heartbeat_ms: Option<u64>,
    /// Everything but the local side is cut off.
    pub(crate) down: Option<bool>,
    /// The next so many events reach bots twice.
    pub(crate) duplicate_events: Option<u32>,
    /// The next so many events do not reach bots.
    pub(crate) lose_events: Option<u32>,
    /// The next so many events reach bots in a shape that nobody documented.
    pub(crate) garble_events: Option<u32>,
    /// The next so many frames with events are lost on the way; a session that is gone on with has them.
    pub(crate) lose_frames: Option<u32>,
    /// The next so many frames with events are cut off in the middle; so here as well.
    pub(crate) break_frames: Option<u32>,
    /// The message-content intent is refused (4014).
    pub(crate) deny_message_content: Option<bool>,
    /// How many logins are left for the day.
    pub(crate) logins_left: Option<u32>,
    /// Milliseconds between two logins of a bot; one that comes earlier meets op 9.
    pub(crate) login_spacing_ms: Option<u64>,
    /// Rate limits, told by headers and kept.
    pub(crate) limits: Option<Limits>,
    /// When edits of old messages are refused (30046).
    pub(crate) edits: Option<Edits>,
    /// How many invalid requests lead to a ban of this machine.
    pub(crate) invalid_limit: Option<u32>,
}

/// Invalid requests in ten minutes that the platform bears.
const INVALID_LIMIT: u32 = 10_000;

/// Five seconds, less a little for clients that count from when they send, while the road takes its time.
const LOGIN_SPACING_MS: u64 = 4_500;

#[derive(Debug, Clone, Serialize)]
struct Settings {
    rest: Vec<RestFault>,
    login: Vec<LoginFault>,
    mute_acks: bool,
    mute_events: bool,
    heartbeat_ms: u64,
    down: bool,
    duplicate_events: u32,
    lose_events: u32,
    garble_events: u32,
    lose_frames: u32,
    break_frames: u32,
    deny_message_content: bool,
    logins_left: Option<u32>,
    login_spacing_ms: u64,
    limits: Option<Limits>,
    edits: Option<Edits>,
    invalid_limit: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            rest: Vec::new(),
            login: Vec::new(),
            mute_acks: false,
            mute_events: false,
            heartbeat_ms: 0,
            down: false,
            duplicate_events: 0,
            lose_events: 0,
            garble_events: 0,
            lose_frames: 0,
            break_frames: 0,
            deny_message_content: false,
            logins_left: None,
            login_spacing_ms: LOGIN_SPACING_MS,
            limits: None,
            edits: None,
            invalid_limit: INVALID_LIMIT,
        }
    }
}

/// The faults in force, and what they count.
#[derive(Debug)]
pub(crate) struct Faults {
    settings: Mutex<Settings>,
    counters: Mutex<Counters>,
    /// With the bot that is meant, if not all are.
    gateway: broadcast::Sender<(Option<Id>, GatewayTrouble)>,
    /// Counts orders, to free requests that hang.
    orders: tokio::sync::watch::Sender<u64>,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            settings: Mutex::default(),
            counters: Mutex::default(),
            gateway: broadcast::Sender::new(16),
            orders: tokio::sync::watch::Sender::new(0),
        }
    }
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out an order, its gateway part for one bot or all; returns what is in force
    /// afterwards, with `counted`: requests limited and invalid, and whether the machine is banned.
    pub(crate) fn order(&self, order: Order, bot: Option<Id>) -> Value {
        let mut settings = self.lock();
        if order.clear {
            *settings = Settings::default();
            *self.counters() = Counters::default();
        }
        settings.rest.extend(order.rest);
        settings.login.extend(order.login.into_iter().map(|fault| LoginFault { bot, ..fault }));
        let set = |target: &mut bool, wish: Option<bool>| *target = wish.unwrap_or(*target);
        set(&mut settings.mute_acks, order.mute_acks);
        set(&mut settings.mute_events, order.mute_events);
        set(&mut settings.down, order.down);
        set(&mut settings.deny_message_content, order.deny_message_content);
        let count = |target: &mut u32, wish: Option<u32>| *target = wish.unwrap_or(*target);
        count(&mut settings.duplicate_events, order.duplicate_events);
        count(&mut settings.lose_events, order.lose_events);
        count(&mut settings.garble_events, order.garble_events);
        count(&mut settings.lose_frames, order.lose_frames);
        count(&mut settings.break_frames, order.break_frames);
        count(&mut settings.invalid_limit, order.invalid_limit);
        settings.heartbeat_ms = order.heartbeat_ms.unwrap_or(settings.heartbeat_ms);
        settings.logins_left = order.logins_left.or(settings.logins_left);
        let spacing = order.login_spacing_ms.unwrap_or(settings.login_spacing_ms);
        settings.login_spacing_ms = spacing;
        settings.limits = order.limits.or(settings.limits);
        settings.edits = order.edits.or(settings.edits);
        let down = order.down == Some(true);
        let mut now = json!(&*settings);
        now["counted"] = self.counters().summary(settings.invalid_limit);
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

    /// Wakes with every order.
    pub(crate) fn orders(&self) -> tokio::sync::watch::Receiver<u64> {
        self.orders.subscribe()
    }

    /// Whether heartbeats go without an answer.
    pub(crate) fn mute_acks(&self) -> bool {
        self.lock().mute_acks
    }

    /// What becomes of a frame with an event on its way to a bot, counted down; greetings get through.
    pub(crate) fn carry<'a>(
        &self,
        text: &'a str,
        greets: impl Fn(&str) -> bool,
    ) -> Option<&'a str> {
        let mut settings = self.lock();
        let trouble = settings.mute_events || settings.lose_frames > 0 || settings.break_frames > 0;
        if !trouble || greets(text) {
            return Some(text);
        }
        if settings.mute_events {
            return None;
        }
        if settings.lose_frames > 0 {
            settings.lose_frames -= 1;
            return None;
        }
        settings.break_frames -= 1;
        let middle = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at));
        text.get(..middle.unwrap_or(0))
    }

    /// Milliseconds between heartbeats, if others than usual are ordered.
    pub(crate) fn heartbeat_ms(&self) -> Option<u64> {
        Some(self.lock().heartbeat_ms).filter(|it| *it > 0)
    }

    pub(crate) fn deny_message_content(&self) -> bool {
        self.lock().deny_message_content
    }

    /// Logins left for the day: as ordered, or all that `day` has left.
    pub(crate) fn logins_left(&self, day: u32) -> u32 {
        self.lock().logins_left.unwrap_or(day)
    }

    /// How far apart the logins of a bot have to be.
    pub(crate) fn login_spacing(&self) -> Duration {
        Duration::from_millis(self.lock().login_spacing_ms)
    }

    /// Takes one login, if one is left.
    pub(crate) fn take_login(&self) -> bool {
        match &mut self.lock().logins_left {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }

    /// The trouble that a login meets, counted down.
    pub(crate) fn login(&self, at: Moment, bot: Id) -> Option<GatewayTrouble> {
        let mut settings = self.lock();
        let meant = |it: &LoginFault| it.at == at && it.bot.is_none_or(|id| id == bot);
        let position = settings.login.iter().position(meant)?;
        let fault = settings.login.get_mut(position)?;
        let trouble = fault.trouble;
        fault.times = fault.times.saturating_sub(1);
        if fault.times == 0 {
            settings.login.remove(position);
        }
        Some(trouble)
    }

    fn down(&self) -> bool {
        self.lock().down
    }

    /// Publishes an event, or loses, doubles or garbles it as ordered. The page always gets it once,
    /// as it is.
    pub(crate) fn publish(&self, sessions: &Sessions, frame: &Frame) {
        let mut settings = self.lock();
        let take = |count: &mut u32| {
            let some = *count > 0;
            *count = count.saturating_sub(1);
            some
        };
        let lose = take(&mut settings.lose_events);
        let double = !lose && take(&mut settings.duplicate_events);
        let garble = !lose && take(&mut settings.garble_events);
        drop(settings);
        sessions.publish_to_page(frame);
        if lose {
            return;
        }
        let garbled =
            garble.then(|| Frame { data: json!({"surprise": [frame.name]}), ..frame.clone() });
        let frame = garbled.as_ref().unwrap_or(frame);
        for _ in 0..1 + u8::from(double) {
            sessions.publish_to_bots(frame);
        }
    }
}
