//! What a role hands back at the end of its step (`spec/teams.md` 8.1).

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::role::Role;
use crate::domain::word::words;

mod proposals;
pub mod shape;

pub use proposals::{
    Contribution, ControlAction, ControlKind, DesignEntry, DesignFeedback, EvidenceResult,
    EvidenceRow, Handling, HandlingMode, Methodology, NextStep, Pair, Proposals, ProposedFinding,
    ProposedItem, ProposedOrigin, ProposedQuestion, QaDecision, QaValidation, ReasonCode,
    RequestIntent, ResearchReport, ResearchSignal, ResearchSource, ReviewFinding, SprintCommand,
    SprintPlanUpdate, SprintReport,
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

/// A role's result: what is read from its answer, makes the schema that the answer follows, and what records keep. The
/// sentences at what the role gives are for the role: they stand in the schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RoleResult {
    /// The request worked on; set by the runtime.
    #[serde(default)]
    #[schemars(skip)]
    pub request_id: String,
    /// The role that worked; set by the runtime.
    #[schemars(skip)]
    pub role: Role,
    /// completed: the step is done. blocked: a person has to decide. failed: it was tried and did
    /// not work.
    pub status: ResultStatus,
    /// What happened, for the person who asked, in their language.
    #[serde(default)]
    pub summary: String,
    /// What is worth remembering for later steps.
    #[serde(default)]
    pub insights: Vec<String>,
    /// Files that matter, relative to the workspace.
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// Always blank: routing is central. Kept because older readers expect the field.
    #[serde(default)]
    #[schemars(skip)]
    pub next_role: String,
    /// Why it failed or what blocks; empty when completed.
    #[serde(default)]
    pub error: String,
    /// What should follow.
    #[serde(default)]
    pub proposals: Proposals,
    /// What the runtime had to put right while reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub validation_notes: Vec<String>,
    /// Set where the contract was not met at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub contract_status: Option<ContractStatus>,
    /// Codes of what was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub contract_issues: Vec<String>,
    /// Whether a repair turn was spent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(skip)]
    pub contract_repair_attempted: bool,
}

static SCHEMA: LazyLock<Value> = LazyLock::new(shape::schema_of::<RoleResult>);

impl RoleResult {
    /// The schema of what a role gives, with all parts that any may propose.
    #[must_use]
    pub fn schema() -> &'static Value {
        &SCHEMA
    }

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
        }
    }

    /// Whether the role itself says that it did not get through.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.status != ResultStatus::Completed || !self.error.trim().is_empty()
    }
}
