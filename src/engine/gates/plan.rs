//! The gate of plans: what was planned for a request of a person, or for a sprint, is built when a person, or the
//! configuration, says so. Approval is bound to the plan; another plan is asked about anew.

use serde_json::json;

use super::card;
use crate::domain::block::BlockCode;
use crate::domain::criterion;
use crate::domain::gate::{GateKind, Stance};
use crate::domain::ids::RequestId;
use crate::domain::lifecycle::{Step, StepKind, StepName};
use crate::domain::plan::Requirement;
use crate::domain::plan_decision::PlanDecision;
use crate::domain::plan_review::AcceptedFindings;
use crate::domain::request::{EventKind, Request};
use crate::domain::request_plan::RequestPlan;
use crate::domain::role::Role;
use crate::engine::lifecycle;
use crate::engine::plan::review;
use crate::engine::turn::Turn;
use crate::engine::{contract, ending, lanes, say};

/// Characters of the planner's words that are kept with a plan.
const SUMMARY: usize = 2_000;
/// Paths that a plan may declare, of each kind.
const MOST_PATHS: usize = 60;
/// Requirements that it may name.
const MOST_REQUIREMENTS: usize = 40;
/// The longest of these, in characters.
const PATH: usize = 300;

/// What is planned: what is to be done, what has to hold afterwards, and all else that the planner proposed.
fn digest_of(request: &Request) -> String {
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

/// What keeps a plan from being built.
pub(in crate::engine) enum PlanHold {
    /// Nothing.
    No,
    /// Its planner gets it back.
    GoesBack,
    /// A person decides, or has decided against it.
    Waits,
}

/// What came of `from` leads to `next`. A plan that is settled there is looked at, and before anything of it is built a
/// person decides, where that is asked for or something in it does not hold. Todos of a sprint go by the sprint's plan.
pub(in crate::engine) fn before_build(
    turn: &mut Turn<'_>,
    id: &RequestId,
    from: &Step,
    next: StepName,
) -> PlanHold {
    let Some((lifecycle, state)) = turn.stands(id) else { return PlanHold::No };
    let Some(request) = turn.request(id) else { return PlanHold::No };
    let kind = lifecycle.step(next).map(|step| step.kind);
    let plans_on = matches!(kind, Some(StepKind::Plan | StepKind::Advice));
    if request.todo_id.is_some() || request.duty().is_some() {
        return PlanHold::No;
    }
    match from.kind {
        StepKind::Plan | StepKind::Advice if plans_on => return PlanHold::No,
        StepKind::Plan | StepKind::Advice => {
            keep_version(turn, id);
            if is_approved(turn, id) {
                // Exactly this one was read before.
                return PlanHold::No;
            }
            if review::by_rules(turn, id) {
                return PlanHold::GoesBack;
            }
            if kind == Some(StepKind::Guidance) {
                // The architect reads it first.
                return PlanHold::No;
            }
        }
        StepKind::Guidance => {
            if review::by_architect(turn, id, plans_on) {
                return if plans_on { PlanHold::No } else { PlanHold::GoesBack };
            }
            if plans_on {
                // It was sent back as often as it may be.
                let taken = lifecycle::plan_taken(&lifecycle, &state, from);
                if let Some(request) = turn.edit(id) {
                    request.params.workflow = Some(taken.state().clone());
                }
            }
        }
        StepKind::Research
        | StepKind::Change
        | StepKind::Review
        | StepKind::Verdict
        | StepKind::Land
        | StepKind::Sprint(_) => return PlanHold::No,
    }
    if waits(turn, id) { PlanHold::Waits } else { PlanHold::No }
}

/// Whether a person has let exactly this plan through, and nothing was found in it since.
fn is_approved(turn: &Turn<'_>, id: &RequestId) -> bool {
    let work = turn.request(id).map(|request| &request.work);
    work.is_some_and(|work| work.is_plan_approved() && !work.plan_review.is_open())
}

/// How a plan of the request is decided about, as things stand.
fn stance(turn: &Turn<'_>, request: &Request) -> Stance {
    // Who wants changes approves how they are made.
    let asks = request.work.wants_changes || request.work.plan_review.is_open();
    match lanes::plan_stance(turn.policy, request.route.lane, &request.route.signals) {
        Stance::Allow if asks => Stance::Ask,
        stance @ (Stance::Ask | Stance::Allow | Stance::Refuse) => stance,
    }
}

/// Whether the plan of a request is a person's to decide about, and nobody has let it through.
pub(in crate::engine) fn asks_people(turn: &Turn<'_>, id: &RequestId, from: StepKind) -> bool {
    let is_its_own = |it: &&Request| it.todo_id.is_none() && it.duty().is_none();
    let request = turn.request(id).filter(is_its_own);
    // Another plan than the one that was let through is no longer approved.
    let is_approved = |it: &Request| {
        // Who reads it has another result.
        from == StepKind::Guidance && is_approved(turn, id)
            || from != StepKind::Guidance && it.work.plan.as_deref() == Some(&digest_of(it))
    };
    request.is_some_and(|it| stance(turn, it) == Stance::Ask && !is_approved(it))
}

/// Whether what is built is what somebody let through, and nothing else: what people write then is planned first.
pub(in crate::engine) fn binds(turn: &Turn<'_>, id: &RequestId) -> bool {
    let is_its_own = |it: &&Request| it.todo_id.is_none() && it.duty().is_none();
    turn.request(id).filter(is_its_own).is_some_and(|it| stance(turn, it) == Stance::Ask)
}

/// Whether a person decides about the plan before it is built.
fn waits(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    if is_approved(turn, id) {
        return false;
    }
    let Some(request) = turn.request(id) else { return false };
    let digest = digest_now(request);
    match stance(turn, request) {
        Stance::Allow => return false,
        Stance::Refuse => declined(turn, id),
        Stance::Ask => card::open(turn, id, GateKind::Plan, String::new(), digest, Vec::new()),
    }
    true
}

/// The digest of the plan as it was settled; requests of an earlier build do not know their plans.
pub(super) fn digest_now(request: &Request) -> String {
    let planned = request.work.planned.as_ref().map(|plan| plan.version.digest.clone());
    planned.unwrap_or_else(|| digest_of(request))
}

/// Keeps the plan as it is settled now, where it is another one than before.
fn keep_version(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.request(id) else { return };
    let (work, digest) = (&request.work, digest_of(request));
    if work.planned.as_ref().is_some_and(|plan| plan.version.digest == digest) {
        return;
    }
    let result = work.result.as_ref();
    let paths = |list: Option<&Vec<String>>| -> Vec<String> {
        let said = list.into_iter().flatten().map(|path| say::cut(path.trim(), PATH));
        said.filter(|path| !path.is_empty()).take(MOST_PATHS).collect()
    };
    let requirements = result.and_then(|it| it.proposals.requirements.as_deref());
    let said = requirements.unwrap_or_default().iter().take(MOST_REQUIREMENTS);
    let requirements =
        Requirement::numbered(said.map(|it| (say::cut(it.text.trim(), PATH), it.when)));
    let plan = RequestPlan {
        requirements,
        summary: result.map(|it| say::cut(&it.summary, SUMMARY)).unwrap_or_default(),
        criteria: contract::criteria(request, None),
        decisions: work.decisions.iter().filter_map(PlanDecision::line).collect(),
        allowed_paths: paths(result.and_then(|it| it.proposals.allowed_paths.as_ref())),
        excluded_paths: paths(result.and_then(|it| it.proposals.excluded_paths.as_ref())),
        ..RequestPlan::after(work.planned.clone(), digest.clone(), turn.now)
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

/// The plan may be built; where something was found in it, for the reason that is given.
pub(super) fn accept(turn: &mut Turn<'_>, id: &RequestId, by: &str, reason: &str) {
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return };
    request.work.plan = Some(digest_now(request));
    let review = &mut request.work.plan_review;
    if review.is_open() {
        let (by, reason) = (by.to_owned(), reason.to_owned());
        review.accepted = Some(AcceptedFindings { by, reason, at: now });
    }
}

/// It may not: the request waits for words, which the planner reads.
pub(super) fn declined(turn: &mut Turn<'_>, id: &RequestId) {
    ending::block(turn, id, BlockCode::PlanRejected, "", Vec::new());
}
