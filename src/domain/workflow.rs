//! The state of the governed workflow (`spec/teams.md` 7.1 and 7.2).

use serde::{Deserialize, Serialize};

use crate::domain::role::Role;

/// The four phases of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Research, plan, advice.
    Planning,
    /// Guidance, build, review, revision.
    Implementation,
    /// QA.
    Validation,
    /// Commit and report.
    Closeout,
}

/// The twelve steps of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Research looks for outside facts before planning.
    ResearchInitial,
    /// The planner writes the first plan.
    PlannerDraft,
    /// Older workspaces only; normalised to the advisory of the phase owner.
    PlannerAdvisory,
    /// The designer advises the planner.
    DesignerAdvisory,
    /// The architect advises the planner.
    ArchitectAdvisory,
    /// The planner settles the plan.
    PlannerFinalize,
    /// The architect says how to build it.
    ArchitectGuidance,
    /// The developer builds it.
    DeveloperBuild,
    /// The architect reviews the change.
    ArchitectReview,
    /// The developer answers the review.
    DeveloperRevision,
    /// QA decides against the acceptance criteria.
    QaValidation,
    /// The runtime commits and reports.
    Closeout,
}

impl Step {
    /// All steps in the order of the contract.
    pub const ALL: [Step; 12] = [
        Step::ResearchInitial,
        Step::PlannerDraft,
        Step::PlannerAdvisory,
        Step::DesignerAdvisory,
        Step::ArchitectAdvisory,
        Step::PlannerFinalize,
        Step::ArchitectGuidance,
        Step::DeveloperBuild,
        Step::ArchitectReview,
        Step::DeveloperRevision,
        Step::QaValidation,
        Step::Closeout,
    ];

    /// The phase that the step belongs to.
    #[must_use]
    pub const fn phase(self) -> Phase {
        match self {
            Step::ResearchInitial
            | Step::PlannerDraft
            | Step::PlannerAdvisory
            | Step::DesignerAdvisory
            | Step::ArchitectAdvisory
            | Step::PlannerFinalize => Phase::Planning,
            Step::ArchitectGuidance
            | Step::DeveloperBuild
            | Step::ArchitectReview
            | Step::DeveloperRevision => Phase::Implementation,
            Step::QaValidation => Phase::Validation,
            Step::Closeout => Phase::Closeout,
        }
    }

    /// The role that works the step.
    #[must_use]
    pub const fn owner(self) -> Role {
        match self {
            Step::ResearchInitial => Role::Research,
            Step::PlannerDraft | Step::PlannerAdvisory | Step::PlannerFinalize => Role::Planner,
            Step::DesignerAdvisory => Role::Designer,
            Step::ArchitectAdvisory | Step::ArchitectGuidance | Step::ArchitectReview => {
                Role::Architect
            }
            Step::DeveloperBuild | Step::DeveloperRevision => Role::Developer,
            Step::QaValidation => Role::Qa,
            Step::Closeout => Role::VersionController,
        }
    }
}
