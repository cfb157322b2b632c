//! Requests without a workflow, such as those of older workspaces (`spec/teams.md` 14.5, W28–W33).

use serde_json::{Value, json};

use super::scenes::{report, work_until};
use super::world::{Todo, World, policy, result};
use crate::domain::change::Change;
use crate::domain::event::Event;
use crate::domain::ids::RequestId;
use crate::domain::request::{Blocked, Request, RequestStatus};
use crate::domain::result::RoleResult;
use crate::domain::role::Role;
use crate::domain::run::RunOutcome;
use crate::domain::time::Timestamp;

/// A world in which `role` has a request of an older workspace, and the envelope for it.
fn older(role: Role, request: Request) -> (World, RequestId) {
    let mut world = World::new(policy());
    let request = Request {
        request_id: RequestId::parse("20250101-0000000a").expect("an id"),
        status: RequestStatus::Delegated,
        current_role: Some(role),
        ..request
    };
    let id = request.request_id.clone();
    world.state.apply(&Change::Request(Box::new(request)));
    world.submit(Event::Started { announce: false, serves: Vec::new() });
    (world, id)
}

fn says(world: &mut World, role: Role, summary: &str, proposals: Value) {
    let todo = work_until(world, |_, _| true);
    let said = RoleResult { summary: summary.to_owned(), ..result(role, proposals) };
    report(world, &todo, RunOutcome::Result(Box::new(said)));
}

fn asked(words: &str) -> Request {
    Request { scope: words.to_owned(), ..Request::default() }
}

#[test]
fn w28_a_planner_without_evidence_completes_the_request() {
    let (mut world, id) = older(Role::Planner, asked("hello there"));
    says(&mut world, Role::Planner, "", json!({}));
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
}

#[test]
fn w29_a_plan_to_implement_goes_to_the_developer_and_is_proven_at_the_end() {
    let (mut world, id) = older(Role::Planner, asked("implement the fix in code"));
    says(&mut world, Role::Planner, "", json!({}));
    let request = world.request(&id);
    assert_eq!(request.current_role, Some(Role::Developer));
    let context = &request.routing_context;
    assert_eq!(context["selected_role"], "developer");
    assert_eq!(context["score_total"], 96);
    assert_eq!(context["selection_source"], "role_report");
    assert_eq!(context["candidate_summary"][0]["role"], "developer");
    // What a developer built is committed by the runtime, checked, and only then done.
    let backlog = json!({ "backlog_item": { "title": "later" } });
    says(&mut world, Role::Developer, "built", backlog);
    world.finish_well();
    assert_eq!(world.request(&id).status, RequestStatus::Committed);
    assert!(world.said.contains(&"room.checks_passed".to_owned()));
}

#[test]
fn w30_a_boundary_term_excludes_the_best() {
    let (mut world, id) = older(Role::Planner, asked("implement backlog persistence in code"));
    says(&mut world, Role::Planner, "verify it", json!({}));
    let request = world.request(&id);
    assert_ne!(request.current_role, Some(Role::Developer));
    let summary = request.routing_context["candidate_summary"].as_array().cloned();
    let last = summary.and_then(|all| all.last().cloned()).expect("candidates");
    assert_eq!((&last["role"], &last["excluded_by_boundary"]), (&json!("developer"), &json!(true)));
}

#[test]
fn w31_backlog_of_others_completes_the_request() {
    let (mut world, id) = older(Role::Architect, asked("x"));
    let backlog = json!({ "backlog_item": { "title": "later" } });
    says(&mut world, Role::Architect, "found something", backlog);
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
}

#[test]
fn w32_a_sprint_request_passes_qa_once() {
    let sprint = Request {
        sprint_id: "260324-Sprint-09:00".parse().ok(),
        intent: String::new(),
        ..asked("x")
    };
    let (mut world, id) = older(Role::Planner, sprint);
    says(&mut world, Role::Planner, "nothing to say", json!({}));
    let request = world.request(&id);
    assert_eq!(request.current_role, Some(Role::Qa));
    assert_eq!(request.routing_context["reason"], "policy:sprint_force_qa");
    says(&mut world, Role::Qa, "nothing to say", json!({}));
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
}

#[test]
fn w33_a_ready_document_resumes_who_waits_for_it() {
    let (mut world, id) = older(Role::Research, asked("find the terms"));
    let waits = RequestId::parse("20250101-0000000b").expect("an id");
    let blocked = Blocked {
        code: "role_blocked".to_owned(),
        detail: "shared_workspace/terms.md is missing".to_owned(),
        required_inputs: Vec::new(),
        since: Timestamp::from_millis(0),
    };
    world.state.apply(&Change::Request(Box::new(Request {
        request_id: waits.clone(),
        status: RequestStatus::Blocked,
        blocked: Some(blocked),
        ..asked("plan it")
    })));
    let ready = json!({ "verification_result": {
        "ready_for_planning": true, "location": "shared_workspace/terms.md",
    }});
    says(&mut world, Role::Research, "here they are", ready);
    assert_eq!(world.request(&id).status, RequestStatus::Completed);
    let resumed = world.request(&waits);
    assert_eq!(resumed.status, RequestStatus::Delegated);
    assert_eq!(resumed.artifacts, ["shared_workspace/terms.md"]);
}

#[test]
fn a_step_of_the_workflow_notes_how_its_role_was_chosen() {
    let mut world = World::new(policy());
    let id = world.message("do it");
    let todo = work_until(&mut world, |role, _| role == Role::Architect);
    assert!(matches!(todo, Todo::Run(_)));
    let context = world.request(&id).routing_context;
    assert_eq!(context["selection_source"], "workflow_contract");
    assert_eq!(context["selected_role"], "architect");
}
