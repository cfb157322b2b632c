//! Why a request waits for a person.

use crate::domain::word::words;

words! {
    /// What stopped a request. Its word is also the catalog key `blocked.<word>`.
    pub enum BlockCode {
        /// A role says that it cannot go on.
        RoleBlocked = "role_blocked",
        /// A step failed as often as it may.
        StepFailed = "step_failed",
        /// Only a real agent can do it.
        NeedsRealAgent = "needs_real_agent",
        /// Nothing confines agents here.
        NoSandbox = "no_sandbox",
        /// The agent is not logged in.
        AgentAuth = "agent_auth",
        /// The agent's plan is used up.
        AgentQuota = "agent_quota",
        /// The agent declined.
        AgentRefused = "agent_refused",
        /// Too many requests for the model's server, for too long.
        RateLimited = "rate_limited",
        /// A budget is used up, and nobody granted more.
        BudgetSpent = "budget_spent",
        /// One run has used all that a run may.
        RunBudget = "run_budget",
        /// No advice is left.
        AdvisoryLimit = "advisory_limit",
        /// No review is left.
        ReviewLimit = "review_limit",
        /// QA sent it back as often as it may.
        QaLimit = "qa_limit",
        /// Roles sent it back as often as they may.
        ReopenLimit = "reopen_limit",
        /// All turns are used.
        TurnsLimit = "turns_limit",
        /// A counter of the workspace's own lifecycle is used up.
        CounterLimit = "counter_limit",
        /// The lifecycle has no such step.
        UnknownStep = "unknown_step",
        /// The planner never listed its documents.
        PlannerContract = "planner_contract",
        /// The planner asks what the request leaves open.
        Questions = "questions",
        /// Its message holds several pieces of work, and whoever asked says whether they are one request.
        Parts = "parts",
        /// A person turned its plan down, or nobody decided about it in time.
        PlanRejected = "plan_rejected",
        /// The checks failed as often as they may.
        ChecksFailing = "checks_failing",
        /// The checks could not be started.
        ChecksNotStarted = "checks_not_started",
        /// A check came to no end.
        ChecksInconclusive = "checks_inconclusive",
        /// Nothing was built.
        NoChange = "no_change",
        /// The marks of a conflict still stand in the files.
        UnsolvedConflict = "unsolved_conflict",
        /// More was changed to solve a conflict than either side had.
        BeyondConflict = "beyond_conflict",
        /// The solution of a conflict was sent back as often as it may be.
        SolutionSentBack = "solution_sent_back",
        /// The branch changed the same places.
        RebaseConflict = "rebase_conflict",
        /// A person's edits are where the commit would write.
        PersonEdits = "person_edits",
        /// The commit did not come about.
        CommitFailed = "commit_failed",
        /// Somebody has written that it is to end, and nobody has said whether it goes on.
        EndQuestion = "end_question",
        /// A word of another build.
        #[serde(other)]
        Other = "other",
    }
}

impl BlockCode {
    /// The word in records and catalogs.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.as_str()
    }

    /// Whether people are asked to say something, rather than to do something and try again.
    #[must_use]
    pub const fn asks_for_words(self) -> bool {
        match self {
            Self::RoleBlocked
            | Self::StepFailed
            | Self::AgentRefused
            | Self::RunBudget
            | Self::AdvisoryLimit
            | Self::ReviewLimit
            | Self::QaLimit
            | Self::ReopenLimit
            | Self::TurnsLimit
            | Self::CounterLimit
            | Self::PlannerContract
            | Self::Questions
            | Self::PlanRejected
            | Self::ChecksFailing
            | Self::NoChange
            | Self::UnsolvedConflict
            | Self::BeyondConflict
            | Self::SolutionSentBack
            | Self::RebaseConflict
            | Self::EndQuestion => true,
            Self::NeedsRealAgent
            | Self::NoSandbox
            | Self::AgentAuth
            | Self::AgentQuota
            | Self::RateLimited
            | Self::BudgetSpent
            | Self::UnknownStep
            | Self::Parts
            | Self::ChecksNotStarted
            | Self::ChecksInconclusive
            | Self::PersonEdits
            | Self::CommitFailed
            | Self::Other => false,
        }
    }

    /// Whether the role of a step stopped it, and goes on there with what a person says.
    #[must_use]
    pub const fn stopped_at_its_step(self) -> bool {
        matches!(self, Self::RoleBlocked | Self::AgentRefused | Self::NoChange)
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
            | Self::Questions
            | Self::Parts
            | Self::PlanRejected
            | Self::ChecksFailing
            | Self::NoChange
            | Self::UnsolvedConflict
            | Self::BeyondConflict
            | Self::SolutionSentBack
            | Self::EndQuestion
            | Self::Other => false,
        }
    }

    /// Whether two versions have to be brought together, and a person is asked how.
    #[must_use]
    pub const fn is_about_a_conflict(self) -> bool {
        matches!(
            self,
            Self::RebaseConflict
                | Self::UnsolvedConflict
                | Self::BeyondConflict
                | Self::SolutionSentBack
        )
    }

    /// Whether a login, a limit or a budget stopped the work, which was right as far as it came.
    #[must_use]
    pub const fn is_from_outside(self) -> bool {
        matches!(self, Self::AgentAuth | Self::AgentQuota | Self::RateLimited | Self::BudgetSpent)
    }

    /// Whether everything that the team may try by itself has been tried.
    #[must_use]
    pub const fn ends_all_attempts(self) -> bool {
        self.is_a_spent_loop()
            || matches!(self, Self::StepFailed | Self::PlannerContract | Self::NoChange)
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
            | Self::Questions
            | Self::Parts
            | Self::PlanRejected
            | Self::ChecksNotStarted
            | Self::ChecksInconclusive
            | Self::NoChange
            | Self::UnsolvedConflict
            | Self::BeyondConflict
            | Self::SolutionSentBack
            | Self::RebaseConflict
            | Self::PersonEdits
            | Self::CommitFailed
            | Self::EndQuestion
            | Self::Other => false,
        }
    }
}
