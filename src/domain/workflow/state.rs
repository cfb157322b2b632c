//! The record of where a request stands (`spec/teams.md` 7.1) and what it may still spend.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ARCHITECT_ADVISORY, DESIGNER_ADVISORY, PhaseStatus, SHARED_ADVISORY, step_of};
use crate::domain::lenient;
use crate::domain::lifecycle::{
    CounterName, Lifecycle, Phase, ReopenCategory, Step, StepKind, StepName, counter,
};
use crate::domain::policy::Limits;
use crate::domain::role::Role;
use crate::domain::word::{Word as _, blank};

/// The version of the workflow contract that this code writes.
const CONTRACT_VERSION: u32 = 1;

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
    pub const fn take(&mut self) -> bool {
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

/// The steps that the route of a request has, among those that its lifecycle takes only where it has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepRoute {
    /// Steps that are passed over when they come.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub left_out: BTreeSet<StepName>,
    /// Steps that were passed over.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub passed_over: BTreeSet<StepName>,
    /// Advice that a person wants, and that was not given yet.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub wanted: BTreeSet<StepName>,
    /// Whether the change was sent back, and nobody has judged it since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judge_again: bool,
    /// The step that refused the change: it lands when that, or QA, lets it through, whatever way it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_by: Option<StepName>,
    /// Whether it met another change in the same place: what two requests want is judged by QA on every route.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub conflicted: bool,
}

impl StepRoute {
    /// Whether a step is passed over when it comes.
    #[must_use]
    pub fn leaves_out(&self, step: &Step) -> bool {
        let is_wanted = self.conflicted && step.kind == StepKind::Verdict;
        self.left_out.contains(&step.name) && !is_wanted
    }

    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a request stands: `params.workflow` of its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Record", into = "Record")]
pub struct WorkflowState {
    /// The digest of the lifecycle that the request goes by; blank for the one that is built in.
    pub lifecycle: String,
    /// The phase of `step`.
    pub phase: Phase,
    /// The step being worked.
    pub step: StepName,
    /// The role that works it.
    pub phase_owner: Role,
    /// How it stands.
    pub phase_status: PhaseStatus,
    /// Who sent it back last, if it was.
    pub reopen_source_role: Option<Role>,
    /// Why it was sent back last.
    pub reopen_category: Option<ReopenCategory>,
    /// How often what the lifecycle counts has happened, and may.
    pub counters: BTreeMap<CounterName, Allowance>,
    /// The steps that it takes.
    pub route: StepRoute,
}

/// The same as records have it: with the counts that operators know by their older names.
#[derive(Serialize, Deserialize)]
struct Record {
    contract_version: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    lifecycle: String,
    phase: Phase,
    step: StepName,
    phase_owner: Role,
    phase_status: PhaseStatus,
    planning_pass_count: u32,
    planning_pass_limit: u32,
    planning_final_owner: Role,
    #[serde(with = "blank")]
    reopen_source_role: Option<Role>,
    #[serde(with = "blank")]
    reopen_category: Option<ReopenCategory>,
    review_cycle_count: u32,
    review_cycle_limit: u32,
    /// All others; records of before had some of the same names.
    #[serde(default)]
    budgets: BTreeMap<CounterName, Allowance>,
    #[serde(default, skip_serializing_if = "StepRoute::is_usual")]
    route: StepRoute,
}

impl From<WorkflowState> for Record {
    fn from(state: WorkflowState) -> Record {
        let mut budgets = state.counters;
        let mut of = |name| budgets.remove(&name).unwrap_or(Allowance::of(0));
        let (advice, review) = (of(counter::ADVICE), of(counter::REVIEW));
        Record {
            contract_version: CONTRACT_VERSION,
            lifecycle: state.lifecycle,
            phase: state.phase,
            step: state.step,
            phase_owner: state.phase_owner,
            phase_status: state.phase_status,
            planning_pass_count: advice.used,
            planning_pass_limit: advice.limit,
            planning_final_owner: Role::Planner,
            reopen_source_role: state.reopen_source_role,
            reopen_category: state.reopen_category,
            review_cycle_count: review.used,
            review_cycle_limit: review.limit,
            budgets,
            route: state.route,
        }
    }
}

impl From<Record> for WorkflowState {
    fn from(record: Record) -> WorkflowState {
        let mut counters = record.budgets;
        let of = |used, limit| Allowance { used, limit };
        let advice = of(record.planning_pass_count, record.planning_pass_limit);
        counters.insert(counter::ADVICE, advice);
        let review = of(record.review_cycle_count, record.review_cycle_limit);
        counters.insert(counter::REVIEW, review);
        WorkflowState {
            lifecycle: record.lifecycle,
            phase: record.phase,
            step: record.step,
            phase_owner: record.phase_owner,
            phase_status: record.phase_status,
            reopen_source_role: record.reopen_source_role,
            reopen_category: record.reopen_category,
            counters,
            route: record.route,
        }
    }
}

impl WorkflowState {
    /// A request that begins at a step of a lifecycle.
    #[must_use]
    pub fn begin(lifecycle: &Lifecycle, step: StepName) -> WorkflowState {
        let counters = lifecycle.counters.iter().map(|(name, most)| (*name, Allowance::of(*most)));
        let mut state = WorkflowState {
            lifecycle: lifecycle.digest().to_owned(),
            phase: Phase::Planning,
            step,
            phase_owner: Role::Planner,
            phase_status: PhaseStatus::Active,
            reopen_source_role: None,
            reopen_category: None,
            counters: counters.collect(),
            route: StepRoute::default(),
        };
        if let Some(step) = lifecycle.step(step) {
            state.place(step, lifecycle);
        }
        state
    }

    /// The state within the limits that the configuration sets.
    #[must_use]
    pub fn within(mut self, limits: &Limits) -> WorkflowState {
        for (name, most) in
            [(counter::REVIEW, limits.review_cycles), (counter::CHECKS, limits.check_failures)]
        {
            if let (Some(allowance), Some(most)) = (self.counters.get_mut(&name), most) {
                allowance.limit = most;
            }
        }
        self
    }

    /// Puts the state on a step: phase, owner and status follow.
    pub fn place(&mut self, step: &Step, lifecycle: &Lifecycle) {
        self.step = step.name;
        self.phase = step.kind.phase();
        self.phase_owner = step.role;
        self.phase_status = match step.kind {
            StepKind::Land => PhaseStatus::Completed,
            StepKind::Plan if step.name == lifecycle.resume => PhaseStatus::Finalizing,
            StepKind::Research
            | StepKind::Plan
            | StepKind::Advice
            | StepKind::Guidance
            | StepKind::Change
            | StepKind::Review
            | StepKind::Verdict
            | StepKind::Sprint(_) => PhaseStatus::Active,
        };
    }

    /// An allowance; nothing of one that the lifecycle does not have.
    #[must_use]
    pub fn counter(&self, name: CounterName) -> Allowance {
        self.counters.get(&name).copied().unwrap_or(Allowance::of(0))
    }

    /// Uses one of a counter; `false`, and nothing used, when none is left.
    #[must_use]
    pub fn take(&mut self, name: CounterName) -> bool {
        self.counters.get_mut(&name).is_some_and(Allowance::take)
    }

    /// All counters, with nothing used.
    pub fn renew(&mut self) {
        self.counters.values_mut().for_each(|allowance| allowance.used = 0);
    }

    /// Reads what a record of the older runtime holds, whoever wrote it: unknown words become the defaults,
    /// limits that are zero become the defaults, and the shared advisory step becomes that of its owner.
    #[must_use]
    pub fn normalize(raw: &Value) -> WorkflowState {
        let lifecycle = Lifecycle::built_in();
        let mut state = WorkflowState::begin(lifecycle, lifecycle.begin_todo);
        state.lifecycle = String::new();
        let count = |key: &str| {
            let number = lenient::integer(raw.get(key)).unwrap_or(0).max(0);
            u32::try_from(number).unwrap_or(u32::MAX)
        };
        let limit = |key: &str| match lenient::integer(raw.get(key)) {
            None | Some(0) => None,
            Some(number) => Some(u32::try_from(number.max(1)).unwrap_or(u32::MAX)),
        };
        if let Some(phase) = Phase::of(raw.get("phase")) {
            state.phase = phase;
        }
        if let Some(owner) = Role::of(raw.get("phase_owner")) {
            state.phase_owner = owner;
        }
        state.step = match (step_of(raw.get("step")), state.phase_owner) {
            (Some(SHARED_ADVISORY), Role::Designer) => DESIGNER_ADVISORY,
            (Some(SHARED_ADVISORY), Role::Architect) => ARCHITECT_ADVISORY,
            (Some(SHARED_ADVISORY), _) => lifecycle.resume,
            (Some(step), _) if lifecycle.step(step).is_some() => step,
            (Some(_) | None, _) => state.step,
        };
        if let Some(status) = PhaseStatus::of(raw.get("phase_status")) {
            state.phase_status = status;
        }
        state.reopen_source_role = Role::of(raw.get("reopen_source_role"));
        state.reopen_category = ReopenCategory::of(raw.get("reopen_category"));
        let own: BTreeMap<CounterName, Allowance> = raw
            .get("budgets")
            .and_then(|budgets| serde_json::from_value(budgets.clone()).ok())
            .unwrap_or_default();
        state.counters.extend(own);
        for (name, kind) in [(counter::ADVICE, "planning_pass"), (counter::REVIEW, "review_cycle")]
        {
            let allowance = state.counters.entry(name).or_insert(Allowance::of(0));
            allowance.used = count(&format!("{kind}_count"));
            allowance.limit = limit(&format!("{kind}_limit")).unwrap_or(allowance.limit);
        }
        state
    }
}
