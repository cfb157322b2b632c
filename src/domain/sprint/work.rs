//! The todos of a sprint and what came of them.

use serde::{Deserialize, Serialize};

use super::event::Activity;
use super::todo::Todo;
use crate::domain::ids::{ItemId, RequestId, TodoId};
use crate::domain::lenient::blank_is_none;
use crate::domain::time::Timestamp;

/// How the project stood when the sprint began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitBaseline {
    /// The repository.
    pub repo_root: String,
    /// The branch's commit; blank in a repository without commits.
    pub head_sha: String,
    /// What lay uncommitted in its checkout.
    pub dirty_paths: Vec<String>,
}

/// A commit of the sprint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SprintCommit {
    /// Its id.
    pub sha: String,
    /// The first characters of it.
    pub short_sha: String,
    /// The first line of its message.
    pub subject: String,
    /// Whether that names the sprint.
    pub sprint_tagged: bool,
}

/// What a sprint works on: its todos, its commits and the last lines of what happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SprintWork {
    /// Items that became todos.
    pub selected_backlog_ids: Vec<ItemId>,
    /// The todos.
    pub todos: Vec<Todo>,
    /// Files that matter, workspace-relative.
    pub reference_artifacts: Vec<String>,
    /// The last lines of what happened.
    pub recent_activity: Vec<Activity>,
    /// When something last happened.
    #[serde(with = "blank_is_none")]
    pub last_activity_at: Option<Timestamp>,
    /// The last commit.
    pub commit_sha: String,
    /// All of them, oldest first.
    pub commit_shas: Vec<String>,
    /// All of them, as git tells.
    pub commits: Vec<SprintCommit>,
    /// How many.
    pub commit_count: u64,
    /// The project as it was at the start; none until it was looked at.
    pub git_baseline: Option<GitBaseline>,
    /// Who paused it: nothing more begins until it is restarted, or what it was paused for goes on or is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// When it was asked to go on from a checkpoint.
    #[serde(rename = "resume_from_checkpoint_requested_at", with = "blank_is_none")]
    pub resume_requested_at: Option<Timestamp>,
    /// The todo that it went on from.
    #[serde(rename = "last_resume_checkpoint_todo_id", with = "blank_is_none")]
    pub resumed_todo_id: Option<TodoId>,
    /// How that todo stood.
    #[serde(rename = "last_resume_checkpoint_status")]
    pub resumed_todo_status: String,
    /// Its request, where that is to be tried again as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries_again: Option<RequestId>,
}
