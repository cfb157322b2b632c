//! What a request has used up of the patience and the money that it is given.

use serde::{Deserialize, Serialize};

use crate::domain::run::FailKind;

/// How much of each budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Agent runs started for this request.
    pub turns: u32,
    /// How many of them a person has made up for by saying: go on.
    pub forgiven_turns: u32,
    /// Failed attempts of the current step.
    pub step_failures: u32,
    /// Times in a row that what a step delivered could not be taken as its result.
    pub rejected: u32,
    /// Times that a conflict with the branch was solved, each time after the solution before was sent back.
    pub solutions: u32,
    /// Why the last attempt of the current step failed.
    pub last_failure: Option<FailKind>,
    /// Times in a row that the agent's plan was used up.
    pub waits: u32,
    /// Tries in a row that ended with a rate limit.
    pub rate_limits: u32,
    /// Tries in a row whose model could not be reached.
    pub outages: u32,
    /// Tries in a row that ended with a full disk.
    pub full_disks: u32,
    /// How often a person granted the request's budget once more.
    pub budget_raised: u32,
    /// Whether it was told that its budget is nearly spent.
    pub budget_warned: bool,
}

impl Spent {
    /// A person says go on: the budgets begin anew, and what was done stays counted.
    pub fn renew(&mut self) {
        *self = Spent {
            turns: self.turns,
            forgiven_turns: self.turns,
            budget_raised: self.budget_raised,
            budget_warned: self.budget_warned,
            ..Spent::default()
        };
    }

    /// Agent runs that count against the limit.
    #[must_use]
    pub const fn counted_turns(&self) -> u32 {
        self.turns.saturating_sub(self.forgiven_turns)
    }
}
