//! The gate of plans: what was planned for a request of a person is built when a person, or the configuration, says
//! so. Approval is bound to the plan; another plan is asked about anew.

use serde_json::json;

use super::card;
use crate::domain::block::BlockCode;
use crate::domain::criterion;
use crate::domain::gate::{GateKind, Stance};
use crate::domain::ids::RequestId;
use crate::domain::lifecycle::{StepKind, StepName};
use crate::domain::plan_decision::PlanDecision;
use crate::domain::request::{EventKind, Request};
use crate::domain::request_plan::RequestPlan;
use crate::domain::role::Role;
use crate::engine::turn::Turn;
use crate::engine::{contract, ending, say};

/// Characters of the planner's words that are kept with a plan.
const SUMMARY: usize = 2_000;

/// What is planned: what is to be done, what has to hold afterwards, and all else that the planner proposed.
pub(super) fn digest_of(request: &Request) -> String {
    let mut parts = vec![request.scope.clone()];
    parts.extend(criterion::written(&contract::criteria(request, None)));
    parts.extend(request.work.decisions.iter().filter_map(PlanDecision::line));
    if let Some(result) = &request.work.result {
        parts.push(result.summary.clone());
        parts.push(serde_json::to_string(&result.proposals).unwrap_or_default());
        parts.extend(result.artifacts.iter().cloned());
    }
    card::digest(&parts)
}

/// A plan is settled and `next` would begin: whether a person decides first. Todos of a sprint go by the sprint's plan.
pub(in crate::engine) fn holds(turn: &mut Turn<'_>, id: &RequestId, next: StepName) -> bool {
    let Some(request) = turn.request(id) else { return false };
    let Some((lifecycle, _)) = turn.stands(id) else { return false };
    let plans_on = lifecycle
        .step(next)
        .is_some_and(|step| matches!(step.kind, StepKind::Plan | StepKind::Advice));
    if plans_on || request.todo_id.is_some() || request.duty().is_some() {
        return false;
    }
    let digest = digest_of(request);
    let is_accepted = request.work.plan.as_ref() == Some(&digest);
    // Who wants changes approves how they are made.
    let (wants_changes, lane) = (request.work.wants_changes, request.route.lane);
    keep_version(turn, id, &digest);
    if is_accepted {
        return false;
    }
    match turn.policy.gates.of_plan(lane) {
        Stance::Allow if !wants_changes => return false,
        Stance::Refuse => declined(turn, id),
        Stance::Ask | Stance::Allow => {
            card::open(turn, id, GateKind::Plan, String::new(), digest, Vec::new())
        }
    }
    true
}

/// Keeps the plan as it is settled now, where it is another one than before.
fn keep_version(turn: &mut Turn<'_>, id: &RequestId, digest: &str) {
    let Some(request) = turn.request(id) else { return };
    let work = &request.work;
    if work.planned.as_ref().is_some_and(|plan| plan.version.digest == digest) {
        return;
    }
    let summary = work.result.as_ref().map(|result| say::cut(&result.summary, SUMMARY));
    let plan = RequestPlan {
        summary: summary.unwrap_or_default(),
        criteria: contract::criteria(request, None),
        decisions: work.decisions.iter().filter_map(PlanDecision::line).collect(),
        ..RequestPlan::after(work.planned.clone(), digest.to_owned(), turn.now)
    };
    let version = format!("version {}", plan.version.number);
    if let Some(request) = turn.edit(id) {
        request.work.planned = Some(plan);
    }
    let payload = json!({ "digest": digest });
    turn.record(id, EventKind::Planned, Role::Planner.as_str(), &version, payload);
}

/// Whether somebody is asked about the plan now.
pub(in crate::engine) fn is_open(turn: &Turn<'_>, id: &RequestId) -> bool {
    let gate = turn.request(id).and_then(|it| turn.before().gates.get(it.work.gate_id.as_ref()?));
    gate.is_some_and(|gate| gate.kind == GateKind::Plan)
}

/// The plan may be built.
pub(super) fn accept(turn: &mut Turn<'_>, id: &RequestId) {
    if let Some(request) = turn.edit(id) {
        request.work.plan = Some(digest_of(request));
    }
}

/// It may not: the request waits for words, which the planner reads.
pub(super) fn declined(turn: &mut Turn<'_>, id: &RequestId) {
    ending::block(turn, id, BlockCode::PlanRejected, "", Vec::new());
}
