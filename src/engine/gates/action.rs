//! A registered action is wanted.

use serde_json::json;

use super::card;
use crate::domain::gate::{GateKind, NoApproval, Stance};
use crate::domain::ids::RequestId;
use crate::domain::request::{ActionAtGate, RequestStatus};
use crate::engine::ending;
use crate::engine::turn::Turn;

/// A registered action is wanted. Whether it may run at once.
pub(in crate::engine) fn wanted(
    turn: &mut Turn<'_>,
    id: &RequestId,
    name: &str,
    command: &[String],
) -> bool {
    match turn.policy.gates.action {
        Stance::Allow => true,
        Stance::Refuse => {
            not_run(turn, id, name, NoApproval::Refused);
            false
        }
        Stance::Ask => {
            if let Some(request) = turn.edit(id) {
                let (name, command) = (name.to_owned(), command.to_vec());
                request.params.action_at_gate = Some(ActionAtGate { name, command });
            }
            card::open(
                turn,
                id,
                GateKind::Action,
                String::new(),
                card::digest(command),
                Vec::new(),
            );
            false
        }
    }
}

pub(super) fn not_run(turn: &mut Turn<'_>, id: &RequestId, name: &str, why: NoApproval) {
    let values = json!({ "action": name, "reason": why });
    ending::end(turn, id, RequestStatus::Cancelled, "action.not_run", values);
}
