//! The gate of money: a budget is used up, and a person grants it once more or does not.

use super::card::{self, is_daily, waiting_budget};
use crate::domain::block::BlockCode;
use crate::domain::budget::Scope;
use crate::domain::gate::{GateKind, GateState, NoApproval};
use crate::domain::ids::RequestId;
use crate::domain::request::{BudgetAtGate, Request};
use crate::domain::role::Role;
use crate::domain::run::RunReport;
use crate::domain::sprint::Duty;
use crate::engine::budget::{self, Account, spent, spent_together};
use crate::engine::turn::Turn;
use crate::engine::{ending, handoff, sprint};

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
    if request.duty() == Some(Duty::ClosingReport) {
        // No sprint keeps its place for days for words that may be left out.
        return ending::block(turn, id, BlockCode::BudgetSpent, "", Vec::new());
    }
    let artifact = account.digest(&budget::subject(turn, request, role, account.scope));
    let card = account.values(role);
    let waits = BudgetAtGate { scope: account.scope, role, card, why: why.to_owned() };
    if let Some(request) = turn.edit(id) {
        request.params.budget_at_gate = Some(waits);
    }
    card::open(turn, id, GateKind::Budget, String::new(), artifact, Vec::new());
}

/// The digest of that budget as it stands now.
pub(super) fn digest_now(turn: &Turn<'_>, request: &Request) -> Option<String> {
    let (scope, role) = waiting_budget(request)?;
    let account = budget::account(turn, request, role, scope)?;
    Some(account.digest(&budget::subject(turn, request, role, scope)))
}

/// The run that waited may be asked for again.
fn go_on(turn: &mut Turn<'_>, id: &RequestId) {
    let waited = turn.request(id).and_then(|request| request.params.budget_at_gate.as_ref());
    let why = waited.map(|it| it.why.clone()).unwrap_or_default();
    handoff::delegate_current(turn, id, &why);
}

/// The budget is granted once more, for everything that waits for it.
pub(super) fn granted(turn: &mut Turn<'_>, id: &RequestId) {
    let Some((scope, role)) = turn.request(id).and_then(waiting_budget) else { return };
    // The budget of a day or a sprint is one for all roles.
    let before = turn.before();
    let of = |turn: &Turn<'_>, id: &RequestId| {
        let request = turn.request(id)?;
        let (scope, role) = waiting_budget(request)?;
        Some((scope, budget::subject(turn, request, role, scope)))
    };
    let granted = of(turn, id);
    budget::raise(turn, id, role, scope);
    go_on(turn, id);
    for gate in before.gates.values().filter(|gate| gate.kind == GateKind::Budget) {
        let other = gate.request_id.clone();
        let waits =
            turn.request(&other).filter(|it| it.work.gate_id.as_ref() == Some(&gate.gate_id));
        if waits.is_some() && of(turn, &other) == granted {
            card::close(turn, gate, GateState::Void);
            if let Some(request) = turn.edit(&other) {
                request.work.gate_id = None;
            }
            go_on(turn, &other);
        }
    }
}

/// What is asked about budgets that are others by now, or gone, since the configuration changed: nobody could decide it.
pub(in crate::engine) fn ask_by_new_limits(turn: &mut Turn<'_>) {
    let before = turn.before();
    for gate in before.gates.values().filter(|gate| gate.kind == GateKind::Budget) {
        let id = &gate.request_id;
        let waits = turn.request(id).filter(|it| it.work.gate_id.as_ref() == Some(&gate.gate_id));
        let is_another = waits.is_some_and(|it| {
            let account =
                waiting_budget(it).and_then(|(scope, role)| budget::account(turn, it, role, scope));
            account.is_none_or(|account| !account.is_spent())
                || digest_now(turn, it).as_ref() != Some(&gate.artifact)
        });
        if is_another {
            card::void(turn, id);
            go_on(turn, id);
        }
    }
}

/// It is not granted: the request stops, unless there is a new budget because it is another day.
pub(super) fn declined(turn: &mut Turn<'_>, id: &RequestId, why: NoApproval) {
    if why == NoApproval::Expired && is_daily(turn, id) {
        return go_on(turn, id);
    }
    let waited = turn.request(id).and_then(waiting_budget);
    ending::block(turn, id, BlockCode::BudgetSpent, "", Vec::new());
    // Nobody is asked the same at each todo of a sprint.
    match waited {
        Some((scope @ (Scope::Role | Scope::Day), role)) => {
            budget::decline(turn, id, role, scope);
            sprint::out_of_budget(turn, id, scope);
        }
        Some((scope @ (Scope::Sprint | Scope::Request), _)) => {
            sprint::out_of_budget(turn, id, scope);
        }
        None => {}
    }
}

/// The agent stopped because it had spent what it was given. A person decides, where a budget is used up;
/// whether one is.
pub(in crate::engine) fn ask_if_spent(
    turn: &mut Turn<'_>,
    id: &RequestId,
    report: &RunReport,
    why: &str,
) -> bool {
    let alone = spent(turn, id, report.role);
    let Some(account) = alone.or_else(|| spent_together(turn, id, report)) else { return false };
    ask(turn, id, report.role, &account, why);
    true
}
