//! What steps are for.

use serde::{Deserialize, Serialize};

use super::words::{Phase, StepOutcome, Subject};
use crate::domain::role::Role;
use crate::domain::sprint::{Duty, PlanningStep};

/// What a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Facts from outside.
    Research,
    /// What shall be true at the end.
    Plan,
    /// Advice to whoever plans.
    Advice,
    /// How it is to be built.
    Guidance,
    /// The change itself.
    Change,
    /// A judgement of how the change is built.
    Review,
    /// A judgement of the change against each criterion.
    Verdict,
    /// The runtime proves the change and brings it to the branch.
    Land,
    /// A step of a sprint or of sourcing.
    Sprint(SprintStep),
}

/// What a step of a sprint or of sourcing is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SprintStep {
    /// The runtime looks how the project stands.
    Baseline,
    /// A part of the plan, by the planner.
    Planning(PlanningStep),
    /// Another duty of a role; never [`Duty::Planning`].
    Duty(Duty),
    /// Todos are worked.
    Work,
    /// The runtime asks git what came of it.
    Inspection,
    /// The runtime writes the report and the history.
    Archive,
}

impl StepKind {
    /// Whose steps these are.
    #[must_use]
    pub const fn subject(self) -> Subject {
        match self {
            Self::Sprint(SprintStep::Duty(
                Duty::Sourcing | Duty::SourcerReview | Duty::BlockedReview,
            )) => Subject::Sourcing,
            Self::Sprint(_) => Subject::Sprint,
            Self::Research
            | Self::Plan
            | Self::Advice
            | Self::Guidance
            | Self::Change
            | Self::Review
            | Self::Verdict
            | Self::Land => Subject::Request,
        }
    }

    /// The step of a sprint or of sourcing that it is.
    #[must_use]
    pub const fn of_sprint(self) -> Option<SprintStep> {
        if let Self::Sprint(step) = self { Some(step) } else { None }
    }

    /// The phase of a request that its steps belong to.
    #[must_use]
    pub const fn phase(self) -> Phase {
        match self {
            Self::Research | Self::Plan | Self::Advice | Self::Sprint(_) => Phase::Planning,
            Self::Guidance | Self::Change | Self::Review => Phase::Implementation,
            Self::Verdict => Phase::Validation,
            Self::Land => Phase::Closeout,
        }
    }

    /// Who may work it; nobody where the runtime does.
    #[must_use]
    pub const fn roles(self) -> &'static [Role] {
        match self {
            Self::Research | Self::Sprint(SprintStep::Duty(Duty::ResearchPrepass)) => {
                &[Role::Research]
            }
            Self::Plan
            | Self::Sprint(
                SprintStep::Planning(_)
                | SprintStep::Duty(
                    Duty::Planning
                    | Duty::OngoingReview
                    | Duty::ClosingReport
                    | Duty::SourcerReview
                    | Duty::BlockedReview,
                ),
            ) => &[Role::Planner],
            Self::Advice => &[Role::Designer, Role::Architect],
            Self::Guidance | Self::Sprint(SprintStep::Duty(Duty::PlanReview)) => &[Role::Architect],
            Self::Change => &[Role::Developer, Role::ConflictResolver],
            Self::Review => &[Role::Architect, Role::Designer],
            Self::Verdict => &[Role::Qa],
            Self::Sprint(SprintStep::Duty(Duty::Sourcing)) => &[Role::Sourcer],
            Self::Land
            | Self::Sprint(
                SprintStep::Baseline
                | SprintStep::Work
                | SprintStep::Inspection
                | SprintStep::Archive,
            ) => &[],
        }
    }

    /// Whether it judges a change.
    #[must_use]
    pub const fn judges(self) -> bool {
        matches!(self, Self::Review | Self::Verdict)
    }

    /// Whether its role may send the work back.
    #[must_use]
    pub const fn sends_back(self) -> bool {
        matches!(self, Self::Guidance | Self::Change | Self::Review | Self::Verdict)
    }

    /// Whether a way that leads on from it by this outcome is taken only so often: by the attempts of the step, or
    /// because something has to happen in between.
    #[must_use]
    pub const fn bounds(self, outcome: StepOutcome) -> bool {
        match self {
            // A todo has ended, or an interval is over.
            Self::Sprint(SprintStep::Work) => matches!(outcome, StepOutcome::Review),
            Self::Sprint(_) => false,
            // A plan goes again only where the planner sends it back.
            Self::Research
            | Self::Plan
            | Self::Advice
            | Self::Guidance
            | Self::Change
            | Self::Review
            | Self::Verdict
            | Self::Land => matches!(outcome, StepOutcome::NoChange | StepOutcome::Again),
        }
    }

    /// The outcomes that lead somewhere in every lifecycle, and those that may.
    #[must_use]
    pub const fn outcomes(self) -> (&'static [StepOutcome], &'static [StepOutcome]) {
        use StepOutcome as O;
        match self {
            Self::Research | Self::Advice | Self::Guidance => (&[O::Done], &[]),
            Self::Plan => (&[O::Done, O::Again], &[O::Answered, O::AskDesigner, O::AskArchitect]),
            Self::Change => (&[O::Done], &[O::Review]),
            Self::Review => (&[O::Pass, O::Revise, O::NoChange], &[O::Red]),
            Self::Verdict => (&[O::Pass, O::Red, O::NoChange], &[]),
            Self::Land => (&[O::Red, O::Conflict, O::NoChange], &[]),
            Self::Sprint(SprintStep::Planning(_) | SprintStep::Duty(Duty::PlanReview)) => {
                (&[O::Done, O::Again], &[])
            }
            Self::Sprint(SprintStep::Work) => (&[O::Done, O::Review], &[]),
            Self::Sprint(
                SprintStep::Archive | SprintStep::Duty(Duty::SourcerReview | Duty::BlockedReview),
            ) => (&[], &[]),
            Self::Sprint(
                SprintStep::Baseline
                | SprintStep::Inspection
                | SprintStep::Duty(
                    Duty::ResearchPrepass
                    | Duty::Planning
                    | Duty::OngoingReview
                    | Duty::ClosingReport
                    | Duty::Sourcing,
                ),
            ) => (&[O::Done], &[]),
        }
    }
}

impl SprintStep {
    /// The duty that its role has; `None` where the runtime works it.
    #[must_use]
    pub const fn duty(self) -> Option<Duty> {
        match self {
            Self::Planning(_) => Some(Duty::Planning),
            Self::Duty(duty) => Some(duty),
            Self::Baseline | Self::Work | Self::Inspection | Self::Archive => None,
        }
    }
}
