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

/// A run has no result.
pub(super) fn failed(
    turn: &mut Turn<'_>,
    id: &RequestId,
    report: &RunReport,
    kind: FailKind,
    message: &str,
    until: Option<Timestamp>,
) {
    match (kind, until) {
        (FailKind::Budget, _) if budget::ask_if_spent(turn, id, report.role) => return,
        (FailKind::Quota | FailKind::RateLimit, Some(until)) => {
            if wait(turn, id, report, until) {
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
        let why = format!("The last attempt failed: {message}\n{}", advice(kind, next));
        handoff::delegate(turn, id, report.role, report.step, why.trim(), at);
        return;
    }
    handoff::block(turn, id, code(kind), message, Vec::new());
}

/// The agent's plan is used up until an instant: the same attempt goes on then, and does not count. Whether
/// that is still worth it.
fn wait(turn: &mut Turn<'_>, id: &RequestId, report: &RunReport, until: Timestamp) -> bool {
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
    handoff::delegate(turn, id, report.role, report.step, "", Some(until));
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
        (_, Some(FailKind::RateLimit | FailKind::Overloaded | FailKind::Transport)) => {
            Approach::Usual
        }
        (1, _) => Approach::Hinted,
        (_, _) => Approach::Different,
    }
}

/// What the role is told beside the failure. English, as all that roles are told.
fn advice(kind: FailKind, approach: Approach) -> &'static str {
    match (approach, kind) {
        (Approach::Usual, _) => "",
        (Approach::Different, FailKind::Context) => {
            "Your conversation was full. You begin a new one: read only what you need, and in parts."
        }
        (Approach::Different, _) => {
            "It has failed more than once in the same way. Choose another way than before, and begin with \
             the smallest step that shows whether it works. If nothing can work, end your step as blocked \
             and say what would help."
        }
        (Approach::Hinted, FailKind::Stuck) => {
            "You went in circles or stood still. Do not repeat a command that has already told you its answer; \
             take the next smaller step, and end your step when you have enough."
        }
        (Approach::Hinted, FailKind::WallTimeout) => {
            "It took too long. Do less: leave out long commands, and end your step with what you have."
        }
        (Approach::Hinted, FailKind::OutputCap) => {
            "You printed too much. Look at parts of files, and send long output to a file."
        }
        (Approach::Hinted, FailKind::MaxTurns) => {
            "You ran out of turns or words. Take the shortest way to an answer."
        }
        (Approach::Hinted, FailKind::Contract) => {
            "Your answer did not follow the form that is asked for below. Answer in exactly that form."
        }
        (Approach::Hinted, FailKind::WroteFiles) => "You may read, and write nothing.",
        (
            Approach::Hinted,
            FailKind::Auth
            | FailKind::Quota
            | FailKind::RateLimit
            | FailKind::Overloaded
            | FailKind::Context
            | FailKind::BadRequest
            | FailKind::Refusal
            | FailKind::Budget
            | FailKind::Transport
            | FailKind::Cancelled
            | FailKind::NoTerminal
            | FailKind::Crash
            | FailKind::NeedsRealAgent
            | FailKind::Other,
        ) => "Look at what may have caused it before you do the same again.",
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
    let base = match kind {
        FailKind::RateLimit | FailKind::Overloaded | FailKind::Transport => 30,
        FailKind::Auth
        | FailKind::Quota
        | FailKind::Context
        | FailKind::BadRequest
        | FailKind::Refusal
        | FailKind::MaxTurns
        | FailKind::Budget
        | FailKind::Stuck
        | FailKind::WallTimeout
        | FailKind::OutputCap
        | FailKind::Cancelled
        | FailKind::NoTerminal
        | FailKind::Crash
        | FailKind::Contract
        | FailKind::WroteFiles
        | FailKind::NeedsRealAgent
        | FailKind::Other => return 0,
    };
    base * (1 << attempt.min(6).saturating_sub(1))
}
