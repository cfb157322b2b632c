//! Where a request stands in its lifecycle, and what roles propose (`spec/teams.md` 7.1 and 7.2).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::lenient;
use crate::domain::lifecycle::{Phase, ReopenCategory, StepName, blank_name};
use crate::domain::role::Role;
use crate::domain::word::{Word as _, blank, words};

mod state;

pub use state::{Allowance, StepRoute, WorkflowState};

/// The step that older workspaces have for both advisers.
const SHARED_ADVISORY: StepName = StepName::of("planner_advisory");
const DESIGNER_ADVISORY: StepName = StepName::of("designer_advisory");
const ARCHITECT_ADVISORY: StepName = StepName::of("architect_advisory");

words! {
    /// How a phase stands (`spec/teams.md` 7.1).
    #[derive(Default)]
    pub enum PhaseStatus {
        /// The owner of the phase works.
        #[default]
        Active = "active",
        /// The planner settles the plan.
        Finalizing = "finalizing",
        /// A person has to decide.
        Blocked = "blocked",
        /// Nothing is left to do in the workflow; the runtime closes out.
        Completed = "completed",
    }
}

words! {
    /// What a role proposes to do next (`spec/teams.md` 7.2).
    #[derive(schemars::JsonSchema)]
    pub enum Outcome {
        /// Go on within the phase.
        Continue = "continue",
        /// Go on to the next step.
        Advance = "advance",
        /// Send it back; `reopen_category` says what for.
        Reopen = "reopen",
        /// A person has to decide.
        Block = "block",
        /// Nothing is left to do.
        Complete = "complete",
    }
}

/// What a role proposes should happen after its step (`spec/teams.md` 7.2). The sentences are for the role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Transition {
    /// continue, advance, reopen (send back), block (a person decides), complete; null leaves it to
    /// the rules.
    #[serde(default, with = "blank")]
    #[schemars(with = "Option<Outcome>")]
    pub outcome: Option<Outcome>,
    /// The phase aimed at.
    #[serde(default, with = "blank")]
    #[schemars(with = "Option<Phase>")]
    pub target_phase: Option<Phase>,
    /// The step aimed at.
    #[serde(default, with = "blank_name")]
    #[schemars(with = "Option<StepName>")]
    pub target_step: Option<StepName>,
    /// With reopen: what has to be done again.
    #[serde(default, with = "blank")]
    #[schemars(with = "Option<ReopenCategory>")]
    pub reopen_category: Option<ReopenCategory>,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// What is still open.
    #[serde(default)]
    pub unresolved_items: Vec<String>,
    /// Whether the phase is finished.
    #[serde(default)]
    pub finalize_phase: bool,
}

impl Transition {
    /// The seven keys that a proposal must have (`spec/teams.md` 7.2).
    pub const KEYS: [&'static str; 7] = [
        "outcome",
        "target_phase",
        "target_step",
        "reopen_category",
        "reason",
        "unresolved_items",
        "finalize_phase",
    ];

    /// Reads a proposal as agents and older files write it: unknown words are blank, the older
    /// `requested_role` names an advisory or the final planning step.
    #[must_use]
    pub fn normalize(value: &Value) -> Transition {
        let requested = Role::of(value.get("requested_role"));
        let target_step = step_of(value.get("target_step"))
            .filter(|step| *step != SHARED_ADVISORY)
            .or_else(|| requested.and_then(requested_of));
        Transition {
            outcome: Outcome::of(value.get("outcome")),
            target_phase: Phase::of(value.get("target_phase")),
            target_step,
            reopen_category: ReopenCategory::of(value.get("reopen_category")),
            reason: lenient::text(value.get("reason")).trim().to_owned(),
            unresolved_items: lenient::list(value.get("unresolved_items")),
            finalize_phase: lenient::truthy(value.get("finalize_phase")),
        }
    }

    /// Whether the role named a way to go on rather than leaving it open.
    #[must_use]
    pub fn continues(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Advance | Outcome::Continue | Outcome::Reopen))
    }
}

/// The step that a value names.
fn step_of(value: Option<&Value>) -> Option<StepName> {
    value.and_then(Value::as_str).and_then(|text| StepName::parse(text).ok())
}

/// The step meant by the older `requested_role` of a proposal.
fn requested_of(role: Role) -> Option<StepName> {
    match role {
        Role::Designer => Some(DESIGNER_ADVISORY),
        Role::Architect => Some(ARCHITECT_ADVISORY),
        Role::Planner => Some(StepName::of("planner_finalize")),
        Role::Qa => Some(StepName::of("qa_validation")),
        Role::Orchestrator
        | Role::Research
        | Role::Developer
        | Role::Parser
        | Role::Sourcer
        | Role::VersionController
        | Role::ConflictResolver => None,
    }
}
