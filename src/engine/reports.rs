//! Reports in the orchestrator's inbox, and envelopes that something is wrong with.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::attempts::Failure;
use super::authorize::{Resource, authorize};
use super::contract::numbered;
use super::decision::{Answer, Wake};
use super::lifecycle::{DocumentRule, StepReport};
use super::progress::answered;
use super::turn::Turn;
use super::{
    actions, attempts, claims, contract, ending, handoff, intake, lanes, lifecycle, parts,
    progress, routes, runs, say, sprint,
};
use crate::domain::actor::Actor;
use crate::domain::block::BlockCode;
use crate::domain::config::AgentKind;
use crate::domain::conversation::Conversation;
use crate::domain::criterion::Criterion;
use crate::domain::envelope::{Envelope, EnvelopeFolder, EnvelopeKind, MAX_ENVELOPE_ATTEMPTS};
use crate::domain::evidence::Evidence;
use crate::domain::guard::{Guard, GuardFinding};
use crate::domain::ids::{EnvelopeId, RequestId};
use crate::domain::language::Language;
use crate::domain::lifecycle::StepName;
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::request::{
    EventKind, QaRemarks, ReplyRoute, Request, RequestStatus, RequestWork, RoutingContext,
    SelectionSource,
};
use crate::domain::result::{EvidenceResult, ResultStatus, RoleResult};
use crate::domain::role::Role;
use crate::domain::routes::{Lane, LaneSource};
use crate::domain::run::{RunOutcome, RunReport};
use crate::domain::usage::Usage;

/// Applies a report.
pub(super) fn ready(turn: &mut Turn<'_>, relay_id: &EnvelopeId) -> Answer {
    let Some(envelope) = turn.before().envelopes.get(relay_id).cloned() else {
        return Answer::Ignored("the envelope is gone");
    };
    match envelope.kind {
        EnvelopeKind::Report => {}
        EnvelopeKind::Forward => return forward(turn, &envelope),
        EnvelopeKind::Delegate => return Answer::Ignored("not a report"),
    }
    let id = envelope.envelope.request_id.clone();
    if let Some(reason) = stale(turn, &envelope) {
        turn.put_away(&envelope, EnvelopeFolder::Archive, reason);
        return Answer::Ignored(reason);
    }
    let report = match envelope.report.as_deref() {
        Some(report) => report.clone(),
        None => match rebuilt(turn, &envelope) {
            Ok(report) => report,
            Err(reason) => {
                turn.put_away(&envelope, EnvelopeFolder::Dead, &reason);
                return Answer::Ignored("the report has no result that counts");
            }
        },
    };
    turn.put_away(&envelope, EnvelopeFolder::Archive, "applied");
    apply(turn, &id, report, &envelope.envelope.params.why);
    Answer::Accepted
}

/// Why a report means nothing any more (`spec/teams.md` R08, R09).
fn stale(turn: &Turn<'_>, envelope: &Envelope) -> Option<&'static str> {
    let Some(request) = turn.request(&envelope.envelope.request_id) else {
        return Some("the request is gone");
    };
    if request.status.is_terminal() {
        return Some("the request has ended");
    }
    if request.status != RequestStatus::Delegated
        || request.route.current_role != Some(envelope.sender_role)
        || request.work.active_run.is_some()
    {
        return Some("the request is not with the sender");
    }
    if envelope.step.is_some() && envelope.step != handoff::step_of(request) {
        return Some("the request is at another step");
    }
    if request.work.gate_id.is_some() {
        return Some("the request waits for a person's decision");
    }
    None
}

/// The report of an envelope that another program dropped: the result stands in its parameters or
/// as JSON in its body (`spec/teams.md` R11), and is held against the contract as every other. Else the reason why it
/// does not count.
fn rebuilt(turn: &Turn<'_>, envelope: &Envelope) -> Result<RunReport, String> {
    let body = &envelope.envelope;
    let none = || "the report has no result".to_owned();
    let request = turn.request(&body.request_id).ok_or_else(none)?;
    // The older runtime's reports do not name their step; the sender has the request, so it is this one.
    let step = handoff::step_of(request);
    let value = match &body.params.result {
        Some(value) => value.clone(),
        None => Value::Object(contract::extract_json_object(&body.body).map_err(|_| none())?),
    };
    let criteria = criteria_of(turn, request);
    let result = contract::check(&value, envelope.sender_role, step, &criteria);
    let mut result = result.map_err(|issues| {
        let issues: Vec<String> = issues.iter().map(ToString::to_string).collect();
        say::cut(&format!("the result does not follow the contract: {}", issues.join("; ")), 600)
    })?;
    result.request_id = body.request_id.to_string();
    let run_id = crate::domain::ids::RunId::parse(envelope.relay_id.as_str());
    let run_id = run_id.map_err(|error| error.to_string())?;
    Ok(RunReport {
        run_id,
        request_id: body.request_id.clone(),
        role: envelope.sender_role,
        step,
        generation: 0,
        outcome: RunOutcome::Result(Arc::new(result)),
        changed_paths: Vec::new(),
        work: None,
        documents_present: Vec::new(),
        usage: Usage::default(),
        session_id: None,
        duration_ms: 0,
        repairs: 0,
        dropped_bytes: 0,
        isolation: None,
        agent: "dropped".to_owned(),
        agent_kind: AgentKind::default(),
        model: String::new(),
        heard: Vec::new(),
        conversation: Conversation::default(),
    })
}

/// The acceptance criteria that a request is held against.
fn criteria_of(turn: &Turn<'_>, request: &Request) -> Vec<Criterion> {
    let item = request.backlog_id.as_ref().and_then(|id| turn.item(id));
    contract::criteria(request, item)
}

fn apply(turn: &mut Turn<'_>, id: &RequestId, report: RunReport, why: &str) {
    match report.outcome.clone() {
        RunOutcome::Failed { kind, message, until, answer } => {
            let failure = Failure { kind, message: &message, until, answer: answer.as_ref() };
            attempts::failed(turn, id, &report, failure, why);
        }
        RunOutcome::Result(result) => {
            if let Some(request) = turn.edit(id) {
                request.work.spent.step_failures = 0;
                request.work.spent.last_failure = None;
                request.work.spent.waits = 0;
                request.work.spent.rate_limits = 0;
                request.work.spent.outages = 0;
                request.work.spent.full_disks = 0;
                request.work.result = Some(Arc::clone(&result));
                // One that another program dropped does not say what it left.
                if report.work.is_some() || report.generation == 0 {
                    request.work.reported.clone_from(&report.work);
                }
                if !request.route.visited_roles.contains(&report.role) {
                    request.route.visited_roles.push(report.role);
                }
            }
            turn.record(
                id,
                EventKind::RoleReport,
                report.role.as_str(),
                &say::cut(&result.summary, 300),
                json!({ "result": result, "step": report.step, "agent": report.agent,
                        "changed_paths": report.changed_paths, "repairs": report.repairs }),
            );
            if turn.request(id).is_some_and(|request| request.duty().is_some()) {
                sprint::duty_result(turn, id, &result);
                return;
            }
            match (report.step, report.role) {
                (Some(step), _) => step_result(turn, id, step, &report, &result),
                (None, Role::Orchestrator) => orchestrator_result(turn, id, &result),
                (None, role) => addressed_result(turn, id, role, &result),
            }
        }
    }
}

/// What a role made of a request that was written to it: answered, or left to the orchestrator. As an older runtime left
/// it, a role may have one that was not.
fn addressed_result(turn: &mut Turn<'_>, id: &RequestId, role: Role, result: &RoleResult) {
    if progress::goes_by_the_new_words(turn, id) || stopped(turn, id, result) {
        return;
    }
    if result.proposals.handled_completely() {
        answered(turn, id, &result.summary);
        return;
    }
    let values = json!({ "role": role, "summary": say::whole(&result.summary) });
    say::in_room(turn, id, Voice::Role(role), Priority::Progress, "room.passed_on", values);
    handoff::delegate(turn, id, Role::Orchestrator, None, &result.summary, None);
}

/// What the orchestrator made of a new request: answered, an action asked for, or handed on.
fn orchestrator_result(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) {
    if progress::goes_by_the_new_words(turn, id) {
        return;
    }
    let lane = turn.request(id).and_then(|request| request.route.lane);
    let only_answers = lane.is_some_and(|choice| choice.lane == Lane::Answer);
    let by_person = only_answers && lane.is_some_and(|it| it.source == LaneSource::Person);
    if by_person
        && let Some(request) = turn.edit(id).filter(|it| !it.params.unread_words.is_empty())
    {
        // With what somebody wrote since, it may be something else.
        request.route.lane = None;
    }
    if let Some(action) = result.proposals.control_action.as_ref().filter(|_| !by_person) {
        if progress::goes_back_for_words(turn, id) {
            return;
        }
        actions::control(turn, id, action);
        return;
    }
    if stopped(turn, id, result) {
        return;
    }
    if result.proposals.handled_completely() || only_answers {
        answered(turn, id, &result.summary);
        return;
    }
    if parts::holds(turn, id, result) {
        return;
    }
    start_workflow(turn, id, result);
}

/// The first step of the request's route begins.
pub(super) fn start_workflow(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) {
    let decision = lanes::begin(turn, id, result.proposals.request_intent);
    if let Some(request) = turn.edit(id) {
        request.chosen_by(SelectionSource::AgentFirstIntake);
    }
    let next = match &decision {
        lifecycle::WorkflowDecision::Next { role, .. } => Some(*role),
        lifecycle::WorkflowDecision::Closeout { .. }
        | lifecycle::WorkflowDecision::Blocked { .. } => None,
    };
    room_report(turn, id, Role::Orchestrator, "intake", result, next, Vec::new());
    routes::ask_where_unsure(turn, id, result.proposals.request_intent);
    progress::start(turn, id, decision);
}

/// Whether a negative result outside the workflow stopped the request: blocked or failed.
pub(super) fn stopped(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) -> bool {
    if result.is_negative() && progress::goes_back_for_words(turn, id) {
        return true;
    }
    if result.status == ResultStatus::Blocked {
        block_with(turn, id, result);
        return true;
    }
    if result.is_negative() {
        let detail = first_of(&[&result.error, &result.summary]);
        let values = json!({ "request_id": id.as_str(), "reason": "", "detail": detail });
        ending::end(turn, id, RequestStatus::Failed, "final.failed", values);
        return true;
    }
    false
}

fn step_result(
    turn: &mut Turn<'_>,
    id: &RequestId,
    step: StepName,
    report: &RunReport,
    result: &RoleResult,
) {
    let Some(request) = turn.request(id) else {
        return;
    };
    let Some((lifecycle, state)) = turn.stands(id) else {
        return;
    };
    let in_sprint = request.sprint_id.is_some();
    // What was built and sent back is not dropped, nor brought to the branch, because a plan is called an answer.
    let to_be_built = request.todo_id.is_some() || request.is_built() || request.work.wants_changes;
    let documents = documents(request, report);
    let criteria = criteria_of(turn, request);
    let failed_checks = request.work.evidence.as_ref().map(Evidence::failed).unwrap_or_default();
    claims::hold_against(turn, id, report, result);
    keep_criteria(turn, id, result);
    keep_qa_verdict(turn, id, result, &criteria);
    let mut facts = StepReport::from_result(result);
    facts.documents_present = report.documents_present.iter().cloned().collect();
    facts.document_rule = if in_sprint { DocumentRule::Sprint } else { DocumentRule::NotAsked };
    facts.is_to_be_built = to_be_built;
    facts.criteria = criteria;
    facts.failed_checks = failed_checks;
    let decision = lifecycle::decide(&lifecycle, &state, &facts);
    if let Some(kept) = turn.edit(id).and_then(|request| request.work.result.as_mut()) {
        lifecycle::drop_foreign_documents(&state, Arc::make_mut(kept));
    }
    let next = match &decision {
        lifecycle::WorkflowDecision::Next { role, .. } => Some(*role),
        lifecycle::WorkflowDecision::Closeout { .. } => Some(Role::VersionController),
        lifecycle::WorkflowDecision::Blocked { .. } => None,
    };
    if report.role == Role::Developer
        && !result.is_negative()
        && let Some(request) = turn.edit(id)
    {
        // What was built is what the final answer tells, not what was checked last.
        request.params.delivered = Some(result.summary.clone());
    }
    if let (Some(role), Some(request)) = (next, turn.edit(id)) {
        request.route.routing_context = Some(RoutingContext {
            selected_role: Some(role),
            selection_source: SelectionSource::WorkflowContract,
        });
    }
    room_report(turn, id, report.role, step.as_str(), result, next, documents);
    progress::follow_report(turn, id, decision);
    if let Some(request) = turn.request(id)
        && request.status == RequestStatus::Blocked
    {
        // The workflow knows that the role is stuck; what would help it stands in the result.
        let inputs = required_inputs(result);
        if let Some(blocked) = turn.edit(id).and_then(|request| request.blocked.as_mut()) {
            blocked.required_inputs = inputs;
        }
    }
}

/// Remarks of QA of one kind that are kept.
const REMARKS: usize = 20;

/// What QA leaves to a person is asked about before the change lands, whoever has it until then; what it has not checked,
/// and the risks that it sees, are told with it.
fn keep_qa_verdict(
    turn: &mut Turn<'_>,
    id: &RequestId,
    result: &RoleResult,
    criteria: &[Criterion],
) {
    let verdict = result.proposals.qa_validation.as_ref().filter(|_| result.role == Role::Qa);
    let Some(verdict) = verdict else { return };
    let abstains =
        verdict.evidence_matrix.iter().filter(|row| row.result == EvidenceResult::Abstain);
    let criteria: Vec<String> = criteria.iter().map(|it| it.text.clone()).collect();
    let named = |row: &str| match numbered::find(&criteria, numbered::CRITERION, row) {
        Some(at) => format!("{}: {}", numbered::name(numbered::CRITERION, at), criteria[at]),
        None => row.to_owned(),
    };
    let left = abstains.map(|row| GuardFinding {
        guard: Guard::Unjudged,
        path: say::cut(&named(&row.criterion), 200),
        detail: say::cut(&row.evidence, 200),
    });
    let left: Vec<GuardFinding> = left.collect();
    let lines = |said: &[String]| -> Vec<String> {
        let said = said.iter().map(|line| say::cut(line, 300)).filter(|line| !line.is_empty());
        said.take(REMARKS).collect()
    };
    let remarks = QaRemarks {
        not_checked: lines(&verdict.not_checked),
        risks: lines(&verdict.residual_risks),
    };
    let is_new = |work: &RequestWork| work.unjudged != left || work.qa_remarks != remarks;
    if let Some(request) = turn.edit(id).filter(|request| is_new(&request.work)) {
        (request.work.unjudged, request.work.qa_remarks) = (left, remarks);
    }
}

/// A planner's acceptance criteria are what the work is held against from then on.
fn keep_criteria(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) {
    let said = result.proposals.acceptance_criteria.as_deref().unwrap_or_default();
    if result.role != Role::Planner || result.is_negative() || said.is_empty() {
        return;
    }
    let said: Vec<Criterion> = said.iter().map(|text| Criterion::from(text.trim())).collect();
    let checks = &turn.policy.check_names;
    let unknown: BTreeSet<&str> = said.iter().filter_map(|it| it.unknown_check(checks)).collect();
    let new: Vec<Criterion> = said.iter().cloned().map(|it| it.by_agent(checks)).collect();
    if !unknown.is_empty() {
        let values = json!({ "unknown": unknown, "checks": checks });
        say::in_room(turn, id, Voice::Team, Priority::Progress, "room.unknown_checks", values);
    }
    let Some(request) = turn.edit(id) else { return };
    let old = std::mem::replace(&mut request.work.criteria, new.clone());
    // What has been built was held against them.
    let is_built = request.is_built();
    let gone = old.iter().filter(|it| new.iter().all(|one| one.text != it.text));
    let gone: Vec<&str> = gone.map(|it| it.text.as_str()).collect();
    if is_built && !gone.is_empty() {
        let added = new.iter().filter(|it| old.iter().all(|one| one.text != it.text));
        let added: Vec<&str> = added.map(|it| it.text.as_str()).collect();
        let values = json!({ "gone": gone, "new": added });
        say::in_room(turn, id, Voice::Team, Priority::Progress, "room.criteria_changed", values);
    }
}

/// Documents of the team that a role names as its own: they go along, so that people in the room can read
/// them. What the request came with is there already, and the planner's documents are told by the planner.
fn documents(request: &Request, report: &RunReport) -> Vec<String> {
    let own = |path: &&String| {
        path.starts_with("shared_workspace/")
            && !request.artifacts.contains(path)
            && (report.role == Role::Planner || !lifecycle::is_planner_document(path))
    };
    report.documents_present.iter().filter(own).take(MOST_DOCUMENTS).cloned().collect()
}

/// Documents that go along with one report.
const MOST_DOCUMENTS: usize = 10;

/// The persona's word in the room when its step is done.
pub(super) fn room_report(
    turn: &mut Turn<'_>,
    id: &RequestId,
    role: Role,
    step: &str,
    result: &RoleResult,
    next: Option<Role>,
    documents: Vec<String>,
) {
    let Some(request) = turn.request(id) else { return };
    let language = request.conversation.language;
    let values = json!({
        "role": role,
        "step": step,
        "status": result.status.as_str(),
        "summary": say::whole(&result.summary),
        "next_role": next.map_or("", Role::as_str),
    });
    let said = say::content("room.report", language, values);
    say::in_room_with(turn, id, Voice::Role(role), said, documents);
}

fn required_inputs(result: &RoleResult) -> Vec<String> {
    let inputs = result.proposals.required_inputs.iter().flatten();
    inputs.map(|input| say::cut(input, 300)).collect()
}

fn first_of(texts: &[&str]) -> String {
    texts
        .iter()
        .map(|text| text.trim())
        .find(|text| !text.is_empty())
        .map(say::whole)
        .unwrap_or_default()
}

fn block_with(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) {
    let detail = first_of(&[&result.error, &result.summary]);
    ending::block(turn, id, BlockCode::RoleBlocked, &detail, required_inputs(result));
}

/// Words of a person that another program dropped into the orchestrator's inbox.
fn forward(turn: &mut Turn<'_>, envelope: &Envelope) -> Answer {
    turn.put_away(envelope, EnvelopeFolder::Archive, "taken in");
    let words = [envelope.envelope.body.as_str(), envelope.envelope.scope.as_str()];
    let text = first_of(&words);
    if text.is_empty() {
        return Answer::Ignored("nothing was said");
    }
    let author = envelope.envelope.params.author.as_deref().unwrap_or("operator").to_owned();
    let language = Language::of(&text).unwrap_or(turn.policy.language);
    let route = ReplyRoute { author_name: author, ..ReplyRoute::default() };
    // Whoever can write into the state folder is the operator.
    let granted = authorize(turn.policy, &Actor::Operator, Resource::Team);
    if let Ok(granted) = granted
        && intake::open_of(turn, &route, &text).is_none()
    {
        intake::ask(turn, &granted, &text, route, language, None);
    }
    Answer::Accepted
}

/// Somebody could not handle an envelope. After enough attempts it is dead, and the next one is free.
/// A run that was begun on it stays noted until then: the next attempt finds its agent or its result. As
/// long as the agent may live, the envelope does not die, because whoever comes next would have the same
/// worktree.
pub(super) fn failed(
    turn: &mut Turn<'_>,
    relay_id: &EnvelopeId,
    reason: &str,
    agent_lives: bool,
    usage: Usage,
) -> Answer {
    let Some(envelope) = turn.before().envelopes.get(relay_id) else {
        return Answer::Ignored("the envelope is gone");
    };
    let mut envelope = Envelope::clone(envelope);
    envelope.attempts = (envelope.attempts + 1).min(MAX_ENVELOPE_ATTEMPTS);
    if agent_lives || envelope.attempts < MAX_ENVELOPE_ATTEMPTS {
        // What an agent has done already is given up only after minutes: a disk that went away comes back.
        let has_run = turn.before().runs.values().any(|run| run.envelope_id == *relay_id);
        let wait = match has_run {
            true => 2 * 5_u64.pow(envelope.attempts.clamp(1, 4) - 1),
            false => 2 * u64::from(envelope.attempts),
        };
        envelope.not_before = Some(turn.now.plus_seconds(wait));
        envelope.reason = Some(reason.to_owned());
        turn.wake(Wake::Role(envelope.target_role));
        turn.save(envelope);
        return Answer::Accepted;
    }
    for run in turn.before().runs.values().filter(|run| run.envelope_id == *relay_id) {
        runs::spent_without_report(turn, run, usage);
        runs::gone(turn, run);
    }
    turn.put_away(&envelope, EnvelopeFolder::Dead, reason);
    let id = envelope.envelope.request_id.clone();
    // One that was called back stops nobody.
    let is_called_back = envelope.kind == EnvelopeKind::Delegate
        && turn.request(&id).is_some_and(|request| {
            request.route.current_role != Some(envelope.target_role)
                || handoff::step_of(request) != envelope.step
        });
    if !is_called_back && let Some(request) = turn.edit(&id) {
        request.work.active_run = None;
        if !request.status.is_terminal() {
            ending::block(turn, &id, BlockCode::StepFailed, reason, Vec::new());
        }
    }
    Answer::Accepted
}

/// An envelope that another program put into an inbox. It is checked like any words from outside.
pub(super) fn dropped(turn: &mut Turn<'_>, envelope: Envelope) -> Answer {
    let known = turn.request(&envelope.envelope.request_id).is_some();
    let allowed = match envelope.kind {
        EnvelopeKind::Forward => envelope.target_role == Role::Orchestrator,
        EnvelopeKind::Report => known && envelope.target_role == Role::Orchestrator,
        // Work is handed out by the orchestrator alone.
        EnvelopeKind::Delegate => false,
    };
    if !allowed || envelope.sender_role != envelope.envelope.from {
        turn.put_away(&envelope, EnvelopeFolder::Dead, "nobody may drop this here");
        return Answer::Ignored("nobody may drop this here");
    }
    turn.wake(Wake::Reports);
    // What the runtime knows about a run of its own does not come from outside.
    let envelope = Envelope { place: EnvelopeFolder::Inbox, report: None, ..envelope };
    turn.save(envelope);
    Answer::Accepted
}

/// A dead letter came back: it gets its attempts again, and its request goes on if it waited for it.
pub(super) fn replayed(turn: &mut Turn<'_>, envelope: Envelope) -> Answer {
    let id = envelope.envelope.request_id.clone();
    let role = envelope.target_role;
    let fresh = Envelope {
        place: EnvelopeFolder::Inbox,
        attempts: 0,
        not_before: None,
        reason: None,
        ..envelope
    };
    // Only for the step that the request still stands at; a run for another one would be refused and
    // nobody would have the request.
    let waits = turn.request(&id).is_some_and(|request| {
        // What a person has decided, or is asked, is no envelope's to pass over.
        let is_asked = request.blocked.as_ref().is_some_and(|it| {
            matches!(
                it.code,
                BlockCode::Questions
                    | BlockCode::Parts
                    | BlockCode::PlanRejected
                    | BlockCode::BudgetSpent
                    | BlockCode::EndQuestion
            )
        });
        request.status == RequestStatus::Blocked
            && handoff::step_of(request) == fresh.step
            && !is_asked
    });
    if fresh.kind == EnvelopeKind::Delegate
        && waits
        && let Some(request) = turn.edit(&id)
    {
        request.status = RequestStatus::Delegated;
        request.route.current_role = Some(role);
        request.blocked = None;
    }
    // The history of one that was packed away stays whole.
    if turn.request(&id).is_some() {
        turn.record(&id, EventKind::Replayed, "operator", fresh.relay_id.as_str(), Value::Null);
    }
    turn.wake(if fresh.kind == EnvelopeKind::Delegate { Wake::Role(role) } else { Wake::Reports });
    turn.save(fresh);
    Answer::Accepted
}
