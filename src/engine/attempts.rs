//! A run without a result, and what is done about it: wait where the agent's plan is used up or its model's
//! server asks to, try again with a word about what went wrong, then go about it another way, and then ask a person, who alone may skip it.

use serde_json::json;

use super::progress::goes_back_for_words;
use super::turn::Turn;
use super::{budget, ending, gates, handoff, lifecycle, say};
use crate::domain::block::BlockCode;
use crate::domain::config::AgentKind;
use crate::domain::ids::RequestId;
use crate::domain::lifecycle::StepName;
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::request::{EventKind, Request};
use crate::domain::role::Role;
use crate::domain::run::{Approach, BadAnswer, FailKind, RunReport};
use crate::domain::time::Timestamp;

/// Times in a row that an agent's plan may turn out to be used up before a person is asked.
const WAITS: u32 = 50;
/// Times in a row that a disk may turn out to be full before that counts as an attempt.
const FULL_DISKS: u32 = 6;
/// Seconds that are waited at least for a plan.
const SHORTEST_WAIT: u64 = 60;

/// Why a run has no result, as it was reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failure<'a> {
    pub(super) kind: FailKind,
    pub(super) message: &'a str,
    /// When it can go on, where that was told.
    pub(super) until: Option<Timestamp>,
    /// What was answered instead of a result.
    pub(super) answer: Option<&'a BadAnswer>,
}

impl Failure<'_> {
    /// The reason with the beginning of what was answered, for people.
    fn whole(&self) -> String {
        match self.answer.map(|answer| answer.beginning.trim()) {
            Some(beginning) if !beginning.is_empty() => format!("{}: {beginning}", self.message),
            Some(_) | None => self.message.to_owned(),
        }
    }

    /// What the records and the room keep of the answer.
    fn fault(&self) -> &'static str {
        self.answer.map_or("", |answer| answer.fault.as_str())
    }
}

/// A run has no result. `why` is what it was told about why its step is done again.
pub(super) fn failed(
    turn: &mut Turn<'_>,
    id: &RequestId,
    report: &RunReport,
    failure: Failure<'_>,
    why: &str,
) {
    let Failure { kind, message, until, answer: _ } = failure;
    match (kind, until) {
        (FailKind::Budget, _) if gates::spending::ask_if_spent(turn, id, report, why) => {
            return;
        }
        (FailKind::Quota, Some(until)) if wait(turn, id, report, until, why) => return,
        (FailKind::RateLimit, _) => return rate_limited(turn, id, report, failure, why),
        (FailKind::Overloaded | FailKind::Transport, _)
            if wait_for_service(turn, id, report, failure, why) =>
        {
            return;
        }
        (FailKind::NoSpace, _) if wait_for_room(turn, id, report, message, why) => return,
        (_, _) => {}
    }
    let limit = turn.attempts(id);
    let is_retryable =
        kind.is_retryable() || kind == FailKind::Budget && budget::has_more(turn, id, report);
    let Some(request) = turn.edit(id) else { return };
    if kind != FailKind::NoSpace {
        request.work.spent.full_disks = 0;
    }
    request.work.spent.step_failures += 1;
    request.work.spent.last_failure = Some(kind);
    let attempt = request.work.spent.step_failures;
    let retry = is_retryable && attempt < limit;
    let next = if retry { approach(request) } else { Approach::Usual };
    let wait = if retry { backoff_seconds(kind, attempt) } else { 0 };
    let (role, step) = (report.role, report.step);
    FailedAttempt { role, step, failure, attempt, retry, next }.tell(turn, id, wait);
    if retry {
        let at = (wait > 0).then(|| turn.now.plus_seconds(wait));
        let why = format!("The last attempt failed: {message}");
        handoff::delegate(turn, id, report.role, report.step, &why, at);
        return;
    }
    if !goes_back_for_words(turn, id) {
        ending::block(turn, id, code(kind), &failure.whole(), Vec::new());
    }
}

/// What a role delivered turned out to be no result when it was to be committed: a failed attempt like one
/// without a result, of the step that delivered it.
pub(super) fn rejected(turn: &mut Turn<'_>, id: &RequestId, kind: FailKind, message: &str) {
    let Some((lifecycle, state)) = turn.stands(id) else { return };
    let solves = turn.request(id).is_some_and(|request| request.work.conflict.is_some());
    let again = if solves { lifecycle::solve_again } else { lifecycle::build_again };
    let state = again(&lifecycle, &state);
    let (step, role) = (state.step, state.phase_owner);
    if let Some(request) = turn.edit(id) {
        request.params.workflow = Some(state);
        request.route.current_role = Some(role);
    }
    let limit = turn.attempts(id);
    let Some(request) = turn.edit(id) else { return };
    request.work.spent.rejected += 1;
    let attempt = request.work.spent.rejected;
    request.work.spent.step_failures = attempt;
    request.work.spent.last_failure = Some(kind);
    let retry = attempt < limit;
    let next = if retry { approach(request) } else { Approach::Usual };
    let failure = Failure { kind, message, until: None, answer: None };
    FailedAttempt { role, step: Some(step), failure, attempt, retry, next }.tell(turn, id, 0);
    if retry {
        let why = format!("The last attempt failed: {message}");
        handoff::delegate(turn, id, role, Some(step), &why, None);
    } else if !goes_back_for_words(turn, id) {
        ending::block(turn, id, code(kind), message, Vec::new());
    }
}

/// A failed attempt, for the history and the room.
struct FailedAttempt<'a> {
    role: Role,
    step: Option<StepName>,
    failure: Failure<'a>,
    attempt: u32,
    retry: bool,
    next: Approach,
}

impl FailedAttempt<'_> {
    fn tell(&self, turn: &mut Turn<'_>, id: &RequestId, wait_seconds: u64) {
        let Self { role, step, failure, attempt, retry, next } = *self;
        let payload = json!({
            "kind": failure.kind,
            "attempt": attempt,
            "next": retry.then_some(next),
            "answer": failure.answer,
        });
        let said = say::cut(&failure.whole(), 300);
        turn.record(id, EventKind::AttemptFailed, role.as_str(), &said, payload);
        let beginning = failure.answer.map(|answer| answer.beginning.as_str());
        let values = json!({
            "role": role,
            "step": handoff::step_word(step),
            "kind": failure.kind.as_str(),
            "message": say::cut(failure.message, 600),
            "answer": failure.fault(),
            "beginning": beginning.unwrap_or_default(),
            "attempt": attempt,
            "limit": turn.attempts(id),
            "retry": retry,
            "approach": next.as_str(),
            "retry_seconds": wait_seconds,
        });
        say::in_room(turn, id, Voice::Team, Priority::Error, "room.failed_attempt", values);
    }
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
    if request.work.spent.waits >= WAITS {
        return false;
    }
    request.work.spent.waits += 1;
    request.work.spent.forgiven_turns += 1;
    budget::rest(turn, report.agent_kind, until, false);
    turn.record(
        id,
        EventKind::Waits,
        report.role.as_str(),
        "the agent's plan is used up",
        json!(until),
    );
    tell_of_wait(turn, id, report.role, report.agent_kind, until);
    handoff::delegate(turn, id, report.role, report.step, why, Some(until));
    true
}

/// A disk was full: the same attempt begins again when there is room, and does not count. Whether that is still worth
/// it.
fn wait_for_room(
    turn: &mut Turn<'_>,
    id: &RequestId,
    report: &RunReport,
    message: &str,
    why: &str,
) -> bool {
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return true };
    if request.work.spent.full_disks >= FULL_DISKS {
        return false;
    }
    request.work.spent.full_disks += 1;
    request.work.spent.forgiven_turns += 1;
    let times = request.work.spent.full_disks;
    // Whoever lets it begin looks for room first; this is for what needs more than that.
    let until = now.plus_seconds(backoff_seconds(FailKind::NoSpace, times));
    let said = say::cut(message, 300);
    turn.record(id, EventKind::Waits, report.role.as_str(), &said, json!(until));
    if times == 1 {
        let values = json!({ "role": report.role, "message": said });
        say::in_room(turn, id, Voice::Team, Priority::Error, "room.no_space", values);
    }
    handoff::delegate(turn, id, report.role, report.step, why, Some(until));
    true
}

/// The model's server refused because of too many requests: the same attempt goes on when the server says, or
/// a little later each time, and does not count. So often and so long as the limits say; then a person is asked.
fn rate_limited(
    turn: &mut Turn<'_>,
    id: &RequestId,
    report: &RunReport,
    failure: Failure<'_>,
    why: &str,
) {
    let (most, longest) =
        (turn.policy.limits.rate_limit_retries, turn.policy.limits.rate_limit_wait_seconds);
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return };
    let attempt = request.work.spent.rate_limits + 1;
    let wait = match failure.until {
        Some(until) => until.seconds_since(now).max(1),
        None => backoff_seconds(FailKind::RateLimit, attempt).min(longest),
    };
    if attempt > most || wait > longest {
        request.work.spent.last_failure = Some(FailKind::RateLimit);
        let payload = json!({
            "kind": FailKind::RateLimit, "attempt": attempt, "until": failure.until,
        });
        let summary = say::cut(failure.message, 300);
        turn.record(id, EventKind::AttemptFailed, report.role.as_str(), &summary, payload);
        ending::block(turn, id, BlockCode::RateLimited, failure.message, Vec::new());
        return;
    }
    request.work.spent.rate_limits = attempt;
    request.work.spent.forgiven_turns += 1;
    let until = now.plus_seconds(wait);
    budget::rest(turn, report.agent_kind, until, true);
    let summary = "the model's server answers: too many requests";
    turn.record(id, EventKind::Waits, report.role.as_str(), summary, json!(until));
    let values = json!({
        "role": report.role, "agent": report.agent_kind.as_str(), "until": until.millis() / 1_000,
        "asked": failure.until.is_some(), "at_work": false, "attempt": attempt, "limit": most,
    });
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.rate_limit", values);
    handoff::delegate(turn, id, report.role, report.step, why, Some(until));
}

/// How often a run is begun again whose model could not be reached; with the waits in between about an hour.
const OUTAGES: u32 = 8;

/// Seconds that are waited at most where the server says how long.
const LONGEST_OUTAGE: u64 = 3_600;

/// The model's server is down, or the way to it: the same attempt goes on a little later each time, and does not
/// count. Whether it is waited for: not for ever.
fn wait_for_service(
    turn: &mut Turn<'_>,
    id: &RequestId,
    report: &RunReport,
    failure: Failure<'_>,
    why: &str,
) -> bool {
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return true };
    let attempt = request.work.spent.outages + 1;
    if attempt > OUTAGES {
        return false;
    }
    request.work.spent.outages = attempt;
    request.work.spent.forgiven_turns += 1;
    let told = failure.until.map_or(0, |until| until.seconds_since(now));
    let wait = backoff_seconds(failure.kind, attempt).max(told.min(LONGEST_OUTAGE));
    let until = now.plus_seconds(wait);
    let message = say::cut(&failure.whole(), 300);
    turn.record(id, EventKind::Waits, report.role.as_str(), &message, json!(until));
    let values = json!({
        "role": report.role, "agent": report.agent_kind.as_str(), "message": message,
        "until": until.millis() / 1_000, "attempt": attempt, "limit": OUTAGES,
    });
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.outage", values);
    handoff::delegate(turn, id, report.role, report.step, why, Some(until));
    true
}

/// Tells the room that the model's server makes the agent at work wait, which tries again by itself.
pub(super) fn tell_of_rate_limit(
    turn: &mut Turn<'_>,
    id: &RequestId,
    role: Role,
    agent: AgentKind,
    until: Option<Timestamp>,
) {
    let Some(request) = turn.request(id) else { return };
    let values = json!({
        "role": role, "agent": agent.as_str(), "until": until.map_or(0, |at| at.millis() / 1_000),
        "asked": until.is_some(), "at_work": true, "attempt": request.work.spent.rate_limits + 1,
        "limit": turn.policy.limits.rate_limit_retries,
    });
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.rate_limit", values);
}

/// Tells the room that a role waits for its agent, with which another request has tried in vain.
pub(super) fn tell_of_wait(
    turn: &mut Turn<'_>,
    id: &RequestId,
    role: Role,
    agent: AgentKind,
    until: Timestamp,
) {
    let values = json!({
        "role": role, "agent": agent.as_str(), "until": until.millis() / 1_000,
        "rate_limited": budget::is_rate_limited(turn, agent),
    });
    say::in_room(turn, id, Voice::Team, Priority::Error, "room.waits", values);
}

/// How the step is gone about next.
pub(super) fn approach(request: &Request) -> Approach {
    // In a full conversation nothing can be said any more.
    match (request.work.spent.step_failures, request.work.spent.last_failure) {
        (0, _) => Approach::Usual,
        (_, Some(FailKind::Context)) => Approach::Different,
        (_, Some(kind)) if kind.is_of_the_service() => Approach::Usual,
        (1, _) => Approach::Hinted,
        (_, _) => Approach::Different,
    }
}

/// The catalog code of what a person is asked.
fn code(kind: FailKind) -> BlockCode {
    match kind {
        FailKind::Auth => BlockCode::AgentAuth,
        FailKind::Quota => BlockCode::AgentQuota,
        FailKind::Budget => BlockCode::RunBudget,
        FailKind::Refusal | FailKind::BadRequest => BlockCode::AgentRefused,
        FailKind::NeedsRealAgent => BlockCode::NeedsRealAgent,
        FailKind::NoSandbox => BlockCode::NoSandbox,
        FailKind::NoChange => BlockCode::NoChange,
        FailKind::UnsolvedConflict => BlockCode::UnsolvedConflict,
        FailKind::BeyondConflict => BlockCode::BeyondConflict,
        FailKind::RateLimit => BlockCode::RateLimited,
        FailKind::Overloaded
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
        | FailKind::NoSpace
        | FailKind::Other => BlockCode::StepFailed,
    }
}

/// How long to wait before the next attempt: longer each time where the cause is the provider's load, or a disk.
fn backoff_seconds(kind: FailKind, attempt: u32) -> u64 {
    let first = if kind == FailKind::NoSpace {
        5
    } else if kind.is_of_the_service() {
        30
    } else {
        0
    };
    first * (1 << attempt.min(6).saturating_sub(1))
}
