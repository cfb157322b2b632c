//! What a role hands back at the end of its step (`spec/teams.md` 8.1).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::role::Role;
use crate::domain::word::words;

mod proposals;

pub use proposals::{
    ControlAction, EvidenceResult, EvidenceRow, Proposals, QaDecision, QaValidation, SprintCommand,
    VerificationResult,
};

words! {
    /// How a role's work ended.
    #[derive(schemars::JsonSchema)]
    pub enum ResultStatus {
        /// The role did its step.
        Completed = "completed",
        /// The role cannot go on by itself.
        Blocked = "blocked",
        /// The role tried and failed.
        Failed = "failed",
    }
}

/// Whether the result met the contract, and how (`spec/teams.md` 8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContractStatus {
    /// It did not, also after the repair turns.
    Invalid,
    /// It did after a repair turn.
    Repaired,
}

/// A role's result as the records keep it. Fields that only some roles write (such as the commit
/// fields of `version_controller`) stay in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleResult {
    /// The request worked on; set by the runtime.
    #[serde(default)]
    pub request_id: String,
    /// The role that worked; set by the runtime.
    pub role: Role,
    /// How it ended.
    pub status: ResultStatus,
    /// What happened, for people.
    #[serde(default)]
    pub summary: String,
    /// What the role wants to remember; goes to its journal.
    #[serde(default)]
    pub insights: Vec<String>,
    /// What the role proposes.
    #[serde(default)]
    pub proposals: Proposals,
    /// Files that matter, relative to the workspace.
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// Always blank: routing is central. Kept because older readers expect the field.
    #[serde(default)]
    pub next_role: String,
    /// Why it failed; non-blank counts as a failure whatever the status says.
    #[serde(default)]
    pub error: String,
    /// What the runtime had to put right while reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation_notes: Vec<String>,
    /// Set where the contract was not met at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_status: Option<ContractStatus>,
    /// Codes of what was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contract_issues: Vec<String>,
    /// Whether a repair turn was spent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contract_repair_attempted: bool,
    /// Everything else that was written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl RoleResult {
    /// An empty completed result of `role`, to build on.
    #[must_use]
    pub fn new(role: Role, request_id: &str) -> RoleResult {
        RoleResult {
            request_id: request_id.to_owned(),
            role,
            status: ResultStatus::Completed,
            summary: String::new(),
            insights: Vec::new(),
            proposals: Proposals::default(),
            artifacts: Vec::new(),
            next_role: String::new(),
            error: String::new(),
            validation_notes: Vec::new(),
            contract_status: None,
            contract_issues: Vec::new(),
            contract_repair_attempted: false,
            extra: Map::new(),
        }
    }

    /// Whether the role itself says that it did not get through.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.status != ResultStatus::Completed || !self.error.trim().is_empty()
    }
}
