//! The history of a sprint (`spec/teams.md` 4.5).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words::SprintStatus;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

words! {
    /// What a line of a sprint's history tells.
    pub enum SprintEventKind {
        /// Its history could not be archived.
        ArchiveFailed = "archive_failed",
        /// Items left the backlog; older records have it.
        BacklogPruned = "backlog_pruned",
        /// It stopped before its end.
        Blocked = "blocked",
        /// It was withdrawn.
        Cancelled = "cancelled",
        /// It is being closed.
        Closeout = "closeout",
        /// It is over.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// A step of planning is given back.
        InitialPhaseStepReopened = "initial_phase_step_reopened",
        /// A role said nothing that could be read; older records have it.
        InvalidRolePayload = "invalid_role_payload",
        /// An item that was lost is there again.
        ItemRestored = "item_restored",
        /// Its todos stand.
        PlanningReady = "planning_ready",
        /// A step of planning is kept.
        PlanningSync = "planning_sync",
        /// A review brought nothing that could be taken.
        PlanningSyncInvalid = "planning_sync_invalid",
        /// A review brought something that was not taken.
        PlanningSyncWarning = "planning_sync_warning",
        /// Documents were linked; older records have it.
        ReferenceArtifactsLinked = "reference_artifacts_linked",
        /// A request waits; older records have it.
        RequestBlocked = "request_blocked",
        /// A request is over; older records have it.
        RequestCompleted = "request_completed",
        /// A request failed; older records have it.
        RequestFailed = "request_failed",
        /// Research before planning is over.
        ResearchPrepassCompleted = "research_prepass_completed",
        /// It goes on from a todo; older records have it.
        RestartCheckpoint = "restart_checkpoint",
        /// A person lets it go on.
        RestartRequested = "restart_requested",
        /// It goes on.
        Resumed = "resumed",
        /// A role got something; older records have it.
        RoleDelegated = "role_delegated",
        /// A role reported; older records have it.
        RoleResult = "role_result",
        /// A role began; older records have it.
        RoleStarted = "role_started",
        /// It begins.
        Started = "started",
        /// A todo is over, one way or another.
        TodoCompleted = "todo_completed",
        /// A todo waits for others; older records have it.
        TodoDependencyWait = "todo_dependency_wait",
        /// A todo is let go of.
        TodoReleased = "todo_released",
        /// A todo goes on.
        TodoResumed = "todo_resumed",
        /// A todo begins.
        TodoStarted = "todo_started",
        /// A person lets it end.
        WrapUpRequested = "wrap_up_requested",
        /// A person paused it.
        Paused = "paused",
        /// Something that this build does not know.
        #[serde(other)]
        Other = "other",
    }
}

impl SprintEventKind {
    /// The line that tells how a sprint ended.
    #[must_use]
    pub const fn of(status: SprintStatus) -> Self {
        match status {
            SprintStatus::Planning | SprintStatus::Running => Self::Resumed,
            SprintStatus::Closeout => Self::Closeout,
            SprintStatus::Completed => Self::Completed,
            SprintStatus::Failed => Self::Failed,
            SprintStatus::Blocked => Self::Blocked,
            SprintStatus::Cancelled => Self::Cancelled,
        }
    }
}

/// One line of what happened lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// When.
    pub timestamp: Timestamp,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: SprintEventKind,
    /// Who.
    #[serde(default)]
    pub role: String,
    /// About which request.
    #[serde(default)]
    pub request_id: String,
    /// One line.
    #[serde(default)]
    pub summary: String,
}

/// A line of the sprint's own history, in `<sprint>.events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SprintEvent {
    /// When.
    pub timestamp: Timestamp,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: SprintEventKind,
    /// One line for people.
    #[serde(default)]
    pub summary: String,
    /// Details for machines.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub payload: Value,
}
