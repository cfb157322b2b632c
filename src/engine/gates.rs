//! Points where a person decides. No model, agent or text reaches [`decide`]: only a pressed button
//! or the operator's command, through the authorization rule.

use serde_json::{Value, json};

use super::authorize::{Denied, Granted, Resource, act, authorize};
use super::decide::Answer;
use super::turn::Turn;
use super::{closeout, handoff, say};
use crate::domain::change::Change;
use crate::domain::evidence::Candidate;
use crate::domain::gate::{Gate, GateKind, GateState};
use crate::domain::ids::{GateId, RequestId, UserId};
use crate::domain::incoming::Actor;
use crate::domain::outgoing::{Act, Button, ButtonAct, Priority, Target, Voice};
use crate::domain::request::RequestStatus;

/// Asks whether a commit may go to the branch that no check has proven.
pub(super) fn open(turn: &mut Turn<'_>, id: &RequestId, candidate: &Candidate) {
    let gate_id = turn.ids.gate();
    let gate = Gate {
        gate_id: gate_id.clone(),
        request_id: id.clone(),
        kind: GateKind::CommitWithoutChecks,
        commit: candidate.commit.clone(),
        version: 1,
        state: GateState::Open,
        card: None,
        created_at: turn.now,
    };
    let Some(request) = turn.edit(id) else { return };
    request.gate_id = Some(gate_id.clone());
    let language = request.language;
    let author = request.reply_route.author_id;
    let values = json!({
        "request_id": id.as_str(),
        "commit": say::short(&candidate.commit),
        "side_branch": format!("teams/{id}"),
        "files": say::files(Some(candidate)),
        "added": candidate.added_lines,
        "removed": candidate.removed_lines,
        "diff": "",
    });
    turn.change(Change::Gate(gate));
    turn.record(id, "gate_opened", "runtime", gate_id.as_str(), Value::Null);
    let button = |act| Button { act, subject: gate_id.to_string(), version: 1 };
    let act = Act::Post {
        content: say::content("gate.commit_without_checks", language, values),
        reply_to: None,
        mention: author,
        buttons: vec![button(ButtonAct::Approve), button(ButtonAct::Reject)],
        gate_id: Some(gate_id.clone()),
        files: Vec::new(),
        room_of: None,
    };
    let target = Target::Room(id.clone());
    let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Approval, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// A person decided. Counts once, for the content that the person saw.
pub(super) fn decide(
    turn: &mut Turn<'_>,
    actor: &Actor,
    gate_id: &GateId,
    version: u32,
    yes: bool,
) -> Answer {
    let language = turn.policy.language;
    let say_key = |key: &str| Answer::Say(say::content(key, language, json!({})));
    let Some(gate) = turn.before().gates.get(gate_id).cloned() else {
        return say_key("gate.stale");
    };
    let id = gate.request_id.clone();
    let Some(request) = turn.request(&id) else { return say_key("gate.stale") };
    let granted: Granted<act::Decide> =
        match authorize(turn.policy, actor, Resource::Request(request)) {
            Ok(granted) => granted,
            Err(Denied::OwnRequest) => return say_key("gate.four_eyes"),
            Err(_) => return say_key("gate.not_yours"),
        };
    let same = turn.request(&id).is_some_and(|request| {
        request.gate_id.as_ref() == Some(gate_id)
            && request.candidate.as_ref().is_some_and(|c| c.commit == gate.commit)
    });
    if gate.version != version || !same {
        return say_key("gate.stale");
    }
    let by = match granted.actor() {
        Actor::Person { author, .. } => author.id,
        // The operator at the machine has no Discord identity.
        Actor::Operator | Actor::Deleter | Actor::Agent { .. } => UserId(0),
    };
    let at = turn.now;
    let state = if yes { GateState::Approved { by, at } } else { GateState::Rejected { by, at } };
    turn.change(Change::Gate(Gate { state, ..gate }));
    let name = granted.name();
    let word = if yes { "approved" } else { "rejected" };
    turn.record(&id, "gate_decided", &name, word, json!({ "gate_id": gate_id.as_str() }));
    if let Some(request) = turn.edit(&id) {
        request.gate_id = None;
    }
    let values = json!({ "decision": word, "by": name });
    say::in_room(turn, &id, Voice::Team, Priority::Progress, "gate.decided", values.clone());
    if yes {
        closeout::merge(turn, &id);
    } else {
        stay_on_side_branch(turn, &id);
    }
    Answer::Say(say::content("gate.decided", language, values))
}

/// The commit stays where it is; the request is done.
fn stay_on_side_branch(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.request(id) else {
        return;
    };
    let summary = request.result.as_ref().map(|r| say::cut(&r.summary, 1_200)).unwrap_or_default();
    let commit = request.candidate.as_ref().map(|c| say::short(&c.commit)).unwrap_or_default();
    let values = json!({
        "request_id": id.as_str(),
        "summary": summary,
        "commit": commit,
        "side_branch": format!("teams/{id}"),
        "files": say::files(request.candidate.as_ref()),
        "reason": "rejected",
    });
    handoff::end(turn, id, RequestStatus::Completed, "final.on_side_branch", values);
}
