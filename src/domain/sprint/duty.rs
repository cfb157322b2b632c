//! What a request is for that a sprint or the backlog made, other than doing a todo.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::planning::{Duty, PlanningStep};
use super::words::CloseoutStatus;
use crate::domain::finding::Finding;
use crate::domain::ids::RequestId;
use crate::domain::lifecycle::{SprintStep, StepKind};
use crate::domain::result::ProposedItem;

/// A duty with what its role is given for it (`spec/teams.md` 4.2 and 10.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "duty", rename_all = "snake_case")]
pub enum DutyDetails {
    /// Research before planning.
    ResearchPrepass,
    /// A step of planning.
    Planning {
        /// Which.
        initial_phase_step: PlanningStep,
        /// How often it was given back before.
        #[serde(default, skip_serializing_if = "is_none")]
        initial_phase_reopen_count: u32,
        /// Why it was given back last.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        initial_phase_reopen_reason: String,
        /// The request that brought too little.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reopen_of_request_id: Option<RequestId>,
    },
    /// A look at the plan, by the architect or by a person.
    PlanReview,
    /// A look at the running sprint.
    OngoingReview,
    /// The closing words of a sprint.
    ClosingReport {
        /// How it ended.
        closeout_status: CloseoutStatus,
    },
    /// Candidates are made of findings.
    Sourcing {
        /// What was found.
        findings: Vec<Finding>,
    },
    /// Candidates are judged.
    SourcerReview {
        /// What they were made of.
        #[serde(default)]
        findings: Vec<Finding>,
        /// The candidates.
        #[serde(deserialize_with = "ProposedItem::read_all")]
        candidates: Vec<ProposedItem>,
    },
    /// Blocked items are looked at.
    #[serde(rename = "blocked_backlog_review")]
    BlockedReview {
        /// They, in the shape of backlog items.
        blocked_items: Vec<Value>,
    },
}

/// `skip_serializing_if` hands the field over as a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

impl DutyDetails {
    /// Which duty it is.
    #[must_use]
    pub const fn duty(&self) -> Duty {
        match self {
            Self::ResearchPrepass => Duty::ResearchPrepass,
            Self::Planning { .. } => Duty::Planning,
            Self::PlanReview => Duty::PlanReview,
            Self::OngoingReview => Duty::OngoingReview,
            Self::ClosingReport { .. } => Duty::ClosingReport,
            Self::Sourcing { .. } => Duty::Sourcing,
            Self::SourcerReview { .. } => Duty::SourcerReview,
            Self::BlockedReview { .. } => Duty::BlockedReview,
        }
    }

    /// The kind of the step that it is.
    #[must_use]
    pub const fn kind(&self) -> StepKind {
        StepKind::Sprint(match self {
            Self::Planning { initial_phase_step, .. } => SprintStep::Planning(*initial_phase_step),
            Self::ResearchPrepass
            | Self::PlanReview
            | Self::OngoingReview
            | Self::ClosingReport { .. }
            | Self::Sourcing { .. }
            | Self::SourcerReview { .. }
            | Self::BlockedReview { .. } => SprintStep::Duty(self.duty()),
        })
    }

    /// The step of planning.
    #[must_use]
    pub const fn planning_step(&self) -> Option<PlanningStep> {
        match self {
            Self::Planning { initial_phase_step, .. } => Some(*initial_phase_step),
            Self::ResearchPrepass
            | Self::PlanReview
            | Self::OngoingReview
            | Self::ClosingReport { .. }
            | Self::Sourcing { .. }
            | Self::SourcerReview { .. }
            | Self::BlockedReview { .. } => None,
        }
    }

    /// The candidates that it judges.
    #[must_use]
    pub fn candidates(&self) -> &[ProposedItem] {
        match self {
            Self::SourcerReview { candidates, .. } => candidates,
            Self::ResearchPrepass
            | Self::Planning { .. }
            | Self::PlanReview
            | Self::OngoingReview
            | Self::ClosingReport { .. }
            | Self::Sourcing { .. }
            | Self::BlockedReview { .. } => &[],
        }
    }

    /// What was found, where it is about findings.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Sourcing { findings } | Self::SourcerReview { findings, .. } => findings,
            Self::ResearchPrepass
            | Self::Planning { .. }
            | Self::PlanReview
            | Self::OngoingReview
            | Self::ClosingReport { .. }
            | Self::BlockedReview { .. } => &[],
        }
    }
}
