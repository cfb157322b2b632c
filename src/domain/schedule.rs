//! When the next sprint begins, and what the team last looked for (`spec/teams.md` 4.6).

use serde::{Deserialize, Serialize};

use crate::domain::backlog::blank_is_none;
use crate::domain::ids::{ChannelId, RequestId, SprintId};
use crate::domain::sprint::Trigger;
use crate::domain::time::Timestamp;

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
    /// What came of it: `no_changes`, `queued_for_planner_review`, `duplicate_suppressed`, `updated`.
    pub last_sourcing_status: String,
    /// The request that looked.
    #[serde(with = "blank_is_none")]
    pub last_sourcing_request_id: Option<RequestId>,
    /// What it found, as a digest.
    pub last_sourcing_fingerprint: String,
    /// How the planner's review of it ended.
    pub last_sourcing_review_status: String,
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
    /// How it ended; blank while it is open.
    pub last_blocked_review_status: String,
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
