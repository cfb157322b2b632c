//! When the next sprint begins, and what the team last looked for (`spec/teams.md` 4.6).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::domain::finding::Finding;
use crate::domain::ids::{ChannelId, MessageId, RequestId, SprintId};
use crate::domain::lenient::blank_is_none;
use crate::domain::result::ProposedItem;
use crate::domain::sprint::Trigger;
use crate::domain::time::Timestamp;
use crate::domain::word::{blank, words};

words! {
    /// How far the search for work has come.
    pub enum SourcingStatus {
        /// There was nothing to find.
        NoChanges = "no_changes",
        /// It found what it had found before.
        DuplicateSuppressed = "duplicate_suppressed",
        /// The sourcer makes candidates of what was found.
        Sourcing = "sourcing",
        /// The planner judges them.
        QueuedForPlannerReview = "queued_for_planner_review",
        /// The backlog has what the planner kept.
        Updated = "updated",
    }
}

/// How a review by the planner ended. In records it is `completed`, `cancelled` or `failed: …`, and blank while it
/// is open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ReviewEnd {
    /// It has not.
    #[default]
    Open,
    /// Its result was used.
    Completed,
    /// It was withdrawn.
    Cancelled,
    /// It brought nothing, for this reason.
    Failed(String),
}

impl From<String> for ReviewEnd {
    fn from(text: String) -> Self {
        match text.trim() {
            "" => Self::Open,
            "completed" => Self::Completed,
            "cancelled" => Self::Cancelled,
            other => Self::Failed(other.strip_prefix("failed: ").unwrap_or(other).to_owned()),
        }
    }
}

impl From<ReviewEnd> for String {
    fn from(end: ReviewEnd) -> Self {
        match end {
            ReviewEnd::Open => Self::new(),
            ReviewEnd::Completed => "completed".to_owned(),
            ReviewEnd::Cancelled => "cancelled".to_owned(),
            ReviewEnd::Failed(reason) => format!("failed: {reason}"),
        }
    }
}

/// The message that shows how a sprint goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SprintBoard {
    /// Whose.
    pub sprint_id: SprintId,
    /// Where it is and which; none until it is posted.
    #[serde(default)]
    pub message: Option<(ChannelId, MessageId)>,
    /// What it said last, as a digest, so that nothing is edited into what it says already.
    #[serde(default)]
    pub digest: String,
}

/// The scheduler's memory: one record a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduler {
    /// The sprint that holds the slot.
    #[serde(with = "blank_is_none")]
    pub active_sprint_id: Option<SprintId>,
    /// The board that is pinned, or about to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<SprintBoard>,
    /// When sprints began, ended and were let pass, and when the next one may begin.
    #[serde(flatten)]
    pub slots: SprintSlots,
    /// The search for work: how far it looked, what it found and how the planner judged it.
    #[serde(flatten)]
    pub sourcing: Sourcing,
    /// The planner's review of blocked items.
    #[serde(flatten)]
    pub blocked_review: BlockedReview,
    /// What people were asked for before a sprint can begin.
    #[serde(flatten)]
    pub milestone_request: MilestoneRequest,
}

/// When sprints began, ended and were let pass, and when the next one may begin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SprintSlots {
    /// When a sprint last began.
    #[serde(with = "blank_is_none")]
    pub last_started_at: Option<Timestamp>,
    /// When one last ended.
    #[serde(with = "blank_is_none")]
    pub last_completed_at: Option<Timestamp>,
    /// When a slot was last let pass.
    #[serde(with = "blank_is_none")]
    pub last_skipped_at: Option<Timestamp>,
    /// Why (`no_actionable_backlog`).
    pub last_skip_reason: String,
    /// The next instant of the grid.
    #[serde(with = "blank_is_none")]
    pub next_slot_at: Option<Timestamp>,
    /// A slot that came in a running sprint and waits for its end.
    #[serde(with = "blank_is_none")]
    pub deferred_slot_at: Option<Timestamp>,
    /// The settings that these instants follow from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// Why the last sprint began.
    #[serde(with = "blank_is_none")]
    pub last_trigger: Option<Trigger>,
}

/// The search for work: how far it looked, what it found and how the planner judged it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sourcing {
    /// When findings were last looked for.
    #[serde(rename = "last_sourced_at", with = "blank_is_none")]
    pub last_at: Option<Timestamp>,
    /// What came of it.
    #[serde(rename = "last_sourcing_status", with = "blank")]
    pub status: Option<SourcingStatus>,
    /// The request that looked.
    #[serde(rename = "last_sourcing_request_id", with = "blank_is_none")]
    pub request_id: Option<RequestId>,
    /// What it found, as a digest.
    #[serde(rename = "last_sourcing_fingerprint")]
    pub fingerprint: String,
    /// How the planner's review of it ended; none while it is open.
    #[serde(rename = "last_sourcing_review_status")]
    pub review_status: ReviewEnd,
    /// The review.
    #[serde(rename = "last_sourcing_review_request_id", with = "blank_is_none")]
    pub review_request_id: Option<RequestId>,
    /// Findings that the planner's review could not judge, for the next look.
    #[serde(rename = "unjudged_findings", skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<Finding>,
    /// The traces of those that the look under way has.
    #[serde(rename = "looked_at_again", skip_serializing_if = "BTreeSet::is_empty")]
    pub again: BTreeSet<String>,
    /// Candidates of another milestone than that of the sprint which ran when they were made, for when it is over.
    #[serde(
        rename = "candidates_for_later",
        deserialize_with = "ProposedItem::read_all",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub for_later: Vec<ProposedItem>,
    /// How far each source of findings was read.
    pub watermarks: std::collections::BTreeMap<String, String>,
}

/// The planner's review of blocked items.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockedReview {
    /// When blocked items were last reviewed.
    #[serde(rename = "last_blocked_review_at", with = "blank_is_none")]
    pub last_at: Option<Timestamp>,
    /// The review.
    #[serde(rename = "last_blocked_review_request_id", with = "blank_is_none")]
    pub request_id: Option<RequestId>,
    /// How it ended; none while it is open.
    #[serde(rename = "last_blocked_review_status")]
    pub status: ReviewEnd,
    /// What was blocked then, as a digest.
    #[serde(rename = "last_blocked_review_fingerprint")]
    pub fingerprint: String,
}

/// What people were asked for before a sprint can begin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MilestoneRequest {
    /// Whether people were asked for a milestone and have not given one.
    #[serde(rename = "milestone_request_pending")]
    pub pending: bool,
    /// When they were asked.
    #[serde(rename = "milestone_request_sent_at", with = "blank_is_none")]
    pub sent_at: Option<Timestamp>,
    /// Where.
    #[serde(rename = "milestone_request_channel_id", with = "blank_is_none")]
    pub channel_id: Option<ChannelId>,
    /// Why.
    #[serde(rename = "milestone_request_reason")]
    pub reason: String,
}
