//! The gate of money: a budget is used up, and a person grants it once more or does not.

use serde_json::Value;

use crate::domain::block::BlockCode;
use crate::domain::budget::Scope;
use crate::domain::gate::{GateKind, GateState};
use crate::domain::ids::RequestId;
use crate::domain::request::{BudgetAtGate, Request};
use crate::domain::role::Role;
use crate::engine::budget::{self, Account};
use crate::engine::handoff;
use crate::engine::turn::Turn;

/// A budget is used up: no run begins before a person grants it once more. `why` is what the run is told then
/// about why its step is done again.
pub(in crate::engine) fn ask(
    turn: &mut Turn<'_>,
    id: &RequestId,
    role: Role,
    account: &Account,
    why: &str,
) {
    let Some(request) = turn.request(id) else { return };
    let artifact = account.digest(&budget::subject(turn, request, role, account.scope));
    let card = account.values(role);
    let waits = BudgetAtGate { scope: account.scope, role, card, why: why.to_owned() };
    if let Some(request) = turn.edit(id) {
        request.params.budget_at_gate = Some(waits);
    }
    super::open(turn, id, GateKind::Budget, String::new(), artifact);
}

/// The budget that waits for a person, and for which role's run.
fn waiting_budget(request: &Request) -> Option<(Scope, Role)> {
    request.params.budget_at_gate.as_ref().map(|waits| (waits.scope, waits.role))
}

/// The digest of that budget as it stands now.
pub(super) fn digest_now(turn: &Turn<'_>, request: &Request) -> Option<String> {
    let (scope, role) = waiting_budget(request)?;
    let account = budget::account(turn, request, role, scope)?;
    Some(account.digest(&budget::subject(turn, request, role, scope)))
}

/// What the card says about it: which budget, how much of it, and how much more.
#[must_use]
pub fn on_card(request: &Request) -> Value {
    request.params.budget_at_gate.as_ref().map(|waits| waits.card.clone()).unwrap_or_default()
}

/// The run that waited may be asked for again.
fn go_on(turn: &mut Turn<'_>, id: &RequestId) {
    let waited = turn.request(id).and_then(|request| request.params.budget_at_gate.as_ref());
    let why = waited.map(|it| it.why.clone()).unwrap_or_default();
    handoff::delegate_current(turn, id, &why);
}

/// Whether the budget that a request waits for is a new one with the next day.
pub(super) fn is_daily(turn: &Turn<'_>, id: &RequestId) -> bool {
    turn.request(id).and_then(waiting_budget).is_some_and(|(scope, _)| scope.is_daily())
}

/// The budget is granted once more, for everything that waits for it.
pub(super) fn granted(turn: &mut Turn<'_>, id: &RequestId) {
    let Some((scope, role)) = turn.request(id).and_then(waiting_budget) else { return };
    let (before, of) = (turn.before(), |turn: &Turn<'_>, id: &RequestId| {
        turn.request(id).map(|request| budget::subject(turn, request, role, scope))
    });
    let subject = of(turn, id);
    budget::raise(turn, id, role, scope);
    go_on(turn, id);
    for gate in before.gates.values().filter(|gate| gate.kind == GateKind::Budget) {
        let other = gate.request_id.clone();
        let waits = turn.request(&other).filter(|it| it.gate_id.as_ref() == Some(&gate.gate_id));
        let same =
            waits.and_then(waiting_budget) == Some((scope, role)) && of(turn, &other) == subject;
        if same {
            super::close(turn, gate, GateState::Void);
            if let Some(request) = turn.edit(&other) {
                request.gate_id = None;
            }
            go_on(turn, &other);
        }
    }
}

/// It is not granted: the request stops, unless there is a new budget because it is another day.
pub(super) fn declined(turn: &mut Turn<'_>, id: &RequestId, why: &str) {
    if why == "expired" && is_daily(turn, id) {
        go_on(turn, id);
    } else {
        handoff::block(turn, id, BlockCode::BudgetSpent, "", Vec::new());
    }
}
