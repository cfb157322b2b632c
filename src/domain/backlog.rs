//! Candidate work (`spec/teams.md` 4.3).

use serde::{Deserialize, Serialize};

use crate::domain::criterion::Criterion;
use crate::domain::ids::{BacklogId, RequestId, SprintId};
use crate::domain::lenient::is_zero;
use crate::domain::origin::Origin;
use crate::domain::plan::PlanRef;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

words! {
    /// Where an item stands.
    pub enum BacklogStatus {
        /// Waits to be taken into a sprint.
        Pending = "pending",
        /// A todo of the active sprint.
        Selected = "selected",
        /// Waits for something that a person or another item has to bring.
        Blocked = "blocked",
        /// Delivered.
        Done = "done",
        /// Went on as another item, which names this one in `carry_over_of`.
        CarriedOver = "carried_over",
        /// Not wanted; `dropped_reason` says why.
        Dropped = "dropped",
    }
}

impl BacklogStatus {
    /// Whether the item may still become work.
    #[must_use]
    pub const fn is_active(self) -> bool {
        match self {
            Self::Pending | Self::Selected | Self::Blocked => true,
            Self::Done | Self::CarriedOver | Self::Dropped => false,
        }
    }
}

words! {
    /// What kind of work it is.
    #[derive(Default)]
    pub enum BacklogKind {
        /// Something is wrong.
        Bug = "bug",
        /// Something new.
        Feature = "feature",
        /// Something better.
        #[default]
        Enhancement = "enhancement",
        /// Upkeep.
        Chore = "chore",
    }
}

words! {
    /// Who found it.
    #[derive(Default)]
    pub enum BacklogSource {
        /// A person.
        User = "user",
        /// The planner.
        #[default]
        Planner = "planner",
        /// The sourcer.
        Sourcer = "sourcer",
        /// A discovery action.
        Discovery = "discovery",
        /// A todo that failed.
        CarryOver = "carry_over",
    }
}

/// One item. What the older runtime left out reads as its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BacklogItem {
    /// Its id.
    pub backlog_id: BacklogId,
    /// One line.
    #[serde(default)]
    pub title: String,
    /// A few lines.
    #[serde(default)]
    pub summary: String,
    /// What kind of work.
    #[serde(default)]
    pub kind: BacklogKind,
    /// Who found it.
    #[serde(default)]
    pub source: BacklogSource,
    /// What is to be done.
    #[serde(default)]
    pub scope: String,
    /// When it counts as done.
    #[serde(default)]
    pub acceptance_criteria: Vec<Criterion>,
    /// Those of them that a person wrote: no agent takes one away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons_criteria: Vec<Criterion>,
    /// The milestone that it serves; blank where none.
    #[serde(default)]
    pub milestone_title: String,
    /// 1 is first; 0 means unranked, which is last.
    #[serde(default)]
    pub priority_rank: u32,
    /// The work that it takes, compared with others; 0 where nobody says.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub effort: u32,
    /// Items of which each has to be done before this one begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<BacklogId>,
    /// What it stands for in a plan that a person brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanRef>,
    /// The item of such a plan that it is a piece of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece_of: Option<PlanRef>,
    /// Globs of the paths that it changes; none declared where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_paths: Vec<String>,
    /// Globs of the paths that it leaves as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_paths: Vec<String>,
    /// The sprint that planned it.
    #[serde(default, with = "blank_is_none")]
    pub planned_in_sprint_id: Option<SprintId>,
    /// Whether it came while a sprint was running.
    #[serde(default)]
    pub added_during_active_sprint: bool,
    /// Where it stands.
    pub status: BacklogStatus,
    /// Where it came from.
    #[serde(default)]
    pub origin: Origin,
    /// When it was written down.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The sprint that works on it.
    #[serde(default, with = "blank_is_none")]
    pub selected_in_sprint_id: Option<SprintId>,
    /// The sprint that delivered it.
    #[serde(default, with = "blank_is_none")]
    pub completed_in_sprint_id: Option<SprintId>,
    /// The item that this one carries on.
    #[serde(default, with = "blank_is_none")]
    pub carry_over_of: Option<BacklogId>,
    /// Why it is blocked.
    #[serde(default)]
    pub blocked_reason: String,
    /// Who is stuck on it.
    #[serde(default)]
    pub blocked_by_role: String,
    /// What would unblock it.
    #[serde(default)]
    pub required_inputs: Vec<String>,
    /// What to do then.
    #[serde(default)]
    pub recommended_next_step: String,
    /// What people answered while it was blocked, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// Sha-1 of title, scope and kind.
    #[serde(default)]
    pub fingerprint: String,
    /// Why it is not wanted.
    #[serde(default)]
    pub dropped_reason: String,
}

/// The mark in the origin of an item that the team could not do: only people make it possible again.
pub const GAVE_UP: &str = "gave_up";

impl BacklogItem {
    /// Whether a sprint has put it aside with this request, which did its todo and ended then.
    #[must_use]
    pub fn is_of_ended(&self, request: &RequestId) -> bool {
        self.origin.has("todo_id") && self.origin.text("request_id") == Some(request.as_str())
    }

    /// A fresh pending item.
    #[must_use]
    pub fn new(id: BacklogId, title: &str, scope: &str, kind: BacklogKind, now: Timestamp) -> Self {
        Self {
            backlog_id: id,
            title: title.to_owned(),
            summary: String::new(),
            kind,
            source: BacklogSource::default(),
            scope: scope.to_owned(),
            acceptance_criteria: Vec::new(),
            persons_criteria: Vec::new(),
            milestone_title: String::new(),
            priority_rank: 0,
            effort: 0,
            depends_on: Vec::new(),
            plan: None,
            piece_of: None,
            allowed_paths: Vec::new(),
            excluded_paths: Vec::new(),
            planned_in_sprint_id: None,
            added_during_active_sprint: false,
            status: BacklogStatus::Pending,
            origin: Origin::default(),
            created_at: now,
            updated_at: now,
            selected_in_sprint_id: None,
            completed_in_sprint_id: None,
            carry_over_of: None,
            blocked_reason: String::new(),
            blocked_by_role: String::new(),
            required_inputs: Vec::new(),
            recommended_next_step: String::new(),
            answers: Vec::new(),
            fingerprint: fingerprint(title, scope, kind),
            dropped_reason: String::new(),
        }
    }

    /// Forgets why it was blocked.
    pub fn clear_blockers(&mut self) {
        self.blocked_reason.clear();
        self.blocked_by_role.clear();
        self.required_inputs.clear();
        self.recommended_next_step.clear();
    }
}

/// The fingerprint of an item (`spec/teams.md` 4.3): sha-1 of `title|scope|kind`, lowercased with white
/// space collapsed.
#[must_use]
pub fn fingerprint(title: &str, scope: &str, kind: BacklogKind) -> String {
    use sha1::{Digest, Sha1};
    let flat = |text: &str| text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let digest = Sha1::digest(format!("{}|{}|{}", flat(title), flat(scope), kind.as_str()));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Ids that older files write as an empty text where there is none.
pub(crate) mod blank_is_none {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer, T: Serialize>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.serialize(serializer),
            None => serializer.serialize_str(""),
        }
    }

    pub(crate) fn deserialize<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        match Option::<String>::deserialize(deserializer)? {
            Some(text) if !text.trim().is_empty() => {
                text.parse().map(Some).map_err(serde::de::Error::custom)
            }
            Some(_) | None => Ok(None),
        }
    }
}
