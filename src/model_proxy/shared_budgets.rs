//! What runs under way have spent of the budgets that they share: the engine learns it when each is over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::domain::budget::{Allowance, SharedBudgets};
use crate::domain::ids::RunId;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

/// A generation of a run, and what it may spend.
#[derive(Debug, Clone)]
pub struct RunAllowance {
    /// The run.
    pub run_id: RunId,
    /// Its generation.
    pub generation: u32,
    /// When that began.
    pub began: Timestamp,
    /// The model that is asked for: its price counts where the one that answers has none.
    pub model: String,
    /// Tokens that a conversation holds at most.
    pub window: u64,
    /// What it may spend by itself.
    pub allowance: Allowance,
    /// What others spend from as well.
    pub shared: SharedBudgets,
}

/// What one run has spent.
#[derive(Debug)]
pub(super) struct RunSpending {
    of: RunAllowance,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    usage: Usage,
    /// What its dearest answers cost.
    dearest: Option<Usage>,
    /// What each call under way is expected to cost.
    open: BTreeMap<u64, Usage>,
    /// Calls so far, by which they are told apart.
    calls: u64,
}

impl RunSpending {
    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usage(&self) -> Usage {
        self.spent().usage
    }

    pub(super) fn set(&self, usage: Usage) {
        self.spent().usage = usage;
    }

    /// A server says what an answer cost.
    pub(super) fn answered(&self, answer: Usage) {
        let mut spent = self.spent();
        spent.dearest = Some(spent.dearest.unwrap_or_default().max(answer));
    }

    /// What is expected of its calls under way.
    pub(super) fn under_way(&self) -> Usage {
        self.spent().open.values().copied().fold(Usage::default(), Usage::plus)
    }

    /// What it has spent, with what is expected of its calls under way; none where there is none.
    fn expected(&self) -> Option<Usage> {
        let spent = self.spent();
        let open = spent.open.values().copied().reduce(Usage::plus)?;
        Some(spent.usage.plus(open))
    }

    /// Whether what another has spent is missing in what was left when this one began: it was under way then, or
    /// began later.
    fn counts(&self, other: &Self) -> bool {
        other.of.began >= self.of.began
            || self.of.shared.beside.contains(&(other.of.run_id.clone(), other.of.generation))
    }
}

/// Runs that are over and may still count: the engine hears of them a moment later.
const REMEMBERED: usize = 64;

/// All whose proxies were opened here, in that order.
#[derive(Debug, Default)]
pub(super) struct SpendingOfRuns {
    runs: Mutex<VecDeque<Arc<RunSpending>>>,
    /// A call is over.
    ended: Arc<Notify>,
}

/// A call under way, until it is counted.
#[derive(Debug)]
pub(super) struct OpenCall {
    of: Arc<RunSpending>,
    number: u64,
    ended: Arc<Notify>,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.of.spent().open.remove(&self.number);
        self.ended.notify_waiters();
    }
}

impl SpendingOfRuns {
    fn runs(&self) -> MutexGuard<'_, VecDeque<Arc<RunSpending>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run spends from now on; one that was cut off goes on with what it had spent.
    pub(super) fn begin(&self, of: RunAllowance, usage: Usage) -> Arc<RunSpending> {
        let spent = Mutex::new(Spent { usage, ..Spent::default() });
        let mine = Arc::new(RunSpending { of, spent });
        let mut all = self.runs();
        all.retain(|it| (&it.of.run_id, it.of.generation) != (&mine.of.run_id, mine.of.generation));
        all.push_back(Arc::clone(&mine));
        // One under way counts what came after it.
        while all.len() > REMEMBERED && all.front().is_some_and(|it| Arc::strong_count(it) == 1) {
            all.pop_front();
        }
        mine
    }

    /// Whether a run has spent what it may, by itself or together with others.
    pub(super) fn is_spent(&self, mine: &RunSpending) -> bool {
        if mine.of.allowance.share(mine.usage()) >= 1.0 {
            return true;
        }
        let all = self.runs();
        mine.of.shared.left.iter().any(|(budget, left)| {
            let spent = sharing(&all, mine, budget).map(|it| it.usage());
            left.share(spent.fold(Usage::default(), Usage::plus)) >= 1.0
        })
    }

    /// A call begins, when those under way leave it something to spend, or have not ended for as long as it waits at most:
    /// an answer too many is less harm than an agent that hears nothing. It is expected to cost what the dearest answers
    /// did, before the first one `first`. None where the budget is spent.
    pub(super) async fn call(
        &self,
        mine: &Arc<RunSpending>,
        first: Usage,
        wait: Duration,
    ) -> Option<OpenCall> {
        let until = Instant::now() + wait;
        let mut is_late = false;
        loop {
            let ended = self.ended.notified();
            if self.is_spent(mine) {
                return None;
            }
            let cost = mine.spent().dearest.unwrap_or(first);
            if let Some(call) = self.begin_call(mine, cost, is_late) {
                return Some(call);
            }
            is_late = tokio::time::timeout_at(until, ended).await.is_err();
        }
    }

    fn begin_call(&self, mine: &Arc<RunSpending>, cost: Usage, is_late: bool) -> Option<OpenCall> {
        let all = self.runs();
        let own = |spent: Usage| mine.of.allowance.share(spent.plus(cost)) < 1.0;
        let fits = mine.expected().is_none_or(own)
            && mine.of.shared.left.iter().all(|(budget, left)| {
                let is_free = sharing(&all, mine, budget).all(|it| it.expected().is_none());
                let spent = sharing(&all, mine, budget);
                let spent = spent.map(|it| it.expected().unwrap_or_else(|| it.usage()));
                is_free || left.share(spent.fold(cost, Usage::plus)) < 1.0
            });
        if !fits && !is_late {
            return None;
        }
        let mut spent = mine.spent();
        spent.calls += 1;
        let number = spent.calls;
        spent.open.insert(number, cost);
        Some(OpenCall { of: Arc::clone(mine), number, ended: Arc::clone(&self.ended) })
    }
}

/// Those of which a run counts what they spend of a budget, itself among them.
fn sharing<'r>(
    all: &'r VecDeque<Arc<RunSpending>>,
    mine: &'r RunSpending,
    budget: &'r str,
) -> impl Iterator<Item = &'r Arc<RunSpending>> {
    all.iter().filter(move |it| it.of.shared.left.contains_key(budget) && mine.counts(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);
    const DAY: &str = "day 2026-03-24";

    fn run(name: &str, began: i64, left: u64, beside: &[&str]) -> RunAllowance {
        let id = |name: &&str| (name.parse().expect("an id"), 1);
        let left = Allowance { usd: None, tokens: Some(left) };
        RunAllowance {
            run_id: name.parse().expect("an id"),
            generation: 1,
            began: Timestamp::from_millis(began),
            model: String::new(),
            window: 200_000,
            allowance: left,
            shared: SharedBudgets {
                left: [(DAY.to_owned(), left)].into(),
                beside: beside.iter().map(id).collect(),
            },
        }
    }

    fn tokens(count: u64) -> Usage {
        Usage { input_tokens: count, ..Usage::default() }
    }

    #[test]
    fn what_runs_spend_at_the_same_time_is_spent_once() {
        let all = SpendingOfRuns::default();
        let first = all.begin(run("r1", 1, 100, &[]), Usage::default());
        let second = all.begin(run("r2", 2, 100, &["r1"]), Usage::default());
        first.set(tokens(60));
        assert!(!all.is_spent(&first) && !all.is_spent(&second));
        second.set(tokens(40));
        assert!(all.is_spent(&first) && all.is_spent(&second));
        // What the engine knew when a run began is in what was left.
        drop((first, second));
        let third = all.begin(run("r3", 3, 10, &[]), Usage::default());
        assert!(!all.is_spent(&third));
        third.set(tokens(10));
        assert!(all.is_spent(&third));
    }

    #[tokio::test]
    async fn a_call_waits_where_those_under_way_may_use_up_what_is_left() {
        let all = SpendingOfRuns::default();
        let first = all.begin(run("r1", 1, 100, &[]), Usage::default());
        let second = all.begin(run("r2", 2, 100, &["r1"]), Usage::default());
        let one = all.call(&first, tokens(40), LONG).await.expect("a call");
        let two = all.call(&second, tokens(40), LONG).await.expect("a call");
        for spending in [&first, &second] {
            assert!(all.begin_call(spending, tokens(40), false).is_none(), "it waits");
            assert!(all.begin_call(spending, tokens(10), false).is_some(), "that much is left");
        }
        // It cost more than was expected.
        let waiting = async { all.call(&second, tokens(40), LONG).await.is_some() };
        let counting = async {
            first.set(tokens(90));
            drop(one);
            assert!(all.begin_call(&second, tokens(5), false).is_none());
            drop(two);
        };
        assert_eq!(tokio::join!(waiting, counting), (true, ()), "nobody is before it any more");
        // One that hangs holds up nobody for long; what an answer cost is what the next one is expected to cost.
        first.set(tokens(50));
        first.answered(tokens(30));
        let _hangs = all.call(&first, tokens(1), LONG).await.expect("a call");
        assert!(all.begin_call(&second, tokens(20), false).is_none());
        assert!(all.call(&second, tokens(20), Duration::ZERO).await.is_some());
        first.set(tokens(90));
        second.set(tokens(10));
        assert!(all.call(&second, tokens(1), LONG).await.is_none(), "it is spent");
    }

    #[test]
    fn what_is_over_and_not_yet_known_counts() {
        let all = SpendingOfRuns::default();
        all.begin(run("r1", 1, 100, &[]), Usage::default()).set(tokens(90));
        let second = all.begin(run("r2", 2, 100, &["r1"]), tokens(9));
        assert!(!all.is_spent(&second));
        second.set(tokens(10));
        assert!(all.is_spent(&second));
        // Whoever goes on after a restart counts once.
        let again = all.begin(run("r2", 2, 100, &["r1"]), tokens(9));
        assert!(!all.is_spent(&again));
    }

    #[test]
    fn those_that_are_over_are_forgotten_while_nobody_counts_them() {
        let all = SpendingOfRuns::default();
        let early = all.begin(run("r0", 0, 200, &[]), Usage::default());
        for number in 1..150 {
            let name = format!("r{number}");
            all.begin(run(&name, number, 200, &[]), Usage::default()).set(tokens(1));
        }
        let held = || all.runs().len();
        assert_eq!(held(), 150);
        assert!(!all.is_spent(&early));
        early.set(tokens(51));
        assert!(all.is_spent(&early), "each of them counted");
        drop(early);
        all.begin(run("r150", 150, 200, &[]), Usage::default());
        assert_eq!(held(), REMEMBERED);
    }
}
