//! What happens after a role's report: the governed workflow of `spec/teams.md` 7 as one function.
//!
//! [`decide`] takes the state and the facts of a report and gives the next state, so that the same
//! history always gives the same decisions. Where the older contract lost work or closed what was
//! not proven (`spec/teams.md` 13.A), the better rule stands here.

mod guard;
mod report;
mod surfaces;
mod table;

pub use guard::drop_foreign_documents;
pub use report::{DocumentRule, StepReport};
pub use surfaces::{is_planner_document, is_planning_surface};
pub use table::{Routed, close_in_planning, reopen, route};

use crate::domain::role::Role;
use crate::domain::workflow::{
    Allowance, Outcome, Phase, PhaseStatus, ReopenCategory, Step, WorkflowState,
};

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowDecision {
    /// A role works the next step.
    Next {
        /// The state to store.
        state: WorkflowState,
        /// Who works.
        role: Role,
        /// On what.
        step: Step,
        /// What the runtime changed about the report, for the record and for the next role.
        notes: Vec<Note>,
    },
    /// The workflow is done; the runtime proves and commits.
    Closeout {
        /// The state to store.
        state: WorkflowState,
    },
    /// A person has to decide.
    Blocked {
        /// The state to store.
        state: WorkflowState,
        /// Why.
        reason: BlockReason,
        /// The role's own words, where it gave any.
        text: String,
    },
}

impl WorkflowDecision {
    /// The state to store.
    #[must_use]
    pub fn state(&self) -> &WorkflowState {
        match self {
            WorkflowDecision::Next { state, .. }
            | WorkflowDecision::Closeout { state }
            | WorkflowDecision::Blocked { state, .. } => state,
        }
    }
}

/// Why a request waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockReason {
    /// The role asked for it by its outcome.
    RoleAsked,
    /// The role reported that it cannot go on.
    RoleBlocked,
    /// The role reported a failure.
    RoleFailed,
    /// No advisory is left.
    AdvisoryCap,
    /// No review is left.
    ReviewBudget,
    /// QA sent it back too often, or never gave a verdict.
    QaBudget,
    /// Roles sent it back too often.
    ReopenBudget,
    /// The planner never listed its documents.
    PlannerContract,
    /// The runtime's own checks failed too often.
    ChecksBudget,
    /// The branch changed the same places too often.
    ConflictBudget,
    /// The request took too many turns.
    TurnBudget,
    /// A report came although the workflow was over.
    AlreadyOver,
}

/// What the runtime changed about a report before routing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The planner has to list these documents (file names, or blank for any of its own).
    DocumentsMissing(Vec<String>),
    /// Documents of the planner were taken off an implementer's artifacts.
    PlannerDocumentsDropped(Vec<String>),
    /// The report contradicts itself and counts as negative.
    Contradiction,
    /// QA gave no usable verdict and is asked again.
    VerdictMissing,
    /// QA's rows are not one for each criterion, and it is asked again; in which way they differ.
    RowsDiffer(String),
    /// QA found the specification at fault, so the planner gets it.
    SpecificationAtFault,
    /// Another role reported than the one that works the step; the step is repeated.
    WrongReporter(Role),
    /// Research did not get through; planning goes on without it.
    WithoutResearch,
    /// The reviewer's "blocked" became a revision.
    RevisionInsteadOfBlock,
}

/// Applies one report to the state.
///
/// Rules: the decision table (`spec/teams.md` 7.3) after the guardrails (7.5), with the budgets of
/// [`crate::domain::workflow::Budgets`]. A negative verdict is never upgraded: only a reviewer's
/// "blocked" with an explicit continuation becomes a revision.
#[must_use]
pub fn decide(state: &WorkflowState, report: &StepReport) -> WorkflowDecision {
    guard::decide(state, report)
}

/// The runtime's checks failed at the commit that QA had passed: back to the developer, within the
/// budget for it.
#[must_use]
pub fn checks_failed(state: &WorkflowState) -> WorkflowDecision {
    let mut state = state.clone();
    if !state.budgets.checks.take() {
        return blocked(state, BlockReason::ChecksBudget, String::new());
    }
    state.reopen_source_role = Some(Role::VersionController);
    state.reopen_category = Some(ReopenCategory::Verification);
    enter(state, Step::DeveloperRevision, Vec::new())
}

/// What the developer handed in to be judged is no change at all, or none that can be judged: the same work
/// again, before whoever was to judge it. A review that did not take place is not counted.
#[must_use]
pub fn build_again(state: &WorkflowState) -> WorkflowState {
    let mut state = state.clone();
    let step = match state.step {
        Step::ArchitectReview => {
            state.review_cycle_count = state.review_cycle_count.saturating_sub(1);
            Step::DeveloperBuild
        }
        Step::ResearchInitial
        | Step::PlannerDraft
        | Step::PlannerAdvisory
        | Step::DesignerAdvisory
        | Step::ArchitectAdvisory
        | Step::PlannerFinalize
        | Step::ArchitectGuidance
        | Step::DeveloperBuild
        | Step::DeveloperRevision
        | Step::QaValidation
        | Step::Closeout => Step::DeveloperRevision,
    };
    table::place(&mut state, step);
    state
}

/// The branch changed the same places: back to the developer, who has both sides before them, within the
/// budget for it.
#[must_use]
pub fn conflicted(state: &WorkflowState) -> WorkflowDecision {
    let mut state = state.clone();
    let within = state.budgets.conflicts.take();
    state.reopen_source_role = Some(Role::VersionController);
    state.reopen_category = Some(ReopenCategory::Implementation);
    if within {
        return enter(state, Step::DeveloperRevision, Vec::new());
    }
    // Whoever lets it go on has decided to spend as much again.
    state.budgets.conflicts = Allowance::of(state.budgets.conflicts.limit);
    table::place(&mut state, Step::DeveloperRevision);
    blocked(state, BlockReason::ConflictBudget, String::new())
}

/// A person answered a blocked request: the planner takes it up again with fresh budgets, because
/// a person decided to spend them.
#[must_use]
pub fn resume(state: &WorkflowState) -> WorkflowDecision {
    let mut state = state.clone();
    state.budgets = state.budgets.renewed();
    state.planning_pass_count = 0;
    state.review_cycle_count = 0;
    state.reopen_source_role = None;
    state.reopen_category = None;
    enter(state, Step::PlannerFinalize, Vec::new())
}

/// The state as it was before it stopped: the same step, which is to be tried again.
#[must_use]
pub fn again(state: &WorkflowState) -> WorkflowState {
    let mut state = state.clone();
    let step = state.step;
    table::place(&mut state, step);
    state
}

/// Moves the state to `step` and hands it to the step's owner.
fn enter(mut state: WorkflowState, step: Step, notes: Vec<Note>) -> WorkflowDecision {
    table::place(&mut state, step);
    if step == Step::Closeout {
        return WorkflowDecision::Closeout { state };
    }
    let role = step.owner();
    WorkflowDecision::Next { state, role, step, notes }
}

/// Stops where the state is.
fn blocked(mut state: WorkflowState, reason: BlockReason, text: String) -> WorkflowDecision {
    state.phase_status = PhaseStatus::Blocked;
    WorkflowDecision::Blocked { state, reason, text }
}

#[cfg(test)]
mod histories;
#[cfg(test)]
mod tests;
