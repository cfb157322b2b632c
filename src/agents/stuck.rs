//! Signs that an agent goes in circles: the same call over and over, tools that only fail, a model that is
//! only tried again (`spec/agents.md` 5.3). Pure: events and the time go in, a sign comes out.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::blame::classify;
use crate::agents::codec::Event;
use crate::domain::run::FailKind;

/// How often the same call may be made in all, as a multiple of how often in a row.
const IN_ALL: u32 = 3;
/// Milliseconds between two same calls of which the second one looks whether something is done.
const SLOWLY: u64 = 20_000;
/// Calls that are remembered in one run.
const CALLS: usize = 4096;
/// Characters of a call that a sign quotes.
const QUOTED: usize = 120;

/// From where on an agent is taken to be stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Patience {
    /// Identical calls in a row; three times as many in all, as long as it changes no file.
    pub same_calls: u32,
    /// Attempts in a row to reach its model.
    pub retries: u32,
    /// Milliseconds of such attempts.
    pub retrying_ms: u64,
    /// How many of its last tools are looked at,
    pub last_tools: usize,
    /// and how many of a hundred of them may have failed.
    pub failing_percent: usize,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            same_calls: 10,
            retries: 20,
            retrying_ms: 5 * 60 * 1000,
            last_tools: 20,
            failing_percent: 80,
        }
    }
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sign {
    /// The same call, so many times.
    Same { call: String, times: u32 },
    /// So many of so many tools failed.
    Failing { failed: usize, of: usize },
    /// Its model does not answer.
    Retrying { times: u32, reason: String },
}

impl Sign {
    /// What it does, in words that fit behind "you" and "it".
    pub(super) fn words(&self) -> String {
        match self {
            Sign::Same { call, times } => format!("made the same call {times} times: {call}"),
            Sign::Failing { failed, of } => format!("had {failed} of the last {of} calls fail"),
            Sign::Retrying { times, reason } => {
                format!("tried {times} times to reach the model and got no answer; last: {reason}")
            }
        }
    }

    /// Whether being told may help. Nobody hears it while the model does not answer.
    pub(super) fn is_for_the_agent(&self) -> bool {
        match self {
            Sign::Same { .. } | Sign::Failing { .. } => true,
            Sign::Retrying { .. } => false,
        }
    }

    /// The kind of failure that a run has which ends for it. A model that does not answer is not the
    /// agent's fault: what it was told on the way says whose it is.
    pub(super) fn kind(&self) -> FailKind {
        match self {
            Sign::Same { .. } | Sign::Failing { .. } => FailKind::Stuck,
            Sign::Retrying { reason, .. } => classify(reason).unwrap_or(FailKind::Stuck),
        }
    }
}

/// A call by what it is made with, so that two can be compared.
pub(super) fn digest(name: &str, input: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, input.to_string()).hash(&mut hasher);
    hasher.finish()
}

/// Counts what an agent does.
#[derive(Debug)]
pub(super) struct Habits {
    patience: Patience,
    /// The last call, and when it was made.
    last: Option<(u64, u64)>,
    in_a_row: u32,
    calls: BTreeMap<u64, u32>,
    ended: VecDeque<bool>,
    retries: u32,
    retrying_since: u64,
}

impl Habits {
    pub(super) fn new(patience: Patience) -> Habits {
        Habits {
            patience,
            last: None,
            in_a_row: 0,
            calls: BTreeMap::new(),
            ended: VecDeque::new(),
            retries: 0,
            retrying_since: 0,
        }
    }

    /// Begins to count anew: it was told.
    pub(super) fn forget(&mut self) {
        *self = Habits::new(self.patience);
    }

    /// Notes an event that came at a time in milliseconds, of whatever clock.
    pub(super) fn note(&mut self, event: &Event, now: u64) -> Option<Sign> {
        match event {
            Event::Call { name, digest } => {
                self.retries = 0;
                self.called(name, *digest, now)
            }
            Event::ToolEnd { ok, .. } => {
                self.retries = 0;
                self.tool_ended(*ok)
            }
            Event::Retry(reason) => self.tried_again(reason, now),
            Event::Files(_) => {
                // The same test after another edit is no circle.
                self.calls.clear();
                self.last = None;
                None
            }
            Event::Text(_) | Event::Thought(_) => {
                self.retries = 0;
                None
            }
            Event::Session(_)
            | Event::ToolStart { .. }
            | Event::LimitEnds(_)
            | Event::Warning(_)
            | Event::Context { .. }
            | Event::Usage(_)
            | Event::Used(_)
            | Event::Agent(_)
            | Event::Heard(_)
            | Event::UsageTotal(_)
            | Event::Done
            | Event::Failed { .. } => None,
        }
    }

    fn called(&mut self, name: &str, digest: u64, now: u64) -> Option<Sign> {
        self.in_a_row = match self.last {
            // Now and then it looks whether something is done: that counts in all alone.
            Some((last, at)) if last == digest && now.saturating_sub(at) >= SLOWLY => self.in_a_row,
            Some((last, _)) if last == digest => self.in_a_row + 1,
            Some(_) | None => 1,
        };
        self.last = Some((digest, now));
        if self.calls.len() >= CALLS {
            self.calls.clear();
        }
        let in_all = self.calls.entry(digest).or_default();
        *in_all += 1;
        let limit = self.patience.same_calls.max(2);
        let times = match (self.in_a_row >= limit, *in_all >= limit.saturating_mul(IN_ALL)) {
            (true, _) => self.in_a_row,
            (false, true) => *in_all,
            (false, false) => return None,
        };
        let call = name.split_whitespace().collect::<Vec<_>>().join(" ");
        let call = call.chars().take(QUOTED).collect();
        Some(Sign::Same { call, times })
    }

    fn tool_ended(&mut self, ok: bool) -> Option<Sign> {
        self.ended.push_back(ok);
        let of = self.patience.last_tools.max(1);
        while self.ended.len() > of {
            self.ended.pop_front();
        }
        let failed = self.ended.iter().filter(|ok| !**ok).count();
        let full = self.ended.len() == of;
        let failing = full && failed * 100 >= of * self.patience.failing_percent;
        failing.then_some(Sign::Failing { failed, of })
    }

    fn tried_again(&mut self, reason: &str, now: u64) -> Option<Sign> {
        if self.retries == 0 {
            self.retrying_since = now;
        }
        self.retries += 1;
        let long = now.saturating_sub(self.retrying_since) > self.patience.retrying_ms;
        let sign = || Sign::Retrying { times: self.retries, reason: reason.to_owned() };
        // One that tries again now and then goes on in between, also where it does not say so.
        let often = self.retries > 2;
        (self.retries > self.patience.retries || (long && often)).then(sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(digest: u64) -> Event {
        Event::Call { name: "Bash  ls".to_owned(), digest }
    }

    fn end(ok: bool) -> Event {
        Event::ToolEnd { id: "t".to_owned(), ok }
    }

    fn habits() -> Habits {
        Habits::new(Patience::default())
    }

    /// The first sign, and after how many events it came.
    fn first(events: impl IntoIterator<Item = Event>) -> Option<(usize, Sign)> {
        let mut habits = habits();
        events
            .into_iter()
            .enumerate()
            .find_map(|(at, event)| Some((at + 1, habits.note(&event, 0)?)))
    }

    #[test]
    fn the_same_call_is_a_sign_in_a_row_and_in_all() {
        let same = |times| Sign::Same { call: "Bash ls".to_owned(), times };
        assert_eq!(first(vec![call(1); 9]), None);
        assert_eq!(first(vec![call(1); 10]), Some((10, same(10))));
        let by_turns: Vec<Event> = (0..100).map(|at| call(at % 2)).collect();
        assert_eq!(first(by_turns), Some((59, same(30))));
        // Between edits it may be made as often as it takes.
        let edits = (0..100).flat_map(|_| [Event::Files(Vec::new()), call(1), end(true)]);
        assert_eq!(first(edits), None);
        let others: Vec<Event> = (0..10_000).map(call).collect();
        assert_eq!(first(others), None);
    }

    #[test]
    fn who_looks_now_and_then_whether_something_is_done_is_patient() {
        let mut habits = habits();
        let found = (0..100).find(|at| habits.note(&call(1), at * 60_000).is_some());
        assert_eq!(found, Some(29), "in all it is too often at last");
    }

    #[test]
    fn tools_that_mostly_fail_are_a_sign() {
        let mixed = |every: usize| (0..40).map(move |at| end(at % every == 0));
        assert_eq!(first(mixed(4)), None);
        assert_eq!(first(mixed(5)), Some((20, Sign::Failing { failed: 16, of: 20 })));
        assert_eq!(first(vec![end(false); 19]), None);
    }

    #[test]
    fn a_model_that_is_only_tried_again_is_a_sign_and_whose_fault_it_is_known() {
        let retry = || Event::Retry("429 too many requests".to_owned());
        let (at, sign) = first(std::iter::repeat_with(retry).take(50)).unwrap();
        assert_eq!((at, sign.kind(), sign.is_for_the_agent()), (21, FailKind::RateLimit, false));
        let mut habits = habits();
        assert_eq!(habits.note(&retry(), 1_000), None);
        assert_eq!(habits.note(&retry(), 301_000), None);
        assert!(habits.note(&retry(), 301_001).is_some());
        habits.note(&Event::Text("it answers".to_owned()), 301_002);
        assert_eq!(habits.note(&retry(), 900_000), None);
    }

    #[test]
    fn after_a_hint_it_has_as_many_again() {
        let mut habits = habits();
        let mut signs = 0;
        for at in 1..=20 {
            if habits.note(&call(1), 0).is_some() {
                signs += 1;
                assert!(at == 10 || at == 20, "{at}");
                habits.forget();
            }
        }
        assert_eq!(signs, 2);
    }
}
