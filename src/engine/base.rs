//! The base of a request: how the checks stand there is known before a role gets it, so that nobody spends a turn on
//! a project that is red already without a person having read so.

use serde_json::json;

use super::turn::Turn;
use super::{contract, say};
use crate::domain::criterion::{Criterion, Judge};
use crate::domain::effect::EffectKind;
use crate::domain::evidence::{BaseStanding, BaseVerdict};
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::request::{EventKind, Request, RequestStatus};
use crate::domain::role::Role;

/// Looks at the base where nobody has, before `role` gets the request; whether the request waits for that.
pub(super) fn comes_first(turn: &mut Turn<'_>, id: &RequestId, role: Role, why: &str) -> bool {
    if !(turn.policy.has_checks() && turn.policy.proves_base) {
        return false;
    }
    let Some(request) = turn.request(id) else { return false };
    if request.duty().is_some() || request.work.base.is_some() || request.work.candidate.is_some() {
        return false;
    }
    let mine =
        |kind: &EffectKind| matches!(kind, EffectKind::Base { request_id, .. } if request_id == id);
    let is_looked_at = turn.has_effect(mine);
    let Some(request) = turn.edit(id) else { return false };
    request.status = RequestStatus::Delegated;
    request.blocked = None;
    request.route.current_role = Some(Role::VersionController);
    request.route.next_role = Some(role);
    request.outcome.ended_at = None;
    request.outcome.final_answer = None;
    if !is_looked_at {
        let (request_id, why) = (id.clone(), why.to_owned());
        turn.plan(EffectKind::Base { request_id, role, why });
    }
    true
}

/// Whether nothing may have to change for a request, of which nothing has been built or refused: every criterion is bound
/// to a check that passed at its base. That is proven and judged like a change.
pub(super) fn may_hold_all(turn: &Turn<'_>, request: &Request) -> bool {
    let work = &request.work;
    if work.candidate.is_some() || work.conflict.is_some() || work.spent.rejected > 0 {
        return false;
    }
    let Some(base) = &work.base else { return false };
    let item = request.backlog_id.as_ref().and_then(|id| turn.item(id));
    let criteria = contract::criteria(request, item);
    let passes = |one: &Criterion| match &one.judge {
        Judge::Check(name) => base.passed.contains(name),
        Judge::Qa | Judge::Person => false,
    };
    !criteria.is_empty() && criteria.iter().all(passes)
}

/// The base was looked at; a person who asked for something on a red one reads so.
pub(super) fn note(turn: &mut Turn<'_>, id: &RequestId, base: BaseStanding) {
    let word = match base.verdict {
        BaseVerdict::Green => "green",
        BaseVerdict::Red => "red",
        BaseVerdict::Unknown => "unknown",
    };
    turn.record(id, EventKind::Base, "runtime", word, json!(base));
    let is_red = base.verdict == BaseVerdict::Red;
    let values = json!({
        "commit": say::short(&base.commit),
        "branch": turn.policy.branch,
        "red": base.red.lines(),
        "stance": turn.policy.gates.red_base,
    });
    let Some(request) = turn.edit(id) else { return };
    request.work.base = Some(base);
    if is_red {
        say::in_room(turn, id, Voice::Team, Priority::Progress, "room.base_red", values);
    }
}
