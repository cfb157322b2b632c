//! When a call may be made: budgets learned from Discord's headers, cool-off after a 429, and a breaker
//! before refused calls endanger the machine's address. Pure: the clock is an argument, in milliseconds of
//! any steady clock.

use std::collections::{BTreeMap, VecDeque};

use crate::discord::error::LimitScope;

/// Calls a second for one bot; Discord allows 50 (`spec/discord.md` 5, row "global").
const GLOBAL_PER_SECOND: u32 = 40;
/// Messages that may follow each other at once in one channel; after that, one a second.
const CHANNEL_BURST: u32 = 5;
/// Refused calls in [`INVALID_WINDOW_MS`] after which we stop; Discord bans the address at 10,000.
pub const INVALID_LIMIT: usize = 1_000;
/// Ten minutes.
const INVALID_WINDOW_MS: u64 = 600_000;
/// Routes remembered before expired ones are forgotten.
const ROUTES_KEPT: usize = 2_000;

/// What the headers of one answer said. Absent or malformed ones are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LimitHeaders {
    /// `X-RateLimit-Bucket`.
    pub bucket: Option<String>,
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

#[derive(Debug, Clone, Copy)]
struct Budget {
    remaining: u32,
    resets_at: u64,
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

/// The limits of one bot.
#[derive(Debug, Clone)]
pub struct Governor {
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
    pub fn new(now: u64) -> Governor {
        Governor {
            global: Pace::new(GLOBAL_PER_SECOND, GLOBAL_PER_SECOND, now),
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

    /// Takes a place for one call, or says when to ask again.
    pub fn admit(&mut self, route: &Route, now: u64) -> Result<(), u64> {
        let mut free_at = now;
        if !route.exempt {
            self.global.refill(now);
            free_at = free_at.max(self.global_until).max(self.global.free_at());
        }
        let key = self.key(route);
        if let Some(budget) = self.budgets.get(&key)
            && budget.remaining == 0
        {
            free_at = free_at.max(budget.resets_at);
        }
        if route.posts {
            let pace = self
                .channels
                .entry(route.major.clone())
                .or_insert_with(|| Pace::new(CHANNEL_BURST, 1, now));
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
        if let Some(budget) = self.budgets.get_mut(&key) {
            if budget.resets_at <= now {
                self.budgets.remove(&key);
            } else {
                budget.remaining = budget.remaining.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Learns from the headers of any answer.
    pub fn learn(&mut self, route: &Route, headers: &LimitHeaders, now: u64) {
        if let Some(bucket) = &headers.bucket {
            self.names.insert(route.key.clone(), bucket.clone());
        }
        if let (Some(remaining), Some(after)) = (headers.remaining, headers.reset_after_ms) {
            let budget = Budget { remaining, resets_at: now + after };
            self.budgets.insert(self.key(route), budget);
        }
        if self.budgets.len() + self.channels.len() > ROUTES_KEPT {
            self.budgets.retain(|_, budget| budget.resets_at > now);
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
                let budget = Budget { remaining: 0, resets_at: until };
                self.budgets.insert(self.key(route), budget);
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
mod tests {
    use super::*;

    fn post() -> Route {
        Route::of("POST", "/channels/7/messages")
    }

    #[test]
    fn minor_ids_and_secrets_do_not_make_routes() {
        let table = [
            ("PATCH", "/channels/1/messages/2", "PATCH channels/*/messages/*", "1"),
            (
                "PUT",
                "/channels/1/messages/2/reactions/%E2%9C%85/@me",
                "PUT channels/*/messages/*/reactions/*/@me",
                "1",
            ),
            ("POST", "/webhooks/5/secret?wait=true", "POST webhooks/*/*", "5/secret"),
            ("POST", "/interactions/5/secret/callback", "POST interactions/*/*/callback", ""),
            ("GET", "/guilds/9/roles", "GET guilds/*/roles", "9"),
            ("GET", "/users/@me", "GET users/@me", ""),
        ];
        for (method, path, key, major) in table {
            let route = Route::of(method, path);
            assert_eq!((route.key.as_str(), route.major.as_str()), (key, major));
        }
        assert!(post().posts);
        assert!(!Route::of("PATCH", "/channels/7/messages/1").posts);
    }

    #[test]
    fn an_exhausted_bucket_waits_for_its_reset_and_routes_share_it() {
        let mut governor = Governor::new(0);
        let headers = LimitHeaders {
            bucket: Some("abc".to_owned()),
            remaining: Some(0),
            reset_after_ms: Some(2_500),
        };
        let edit = Route::of("PATCH", "/channels/7/messages/1");
        governor.learn(&post(), &headers, 1_000);
        governor.learn(&edit, &headers, 1_000);
        assert_eq!(governor.admit(&post(), 1_000), Err(3_500));
        assert_eq!(governor.admit(&edit, 3_499), Err(3_500));
        assert_eq!(governor.admit(&edit, 3_500), Ok(()));
        let elsewhere = Route::of("PATCH", "/channels/8/messages/1");
        assert_eq!(governor.admit(&elsewhere, 1_000), Ok(()));
    }

    #[test]
    fn a_channel_takes_a_burst_and_then_one_message_a_second() {
        let mut governor = Governor::new(0);
        for _ in 0..CHANNEL_BURST {
            assert_eq!(governor.admit(&post(), 0), Ok(()));
        }
        assert_eq!(governor.admit(&post(), 0), Err(1_000));
        assert_eq!(governor.admit(&post(), 1_000), Ok(()));
        assert_eq!(governor.admit(&post(), 1_001), Err(2_000));
        assert_eq!(governor.admit(&Route::of("POST", "/channels/8/messages"), 1_001), Ok(()));
    }

    #[test]
    fn a_global_limit_stops_every_route_but_interactions() {
        let mut governor = Governor::new(0);
        governor.limited(&post(), LimitScope::Global, 5_000, 100);
        let other = Route::of("GET", "/users/@me");
        assert_eq!(governor.admit(&other, 200), Err(5_100));
        let callback = Route::of("POST", "/interactions/1/t/callback");
        assert_eq!(governor.admit(&callback, 200), Ok(()));
        assert_eq!(governor.admit(&other, 5_100), Ok(()));
    }

    #[test]
    fn a_route_limit_stops_only_its_bucket() {
        let mut governor = Governor::new(0);
        governor.limited(&post(), LimitScope::Shared, 5_000, 100);
        assert_eq!(governor.admit(&post(), 200), Err(5_100));
        assert_eq!(governor.admit(&Route::of("GET", "/users/@me"), 200), Ok(()));
    }

    #[test]
    fn no_more_than_forty_calls_start_in_one_instant() {
        let mut governor = Governor::new(0);
        let admitted = (0..100)
            .filter(|n| governor.admit(&Route::of("GET", &format!("/channels/{n}")), 0).is_ok())
            .count();
        assert_eq!(admitted, 40);
        assert_eq!(governor.admit(&Route::of("GET", "/channels/1"), 0), Err(25));
    }

    #[test]
    fn the_breaker_opens_at_its_limit_and_closes_with_time() {
        let mut calls = InvalidCalls::default();
        for n in 0..INVALID_LIMIT as u64 {
            assert_eq!(calls.open_until(n), None);
            calls.count(n);
        }
        assert_eq!(calls.open_until(2_000), Some(600_000));
        assert_eq!(calls.open_until(600_000), None);
    }
}
