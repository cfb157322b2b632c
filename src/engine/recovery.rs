//! What is looked at when the process is up again.

use serde_json::json;

use super::decide::{Answer, Wake};
use super::turn::Turn;
use super::{closeout, say, sprint};
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{NamedChannel, Priority, Target, Voice};
use crate::domain::request::RequestStatus;
use crate::domain::role::Role;

/// The process is up.
pub(super) fn started(turn: &mut Turn<'_>, announce: bool, serves: &[Role]) -> Answer {
    for role in serves {
        turn.wake(Wake::Role(*role));
    }
    turn.wake(Wake::Reports);
    turn.wake(Wake::Outbox);
    let effects: Vec<_> = turn.before().effects.keys().cloned().collect();
    for effect in effects {
        turn.wake(Wake::Effect(effect));
    }
    for id in orphans(turn) {
        turn.record(&id, "recovered", "runtime", "nobody had it", json!(null));
        closeout::again(turn, &id);
    }
    sprint::advance(turn);
    if announce {
        let open =
            turn.before().requests.values().filter(|request| !request.status.is_terminal()).count();
        let roles: Vec<_> = serves.iter().filter(|role| role.is_public()).copied().collect();
        let values = json!({
            "project": turn.policy.project,
            "branch": turn.policy.branch,
            "roles": roles,
            "agent": turn.policy.agent,
            "rehearsal": turn.policy.agent.contains("rehearsal"),
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

/// Delegated requests that nothing moves. No decision leaves one behind; a record edited by hand can.
fn orphans(turn: &Turn<'_>) -> Vec<RequestId> {
    let state = turn.before();
    let moved = |id: &RequestId| {
        state.envelopes.values().any(|envelope| envelope.envelope.request_id == *id)
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
