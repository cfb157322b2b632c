//! How far a sprint is with an item: the part of the item's record that the sprint writes (`spec/teams.md` 4.4).

use serde::{Deserialize, Serialize};

use crate::domain::ids::{ItemId, RequestId, TodoId};
use crate::domain::lenient::blank_is_none;
use crate::domain::request::{Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::domain::word::words;
use crate::domain::work_span::WorkSpan;

words! {
    /// Where a todo stands. Follows from its request alone.
    pub enum TodoStatus {
        /// Its request has not begun.
        Queued = "queued",
        /// Its request is under way.
        Running = "running",
        /// The work is done, and its commit could not be brought to the branch: a person is in the way, or is asked how
        /// two versions go together.
        Uncommitted = "uncommitted",
        /// Done, with a commit.
        Committed = "committed",
        /// Done, and nothing had to be committed.
        Completed = "completed",
        /// Its request waits for a person.
        Blocked = "blocked",
        /// Its request failed.
        Failed = "failed",
        /// A person withdrew it, or the sprint ended before it began.
        Cancelled = "cancelled",
    }
}

impl TodoStatus {
    /// Where a todo stands, by its request's own status and nothing else (13.A #1): what a role reported on
    /// the way does not count.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        match request.status {
            RequestStatus::Queued => Self::Queued,
            RequestStatus::Delegated => Self::Running,
            RequestStatus::Completed => Self::Completed,
            RequestStatus::Committed => Self::Committed,
            RequestStatus::Blocked if request.waits_with_its_change() => Self::Uncommitted,
            RequestStatus::Blocked => Self::Blocked,
            RequestStatus::Failed => Self::Failed,
            RequestStatus::Cancelled => Self::Cancelled,
        }
    }

    /// Whether the sprint does not wait for it any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Committed | Self::Completed | Self::Blocked | Self::Failed | Self::Cancelled => {
                true
            }
            Self::Queued | Self::Running | Self::Uncommitted => false,
        }
    }

    /// Whether it was delivered.
    #[must_use]
    pub const fn is_success(self) -> bool {
        match self {
            Self::Committed | Self::Completed => true,
            Self::Queued
            | Self::Running
            | Self::Uncommitted
            | Self::Blocked
            | Self::Failed
            | Self::Cancelled => false,
        }
    }
}

/// How far a sprint is with an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TodoProgress {
    /// The id of the todo.
    pub todo_id: TodoId,
    /// Who answers for it.
    #[serde(default = "planner")]
    pub owner_role: Role,
    /// Where it stands.
    pub status: TodoStatus,
    /// The request that does it; none while it is queued.
    #[serde(default, with = "blank_is_none")]
    pub request_id: Option<RequestId>,
    /// Files that came of it.
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// Those of them that its item does not declare, where it declares any.
    #[serde(default)]
    pub undeclared_paths: Vec<String>,
    /// What its item declares and its change does not touch.
    #[serde(default)]
    pub untouched_paths: Vec<String>,
    /// When it was made.
    #[serde(default, with = "blank_is_none")]
    pub created_at: Option<Timestamp>,
    /// When its request began.
    #[serde(default, with = "blank_is_none")]
    pub started_at: Option<Timestamp>,
    /// When its request ended.
    #[serde(default, with = "blank_is_none")]
    pub ended_at: Option<Timestamp>,
    /// When somebody worked on it; between these it waited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<WorkSpan>,
    /// What came of it, in a few lines.
    #[serde(default)]
    pub summary: String,
    /// Whether a person has skipped it, or had it split: nobody goes on with it as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dropped: bool,
    /// The item that carries it on, in records of older builds.
    #[serde(default, with = "blank_is_none")]
    pub carry_over_backlog_id: Option<ItemId>,
    /// The request that this one tries again.
    #[serde(default, with = "blank_is_none")]
    pub retry_of_request_id: Option<RequestId>,
    /// `restart_checkpoint` where a restart put it first.
    #[serde(default)]
    pub dependency_gate_bypass: String,
    /// Its commit; blank where there is none.
    #[serde(default)]
    pub commit_sha: String,
    /// The commit with which that was proven, where it was not by itself; blank elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proven_through: String,
    /// What became of its commit, where that is not a commit.
    #[serde(default)]
    pub version_control_message: String,
    /// Times that its commit was tried again by the sprint itself.
    #[serde(default)]
    pub commit_retries: u32,
    /// When it last changed.
    #[serde(default, with = "blank_is_none")]
    pub updated_at: Option<Timestamp>,
}

const fn planner() -> Role {
    Role::Planner
}

/// The mark of a todo that a restart put first.
pub const RESTART_CHECKPOINT: &str = "restart_checkpoint";

impl TodoProgress {
    /// Queued.
    #[must_use]
    pub fn new(todo_id: TodoId, now: Timestamp) -> Self {
        Self {
            todo_id,
            owner_role: Role::Planner,
            status: TodoStatus::Queued,
            request_id: None,
            artifacts: Vec::new(),
            undeclared_paths: Vec::new(),
            untouched_paths: Vec::new(),
            created_at: Some(now),
            started_at: None,
            ended_at: None,
            spans: Vec::new(),
            summary: String::new(),
            is_dropped: false,
            carry_over_backlog_id: None,
            retry_of_request_id: None,
            dependency_gate_bypass: String::new(),
            commit_sha: String::new(),
            proven_through: String::new(),
            version_control_message: String::new(),
            commit_retries: 0,
            updated_at: Some(now),
        }
    }

    /// Whether a restart put it before its order and its dependencies.
    #[must_use]
    pub fn is_checkpoint(&self) -> bool {
        self.dependency_gate_bypass == RESTART_CHECKPOINT
    }
}
