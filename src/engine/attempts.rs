//! A run without a result, and what is done about it: wait where the agent's plan is used up, try again with
//! a word about what went wrong, then go about it another way, and then ask a person, who alone may skip it.

use serde_json::json;

use super::turn::Turn;
use super::{budget, handoff, say};
use crate::domain::config::AgentKind;
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::run::{Approach, FailKind, RunReport};
use crate::domain::time::Timestamp;

/// Times in a row that an agent's plan may turn out to be used up before a person is asked.
const WAITS: u32 = 50;
/// Seconds that are waited at least for a plan.
const SHORTEST_WAIT: u64 = 60;

/// A run has no result. `why` is what it was told about why its step is done again.
pub(super) fn failed(
    turn: &mut Turn<'_>,
    id: &RequestId,
    report: &RunReport,
    (kind, message, until): (FailKind, &str, Option<Timestamp>),
    why: &str,
) {
    match (kind, until) {
        (FailKind::Budget, _) if budget::ask_if_spent(turn, id, report.role, why) => return,
        // A limit that is over at once is as any trouble of the service.
        (FailKind::Quota | FailKind::RateLimit, Some(until))
            if kind == FailKind::Quota || until > turn.now.plus_seconds(SHORTEST_WAIT) =>
        {
            if wait(turn, id, report, until, why) {
                return;
            }
        }
        (_, _) => {}
    }
    let limit = turn.policy.limits.step_attempts;
    let Some(request) = turn.edit(id) else { return };
    request.spent.step_failures += 1;
    request.spent.last_failure = Some(kind);
    let attempt = request.spent.step_failures;
    let retry = kind.is_retryable() && attempt < limit;
    let next = if retry { approach(request) } else { Approach::Usual };
    turn.record(
        id,
        "attempt_failed",
        report.role.as_str(),
        &say::cut(message, 300),
        json!({ "kind": kind, "attempt": attempt, "next": retry.then_some(next) }),
    );
    let wait = if retry { backoff_seconds(kind, attempt) } else { 0 };
    let values = json!({
        "role": report.role,
        "step": handoff::step_word(report.step),
        "kind": kind.as_str(),
        "message": say::cut(message, 600),
        "attempt": attempt,
        "limit": limit,
        "retry": retry,
        "approach": next.as_str(),
        "retry_seconds": wait,
    });
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.failed_attempt", values);
    if retry {
        let at = (wait > 0).then(|| turn.now.plus_seconds(wait));
        let why = format!("The last attempt failed: {message}");
        handoff::delegate(turn, id, report.role, report.step, &why, at);
        return;
    }
    handoff::block(turn, id, code(kind), message, Vec::new());
}

/// The agent's plan is used up until an instant: the same attempt goes on then, and does not count. Whether
/// that is still worth it.
fn wait(
    turn: &mut Turn<'_>,
    id: &RequestId,
    report: &RunReport,
    until: Timestamp,
    why: &str,
) -> bool {
    let until = until.max(turn.now.plus_seconds(SHORTEST_WAIT));
    let Some(request) = turn.edit(id) else { return true };
    if request.spent.waits >= WAITS {
        return false;
    }
    request.spent.waits += 1;
    request.spent.forgiven_turns += 1;
    budget::rest(turn, report.agent_kind, until);
    turn.record(id, "waits", report.role.as_str(), "the agent's plan is used up", json!(until));
    tell_of_wait(turn, id, report.role, report.agent_kind, until);
    handoff::delegate(turn, id, report.role, report.step, why, Some(until));
    true
}

/// Tells the room that a role waits for its agent.
pub(super) fn tell_of_wait(
    turn: &mut Turn<'_>,
    id: &RequestId,
    role: Role,
    agent: AgentKind,
    until: Timestamp,
) {
    let values = json!({
        "role": role, "agent": agent.as_str(), "until": until.millis() / 1_000,
    });
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.waits", values);
}

/// How the step is gone about next.
pub(super) fn approach(request: &Request) -> Approach {
    // In a full conversation nothing can be said any more.
    match (request.spent.step_failures, request.spent.last_failure) {
        (0, _) => Approach::Usual,
        (_, Some(FailKind::Context)) => Approach::Different,
        (_, Some(kind)) if kind.is_of_the_service() => Approach::Usual,
        (1, _) => Approach::Hinted,
        (_, _) => Approach::Different,
    }
}

/// The catalog code of what a person is asked.
fn code(kind: FailKind) -> &'static str {
    match kind {
        FailKind::Auth => "agent_auth",
        FailKind::Quota => "agent_quota",
        FailKind::Budget => "run_budget",
        FailKind::Refusal | FailKind::BadRequest => "agent_refused",
        FailKind::NeedsRealAgent => "needs_real_agent",
        FailKind::RateLimit
        | FailKind::Overloaded
        | FailKind::Context
        | FailKind::MaxTurns
        | FailKind::Transport
        | FailKind::Stuck
        | FailKind::WallTimeout
        | FailKind::OutputCap
        | FailKind::Cancelled
        | FailKind::NoTerminal
        | FailKind::Crash
        | FailKind::Contract
        | FailKind::WroteFiles
        | FailKind::Other => "step_failed",
    }
}

/// How long to wait before the next attempt: longer where the cause is the provider's load.
fn backoff_seconds(kind: FailKind, attempt: u32) -> u64 {
    if kind.is_of_the_service() { 30 * (1 << attempt.min(6).saturating_sub(1)) } else { 0 }
}
