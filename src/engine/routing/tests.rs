//! The rows of `spec/teams.md` 14.5 about requests without a workflow.

use serde_json::json;

use super::*;
use crate::engine::contract::normalize;

fn facts<'a>(text: &'a str, visited: &'a [Role]) -> ReportFacts<'a> {
    ReportFacts {
        intent: "route",
        request_text: text,
        sprint_internal: false,
        sprint_planning: false,
        sourcer_review: false,
        preferred: None,
        visited,
    }
}

fn routed(facts: &ReportFacts<'_>, role: Role, result: serde_json::Value) -> ReportRoute {
    route_after_report(&RoutingPolicy::default(), facts, &normalize(&result, role, "r"))
}

#[test]
fn w28_a_planner_without_evidence_ends_the_request() {
    let route = routed(&facts("hello there", &[]), Role::Planner, json!({}));
    assert_eq!(route, ReportRoute::Terminal(TerminalReason::NobodyFits));
}

#[test]
fn w29_a_plan_to_implement_goes_to_the_developer() {
    let route = routed(&facts("implement the fix in code", &[]), Role::Planner, json!({}));
    let ReportRoute::Next(role, Some(selection)) = route else { panic!("{route:?}") };
    assert_eq!((role, selection.score_total), (Role::Developer, 96));
}

#[test]
fn w30_a_boundary_term_excludes_the_best() {
    let text = "implement backlog persistence in code";
    let route = routed(&facts(text, &[]), Role::Planner, json!({"summary": "verify it"}));
    let ReportRoute::Next(role, Some(selection)) = route else { panic!("{route:?}") };
    assert_ne!(role, Role::Developer);
    let developer = selection.candidate_summary.last().unwrap();
    assert_eq!((developer.role, developer.excluded_by_boundary), (Role::Developer, true));
}

#[test]
fn w31_backlog_of_others_ends_the_request() {
    let result = json!({"proposals": {"backlog_item": {"title": "later"}}});
    let route = routed(&facts("x", &[]), Role::Developer, result);
    assert_eq!(route, ReportRoute::Terminal(TerminalReason::BacklogProposed));
}

#[test]
fn w32_a_sprint_request_never_ends_without_qa() {
    let mut sprint = facts("x", &[]);
    sprint.sprint_internal = true;
    sprint.intent = "";
    let route = routed(&sprint, Role::Planner, json!({"summary": "nothing to say"}));
    assert_eq!(route, ReportRoute::Next(Role::Qa, None));
    let visited = [Role::Qa];
    sprint.visited = &visited;
    let route = routed(&sprint, Role::Qa, json!({"summary": "nothing to say"}));
    assert_eq!(route, ReportRoute::Terminal(TerminalReason::QaVisited));
}

#[test]
fn w33_a_ready_document_ends_the_request_that_made_it() {
    let result = json!({"proposals": {
        "verification_result": {"ready_for_planning": true, "location": "docs/a.md"},
    }});
    let route = routed(&facts("x", &[]), Role::Developer, result);
    assert_eq!(route, ReportRoute::Terminal(TerminalReason::Verified));
}

#[test]
fn i29_a_plain_orchestrator_result_begins_the_workflow() {
    let route = routed(&facts("x", &[]), Role::Orchestrator, json!({}));
    assert_eq!(route, ReportRoute::StartWorkflow);
}

#[test]
fn i22_a_resumed_request_goes_to_the_planner() {
    let selection = select(
        &RoutingPolicy::default(),
        &RoutingFacts {
            source: SelectionSource::PlanningResume,
            current: Role::Developer,
            preferred: None,
            intent: "route",
            text: "the document is attached",
            sprint_internal: false,
            planner_reentry: false,
        },
    );
    assert_eq!(selection.selected_role, Some(Role::Planner));
    assert_eq!(selection.routing_phase, RoutingPhase::Resume);
}

#[test]
fn the_planner_is_not_drawn_by_the_intent_that_all_share_13a_16() {
    let result = json!({"summary": "bug fix; regression tests pass, verify it"});
    let route = routed(&facts("bug fix", &[]), Role::Developer, result);
    let ReportRoute::Next(role, _) = route else { panic!("{route:?}") };
    assert_eq!(role, Role::Qa);
}

#[test]
fn a_policy_file_changes_what_it_names() {
    let policy: RoutingPolicy = serde_json::from_value(json!({
        "version": 9,
        "policy_routes": {"sprint_force_qa": false},
        "weights": {"phase_fit": 1},
    }))
    .unwrap();
    assert!(!policy.policy_routes.sprint_force_qa);
    assert!(policy.policy_routes.verification_result_terminal);
    assert_eq!((policy.weights.phase_fit, policy.weights.owned_intent), (1, 60));
    assert_eq!(policy.roles.len(), 7);
}
