//! What follows a report on a request that has no workflow (`spec/teams.md` 7.6, order of steps).

use super::{RoutingFacts, RoutingSelection, SelectionSource, select};
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::routing::RoutingPolicy;
use crate::engine::parse::terms::Text;

/// Words that ask for the planner (`spec/teams.md` 7.6, gates).
const REENTRY: [&str; 7] = ["planner", "planning", "backlog", "기획", "계획", "구조화", "재정리"];

/// What is known about the request beside the report.
#[derive(Debug, Clone, Copy)]
pub struct ReportFacts<'a> {
    /// Intent of the request.
    pub intent: &'a str,
    /// Scope and body of the request.
    pub request_text: &'a str,
    /// Whether it belongs to a sprint.
    pub sprint_internal: bool,
    /// Whether it plans a sprint.
    pub sprint_planning: bool,
    /// Whether it reviews sourced candidates.
    pub sourcer_review: bool,
    /// The role that somebody would prefer.
    pub preferred: Option<Role>,
    /// Roles that already worked on it.
    pub visited: &'a [Role],
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportRoute {
    /// A role goes on; the selection says how it was found, `None` where a fixed rule names it.
    Next(Role, Option<Box<RoutingSelection>>),
    /// The workflow begins: research, then planning.
    StartWorkflow,
    /// The request is done.
    Terminal(TerminalReason),
}

/// Why nobody follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalReason {
    /// The planner finished planning the sprint.
    SprintPlanned,
    /// The review of sourced candidates is done.
    SourcerReviewed,
    /// A document is ready; waiting requests may go on.
    Verified,
    /// The role only proposed backlog.
    BacklogProposed,
    /// QA has seen the sprint request.
    QaVisited,
    /// Nobody fits.
    NobodyFits,
}

/// Routes a report on a request without workflow state.
#[must_use]
pub fn route_after_report(
    policy: &RoutingPolicy,
    facts: &ReportFacts<'_>,
    result: &RoleResult,
) -> ReportRoute {
    let routes = &policy.policy_routes;
    if facts.sprint_planning && result.role == Role::Planner {
        return ReportRoute::Terminal(TerminalReason::SprintPlanned);
    }
    if facts.sourcer_review {
        return ReportRoute::Terminal(TerminalReason::SourcerReviewed);
    }
    if result.role == Role::Orchestrator {
        return ReportRoute::StartWorkflow;
    }
    if routes.verification_result_terminal && result.proposals.verification_result().is_some() {
        return ReportRoute::Terminal(TerminalReason::Verified);
    }
    let proposes_backlog = result.proposals.has_content("backlog_item")
        || result.proposals.has_content("backlog_items");
    if routes.ignore_non_planner_backlog_proposals_for_routing
        && proposes_backlog
        && result.role != Role::Planner
        && !facts.sprint_internal
    {
        return ReportRoute::Terminal(TerminalReason::BacklogProposed);
    }
    let text = format!("{} {} {}", facts.request_text, result.summary, result.proposals.text());
    let selection = select(
        policy,
        &RoutingFacts {
            source: SelectionSource::RoleReport,
            current: result.role,
            preferred: facts.preferred,
            intent: facts.intent,
            text: &text,
            sprint_internal: facts.sprint_internal,
            planner_reentry: reentry_is_explicit(result),
        },
    );
    if let Some(role) = selection.selected_role {
        return ReportRoute::Next(role, Some(Box::new(selection)));
    }
    if !facts.sprint_internal || !routes.sprint_force_qa {
        return ReportRoute::Terminal(TerminalReason::NobodyFits);
    }
    if facts.visited.contains(&Role::Qa) || result.role == Role::Qa {
        return ReportRoute::Terminal(TerminalReason::QaVisited);
    }
    ReportRoute::Next(Role::Qa, None)
}

/// Whether a report asks for the planner: by naming it as the next owner, or in words.
#[must_use]
pub fn reentry_is_explicit(result: &RoleResult) -> bool {
    if result.proposals.suggested_owner() == Some(Role::Planner) {
        return true;
    }
    let reason = |key: &str| {
        let part = result.proposals.get(key).and_then(|part| part.get("reason"));
        crate::domain::lenient::text(part)
    };
    let words =
        format!("{} {} {}", result.summary, reason("suggested_next_step"), reason("routing"));
    let text = Text::new(&words);
    REENTRY.iter().any(|term| text.has(term))
}
