//! How a sprint comes to its plan (`spec/teams.md` 9.4).

use serde::{Deserialize, Serialize};

use crate::domain::ids::RequestId;
use crate::domain::lenient::blank_is_none;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

words! {
    /// What a step of planning has to bring.
    pub enum PlanningStep {
        /// The milestone gets its framing.
        MilestoneRefinement = "milestone_refinement",
        /// Plan, spec and the other documents follow it.
        ArtifactSync = "artifact_sync",
        /// The backlog gets its items.
        BacklogDefinition = "backlog_definition",
        /// They get their ranks.
        BacklogPrioritization = "backlog_prioritization",
        /// They become todos.
        TodoFinalization = "todo_finalization",
    }
    /// What became of research before planning.
    pub enum PrepassStatus {
        /// It found something, or found that nothing is needed.
        Completed = "completed",
        /// It could not say; planning goes on with what lies here.
        Blocked = "blocked",
        /// It failed; planning goes on with what lies here.
        Failed = "failed",
        /// Research is not configured.
        NotConfigured = "not_configured",
    }
}

/// What a planning request came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanningIteration {
    /// When.
    pub created_at: Timestamp,
    /// `initial` or `ongoing_review`.
    #[serde(default)]
    pub phase: String,
    /// The step; blank for a review.
    #[serde(default)]
    pub step: String,
    /// The request.
    #[serde(default, with = "blank_is_none")]
    pub request_id: Option<RequestId>,
    /// What the planner said.
    #[serde(default)]
    pub summary: String,
    /// What it wants to remember.
    #[serde(default)]
    pub insights: Vec<String>,
    /// Files.
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// Whether its step was good enough to go on.
    #[serde(default)]
    pub phase_ready: bool,
}

/// A source that research rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackingSource {
    /// Its title.
    pub title: String,
    /// `http://…` or `https://…`.
    pub url: String,
    /// What it says that matters.
    pub relevance: String,
}

/// What research found before planning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResearchPrepass {
    /// The request.
    #[serde(default, with = "blank_is_none")]
    pub request_id: Option<RequestId>,
    /// What became of it.
    pub status: PrepassStatus,
    /// `needed_external_grounding`, `not_needed_local_evidence`, `not_needed_no_subject`,
    /// `blocked_decision_failed`, or why it failed.
    #[serde(default)]
    pub reason_code: String,
    /// What was looked for.
    #[serde(default)]
    pub subject: String,
    /// Where the report lies, workspace-relative; blank where there is none.
    #[serde(default)]
    pub report_artifact: String,
    /// One line.
    #[serde(default)]
    pub headline: String,
    /// What the planner should make of it.
    #[serde(default)]
    pub planner_guidance: String,
    /// What it rests on.
    #[serde(default)]
    pub backing_sources: Vec<BackingSource>,
}

impl ResearchPrepass {
    /// Whether what it found rests on at least one source in the web.
    #[must_use]
    pub fn is_source_backed(&self) -> bool {
        self.status == PrepassStatus::Completed
            && self.backing_sources.iter().any(|source| {
                source.url.starts_with("http://") || source.url.starts_with("https://")
            })
    }
}

words! {
    /// What a request is for that the sprint or the backlog made, other than doing a todo.
    pub enum Duty {
        /// Research before planning.
        ResearchPrepass = "research_prepass",
        /// One of the planning steps ([`PlanningStep`] says which).
        Planning = "planning",
        /// A look at the plan, by the architect or by a person.
        PlanReview = "plan_review",
        /// A look at the running sprint.
        OngoingReview = "ongoing_review",
        /// The closing words of a sprint.
        ClosingReport = "closing_report",
        /// Candidates are made of findings, by the sourcer.
        Sourcing = "sourcing",
        /// The planner judges the sourcer's candidates.
        SourcerReview = "sourcer_review",
        /// The planner looks at blocked items.
        BlockedReview = "blocked_backlog_review",
    }
}
