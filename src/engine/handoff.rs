//! Handing a request from one to the next, and stopping it.

use serde_json::{Value, json};

use super::decide::Wake;
use super::lifecycle::{BlockReason, Note, WorkflowDecision};
use super::say;
use super::turn::Turn;
use crate::domain::block::BlockCode;
use crate::domain::effect::EffectKind;
use crate::domain::envelope::{Envelope, EnvelopeBody, EnvelopeKind, EnvelopeParams, Place};
use crate::domain::gate::GateState;
use crate::domain::ids::RequestId;
use crate::domain::lifecycle::{Prerequisite, StepKind, StepName, counter};
use crate::domain::outgoing::{Act, Button, ButtonAct, NamedChannel, Priority, Target, Voice};
use crate::domain::request::{Blocked, EventKind, FinalAnswer, Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;

/// The intent word of a step, for readers of the queue.
fn intent(role: Role, step: Option<StepKind>) -> &'static str {
    match step {
        None => "route",
        Some(StepKind::Research) => "research",
        Some(StepKind::Plan) => "plan",
        Some(StepKind::Advice) if role == Role::Designer => "design",
        Some(StepKind::Advice | StepKind::Guidance) => "architect",
        Some(StepKind::Change) => "implement",
        Some(StepKind::Review) => "review",
        Some(StepKind::Verdict) => "qa",
        Some(StepKind::Land) => "closeout",
    }
}

/// Puts a delegate envelope into a role's inbox; the request is theirs now.
pub(super) fn delegate(
    turn: &mut Turn<'_>,
    id: &RequestId,
    role: Role,
    step: Option<StepName>,
    why: &str,
    not_before: Option<Timestamp>,
) {
    let now = turn.now;
    let kind = turn.step(id).filter(|at| Some(at.name) == step).map(|at| at.kind);
    let Some(request) = turn.edit(id) else { return };
    let sender = Role::Orchestrator;
    request.status = RequestStatus::Delegated;
    request.current_role = Some(role);
    request.next_role = None;
    request.blocked = None;
    request.ended_at = None;
    request.final_answer = None;
    let params = EnvelopeParams {
        teams_kind: "delegate".to_owned(),
        workflow: request.params.workflow.clone(),
        ..EnvelopeParams::default()
    };
    let body = EnvelopeBody {
        request_id: id.clone(),
        intent: intent(role, kind).to_owned(),
        urgency: request.urgency.clone(),
        scope: request.scope.clone(),
        artifacts: request.artifacts.clone(),
        params,
        body: why.to_owned(),
        from: sender,
        to: role,
    };
    let envelope = Envelope {
        relay_id: turn.ids.envelope(),
        transport: "internal".to_owned(),
        created_at: now,
        sender_role: sender,
        target_role: role,
        kind: EnvelopeKind::Delegate,
        envelope: body,
        place: Place::Inbox,
        attempts: 0,
        not_before,
        step,
        report: None,
        reason: None,
    };
    post_relay(turn, &envelope, if why.is_empty() { &envelope.envelope.scope } else { why });
    turn.wake(Wake::Role(role));
    turn.record(
        id,
        EventKind::Delegated,
        sender.as_str(),
        &format!("{role}: {}", step_word(step)),
        Value::Null,
    );
    turn.save(envelope);
}

/// The readable line of a hand-off, and the whole envelope where an operator wants to see it.
pub(super) fn post_relay(turn: &mut Turn<'_>, envelope: &Envelope, summary: &str) {
    let id = &envelope.envelope.request_id;
    let request = turn.request(id);
    let duty = request.and_then(Request::duty);
    let step = match (duty, request.and_then(Request::planning_step)) {
        (_, Some(planning)) => planning.as_str(),
        (Some(duty), None) => duty.as_str(),
        (None, None) => &step_word(envelope.step),
    };
    let values = json!({
        "from": envelope.sender_role,
        "to": envelope.target_role,
        "kind": envelope.kind,
        "request_id": id.as_str(),
        "step": step,
        // The step says what the team does for itself.
        "summary": if duty.is_some() { String::new() } else { say::cut(&say::title(summary), 160) },
    });
    say::relay_line(turn, id, values);
    if turn.policy.relay_debug {
        let json = serde_json::to_string_pretty(envelope).unwrap_or_default();
        let act = Act::Envelope { relay_id: envelope.relay_id.clone(), json };
        let target = Target::Named(NamedChannel::Relay);
        let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
        outgoing.request_id = Some(id.clone());
        turn.send(outgoing);
    }
}

/// Carries out what the workflow decided.
pub(super) fn follow(turn: &mut Turn<'_>, id: &RequestId, decision: WorkflowDecision) {
    let state = decision.state().clone();
    if let Some(request) = turn.edit(id) {
        request.params.workflow = Some(state);
    }
    match decision {
        WorkflowDecision::Next { role, step, notes, .. } => {
            let why = notes.iter().map(note).collect::<Vec<_>>().join(" ");
            begin_step(turn, id, role, step, &why);
        }
        WorkflowDecision::Closeout { .. } => {
            if !super::revise::goes_by_the_new_words(turn, id) {
                super::closeout::begin(turn, id);
            }
        }
        WorkflowDecision::Blocked { reason, text, .. } => {
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
            block(turn, id, code(reason), &detail, Vec::new());
        }
    }
}

/// Begins a step. Reviewers and QA look at an exact commit, and QA at one that the runtime has
/// checked, so before their steps the runtime commits the worktree to the request's own branch.
fn begin_step(turn: &mut Turn<'_>, id: &RequestId, role: Role, step: StepName, why: &str) {
    if turn.step(id).is_some_and(|step| step.needs(Prerequisite::Commit)) {
        super::closeout::commit_then(turn, id, role);
    } else {
        delegate(turn, id, role, Some(step), why, None);
    }
}

/// The step that the workflow stands at, handed to its role.
pub(super) fn delegate_current(turn: &mut Turn<'_>, id: &RequestId, why: &str) {
    let Some(request) = turn.request(id) else {
        return;
    };
    match request.params.workflow.as_ref().map(|state| (state.phase_owner, state.step)) {
        Some((role, step)) => delegate(turn, id, role, Some(step), why, None),
        None => {
            let has = request.current_role.filter(|role| *role != Role::VersionController);
            delegate(turn, id, has.unwrap_or(Role::Orchestrator), None, why, None);
        }
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

fn note(note: &Note) -> String {
    match note {
        Note::DocumentsMissing(names) if names.is_empty() => {
            "The report has to list at least one planning document that exists.".to_owned()
        }
        Note::DocumentsMissing(names) => {
            format!("These documents are missing from the report: {}.", names.join(", "))
        }
        Note::PlannerDocumentsDropped(names) => {
            format!("Planning documents were left out of the artifacts: {}.", names.join(", "))
        }
        Note::Contradiction => {
            "The last verdict contradicted itself and counts as negative.".to_owned()
        }
        Note::VerdictMissing => "The last report had no usable verdict.".to_owned(),
        Note::RowsDiffer(faults) => {
            format!("The rows of the last verdict were not one for each criterion ({faults}).")
        }
        Note::SpecificationAtFault => "QA found the specification itself at fault.".to_owned(),
        Note::WrongReporter(role) => format!("A report by {role} did not belong to this step."),
        Note::WithoutResearch => "Research did not get through; plan from local facts.".to_owned(),
        Note::RevisionInsteadOfBlock => "The reviewer asks for a revision.".to_owned(),
    }
}

/// Stops a request until a person acts, and tells who asked.
pub(super) fn block(
    turn: &mut Turn<'_>,
    id: &RequestId,
    code: BlockCode,
    detail: &str,
    required_inputs: Vec<String>,
) {
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return };
    request.status = RequestStatus::Blocked;
    request.next_role = None;
    request.active_run = None;
    request.blocked = Some(Blocked {
        code,
        detail: say::cut(detail, 1_500),
        required_inputs: required_inputs.clone(),
        since: now,
    });
    let who = request.reply_route.author_name.clone();
    turn.record(id, EventKind::Blocked, "runtime", code.word(), json!({ "detail": detail }));
    let values = json!({
        "request_id": id.as_str(),
        "code": code,
        "detail": say::whole(detail),
        "required_inputs": required_inputs,
        "who": who,
    });
    let button = |act| Button { act, subject: id.to_string(), version: 0 };
    let buttons = vec![button(ButtonAct::Retry), button(ButtonAct::Cancel)];
    say::answer(turn, id, Priority::Error, "blocked", values, buttons);
}

/// Ends a request. Its inbox envelopes, gate and agent go with it; the last word is `key`.
pub(super) fn end(
    turn: &mut Turn<'_>,
    id: &RequestId,
    status: RequestStatus,
    key: &str,
    values: Value,
) {
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return };
    request.status = status;
    request.current_role = None;
    request.next_role = None;
    request.blocked = None;
    request.ended_at = Some(now);
    if request.duty().is_none() {
        let values = values.as_object().cloned().unwrap_or_default();
        request.final_answer = Some(FinalAnswer { key: key.to_owned(), values });
    }
    let run = request.active_run.take();
    let gate = request.gate_id.take();
    let worked = request.spent.turns > 0;
    let commit = request.commit_sha.clone().filter(|_| status == RequestStatus::Committed);
    turn.record(
        id,
        EventKind::of(status),
        "runtime",
        commit.as_deref().unwrap_or(key),
        Value::Null,
    );
    if let Some(run) = run {
        turn.wake(Wake::StopRun(run));
    }
    let before = turn.before();
    for effect in before.effects.values().filter(|it| it.kind.request_id() == Some(id)) {
        if !super::effects::outlives(before, &effect.kind) {
            turn.wake(Wake::StopEffect(effect.effect_id.clone()));
        }
    }
    for envelope in before.envelopes.values().filter(|e| e.envelope.request_id == *id) {
        // The envelope of a run under way is put away when the run ends.
        if !before.runs.values().any(|run| run.envelope_id == envelope.relay_id) {
            turn.put_away(envelope, Place::Archive, status.as_str());
        }
    }
    if let Some(gate) = gate.and_then(|gate| before.gates.get(&gate)) {
        super::gates::close(turn, gate, GateState::Void);
    }
    if worked {
        turn.plan(EffectKind::Release { request_id: id.clone() });
    }
    say::answer(turn, id, Priority::Final, key, values, Vec::new());
}

/// The step that a request stands at; none without a workflow.
pub(super) fn step_of(request: &Request) -> Option<StepName> {
    request.params.workflow.as_ref().map(|state| state.step)
}

/// A step's word for people and files; `intake` where there is no workflow yet.
pub(super) fn step_word(step: Option<StepName>) -> String {
    step.map_or_else(|| "intake".to_owned(), |step| step.to_string())
}
