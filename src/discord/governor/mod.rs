//! When a call may be made: budgets learned from Discord's headers, cool-off after a 429, and a breaker
//! before refused calls endanger the machine's address. Pure: the clock is an argument, in milliseconds of
//! any steady clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::discord::error::LimitScope;

/// Refused calls in [`INVALID_WINDOW_MS`] after which we stop; Discord bans the address at 10,000.
pub const INVALID_LIMIT: usize = 1_000;
/// Ten minutes.
const INVALID_WINDOW_MS: u64 = 600_000;
/// Routes remembered before expired ones are forgotten.
const ROUTES_KEPT: usize = 2_000;
/// Whoever waits for the answer to another call looks again after this long at the latest.
const LOOK_AGAIN_MS: u64 = 1_000;

/// How many gateway connections are made, by all bots of a team and from any cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections within any ten seconds.
    pub in_ten_seconds: usize,
    /// Connections within any hour.
    pub an_hour: usize,
}

impl ConnectionLimits {
    /// A connection lives for days where all is well. No server is so well that it bears a storm.
    pub const USUAL: ConnectionLimits = ConnectionLimits { in_ten_seconds: 5, an_hour: 100 };
}

/// How fast we go where no header says anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Calls that may follow each other at once.
    pub burst: u32,
    /// Calls a second after that.
    pub per_second: u32,
    /// Messages that may follow each other at once in one channel.
    pub channel_burst: u32,
    /// Messages a second after that; people read one at a time.
    pub channel_per_second: u32,
    /// Between two new gateway sessions of a bot.
    pub between_sessions: Duration,
    /// How many gateway connections are made.
    pub connections: ConnectionLimits,
}

impl Limits {
    /// Discord allows 50 calls in any second and a new session every five
    /// (`spec/discord.md` 5, rows "global" and "session start").
    pub const DISCORD: Limits = Limits {
        burst: 10,
        per_second: 38,
        channel_burst: 5,
        channel_per_second: 1,
        between_sessions: Duration::from_secs(5),
        connections: ConnectionLimits::USUAL,
    };

    /// Calls to a server on this machine are held up by nobody but its own headers.
    pub const THIS_MACHINE: Limits = Limits {
        burst: 500,
        per_second: 2_000,
        channel_burst: 500,
        channel_per_second: 1_000,
        between_sessions: Duration::from_secs(5),
        connections: ConnectionLimits::USUAL,
    };
}

/// What the headers of one answer said. Absent or malformed ones are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LimitHeaders {
    /// `X-RateLimit-Bucket`.
    pub bucket: Option<String>,
    /// `X-RateLimit-Limit`.
    pub limit: Option<u32>,
    /// `X-RateLimit-Remaining`.
    pub remaining: Option<u32>,
    /// `X-RateLimit-Reset-After`, in milliseconds.
    pub reset_after_ms: Option<u64>,
}

/// A bucket that refills steadily; counts in thousandths so that it stays in whole numbers.
#[derive(Debug, Clone)]
struct Pace {
    milli: u64,
    capacity: u64,
    per_second: u64,
    at: u64,
}

impl Pace {
    fn new(capacity: u32, per_second: u32, now: u64) -> Pace {
        let capacity = u64::from(capacity) * 1_000;
        Pace { milli: capacity, capacity, per_second: u64::from(per_second), at: now }
    }

    fn refill(&mut self, now: u64) {
        let gained = now.saturating_sub(self.at).saturating_mul(self.per_second);
        self.milli = self.milli.saturating_add(gained).min(self.capacity);
        self.at = self.at.max(now);
    }

    fn free_at(&self) -> u64 {
        let missing = 1_000u64.saturating_sub(self.milli);
        if missing == 0 {
            return 0;
        }
        self.at + missing.div_ceil(self.per_second.max(1))
    }

    fn take(&mut self) {
        self.milli = self.milli.saturating_sub(1_000);
    }
}

/// What is known of one bucket.
#[derive(Debug, Clone, Copy, Default)]
struct Budget {
    /// Calls that were begun and not answered.
    in_flight: u32,
    /// Calls that a whole window has.
    limit: Option<u32>,
    /// How long a window was at most, in milliseconds.
    length_ms: u64,
    window: Window,
    /// Calls since the window began whose answers said nothing or did not come: an answer that was written before
    /// they were counted does not know of them, and Discord, whose windows end sooner than ours by the way of an
    /// answer, may count them in the next one.
    unheard: u32,
}

#[derive(Debug, Clone, Copy, Default)]
enum Window {
    /// No answer yet: one call finds out.
    #[default]
    Unknown,
    /// Answers came without limits.
    Free,
    /// So many calls are left until then.
    Open { remaining: u32, resets_at: u64 },
}

impl Budget {
    fn room(&self, now: u64) -> Result<(), u64> {
        let (left, then) = match (self.window, self.limit) {
            (Window::Free, _) => return Ok(()),
            (Window::Open { remaining, resets_at }, _) if now < resets_at => (remaining, resets_at),
            // A window that is over: the next one is whole but for what may be counted in it.
            (Window::Open { .. }, Some(limit)) => (limit.saturating_sub(self.unheard).max(1), now),
            (Window::Open { .. } | Window::Unknown, _) => (1, now),
        };
        if left > self.in_flight {
            Ok(())
        } else if self.in_flight > 0 {
            // The answers to those say how it goes on.
            Err(now + LOOK_AGAIN_MS)
        } else {
            Err(then)
        }
    }
}

impl Budget {
    /// A call was sent, and nothing that came back says what is left: it may have been counted.
    fn count(&mut self, now: u64) {
        if let Window::Open { remaining, resets_at } = &mut self.window {
            if now < *resets_at {
                self.unheard += 1;
                *remaining = remaining.saturating_sub(1);
            } else if let Some(limit) = self.limit {
                self.unheard += 1;
                *remaining = limit.saturating_sub(self.unheard);
                *resets_at = now + self.length_ms;
            }
        }
    }
}

/// A place to call, as far as limits care: see [`Route::of`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Method and path with minor ids removed.
    key: String,
    /// The part that buckets are counted per: channel, server or webhook.
    major: String,
    /// Whether it posts a message to a channel, which people read one at a time.
    posts: bool,
    /// Interaction callbacks do not count towards the global limit.
    exempt: bool,
}

impl Route {
    /// The route of a path below `/api/v10`, such as `/channels/1/messages/2`.
    #[must_use]
    pub fn of(method: &str, path: &str) -> Route {
        let path = path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let first = parts.first().copied().unwrap_or_default();
        let second = parts.get(1).copied().unwrap_or_default();
        let major = match first {
            "channels" | "guilds" => second.to_owned(),
            "webhooks" => {
                let token = parts.get(2).copied().filter(|part| *part != "messages");
                format!("{second}/{}", token.unwrap_or_default())
            }
            _ => String::new(),
        };
        let flat: Vec<&str> = parts
            .iter()
            .enumerate()
            .map(|(at, part)| {
                let id = part.bytes().all(|byte| byte.is_ascii_digit());
                let secret = matches!(first, "webhooks" | "interactions") && at == 2;
                let emoji = at > 0 && parts.get(at - 1) == Some(&"reactions");
                if id || secret || emoji { "*" } else { *part }
            })
            .collect();
        Route {
            key: format!("{method} {}", flat.join("/")),
            major,
            posts: method == "POST"
                && first == "channels"
                && parts.len() == 3
                && parts.get(2) == Some(&"messages"),
            exempt: first == "interactions",
        }
    }
}

/// A place among the calls under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket((String, String));

/// The limits of one bot.
#[derive(Debug, Clone)]
pub struct Governor {
    limits: Limits,
    global: Pace,
    global_until: u64,
    /// Route key → the bucket name that Discord gave it.
    names: BTreeMap<String, String>,
    /// (bucket or route key, major) → budget.
    budgets: BTreeMap<(String, String), Budget>,
    channels: BTreeMap<String, Pace>,
}

impl Governor {
    /// Nothing learned yet.
    #[must_use]
    pub fn new(limits: Limits, now: u64) -> Governor {
        Governor {
            limits,
            global: Pace::new(limits.burst, limits.per_second, now),
            global_until: 0,
            names: BTreeMap::new(),
            budgets: BTreeMap::new(),
            channels: BTreeMap::new(),
        }
    }

    fn key(&self, route: &Route) -> (String, String) {
        let name = self.names.get(&route.key).unwrap_or(&route.key).clone();
        (name, route.major.clone())
    }

    /// Takes a place for one call, or says when to ask again. A place that was taken is given back with
    /// [`Governor::answered`], whatever came of the call.
    pub fn admit(&mut self, route: &Route, now: u64) -> Result<Ticket, u64> {
        let mut free_at = now;
        if !route.exempt {
            self.global.refill(now);
            free_at = free_at.max(self.global_until).max(self.global.free_at());
        }
        let key = self.key(route);
        let known = self.budgets.get(&key).copied();
        // Interactions have three seconds and no bucket to speak of.
        if let (Some(budget), false) = (known, route.exempt)
            && let Err(then) = budget.room(now)
        {
            free_at = free_at.max(then);
        }
        if route.posts {
            let Limits { channel_burst, channel_per_second, .. } = self.limits;
            let pace = self
                .channels
                .entry(route.major.clone())
                .or_insert_with(|| Pace::new(channel_burst, channel_per_second, now));
            pace.refill(now);
            free_at = free_at.max(pace.free_at());
        }
        if free_at > now {
            return Err(free_at);
        }
        if !route.exempt {
            self.global.take();
        }
        if route.posts
            && let Some(pace) = self.channels.get_mut(&route.major)
        {
            pace.take();
        }
        self.budgets.entry(key.clone()).or_default().in_flight += 1;
        Ok(Ticket(key))
    }

    /// A call is over, with or without an answer. It is taken from the bucket that it was counted in: an
    /// answer meanwhile may have given the route another one.
    pub fn answered(&mut self, Ticket(key): &Ticket) {
        if let Some(budget) = self.budgets.get_mut(key) {
            budget.in_flight = budget.in_flight.saturating_sub(1);
        }
    }

    /// No answer came to a call that was sent, or nobody waited for it.
    pub fn unheard(&mut self, Ticket(key): &Ticket, now: u64) {
        if let Some(budget) = self.budgets.get_mut(key) {
            budget.count(now);
        }
    }

    /// Learns from the headers of any answer; `taken` says whether the call was carried out.
    pub fn learn(&mut self, route: &Route, headers: &LimitHeaders, taken: bool, now: u64) {
        if let Some(bucket) = &headers.bucket {
            self.names.insert(route.key.clone(), bucket.clone());
        }
        let key = self.key(route);
        let budget = self.budgets.entry(key).or_default();
        budget.limit = headers.limit.or(budget.limit);
        match (headers.remaining, headers.reset_after_ms) {
            (Some(said), Some(after)) => {
                let (mut remaining, mut resets_at) = (said, now + after);
                budget.length_ms = budget.length_ms.max(after);
                // Answers overtake each other: within a window what is left only shrinks.
                if let Window::Open { remaining: less, resets_at: then } = budget.window
                    && now < then
                {
                    remaining = remaining.saturating_sub(budget.unheard).min(less);
                    resets_at = resets_at.max(then);
                } else {
                    budget.unheard = 0;
                }
                budget.window = Window::Open { remaining, resets_at };
            }
            (None, _) | (_, None) if taken && matches!(budget.window, Window::Unknown) => {
                budget.window = Window::Free;
            }
            (None, _) | (_, None) => budget.count(now),
        }
        if self.budgets.len() + self.channels.len() > ROUTES_KEPT {
            self.budgets.retain(|_, budget| {
                let over = match budget.window {
                    Window::Open { resets_at, .. } => resets_at <= now,
                    Window::Unknown | Window::Free => true,
                };
                budget.in_flight > 0 || !over
            });
            self.channels.retain(|_, pace| {
                pace.refill(now);
                pace.milli < pace.capacity
            });
        }
    }

    /// Heeds a 429: the whole bot for [`LimitScope::Global`], else this bucket.
    pub fn limited(&mut self, route: &Route, scope: LimitScope, retry_after_ms: u64, now: u64) {
        let until = now + retry_after_ms;
        match scope {
            LimitScope::Global => self.global_until = self.global_until.max(until),
            LimitScope::User | LimitScope::Shared => {
                let budget = self.budgets.entry(self.key(route)).or_default();
                // A window that is under way is not over sooner by it.
                let resets_at = match budget.window {
                    Window::Open { resets_at, .. } => resets_at.max(until),
                    Window::Unknown | Window::Free => until,
                };
                budget.window = Window::Open { remaining: 0, resets_at };
                budget.unheard = 0;
            }
        }
    }
}

/// Refused calls (401, 403, 429 that is not shared) of all bots together: Discord counts them per
/// address.
#[derive(Debug, Clone, Default)]
pub struct InvalidCalls {
    at: VecDeque<u64>,
}

impl InvalidCalls {
    /// Counts one.
    pub fn count(&mut self, now: u64) {
        self.forget(now);
        self.at.push_back(now);
    }

    fn forget(&mut self, now: u64) {
        while self.at.front().is_some_and(|at| at + INVALID_WINDOW_MS <= now) {
            self.at.pop_front();
        }
    }

    /// When calls are allowed again; `None` while they are.
    pub fn open_until(&mut self, now: u64) -> Option<u64> {
        self.forget(now);
        if self.at.len() < INVALID_LIMIT {
            return None;
        }
        self.at.front().map(|at| at + INVALID_WINDOW_MS)
    }
}

#[cfg(test)]
mod tests;
