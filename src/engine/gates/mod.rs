//! Points where a person decides. Only a pressed button, a command or the operator reaches [`decide`],
//! through [`super::authorize`]; no model, agent or text does. A gate stands in the store before its card is
//! posted, is bound to the content that the card shows, is used once, and means no when nobody decides.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::authorize::{Denied, Granted, Resource, act, authorize};
use super::decide::Answer;
use super::turn::Turn;
use super::{actions, closeout, handoff, intake, revise, say};
use crate::domain::actor::Actor;
use crate::domain::gate::{Decider, Gate, GateKind, GateState, Stance};
use crate::domain::ids::{ChannelId, GateId, MessageId, RequestId};
use crate::domain::outgoing::{
    Act, Button, ButtonAct, Content, NamedChannel, Priority, Target, Voice,
};
use crate::domain::policy::{Policy, Right};
use crate::domain::request::{
    ActionAtGate, EventKind, Followup, Request, RequestStatus, SelectionSource,
};
use crate::domain::state::State;
use crate::domain::time::Timestamp;

mod spending;
mod stance;

pub(super) use spending::ask as budget;
pub use spending::on_card as budget_on_card;

/// What somebody decides on, as they saw it.
#[derive(Debug, Clone, Copy)]
pub(super) enum ShownContent<'a> {
    /// A card of this version, in this message.
    Card(u32, ChannelId, MessageId),
    /// A form that a card of this version opened.
    Form(u32),
    /// The beginning of the digest of the content, as lists of what waits show it.
    Content(&'a str),
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may be done.
    Yes,
    /// It may not.
    No,
    /// Not yet: the team has to answer this first.
    Ask(String),
}

/// A commit is ready for the branch: it goes there, or a person is asked, or it stays aside.
pub(super) fn commit(turn: &mut Turn<'_>, id: &RequestId, proven: bool) {
    if revise::goes_by_the_new_words(turn, id) {
        return;
    }
    let Some(candidate) = turn.request(id).and_then(|request| request.candidate.as_ref()) else {
        return;
    };
    let (stance, kind) = stance::of_commit(&turn.policy.gates, candidate, proven);
    let (commit, artifact) = (candidate.commit.clone(), candidate.tree.clone());
    match stance {
        Stance::Allow => closeout::merge(turn, id),
        Stance::Refuse => stay_on_side_branch(turn, id, "refused"),
        Stance::Ask => open(turn, id, kind, commit, artifact),
    }
}

/// A registered action is wanted. Whether it may run at once.
pub(super) fn action(turn: &mut Turn<'_>, id: &RequestId, name: &str, command: &[String]) -> bool {
    match turn.policy.gates.action {
        Stance::Allow => true,
        Stance::Refuse => {
            not_run(turn, id, name, "refused");
            false
        }
        Stance::Ask => {
            if let Some(request) = turn.edit(id) {
                let (name, command) = (name.to_owned(), command.to_vec());
                request.params.action_at_gate = Some(ActionAtGate { name, command });
            }
            open(turn, id, GateKind::Action, String::new(), digest(command));
            false
        }
    }
}

fn digest(command: &[String]) -> String {
    Sha256::digest(command.join("\0")).iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

fn open(turn: &mut Turn<'_>, id: &RequestId, kind: GateKind, commit: String, artifact: String) {
    void(turn, id);
    let gate_id = turn.ids.gate();
    let wait = u64::from(turn.policy.gates.wait_hours) * 3_600;
    let expires_at = if kind == GateKind::Budget && spending::is_daily(turn, id) {
        // With the next day there is a new one, and not before.
        turn.now.next_day(turn.zone())
    } else {
        turn.now.plus_seconds(wait)
    };
    let gate = Gate {
        gate_id: gate_id.clone(),
        request_id: id.clone(),
        kind,
        commit,
        artifact,
        version: 1,
        state: GateState::Open,
        card: None,
        created_at: turn.now,
        expires_at: Some(expires_at),
    };
    let Some(request) = turn.edit(id) else { return };
    request.gate_id = Some(gate_id.clone());
    let language = request.language;
    let author = request.reply_route.author_id;
    let duty = request.duty();
    let Some(request) = turn.request(id) else { return };
    let (key, values) = card(turn.policy, request, &gate, expires_at);
    turn.save(gate);
    turn.record(id, EventKind::GateOpened, "runtime", gate_id.as_str(), Value::Null);
    let button = |act| Button { act, subject: gate_id.to_string(), version: 1 };
    let mut buttons = vec![button(ButtonAct::Approve), button(ButtonAct::Reject)];
    if may_be_asked_about(kind) {
        buttons.push(button(ButtonAct::Question));
    }
    let act = Act::Post {
        content: say::content(key, language, values),
        reply_to: None,
        mention: author,
        buttons,
        gate_id: Some(gate_id.clone()),
        files: Vec::new(),
        room_of: None,
    };
    // A sprint's own work has no room.
    let target = match duty {
        None => Target::Room(id.clone()),
        Some(_) => Target::Named(NamedChannel::Report),
    };
    let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Approval, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// The card stands in the room: whoever asked outside of it is told where to look.
pub(super) fn point_to_card(turn: &mut Turn<'_>, gate: &Gate, room: ChannelId) {
    let Some(request) = turn.request(&gate.request_id) else { return };
    let route = &request.reply_route;
    let in_room = request.room.as_ref().is_some_and(|it| it.thread_id == Some(room));
    let Some(asked) = route.channel_id.filter(|asked| in_room && *asked != room) else { return };
    let (language, reply_to) = (request.language, route.message_id);
    let values = json!({ "request_id": gate.request_id.as_str(), "room": room.to_string() });
    let mut act = say::post(say::content("gate.elsewhere", language, values));
    if let Act::Post { reply_to: answered, .. } = &mut act {
        *answered = reply_to;
    }
    let target = Target::Channel(asked);
    let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Approval, act);
    outgoing.request_id = Some(gate.request_id.clone());
    turn.send(outgoing);
}

/// Whether the team can answer a question about it before it is decided: not where answering would spend
/// what is asked for.
const fn may_be_asked_about(kind: GateKind) -> bool {
    match kind {
        GateKind::UnprovenCommit
        | GateKind::GuardedCommit
        | GateKind::Commit
        | GateKind::Action => true,
        GateKind::Budget => false,
    }
}

/// What a person needs to see to decide: what, why, how risky, who may, until when.
fn card(
    policy: &Policy,
    request: &Request,
    gate: &Gate,
    expires_at: Timestamp,
) -> (&'static str, Value) {
    let mut values = json!({
        "request_id": request.request_id.as_str(),
        "title": say::title(&request.scope),
        "by": request.reply_route.author_name,
        "why": gate.kind.as_str(),
        "deciders": deciders(policy),
        "four_eyes": policy.four_eyes,
        "until": expires_at.millis() / 1_000,
    });
    let key = match (gate.kind, request.candidate.as_ref()) {
        (GateKind::Action, _) => {
            if let Some(ActionAtGate { name, command }) = &request.params.action_at_gate {
                values["action"] = json!(name);
                values["command"] = json!(say::cut(&command.join(" "), 400));
            }
            "gate.action"
        }
        (GateKind::Budget, _) => {
            values["budget"] = spending::on_card(request);
            "gate.budget"
        }
        (
            GateKind::UnprovenCommit | GateKind::GuardedCommit | GateKind::Commit,
            Some(candidate),
        ) => {
            values["commit"] = json!(say::short(&candidate.commit));
            values["side_branch"] = json!(format!("teams/{}", request.request_id));
            values["files"] = json!(say::files(Some(candidate)));
            values["added"] = json!(candidate.added_lines);
            values["removed"] = json!(candidate.removed_lines);
            values["deleted"] = json!(stance::deleted(candidate));
            values["guarded"] = json!(stance::guarded(&policy.gates, candidate));
            values["diff"] = json!(candidate.excerpt);
            "gate.commit"
        }
        (GateKind::UnprovenCommit | GateKind::GuardedCommit | GateKind::Commit, None) => {
            "gate.commit"
        }
    };
    (key, values)
}

/// Mentions of those who may decide. Nobody is notified by them: the card says who is asked.
fn deciders(policy: &Policy) -> Vec<String> {
    let holders = policy.rights.iter().filter(|(right, _)| **right >= Right::Approve);
    let mut all: Vec<String> = Vec::new();
    for mention in holders.flat_map(|(_, holders)| holders.mentions()) {
        if !all.contains(&mention) {
            all.push(mention);
        }
    }
    all
}

/// The gate that the request waits at is about something that is no more.
pub(super) fn void(turn: &mut Turn<'_>, id: &RequestId) {
    let old = turn.edit(id).and_then(|request| request.gate_id.take());
    if let Some(gate) = old.and_then(|old| turn.before().gates.get(&old).cloned()) {
        close(turn, &gate, GateState::Void);
    }
}

/// A gate is open no longer, and its card shows so: its buttons go.
pub(super) fn close(turn: &mut Turn<'_>, gate: &Gate, state: GateState) {
    if let Some((channel, message_id)) = gate.card {
        let target = Target::Channel(channel);
        let act = Act::Unbutton { message_id };
        let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
        outgoing.request_id = Some(gate.request_id.clone());
        turn.send(outgoing);
    }
    turn.save(Gate { state, ..gate.clone() });
}

/// The open gate of a request, for a command that names the request.
pub(super) fn of_request(turn: &Turn<'_>, id: &RequestId) -> Option<GateId> {
    turn.request(id)?.gate_id.clone()
}

/// A person decided. Counts once, for the content that the person saw.
pub(super) fn decide(
    turn: &mut Turn<'_>,
    actor: &Actor,
    gate_id: &GateId,
    seen: ShownContent<'_>,
    verdict: Verdict,
) -> Answer {
    let language = turn.policy.language;
    let say_key = |key: &str| Answer::Say(say::content(key, language, json!({})));
    let Some(gate) = turn.before().gates.get(gate_id).cloned() else {
        return say_key("gate.stale");
    };
    let Some(request) = turn.request(&gate.request_id).cloned() else {
        return say_key("gate.stale");
    };
    let granted = match authorize(turn.policy, actor, Resource::Request(&request)) {
        Ok(granted) => granted,
        Err(Denied::OwnRequest) => return say_key("gate.four_eyes"),
        Err(_) => return say_key("gate.not_yours"),
    };
    if !is_current(turn, &gate, &request, seen) {
        return say_key("gate.stale");
    }
    if matches!(verdict, Verdict::Ask(_)) && !may_be_asked_about(gate.kind) {
        return say_key("gate.no_question");
    }
    let Some(by) = Decider::of(granted.actor()) else {
        return say_key("gate.not_yours");
    };
    let said = settle(turn, &granted, by, &gate, verdict);
    match seen {
        // Whoever decides at the card reads below it what came of it.
        ShownContent::Card(..) | ShownContent::Form(_) => Answer::Accepted,
        ShownContent::Content(_) => Answer::Say(said),
    }
}

/// Whether what somebody saw is what the gate is about now.
fn is_current(turn: &Turn<'_>, gate: &Gate, request: &Request, seen: ShownContent<'_>) -> bool {
    let same_content = match gate.kind {
        GateKind::UnprovenCommit | GateKind::GuardedCommit | GateKind::Commit => request
            .candidate
            .as_ref()
            .is_some_and(|it| it.commit == gate.commit && it.tree == gate.artifact),
        GateKind::Action => {
            let waiting = &request.params.action_at_gate;
            waiting.as_ref().is_some_and(|it| digest(&it.command) == gate.artifact)
        }
        GateKind::Budget => {
            spending::digest_now(turn, request).is_some_and(|now| now == gate.artifact)
        }
    };
    let same_card = match seen {
        ShownContent::Card(version, channel, message) => {
            version == gate.version && gate.card.is_none_or(|card| card == (channel, message))
        }
        ShownContent::Form(version) => version == gate.version,
        ShownContent::Content(digest) => digest.len() >= 7 && content_of(gate).starts_with(digest),
    };
    same_content && same_card && request.gate_id.as_ref() == Some(&gate.gate_id)
}

/// What names the content of a gate to people: the commit, or the digest of the command line.
#[must_use]
pub fn content_of(gate: &Gate) -> &str {
    if gate.commit.is_empty() { &gate.artifact } else { &gate.commit }
}

fn settle(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Decide>,
    by: Decider,
    gate: &Gate,
    verdict: Verdict,
) -> Content {
    let language = turn.policy.language;
    let (at, id, kind, gate_id) =
        (turn.now, gate.request_id.clone(), gate.kind, gate.gate_id.clone());
    let (state, word) = match &verdict {
        Verdict::Yes => (GateState::Approved { by, at }, "approved"),
        Verdict::No => (GateState::Rejected { by, at }, "rejected"),
        Verdict::Ask(_) => (GateState::Void, "asked"),
    };
    close(turn, gate, state);
    let name = granted.name();
    turn.record(&id, EventKind::GateDecided, &name, word, json!({ "gate_id": gate_id.as_str() }));
    if let Some(request) = turn.edit(&id) {
        request.gate_id = None;
    }
    let question = match &verdict {
        Verdict::Ask(question) => say::cut(question, 1_000),
        Verdict::Yes | Verdict::No => String::new(),
    };
    let values = json!({ "decision": word, "by": name, "question": question });
    say::in_room(turn, &id, Voice::Team, Priority::Progress, "gate.decided", values.clone());
    match verdict {
        Verdict::Yes => approved(turn, &id, kind),
        Verdict::No => declined(turn, &id, kind, "rejected"),
        Verdict::Ask(question) => asked(turn, &id, &name, question),
    }
    say::content("gate.decided", language, values)
}

fn approved(turn: &mut Turn<'_>, id: &RequestId, kind: GateKind) {
    match kind {
        GateKind::UnprovenCommit | GateKind::GuardedCommit | GateKind::Commit => {
            closeout::merge(turn, id);
        }
        GateKind::Action => {
            let waiting = turn.request(id).and_then(|it| it.params.action_at_gate.clone());
            if let Some(ActionAtGate { name, command }) = waiting {
                actions::run(turn, id, &name, command);
            }
        }
        GateKind::Budget => spending::granted(turn, id),
    }
}

fn declined(turn: &mut Turn<'_>, id: &RequestId, kind: GateKind, why: &str) {
    match kind {
        GateKind::UnprovenCommit | GateKind::GuardedCommit | GateKind::Commit => {
            stay_on_side_branch(turn, id, why);
        }
        GateKind::Action => {
            let waiting = turn.request(id).and_then(|it| it.params.action_at_gate.as_ref());
            let name = waiting.map(|it| it.name.clone()).unwrap_or_default();
            not_run(turn, id, &name, why);
        }
        GateKind::Budget => spending::declined(turn, id, why),
    }
}

/// Whoever decides wants to know something first: the team answers, and asks again for what it then has.
fn asked(turn: &mut Turn<'_>, id: &RequestId, by: &str, question: String) {
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return };
    let question = Followup { at_gate: true, ..Followup::command(by, question, now) };
    request.params.followups.push(question);
    intake::resume(turn, id, SelectionSource::GateQuestion);
}

/// The commit stays where it is; the request is done.
fn stay_on_side_branch(turn: &mut Turn<'_>, id: &RequestId, why: &str) {
    let Some(request) = turn.request(id) else {
        return;
    };
    let summary = request.result.as_ref().map(|r| say::whole(&r.summary)).unwrap_or_default();
    let commit = request.candidate.as_ref().map(|c| say::short(&c.commit)).unwrap_or_default();
    let values = json!({
        "request_id": id.as_str(),
        "summary": summary,
        "commit": commit,
        "side_branch": format!("teams/{id}"),
        "files": say::files(request.candidate.as_ref()),
        "reason": why,
    });
    handoff::end(turn, id, RequestStatus::Completed, "final.on_side_branch", values);
}

fn not_run(turn: &mut Turn<'_>, id: &RequestId, name: &str, why: &str) {
    let values = json!({ "action": name, "reason": why });
    handoff::end(turn, id, RequestStatus::Cancelled, "action.not_run", values);
}

/// The next instant at which a gate closes by itself.
pub(super) fn due(state: &State) -> Option<Timestamp> {
    state.gates.values().filter_map(|gate| gate.expires_at).min()
}

/// Closes the gates whose time is over: no decision means no, and the team is told.
pub(super) fn expire(turn: &mut Turn<'_>) {
    let now = turn.now;
    let before = turn.before();
    for gate in before.gates.values().filter(|it| it.expires_at.is_some_and(|at| at <= now)) {
        let (id, kind, gate_id) = (gate.request_id.clone(), gate.kind, gate.gate_id.clone());
        close(turn, gate, GateState::Expired { at: now });
        let mine = turn.edit(&id).is_some_and(|request| {
            let mine = request.gate_id.as_ref() == Some(&gate_id);
            if mine {
                request.gate_id = None;
            }
            mine
        });
        if mine {
            let payload = json!({ "gate_id": gate_id.as_str() });
            turn.record(&id, EventKind::GateDecided, "runtime", "expired", payload);
            declined(turn, &id, kind, "expired");
        }
    }
}
