//! Plans: what shall be true at the end, and the items that bring it about, in ids that are followed to the end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::domain::criterion::Criterion;
use crate::domain::ids::{PlanId, PlanItemId, RequirementId};
use crate::domain::lenient::is_zero;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

words! {
    /// How much something that is wrong with a plan weighs.
    pub enum Severity {
        /// The plan cannot be used.
        Fault = "fault",
        /// Somebody should look at it.
        Warning = "warning",
    }
    /// When a requirement is to be met.
    #[derive(Default, JsonSchema)]
    pub enum RequirementTime {
        /// By this plan.
        #[default]
        Now = "now",
        /// By another one.
        Later = "later",
        /// Not at all.
        OutOfScope = "out_of_scope",
    }
}

words! {
    /// A rule that a plan is held against.
    pub enum PlanRule {
        /// A plan has at least one item.
        NoItems = "no_items",
        /// An item has at least one criterion.
        NoCriterion = "no_criterion",
        /// An id stands once.
        DoubledId = "doubled_id",
        /// What an item depends on is in the plan.
        UnknownItem = "unknown_item",
        /// What an item serves is in the plan.
        UnknownRequirement = "unknown_requirement",
        /// Nothing depends on itself.
        Cycle = "cycle",
        /// A path stays in the project.
        OutsidePath = "outside_path",
        /// A requirement of now is served by an item.
        UncoveredRequirement = "uncovered_requirement",
        /// An item delivers the thing itself.
        Weakening = "weakening",
        /// A criterion can be seen to pass or fail.
        Unseen = "unseen",
        /// An item is small enough.
        Size = "size",
        /// What an item changes is declared.
        NoPaths = "no_paths",
        /// A path is allowed or excluded.
        ContradictingPath = "contradicting_path",
    }
}

impl PlanRule {
    /// How much a problem of this rule weighs.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::NoItems
            | Self::NoCriterion
            | Self::DoubledId
            | Self::UnknownItem
            | Self::UnknownRequirement
            | Self::Cycle
            | Self::OutsidePath => Severity::Fault,
            Self::UncoveredRequirement
            | Self::Weakening
            | Self::Unseen
            | Self::Size
            | Self::NoPaths
            | Self::ContradictingPath => Severity::Warning,
        }
    }
}

/// Something that shall hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// `R-1`, or what its author calls it.
    pub id: RequirementId,
    /// What shall hold.
    pub text: String,
    /// When.
    #[serde(default)]
    pub when: RequirementTime,
}

impl Requirement {
    /// What an author's list asks for, in the order of the numbers: `R-1` is the first.
    pub fn numbered(said: impl IntoIterator<Item = (String, RequirementTime)>) -> Vec<Requirement> {
        let number = |(place, (text, when)): (usize, (String, RequirementTime))| {
            let id = RequirementId::parse(&format!("R-{}", place + 1)).ok()?;
            Some(Requirement { id, text, when })
        };
        said.into_iter().enumerate().filter_map(number).collect()
    }

    /// In one line, for who has to leave it alone.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{} {}", self.id, self.text)
    }
}

/// The most effort of an item.
pub const MOST_EFFORT: u32 = 1_000;

/// What one commit delivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanItem {
    /// What its author calls it: `US-001`, `EPIC-002`.
    pub id: PlanItemId,
    /// One line.
    pub title: String,
    /// What is to be done.
    #[serde(default)]
    pub scope: String,
    /// What passes or fails, one thing each: `C-1` is the first.
    #[serde(default)]
    pub criteria: Vec<Criterion>,
    /// The requirements that it serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<RequirementId>,
    /// Globs of the paths that it changes; none declared where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_paths: Vec<String>,
    /// Globs of the paths that it leaves as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_paths: Vec<String>,
    /// Items that have to be delivered before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<PlanItemId>,
    /// 1 is first; 0 means that it has no rank.
    #[serde(default)]
    pub priority_rank: u32,
    /// The work that it takes, in half days of a person; 0 where its author does not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub effort: u32,
    /// Whether its author says that it is delivered already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
}

impl PlanItem {
    /// An item of which only the name is known.
    #[must_use]
    pub fn new(id: PlanItemId, title: &str) -> Self {
        Self {
            id,
            title: title.to_owned(),
            scope: String::new(),
            criteria: Vec::new(),
            requirements: Vec::new(),
            allowed_paths: Vec::new(),
            excluded_paths: Vec::new(),
            depends_on: Vec::new(),
            priority_rank: 0,
            effort: 0,
            done: false,
        }
    }
}

/// What shall be true at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What it is called.
    pub title: String,
    /// What shall hold.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    /// What is delivered, in the order of its author.
    #[serde(default)]
    pub items: Vec<PlanItem>,
}

impl Plan {
    /// What an approval of exactly this plan is bound to: SHA-256 in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        Sha256::digest(json).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// An item by its id.
    #[must_use]
    pub fn item(&self, id: &PlanItemId) -> Option<&PlanItem> {
        self.items.iter().find(|item| item.id == *id)
    }
}

/// A plan that the team has taken in. An approval counts for the version whose digest it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPlan {
    /// The name of the file, without its ending.
    pub plan_id: PlanId,
    /// 1 is the first.
    pub version: u32,
    /// [`Plan::digest`].
    pub digest: String,
    /// What it says.
    pub plan: Plan,
    /// When this version was taken in.
    pub imported_at: Timestamp,
    /// By whom.
    pub imported_by: String,
}

impl StoredPlan {
    /// What an approval of the difference to another version is bound to: SHA-256 in hex of both digests, so that nobody
    /// lets through a difference that they have not seen.
    #[must_use]
    pub fn approval_of(&self, other: &str) -> String {
        let both = Sha256::digest(format!("{}\n{other}", self.digest));
        both.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The item of a plan that an item of the backlog stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRef {
    /// The plan.
    pub plan_id: PlanId,
    /// Its item.
    pub item_id: PlanItemId,
}

/// A part of a plan, for whoever says where something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanPart {
    /// All of it.
    Whole,
    /// The requirement at this place of the list.
    Requirement(usize),
    /// The item at this place of the list.
    Item(usize),
    /// What the item at the first place depends on, at the second.
    Dependency(usize, usize),
    /// A criterion of an item.
    Criterion(usize, usize),
    /// A path that an item allows, or after those one that it excludes.
    Path(usize, usize),
}
