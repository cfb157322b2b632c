//! How often and how long something is tried, and whether the amounts of money make sense.

use serde::{Deserialize, Serialize};

use super::Problem;
use super::values::Positive;
use crate::domain::budget::{Allowance, Budgets, PriceTable};
use crate::domain::policy::Limits;

/// `limits:`. What is absent has the engine's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Attempts of one step before a person is asked.
    pub step_attempts: Option<Positive>,
    /// See [`Limits::rate_limit_retries`]; at most 100.
    pub rate_limit_retries: Option<Positive>,
    /// See [`Limits::rate_limit_wait_seconds`]; at most a week.
    pub rate_limit_wait_seconds: Option<Positive>,
    /// Agent runs of one request.
    pub turns: Option<Positive>,
    /// Times that failing checks send a request back.
    pub check_failures: Option<Positive>,
    /// Of older files, and without a meaning: a moved branch is followed for as long as it moves.
    pub rebases: Option<Positive>,
    /// Reviews of one request.
    pub review_cycles: Option<Positive>,
    /// Characters of a message that are taken in.
    pub message_chars: Option<Positive>,
    /// Open requests of one person.
    pub open_requests_per_person: Option<Positive>,
    /// See [`Limits::followups`].
    pub followups: Option<Positive>,
    /// Agents that work at the same time; what the machine and the models' plans bear where absent.
    pub parallel_runs: Option<Positive>,
    /// Changes that are proven at the same time; what the machine bears where absent.
    pub check_runs: Option<Positive>,
    /// Seconds that one agent turn may take.
    pub wall_seconds: Option<Positive>,
    /// Seconds without output, processor time or anything from its model after which an agent is stuck.
    pub idle_seconds: Option<Positive>,
    /// Bytes that one prompt may have; 163,840 where absent.
    pub prompt_bytes: Option<Positive>,
}

/// How much goes on at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Todos of a sprint.
    pub todos: usize,
    /// Agents.
    pub runs: usize,
    /// Changes that are proven.
    pub checks: usize,
}

impl Capacity {
    /// What a machine bears: two at least, since agents mostly wait for their model; beyond, one for each core and each
    /// two GiB, and eight at most.
    #[must_use]
    pub fn of(cores: usize, memory_gib: usize) -> Capacity {
        let most = cores.min(memory_gib / 2).clamp(2, 8);
        Capacity { todos: most, runs: most, checks: most }
    }
}

impl LimitsConfig {
    /// Over the engine's defaults.
    #[must_use]
    pub fn apply(&self, mut limits: Limits) -> Limits {
        let set = |value: Option<Positive>, target: &mut u32| {
            if let Some(value) = value {
                *target = value.as_u32();
            }
        };
        let own =
            |value: Option<Positive>, usual: Option<u32>| value.map(Positive::as_u32).or(usual);
        limits.step_attempts = own(self.step_attempts, limits.step_attempts);
        set(self.rate_limit_retries, &mut limits.rate_limit_retries);
        if let Some(seconds) = self.rate_limit_wait_seconds {
            limits.rate_limit_wait_seconds = seconds.get();
        }
        set(self.turns, &mut limits.turns);
        limits.check_failures = own(self.check_failures, limits.check_failures);
        limits.review_cycles = own(self.review_cycles, limits.review_cycles);
        if let Some(chars) = self.message_chars {
            limits.message_chars = chars.as_usize();
        }
        if let Some(open) = self.open_requests_per_person {
            limits.open_requests_per_person = open.as_usize();
        }
        if let Some(followups) = self.followups {
            limits.followups = followups.as_usize();
        }
        limits.follows_plan = self.parallel_runs.is_none();
        limits
    }
}

/// The most tries after rate limits that may be configured.
pub(super) const MOST_RETRIES: u64 = 100;
/// The longest wait for a rate limit that may be configured, in seconds: a week.
pub(super) const LONGEST_WAIT: u64 = 7 * 86_400;

/// Numbers that nobody can mean.
pub(super) fn check_limits(limits: &LimitsConfig) -> Result<(), Problem> {
    let table = [
        ("rate_limit_retries", limits.rate_limit_retries, MOST_RETRIES),
        ("rate_limit_wait_seconds", limits.rate_limit_wait_seconds, LONGEST_WAIT),
    ];
    for (name, value, most) in table {
        if value.is_some_and(|value| value.get() > most) {
            return Err(Problem::at(&format!("limits.{name}"), format!("is above {most}"))
                .hint("after that a person is asked, who can let it go on"));
        }
    }
    Ok(())
}

/// A budget or price that is no amount: it would stop everything, or nothing.
pub(super) fn check_money(budgets: &Budgets, prices: &PriceTable) -> Result<(), Problem> {
    let roles = budgets.roles.iter().map(|(role, it)| (format!("roles.{role}"), it));
    let named = [
        ("run", &budgets.run),
        ("request", &budgets.request),
        ("sprint", &budgets.sprint),
        ("day", &budgets.day),
    ];
    let all = named.into_iter().map(|(name, it)| (name.to_owned(), it)).chain(roles);
    for (name, Allowance { usd, tokens }) in all {
        if usd.is_some_and(|usd| !usd.is_finite() || usd <= 0.0) || *tokens == Some(0) {
            return Err(Problem::at(&format!("budgets.{name}"), "is not above 0")
                .hint("leave it out for no limit"));
        }
    }
    for (model, price) in &prices.0 {
        let amounts = [Some(price.input), price.cached, price.written, Some(price.output)];
        if amounts.into_iter().flatten().any(|usd| !usd.is_finite() || usd < 0.0) {
            return Err(Problem::at(&format!("prices.{model}"), "is not an amount")
                .hint("US dollars for a million tokens"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_bears_two_at_least_and_eight_at_most() {
        for (cores, memory_gib, most) in
            [(1, 1, 2), (2, 24, 2), (4, 16, 4), (16, 8, 4), (64, 256, 8)]
        {
            assert_eq!(
                Capacity::of(cores, memory_gib).runs,
                most,
                "{cores} cores, {memory_gib} GiB"
            );
        }
    }
}
