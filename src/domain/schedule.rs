//! When the next sprint begins, and what the team last looked for (`spec/teams.md` 4.6).

use serde::{Deserialize, Serialize};

use crate::domain::backlog::blank_is_none;
use crate::domain::ids::{ChannelId, RequestId, SprintId};
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

/// The scheduler's memory: one record a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduler {
    /// The sprint that holds the slot.
    #[serde(with = "blank_is_none")]
    pub active_sprint_id: Option<SprintId>,
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
    /// When findings were last looked for.
    #[serde(with = "blank_is_none")]
    pub last_sourced_at: Option<Timestamp>,
    /// What came of it.
    #[serde(with = "blank")]
    pub last_sourcing_status: Option<SourcingStatus>,
    /// The request that looked.
    #[serde(with = "blank_is_none")]
    pub last_sourcing_request_id: Option<RequestId>,
    /// What it found, as a digest.
    pub last_sourcing_fingerprint: String,
    /// How the planner's review of it ended; none while it is open.
    pub last_sourcing_review_status: ReviewEnd,
    /// The review.
    #[serde(with = "blank_is_none")]
    pub last_sourcing_review_request_id: Option<RequestId>,
    /// How far each source of findings was read.
    pub watermarks: std::collections::BTreeMap<String, String>,
    /// The next instant of the grid.
    #[serde(with = "blank_is_none")]
    pub next_slot_at: Option<Timestamp>,
    /// A slot that came in a running sprint and waits for its end.
    #[serde(with = "blank_is_none")]
    pub deferred_slot_at: Option<Timestamp>,
    /// Why the last sprint began.
    #[serde(with = "blank_is_none")]
    pub last_trigger: Option<Trigger>,
    /// When blocked items were last reviewed.
    #[serde(with = "blank_is_none")]
    pub last_blocked_review_at: Option<Timestamp>,
    /// The review.
    #[serde(with = "blank_is_none")]
    pub last_blocked_review_request_id: Option<RequestId>,
    /// How it ended; none while it is open.
    pub last_blocked_review_status: ReviewEnd,
    /// What was blocked then, as a digest.
    pub last_blocked_review_fingerprint: String,
    /// Whether people were asked for a milestone and have not given one.
    pub milestone_request_pending: bool,
    /// When they were asked.
    #[serde(with = "blank_is_none")]
    pub milestone_request_sent_at: Option<Timestamp>,
    /// Where.
    #[serde(with = "blank_is_none")]
    pub milestone_request_channel_id: Option<ChannelId>,
    /// Why.
    pub milestone_request_reason: String,
}
