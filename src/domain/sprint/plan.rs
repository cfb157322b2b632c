//! How a sprint came to its plan.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::planning::{PlanningIteration, PlanningStep, ResearchPrepass};
use crate::domain::ids::{RequestId, UserId};
use crate::domain::lenient::blank_is_none;
use crate::domain::lifecycle::CounterName;
use crate::domain::plan_review::PlanReview;
use crate::domain::time::Timestamp;

/// The planning of a sprint: research, the steps, and what was not enough.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SprintPlanning {
    /// When planning was through.
    #[serde(rename = "initial_phase_ready_at", with = "blank_is_none")]
    pub ready_at: Option<Timestamp>,
    /// When the planner last reviewed the running sprint.
    #[serde(rename = "last_planner_review_at", with = "blank_is_none")]
    pub last_review_at: Option<Timestamp>,
    /// The step that planning stands at; none before research is through, and afterwards.
    #[serde(rename = "initial_phase_step")]
    pub step: Option<PlanningStep>,
    /// What was charged to the counters of its lifecycle: times that each step of planning was reopened.
    #[serde(rename = "initial_phase_reopen_counts")]
    pub reopen_counts: BTreeMap<CounterName, u32>,
    /// The step that was last reopened.
    #[serde(rename = "last_initial_phase_reopen_step")]
    pub last_reopened: Option<PlanningStep>,
    /// Why.
    #[serde(rename = "last_initial_phase_reopen_reason")]
    pub last_reopen_reason: String,
    /// The request whose result was not enough.
    #[serde(rename = "last_initial_phase_reopen_request_id", with = "blank_is_none")]
    pub last_reopen_request_id: Option<RequestId>,
    /// What people or the look at the plan said when they sent it back, until the planner's step is through.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sent_back_with: String,
    /// What research found before planning.
    #[serde(rename = "research_prepass")]
    pub research: Option<ResearchPrepass>,
    /// What was found in the plan before anything of it was built.
    #[serde(rename = "plan_review", skip_serializing_if = "PlanReview::is_blank")]
    pub review: PlanReview,
    /// Whether a person has approved the plan: its items stay as they are then, whatever an agent proposes.
    #[serde(rename = "plan_approved", skip_serializing_if = "std::ops::Not::not")]
    pub is_approved: bool,
    /// Who added to what was asked for, beside who asked: with four eyes they approve nothing of it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub other_askers: BTreeSet<UserId>,
    /// What each planning request came to, one entry a request and phase.
    #[serde(rename = "planning_iterations")]
    pub iterations: Vec<PlanningIteration>,
}
