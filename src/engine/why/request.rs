//! What a request waits for.

use serde_json::json;

use crate::domain::effect::EffectKind;
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{Content, Outgoing};
use crate::domain::policy::Policy;
use crate::domain::request::{Request, RequestStatus};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::gates::by_guard;
use crate::engine::say::CatalogText;
use crate::engine::{plan_is_full, say, standing, train};

/// The line for a request. `request` is the record, open or ended.
#[must_use]
pub fn why(state: &State, policy: &Policy, request: &Request, now: Timestamp) -> Content {
    let (key, values) = reason(state, policy, request, now);
    let about = |it: &&Outgoing| it.request_id.as_ref() == Some(&request.request_id);
    let refused = standing::refused(state).filter(about);
    if refused.clone().next().is_none() {
        return say::content(key, policy.language, values);
    }
    let values = json!({
        "line": { "key": key, "values": values },
        "refused": standing::refusals(state, refused),
    });
    say::content("why.refused", policy.language, values)
}

pub(super) fn reason(
    state: &State,
    policy: &Policy,
    request: &Request,
    now: Timestamp,
) -> CatalogText {
    let id = &request.request_id;
    let plain = json!({ "request_id": id.as_str(), "status": request.status });
    match request.status {
        RequestStatus::Completed
        | RequestStatus::Committed
        | RequestStatus::Failed
        | RequestStatus::Cancelled => {
            let waiting = state.outgoing.values().any(|o| o.request_id.as_ref() == Some(id));
            (if waiting { "why.ended_unsent" } else { "why.ended" }, plain)
        }
        RequestStatus::Blocked => {
            let blocked = request.blocked.as_ref();
            let values = json!({
                "request_id": id.as_str(),
                "code": blocked.map_or("", |blocked| blocked.code.word()),
                "detail": blocked.map(|it| say::cut(&it.detail, DETAIL)).unwrap_or_default(),
                "who": request.conversation.reply_route.author_name,
                "since": blocked.map(|it| shown(policy, it.since)),
                "paused_by": blocked.and_then(|it| it.paused_by.as_deref()),
                "has_given_up": request.has_given_up(),
            });
            ("why.blocked", values)
        }
        RequestStatus::Queued | RequestStatus::Delegated => {
            moving(state, policy, id, now).unwrap_or(("why.nothing", plain))
        }
    }
}

/// Characters of what stopped a request that are said.
const DETAIL: usize = 400;

/// An instant as the clock of the workspace shows it, and which that is.
pub(super) fn shown(policy: &Policy, at: Timestamp) -> String {
    at.format_in(policy.sprint.zone.0, "%Y-%m-%d %H:%M %Z")
}

fn moving(state: &State, policy: &Policy, id: &RequestId, now: Timestamp) -> Option<CatalogText> {
    if let Some(run) = state.runs.values().find(|run| run.request_id == *id) {
        let values = json!({
            "request_id": id.as_str(),
            "role": run.role,
            "step": crate::engine::handoff::step_word(run.step),
            "seconds": now.seconds_since(run.started_at),
        });
        return Some(("why.running", values));
    }
    let lands = |kind: &EffectKind| kind.lands().iter().any(|car| car.request_id == *id);
    let effects = || state.effects.values();
    if let Some(effect) = effects().find(|it| it.waits_for.is_some() && lands(&it.kind)) {
        let (name, waits_for) = (effect.kind.name(), &effect.waits_for);
        let values = json!({ "request_id": id.as_str(), "effect": name, "waits_for": waits_for });
        return Some(("why.effect", values));
    }
    let effect = effects().find(|effect| effect.kind.request_id() == Some(id));
    let waits_for = effect.and_then(|effect| effect.waits_for.as_ref());
    let in_line = effect.filter(|it| standing::waits_for_check_run(state, policy, it));
    let in_line = in_line.map(|_| policy.limits.check_runs);
    let effect = effect.map(|effect| effect.kind.name());
    let place = train::place(state, id);
    if let Some(place) = place.filter(|place| *place > 1 || effect.is_none()) {
        let values = json!({
            "request_id": id.as_str(), "place": place, "doing": effect, "in_line": in_line,
            "clashes": state.requests.get(id).is_some_and(|it| it.work.clashes_with.is_some()),
        });
        return Some(("why.landing", values));
    }
    if let Some(effect) = effect {
        let values = json!({
            "request_id": id.as_str(), "effect": effect, "waits_for": waits_for, "in_line": in_line,
        });
        return Some(("why.effect", values));
    }
    if let Some(gate) = state.gates.values().find(|gate| gate.request_id == *id) {
        let values = json!({
            "request_id": id.as_str(), "commit": say::short(&gate.commit), "kind": gate.kind.as_str(),
            "findings": by_guard(&gate.findings),
            "since": shown(policy, gate.created_at),
            "until": gate.expires_at.map(|at| shown(policy, at)),
        });
        return Some(("why.gate", values));
    }
    let envelope = state.envelopes.values().find(|e| e.envelope.request_id == *id)?;
    let role = envelope.target_role;
    let at = envelope.not_before.filter(|at| *at > now);
    let (key, at) = match at {
        Some(at) => ("why.retry_at", shown(policy, at)),
        None if !policy.serves.contains(&role) => ("why.not_served", String::new()),
        None => ("why.queued", String::new()),
    };
    let full = policy.agents.get(&role).and_then(|agent| {
        let limit = plan_is_full(state, policy, *agent, now)?;
        Some(json!({ "agent": agent, "runs": limit.runs }))
    });
    let rests =
        state.spending.resting.iter().find(|(_, until)| Some(**until) == envelope.not_before);
    let values = json!({
        "request_id": id.as_str(), "role": role, "at": at, "full": full,
        "runs": Some(state.runs.len()).filter(|runs| *runs >= policy.limits.parallel_runs),
        "rests": rests.is_some(),
        "rate_limited": rests.is_some_and(|(agent, _)| state.spending.rate_limited.contains(agent)),
        "agent": rests.map_or("", |(agent, _)| agent.as_str()),
    });
    Some((key, values))
}
