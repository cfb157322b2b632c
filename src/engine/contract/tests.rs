//! The rows of `spec/teams.md` 14.6 that need no process, and the schema.

use serde_json::{Value, json};

use super::*;
use crate::domain::criterion::Criterion;
use crate::domain::lifecycle::StepName;
use crate::domain::result::{
    ControlKind, EvidenceResult, Pair, Proposals, QaDecision, ResultStatus, shape,
};
use crate::domain::role::Role;
use crate::domain::sprint::Duty;
use crate::domain::workflow::Outcome;
use crate::engine::lifecycle::steps;

fn status(word: &str) -> ResultStatus {
    normalize(&json!({"status": word}), Role::Developer, "r").status
}

/// What is wrong with an answer; where it says no status, it is one of what was completed.
fn codes(raw: &Value, role: Role, step: Option<StepName>) -> Vec<String> {
    let mut raw = raw.clone();
    let fields = raw.as_object_mut().unwrap();
    fields.entry("status").or_insert_with(|| json!("completed"));
    validate(&raw, role, step, &[]).iter().map(ToString::to_string).collect()
}

#[test]
fn an_answer_says_its_status() {
    for raw in [json!({}), json!({"status": null}), json!({"status": " "})] {
        let said = validate(&raw, Role::Developer, None, &[]);
        assert_eq!(said, [ContractIssue::Misshapen("/status is missing".to_owned())]);
    }
    let said = codes(&json!({"status": "done"}), Role::Developer, None);
    assert!(said[0].starts_with("/status is none of \"completed\""), "{said:?}");
}

#[test]
fn qa_is_told_which_criteria_lack_a_row_and_which_rows_are_of_none() {
    let criteria = ["it works", "it is fast", "people find it"].map(Criterion::from);
    let said = |rows: &[&str]| {
        let row = |it| json!({"criterion": it, "source": "", "evidence": "", "result": "pass"});
        let rows: Vec<Value> = rows.iter().map(row).collect();
        let raw =
            json!({"proposals": {"qa_validation": {"decision": "pass", "evidence_matrix": rows}}});
        let issues = validate(&raw, Role::Qa, Some(steps::QA), &criteria);
        let rows = issues.into_iter().filter(|it| matches!(it, ContractIssue::EvidenceRows(_)));
        rows.map(|it| it.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(said(&["C-1", "it is fast", "c-3: people find it"]), [""; 0]);
    let wrong = ["C-1", "C-1", "it  works", "the code is clean", "C-4", "", "people find it"];
    let told = "missing: C-2; doubled: C-1; unknown: \"the code is clean\", \"C-4\", \"\"";
    assert_eq!(said(&wrong), [format!("qa_validation_rows_are_not_the_criteria ({told})")]);
    // Rows that are no objects name nothing.
    let raw = json!({"proposals": {"qa_validation": {"evidence_matrix": [1, null, [], "C-1"]}}});
    let issues = validate(&raw, Role::Qa, Some(steps::QA), &criteria);
    assert!(issues.iter().any(|it| it.to_string().contains("missing: C-1, C-2, C-3")));
}

#[test]
fn a_verdict_that_does_not_read_is_told_where() {
    let row = json!({"criterion": "C-1", "source": "s", "evidence": [{"command": "make test"}], "result": "pass"});
    let raw = json!({"proposals": {
        "workflow_transition": {"outcome": "advance"},
        "qa_validation": {
            "decision": "pass", "methodology": "evidence_matrix", "passed_checks": [], "findings": [],
            "residual_risks": [], "not_checked": [], "evidence_matrix": [row],
        },
    }});
    let said = codes(&raw, Role::Qa, Some(steps::QA));
    let place = "/proposals/qa_validation/evidence_matrix/0/evidence";
    assert!(said.iter().any(|it| it.starts_with(place)), "{said:?}");
}

#[test]
fn criteria_are_not_cut() {
    let faults = |criteria: Value| {
        codes(&json!({"proposals": {"acceptance_criteria": criteria}}), Role::Planner, None)
    };
    assert_eq!(faults(json!(vec!["it works"; 40])), Vec::<String>::new());
    for (criteria, fault) in [
        (json!(vec!["it works"; 41]), "/proposals/acceptance_criteria has 41 entries"),
        (json!(["a", "b".repeat(601)]), "/proposals/acceptance_criteria/1 is blank or over 600"),
    ] {
        let found = faults(criteria);
        assert!(found.iter().any(|it| it.starts_with(fault)), "{fault}: {found:?}");
    }
}

#[test]
fn k01_status_words() {
    assert_eq!(status(""), ResultStatus::Completed);
    assert_eq!(status("done"), ResultStatus::Failed);
    assert_eq!(status("COMPLETED"), ResultStatus::Completed);
    assert_eq!(status("approval_needed"), ResultStatus::Failed);
}

#[test]
fn k02_fields_of_the_wrong_kind() {
    let raw = json!({"insights": "one", "proposals": [], "artifacts": "a.md", "next_role": "qa"});
    let result = normalize(&raw, Role::Developer, "r");
    assert_eq!(result.insights, ["one"]);
    assert_eq!(result.proposals, Proposals::default());
    assert_eq!(result.artifacts, ["a.md"]);
    assert_eq!(result.next_role, "");
    assert_eq!(codes(&raw, Role::Developer, None), ["/proposals is no object"]);
}

#[test]
fn k03_role_and_request_are_those_of_the_run() {
    let raw = json!({"role": "qa", "request_id": "another"});
    let result = normalize(&raw, Role::Developer, "r-1");
    assert_eq!((result.role, result.request_id.as_str()), (Role::Developer, "r-1"));
}

#[test]
fn k04_a_copied_status_line_is_an_issue() {
    let raw = json!({"status": "completed|blocked|failed"});
    assert_eq!(codes(&raw, Role::Developer, None), ["copied_prompt_status_enum_literal"]);
    assert_eq!(normalize(&raw, Role::Developer, "r").status, ResultStatus::Failed);
}

#[test]
fn k05_a_workflow_request_needs_a_transition() {
    let step = Some(steps::BUILD);
    assert_eq!(codes(&json!({}), Role::Developer, step), ["missing_workflow_transition"]);
    assert_eq!(codes(&json!({}), Role::Developer, None), [""; 0]);
    assert_eq!(codes(&json!({}), Role::Research, step), [""; 0]);
}

#[test]
fn k06_a_verdict_needs_evidence() {
    let raw = json!({"proposals": {
        "workflow_transition": {
            "outcome": "complete", "target_phase": "", "target_step": "", "reopen_category": "",
            "reason": "", "unresolved_items": [], "finalize_phase": false,
        },
        "qa_validation": {
            "methodology": "evidence_matrix", "decision": "pass", "evidence_matrix": [],
            "passed_checks": [], "findings": [], "residual_risks": [], "not_checked": [],
        },
    }});
    let step = Some(steps::QA);
    assert_eq!(codes(&raw, Role::Qa, step), ["empty_qa_validation_evidence_matrix"]);
}

#[test]
fn k08_an_object_after_a_malformed_fence_is_found() {
    let text = "```json\n{\"status\": \"blocked\",\n```\nthen {\"status\": \"completed\"}";
    let object = extract_json_object(text).unwrap();
    assert_eq!(Value::Object(object), json!({"status": "completed"}));
    assert_eq!(extract_json_object("  "), Err(ExtractError::Empty));
    assert_eq!(extract_json_object("it is done"), Err(ExtractError::NoObject));
}

#[test]
fn r12_approvals_block() {
    for raw in [json!({"status": "awaiting_approval"}), json!({"approval_needed": true})] {
        let result = normalize(&raw, Role::Developer, "r");
        assert_eq!(result.status, ResultStatus::Blocked);
        assert!(result.error.contains("approvals"), "{}", result.error);
    }
}

#[test]
fn what_is_written_is_read_again() {
    let raw = json!({
        "status": "completed", "summary": "s",
        "proposals": {"workflow_transition": {"outcome": "advance"}, "x": [1]},
    });
    let result = normalize(&raw, Role::VersionController, "r");
    let again = serde_json::from_value(json!(result)).unwrap();
    assert_eq!(result, again);
    assert_eq!(result.proposals.transition().outcome, Some(Outcome::Advance));
}

#[test]
fn the_form_of_an_answer_is_put_right_and_what_it_says_is_not() {
    let read = |proposals: Value| {
        let raw = json!({ "proposals": proposals });
        let faults = codes(&raw, Role::Planner, None);
        (normalize(&raw, Role::Planner, "r").proposals, faults)
    };
    // What a model leaves out or writes in another form.
    let (said, faults) = read(json!({
        "acceptance_criteria": "it greets",
        "required_inputs": ["", " a key ", 7],
        "planning_note": null,
        "todo_brief": {"do": "greet"},
        "implementation_report": ["one", "two"],
        "backlog_items": [{"title": "Greet", "priority_rank": "2", "kind": "bug", "origin": {"trace": 5}}],
        "research_signal": {"needed": "TRUE", "reason_code": ""},
        "qa_validation": {"decision": " Pass ", "evidence_matrix":
            {"criterion": "C-1", "result": "NOT_CHECKED"}},
        "of_nobody": 1,
    }));
    assert_eq!(faults, [""; 0]);
    assert_eq!(said.acceptance_criteria.unwrap(), ["it greets"]);
    assert_eq!(said.required_inputs.unwrap(), ["a key", "7"]);
    assert_eq!(said.todo_brief.as_deref(), Some("{\"do\":\"greet\"}"));
    assert_eq!(said.implementation_report.as_deref(), Some("one\ntwo"));
    let item = &said.backlog_items.unwrap()[0];
    assert_eq!((item.priority_rank, &item.depends_on), (Some(2), &None));
    assert_eq!(item.origin.as_ref().unwrap().trace.as_deref(), Some("5"));
    assert!(said.research_signal.is_some_and(|it| it.needed && it.reason_code.is_none()));
    let verdict = said.qa_validation.unwrap();
    assert_eq!(verdict.decision, QaDecision::Pass);
    assert_eq!(verdict.evidence_matrix[0].result, EvidenceResult::NotChecked);
    // What it says is nobody's to guess: the part is left out, and the role is told the place.
    for (wrong, told) in [
        (
            json!({"backlog_items": [{"title": [7]}]}),
            "/proposals/backlog_items/0/title is no string",
        ),
        (json!({"backlog_items": [7]}), "/proposals/backlog_items/0 is no object"),
        (
            json!({"request_handling": {"mode": "maybe"}}),
            "/proposals/request_handling/mode is none of",
        ),
        (json!({"request_handling": {}}), "/proposals/request_handling/mode is missing"),
        (json!({"planning_note": [{"a": 1}]}), "/proposals/planning_note is no string"),
    ] {
        let (said, faults) = read(wrong);
        assert!(faults.len() == 1 && faults[0].starts_with(told), "{faults:?}");
        assert_eq!(said, Proposals::default());
    }
    let many = read(json!({"required_inputs": vec![json!([1]); 1_000]})).1;
    assert_eq!(many.len(), shape::MOST_FAULTS);
}

/// Every object of a strict schema requires all of its properties and allows no others.
fn assert_strict(schema: &Value, place: &str) {
    let Some(fields) = schema.as_object() else {
        return;
    };
    for refused in ["oneOf", "allOf", "$ref", "const", "format", "default"] {
        assert!(!fields.contains_key(refused), "{place} has {refused}");
    }
    if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
        let names: Vec<&String> = properties.keys().collect();
        assert_eq!(fields["required"], json!(names), "{place}");
        assert_eq!(fields["additionalProperties"], json!(false), "{place}");
        for (name, property) in properties {
            assert_strict(property, &format!("{place}.{name}"));
        }
    }
    if let Some(items) = fields.get("items") {
        assert_strict(items, &format!("{place}[]"));
    }
    let alternatives = fields.get("anyOf").and_then(Value::as_array);
    for alternative in alternatives.into_iter().flatten() {
        assert_strict(alternative, &format!("{place}|"));
    }
}

#[test]
fn schemas_are_strict_and_ask_for_what_the_step_needs() {
    for role in Role::ALL {
        assert_strict(&schema(role, None, None), role.as_str());
        assert_strict(&schema(role, Some(steps::QA), None), role.as_str());
        for duty in Duty::ALL {
            assert_strict(&schema(role, None, Some(duty)), duty.as_str());
        }
    }
    let proposals = "/properties/proposals/properties";
    let qa = schema(Role::Qa, Some(steps::QA), None);
    let qa = qa.pointer(proposals).unwrap();
    let decision = &qa["qa_validation"]["properties"]["decision"];
    assert_eq!(decision["enum"], json!(["pass", "fail", "blocked"]));
    assert!(qa.get("workflow_transition").is_some());
    let text = qa.to_string();
    assert!(!text.contains("spec/") && !text.contains("planner_advisory"), "{text}");
    let alone = schema(Role::Developer, None, None);
    assert!(alone.pointer(proposals).unwrap().get("workflow_transition").is_none());
}

/// Each duty is asked for what the runtime reads of it, and for nothing that it does not.
#[test]
fn a_duty_is_asked_for_its_own_parts() {
    for (role, duty, parts) in [
        (Role::Research, Duty::ResearchPrepass, "research_signal research_report"),
        (Role::Planner, Duty::Planning, "sprint_plan_update backlog_items required_inputs"),
        (Role::Planner, Duty::OngoingReview, "backlog_items required_inputs"),
        (Role::Planner, Duty::SourcerReview, "backlog_items required_inputs"),
        (Role::Planner, Duty::BlockedReview, "backlog_items required_inputs"),
        (Role::Planner, Duty::ClosingReport, "sprint_report"),
        (Role::Sourcer, Duty::Sourcing, "backlog_items"),
    ] {
        let schema = schema(role, None, Some(duty));
        let properties = schema.pointer("/properties/proposals/properties").unwrap();
        let names: Vec<&str> = properties.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names.join(" "), parts, "{duty}");
    }
}

#[test]
fn an_answer_with_nulls_meets_the_contract() {
    let raw = json!({
        "status": "completed", "summary": "done", "insights": [], "artifacts": [], "error": "",
        "proposals": {
            "workflow_transition": {
                "outcome": "complete", "target_phase": null, "target_step": null,
                "reopen_category": null, "reason": "", "unresolved_items": [],
                "finalize_phase": true,
            },
            "qa_validation": {
                "methodology": "evidence_matrix", "decision": "pass",
                "evidence_matrix": [
                    {"criterion": "c", "source": "s", "evidence": "e", "result": "pass"},
                ],
                "passed_checks": [], "findings": [], "residual_risks": [], "not_checked": [],
            },
        },
    });
    assert_eq!(codes(&raw, Role::Qa, Some(steps::QA)), [""; 0]);
    let result = normalize(&raw, Role::Qa, "r");
    let verdict = result.proposals.qa_validation.unwrap();
    assert_eq!(verdict.decision, QaDecision::Pass);
}

#[test]
fn control_actions_are_read_by_name() {
    let raw = |action: Value| json!({"proposals": {"control_action": action}});
    let action =
        |value: Value| normalize(&raw(value), Role::Orchestrator, "r").proposals.control_action;
    let kind = "execute_action";
    for params in [json!({"value": 1}), json!([{"name": "value", "value": "1"}])] {
        let read = action(json!({"kind": kind, "action_name": "echo", "params": params})).unwrap();
        assert_eq!(read.kind, ControlKind::ExecuteAction);
        assert_eq!(read.action_name.as_deref(), Some("echo"));
        let value = Pair { name: "value".to_owned(), value: "1".to_owned() };
        assert_eq!(read.params, [value]);
    }
    let unknown = json!({"kind": "teleport"});
    assert_eq!(action(unknown.clone()), None);
    let said = codes(&raw(unknown), Role::Orchestrator, None);
    assert!(said[0].starts_with("/proposals/control_action/kind is none of"), "I28 {said:?}");
    assert_eq!(action(Value::Null), None);
}

#[test]
fn questions_have_to_fit_a_list_on_a_phone() {
    let faults = |questions: Value| {
        codes(&json!({"proposals": {"questions": questions}}), Role::Planner, None)
    };
    let one = |options: Value, assumption: &str| json!([{ "question": "Which?", "options": options, "assumption": assumption }]);
    assert_eq!(faults(one(json!(["a", "b"]), "b")), Vec::<String>::new());
    for (questions, fault) in [
        (one(json!(["a"]), "a"), "/proposals/questions/0/options are not 2 to 5 different ones"),
        (one(json!(["a", "a "]), "a"), "/proposals/questions/0/options are not 2 to 5"),
        (one(json!(["a", "b"]), "c"), "/proposals/questions/0/assumption is none of the options"),
        (one(json!(["a", "b".repeat(81)]), "a"), "/proposals/questions/0/options has one that is"),
        (
            json!(vec![
                json!({ "question": "Which?", "options": ["a", "b"], "assumption": "a" });
                5
            ]),
            "/proposals/questions has 5 entries, where 4 are allowed",
        ),
        (
            json!([{ "question": "x".repeat(301), "options": ["a", "b"], "assumption": "a" }]),
            "/proposals/questions/0/question is blank or over 300 characters",
        ),
    ] {
        let found = faults(questions);
        assert!(found.iter().any(|it| it.starts_with(fault)), "{fault}: {found:?}");
    }
}
