//! Agent runs: that one may begin, and what came of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::decision::{Answer, Wake};
use super::turn::Turn;
use super::{attempts, budget, ending, gates, handoff, say};
use crate::domain::assignment::Control;
use crate::domain::block::BlockCode;
use crate::domain::change::Change;
use crate::domain::conversation::ContextLevel;
use crate::domain::effect::EffectKind;
use crate::domain::envelope::{
    Envelope, EnvelopeBody, EnvelopeFolder, EnvelopeKind, EnvelopeParams,
};
use crate::domain::evidence::Isolation;
use crate::domain::ids::{BootId, CallId, MessageId, RequestId, RunId};
use crate::domain::lifecycle::StepKind;
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::record::RecordId;
use crate::domain::refusal::Refusal;
use crate::domain::request::{EventKind, Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::run::{FailKind, Run, RunOutcome, RunReport, ledger_of};
use crate::domain::session::Session;
use crate::domain::state::{State, session_key};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::domain::work_span::{self, WorkSpan};

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
        || request.route.current_role != Some(run.role)
        || handoff::step_of(request) != run.step
    {
        return refuse(turn, &run, &envelope, "the request has moved on");
    }
    if turn.before().runs.contains_key(&run.run_id) {
        return Answer::Ignored("the run has begun");
    }
    if turn.before().runs.values().any(|other| other.request_id == run.request_id) {
        return Answer::Ignored("another run of the request ends first");
    }
    let is_report = |it: &Envelope| {
        it.kind == EnvelopeKind::Report
            && it.target_role == Role::Orchestrator
            && it.place == EnvelopeFolder::Inbox
            && it.envelope.request_id == run.request_id
    };
    if turn.before().envelopes.values().any(|it| is_report(it)) {
        return Answer::Ignored("what another run of the request brought comes first");
    }
    if request.work.spent.counted_turns() >= limit {
        let detail = format!("{limit} runs");
        ending::block(turn, &run.request_id, BlockCode::TurnsLimit, &detail, Vec::new());
        return refuse(turn, &run, &envelope, "no runs left");
    }
    if let Some(until) = budget::rests_until(turn, run.agent) {
        // It waits for its agent, and nothing is counted.
        let waits = Envelope { not_before: Some(until), ..envelope };
        turn.save(waits);
        attempts::tell_of_wait(turn, &run.request_id, run.role, run.agent, until);
        return Answer::Ignored("the agent cannot be begun with yet");
    }
    if budget::plan_is_full(turn.before(), turn.policy, run.agent, turn.now).is_some() {
        // It begins when one of them is over, and nothing is counted.
        return Answer::Ignored("the model's plan bears no more runs at the same time");
    }
    if let Some(account) = budget::spent(turn, &run.request_id, run.role) {
        let why = &envelope.envelope.body;
        gates::spending::ask(turn, &run.request_id, run.role, &account, why);
        return refuse(turn, &run, &envelope, "a budget is used up");
    }
    let allowance = budget::allowance(turn, &run.request_id, run.role);
    let shared_budgets = budget::shared(turn, &run);
    let approach = turn.request(&run.request_id).map(attempts::approach).unwrap_or_default();
    if let Some(request) = turn.edit(&run.request_id) {
        request.work.active_run = Some(run.run_id.clone());
        request.work.spent.turns += 1;
    }
    read(turn, &run);
    turn.save(Envelope { attempts: envelope.attempts + 1, ..envelope });
    turn.save(Run { allowance, shared_budgets, approach, ..run });
    Answer::Accepted
}

/// How often a run is begun again that something cuts off, such as a stop of the team.
const GENERATIONS: u32 = 20;

/// The prompt of a run holds what was written so far, as it is now.
fn read(turn: &mut Turn<'_>, run: &Run) {
    let heeds = heeds_words(turn, run);
    if let Some(request) = turn.edit(&run.request_id).filter(|_| heeds) {
        request.params.all_read();
    }
}

/// Whether a run is who heeds what people write: not who judges what was made before, nor who builds by a plan that
/// somebody has let through.
fn heeds_words(turn: &Turn<'_>, run: &Run) -> bool {
    let step = run.step.and_then(|_| turn.step(&run.request_id));
    !step.is_some_and(|step| {
        step.kind.judges()
            || step.kind == StepKind::Change && gates::plan::binds(turn, &run.request_id)
    })
}

/// Whether a request waits for this run.
#[must_use]
pub fn is_wanted(state: &State, run: &Run) -> bool {
    let request = state.requests.get(&run.request_id);
    request.is_some_and(|request| request.work.active_run.as_ref() == Some(&run.run_id))
}

/// A worker can begin with a run. It holds it from then on, and no other start of it.
pub(super) fn claimed(turn: &mut Turn<'_>, id: &RunId, generation: u32, boot: BootId) -> Answer {
    let Some(run) = turn.before().runs.get(id).filter(|run| run.generation == generation) else {
        return Answer::Ignored("the run is gone");
    };
    if !is_wanted(turn.before(), run) {
        return Answer::Ignored("the request has moved on");
    }
    if run.granted.as_ref() != Some(&boot) {
        turn.save(Run { granted: Some(boot), ..Run::clone(run) });
    }
    Answer::Accepted
}

/// A generation has no outcome. It begins anew as the next one, and no attempt is counted; where nobody waits
/// for it, neither it nor its envelope stays behind.
pub(super) fn taken_away(turn: &mut Turn<'_>, id: &RunId, generation: u32, usage: Usage) -> Answer {
    let Some(run) = turn.before().runs.get(id).filter(|run| run.generation == generation) else {
        return Answer::Ignored("the run is gone");
    };
    let run = Run::clone(run);
    spent_without_report(turn, &run, usage);
    if !is_wanted(turn.before(), &run) {
        if let Some(envelope) = turn.before().envelopes.get(&run.envelope_id) {
            turn.put_away(envelope, EnvelopeFolder::Archive, "the request has moved on");
        }
        gone(turn, &run);
        return Answer::Accepted;
    }
    if generation >= GENERATIONS {
        let id = run.request_id.clone();
        if let Some(envelope) = turn.before().envelopes.get(&run.envelope_id) {
            turn.put_away(envelope, EnvelopeFolder::Archive, "its run was cut off too often");
        }
        gone(turn, &run);
        let why =
            format!("its run was cut off {generation} times, each time before it had a result");
        ending::block(turn, &id, BlockCode::StepFailed, &why, Vec::new());
        return Answer::Accepted;
    }
    if let Some(account) = budget::spent(turn, &run.request_id, run.role)
        && let Some(envelope) = turn.before().envelopes.get(&run.envelope_id)
    {
        let why = &envelope.envelope.body;
        if let Some(request) = turn.edit(&run.request_id) {
            request.work.active_run = None;
        }
        gates::spending::ask(turn, &run.request_id, run.role, &account, why);
        refuse(turn, &run, envelope, "a budget is used up");
        return Answer::Accepted;
    }
    // As when it began.
    read(turn, &run);
    let values = json!({ "what": "run", "role": run.role, "step": handoff::step_word(run.step) });
    say::interrupted(turn, &run.request_id, values);
    turn.save(Run {
        generation: generation + 1,
        started_at: turn.now,
        granted: None,
        allowance: budget::allowance(turn, &run.request_id, run.role),
        shared_budgets: budget::shared(turn, &run),
        // Its prompt is made of the records as they are then.
        controls: Vec::new(),
        calls: BTreeSet::new(),
        ..run
    });
    Answer::Accepted
}

/// What a run has cost of which nobody reports.
pub(super) fn spent_without_report(turn: &mut Turn<'_>, run: &Run, usage: Usage) {
    if usage != Usage::default() {
        let millis = turn.now.millis() - run.started_at.millis();
        let millis = u64::try_from(millis).unwrap_or_default();
        spend(turn, run, (run.agent.as_str(), "", None), usage, millis);
    }
}

/// What a run has cost is noted, and taken from what may be spent. Its agent, its model and what confined it are named,
/// as far as they are known.
fn spend(
    turn: &mut Turn<'_>,
    run: &Run,
    (agent, model, isolation): (&str, &str, Option<Isolation>),
    usage: Usage,
    duration_ms: u64,
) {
    let request = turn.request(&run.request_id);
    let line = json!({
        "at": turn.now, "role": run.role, "request_id": run.request_id, "step": run.step,
        "sprint_id": request.and_then(|it| it.sprint_id.clone()),
        "todo_id": request.and_then(|it| it.todo_id.clone()),
        "agent": agent, "model": model, "isolation": isolation, "usage": usage, "ms": duration_ms,
    });
    turn.change(Change::Append {
        file: ledger_of(turn.now, turn.zone()),
        text: format!("{line}\n"),
    });
    budget::charge(turn, &run.request_id, run.role, usage);
}

/// Whether a run has made this call, that changes something, before; from now on it has.
pub(super) fn has_called(turn: &mut Turn<'_>, id: &RunId, call: &CallId) -> bool {
    let Some(run) = turn.before().runs.get(id) else { return false };
    let mut run = Run::clone(run);
    let again = !run.calls.insert(call.clone());
    if !again {
        turn.save(run);
    }
    again
}

/// The run does not begin: neither its envelope nor what an earlier start noted of it stays behind.
fn refuse(turn: &mut Turn<'_>, run: &Run, envelope: &Envelope, why: &'static str) -> Answer {
    turn.put_away(envelope, EnvelopeFolder::Archive, why);
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
    // Who was asked instead of one that was called back has waited for its end.
    for next in state.envelopes.values().filter(|it| it.envelope.request_id == run.request_id) {
        turn.wake(Wake::Role(next.target_role));
    }
    if state.spending.plan_limits.contains_key(&run.agent) {
        for (role, _) in turn.policy.agents.iter().filter(|(_, agent)| **agent == run.agent) {
            turn.wake(Wake::Role(*role));
        }
    }
    for effect in state.effects.values() {
        if matches!(&effect.kind, EffectKind::Release { request_id } if *request_id == run.request_id)
        {
            turn.wake(Wake::Effect(effect.effect_id.clone()));
        }
    }
}

/// The request as it was asked anew goes to the agent at work, where there is one.
pub(super) fn tell_of_edit(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.request(id) else { return };
    let (author, text) =
        (request.conversation.reply_route.author_name.clone(), request.body.clone());
    say_to_agent(turn, id, request.words_key(), author, text, true);
}

/// Words of a follow-up go to the agent at work, where there is one and they are not to wait. What came with a file waits
/// for the next run: the sandbox of this one does not have the file.
pub(super) fn steer(turn: &mut Turn<'_>, id: &RequestId, key: MessageId) {
    let Some(request) = turn.request(id) else { return };
    let mut followups = request.params.followups.iter();
    let words = followups.find(|followup| followup.key() == key);
    if let Some(words) = words.filter(|words| !words.waits() && words.artifacts.is_empty()) {
        let (author, text) = (words.author_name.clone(), words.body.clone());
        say_to_agent(turn, id, key, author, text, false);
    }
}

/// Whether the agent at work has these words, or is about to.
pub(super) fn has_told(turn: &Turn<'_>, id: &RequestId, message_id: MessageId) -> bool {
    let run = turn.request(id).and_then(|request| request.work.active_run.as_ref());
    let run = run.and_then(|run| turn.before().runs.get(run));
    run.is_some_and(|run| run.controls.iter().any(|control| control.message_id == message_id))
}

/// The next control of the run at work.
fn say_to_agent(
    turn: &mut Turn<'_>,
    id: &RequestId,
    message_id: MessageId,
    author: String,
    text: String,
    replaces: bool,
) {
    let run = turn.request(id).and_then(|request| request.work.active_run.clone());
    let Some(run) = run.and_then(|run| turn.before().runs.get(&run)) else { return };
    let mut run = Run::clone(run);
    let number = run.controls.last().map_or(0, |last| last.number) + 1;
    run.controls.push(Control { number, message_id, author, text, replaces });
    turn.wake(Wake::SteerRun(run.run_id.clone()));
    turn.save(run);
}

/// Messages that the agent took, as they are now: an edit that came too late has not been heard.
fn heard(run: &Run, request: &Request, taken: &[MessageId]) -> BTreeSet<MessageId> {
    let as_it_is = |control: &Control| {
        let id = control.message_id;
        let followup = request.params.followups.iter().find(|followup| followup.key() == id);
        let now = match followup {
            Some(followup) => &followup.body,
            None => &request.body,
        };
        *now == control.text
    };
    let all: BTreeSet<MessageId> = taken.iter().copied().collect();
    let wordings = |id| run.controls.iter().filter(move |control| control.message_id == id);
    all.into_iter()
        .filter(|id| taken.iter().filter(|it| *it == id).count() >= wordings(*id).count())
        .filter(|id| wordings(*id).next_back().is_none_or(as_it_is))
        .collect()
}

/// An agent at work wants something remembered: a line of the request's history, from which the role's
/// journal follows.
pub(super) fn noted(turn: &mut Turn<'_>, run_id: &RunId, call: CallId, text: &str) -> Answer {
    let Some(run) = turn.before().runs.get(run_id).cloned() else {
        return Answer::Ignored("the run is gone");
    };
    let at_work = turn
        .request(&run.request_id)
        .is_some_and(|request| request.work.active_run.as_ref() == Some(run_id));
    if !at_work || text.trim().is_empty() {
        return Answer::Ignored("there is nothing to remember");
    }
    if has_called(turn, run_id, &call) {
        return Answer::Accepted;
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
    let told = turn.edit(id).is_some_and(|request| request.conversation.refusals.insert(refusal));
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
    budget::refused_by_model(turn, run);
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
    let refused = matches!(report.outcome, RunOutcome::Failed { kind: FailKind::RateLimit, .. });
    if refused && !run.told_of_limit {
        budget::refused_by_model(turn, &run);
    }
    gone(turn, &run);
    let mut why = String::new();
    if let Some(envelope) = turn.before().envelopes.get(&run.envelope_id) {
        turn.put_away(envelope, EnvelopeFolder::Archive, "done");
        why.clone_from(&envelope.envelope.body);
    }
    let usage = turn.policy.prices.priced(&report.model, report.usage);
    let by = (report.agent.as_str(), report.model.as_str(), report.isolation);
    spend(turn, &run, by, usage, report.duration_ms);
    // What it spent is spent, also where nobody waits for its result any more.
    let open = turn
        .request(&run.request_id)
        .is_some_and(|request| request.work.active_run.as_ref() == Some(&run.run_id));
    if !open {
        return Answer::Ignored("the request has moved on");
    }
    let (label, now) = (report.agent.clone(), turn.now);
    let mut scope = String::new();
    let heard = turn.request(&run.request_id).map(|request| heard(&run, request, &report.heard));
    let heard = heard.unwrap_or_default();
    let heeds = heeds_words(turn, &run);
    if let Some(request) = turn.edit(&run.request_id) {
        request.work.active_run = None;
        if request.todo_id.is_some() {
            let span = WorkSpan::until(now, report.duration_ms, run.role);
            work_span::note(&mut request.work.spans, span);
        }
        request.params.agent = label;
        scope = request.scope.clone();
        if heeds {
            if heard.contains(&request.words_key()) {
                request.params.unread_edit = false;
            }
            request.params.unread_words.retain(|key| !heard.contains(key));
        }
        for followup in &mut request.params.followups {
            if heard.contains(&followup.key()) && !followup.heard_by.contains(&run.role) {
                followup.heard_by.push(run.role);
            }
        }
    }
    if !heard.is_empty() {
        let words = format!("{} message(s) reached the agent at work", heard.len());
        turn.record(&run.request_id, EventKind::Steered, run.role.as_str(), &words, json!(heard));
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
        place: EnvelopeFolder::Inbox,
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
    let before = old.as_ref().map_or(ContextLevel::Plenty, |old| old.room);
    // A conversation only fills up; a run that could not tell changes nothing.
    let room = ContextLevel::after(conversation.fill, full).max(before);
    if room > before {
        let words = match conversation.fill {
            Some(fill) => format!("{} % of the window is left", fill.left()),
            None => "it cannot be gone on with".to_owned(),
        };
        let kind = if room.hands_over() {
            EventKind::ConversationFull
        } else {
            EventKind::ConversationLow
        };
        turn.record(id, kind, role, &words, json!(conversation.fill));
    }
    // Of a run that failed nothing stays in the worktree; one that was not told so leaves it to be told.
    let failed = matches!(report.outcome, RunOutcome::Failed { .. });
    let untold = report.usage == Usage::default() && old.as_ref().is_some_and(|old| old.put_back);
    let session = Session {
        role: report.role,
        request_id: report.request_id.clone(),
        session_id,
        agent: report.agent_kind,
        model: report.model.clone(),
        command: conversation.command.clone(),
        fill: conversation.fill.or_else(|| old.as_ref().and_then(|old| old.fill)),
        room,
        put_back: failed && (untold || !report.changed_paths.is_empty()),
        created_at: old.map_or(turn.now, |old| old.created_at),
        last_used_at: turn.now,
    };
    turn.save(session);
}
