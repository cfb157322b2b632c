//! Opening and closing a gate, and the card at which a person decides.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::stance;
use crate::domain::budget::Scope;
use crate::domain::check_proposal::ProposedCommand;
use crate::domain::gate::{Gate, GateKind, GateState};
use crate::domain::guard::{Guard, GuardFinding};
use crate::domain::ids::{ChannelId, RequestId};
use crate::domain::outgoing::{
    Act, Button, ButtonAct, NamedChannel, Post, Priority, Target, Voice,
};
use crate::domain::policy::{Policy, Right};
use crate::domain::request::{ActionAtGate, EventKind, Request};
use crate::domain::request_plan::RequestPlan;
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::engine::say::CatalogText;
use crate::engine::turn::Turn;
use crate::engine::{contract, lanes, say};

/// The digest of a list of texts: of the words of a command line, of the parts of a plan.
pub(in crate::engine) fn digest(parts: &[String]) -> String {
    Sha256::digest(parts.join("\0")).iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

pub(in crate::engine) fn open(
    turn: &mut Turn<'_>,
    id: &RequestId,
    kind: GateKind,
    commit: String,
    artifact: String,
    findings: Vec<GuardFinding>,
) {
    void(turn, id);
    let gate_id = turn.ids.gate();
    let wait = u64::from(turn.policy.gates.wait_hours) * 3_600;
    let expires_at = if kind == GateKind::Budget && is_daily(turn, id) {
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
        findings,
        version: 1,
        state: GateState::Open,
        card: None,
        created_at: turn.now,
        expires_at: Some(expires_at),
        shown_checks: (kind == GateKind::UnprovenCommit && !turn.policy.has_checks())
            .then(|| turn.policy.shown_checks.clone())
            .filter(|shown| !shown.checks.is_empty()),
        ahead: turn.request(id).filter(|_| kind == GateKind::Plan).and_then(
            |request| match &request.sprint_id {
                None => lanes::ahead(turn, request),
                Some(sprint) => lanes::ahead_of_sprint(turn, sprint),
            },
        ),
    };
    let Some(request) = turn.edit(id) else { return };
    request.work.gate_id = Some(gate_id.clone());
    turn.record(id, EventKind::GateOpened, "runtime", gate_id.as_str(), Value::Null);
    post(turn, gate, None);
}

/// Saves an open gate and posts its card, at some time or at once.
pub(in crate::engine) fn post(turn: &mut Turn<'_>, gate: Gate, not_before: Option<Timestamp>) {
    let (id, gate_id, kind, version) =
        (gate.request_id.clone(), gate.gate_id.clone(), gate.kind, gate.version);
    let Some(request) = turn.request(&id) else { return };
    let language = request.conversation.language;
    let author = request.conversation.reply_route.author_id;
    let duty = request.duty();
    let expires_at = gate.expires_at.unwrap_or(turn.now);
    let (key, mut values) = card(turn.policy, request, &gate, expires_at);
    if let Some(ahead) = &gate.ahead {
        let cost = ahead.usd.as_ref().map(|usd| json!({ "usd": usd }));
        values["ahead"] = json!({ "turns": ahead.turns, "cost": cost });
    }
    let needs_reason = needs_reason(&gate, request);
    let shows_checks = gate.shown_checks.is_some();
    turn.save(gate);
    let button = |act| Button { act, subject: gate_id.to_string(), version };
    let mut buttons = vec![button(ButtonAct::Approve), button(ButtonAct::Reject)];
    if shows_checks {
        buttons.insert(0, button(ButtonAct::UseChecks));
    }
    if needs_reason {
        buttons = vec![
            button(ButtonAct::ApproveAnyway),
            button(ButtonAct::Guide),
            button(ButtonAct::Reject),
        ];
        if duty.is_none() {
            let subject = id.to_string();
            buttons.push(Button { act: ButtonAct::Cancel, subject, version: 0 });
        }
    } else if kind == GateKind::Plan {
        buttons.push(button(ButtonAct::Guide));
    } else if may_be_asked_about(kind) {
        buttons.push(button(ButtonAct::Question));
    }
    let act = Act::Post(Post {
        mention: author,
        buttons,
        gate_id: Some(gate_id.clone()),
        ..Post::new(say::content(key, language, values))
    });
    // A sprint's own work has no room.
    let target = match duty {
        None => Target::Room(id.clone()),
        Some(_) => Target::Named(NamedChannel::Report),
    };
    let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Approval, act);
    outgoing.request_id = Some(id);
    outgoing.not_before = not_before;
    turn.send(outgoing);
}

/// The card stands in the room: whoever asked outside of it is told where to look.
pub(in crate::engine) fn point_to_card(turn: &mut Turn<'_>, id: &RequestId, room: ChannelId) {
    let Some(request) = turn.request(id) else { return };
    let conversation = &request.conversation;
    let is_elsewhere = request.todo_id.is_none()
        && conversation.thread() == Some(room)
        && conversation.reply_route.channel_id != Some(room);
    let asked = say::room_channel(&conversation.reply_route).filter(|_| is_elsewhere);
    let Some(target) = asked else { return };
    let (language, reply_to) = (conversation.language, conversation.message_to_answer());
    let values = json!({ "request_id": id.as_str(), "room": room.to_string() });
    let mut act = say::post(say::content("gate.elsewhere", language, values));
    if let Act::Post(Post { reply_to: answered, .. }) = &mut act {
        *answered = reply_to;
    }
    let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Approval, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// Whether the team can answer a question about it before it is decided: not where answering would spend
/// what is asked for.
pub(super) const fn may_be_asked_about(kind: GateKind) -> bool {
    match kind {
        GateKind::UnprovenCommit
        | GateKind::GuardedCommit
        | GateKind::RedBase
        | GateKind::Prepare
        | GateKind::Commit
        | GateKind::Plan
        | GateKind::Action => true,
        GateKind::Budget => false,
    }
}

/// What a person needs to see to decide: what, why, how risky, who may, until when.
fn card(policy: &Policy, request: &Request, gate: &Gate, expires_at: Timestamp) -> CatalogText {
    let mut values = json!({
        "request_id": request.request_id.as_str(),
        "title": say::title(&request.scope),
        "by": request.conversation.reply_route.author_name,
        "why": gate.kind.as_str(),
        "deciders": deciders(policy),
        "four_eyes": policy.four_eyes,
        "until": expires_at.millis() / 1_000,
    });
    let key = match (gate.kind, request.work.candidate.as_ref()) {
        (GateKind::Action, _) => {
            if let Some(ActionAtGate { name, command }) = &request.params.action_at_gate {
                values["action"] = json!(name);
                values["command"] = json!(say::whole(&command.join(" ")));
            }
            "gate.action"
        }
        (GateKind::Plan, _) => {
            let planned = request.work.planned.as_ref();
            values["summary"] = json!(planned.map(|it| say::whole(&it.summary)));
            values["criteria"] = json!(contract::criteria(request, None));
            values["sprint_id"] = json!(request.sprint_id);
            values["decisions"] = json!(say::decisions(request));
            values["paths"] = json!(planned.map(|it| &it.allowed_paths));
            values["left_out"] = json!(planned.map(RequestPlan::left_out));
            values["plan_findings"] = json!(request.work.plan_review.findings);
            "gate.plan"
        }
        (GateKind::Budget, _) => {
            values["budget"] = on_card(request);
            "gate.budget"
        }
        (GateKind::Prepare, candidate) => {
            if let Some(question) = &request.work.preparation_asked {
                values["commit"] = json!(candidate.map(|it| say::short(&it.commit)));
                values["files"] = json!(question.files);
                values["commands"] = json!(question.commands);
                values["network"] = json!(question.has_network);
                values["secrets"] = json!(question.secrets);
                values["diff"] = json!(candidate.map(|it| it.excerpt.as_str()));
            }
            "gate.prepare"
        }
        (
            GateKind::UnprovenCommit
            | GateKind::GuardedCommit
            | GateKind::RedBase
            | GateKind::Commit,
            Some(candidate),
        ) => {
            values["commit"] = json!(say::short(&candidate.commit));
            values["is_base"] = json!(candidate.is_its_base());
            values["side_branch"] = json!(format!("teams/{}", request.request_id));
            values["files"] = json!(say::files(Some(candidate)));
            values["added"] = json!(candidate.added_lines);
            values["removed"] = json!(candidate.removed_lines);
            values["deleted"] = json!(stance::deleted(candidate));
            values["findings"] = by_guard(&gate.findings);
            values["diff"] = json!(candidate.excerpt);
            values["red_before"] = json!(say::red_before(request));
            values["not_checked"] = json!(request.work.qa_remarks.not_checked);
            values["risks"] = json!(request.work.qa_remarks.risks);
            values["shown"] = json!(gate.shown_checks.as_ref().map(|shown| json!({
                "checks": command_lines(&shown.checks),
                "prepare": command_lines(&shown.prepare),
                "carry": shown.carry,
            })));
            "gate.commit"
        }
        (
            GateKind::UnprovenCommit
            | GateKind::GuardedCommit
            | GateKind::RedBase
            | GateKind::Commit,
            None,
        ) => "gate.commit",
    };
    (key, values)
}

/// What guards found, one entry for each guard: its word, and what to look at.
#[must_use]
pub fn by_guard(findings: &[GuardFinding]) -> Value {
    let mut all: BTreeMap<Guard, Vec<String>> = BTreeMap::new();
    for GuardFinding { guard, path, detail } in findings {
        let what = match guard {
            _ if detail.is_empty() => path.clone(),
            Guard::Secret => format!("{path}:{detail}"),
            Guard::Dependency => format!("{detail} ({path})"),
            Guard::Machinery
            | Guard::Tests
            | Guard::Scope
            | Guard::Deletion
            | Guard::Restored
            | Guard::Overwritten
            | Guard::LockFile
            | Guard::Binary => format!("{path} ({detail})"),
            Guard::Unjudged => format!("{path}: {detail}"),
        };
        all.entry(*guard).or_default().push(what);
    }
    let entry = |(guard, what): (&Guard, &Vec<String>)| json!({ "guard": guard, "what": what });
    all.iter().map(entry).collect()
}

/// Commands as people read them.
#[must_use]
pub fn command_lines(commands: &[ProposedCommand]) -> Vec<String> {
    commands.iter().map(|one| one.command.join(" ")).collect()
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
pub(in crate::engine) fn void(turn: &mut Turn<'_>, id: &RequestId) {
    let old = turn.edit(id).and_then(|request| request.work.gate_id.take());
    if let Some(gate) = old.and_then(|old| turn.before().gates.get(&old).cloned()) {
        close(turn, &gate, GateState::Void);
    }
}

/// A gate is open no longer, and its card shows so: its buttons go.
pub(in crate::engine) fn close(turn: &mut Turn<'_>, gate: &Gate, state: GateState) {
    if let Some(card) = gate.card {
        say::unbutton(turn, card, Some(&gate.request_id));
    }
    let is_its_card =
        |act: &Act| matches!(act, Act::Post(Post { gate_id: Some(id), .. }) if *id == gate.gate_id);
    turn.unsend(|it| is_its_card(&it.act));
    turn.save(Gate { state, ..gate.clone() });
}

/// Whether something was found that speaks against a yes, so that one takes a reason.
#[must_use]
pub fn needs_reason(gate: &Gate, request: &Request) -> bool {
    gate.kind == GateKind::Plan && request.work.plan_review.is_open()
}

/// What names the content of a gate to people: the commit, or the digest of what else is decided on. What is to be
/// prepared for a commit is not named as the commit is, which is asked about later.
#[must_use]
pub fn content_of(gate: &Gate) -> &str {
    let is_about_more = gate.commit.is_empty() || gate.kind == GateKind::Prepare;
    if is_about_more { &gate.artifact } else { &gate.commit }
}

/// The budget that waits for a person, and for which role's run.
pub(in crate::engine) fn waiting_budget(request: &Request) -> Option<(Scope, Role)> {
    request.params.budget_at_gate.as_ref().map(|waits| (waits.scope, waits.role))
}

/// What the card says about it: which budget, how much of it, and how much more.
#[must_use]
pub fn on_card(request: &Request) -> Value {
    request.params.budget_at_gate.as_ref().map(|waits| waits.card.clone()).unwrap_or_default()
}

/// Whether the budget that a request waits for is a new one with the next day.
pub(in crate::engine) fn is_daily(turn: &Turn<'_>, id: &RequestId) -> bool {
    turn.request(id).and_then(waiting_budget).is_some_and(|(scope, _)| scope.is_daily())
}
