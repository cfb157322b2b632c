//! Requests that the sprint or the backlog makes for itself: research, planning, reviews, closing words.

use serde_json::{Value, json};

use super::{closing, initial, running, sourcing};
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::request::{EventKind, Params, Request, RequestStatus};
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::sprint::{Duty, DutyDetails};
use crate::engine::handoff;
use crate::engine::turn::Turn;

/// What a duty is about.
pub(super) struct Ask<'a> {
    pub(super) duty: DutyDetails,
    pub(super) role: Role,
    pub(super) sprint: Option<&'a SprintId>,
    /// One line for people and for the queue.
    pub(super) scope: String,
}

/// Makes the request and hands it to its role.
pub(super) fn ask(turn: &mut Turn<'_>, ask: Ask<'_>) -> RequestId {
    let id = create(turn, &ask);
    handoff::delegate(turn, &id, ask.role, None, &ask.scope, None);
    id
}

/// Makes the request.
pub(super) fn create(turn: &mut Turn<'_>, ask: &Ask<'_>) -> RequestId {
    let id = turn.ids.request(&turn.today());
    let language = ask.sprint.and_then(|id| turn.sprint(id)).map(|sprint| sprint.language);
    let duty = ask.duty.duty();
    let kind = match duty {
        Duty::ResearchPrepass | Duty::Planning | Duty::OngoingReview => "sprint_internal",
        Duty::ClosingReport => "sprint_closeout_report",
        Duty::Sourcing | Duty::SourcerReview => "sourcer_review",
        Duty::BlockedReview => "blocked_backlog_review",
    };
    let sprint_phase = match duty {
        Duty::ResearchPrepass | Duty::Planning => Some("initial"),
        Duty::OngoingReview => Some("ongoing_review"),
        Duty::ClosingReport | Duty::Sourcing | Duty::SourcerReview | Duty::BlockedReview => None,
    };
    let now = turn.now;
    let request = Request {
        request_id: id.clone(),
        intent: "plan".to_owned(),
        scope: ask.scope.clone(),
        body: ask.scope.clone(),
        params: Params {
            kind: Some(kind.to_owned()),
            duty: Some(ask.duty.clone()),
            sprint_phase: sprint_phase.map(str::to_owned),
            ..Params::default()
        },
        sprint_id: ask.sprint.cloned(),
        created_at: now,
        updated_at: now,
        language: language.unwrap_or(turn.policy.language),
        ..Request::default()
    };
    turn.create(request);
    turn.record(&id, EventKind::Created, "runtime", duty.as_str(), Value::Null);
    id
}

/// A role did its duty; what follows from it, follows when the decision closes.
pub(in crate::engine) fn result(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) {
    let status =
        if result.is_negative() { RequestStatus::Failed } else { RequestStatus::Completed };
    handoff::end(turn, id, status, "sprint.duty", json!({}));
}

/// What a duty came to: its result, or why there is none.
pub(super) fn outcome(request: &Request) -> Result<&RoleResult, String> {
    let said = request.result.as_ref().map(|result| {
        if result.error.trim().is_empty() { result.summary.clone() } else { result.error.clone() }
    });
    match (request.status, &request.result) {
        (RequestStatus::Completed, Some(result)) => Ok(result),
        (RequestStatus::Cancelled, _) => Err("it was cancelled".to_owned()),
        (_, _) => Err(request
            .blocked
            .as_ref()
            .map(|blocked| blocked.detail.clone())
            .filter(|detail| !detail.is_empty())
            .or(said)
            .unwrap_or_else(|| "no result came".to_owned())),
    }
}

/// Brings what waits for a duty in line with it. Nobody waits for a person in it: where a role is stuck,
/// the sprint has its own way on.
pub(super) fn follow(turn: &mut Turn<'_>, request: &Request, duty: Duty) {
    let over = request.status.is_terminal() || request.status == RequestStatus::Blocked;
    if !over {
        return;
    }
    if request.status == RequestStatus::Blocked {
        handoff::end(turn, &request.request_id, RequestStatus::Failed, "sprint.duty", json!({}));
    }
    match duty {
        Duty::ResearchPrepass => initial::researched(turn, request),
        Duty::Planning => initial::planned(turn, request),
        Duty::OngoingReview => running::reviewed(turn, request),
        Duty::ClosingReport => closing::worded(turn, request),
        Duty::Sourcing => sourcing::sourced(turn, request),
        Duty::SourcerReview => sourcing::reviewed(turn, request),
        Duty::BlockedReview => sourcing::blocked_reviewed(turn, request),
    }
}

/// Takes the sprint that waits for this request; none where nobody does any more.
pub(super) fn awaited_by(turn: &mut Turn<'_>, request: &Request) -> Option<SprintId> {
    let id = request.sprint_id.clone()?;
    let sprint = turn.sprint(&id)?;
    if sprint.planning_request_id.as_ref() != Some(&request.request_id) {
        return None;
    }
    turn.edit_sprint(&id)?.planning_request_id = None;
    Some(id)
}
