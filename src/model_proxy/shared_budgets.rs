//! What runs under way have spent of the budgets that they share: the engine learns it when each is over.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// What it may spend by itself.
    pub allowance: Allowance,
    /// What others spend from as well.
    pub shared: SharedBudgets,
}

/// What one run has spent.
#[derive(Debug)]
pub(super) struct RunSpending {
    of: RunAllowance,
    usage: Mutex<Usage>,
}

impl RunSpending {
    fn usage(&self) -> Usage {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, usage: Usage) {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = usage;
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
pub(super) struct SpendingOfRuns(Mutex<VecDeque<Arc<RunSpending>>>);

impl SpendingOfRuns {
    /// A run spends from now on; one that was cut off goes on with what it had spent.
    pub(super) fn begin(&self, of: RunAllowance, usage: Usage) -> Arc<RunSpending> {
        let mine = Arc::new(RunSpending { of, usage: Mutex::new(usage) });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mine.of.shared.left.iter().any(|(budget, left)| {
            let shares = |it: &&Arc<RunSpending>| it.of.shared.left.contains_key(budget);
            let spent = all.iter().filter(shares).filter(|it| mine.counts(it));
            left.share(spent.fold(Usage::default(), |sum, it| sum.plus(it.usage()))) >= 1.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: &str = "day 2026-03-24";

    fn run(name: &str, began: i64, left: u64, beside: &[&str]) -> RunAllowance {
        let id = |name: &&str| (name.parse().expect("an id"), 1);
        let left = Allowance { usd: None, tokens: Some(left) };
        RunAllowance {
            run_id: name.parse().expect("an id"),
            generation: 1,
            began: Timestamp::from_millis(began),
            model: String::new(),
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
        let held = || all.0.lock().expect("a lock").len();
        assert_eq!(held(), 150);
        assert!(!all.is_spent(&early));
        early.set(tokens(51));
        assert!(all.is_spent(&early), "each of them counted");
        drop(early);
        all.begin(run("r150", 150, 200, &[]), Usage::default());
        assert_eq!(held(), REMEMBERED);
    }
}
