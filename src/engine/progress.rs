//! How a request gets on: the next step is begun, and at the end the change is proven and brought to the branch.
//! What comes of that is in [`super::closeout`].

use serde_json::json;

use super::gates::commit;
use super::gates::plan::{self, PlanHold};
use super::lifecycle::{self, BlockReason, ReportChange, WorkflowDecision};
use super::turn::Turn;
use super::{contract, ending, handoff, lanes, plan_items, proof, questions, say, train, verify};
use crate::domain::block::BlockCode;
use crate::domain::effect::EffectKind;
use crate::domain::evidence::{Evidence, Proof};
use crate::domain::ids::RequestId;
use crate::domain::lifecycle::{Lifecycle, Prerequisite, Step, StepKind, StepName, counter};
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::request::{EventKind, Request, RequestStatus, SelectionSource};
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::routes::{Lane, LaneChoice, LaneSource};
use crate::domain::workflow::WorkflowState;

/// Carries out what the workflow decided about a role's report.
pub(super) fn follow_report(turn: &mut Turn<'_>, id: &RequestId, decision: WorkflowDecision) {
    let from = turn.step(id);
    if let (Some(from), WorkflowDecision::Next { state, step, .. }) = (from, &decision) {
        if let Some(request) = turn.edit(id) {
            request.params.workflow = Some(state.clone());
        }
        // Nobody decides about a plan by words that are not wanted any more, or without those that came meanwhile.
        let plans = |kind| matches!(kind, StepKind::Plan | StepKind::Advice);
        let is_plan = plans(from.kind) || from.kind == StepKind::Guidance;
        let next = turn.stands(id).and_then(|(lifecycle, _)| Some(lifecycle.step(*step)?.kind));
        let is_put_to_people = is_plan && !next.is_some_and(plans);
        let is_asked_about = if from.kind == StepKind::Change {
            plan::binds(turn, id)
        } else {
            is_put_to_people && plan::asks_people(turn, id, from.kind)
        };
        let is_old = is_plan && goes_by_the_new_words(turn, id)
            || is_asked_about && plans_anew_for_words(turn, id);
        if is_old {
            return;
        }
        let asks = from.kind == StepKind::Plan && questions::holds(turn, id);
        if asks || plan_items::holds(turn, id, from) || holds_plan(turn, id, from, *step) {
            return;
        }
    }
    follow_from(turn, id, from, decision);
}

/// Carries out what the workflow decided.
pub(super) fn follow(turn: &mut Turn<'_>, id: &RequestId, decision: WorkflowDecision) {
    let from = turn.step(id);
    follow_from(turn, id, from, decision);
}

fn follow_from(
    turn: &mut Turn<'_>,
    id: &RequestId,
    from: Option<&Step>,
    decision: WorkflowDecision,
) {
    if let Some(request) = turn.edit(id) {
        request.params.workflow = Some(decision.state().clone());
    }
    match decision {
        WorkflowDecision::Next { role, step, notes, .. } => {
            let why = notes.iter().map(note).collect::<Vec<_>>().join(" ");
            let is_sent_back =
                from.as_ref().is_some_and(|it| it.kind.judges() || it.kind == StepKind::Land);
            if is_sent_back && solution_is_back(turn, id, &why) {
                return;
            }
            // What is planned anew is no mending of the solution.
            let plans = turn.step(id).is_some_and(|it| it.kind == StepKind::Plan);
            if let Some(request) = turn.edit(id).filter(|_| plans)
                && request.work.conflict.as_ref().is_some_and(|it| it.solved)
            {
                request.work.conflict = None;
            }
            // Whoever only read has left the worktree at its commit.
            let is_committed = from.is_some_and(|it| it.kind.judges())
                && turn.request(id).is_some_and(|it| it.work.candidate.is_some());
            if is_committed {
                proceed(turn, id, &why);
            } else {
                begin_step(turn, id, role, step, &why);
            }
        }
        WorkflowDecision::Closeout { .. } => {
            if goes_back_for_words(turn, id) {
                return;
            }
            // On a short route nobody has looked at the change yet, so that it is no commit.
            if from.is_some_and(|it| it.kind == StepKind::Change) {
                commit_then(turn, id, None);
            } else {
                begin(turn, id);
            }
        }
        WorkflowDecision::Blocked { reason, text, .. } => {
            // Somebody has said already what a person would be asked for.
            if goes_back_for_words(turn, id) {
                return;
            }
            let detail = match reason {
                // The words for it do not name a counter of the workspace's own.
                BlockReason::Spent(counter) if code(reason) == BlockCode::CounterLimit => {
                    format!("{counter}\n{text}")
                }
                BlockReason::UnknownStep(step) => step.to_string(),
                BlockReason::Spent(_)
                | BlockReason::RoleAsked
                | BlockReason::RoleBlocked
                | BlockReason::RoleFailed
                | BlockReason::AlreadyOver => text,
            };
            ending::block(turn, id, code(reason), &detail, Vec::new());
        }
    }
}

/// What comes of `from` leads to `next`: whether the plan goes back to its planner first, or waits for a person.
pub(super) fn holds_plan(turn: &mut Turn<'_>, id: &RequestId, from: &Step, next: StepName) -> bool {
    match plan::before_build(turn, id, from, next) {
        PlanHold::No => false,
        PlanHold::Waits => true,
        PlanHold::GoesBack => {
            if let Some((lifecycle, state)) = turn.stands(id) {
                follow(turn, id, lifecycle::plan_again(&lifecycle, &state));
            }
            true
        }
    }
}

/// Where the solution of a conflict was sent back, by QA or by the checks, whoever solves conflicts mends it, held to what
/// either side changed, and after as many solutions as the step has attempts a person decides; whether it was.
fn solution_is_back(turn: &mut Turn<'_>, id: &RequestId, why: &str) -> bool {
    let is_solved = |request: &Request| {
        request.work.conflict.as_ref().is_some_and(|it| it.solved && !it.answered)
    };
    let builds = turn.step(id).is_some_and(|step| step.kind == StepKind::Change);
    let Some((lifecycle, state)) = turn.stands(id).filter(|_| builds) else { return false };
    if !turn.request(id).is_some_and(is_solved) {
        return false;
    }
    let state = lifecycle::solve_again(&lifecycle, &state);
    let (role, step) = (state.phase_owner, state.step);
    if let Some(request) = turn.edit(id) {
        request.params.workflow = Some(state);
    }
    let limit = turn.attempts(id);
    let Some(request) = turn.request(id) else { return true };
    if request.work.spent.solutions < limit {
        handoff::delegate(turn, id, role, Some(step), why, None);
        return true;
    }
    if goes_back_for_words(turn, id) {
        return true;
    }
    let Some(request) = turn.request(id) else { return true };
    let red = request.work.evidence.as_ref().and_then(Evidence::first_failure);
    let verdict = request.work.result.as_ref().map(|result| result.summary.as_str());
    let detail = match red {
        Some(check) => format!("{}\n{}", check.name, say::end_of(&check.log_tail, 400)),
        None => say::cut(verdict.unwrap_or_default(), 400),
    };
    ending::block(turn, id, BlockCode::SolutionSentBack, &detail, Vec::new());
    true
}

/// Begins the first step of a request's route.
pub(super) fn start(turn: &mut Turn<'_>, id: &RequestId, decision: WorkflowDecision) {
    match decision {
        WorkflowDecision::Next { state, role, step, .. } => {
            if let Some(request) = turn.edit(id) {
                request.params.workflow = Some(state);
            }
            handoff::delegate(turn, id, role, Some(step), "", None);
        }
        WorkflowDecision::Closeout { .. } | WorkflowDecision::Blocked { .. } => {
            follow(turn, id, decision);
        }
    }
}

/// Begins the step at which a request stands.
pub(super) fn begin_current(turn: &mut Turn<'_>, id: &RequestId) {
    let state = turn.request(id).and_then(|request| request.params.workflow.as_ref());
    if let Some((role, step)) = state.map(|state| (state.phase_owner, state.step)) {
        begin_step(turn, id, role, step, "");
    }
}

/// Begins a step. Reviewers and QA look at an exact commit, and QA at one that the runtime has
/// checked, so before their steps the runtime commits the worktree to the request's own branch.
fn begin_step(turn: &mut Turn<'_>, id: &RequestId, role: Role, step: StepName, why: &str) {
    let is_change = turn.step(id).is_some_and(|step| step.kind == StepKind::Change);
    if is_change && plan::binds(turn, id) && plans_anew_for_words(turn, id) {
        return;
    }
    if turn.step(id).is_some_and(|step| step.needs(Prerequisite::Commit)) {
        commit_then(turn, id, Some(role));
    } else {
        handoff::delegate(turn, id, role, Some(step), why, None);
    }
}

/// The catalog code of a reason.
fn code(reason: BlockReason) -> BlockCode {
    match reason {
        BlockReason::RoleAsked | BlockReason::RoleBlocked | BlockReason::RoleFailed => {
            BlockCode::RoleBlocked
        }
        BlockReason::Spent(counter) => match counter {
            counter::ADVICE => BlockCode::AdvisoryLimit,
            counter::REVIEW => BlockCode::ReviewLimit,
            counter::QA_REOPEN => BlockCode::QaLimit,
            counter::REOPEN => BlockCode::ReopenLimit,
            counter::PLANNER_CONTRACT => BlockCode::PlannerContract,
            counter::CHECKS => BlockCode::ChecksFailing,
            counter::CONFLICTS => BlockCode::RebaseConflict,
            counter::TURNS => BlockCode::TurnsLimit,
            // A counter of the workspace's own.
            _ => BlockCode::CounterLimit,
        },
        BlockReason::UnknownStep(_) => BlockCode::UnknownStep,
        BlockReason::AlreadyOver => BlockCode::ReopenLimit,
    }
}

fn note(note: &ReportChange) -> String {
    match note {
        ReportChange::DocumentsMissing(names) if names.is_empty() => {
            "The report has to list at least one planning document that exists.".to_owned()
        }
        ReportChange::DocumentsMissing(names) => {
            format!("These documents are missing from the report: {}.", names.join(", "))
        }
        ReportChange::PlannerDocumentsDropped(names) => {
            format!("Planning documents were left out of the artifacts: {}.", names.join(", "))
        }
        ReportChange::Contradiction => {
            "The last verdict contradicted itself and counts as negative.".to_owned()
        }
        ReportChange::VerdictMissing => "The last report had no usable verdict.".to_owned(),
        ReportChange::RowsDiffer(faults) => {
            format!("The rows of the last verdict were not one for each criterion ({faults}).")
        }
        ReportChange::CriteriaFail(criteria) => {
            format!("The checks of these criteria fail: {}.", criteria.join("; "))
        }
        ReportChange::SpecificationAtFault => {
            "QA found the specification itself at fault.".to_owned()
        }
        ReportChange::WrongReporter(role) => {
            format!("A report by {role} did not belong to this step.")
        }
        ReportChange::WithoutResearch => {
            "Research did not get through; plan from local facts.".to_owned()
        }
        ReportChange::RevisionInsteadOfBlock => "The reviewer asks for a revision.".to_owned(),
        ReportChange::PlanFindings => "Something was found in the plan.".to_owned(),
        ReportChange::AsItems => {
            "It failed as one piece of work, and a person wants it in smaller ones: propose each in backlog_items, two at \
             least, with a title and acceptance criteria of its own, in an order in which each delivers something by itself."
                .to_owned()
        }
    }
}

/// Goes on with the step for which the commit was made; `why` is what its role is told.
pub(super) fn proceed(turn: &mut Turn<'_>, id: &RequestId, why: &str) {
    let Some(request) = turn.request(id) else {
        return;
    };
    let Some(step) = turn.step(id) else {
        return;
    };
    let unproven = request.work.candidate.is_some()
        && proof::of_candidate(request, turn.policy) == Proof::None;
    if step.kind == StepKind::Land {
        begin(turn, id);
    } else if step.needs(Prerequisite::Evidence) && unproven && turn.policy.has_checks() {
        check(turn, id);
    } else {
        handoff::delegate_current(turn, id, why);
    }
}

/// Commits the worktree to the request's own branch, before `next` looks at it or it lands.
pub(super) fn commit_then(turn: &mut Turn<'_>, id: &RequestId, next: Option<Role>) {
    let Some(request) = turn.edit(id) else { return };
    request.status = RequestStatus::Delegated;
    request.blocked = None;
    request.route.current_role = Some(Role::VersionController);
    request.route.next_role = next;
    request.work.uncommitted = true;
    let title = say::title(&request.scope);
    turn.plan(EffectKind::Commit { request_id: id.clone(), title });
}

/// The workflow is through: prove, then commit to the branch, or ask, or answer.
pub(super) fn begin(turn: &mut Turn<'_>, id: &RequestId) {
    let has_checks = turn.policy.has_checks();
    let policy = turn.policy;
    // Its commit has failed before.
    if turn.request(id).is_some_and(|request| request.work.uncommitted) {
        return commit_then(turn, id, None);
    }
    let Some(request) = turn.edit(id) else { return };
    request.status = RequestStatus::Delegated;
    request.blocked = None;
    request.route.current_role = Some(Role::VersionController);
    request.route.next_role = None;
    if request.work.candidate.is_none() {
        let answer = request.work.result.as_deref().map(planned_answer).unwrap_or_default();
        answered(turn, id, &answer);
        return;
    }
    let proof = proof::of_candidate(request, policy);
    if is_judged_first(turn, id) || outgrew_its_lane(turn, id) {
        return;
    }
    if train::proves(turn, id) {
        // The train sees to it that nothing lands without proof.
        deliver(turn, id, Proof::Green);
    } else if has_checks && proof == Proof::None {
        check(turn, id);
    } else {
        deliver(turn, id, proof);
    }
}

/// What planning alone has found out, for whoever asked: in short, and what its planner wrote down, the plan itself where
/// that is all.
fn planned_answer(result: &RoleResult) -> String {
    let proposals = &result.proposals;
    let said = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let mut records = vec![said(&proposals.root_cause_contract), said(&proposals.planning_note)];
    if records.iter().all(Option::is_none) {
        records.push(said(&proposals.todo_brief));
    }
    let records = records.iter().flatten();
    let parts = std::iter::once(&result.summary).chain(records).map(|text| text.trim());
    let mut all: Vec<&str> = Vec::new();
    for part in parts.filter(|part| !part.is_empty()) {
        if !all.contains(&part) {
            all.push(part);
        }
    }
    all.join("\n\n")
}

/// Brings the candidate to the branch, unless the branch has it already.
pub(super) fn deliver(turn: &mut Turn<'_>, id: &RequestId, proof: Proof) {
    // What somebody wrote meanwhile is read before the change goes anywhere, or is called one that is there already.
    if goes_back_for_words(turn, id) {
        return;
    }
    let candidate = turn.request(id).and_then(|request| request.work.candidate.as_ref());
    match candidate.filter(|candidate| candidate.is_its_base()).map(|it| it.commit.clone()) {
        Some(head) => {
            if !commit::asks_about_base(turn, id) {
                end_already_there(turn, id, &head);
            }
        }
        None if is_judged_first(turn, id) || outgrew_its_lane(turn, id) => {}
        None => commit::ready(turn, id, proof),
    }
}

/// Where somebody took a longer way while the change stood at its end, whoever judges on that way has it first; whether
/// that is so.
fn is_judged_first(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let Some((lifecycle, state)) = turn.stands(id).filter(|(_, it)| it.route.judge_again) else {
        return false;
    };
    let left_out = state.route.left_out.clone();
    let Some(decision) = lifecycle::lengthen(&lifecycle, &state, left_out) else { return false };
    if let Some(request) = turn.edit(id) {
        // Its place in the queue is for what is judged.
        request.work.leave_queue();
    }
    follow(turn, id, decision);
    true
}

/// Where a change is more than its fast lane is for, the next lane goes on with it, and the room says why; whether it
/// did.
fn outgrew_its_lane(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let Some(request) = turn.request(id) else { return false };
    let Some(choice) = request.route.lane.filter(|choice| choice.lane == Lane::Fast) else {
        return false;
    };
    let Some(mut values) = lanes::outgrown(turn, request) else { return false };
    let Some((lifecycle, state)) = turn.stands(id) else { return false };
    let lane = choice.lane.longer();
    let choice = LaneChoice { lane, source: LaneSource::Outgrown, shortened: None, ..choice };
    let left_out = turn.policy.routes.left_out_with(lane, &request.route.signals, &lifecycle);
    let left_out = &left_out & &state.route.left_out;
    let Some(decision) = lifecycle::lengthen(&lifecycle, &state, left_out) else { return false };
    if let Some(request) = turn.edit(id) {
        request.route.lane = Some(choice);
    }
    values["lane"] = json!(lane);
    turn.record(id, EventKind::Routed, "runtime", lane.as_str(), values.clone());
    say::in_room(turn, id, Voice::Team, Priority::Progress, "room.outgrown", values);
    follow(turn, id, decision);
    true
}

pub(super) fn check(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.edit(id) else { return };
    let Some(commit) = request.work.candidate.as_ref().map(|c| c.commit.clone()) else {
        return;
    };
    request.status = RequestStatus::Delegated;
    request.blocked = None;
    request.route.current_role = Some(Role::VersionController);
    let how = train::proving(turn, id);
    turn.plan(EffectKind::Checks { request_id: id.clone(), commit, how });
}

fn end_already_there(turn: &mut Turn<'_>, id: &RequestId, head: &str) {
    let branch = turn.policy.branch.clone();
    let criteria = turn.request(id).map(|request| {
        contract::criteria(request, request.backlog_id.as_ref().and_then(|id| turn.item(id)))
    });
    let Some(request) = turn.edit(id) else { return };
    request.work.candidate = None;
    request.work.criteria = criteria.unwrap_or_default();
    let summary =
        request.work.result.as_ref().map(|result| result.summary.clone()).unwrap_or_default();
    let values = json!({
        "request_id": id.as_str(),
        "summary": say::whole(&summary),
        "head": say::short(head),
        "branch": branch,
        "checks": say::checks(request.work.evidence.as_ref()),
        "not_checked": request.work.qa_remarks.not_checked,
        "risks": request.work.qa_remarks.risks,
    });
    ending::end(turn, id, RequestStatus::Completed, "final.already_there", values);
    verify::landed(turn, id, head);
}

/// The work ended without a change to the project.
pub(super) fn answered(turn: &mut Turn<'_>, id: &RequestId, summary: &str) {
    if goes_back_for_words(turn, id) {
        return;
    }
    let Some(request) = turn.request(id) else {
        return;
    };
    let agent = request.params.agent.as_str();
    let values = json!({
        "request_id": id.as_str(),
        "summary": say::whole(summary),
        "seconds": turn.now.seconds_since(request.created_at),
        "agent": agent,
        "rehearsal": agent.contains("rehearsal"),
    });
    ending::end(turn, id, RequestStatus::Completed, "final.answered", values);
}

/// Before its end a request goes back for everything that somebody wrote and no role has read; whether it did.
pub(super) fn goes_back_for_words(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    if goes_by_the_new_words(turn, id) {
        return true;
    }
    let words = turn.request(id).map_or(0, |request| request.params.unread_words.len());
    if words > 0 {
        if let Some(request) = turn.edit(id) {
            request.params.all_read();
        }
        let values = json!({ "count": words });
        say::in_room(turn, id, Voice::Team, Priority::Progress, "room.goes_back_for_words", values);
        resume(turn, id, SelectionSource::PlanningResume);
    }
    words > 0
}

/// The same where nothing is to be built by the plan that there is.
pub(super) fn plans_anew_for_words(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let Some(request) = turn.edit(id).filter(|request| request.params.has_unread()) else {
        return false;
    };
    // An edit of the message counts as one.
    let words = request.params.unread_words.len().max(1);
    request.params.all_read();
    let values = json!({ "count": words });
    say::in_room(turn, id, Voice::Team, Priority::Progress, "room.goes_back_for_words", values);
    resume(turn, id, SelectionSource::GateQuestion);
    true
}

/// Where no role has read the message as it is now, the request goes back to those who plan instead of on; whether it
/// did.
pub(super) fn goes_by_the_new_words(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let unread = turn.request(id).is_some_and(|request| request.params.unread_edit);
    if unread {
        if let Some(request) = turn.edit(id) {
            request.params.unread_edit = false;
        }
        resume(turn, id, SelectionSource::Edited);
    }
    unread
}

/// A request goes on with new input: at the step whose role it waits for; else with the planner where its route has a
/// plan, or with whoever builds; with the role that it was written to where no workflow has begun.
pub(super) fn resume(turn: &mut Turn<'_>, id: &RequestId, source: SelectionSource) {
    questions::planned_anew(turn, id);
    let Some(request) = turn.edit(id) else { return };
    request.work.spent.renew();
    request.work.plan_review.renew();
    // A plan of several items is planned again.
    let is_asked = request.blocked.as_ref().is_some_and(|it| it.code == BlockCode::Parts);
    let replans = is_asked && !request.params.proposed_items.is_empty();
    if is_asked {
        // With these words it may be something else.
        request.params.parts.clear();
        request.params.proposed_items.clear();
    }
    if let Some(conflict) = &mut request.work.conflict {
        conflict.answered = true;
    }
    request.chosen_by(source);
    let addressed = request.route.current_role.filter(|role| Role::ADDRESSED.contains(role));
    let is_of_its_step = source == SelectionSource::PlanningResume
        && request.blocked.as_ref().is_some_and(|it| it.code.stopped_at_its_step());
    let is_about_the_work = match source {
        SelectionSource::PlanningResume | SelectionSource::Edited => {
            let blocked = request.blocked.as_ref();
            let unsettled = [BlockCode::PlanRejected, BlockCode::Questions];
            let unsettled = blocked.is_some_and(|it| unsettled.contains(&it.code))
                || request.work.plan_review.is_open();
            !unsettled && !replans && !request.has_open_conflict()
        }
        SelectionSource::AgentFirstIntake
        | SelectionSource::BlockedRetry
        | SelectionSource::GateQuestion
        | SelectionSource::WorkflowContract => false,
    };
    match turn.stands(id) {
        Some((lifecycle, state))
            if is_about_the_work && is_of_its_step && takes_answers(&lifecycle, &state) =>
        {
            follow(turn, id, lifecycle::resume_at_its_step(&lifecycle, &state));
        }
        Some((lifecycle, state)) if is_about_the_work => {
            follow(turn, id, lifecycle::resume_with_words(&lifecycle, &state));
        }
        Some((lifecycle, state)) => {
            follow(turn, id, lifecycle::resume(&lifecycle, &state));
        }
        None => {
            let role = addressed.unwrap_or(Role::Orchestrator);
            handoff::delegate(turn, id, role, None, "More input arrived.", None);
        }
    }
}

/// Whether what the role of a step was missing is for itself alone. Who judges sees no more of it than the change that
/// there is, planning goes on with its own steps, and a route that has grown meanwhile has others before this one.
fn takes_answers(lifecycle: &Lifecycle, state: &WorkflowState) -> bool {
    let is_its_own = |step: &Step| match step.kind {
        StepKind::Research | StepKind::Guidance | StepKind::Change => true,
        StepKind::Plan
        | StepKind::Advice
        | StepKind::Review
        | StepKind::Verdict
        | StepKind::Land
        | StepKind::Sprint(_) => false,
    };
    let mut passed = state.route.passed_over.iter();
    let has_grown = !state.route.wanted.is_empty()
        || passed.any(|name| lifecycle.step(*name).is_some_and(|it| !state.route.leaves_out(it)));
    lifecycle.step(state.step).is_some_and(is_its_own) && !has_grown
}
