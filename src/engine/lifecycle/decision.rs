//! What a report leads to.

use crate::domain::lifecycle::{CounterName, StepName};
use crate::domain::role::Role;
use crate::domain::workflow::WorkflowState;

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
        step: StepName,
        /// What the runtime changed about the report, for the record and for the next role.
        notes: Vec<ReportChange>,
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
    /// A counter of the lifecycle is used up.
    Spent(CounterName),
    /// Its lifecycle has no such step.
    UnknownStep(StepName),
    /// A report came although the workflow was over.
    AlreadyOver,
}

/// What the runtime changed about a report before routing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportChange {
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
    /// QA passed criteria whose own checks fail.
    CriteriaFail(Vec<String>),
    /// QA found the specification at fault, so the planner gets it.
    SpecificationAtFault,
    /// Another role reported than the one that works the step; the step is repeated.
    WrongReporter(Role),
    /// Research did not get through; planning goes on without it.
    WithoutResearch,
    /// The reviewer's "blocked" became a revision.
    RevisionInsteadOfBlock,
    /// Something was found in the plan; what, its planner is told.
    PlanFindings,
    /// A person wants it as several items.
    AsItems,
}
