//! How a sprint ends.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words::{CloseoutStatus, WrapUp};
use crate::domain::ids::{ItemId, TodoId};
use crate::domain::lenient::blank_is_none;
use crate::domain::time::Timestamp;

/// How a sprint was asked to end, how closing it went, and its report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SprintClosing {
    /// When it was asked to end.
    #[serde(rename = "wrap_up_requested_at", with = "blank_is_none")]
    pub requested_at: Option<Timestamp>,
    /// How it was asked to end.
    pub wrap_up: Option<WrapUp>,
    /// How closing it went.
    #[serde(rename = "closeout_status")]
    pub status: Option<CloseoutStatus>,
    /// One line about that.
    #[serde(rename = "closeout_message")]
    pub message: String,
    /// From the first todo to the end of the last one, in seconds.
    pub makespan_seconds: u64,
    /// The chain of todos that depend on each other and that took the most work.
    pub chain: Vec<TodoId>,
    /// That work, in seconds.
    pub chain_seconds: u64,
    /// The requirements that no delivered todo serves, each as `R-1: its words`.
    pub unmet_requirements: Vec<String>,
    /// The criteria that people had not answered at its end, each with the todo that it belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    /// What lay uncommitted in the project's checkout at its end. The team works in worktrees of its own, so
    /// that this is people's; nobody commits it but they.
    pub uncommitted_paths: Vec<String>,
    /// `not_needed`. In older files also what became of a commit of what lay in the checkout: `committed`,
    /// `failed`.
    pub version_control_status: String,
    /// In older files: that commit.
    pub version_control_sha: String,
    /// In older files: its paths.
    pub version_control_paths: Vec<String>,
    /// The closing words of the planner, as it wrote them.
    #[serde(rename = "planner_report_draft", skip_serializing_if = "Value::is_null")]
    pub report_draft: Value,
    /// The items that could have been done when it was stopped: changing them begins no other sprint. None where it was not,
    /// and in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Vec<ItemId>>,
    /// The final report, for people.
    pub report_body: String,
    /// Where it lies, workspace-relative.
    pub report_path: String,
}
