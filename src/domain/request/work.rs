//! What is made for a request.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::spent::Spent;
use crate::domain::conflict::Conflict;
use crate::domain::criterion::Criterion;
use crate::domain::evidence::{BaseStanding, Candidate, Evidence, ReportedWork};
use crate::domain::guard::GuardFinding;
use crate::domain::ids::{ChannelId, GateId, MessageId, OperationId, RequestId, RunId};
use crate::domain::plan_decision::PlanDecision;
use crate::domain::plan_review::PlanReview;
use crate::domain::preparation::PreparationQuestion;
use crate::domain::request_plan::RequestPlan;
use crate::domain::result::RoleResult;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::domain::work_span::WorkSpan;

/// A change in the train to the branch, as it is composed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Car {
    /// Whose change it is.
    pub request_id: RequestId,
    /// The commit.
    pub commit: String,
}

/// What QA says of a change besides its verdict, for whoever relies on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QaRemarks {
    /// What it has not checked.
    pub not_checked: Vec<String>,
    /// What may go wrong all the same.
    pub risks: Vec<String>,
}

impl QaRemarks {
    fn is_empty(&self) -> bool {
        self.not_checked.is_empty() && self.risks.is_empty()
    }
}

/// The work on a request: what a role or a person does with it now, the commit that it comes to, and what was spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestWork {
    /// The run under way.
    pub active_run: Option<RunId>,
    /// The gate that it waits for.
    pub gate_id: Option<GateId>,
    /// The registered action that it waits for.
    pub operation_id: Option<OperationId>,
    /// The last role result. It may be long, so that a decision that changes the request does not copy it.
    pub result: Option<Arc<RoleResult>>,
    /// The acceptance criteria of its own plan; those of an item stand in the item.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    /// Those that a person wrote: they come first, whatever its plan says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub persons_criteria: Vec<Criterion>,
    /// Whether a person wants what was delivered to be different: then something is built, by a plan that is approved.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wants_changes: bool,
    /// What its plan rests on that the request left open, in the order of the numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<PlanDecision>,
    /// Whether somebody asked back about an open one: the planner may ask once more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asked_back: bool,
    /// The card with the questions of the planner that wait for answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions_card: Option<(ChannelId, MessageId)>,
    /// The digest of the plan that a person has let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Its plan as it was settled last; none where nobody planned it, and for todos, which go by their sprint's. For the
    /// request at whose card a sprint's plan is decided, that plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<RequestPlan>,
    /// What was found in that plan.
    #[serde(skip_serializing_if = "PlanReview::is_blank")]
    pub plan_review: PlanReview,
    /// How the checks stood at its base before a role had it; none where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseStanding>,
    /// What its last step that may write left, of which the next commit is made; none where its worktree counts as it
    /// stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<ReportedWork>,
    /// Whether the worktree is to be committed and is not yet: until then the candidate is of earlier work.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub uncommitted: bool,
    /// The commit of the branch from which the change grew before its first conflict: the candidate is held against what people
    /// have committed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts_since: Option<String>,
    /// The commit on `teams/<id>` with the work so far.
    pub candidate: Option<Candidate>,
    /// The criteria of the candidate that QA left to a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<GuardFinding>,
    /// What QA said of the candidate besides its verdict.
    #[serde(skip_serializing_if = "QaRemarks::is_empty")]
    pub qa_remarks: QaRemarks,
    /// What a person has accepted of what guards found in the candidate. It counts while the work stays the same,
    /// wherever it is moved to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<GuardFinding>,
    /// What the runtime saw when it checked the candidate.
    pub evidence: Option<Evidence>,
    /// The digest of the preparation that a person, or the configuration, has allowed for its change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation: Option<String>,
    /// What a person is asked about it, while that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation_asked: Option<PreparationQuestion>,
    /// Since when it stands in the queue to the branch; none where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landing_since: Option<Timestamp>,
    /// The change of another request that its candidate is composed on; none where that is a commit of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Car>,
    /// The commit before it in the train that it does not fit onto. What to do about that is found out when it is on the
    /// branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clashes_with: Option<String>,
    /// What speaks against its candidate while a change before it in the train is not on the branch. It counts for
    /// nothing until then, and then the checks are run once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Evidence>,
    /// The acceptance criteria of others that its change was brought together with: they have to hold as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others_criteria: Vec<Criterion>,
    /// What its change and the branch both changed, until the solution is on the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
    /// When somebody worked on it, where it is a todo's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<WorkSpan>,
    /// Budgets used.
    pub spent: Spent,
    /// Tokens and cost so far.
    pub usage: Usage,
}

impl RequestWork {
    /// Gives up its place in the queue to the branch, and what was found out there.
    pub fn leave_queue(&mut self) {
        self.landing_since = None;
        self.held = None;
        self.clashes_with = None;
    }

    /// Whether somebody has let through what is planned now. Requests of an earlier build do not know their plans.
    #[must_use]
    pub fn is_plan_approved(&self) -> bool {
        match (&self.plan, &self.planned) {
            (Some(approved), Some(planned)) => *approved == planned.version.digest,
            (approved, _) => approved.is_some(),
        }
    }
}
