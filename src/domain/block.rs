//! Why a request waits for a person.

use serde::{Deserialize, Serialize};

use crate::domain::word::{Word as _, words};

/// What stopped a request. Its word is also the catalog key `blocked.<word>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockCode {
    /// A role says that it cannot go on.
    RoleBlocked,
    /// A step failed as often as it may.
    StepFailed,
    /// Only a real agent can do it.
    NeedsRealAgent,
    /// Nothing confines agents here.
    NoSandbox,
    /// The agent is not logged in.
    AgentAuth,
    /// The agent's plan is used up.
    AgentQuota,
    /// The agent declined.
    AgentRefused,
    /// Too many requests for the model's server, for too long.
    RateLimited,
    /// A budget is used up, and nobody granted more.
    BudgetSpent,
    /// One run has used all that a run may.
    RunBudget,
    /// No advice is left.
    AdvisoryLimit,
    /// No review is left.
    ReviewLimit,
    /// QA sent it back as often as it may.
    QaLimit,
    /// Roles sent it back as often as they may.
    ReopenLimit,
    /// All turns are used.
    TurnsLimit,
    /// A counter of the workspace's own lifecycle is used up.
    CounterLimit,
    /// The lifecycle has no such step.
    UnknownStep,
    /// The planner never listed its documents.
    PlannerContract,
    /// The checks failed as often as they may.
    ChecksFailing,
    /// The checks could not be started.
    ChecksNotStarted,
    /// A check came to no end.
    ChecksInconclusive,
    /// Nothing was built.
    NoChange,
    /// The marks of a conflict still stand in the files.
    UnsolvedConflict,
    /// The branch changed the same places.
    RebaseConflict,
    /// A person's edits are where the commit would write.
    PersonEdits,
    /// The commit did not come about.
    CommitFailed,
    /// A word of another build.
    #[serde(other)]
    Other,
}

words!(BlockCode {
    RoleBlocked = "role_blocked",
    StepFailed = "step_failed",
    NeedsRealAgent = "needs_real_agent",
    NoSandbox = "no_sandbox",
    AgentAuth = "agent_auth",
    AgentQuota = "agent_quota",
    AgentRefused = "agent_refused",
    RateLimited = "rate_limited",
    BudgetSpent = "budget_spent",
    RunBudget = "run_budget",
    AdvisoryLimit = "advisory_limit",
    ReviewLimit = "review_limit",
    QaLimit = "qa_limit",
    ReopenLimit = "reopen_limit",
    TurnsLimit = "turns_limit",
    CounterLimit = "counter_limit",
    UnknownStep = "unknown_step",
    PlannerContract = "planner_contract",
    ChecksFailing = "checks_failing",
    ChecksNotStarted = "checks_not_started",
    ChecksInconclusive = "checks_inconclusive",
    NoChange = "no_change",
    UnsolvedConflict = "unsolved_conflict",
    RebaseConflict = "rebase_conflict",
    PersonEdits = "person_edits",
    CommitFailed = "commit_failed",
    Other = "other",
});

impl BlockCode {
    /// The word in records and catalogs.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.as_str()
    }

    /// Whether the request stands at its commit rather than at a role's step.
    #[must_use]
    pub const fn is_about_the_commit(self) -> bool {
        match self {
            Self::RebaseConflict
            | Self::PersonEdits
            | Self::CommitFailed
            | Self::ChecksNotStarted
            | Self::ChecksInconclusive => true,
            Self::RoleBlocked
            | Self::StepFailed
            | Self::NeedsRealAgent
            | Self::NoSandbox
            | Self::AgentAuth
            | Self::AgentQuota
            | Self::AgentRefused
            | Self::RateLimited
            | Self::BudgetSpent
            | Self::RunBudget
            | Self::AdvisoryLimit
            | Self::ReviewLimit
            | Self::QaLimit
            | Self::ReopenLimit
            | Self::TurnsLimit
            | Self::CounterLimit
            | Self::UnknownStep
            | Self::PlannerContract
            | Self::ChecksFailing
            | Self::NoChange
            | Self::UnsolvedConflict
            | Self::Other => false,
        }
    }

    /// Whether a counter that bounds a loop is used up: the same step again gives nothing back.
    #[must_use]
    pub const fn is_a_spent_loop(self) -> bool {
        match self {
            Self::AdvisoryLimit
            | Self::ReviewLimit
            | Self::QaLimit
            | Self::ReopenLimit
            | Self::TurnsLimit
            | Self::CounterLimit
            | Self::ChecksFailing => true,
            Self::RoleBlocked
            | Self::StepFailed
            | Self::NeedsRealAgent
            | Self::NoSandbox
            | Self::AgentAuth
            | Self::AgentQuota
            | Self::AgentRefused
            | Self::RateLimited
            | Self::BudgetSpent
            | Self::RunBudget
            | Self::UnknownStep
            | Self::PlannerContract
            | Self::ChecksNotStarted
            | Self::ChecksInconclusive
            | Self::NoChange
            | Self::UnsolvedConflict
            | Self::RebaseConflict
            | Self::PersonEdits
            | Self::CommitFailed
            | Self::Other => false,
        }
    }
}
