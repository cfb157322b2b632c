//! Gateway sessions and the page's feed: numbered events, kept so that a reader can come back.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::event::{Audience, Frame, intent, without_content};
use super::ids::Id;
use crate::platform::ids;

/// Events kept for readers that come back.
const RING: usize = 2_000;

/// Sessions that a bot may open in a day.
pub(crate) const STARTS: u32 = 1000;

/// Logins that a bot may begin at once, before it has to wait for its turn.
pub(crate) const MAX_CONCURRENCY: u32 = 1;

/// How long logins are counted.
const DAY: Duration = Duration::from_secs(86_400);

/// Sessions of a bot that are kept while nobody is connected to them, the oldest forgotten first.
const UNCONNECTED: usize = 8;

/// A numbered line of events that readers follow at their own pace.
#[derive(Debug)]
pub(crate) struct Ring {
    kept: Mutex<EventBuffer>,
    head: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct EventBuffer {
    last: u64,
    events: VecDeque<(u64, Arc<str>)>,
}

/// The reader asked for events that are not kept any more, or never were.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventsGone;

impl Ring {
    fn new() -> Ring {
        Ring { kept: Mutex::default(), head: watch::Sender::new(0) }
    }

    /// Adds the event that `make` builds around its number.
    pub(crate) fn push(&self, make: impl FnOnce(u64) -> String) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let number = kept.last;
        kept.events.push_back((number, make(number).into()));
        if kept.events.len() > RING {
            kept.events.pop_front();
        }
        // Still under the lock, so that the number shown never goes back.
        self.head.send_replace(number);
    }

    /// The number of the newest event.
    pub(crate) fn last(&self) -> u64 {
        *self.head.borrow()
    }

    /// The events after a number.
    pub(crate) fn after(&self, number: u64) -> Result<Vec<(u64, Arc<str>)>, EventsGone> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let first = kept.last - kept.events.len() as u64;
        if number > kept.last || number < first {
            return Err(EventsGone);
        }
        let skip = usize::try_from(number - first).unwrap_or(usize::MAX);
        Ok(kept.events.iter().skip(skip).cloned().collect())
    }

    /// Wakes when there is something new.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }
}

/// One bot's session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) user: Id,
    pub(crate) intents: u64,
    pub(crate) ring: Ring,
    /// Counts connections, so that a later one takes the session over from an earlier.
    pub(crate) generation: watch::Sender<u64>,
    /// Connections that are open now: for a moment two, while one takes over.
    pub(crate) connected: AtomicUsize,
    /// The presence that the bot asked for last; it comes back with a resume.
    pub(crate) shown: Mutex<Value>,
}

/// The text of a dispatch.
fn dispatch(number: u64, name: &str, data: &Value) -> String {
    json!({"op": 0, "s": number, "t": name, "d": data}).to_string()
}

impl Session {
    /// Tells this session alone of an event.
    pub(crate) fn send(&self, name: &str, data: &Value) {
        self.ring.push(|number| json!({"op": 0, "s": number, "t": name, "d": data}).to_string());
    }

    fn hears(&self, frame: &Frame) -> bool {
        let wanted = frame.intents == 0
            || self.intents & frame.intents != 0
            || frame.always == Some(self.user);
        match &frame.audience {
            Audience::Bots(ids) => wanted && ids.contains(&self.user),
            Audience::Page(_) => false,
        }
    }

    /// Adds an event, blanking content that this session may not read.
    pub(crate) fn push(&self, frame: &Frame) {
        let blank = match &frame.readers {
            Some(readers) => {
                self.intents & intent::MESSAGE_CONTENT == 0 && !readers.contains(&self.user)
            }
            None => false,
        };
        self.ring.push(|number| {
            if blank {
                dispatch(number, frame.name, &without_content(frame.data.clone()))
            } else {
                dispatch(number, frame.name, &frame.data)
            }
        });
    }
}

/// Every session, and the page's feed.
#[derive(Debug)]
pub(crate) struct Sessions {
    all: Mutex<VecDeque<Arc<Session>>>,
    /// Logins by bot, and since when they are counted.
    starts: Mutex<HashMap<Id, (Instant, u32)>>,
    /// When a bot's last login was let in.
    turns: Mutex<HashMap<Id, Instant>>,
    /// What bots show beside their names, as long as they are here.
    presences: Mutex<HashMap<Id, Value>>,
    /// What the page follows.
    pub(crate) feed: Ring,
    /// Tells one run of the server from the next, so that the page starts over.
    pub(crate) epoch: String,
}

impl Sessions {
    pub(crate) fn new() -> Sessions {
        Sessions {
            all: Mutex::default(),
            starts: Mutex::default(),
            turns: Mutex::default(),
            presences: Mutex::default(),
            feed: Ring::new(),
            epoch: ids::random_hex(12),
        }
    }

    /// Looks at a bot's logins of the day, which begins anew when it is over; returns the time left.
    fn starts_of(&self, user: Id, look: impl FnOnce(&mut u32)) -> Duration {
        let now = Instant::now();
        let mut all = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = all.entry(user).or_insert((now, 0));
        if now - *since >= DAY {
            (*since, *count) = (now, 0);
        }
        look(count);
        DAY - (now - *since)
    }

    /// How many sessions a bot may still open today, and how long the day still is.
    pub(crate) fn starts_left(&self, user: Id) -> (u32, Duration) {
        let mut used = 0;
        let left = self.starts_of(user, |count| used = *count);
        (STARTS.saturating_sub(used), left)
    }

    /// Whether a bot may log in now: not too soon after its last login.
    pub(crate) fn take_turn(&self, user: Id, now: Instant, apart: Duration) -> bool {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let free = turns.get(&user).is_none_or(|last| now.duration_since(*last) >= apart);
        if free {
            turns.insert(user, now);
        }
        free
    }

    /// Opens a session for a bot.
    pub(crate) fn open(&self, user: Id, intents: u64) -> Arc<Session> {
        self.starts_of(user, |count| *count += 1);
        let session = Arc::new(Session {
            id: ids::random_hex(32),
            user,
            intents,
            ring: Ring::new(),
            generation: watch::Sender::new(0),
            connected: AtomicUsize::new(0),
            shown: Mutex::default(),
        });
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back(Arc::clone(&session));
        // One that is connected stays, however old it is.
        let is_idle =
            |it: &Arc<Session>| it.user == user && it.connected.load(Ordering::SeqCst) == 0;
        let idle = all.iter().filter(|it| is_idle(it)).count();
        let mut surplus = idle.saturating_sub(UNCONNECTED);
        all.retain(|it| {
            let goes = surplus > 0 && is_idle(it);
            surplus -= usize::from(goes);
            !goes
        });
        session
    }

    /// Keeps what a bot shows; offline is not kept.
    pub(crate) fn show(&self, user: Id, shown: Value) {
        let mut all = self.presences.lock().unwrap_or_else(PoisonError::into_inner);
        if shown["status"] == "offline" {
            all.remove(&user);
        } else {
            all.insert(user, shown);
        }
    }

    /// What every bot that is here shows.
    pub(crate) fn presences(&self) -> HashMap<Id, Value> {
        self.presences.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The session of that id, if it belongs to the bot.
    pub(crate) fn find(&self, id: &str, user: Id) -> Option<Arc<Session>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|session| session.id == id && session.user == user).cloned()
    }

    /// Forgets a session.
    pub(crate) fn close(&self, id: &str) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|session| session.id != id);
    }

    /// Hands an event to the page alone.
    pub(crate) fn publish_to_page(&self, frame: &Frame) {
        let only = match &frame.audience {
            Audience::Page(Some(id)) => Some(*id),
            Audience::Page(None) | Audience::Bots(_) => None,
        };
        self.feed.push(|number| {
            json!({"n": number, "t": frame.name, "d": frame.data, "only": only}).to_string()
        });
    }

    /// Hands an event to bots alone.
    pub(crate) fn publish_to_bots(&self, frame: &Frame) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for session in all.iter().filter(|session| session.hears(frame)) {
            session.push(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bot_logs_in_once_in_five_seconds_and_a_refused_login_takes_no_turn() {
        let sessions = Sessions::new();
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let (one, other) = ("1".parse().unwrap(), "2".parse().unwrap());
        for (bot, second, free) in [
            (one, 0, true),
            (other, 0, true),
            (one, 1, false),
            (one, 4, false),
            (one, 5, true),
            (one, 9, false),
            (one, 10, true),
        ] {
            let taken = sessions.take_turn(bot, at(second), Duration::from_secs(5));
            assert_eq!(taken, free, "{bot:?} at {second}");
        }
    }

    #[test]
    fn a_session_that_is_in_use_is_not_forgotten_and_others_are_few() {
        let sessions = Sessions::new();
        let (one, other) = ("1".parse().unwrap(), "2".parse().unwrap());
        let used = sessions.open(one, 0);
        used.connected.fetch_add(1, Ordering::SeqCst);
        let beside = sessions.open(other, 0);
        let later: Vec<_> = (0..20).map(|_| sessions.open(one, 0)).collect();
        assert!(sessions.find(&used.id, one).is_some());
        assert!(sessions.find(&beside.id, other).is_some());
        let found = later.iter().map(|it| sessions.find(&it.id, one).is_some());
        let expected = (0..20).map(|at| at >= 20 - UNCONNECTED);
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_ring_gives_back_what_came_after_and_says_what_it_lost() {
        let ring = Ring::new();
        for _ in 0..RING + 5 {
            ring.push(|number| number.to_string());
        }
        let last = ring.last();
        assert_eq!(ring.after(last).unwrap().len(), 0);
        assert_eq!(&*ring.after(last - 2).unwrap()[0].1, (last - 1).to_string());
        assert_eq!(ring.after(5).unwrap().len(), RING);
        assert_eq!(ring.after(4), Err(EventsGone));
        assert_eq!(ring.after(last + 1), Err(EventsGone));
    }
}
