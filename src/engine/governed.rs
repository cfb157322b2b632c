//! Reports on requests that have no workflow, such as those of older workspaces: the governed routing
//! of `spec/teams.md` 7.6 says who goes on.

use serde_json::{Value, json};

use super::routing::{
    ReportFacts, ReportRoute, RoutingSelection, TerminalReason, route_after_report,
};
use super::turn::Turn;
use super::{closeout, handoff, intake, reports};
use crate::domain::ids::RequestId;
use crate::domain::request::{Request, RequestStatus};
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::workflow::{Step, WorkflowState};

/// Applies a result of a role that is not the orchestrator's.
pub(super) fn result(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) {
    let Some(request) = turn.request(id).cloned() else {
        return;
    };
    let kind = request.params.kind.as_deref().unwrap_or_default();
    let words = format!("{} {}", request.scope, request.body);
    let facts = ReportFacts {
        intent: &request.intent,
        request_text: &words,
        sprint_internal: request.sprint_id.is_some(),
        sprint_planning: request.sprint_id.is_some()
            && request.params.other.get("sprint_phase").and_then(Value::as_str) == Some("initial"),
        sourcer_review: kind == "sourcer_review",
        preferred: result.proposals.suggested_owner(),
        visited: &request.visited_roles,
    };
    let route = route_after_report(&turn.policy.routing, &facts, result);
    let next = match &route {
        ReportRoute::Next(role, _) => Some(*role),
        ReportRoute::StartWorkflow => Some(Role::Research),
        ReportRoute::Terminal(_) => None,
    };
    let next = next.filter(|_| !result.is_negative());
    reports::room_report(turn, id, result.role, "", result, next, Vec::new());
    if reports::stopped(turn, id, result) {
        return;
    }
    match route {
        ReportRoute::Next(role, selection) => {
            if let Some(request) = turn.edit(id) {
                request.routing_context = context(role, selection.as_deref());
            }
            handoff::delegate(turn, id, role, None, &result.summary, None);
        }
        ReportRoute::StartWorkflow => reports::start_workflow(turn, id, result),
        ReportRoute::Terminal(reason) => finish(turn, id, reason, result, &request.visited_roles),
    }
}

/// Nobody follows. What was built still has to be proven before it counts as done.
fn finish(
    turn: &mut Turn<'_>,
    id: &RequestId,
    reason: TerminalReason,
    result: &RoleResult,
    visited: &[Role],
) {
    match reason {
        TerminalReason::Verified => resume_waiting(turn, id, result),
        TerminalReason::SprintPlanned
        | TerminalReason::SourcerReviewed
        | TerminalReason::BacklogProposed
        | TerminalReason::QaVisited
        | TerminalReason::NobodyFits => {}
    }
    if visited.contains(&Role::Developer) {
        let state = WorkflowState::initial(Step::Closeout).within(&turn.policy.limits);
        if let Some(request) = turn.edit(id) {
            request.params.workflow = Some(state);
        }
        closeout::commit_then(turn, id, Role::VersionController);
    } else {
        reports::answered(turn, id, &result.summary);
    }
}

/// What is kept about the choice (`routing_context` of the record).
fn context(role: Role, selection: Option<&RoutingSelection>) -> Value {
    let Some(selection) = selection else {
        return json!({
            "selected_role": role,
            "selection_source": "role_report",
            "reason": "policy:sprint_force_qa",
        });
    };
    let mut context = json!(selection);
    if selection.overrides_preferred() {
        context["override_reason"] = json!("another role fits the words better");
    }
    context
}

/// A document was reported as ready: requests that wait for it go on (`spec/teams.md` 5.9, W33).
pub(super) fn resume_waiting(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) {
    let Some(found) = result.proposals.verification_result() else {
        return;
    };
    if !found.ready_for_planning || found.location.is_empty() {
        return;
    }
    let Some(asked) = turn.request(id) else {
        return;
    };
    let route = asked.reply_route.clone();
    let waiting =
        |request: &Request| request.status == RequestStatus::Blocked && request.request_id != *id;
    let state = turn.before();
    let mut ids: Vec<RequestId> = found
        .related_request_ids
        .iter()
        .filter_map(|text| RequestId::parse(text).ok())
        .filter(|id| state.requests.get(id).is_some_and(waiting))
        .collect();
    if ids.is_empty() {
        let same: Vec<_> = state
            .requests
            .values()
            .filter(|request| waiting(request))
            .filter(|request| {
                request.reply_route.author_id == route.author_id
                    && request.reply_route.channel_id == route.channel_id
            })
            .filter(|request| {
                request.blocked.as_ref().is_some_and(|blocked| {
                    blocked.detail.contains(&found.location)
                        || blocked.required_inputs.iter().any(|i| i.contains(&found.location))
                })
            })
            .map(|request| request.request_id.clone())
            .collect();
        if same.len() == 1 {
            ids = same;
        }
    }
    for other in ids {
        if let Some(request) = turn.edit(&other) {
            request
                .params
                .other
                .insert("verified_source_artifact".to_owned(), json!(found.location));
            if !request.artifacts.contains(&found.location) {
                request.artifacts.push(found.location.clone());
            }
        }
        turn.record(&other, "resumed", "orchestrator", &found.location, Value::Null);
        intake::resume(turn, &other, "planning_resume");
    }
}
