//! When the next gateway connection may be made and the next session begun, whatever became of those
//! before. The rules are pure; [`ConnectionLog`] keeps in the workspace what they look at, so that a team
//! that is started again and again is held to them as well.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::discord::bot::Bot;
use crate::discord::endpoints::SessionStarts;
use crate::discord::governor::ConnectionLimits;
use crate::domain::time::Timestamp;
use crate::platform::{clock, files};

/// Where it is kept, relative to the workspace.
const LOG_FILE: &str = ".teams_runtime/discord/connections.json";

/// Ten seconds, and a little for the way: two connections can be further apart here than over there.
const BURST_MS: u64 = 10_500;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// Session starts of the day that are left to a human in trouble; Discord resets the token at none.
const STARTS_IN_RESERVE: u32 = 100;
/// The wait where a server says that there are no more sessions, and not until when.
const SHORTEST_RESET_MS: u64 = 1_000;

/// Why the next connection is not made yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectionDelay {
    /// Until then, in milliseconds since 1970.
    pub(super) until: u64,
    /// For people.
    pub(super) reason: String,
}

impl ConnectionDelay {
    pub(super) fn timestamp(&self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.until).unwrap_or(i64::MAX))
    }
}

/// What the bot of one role may have: the one that listens for the team always finds a connection left.
fn share(limits: ConnectionLimits, bot: Bot) -> ConnectionLimits {
    match bot {
        None => limits,
        Some(_) => ConnectionLimits {
            in_ten_seconds: limits.in_ten_seconds.saturating_sub(1),
            an_hour: limits.an_hour - limits.an_hour * 2 / 5,
        },
    }
}

/// When the window has room again for one more: `at` ascends, and at most `most` lie within `window` ms.
fn room_at(at: &VecDeque<u64>, most: usize, window: u64, now: u64) -> Option<u64> {
    let oldest = at.len().checked_sub(most.max(1))?;
    let until = at.get(oldest)?.saturating_add(window);
    (until > now).then_some(until)
}

/// Why a connection is not made now, by the times of those that were made.
fn hold_connection(
    made: &VecDeque<u64>,
    limits: ConnectionLimits,
    now: u64,
) -> Option<ConnectionDelay> {
    let hour = room_at(made, limits.an_hour, HOUR_MS, now).map(|until| ConnectionDelay {
        until,
        reason: format!(
            "{} connections to discord were made within an hour; more would make its trouble worse",
            limits.an_hour.max(1)
        ),
    });
    let burst = room_at(made, limits.in_ten_seconds, BURST_MS, now).map(|until| ConnectionDelay {
        until,
        reason: format!(
            "{} connections to discord were made within ten seconds; the next ones are spaced out",
            limits.in_ten_seconds.max(1)
        ),
    });
    hour.into_iter().chain(burst).max_by_key(|hold| hold.until)
}

/// Why a session is not begun now: what Discord says is left, what was begun here within a day, and the
/// five seconds between two.
fn hold_identify(
    begun: &VecDeque<u64>,
    starts: &SessionStarts,
    apart: Duration,
    now: u64,
) -> Option<ConnectionDelay> {
    // A server that gives out few is asked for half of them.
    let reserve = STARTS_IN_RESERVE.min(starts.total / 2);
    if starts.remaining <= reserve {
        return Some(ConnectionDelay {
            until: now + starts.reset_after.clamp(SHORTEST_RESET_MS, DAY_MS),
            reason: format!(
                "only {} new sessions are left to this bot until discord counts anew, and discord resets \
                 the token at none, so that the last {reserve} are kept",
                starts.remaining
            ),
        });
    }
    let most = usize::try_from(starts.total - reserve).unwrap_or(usize::MAX);
    if let Some(until) = room_at(begun, most, DAY_MS, now) {
        return Some(ConnectionDelay {
            until,
            reason: format!(
                "{most} sessions were begun within a day, and the last {reserve} are kept"
            ),
        });
    }
    let apart = u64::try_from(apart.as_millis()).unwrap_or(u64::MAX);
    let until = begun.back()?.saturating_add(apart);
    (until > now).then(|| ConnectionDelay {
        until,
        reason: "discord takes one new session in five seconds".to_owned(),
    })
}

/// Times, oldest first, in milliseconds since 1970.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Times {
    #[serde(default)]
    connections: VecDeque<u64>,
    /// Sessions that were begun, by the fingerprint of their bot.
    #[serde(default)]
    identifies: BTreeMap<String, VecDeque<u64>>,
}

impl Times {
    /// Forgets what no rule looks at. A clock that was set back makes nobody wait for longer than a window.
    fn tidy(&mut self, now: u64) {
        let tidy = |at: &mut VecDeque<u64>, window: u64| {
            for time in at.iter_mut() {
                *time = (*time).min(now);
            }
            at.make_contiguous().sort_unstable();
            while at.front().is_some_and(|time| time.saturating_add(window) <= now) {
                at.pop_front();
            }
        };
        tidy(&mut self.connections, HOUR_MS);
        for begun in self.identifies.values_mut() {
            tidy(begun, DAY_MS);
        }
        self.identifies.retain(|_, begun| !begun.is_empty());
    }
}

/// Every connection of the team's bots within an hour, and every session that was begun within a day.
#[derive(Debug)]
pub(crate) struct ConnectionLog {
    path: PathBuf,
    limits: ConnectionLimits,
    times: Mutex<Times>,
}

fn now_ms() -> u64 {
    u64::try_from(clock::now().timestamp_millis()).unwrap_or(0)
}

impl ConnectionLog {
    /// The log of a workspace. A damaged one is begun anew.
    pub(crate) fn of(workspace: &Path, limits: ConnectionLimits) -> ConnectionLog {
        let path = workspace.join(LOG_FILE);
        let text = files::read_text_if_present(&path).ok().flatten().unwrap_or_default();
        let times = Mutex::new(serde_json::from_str(&text).unwrap_or_default());
        ConnectionLog { path, limits, times }
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, times: &Times) {
        let text = serde_json::to_vec(times).unwrap_or_default();
        if let Err(error) = files::write_atomic(&self.path, text) {
            tracing::debug!(%error, "when discord was connected to was not written down");
        }
    }

    /// Why a bot may not connect now.
    pub(super) fn hold(&self, bot: Bot) -> Option<ConnectionDelay> {
        let now = now_ms();
        let mut times = self.lock();
        times.tidy(now);
        hold_connection(&times.connections, share(self.limits, bot), now)
    }

    /// Counts a connection, which is to be made at once; or says why it may not be made.
    pub(super) fn take(&self, bot: Bot) -> Result<(), ConnectionDelay> {
        let now = now_ms();
        let mut times = self.lock();
        times.tidy(now);
        if let Some(hold) = hold_connection(&times.connections, share(self.limits, bot), now) {
            return Err(hold);
        }
        times.connections.push_back(now);
        self.write(&times);
        Ok(())
    }

    /// Why a bot may not begin a session now.
    pub(super) fn hold_identify(
        &self,
        fingerprint: &str,
        starts: &SessionStarts,
        apart: Duration,
    ) -> Option<ConnectionDelay> {
        let now = now_ms();
        let mut times = self.lock();
        times.tidy(now);
        let none = VecDeque::new();
        hold_identify(times.identifies.get(fingerprint).unwrap_or(&none), starts, apart, now)
    }

    /// Counts a session that is begun.
    pub(super) fn identified(&self, fingerprint: &str) {
        let mut times = self.lock();
        times.identifies.entry(fingerprint.to_owned()).or_default().push_back(now_ms());
        self.write(&times);
    }
}

/// How long until then.
pub(super) fn until(hold: &ConnectionDelay) -> Duration {
    Duration::from_millis(hold.until.saturating_sub(now_ms()).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits { in_ten_seconds: 5, an_hour: 100 };

    /// Connects as soon as it may, for so long; the times.
    fn storm(limits: ConnectionLimits, for_ms: u64) -> VecDeque<u64> {
        let mut times = Times::default();
        let mut now = 1_000_000;
        let end = now + for_ms;
        while now < end {
            times.tidy(now);
            match hold_connection(&times.connections, limits, now) {
                Some(hold) => {
                    assert!(hold.until > now && hold.until <= now + HOUR_MS);
                    now = hold.until;
                }
                None => times.connections.push_back(now),
            }
        }
        times.connections
    }

    #[test]
    fn no_ten_seconds_ever_see_more_than_five_connections_and_no_hour_more_than_a_hundred() {
        let made = storm(LIMITS, HOUR_MS);
        assert_eq!(made.len(), 100);
        for (at, first) in made.iter().enumerate() {
            let within = made.iter().skip(at).take_while(|time| **time <= first + 10_000);
            assert!(within.count() <= 5);
        }
        // The bots of roles leave some of both to the one that listens.
        let role = share(LIMITS, Some(crate::domain::role::Role::Qa));
        assert_eq!((role.in_ten_seconds, role.an_hour), (4, 60));
        assert_eq!(storm(role, HOUR_MS).len(), 60);
        assert_eq!(share(LIMITS, None), LIMITS);
    }

    #[test]
    fn the_next_connection_waits_for_the_window_that_ends_last() {
        let made: VecDeque<u64> = (0..5).map(|second| second * 1_000).collect();
        assert_eq!(hold_connection(&made, LIMITS, BURST_MS), None);
        let hold = hold_connection(&made, LIMITS, 5_000).unwrap();
        assert_eq!(hold.until, BURST_MS);
        assert!(hold.reason.contains("5 connections"), "{}", hold.reason);
        let made: VecDeque<u64> = (0..100).map(|number| number * 20_000).collect();
        let hold = hold_connection(&made, LIMITS, 2_000_000).unwrap();
        assert_eq!(hold.until, HOUR_MS);
        assert!(hold.reason.contains("100 connections"), "{}", hold.reason);
        assert_eq!(hold_connection(&made, LIMITS, HOUR_MS), None);
    }

    #[test]
    fn the_last_hundred_sessions_of_the_day_are_kept_whatever_the_server_says() {
        let starts = |total, remaining| SessionStarts { total, remaining, reset_after: 7_200_000 };
        let apart = Duration::from_secs(5);
        let now = 2 * DAY_MS;
        let none = VecDeque::new();
        for (total, remaining, held) in [
            (1_000, 1_000, false),
            (1_000, 101, false),
            (1_000, 100, true),
            (1_000, 0, true),
            (100, 51, false),
            (100, 50, true),
            (0, 1, false),
        ] {
            let hold = hold_identify(&none, &starts(total, remaining), apart, now);
            assert_eq!(hold.is_some(), held, "{total} {remaining}");
            assert!(hold.is_none_or(|hold| hold.until == now + 7_200_000));
        }
        // A server that always says that all are left is not believed.
        let begun: VecDeque<u64> =
            (0..900).map(|number| now - 60_000_000 + number * 10_000).collect();
        let hold = hold_identify(&begun, &starts(1_000, 1_000), apart, now).unwrap();
        assert_eq!(hold.until, now - 60_000_000 + DAY_MS);
        // Two are five seconds apart.
        let begun = VecDeque::from([now - 2_000]);
        let hold = hold_identify(&begun, &starts(1_000, 1_000), apart, now).unwrap();
        assert_eq!(hold.until, now + 3_000);
        assert_eq!(hold_identify(&begun, &starts(1_000, 1_000), Duration::ZERO, now), None);
    }

    #[test]
    fn a_restart_a_damaged_log_and_a_clock_set_back_change_nothing_for_long() {
        let folder = tempfile::tempdir().unwrap();
        files::create_dir_all(&folder.path().join(".teams_runtime/discord")).unwrap();
        let log = || ConnectionLog::of(folder.path(), LIMITS);
        for _ in 0..5 {
            // Each a process of its own.
            assert_eq!(log().take(None), Ok(()));
        }
        assert!(log().take(None).is_err() && log().hold(None).is_some());
        log().identified("bot");
        let starts = SessionStarts { total: 1_000, remaining: 1_000, reset_after: 0 };
        let hold = log().hold_identify("bot", &starts, Duration::from_secs(3_000));
        assert!(hold.is_some());
        assert_eq!(log().hold_identify("other", &starts, Duration::from_secs(3_000)), None);
        let mut times = Times { connections: [9, 8, u64::MAX].into(), ..Times::default() };
        times.tidy(1_000);
        assert_eq!(times.connections, [8, 9, 1_000]);
        files::write(&folder.path().join(LOG_FILE), "{\"connections\": 5").unwrap();
        assert_eq!(log().take(None), Ok(()));
    }
}
