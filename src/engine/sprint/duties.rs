//! Requests that the sprint or the backlog makes for itself: research, planning, reviews, closing words.

use serde_json::{Value, json};

use super::position;
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::lifecycle::Step;
use crate::domain::request::{EventKind, Params, Request, RequestConversation, RequestStatus};
use crate::domain::result::RoleResult;
use crate::domain::sprint::{Duty, DutyDetails};
use crate::engine::turn::Turn;
use crate::engine::{ending, handoff};

/// What a duty is about.
pub(super) struct DutyRequest<'a> {
    pub(super) duty: DutyDetails,
    /// The step that it is.
    pub(super) step: &'a Step,
    pub(super) sprint: Option<&'a SprintId>,
    /// One line for people and for the queue.
    pub(super) scope: String,
}

/// Makes the request and hands it to its role. The sprint waits for it.
pub(super) fn ask(turn: &mut Turn<'_>, ask: DutyRequest<'_>) -> RequestId {
    let id = create(turn, ask.duty, ask.sprint, ask.scope.clone());
    handoff::delegate(turn, &id, ask.step.role, None, &ask.scope, None);
    if let Some(sprint) = ask.sprint.and_then(|sprint| turn.edit_sprint(sprint)) {
        sprint.planning_request_id = Some(id.clone());
    }
    id
}

/// Makes the request; nobody has it yet.
pub(super) fn create(
    turn: &mut Turn<'_>,
    details: DutyDetails,
    sprint: Option<&SprintId>,
    scope: String,
) -> RequestId {
    let id = turn.ids.request(&turn.today());
    let language = sprint.and_then(|id| turn.sprint(id)).map(|sprint| sprint.language);
    let duty = details.duty();
    let kind = match duty {
        Duty::ResearchPrepass | Duty::Planning | Duty::PlanReview | Duty::OngoingReview => {
            "sprint_internal"
        }
        Duty::ClosingReport => "sprint_closeout_report",
        Duty::Sourcing | Duty::SourcerReview => "sourcer_review",
        Duty::BlockedReview => "blocked_backlog_review",
    };
    let sprint_phase = match duty {
        Duty::ResearchPrepass | Duty::Planning | Duty::PlanReview => Some("initial"),
        Duty::OngoingReview => Some("ongoing_review"),
        Duty::ClosingReport | Duty::Sourcing | Duty::SourcerReview | Duty::BlockedReview => None,
    };
    let now = turn.now;
    let request = Request {
        request_id: id.clone(),
        intent: "plan".to_owned(),
        body: scope.clone(),
        scope,
        params: Params {
            kind: Some(kind.to_owned()),
            duty: Some(details),
            sprint_phase: sprint_phase.map(str::to_owned),
            ..Params::default()
        },
        sprint_id: sprint.cloned(),
        created_at: now,
        updated_at: now,
        conversation: RequestConversation {
            language: language.unwrap_or(turn.policy.language),
            ..RequestConversation::default()
        },
        ..Request::default()
    };
    turn.create(request);
    turn.record(&id, EventKind::Created, "runtime", duty.as_str(), Value::Null);
    id
}

/// A role did its duty; what follows from it, follows when the decision closes.
pub(in crate::engine) fn result(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) {
    if let Some(request) = turn.request(id).filter(|it| it.params.has_unread())
        && let Some(role) = request.route.current_role
    {
        // Somebody wrote to it meanwhile, and whoever does it has not read that.
        let scope = request.scope.clone();
        return handoff::delegate(turn, id, role, None, &scope, None);
    }
    let status =
        if result.is_negative() { RequestStatus::Failed } else { RequestStatus::Completed };
    ending::end(turn, id, status, "sprint.duty", json!({}));
}

/// What a duty came to: its result, or why there is none.
pub(super) fn outcome(request: &Request) -> Result<&RoleResult, String> {
    let said = request.work.result.as_ref().map(|result| {
        if result.error.trim().is_empty() { result.summary.clone() } else { result.error.clone() }
    });
    match (request.status, &request.work.result) {
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

/// Takes the sprint that waits for this request; none where nobody does any more.
pub(super) fn awaited_by(turn: &mut Turn<'_>, request: &Request) -> Option<SprintId> {
    let id = request.sprint_id.clone()?;
    // In older records the request tells at which step the sprint stands.
    position::step(turn, &id)?;
    let sprint = turn.sprint(&id)?;
    if sprint.planning_request_id.as_ref() != Some(&request.request_id) {
        return None;
    }
    turn.edit_sprint(&id)?.planning_request_id = None;
    Some(id)
}
