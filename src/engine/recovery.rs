//! What is looked at when the process is up again.

use serde_json::json;

use super::decision::{Answer, Wake};
use super::turn::Turn;
use super::{budget, clock, closeout, gates, handoff, outbox, say, sprint, train};
use crate::domain::config::AgentKind;
use crate::domain::effect::{Effect, EffectState};
use crate::domain::envelope::Envelope;
use crate::domain::gate::Stance;
use crate::domain::guard::GuardFinding;
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{NamedChannel, Priority, Target, Voice};
use crate::domain::request::{EventKind, Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::run::Run;

/// The process is up.
pub(super) fn started(turn: &mut Turn<'_>, announce: bool, serves: &[Role]) -> Answer {
    for role in serves {
        turn.wake(Wake::Role(*role));
    }
    turn.wake(Wake::Reports);
    turn.wake(Wake::Outbox);
    clock::put_right(turn);
    outbox::try_again(turn);
    let effects: Vec<_> = turn.before().effects.keys().cloned().collect();
    for effect in effects {
        turn.wake(Wake::Effect(effect));
    }
    cut_off(turn);
    share_budgets(turn);
    gates::spending::ask_by_new_limits(turn);
    ask_by_new_guards(turn);
    sprint::without_request(turn);
    sprint::withdraw_replaced(turn);
    let before = turn.before();
    // What was in the way may have been put right.
    for envelope in before.runs.values().filter_map(|run| before.envelopes.get(&run.envelope_id)) {
        if envelope.not_before.is_some() {
            turn.save(Envelope { not_before: None, ..Envelope::clone(envelope) });
        }
    }
    let is_followed = |run: &Run| before.envelopes.contains_key(&run.envelope_id);
    for run in before.runs.values().filter(|run| !is_followed(run)) {
        handoff::give_back(turn, run);
    }
    for id in orphans(turn) {
        turn.record(&id, EventKind::Recovered, "runtime", "nobody had it", json!(null));
        closeout::again(turn, &id);
    }
    sprint::withdraw_older(turn);
    sprint::go_by_settings(turn);
    sprint::advance(turn);
    if announce {
        let open = turn.before().requests.values().filter(|it| goes_on_by_itself(it)).count();
        let roles: Vec<_> = serves.iter().filter(|role| role.is_public()).copied().collect();
        let values = json!({
            "project": turn.policy.project,
            "branch": turn.policy.branch,
            "roles": roles,
            "agent": turn.policy.agent_names(),
            "rehearsal": turn.policy.agent_names().contains(AgentKind::Rehearsal.as_str()),
            "resumed_requests": open,
        });
        let content = say::content("startup", turn.policy.language, values);
        let target = Target::Named(NamedChannel::Startup);
        let act = say::post(content);
        let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
        outgoing.slot = Some("startup".to_owned());
        turn.send(outgoing);
    }
    Answer::Accepted
}

/// Whether nobody has to do anything for a request to go on.
fn goes_on_by_itself(request: &Request) -> bool {
    matches!(request.status, RequestStatus::Queued | RequestStatus::Delegated)
        && request.work.gate_id.is_none()
}

/// What the guards find since the configuration changed, beyond what somebody is asked to accept: the change is judged anew.
fn ask_by_new_guards(turn: &mut Turn<'_>) {
    let before = turn.before();
    for gate in before.gates.values() {
        let id = &gate.request_id;
        let waits = turn.request(id).filter(|it| it.work.gate_id.as_ref() == Some(&gate.gate_id));
        let Some(request) = waits.filter(|_| gate.kind.is_about_commit()) else { continue };
        let is_new = |it: &GuardFinding| {
            !gate.findings.contains(it) || turn.policy.gates.of_guard(it.guard) == Stance::Refuse
        };
        if gates::guards::open_findings(turn, request).iter().any(is_new) {
            gates::card::void(turn, id);
            closeout::again(turn, id);
        }
    }
}

/// What was under way when the process ended: effects go on at once. Whether the agent of a run goes on or begins
/// anew is known when a worker takes it, and its room is told then.
fn cut_off(turn: &mut Turn<'_>) {
    let before = turn.before();
    for effect in before.effects.values() {
        let started = matches!(effect.state, EffectState::Started { .. });
        // An action is not begun again: its outcome says so. The others are no request's work.
        let Some(what) = effect.kind.change_of() else { continue };
        if started && effect.told != Some(effect.attempts) {
            let told = Some(effect.attempts);
            turn.save(Effect { told, ..Effect::clone(effect) });
            say::interrupted(
                turn,
                what,
                json!({ "what": effect.kind.name(), "branch": turn.policy.branch }),
            );
        }
    }
}

/// What runs have spent that are over since those under way began is in no worker's memory any more.
fn share_budgets(turn: &mut Turn<'_>) {
    let before = turn.before();
    for run in before.runs.values() {
        let shared_budgets = budget::shared(turn, run);
        if shared_budgets != run.shared_budgets {
            turn.save(Run { shared_budgets, ..Run::clone(run) });
        }
    }
}

/// Delegated requests that nothing moves. No decision leaves one behind; a record edited by hand can.
fn orphans(turn: &Turn<'_>) -> Vec<RequestId> {
    let state = turn.before();
    let moved = |id: &RequestId| {
        // Its turn comes, and whoever is before it is moved.
        train::place(state, id).is_some_and(|place| place > 1)
            || state.envelopes.values().any(|envelope| envelope.envelope.request_id == *id)
            || state.runs.values().any(|run| run.request_id == *id)
            || state.effects.values().any(|effect| effect.kind.request_id() == Some(id))
            || state.operations.values().any(|operation| operation.request_id == *id)
            || state.gates.values().any(|gate| gate.request_id == *id)
    };
    state
        .requests
        .values()
        .filter(|request| {
            matches!(request.status, RequestStatus::Delegated | RequestStatus::Queued)
                && !moved(&request.request_id)
        })
        .map(|request| request.request_id.clone())
        .collect()
}
