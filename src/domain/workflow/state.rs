//! The record of where a request stands (`spec/teams.md` 7.1) and what it may still spend.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Phase, PhaseStatus, ReopenCategory, Step, Word, blank};
use crate::domain::lenient;
use crate::domain::policy::Limits;
use crate::domain::role::Role;

/// The version of the workflow contract that this code writes.
pub const CONTRACT_VERSION: u32 = 1;
const PASS_LIMIT: u32 = 2;
const REVIEW_LIMIT: u32 = 3;

/// How often something may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// How often it happened.
    pub used: u32,
    /// How often it may happen.
    pub limit: u32,
}

impl Allowance {
    /// An unused allowance of `limit`.
    #[must_use]
    pub const fn of(limit: u32) -> Allowance {
        Allowance { used: 0, limit }
    }

    /// Uses one; `false`, and nothing used, when none is left.
    #[must_use]
    pub fn take(&mut self) -> bool {
        let left = self.used < self.limit;
        if left {
            self.used += 1;
        }
        left
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_spent(self) -> bool {
        self.used >= self.limit
    }
}

/// What bounds the loops that the older contract leaves open (`spec/teams.md` 13.A #17, #18 and
/// appendix C 6). Older files lack it and get the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Planner reports sent back because no planning document was listed.
    pub planner_contract: Allowance,
    /// Reopenings by roles other than QA.
    pub reopen: Allowance,
    /// Reopenings by QA, and QA reports sent back for want of a verdict.
    pub qa_reopen: Allowance,
    /// Returns to the developer because the runtime's own checks failed.
    pub checks: Allowance,
    /// Returns to the developer because the branch changed the same places.
    pub conflicts: Allowance,
    /// Reports applied in total.
    pub turns: Allowance,
}

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets {
            planner_contract: Allowance::of(2),
            reopen: Allowance::of(6),
            qa_reopen: Allowance::of(3),
            checks: Allowance::of(3),
            conflicts: Allowance::of(3),
            turns: Allowance::of(48),
        }
    }
}

/// Where a request stands: `params.workflow` of its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowState {
    /// Version of the contract, 1.
    pub contract_version: u32,
    /// The phase of `step`.
    pub phase: Phase,
    /// The step being worked.
    pub step: Step,
    /// The role that works it.
    pub phase_owner: Role,
    /// How it stands.
    pub phase_status: PhaseStatus,
    /// Advisories spent, shared by designer and architect.
    pub planning_pass_count: u32,
    /// Advisories allowed.
    pub planning_pass_limit: u32,
    /// Who settles the plan.
    pub planning_final_owner: Role,
    /// Who sent it back last, if it was.
    #[serde(with = "blank")]
    pub reopen_source_role: Option<Role>,
    /// Why it was sent back last.
    #[serde(with = "blank")]
    pub reopen_category: Option<ReopenCategory>,
    /// Reviews opened so far.
    pub review_cycle_count: u32,
    /// Reviews after which only a pass is accepted.
    pub review_cycle_limit: u32,
    /// Bounds of every loop.
    #[serde(default)]
    pub budgets: Budgets,
}

impl Budgets {
    /// The same limits with nothing used.
    #[must_use]
    pub const fn renewed(self) -> Budgets {
        Budgets {
            planner_contract: Allowance::of(self.planner_contract.limit),
            reopen: Allowance::of(self.reopen.limit),
            qa_reopen: Allowance::of(self.qa_reopen.limit),
            checks: Allowance::of(self.checks.limit),
            conflicts: Allowance::of(self.conflicts.limit),
            turns: Allowance::of(self.turns.limit),
        }
    }
}

impl WorkflowState {
    /// The state within the limits that the configuration sets.
    #[must_use]
    pub const fn within(mut self, limits: &Limits) -> WorkflowState {
        self.review_cycle_limit = limits.review_cycles;
        self.budgets.checks = Allowance::of(limits.check_failures);
        self
    }

    /// A request that begins at `step`.
    #[must_use]
    pub fn initial(step: Step) -> WorkflowState {
        WorkflowState {
            contract_version: CONTRACT_VERSION,
            phase: step.phase(),
            step,
            phase_owner: step.owner(),
            phase_status: PhaseStatus::Active,
            planning_pass_count: 0,
            planning_pass_limit: PASS_LIMIT,
            planning_final_owner: Role::Planner,
            reopen_source_role: None,
            reopen_category: None,
            review_cycle_count: 0,
            review_cycle_limit: REVIEW_LIMIT,
            budgets: Budgets::default(),
        }
    }

    /// Whether the workflow waits for nobody's report: closed, or blocked on a person.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.step == Step::Closeout
            || matches!(self.phase_status, PhaseStatus::Blocked | PhaseStatus::Completed)
    }

    /// Reads what a record holds, whoever wrote it: unknown words become the defaults, limits that
    /// are zero become the defaults, and the older shared advisory step becomes that of its owner.
    #[must_use]
    pub fn normalize(raw: &Value) -> WorkflowState {
        let mut state = WorkflowState::initial(Step::PlannerDraft);
        let count = |key: &str| {
            let number = lenient::integer(raw.get(key)).unwrap_or(0).max(0);
            u32::try_from(number).unwrap_or(u32::MAX)
        };
        let limit = |key: &str, default: u32| match lenient::integer(raw.get(key)) {
            None | Some(0) => default,
            Some(number) => u32::try_from(number.max(1)).unwrap_or(u32::MAX),
        };
        if let Some(phase) = Phase::of(raw.get("phase")) {
            state.phase = phase;
        }
        if let Some(owner) = Role::of(raw.get("phase_owner")) {
            state.phase_owner = owner;
        }
        if let Some(step) = Step::of(raw.get("step")) {
            state.step = match step.advisor(Some(state.phase_owner)) {
                Some(advisor) => Step::advisory_of(advisor).unwrap_or(step),
                None => step,
            };
        }
        if let Some(status) = PhaseStatus::of(raw.get("phase_status")) {
            state.phase_status = status;
        }
        state.planning_pass_count = count("planning_pass_count");
        state.planning_pass_limit = limit("planning_pass_limit", PASS_LIMIT);
        state.reopen_source_role = Role::of(raw.get("reopen_source_role"));
        state.reopen_category = ReopenCategory::of(raw.get("reopen_category"));
        state.review_cycle_count = count("review_cycle_count");
        state.review_cycle_limit = limit("review_cycle_limit", REVIEW_LIMIT);
        state.budgets = raw
            .get("budgets")
            .and_then(|budgets| serde_json::from_value(budgets.clone()).ok())
            .unwrap_or_default();
        state
    }
}
