//! Agent runs: that one may begin, and what came of it.

use serde_json::{Value, json};

use super::decide::{Answer, Wake};
use super::turn::Turn;
use super::{attempts, budget, gates, handoff, recovery, say};
use crate::domain::block::BlockCode;
use crate::domain::change::Change;
use crate::domain::conversation::Room;
use crate::domain::effect::EffectKind;
use crate::domain::envelope::{Envelope, EnvelopeBody, EnvelopeKind, EnvelopeParams, Place};
use crate::domain::ids::{MessageId, RequestId, RunId};
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::record::RecordId;
use crate::domain::refusal::Refusal;
use crate::domain::request::{EventKind, Followup, RequestStatus};
use crate::domain::role::Role;
use crate::domain::run::{FailKind, Run, RunOutcome, RunReport, ledger_of};
use crate::domain::session::Session;
use crate::domain::state::session_key;
use crate::domain::time::Timestamp;

/// A worker is about to start an agent for an envelope. Refused where the envelope or its request is
/// gone, and where the request has used up its runs.
pub(super) fn starting(turn: &mut Turn<'_>, run: Run) -> Answer {
    let Some(envelope) = turn.before().envelopes.get(&run.envelope_id) else {
        return Answer::Ignored("the envelope is gone");
    };
    let envelope = Envelope::clone(envelope);
    let limit = turn.policy.limits.turns;
    let Some(request) = turn.request(&run.request_id) else {
        return refuse(turn, &run, &envelope, "the request is gone");
    };
    if request.status != RequestStatus::Delegated
        || request.current_role != Some(run.role)
        || handoff::step_of(request) != run.step
    {
        return refuse(turn, &run, &envelope, "the request has moved on");
    }
    let again = turn.before().runs.contains_key(&run.run_id);
    if !again && request.spent.counted_turns() >= limit {
        let detail = format!("{limit} runs");
        handoff::block(turn, &run.request_id, BlockCode::TurnsLimit, &detail, Vec::new());
        return refuse(turn, &run, &envelope, "no runs left");
    }
    let cut_off = turn.before().runs.get(&run.run_id).is_some_and(|run| run.cut_off);
    let run = if again {
        Run { cut_off: false, ..run }
    } else {
        if let Some(until) = budget::rests_until(turn, run.agent) {
            // It waits for its agent, and nothing is counted.
            let waits = Envelope { not_before: Some(until), ..envelope };
            turn.save(waits);
            attempts::tell_of_wait(turn, &run.request_id, run.role, run.agent, until);
            return Answer::Ignored("the agent cannot be begun with yet");
        }
        if let Some(account) = budget::spent(turn, &run.request_id, run.role) {
            let why = &envelope.envelope.body;
            gates::budget(turn, &run.request_id, run.role, &account, why);
            return refuse(turn, &run, &envelope, "a budget is used up");
        }
        let allowance = budget::allowance(turn, &run.request_id, run.role);
        let approach = turn.request(&run.request_id).map(attempts::approach).unwrap_or_default();
        Run { allowance, approach, told_of_limit: false, ..run }
    };
    if let Some(request) = turn.edit(&run.request_id) {
        request.active_run = Some(run.run_id.clone());
        if !again {
            request.spent.turns += 1;
            // Its prompt holds the message as it is now.
            request.params.unread_edit = false;
        }
    }
    let attempts = if again { envelope.attempts } else { envelope.attempts + 1 };
    turn.save(Envelope { attempts, ..envelope });
    if cut_off {
        let step = handoff::step_word(run.step);
        let values = json!({ "what": "run", "role": run.role, "step": step });
        recovery::tell(turn, &run.request_id, values);
    }
    turn.save(run);
    Answer::Accepted
}

/// The run does not begin: neither its envelope nor what an earlier start noted of it stays behind.
fn refuse(turn: &mut Turn<'_>, run: &Run, envelope: &Envelope, why: &'static str) -> Answer {
    turn.put_away(envelope, Place::Archive, why);
    gone(turn, run);
    Answer::Ignored(why)
}

/// The run is over. A worktree is given back only when no agent works in it any more.
pub(super) fn gone(turn: &mut Turn<'_>, run: &Run) {
    let state = turn.before();
    if !state.runs.contains_key(&run.run_id) {
        return;
    }
    turn.remove(RecordId::Run(run.run_id.clone()));
    for effect in state.effects.values() {
        if matches!(&effect.kind, EffectKind::Release { request_id } if *request_id == run.request_id)
        {
            turn.wake(Wake::Effect(effect.effect_id.clone()));
        }
    }
}

/// The request as it was asked anew goes to the agent at work, where there is one.
pub(super) fn tell_of_edit(turn: &mut Turn<'_>, id: &RequestId) {
    if let Some(run) = turn.request(id).and_then(|request| request.active_run.clone()) {
        turn.wake(Wake::SteerRun(run));
    }
}

/// Words of a follow-up go to the agent at work, where there is one and they are not to wait.
pub(super) fn steer(turn: &mut Turn<'_>, id: &RequestId, key: MessageId) {
    let Some(request) = turn.request(id) else { return };
    let mut followups = request.params.followups.iter();
    let words = followups.find(|followup| followup.key() == key);
    if let (Some(run), Some(false)) = (&request.active_run, words.map(Followup::waits)) {
        let run = run.clone();
        turn.wake(Wake::SteerRun(run));
    }
}

/// An agent at work wants something remembered: a line of the request's history, from which the role's
/// journal follows.
pub(super) fn noted(turn: &mut Turn<'_>, run_id: &RunId, text: &str) -> Answer {
    let Some(run) = turn.before().runs.get(run_id).cloned() else {
        return Answer::Ignored("the run is gone");
    };
    let at_work = turn
        .request(&run.request_id)
        .is_some_and(|request| request.active_run.as_ref() == Some(run_id));
    if !at_work || text.trim().is_empty() {
        return Answer::Ignored("there is nothing to remember");
    }
    turn.record(&run.request_id, EventKind::RoleNote, run.role.as_str(), text.trim(), Value::Null);
    Answer::Accepted
}

/// An agent at work tried what it may not: a line of the request's history each time, and one in its room for
/// each kind.
pub(super) fn refused(turn: &mut Turn<'_>, run_id: &RunId, refusal: Refusal, what: &str) -> Answer {
    let Some(run) = turn.before().runs.get(run_id).cloned() else {
        return Answer::Ignored("the run is gone");
    };
    let (id, role) = (&run.request_id, run.role);
    let payload = json!({"kind": refusal, "run_id": run.run_id});
    turn.record(id, EventKind::Refused, role.as_str(), what, payload);
    let told = turn.edit(id).is_some_and(|request| request.refusals.insert(refusal));
    if told {
        let values = json!({"role": role, "kind": refusal.as_str(), "what": what});
        say::in_room(turn, id, Voice::Team, Priority::Error, "room.refused", values);
    }
    Answer::Accepted
}

/// The model's server makes the agent at work wait: its room is told, once a run.
pub(super) fn rate_limited(
    turn: &mut Turn<'_>,
    run_id: &RunId,
    until: Option<Timestamp>,
) -> Answer {
    let Some(run) = turn.before().runs.get(run_id) else {
        return Answer::Ignored("the run is gone");
    };
    if run.told_of_limit {
        return Answer::Ignored("the room knows");
    }
    attempts::tell_of_rate_limit(turn, &run.request_id, run.role, run.agent, until);
    turn.record(
        &run.request_id,
        EventKind::RateLimited,
        run.role.as_str(),
        "the model's server answers: too many requests",
        json!({ "until": until }),
    );
    turn.save(Run { told_of_limit: true, ..Run::clone(run) });
    Answer::Accepted
}

/// An agent is done: its envelope is finished and its report goes to the orchestrator.
pub(super) fn finished(turn: &mut Turn<'_>, report: RunReport) -> Answer {
    let Some(run) = turn.before().runs.get(&report.run_id).cloned() else {
        return Answer::Ignored("the run is gone");
    };
    if run.generation != report.generation {
        return Answer::Ignored("a result of an older generation");
    }
    gone(turn, &run);
    let mut why = String::new();
    if let Some(envelope) = turn.before().envelopes.get(&run.envelope_id) {
        turn.put_away(envelope, Place::Archive, "done");
        why.clone_from(&envelope.envelope.body);
    }
    let usage = turn.policy.prices.priced(&report.model, report.usage);
    let request = turn.request(&run.request_id);
    let line = json!({
        "at": turn.now, "role": run.role, "request_id": run.request_id, "step": run.step,
        "sprint_id": request.and_then(|it| it.sprint_id.clone()),
        "todo_id": request.and_then(|it| it.todo_id.clone()),
        "agent": report.agent, "model": report.model, "usage": usage, "ms": report.duration_ms,
    });
    turn.change(Change::Append {
        file: ledger_of(turn.now, turn.zone()),
        text: format!("{line}\n"),
    });
    budget::charge(turn, &run.request_id, run.role, usage);
    // What it spent is spent, also where nobody waits for its result any more.
    let open = turn
        .request(&run.request_id)
        .is_some_and(|request| request.active_run.as_ref() == Some(&run.run_id));
    if !open {
        return Answer::Ignored("the request has moved on");
    }
    let label = report.agent.clone();
    let mut scope = String::new();
    if let Some(request) = turn.edit(&run.request_id) {
        request.active_run = None;
        request.params.agent = label;
        scope = request.scope.clone();
        if report.heard.contains(&request.words_key()) {
            request.params.unread_edit = false;
        }
        for followup in &mut request.params.followups {
            if report.heard.contains(&followup.key()) && !followup.heard_by.contains(&run.role) {
                followup.heard_by.push(run.role);
            }
        }
    }
    if !report.heard.is_empty() {
        let words = format!("{} message(s) reached the agent at work", report.heard.len());
        turn.record(
            &run.request_id,
            EventKind::Steered,
            run.role.as_str(),
            &words,
            json!(report.heard),
        );
    }
    remember_session(turn, &report);
    let body = EnvelopeBody {
        request_id: run.request_id.clone(),
        intent: "report".to_owned(),
        urgency: "normal".to_owned(),
        scope,
        artifacts: Vec::new(),
        params: EnvelopeParams {
            teams_kind: "report".to_owned(),
            why,
            ..EnvelopeParams::default()
        },
        body: String::new(),
        from: run.role,
        to: Role::Orchestrator,
    };
    let envelope = Envelope {
        relay_id: turn.ids.envelope(),
        transport: "internal".to_owned(),
        created_at: turn.now,
        sender_role: run.role,
        target_role: Role::Orchestrator,
        kind: EnvelopeKind::Report,
        envelope: body,
        place: Place::Inbox,
        attempts: 0,
        not_before: None,
        step: run.step,
        report: Some(Box::new(report)),
        reason: None,
    };
    turn.save(envelope);
    turn.wake(Wake::Reports);
    Answer::Accepted
}

/// Keeps the conversation for the role's next run on the request, and says when its room runs out.
fn remember_session(turn: &mut Turn<'_>, report: &RunReport) {
    let (id, role) = (&report.request_id, report.role.as_str());
    let conversation = &report.conversation;
    if let Some(handed) = &conversation.handed_over {
        let words = if handed.by_itself { "by its own summary" } else { "by what the records say" };
        turn.record(id, EventKind::ConversationHandedOver, role, words, json!(handed));
    }
    if !conversation.prompt_cut.is_empty() {
        let words = format!("cut to fit: {}", conversation.prompt_cut.join(", "));
        turn.record(id, EventKind::PromptCut, role, &words, json!(conversation.prompt_cut));
    }
    let Some(session_id) = report.session_id.clone() else {
        return;
    };
    let key = session_key(report.role, &report.request_id);
    let old = turn.before().sessions.get(&key).filter(|old| old.session_id == session_id).cloned();
    let full = matches!(&report.outcome, RunOutcome::Failed { kind: FailKind::Context, .. });
    let before = old.as_ref().map_or(Room::Plenty, |old| old.room);
    // A conversation only fills up; a run that could not tell changes nothing.
    let room = Room::after(conversation.fill, full).max(before);
    if room > before {
        let words = match conversation.fill {
            Some(fill) => format!("{} % of the window is left", fill.left()),
            None => "the window is full".to_owned(),
        };
        let kind = if room.hands_over() {
            EventKind::ConversationFull
        } else {
            EventKind::ConversationLow
        };
        turn.record(id, kind, role, &words, json!(conversation.fill));
    }
    let session = Session {
        role: report.role,
        request_id: report.request_id.clone(),
        session_id,
        agent: report.agent_kind,
        model: report.model.clone(),
        fill: conversation.fill.or_else(|| old.as_ref().and_then(|old| old.fill)),
        room,
        created_at: old.map_or(turn.now, |old| old.created_at),
        last_used_at: turn.now,
    };
    turn.save(session);
}
