//! Handing a request to the role that is next.

use serde_json::{Value, json};

use super::decision::Wake;
use super::turn::Turn;
use super::{base, ending, say};
use crate::domain::envelope::{
    Envelope, EnvelopeBody, EnvelopeFolder, EnvelopeKind, EnvelopeParams,
};
use crate::domain::ids::{EnvelopeId, RequestId};
use crate::domain::lifecycle::{StepKind, StepName};
use crate::domain::outgoing::{Act, NamedChannel, Priority, Target, Voice};
use crate::domain::request::{EventKind, HeldStep, Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;

/// The intent word of a step, for readers of the queue.
fn intent(role: Role, step: Option<StepKind>) -> &'static str {
    match step {
        None | Some(StepKind::Sprint(_)) => "route",
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
    if holds(turn, id, role, step, why) || base::comes_first(turn, id, role, why) {
        return;
    }
    let now = turn.now;
    let kind = turn.step(id).filter(|at| Some(at.name) == step).map(|at| at.kind);
    let Some(request) = turn.edit(id) else { return };
    let sender = Role::Orchestrator;
    request.status = RequestStatus::Delegated;
    request.route.current_role = Some(role);
    request.route.next_role = None;
    request.blocked = None;
    request.outcome.ended_at = None;
    request.outcome.final_answer = None;
    let body = body(request, role, kind, why);
    let envelope = Envelope { not_before, step, ..envelope(turn.ids.envelope(), now, body) };
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

/// Whether somebody has written that the request is to end, so that nobody begins before there is an answer.
fn holds(
    turn: &mut Turn<'_>,
    id: &RequestId,
    role: Role,
    step: Option<StepName>,
    why: &str,
) -> bool {
    let Some(request) = turn.edit(id).filter(|request| request.duty().is_none()) else {
        return false;
    };
    if let Some(asked) = request.params.end_question.as_mut().filter(|it| !it.is_answered) {
        asked.held = Some(HeldStep { role, step, why: why.to_owned() });
    }
    ending::hold_for_answer(turn, id)
}

/// Gives a run that nobody follows its envelope again: a decision leaves none without, a file that somebody removed can.
pub(super) fn give_back(turn: &mut Turn<'_>, run: &Run) {
    let kind = turn.step(&run.request_id).filter(|at| Some(at.name) == run.step).map(|at| at.kind);
    let Some(request) = turn.request(&run.request_id) else { return };
    let body = body(request, run.role, kind, "");
    let id = run.envelope_id.clone();
    let envelope = Envelope { step: run.step, ..envelope(id, run.started_at, body) };
    turn.wake(Wake::Role(run.role));
    turn.save(envelope);
}

/// What the envelope of a step says.
fn body(request: &Request, role: Role, kind: Option<StepKind>, why: &str) -> EnvelopeBody {
    let params = EnvelopeParams {
        teams_kind: "delegate".to_owned(),
        workflow: request.params.workflow.clone(),
        ..EnvelopeParams::default()
    };
    EnvelopeBody {
        request_id: request.request_id.clone(),
        intent: intent(role, kind).to_owned(),
        urgency: request.urgency.clone(),
        scope: request.scope.clone(),
        artifacts: request.artifacts.clone(),
        params,
        body: why.to_owned(),
        from: Role::Orchestrator,
        to: role,
    }
}

/// An envelope of the orchestrator in an inbox.
fn envelope(relay_id: EnvelopeId, created_at: Timestamp, body: EnvelopeBody) -> Envelope {
    Envelope {
        relay_id,
        transport: "internal".to_owned(),
        created_at,
        sender_role: body.from,
        target_role: body.to,
        kind: EnvelopeKind::Delegate,
        envelope: body,
        place: EnvelopeFolder::Inbox,
        attempts: 0,
        not_before: None,
        step: None,
        report: None,
        reason: None,
    }
}

/// The readable line of a hand-off, and the whole envelope where an operator wants to see it.
pub(super) fn post_relay(turn: &mut Turn<'_>, envelope: &Envelope, summary: &str) {
    let id = &envelope.envelope.request_id;
    let request = turn.request(id);
    let duty = request.and_then(Request::duty);
    let is_private = request.is_some_and(|request| request.conversation.reply_route.is_dm);
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
        // The step says what the team does for itself, and what somebody said to the team alone stays there.
        "summary": if duty.is_some() || is_private { String::new() } else { say::cut(&say::title(summary), 160) },
    });
    say::relay_line(turn, id, values);
    if turn.policy.relay_debug && !is_private {
        let json = serde_json::to_string_pretty(envelope).unwrap_or_default();
        let act = Act::Envelope { relay_id: envelope.relay_id.clone(), json };
        let target = Target::Named(NamedChannel::Relay);
        let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
        outgoing.request_id = Some(id.clone());
        turn.send(outgoing);
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
            let has = request.route.current_role.filter(|role| *role != Role::VersionController);
            delegate(turn, id, has.unwrap_or(Role::Orchestrator), None, why, None);
        }
    }
}

/// The step that a request stands at; none without a workflow.
pub(super) fn step_of(request: &Request) -> Option<StepName> {
    request.params.workflow.as_ref().map(|state| state.step)
}

/// A step's word for people and files; `intake` where there is no workflow yet.
pub(super) fn step_word(step: Option<StepName>) -> String {
    step.map_or_else(|| "intake".to_owned(), |step| step.to_string())
}
