//! The words of a sprint record.

use crate::domain::word::words;
use serde::{Deserialize, Serialize};

words! {
    /// What a sprint is busy with.
    pub enum Phase {
        /// Planning.
        Initial = "initial",
        /// Working on todos.
        Ongoing = "ongoing",
        /// Closing.
        WrapUp = "wrap_up",
    }
    /// Where a sprint stands.
    pub enum SprintStatus {
        /// It is being planned.
        Planning = "planning",
        /// Its todos are worked on.
        Running = "running",
        /// It is being closed.
        Closeout = "closeout",
        /// It ended well.
        Completed = "completed",
        /// It could not be closed.
        Failed = "failed",
        /// It could not be planned; a person can restart it.
        Blocked = "blocked",
        /// A person stopped it before anything was delivered.
        Cancelled = "cancelled",
    }
    /// Why a sprint began.
    pub enum Trigger {
        /// A person said so.
        ManualStart = "manual_start",
        /// There was something to do.
        BacklogReady = "backlog_ready",
        /// It was time.
        ScheduledSlot = "scheduled_slot",
        /// It was time earlier, while another one ran.
        DeferredSlot = "deferred_slot",
        /// A person restarted it.
        ManualRestart = "manual_restart",
    }
    /// How closing a sprint went (`spec/teams.md` 11.2).
    pub enum CloseoutStatus {
        /// Every commit names the sprint and nothing is left.
        Verified = "verified",
        /// Nothing was committed.
        NoNewCommits = "no_new_commits",
        /// There is no repository.
        NoRepo = "no_repo",
        /// There are commits, and none names the sprint.
        WarningMissingSprintTag = "warning_missing_sprint_tag",
        /// Older files: something lay uncommitted in the project and was about to be committed.
        PendingChanges = "pending_changes",
        /// Older files: that could not be committed.
        VersionControlFailed = "version_control_failed",
        /// Planning did not come to a plan.
        PlanningIncomplete = "planning_incomplete",
        /// Git could not be asked.
        Failed = "failed",
        /// Nothing was selected.
        NoBacklogSelected = "no_backlog_selected",
        /// The same, as older files say it.
        NoSelectedBacklog = "no_selected_backlog",
        /// Older files: has to be restarted.
        RestartRequired = "restart_required",
        /// A person stopped it.
        Stopped = "stopped",
    }
    /// How a sprint was asked to end.
    pub enum WrapUp {
        /// When the running todos are through.
        AfterCurrent = "after_current",
        /// At once; running todos are released.
        Now = "now",
        /// The working day is over.
        Cutoff = "cutoff",
    }
}

/// Who began a sprint.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionMode {
    /// A person.
    #[default]
    Manual,
    /// The scheduler.
    Auto,
}

impl SprintStatus {
    /// Whether it is over, and its slot free.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Blocked | Self::Cancelled => true,
            Self::Planning | Self::Running | Self::Closeout => false,
        }
    }
}

impl CloseoutStatus {
    /// Whether a sprint that was closed like this ended well.
    #[must_use]
    pub const fn is_success(self) -> bool {
        match self {
            Self::Verified | Self::NoNewCommits | Self::NoRepo | Self::WarningMissingSprintTag => {
                true
            }
            Self::PendingChanges
            | Self::VersionControlFailed
            | Self::PlanningIncomplete
            | Self::Failed
            | Self::NoBacklogSelected
            | Self::NoSelectedBacklog
            | Self::RestartRequired
            | Self::Stopped => false,
        }
    }
}

impl Trigger {
    /// Who begins a sprint for this reason.
    #[must_use]
    pub const fn mode(self) -> ExecutionMode {
        match self {
            Self::ManualStart | Self::ManualRestart => ExecutionMode::Manual,
            Self::BacklogReady | Self::ScheduledSlot | Self::DeferredSlot => ExecutionMode::Auto,
        }
    }
}
