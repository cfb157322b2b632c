//! One execution of a registered action (`spec/teams.md` 2.2 and 4.9).

use serde::{Deserialize, Serialize};

use crate::domain::ids::{OperationId, RequestId};
use crate::domain::time::Timestamp;

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationStatus {
    /// Not ended.
    Running,
    /// Exit code 0.
    Completed,
    /// Anything else.
    Failed,
}

/// The record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its id.
    pub operation_id: OperationId,
    /// The request that asked.
    pub request_id: RequestId,
    /// The action's name.
    pub action: String,
    /// The command with its parameters filled in, as an argument list.
    pub command: Vec<String>,
    /// Where it stands.
    pub status: OperationStatus,
    /// The exit code.
    pub returncode: Option<i32>,
    /// The action's domain.
    #[serde(default)]
    pub domain: String,
    /// Whether the request waits for its end.
    pub foreground: bool,
    /// When it was decided.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Workspace-relative path of its log.
    pub log_file: String,
}
