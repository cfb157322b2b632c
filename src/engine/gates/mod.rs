//! Points where a person decides. Only a pressed button, a command or the operator reaches [`decide`],
//! through [`super::authorize`]; no model, agent or text does. A gate stands in the store before its card is
//! posted, is bound to the content that the card shows, is used once, and means no when nobody decides.

use serde_json::json;

use super::authorize::{Denied, Granted, Resource, act, authorize, note_asker};
use super::decision::Answer;
use super::turn::Turn;
use super::{actions, ending, say, train};
use crate::domain::actor::Actor;
use crate::domain::effect::EffectKind;
use crate::domain::evidence::Proof;
use crate::domain::gate::{Decider, Gate, GateKind, GateState, NoApproval};
use crate::domain::ids::{ChannelId, GateId, MessageId, RequestId};
use crate::domain::outgoing::{Content, Priority, Voice};
use crate::domain::request::{
    ActionAtGate, EventKind, Followup, Request, RequestStatus, SelectionSource,
};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::progress;

pub(in crate::engine) mod action;
pub(in crate::engine) mod card;
pub(in crate::engine) mod commit;
pub(in crate::engine) mod guards;
pub(in crate::engine) mod plan;
pub(in crate::engine) mod preparation;
mod request_text;
pub(in crate::engine) mod spending;
pub(in crate::engine) mod stance;

pub use card::{by_guard, command_lines, content_of, needs_reason, on_card as budget_on_card};

use action::not_run;
use card::{close, digest, may_be_asked_about};

/// What somebody decides on, as they saw it.
#[derive(Debug, Clone, Copy)]
pub(super) enum ShownContent<'a> {
    /// A card of this version, in this message.
    Card(u32, ChannelId, MessageId),
    /// A form that a card of this version opened.
    Form(u32),
    /// The beginning of the digest of the content, as lists of what waits show it, and the channel that a person typed
    /// it in.
    Content(&'a str, Option<ChannelId>),
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may be done.
    Yes {
        /// Why, where something was found that speaks against it.
        reason: Option<String>,
    },
    /// It may not.
    No,
    /// Not yet: the team has to answer this first.
    Ask(String),
    /// Not yet: the checks that the card shows are to prove it first.
    UseChecks,
}

/// The open gate of a request, for a command that names the request.
pub(super) fn of_request(turn: &Turn<'_>, id: &RequestId) -> Option<GateId> {
    turn.request(id)?.work.gate_id.clone()
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
    let refused = |key: &str| Answer::Refused(say::content(key, language, json!({})));
    let Some(gate) = turn.before().gates.get(gate_id).cloned() else {
        return refused("gate.stale");
    };
    let Some(request) = turn.request(&gate.request_id).cloned() else {
        return refused("gate.stale");
    };
    let granted = match authorize(turn.policy, actor, Resource::Request(&request)) {
        Ok(granted) => granted,
        Err(Denied::OwnRequest) => return refused("gate.four_eyes"),
        Err(_) => return refused("gate.not_yours"),
    };
    if matches!(seen, ShownContent::Content("", _)) {
        // Only a decision about what was shown counts.
        return refused("gate.choose");
    }
    if !is_current(turn, &gate, &request, seen) {
        return refused("gate.stale");
    }
    if matches!(verdict, Verdict::Ask(_)) && !may_be_asked_about(gate.kind) {
        return refused("gate.no_question");
    }
    if verdict == Verdict::UseChecks && gate.shown_checks.is_none() {
        return refused("gate.stale");
    }
    let Some(by) = Decider::of(granted.actor()) else {
        return refused("gate.not_yours");
    };
    if let Verdict::Yes { reason } = &verdict
        && needs_reason(&gate, &request)
        && reason.as_ref().is_none_or(|it| it.trim().is_empty())
    {
        return refused("gate.reason_needed");
    }
    let asked = request.params.open_end().filter(|_| matches!(verdict, Verdict::Yes { .. }));
    if let Some(asked) = asked {
        // The yes would have to be given twice.
        let values = json!({ "said": asked.line(), "request_id": gate.request_id.as_str() });
        return Answer::Refused(say::content("gate.end_question", language, values));
    }
    let said = settle(turn, &granted, (by, seen), &gate, verdict);
    match seen {
        // Whoever decides at the card reads below it what came of it.
        ShownContent::Card(..) | ShownContent::Form(_) => Answer::Accepted,
        ShownContent::Content(..) => Answer::Say(said),
    }
}

/// Whether what somebody saw is what the gate is about now.
fn is_current(turn: &Turn<'_>, gate: &Gate, request: &Request, seen: ShownContent<'_>) -> bool {
    let same_content = match gate.kind {
        GateKind::UnprovenCommit
        | GateKind::GuardedCommit
        | GateKind::RedBase
        | GateKind::Commit => request
            .work
            .candidate
            .as_ref()
            .is_some_and(|it| it.commit == gate.commit && it.tree == gate.artifact),
        GateKind::Prepare => {
            let asked = request.work.preparation_asked.as_ref();
            let commit = request.work.candidate.as_ref().map(|it| it.commit.as_str());
            commit == Some(gate.commit.as_str())
                && asked.is_some_and(|it| it.digest == gate.artifact)
        }
        GateKind::Plan => plan::digest_now(request) == gate.artifact,
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
        ShownContent::Content(digest, _) => {
            digest.len() >= 7 && content_of(gate).starts_with(digest)
        }
    };
    same_content && same_card && request.work.gate_id.as_ref() == Some(&gate.gate_id)
}

fn settle(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Decide>,
    (by, seen): (Decider, ShownContent<'_>),
    gate: &Gate,
    verdict: Verdict,
) -> Content {
    let language = turn.policy.language;
    let (at, id, kind, gate_id) =
        (turn.now, gate.request_id.clone(), gate.kind, gate.gate_id.clone());
    let (state, word) = match &verdict {
        Verdict::Yes { .. } => (GateState::Approved { by, at }, "approved"),
        Verdict::No => (GateState::Rejected { by, at }, "rejected"),
        Verdict::Ask(_) if kind == GateKind::Plan => (GateState::Void, "guided"),
        Verdict::Ask(_) => (GateState::Void, "asked"),
        Verdict::UseChecks => (GateState::Void, "use_checks"),
    };
    close(turn, gate, state);
    let name = granted.name();
    let reason = match &verdict {
        Verdict::Yes { reason } => say::cut(reason.as_deref().unwrap_or_default().trim(), 1_000),
        Verdict::No | Verdict::Ask(_) | Verdict::UseChecks => String::new(),
    };
    let payload = json!({ "gate_id": gate_id.as_str(), "reason": reason });
    turn.record(&id, EventKind::GateDecided, &name, word, payload);
    if let Some(request) = turn.edit(&id) {
        request.work.gate_id = None;
    }
    let question = match &verdict {
        Verdict::Ask(question) => say::cut(question, 1_000),
        Verdict::Yes { .. } | Verdict::No | Verdict::UseChecks => String::new(),
    };
    let values = json!({ "decision": word, "by": name, "question": question, "reason": reason });
    say::in_room(turn, &id, Voice::Team, Priority::Progress, "gate.decided", values.clone());
    let room = turn.request(&id).and_then(|request| request.conversation.place());
    let sees_room = match seen {
        ShownContent::Card(_, channel, _) => Some(channel) == room,
        ShownContent::Form(_) => gate.card.map(|(channel, _)| channel) == room,
        ShownContent::Content(_, typed_in) => typed_in.is_some() && typed_in == room,
    };
    match verdict {
        Verdict::Yes { .. } => approved(turn, &id, gate, sees_room, (&name, &reason)),
        Verdict::No => end_without(turn, &id, kind, NoApproval::Rejected),
        Verdict::Ask(question) => asked(turn, granted, &id, question, kind == GateKind::Plan),
        Verdict::UseChecks => {
            let shown = gate.shown_checks.clone().unwrap_or_default();
            turn.plan(EffectKind::UseChecks { request_id: id, shown });
        }
    }
    say::content("gate.decided", language, values)
}

fn approved(
    turn: &mut Turn<'_>,
    id: &RequestId,
    gate: &Gate,
    sees_room: bool,
    (by, reason): (&str, &str),
) {
    match gate.kind {
        GateKind::UnprovenCommit
        | GateKind::GuardedCommit
        | GateKind::RedBase
        | GateKind::Commit => {
            commit::accept(turn, id, gate.findings.clone());
            commit::seen(turn, id, sees_room);
            if commit::is_base(turn, id) {
                progress::deliver(turn, id, Proof::Green);
            } else {
                train::join(turn, id);
            }
        }
        GateKind::Prepare => preparation::granted(turn, id),
        GateKind::Plan => {
            plan::accept(turn, id, by, reason);
            if turn.request(id).is_some_and(|it| it.duty().is_some()) {
                ending::end(turn, id, RequestStatus::Completed, "sprint.duty", json!({}));
            } else {
                progress::begin_current(turn, id);
            }
        }
        GateKind::Action => {
            commit::seen(turn, id, sees_room);
            if progress::goes_back_for_words(turn, id) {
                return;
            }
            let waiting = turn.request(id).and_then(|it| it.params.action_at_gate.clone());
            if let Some(ActionAtGate { name, command }) = waiting {
                actions::run(turn, id, &name, command);
            }
        }
        GateKind::Budget => spending::granted(turn, id),
    }
}

/// Nobody agrees. Where somebody has something to say that no role has read, the request goes on with that instead.
fn end_without(turn: &mut Turn<'_>, id: &RequestId, kind: GateKind, why: NoApproval) {
    let is_duty = turn.request(id).is_some_and(|it| it.duty().is_some());
    match kind {
        GateKind::Budget => declined(turn, id, kind, why),
        // Whoever reads them plans anew: nothing is built by a plan that was turned down.
        GateKind::Plan => {
            if is_duty || !progress::plans_anew_for_words(turn, id) {
                declined(turn, id, kind, why);
            }
        }
        GateKind::UnprovenCommit
        | GateKind::GuardedCommit
        | GateKind::RedBase
        | GateKind::Prepare
        | GateKind::Commit
        | GateKind::Action => {
            if !progress::goes_back_for_words(turn, id) {
                declined(turn, id, kind, why);
            }
        }
    }
}

fn declined(turn: &mut Turn<'_>, id: &RequestId, kind: GateKind, why: NoApproval) {
    match kind {
        GateKind::UnprovenCommit
        | GateKind::GuardedCommit
        | GateKind::RedBase
        | GateKind::Prepare
        | GateKind::Commit => {
            commit::declined(turn, id, why);
        }
        GateKind::Plan => plan::declined(turn, id),
        GateKind::Action => {
            let waiting = turn.request(id).and_then(|it| it.params.action_at_gate.as_ref());
            let name = waiting.map(|it| it.name.clone()).unwrap_or_default();
            not_run(turn, id, &name, why);
        }
        GateKind::Budget => spending::declined(turn, id, why),
    }
}

/// Whoever decides wants to know something first: the team answers, and asks again for what it then has.
fn asked(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Decide>,
    id: &RequestId,
    question: String,
    guides: bool,
) {
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return };
    let is_others = request.conversation.reply_route.is_other(granted.actor());
    let by = granted.name();
    let words = Followup::command(&by, question, now);
    let author_id = granted.actor().person_id();
    let question = Followup { at_gate: true, guides, is_others, author_id, ..words };
    request.params.others_wrote |= is_others;
    if guides {
        note_asker(request, &question);
    }
    request.params.followups.push(question);
    let askers = request.params.other_askers.clone();
    let sprint = request.sprint_id.clone();
    if request.duty().is_some() {
        // The next plan is theirs as well.
        if let Some(sprint) = sprint.and_then(|id| turn.edit_sprint(&id)) {
            sprint.planning.other_askers.extend(askers);
        }
        // It goes on from there.
        ending::end(turn, id, RequestStatus::Completed, "sprint.duty", json!({}));
    } else {
        progress::resume(turn, id, SelectionSource::GateQuestion);
    }
}

/// The instants at which gates close by themselves.
pub(super) fn due(state: &State) -> impl Iterator<Item = Timestamp> {
    state.gates.values().filter_map(|gate| gate.expires_at)
}

/// Closes the gates whose time is over: no decision means no, and the team is told.
pub(super) fn expire(turn: &mut Turn<'_>) {
    let now = turn.now;
    let before = turn.before();
    for gate in before.gates.values().filter(|it| it.expires_at.is_some_and(|at| at <= now)) {
        let (id, kind, gate_id) = (gate.request_id.clone(), gate.kind, gate.gate_id.clone());
        close(turn, gate, GateState::Expired { at: now });
        let mine = turn.edit(&id).is_some_and(|request| {
            let mine = request.work.gate_id.as_ref() == Some(&gate_id);
            if mine {
                request.work.gate_id = None;
            }
            mine
        });
        if mine {
            let payload = json!({ "gate_id": gate_id.as_str() });
            turn.record(&id, EventKind::GateDecided, "runtime", "expired", payload);
            end_without(turn, &id, kind, NoApproval::Expired);
        }
    }
}
