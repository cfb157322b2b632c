//! How a request stops until a person acts, and how it ends.

use serde_json::{Value, json};

use super::decision::Wake;
use super::gates::card;
use super::say;
use super::turn::Turn;
use crate::domain::block::BlockCode;
use crate::domain::effect::EffectKind;
use crate::domain::envelope::EnvelopeFolder;
use crate::domain::gate::GateState;
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{Button, ButtonAct, Priority};
use crate::domain::request::{Blocked, EndQuestion, EventKind, Request, RequestStatus};
use crate::domain::state::State;

/// Stops a request until a person acts, and tells who asked.
pub(super) fn block(
    turn: &mut Turn<'_>,
    id: &RequestId,
    code: BlockCode,
    detail: &str,
    required_inputs: Vec<String>,
) {
    let Some(request) = turn.request(id) else { return };
    // A person who decides about a conflict sees it.
    let conflict = request.work.conflict.as_ref().filter(|conflict| {
        code.is_about_a_conflict() || code == BlockCode::RoleBlocked && !conflict.solved
    });
    let detail = &conflict.map_or_else(|| detail.to_owned(), |it| it.with_place(detail));
    let who = request.conversation.reply_route.author_name.clone();
    stop(turn, id, code, detail, required_inputs.clone());
    let Some(request) = turn.request(id) else { return };
    let acts = buttons(turn, request);
    // It is said where it was asked, and words for it are heard in its room.
    let (thread, route) = (request.conversation.thread(), &request.conversation.reply_route);
    let elsewhere = thread.filter(|it| route.channel_id != Some(*it) && request.todo_id.is_none());
    let is_among_others = thread.is_none() && !route.is_dm;
    // Without a channel it is said in the report channel, but to a person directly.
    let is_in_channel =
        route.channel_id.is_some() || route.author_id.is_none() || request.todo_id.is_some();
    let by_reply = is_among_others && is_in_channel && turn.policy.mentions;
    let values = json!({
        "room": elsewhere.map(|thread| thread.to_string()),
        "by_reply": by_reply,
        "by_command": is_among_others && route.channel_id.is_some() && !by_reply,
        "request_id": id.as_str(),
        "code": code,
        "detail": say::whole(detail),
        "required_inputs": required_inputs,
        "who": who,
        "given_up": request.has_given_up(),
        "can_split": acts.contains(&ButtonAct::SplitWork),
        "in_sprint": turn.is_of_active_sprint(request),
    });
    let button = |act| Button { act, subject: id.to_string(), version: 0 };
    let buttons = acts.into_iter().map(button).collect();
    say::answer(turn, id, Priority::Error, "blocked", values, buttons);
}

/// Whether somebody has written that the request is to end, and nobody has answered: then it waits for that.
pub(super) fn hold_for_answer(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let asked = turn.request(id).and_then(|it| it.params.open_end()).map(EndQuestion::line);
    if let Some(said) = &asked {
        block(turn, id, BlockCode::EndQuestion, said, Vec::new());
    }
    asked.is_some()
}

/// Takes the buttons away from the message that said why a request does not move, where that is over.
pub(super) fn close_blocked(turn: &mut Turn<'_>, id: &RequestId) {
    let card = |request: &Request| request.blocked.as_ref().and_then(|it| it.card);
    let before = turn.before().requests.get(id).and_then(|it| card(it));
    if let Some(before) = before.filter(|it| turn.request(id).and_then(card) != Some(*it)) {
        say::unbutton(turn, before, Some(id));
    }
}

/// The buttons of a request that is blocked.
fn buttons(turn: &Turn<'_>, request: &Request) -> Vec<ButtonAct> {
    if !request.has_given_up() {
        return vec![ButtonAct::Retry, ButtonAct::Cancel];
    }
    let all = [
        ButtonAct::TryWithWords,
        ButtonAct::SplitWork,
        ButtonAct::SkipRequest,
        ButtonAct::Pause,
        ButtonAct::Cancel,
    ];
    // Where nothing was planned yet, nobody can plan it in pieces.
    let can_split = turn.stands(&request.request_id).is_some() && !request.is_one_plan();
    all.into_iter().filter(|it| *it != ButtonAct::SplitWork || can_split).collect()
}

/// The same without a word: whoever stops it says why.
pub(super) fn stop(
    turn: &mut Turn<'_>,
    id: &RequestId,
    code: BlockCode,
    detail: &str,
    required_inputs: Vec<String>,
) {
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return };
    request.status = RequestStatus::Blocked;
    request.route.next_role = None;
    request.work.active_run = None;
    let kept = say::cut(detail, 1_500);
    request.blocked = Some(Blocked {
        code,
        detail: kept,
        required_inputs,
        since: now,
        paused_by: None,
        card: None,
    });
    turn.record(id, EventKind::Blocked, "runtime", code.word(), json!({ "detail": detail }));
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
    say::close_questions(turn, id);
    let Some(request) = turn.edit(id) else { return };
    request.status = status;
    request.route.current_role = None;
    request.route.next_role = None;
    request.blocked = None;
    request.outcome.ended_at = Some(now);
    if request.duty().is_none() {
        request.outcome.final_answer =
            Some(say::content(key, request.conversation.language, values.clone()));
    }
    let run = request.work.active_run.take();
    let gate = request.work.gate_id.take();
    let worked = request.work.spent.turns > 0;
    let commit = request.outcome.commit_sha.clone().filter(|_| status == RequestStatus::Committed);
    turn.record(
        id,
        EventKind::of(status),
        "runtime",
        commit.as_deref().unwrap_or(key),
        Value::Null,
    );
    if let Some(run) = run {
        turn.stop_run(run);
    }
    let before = turn.before();
    for effect in before.effects.values().filter(|it| it.kind.request_id() == Some(id)) {
        if !outlives(before, &effect.kind) {
            turn.wake(Wake::StopEffect(effect.effect_id.clone()));
        }
    }
    for envelope in before.envelopes.values().filter(|e| e.envelope.request_id == *id) {
        // The envelope of a run under way is put away when the run ends.
        if !before.runs.values().any(|run| run.envelope_id == envelope.relay_id) {
            turn.put_away(envelope, EnvelopeFolder::Archive, status.as_str());
        }
    }
    if let Some(gate) = gate.and_then(|gate| before.gates.get(&gate)) {
        card::close(turn, gate, GateState::Void);
    }
    if worked {
        turn.plan(EffectKind::Release { request_id: id.clone() });
    }
    let revise = Button { act: ButtonAct::RequestChanges, subject: id.to_string(), version: 0 };
    let buttons = commit.map(|_| revise).into_iter().collect();
    say::answer(turn, id, Priority::Final, key, values, buttons);
}

/// Whether an effect is still wanted when its request has ended. A request waits for the action that it
/// runs in the foreground, and takes it along; one in the background was the whole request.
pub(super) fn outlives(state: &State, kind: &EffectKind) -> bool {
    if let EffectKind::Action { operation_id, .. } = kind {
        return state.operations.get(operation_id).is_none_or(|operation| !operation.foreground);
    }
    kind.change_of().is_none()
}
