//! The state of the governed workflow (`spec/teams.md` 7.1 and 7.2).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::domain::lenient;
use crate::domain::role::Role;

mod state;

pub use state::{Allowance, Budgets, CONTRACT_VERSION, WorkflowState};

/// The four phases of a request.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
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

/// How a phase stands (`spec/teams.md` 7.1).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    /// The owner of the phase works.
    #[default]
    Active,
    /// The planner settles the plan.
    Finalizing,
    /// A person has to decide.
    Blocked,
    /// Nothing is left to do in the workflow; the runtime closes out.
    Completed,
}

/// What a role proposes to do next (`spec/teams.md` 7.2).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Go on within the phase.
    Continue,
    /// Go on to the next step.
    Advance,
    /// Send it back; `reopen_category` says what for.
    Reopen,
    /// A person has to decide.
    Block,
    /// Nothing is left to do.
    Complete,
}

/// What has to be done again (`spec/teams.md` 7.1).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReopenCategory {
    /// What is to be built.
    Scope,
    /// What people see.
    Ux,
    /// How it is built.
    Architecture,
    /// The change itself.
    Implementation,
    /// The proof of the change.
    Verification,
}

/// The twelve steps of a request.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Research looks for outside facts before planning.
    ResearchInitial,
    /// The planner writes the first plan.
    PlannerDraft,
    /// Older workspaces only; normalised to the advisory of the phase owner.
    #[schemars(skip)]
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

    /// Whether the step judges a change, and so needs it as a commit first.
    #[must_use]
    pub const fn judges_a_commit(self) -> bool {
        match self {
            Step::ArchitectReview | Step::QaValidation => true,
            Step::ResearchInitial
            | Step::PlannerDraft
            | Step::PlannerAdvisory
            | Step::DesignerAdvisory
            | Step::ArchitectAdvisory
            | Step::PlannerFinalize
            | Step::ArchitectGuidance
            | Step::DeveloperBuild
            | Step::DeveloperRevision
            | Step::Closeout => false,
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

/// A closed set of words that files and agents spell in snake case; the blank word means "none".
pub trait Word: Copy + Sized + 'static {
    /// Every member.
    const ALL: &'static [Self];
    /// The spelling in files.
    fn as_str(self) -> &'static str;
    /// Reads a word, whatever its case and the blanks around it; `None` for anything else.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        Self::ALL.iter().copied().find(|word| word.as_str() == text)
    }
    /// Reads a word out of a JSON string; `None` for anything else.
    fn of(value: Option<&Value>) -> Option<Self> {
        value.and_then(Value::as_str).and_then(Self::read)
    }
}

macro_rules! words {
    ($type:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl Word for $type {
            const ALL: &'static [Self] = &[$($type::$variant),+];
            fn as_str(self) -> &'static str {
                match self { $($type::$variant => $text),+ }
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(Word::as_str(*self))
            }
        }
    };
}

words!(Phase {
    Planning = "planning",
    Implementation = "implementation",
    Validation = "validation",
    Closeout = "closeout",
});
words!(PhaseStatus {
    Active = "active",
    Finalizing = "finalizing",
    Blocked = "blocked",
    Completed = "completed",
});
words!(Outcome {
    Continue = "continue",
    Advance = "advance",
    Reopen = "reopen",
    Block = "block",
    Complete = "complete",
});
words!(ReopenCategory {
    Scope = "scope",
    Ux = "ux",
    Architecture = "architecture",
    Implementation = "implementation",
    Verification = "verification",
});
words!(Step {
    ResearchInitial = "research_initial",
    PlannerDraft = "planner_draft",
    PlannerAdvisory = "planner_advisory",
    DesignerAdvisory = "designer_advisory",
    ArchitectAdvisory = "architect_advisory",
    PlannerFinalize = "planner_finalize",
    ArchitectGuidance = "architect_guidance",
    DeveloperBuild = "developer_build",
    ArchitectReview = "architect_review",
    DeveloperRevision = "developer_revision",
    QaValidation = "qa_validation",
    Closeout = "closeout",
});

impl Word for Role {
    const ALL: &'static [Self] = &Role::ALL;
    fn as_str(self) -> &'static str {
        Role::as_str(self)
    }
}

/// Serialises `None` as the empty string and back, as the older files have it.
pub(crate) mod blank {
    use super::{Deserialize, Deserializer, Serializer, Word};

    pub(crate) fn serialize<W: Word, S: Serializer>(
        word: &Option<W>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(word.map_or("", Word::as_str))
    }

    pub(crate) fn deserialize<'de, W: Word, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<W>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.as_deref().and_then(W::read))
    }
}

/// What a role proposes should happen after its step (`spec/teams.md` 7.2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// The move itself; `None` leaves it to the table.
    #[serde(default, with = "blank")]
    pub outcome: Option<Outcome>,
    /// The phase aimed at.
    #[serde(default, with = "blank")]
    pub target_phase: Option<Phase>,
    /// The step aimed at.
    #[serde(default, with = "blank")]
    pub target_step: Option<Step>,
    /// What a reopening is about.
    #[serde(default, with = "blank")]
    pub reopen_category: Option<ReopenCategory>,
    /// Why, in the role's words.
    #[serde(default)]
    pub reason: String,
    /// What is still open.
    #[serde(default)]
    pub unresolved_items: Vec<String>,
    /// Whether the role considers the phase finished.
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
        let target_step = match Step::of(value.get("target_step")) {
            None | Some(Step::PlannerAdvisory) => requested.and_then(Step::requested_from),
            Some(step) => Some(step),
        };
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

impl Step {
    /// The step meant by the older `requested_role` of a proposal.
    fn requested_from(role: Role) -> Option<Step> {
        match role {
            Role::Designer => Some(Step::DesignerAdvisory),
            Role::Architect => Some(Step::ArchitectAdvisory),
            Role::Planner => Some(Step::PlannerFinalize),
            Role::Qa => Some(Step::QaValidation),
            Role::Orchestrator
            | Role::Research
            | Role::Developer
            | Role::Parser
            | Role::Sourcer
            | Role::VersionController => None,
        }
    }

    /// The role that advises in this step; the older shared step takes it from the phase's owner.
    #[must_use]
    pub fn advisor(self, phase_owner: Option<Role>) -> Option<Role> {
        match self {
            Step::DesignerAdvisory => Some(Role::Designer),
            Step::ArchitectAdvisory => Some(Role::Architect),
            Step::PlannerAdvisory => {
                phase_owner.filter(|role| matches!(role, Role::Designer | Role::Architect))
            }
            Step::ResearchInitial
            | Step::PlannerDraft
            | Step::PlannerFinalize
            | Step::ArchitectGuidance
            | Step::DeveloperBuild
            | Step::ArchitectReview
            | Step::DeveloperRevision
            | Step::QaValidation
            | Step::Closeout => None,
        }
    }

    /// The advisory step of a role, if it advises.
    #[must_use]
    pub fn advisory_of(role: Role) -> Option<Step> {
        match role {
            Role::Designer => Some(Step::DesignerAdvisory),
            Role::Architect => Some(Step::ArchitectAdvisory),
            Role::Orchestrator
            | Role::Research
            | Role::Planner
            | Role::Developer
            | Role::Qa
            | Role::Parser
            | Role::Sourcer
            | Role::VersionController => None,
        }
    }
}
