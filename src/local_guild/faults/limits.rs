//! Rate limits as the platform keeps them: a bucket a route and major parameter, one for the whole bot,
//! the count of invalid requests, and the edits of old messages. Only what is ordered is enforced.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::local_guild::ids::Id;

/// Whose limit a 429 speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// One bot on one route.
    User,
    /// Everybody on one resource; it does not count as invalid.
    Shared,
    /// One bot on all routes.
    Global,
}

/// Limits that are told by headers and kept.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// Requests to one route in one window; zero knows no limit.
    #[serde(default = "five")]
    pub(crate) per_route: u32,
    /// The length of a route's window.
    #[serde(default = "five_seconds")]
    pub(crate) seconds: f64,
    /// Requests of one bot in one second, over all routes; zero knows no limit.
    #[serde(default = "fifty")]
    pub(crate) global: u32,
}

fn five() -> u32 {
    5
}

fn five_seconds() -> f64 {
    5.0
}

fn fifty() -> u32 {
    50
}

/// Which edits are refused: those beyond `most` of one message that is older than so many seconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edits {
    #[serde(default = "hour")]
    pub(crate) older_than_seconds: i64,
    #[serde(default)]
    pub(crate) most: u32,
}

fn hour() -> i64 {
    3600
}

/// How long invalid requests are remembered.
const INVALID_WINDOW: Duration = Duration::from_secs(600);

/// A window in which requests are counted.
#[derive(Debug)]
struct Window {
    ends: Instant,
    used: u32,
}

/// Where a request stands in its bucket.
#[derive(Debug, Clone)]
pub(super) struct RateLimitState {
    pub(super) limit: u32,
    pub(super) remaining: u32,
    pub(super) reset_after: f64,
    pub(super) bucket: String,
    /// Set when the request is over a limit.
    pub(super) refused: Option<Scope>,
}

/// What is counted while the server runs.
#[derive(Debug, Default)]
pub(super) struct Counters {
    routes: HashMap<String, Window>,
    bots: HashMap<String, Window>,
    edits: HashMap<Id, u32>,
    invalid: Option<Window>,
    /// Requests answered with 429 by a limit, not by an injected fault.
    limited: u64,
}

impl Counters {
    /// Counts a request against its limits.
    pub(super) fn count(&mut self, limits: Limits, bot: &str, route: &Route) -> RateLimitState {
        let now = Instant::now();
        let window = Duration::try_from_secs_f64(limits.seconds).unwrap_or(Duration::from_secs(5));
        let key = format!("{bot} {} {}", route.pattern, route.major);
        let found = fresh(self.routes.entry(key), now, window);
        let mut refused = None;
        if limits.per_route > 0 && found.used >= limits.per_route {
            refused = Some(Scope::User);
        }
        let mut reset_after = (found.ends - now).as_secs_f64();
        let mut remaining = limits.per_route.saturating_sub(found.used);
        if refused.is_none() && limits.global > 0 && !route.exempt {
            let whole = fresh(self.bots.entry(bot.to_owned()), now, Duration::from_secs(1));
            if whole.used >= limits.global {
                refused = Some(Scope::Global);
                reset_after = (whole.ends - now).as_secs_f64();
            } else {
                whole.used += 1;
            }
        }
        match refused {
            Some(_) => self.limited += 1,
            None => {
                found.used += 1;
                remaining = remaining.saturating_sub(1);
            }
        }
        RateLimitState {
            limit: limits.per_route,
            remaining,
            reset_after,
            bucket: bucket(&route.pattern),
            refused,
        }
    }

    /// Counts an invalid request.
    pub(super) fn invalid(&mut self) {
        let now = Instant::now();
        let window =
            self.invalid.get_or_insert_with(|| Window { ends: now + INVALID_WINDOW, used: 0 });
        if window.ends <= now {
            *window = Window { ends: now + INVALID_WINDOW, used: 0 };
        }
        window.used += 1;
    }

    /// How long this machine is shut out, if it has sent too many invalid requests.
    pub(super) fn banned(&self, limit: u32) -> Option<Duration> {
        let window = self.invalid.as_ref()?;
        let left = window.ends.saturating_duration_since(Instant::now());
        (window.used >= limit && !left.is_zero()).then_some(left)
    }

    /// Counts an edit; false where it is refused.
    pub(super) fn edit(&mut self, rule: Edits, message: Id, now: DateTime<Utc>) -> bool {
        let age = now - message.time();
        if chrono::Duration::try_seconds(rule.older_than_seconds).is_none_or(|least| age < least) {
            return true;
        }
        let used = self.edits.entry(message).or_default();
        *used += 1;
        *used <= rule.most
    }

    pub(super) fn summary(&self, limit: u32) -> Value {
        json!({
            "limited": self.limited, "invalid": self.invalid.as_ref().map_or(0, |it| it.used),
            "banned": self.banned(limit).is_some(),
        })
    }
}

fn fresh<K>(
    entry: std::collections::hash_map::Entry<'_, K, Window>,
    now: Instant,
    length: Duration,
) -> &mut Window {
    let window = entry.or_insert_with(|| Window { ends: now + length, used: 0 });
    if window.ends <= now {
        *window = Window { ends: now + length, used: 0 };
    }
    window
}

/// A bucket's name, which says nothing about the route, as on the platform.
fn bucket(pattern: &str) -> String {
    format!("{:08x}", crc32fast::hash(pattern.as_bytes()))
}

/// A request's route: its pattern, and the parameter by which the platform keeps buckets apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) pattern: String,
    pub(super) major: String,
    /// Answers to interactions do not count against the whole.
    pub(super) exempt: bool,
    /// The message that is edited, if it is an edit.
    pub(super) edited: Option<Id>,
}

impl Route {
    /// The route of a request below `/api`.
    pub(super) fn new(method: &str, path: &str) -> Route {
        let path = path.trim_start_matches("/api");
        let parts = path.split('/').filter(|it| !it.is_empty() && !matches!(*it, "v9" | "v10"));
        let parts: Vec<&str> = parts.collect();
        let mut pattern = method.to_owned();
        let mut major = String::new();
        let mut before = "";
        for (at, part) in parts.iter().enumerate() {
            let token = at == 2 && matches!(parts.first(), Some(&"webhooks" | &"interactions"));
            let number = part.parse::<Id>().is_ok();
            if (at == 1 && number) || token {
                major.push_str(part);
                major.push(' ');
            }
            let variable = number || token || before == "reactions";
            pattern.push('/');
            pattern.push_str(if variable { "*" } else { part });
            before = part;
        }
        let edited = match (method, parts.as_slice()) {
            ("PATCH", [.., "messages", id]) => id.parse().ok(),
            _ => None,
        };
        Route { pattern, major, exempt: parts.first() == Some(&"interactions"), edited }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_told_apart_by_its_major_parameter_alone() {
        let one = Route::new("PATCH", "/api/v10/channels/1/messages/2");
        let two = Route::new("PATCH", "/api/v10/channels/1/messages/3");
        assert_eq!((&one.pattern, &one.major), (&two.pattern, &two.major));
        assert_eq!(two.edited, "3".parse().ok());
        assert_ne!(one.major, Route::new("PATCH", "/api/v10/channels/9/messages/2").major);
        assert_ne!(one.pattern, Route::new("DELETE", "/api/v10/channels/1/messages/2").pattern);
        let hook = Route::new("POST", "/api/v10/webhooks/5/abc");
        assert_eq!((hook.pattern.as_str(), hook.major.as_str()), ("POST/webhooks/*/*", "5 abc "));
        let reaction = Route::new("PUT", "/api/v10/channels/1/messages/2/reactions/%E2%9C%85/@me");
        assert_eq!(reaction.pattern, "PUT/channels/*/messages/*/reactions/*/@me");
    }

    #[test]
    fn a_window_lets_so_many_through_and_says_how_long_to_wait() {
        let limits = Limits { per_route: 2, seconds: 60.0, global: 3 };
        let mut counters = Counters::default();
        let (one, two) = (Route::new("GET", "/api/a"), Route::new("GET", "/api/b"));
        let taken: Vec<_> =
            [&one, &one, &one, &two, &two].map(|it| counters.count(limits, "bot", it)).to_vec();
        let left: Vec<u32> = taken.iter().map(|it| it.remaining).collect();
        assert_eq!(left, [1, 0, 0, 1, 1]);
        let refused: Vec<_> = taken.iter().map(|it| it.refused).collect();
        assert_eq!(refused, [None, None, Some(Scope::User), None, Some(Scope::Global)]);
        assert!(taken[2].reset_after > 50.0 && taken[4].reset_after <= 1.0);
        assert_eq!(counters.count(limits, "other", &one).refused, None);
    }
}
