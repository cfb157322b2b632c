//! Workflow: state, transition, decision table, reopen map, guardrails.

use serde_json::{Value, json};
use teams::domain::role::Role;
use teams::domain::workflow::{PhaseStatus, ReopenCategory, Step, Transition, Word, WorkflowState};
use teams::engine::contract::normalize;
use teams::engine::parse::normalize_artifact_hint;
use teams::engine::workflow::{
    DocumentRule, Note, Routed, StepReport, WorkflowDecision, close_in_planning, decide,
    drop_foreign_documents, reopen, route,
};

use super::{Rule, Subject, text, whole};

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "normalize_workflow_state",
        ours: |args| plain(&WorkflowState::normalize(&args["raw"])),
        theirs: whole,
        rules: &[Rule {
            row: "7.1",
            instead: "a count that is no number is the default instead of an exception",
            applies: |args| args["raw"].as_object().is_some_and(|raw| raw.iter().any(no_number)),
            expected: |args, _| {
                let mut raw = args["raw"].clone();
                raw.as_object_mut().unwrap().retain(|key, value| !no_number((key, value)));
                plain(&WorkflowState::normalize(&raw))
            },
        }],
    },
    Subject {
        name: "workflow_transition",
        ours: |args| {
            let result = normalize(&args["result"], Role::Planner, "r");
            json!(result.proposals.transition())
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "planning_advisory_role_for_step",
        ours: |args| {
            let step = Step::read(text(args, "step"));
            let role = step.and_then(|step| step.advisor(Role::parse(text(args, "phase_owner"))));
            json!(role.map_or("", Role::as_str))
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "planning_advisory_step_for_role",
        ours: |args| {
            let step = Role::parse(text(args, "role")).and_then(Step::advisory_of);
            json!(step.map_or("", Word::as_str))
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "workflow_reopen_decision",
        ours: |args| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            let category = ReopenCategory::of(args.get("category"));
            routed(reopen(&state, Role::parse(text(args, "current_role")), category))
        },
        theirs: decision,
        rules: &[],
    },
    Subject {
        name: "derive_workflow_routing_decision",
        ours: |args| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            let transition = Transition::normalize(&args["transition"]);
            let close = args["should_close_in_planning"] == json!(true);
            routed(route(&state, Role::parse(text(args, "current_role")), &transition, close))
        },
        theirs: decision,
        rules: TABLE_RULES,
    },
    Subject {
        name: "workflow_should_close_in_planning",
        ours: |args| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            let result = json!({"proposals": args["proposals"], "artifacts": args["artifacts"]});
            let role = Role::of(args.get("current_role")).unwrap_or(Role::Orchestrator);
            let mut report = StepReport::from_result(&normalize(&result, role, "r"));
            report.transition = Transition::normalize(&args["transition"]);
            report.wants_execution = args["request_indicates_execution_flag"] == json!(true);
            json!(close_in_planning(&state, &report))
        },
        theirs: whole,
        rules: &[Rule {
            row: "13.A #2",
            instead: "a reopen never closes a request",
            applies: |args| text(&args["transition"], "outcome") == "reopen",
            expected: |_, _| json!(false),
        }],
    },
    Subject {
        name: "sanitize_implementation_result",
        ours: |args| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            let role = Role::parse(text(args, "role")).unwrap_or(Role::Orchestrator);
            let mut result = normalize(&json!({}), role, "r");
            result.artifacts = strings(&args["result"]["artifacts"]);
            drop_foreign_documents(&state, &mut result);
            json!(result.artifacts)
        },
        theirs: |ok| ok["artifacts"].clone(),
        rules: &[],
    },
    Subject {
        name: "enforce_workflow_role_report_contract",
        ours: guardrail,
        theirs: guardrail_effect,
        rules: GUARD_RULES,
    },
];

/// Rows 7.5: what the guardrails do to a report. A report of a role that does not work the step is
/// refused before they apply.
const GUARD_RULES: &[Rule] = &[Rule {
    row: "R08, W22, W23, W25 with 13.A #2",
    instead: "only the role at work is heard, no failure becomes a pass, no planner's block a loop",
    applies: |args| {
        wrong_role(args) || flag(args, "qa_runtime_sync_anomaly_flag") || negative(args)
    },
    expected: |args, theirs| {
        let mut expected = theirs.clone();
        if wrong_role(args) {
            expected = json!({"artifacts": args["result"]["artifacts"], "effect": "refused"});
        } else if flag(args, "qa_runtime_sync_anomaly_flag") || text(args, "role") == "planner" {
            expected["effect"] = json!("none");
        }
        expected
    },
}];

fn wrong_role(args: &Value) -> bool {
    let state = WorkflowState::normalize(&args["workflow_state"]);
    Some(state.step.owner()) != Role::parse(text(args, "role"))
}

fn flag(args: &Value, key: &str) -> bool {
    args[key] == json!(true)
}

fn negative(args: &Value) -> bool {
    let result = &args["result"];
    text(result, "status") != "completed" || !text(result, "error").is_empty()
}

/// The state in which a spent review budget stops.
fn at_limit(state: &WorkflowState, category: Option<ReopenCategory>) -> WorkflowState {
    let phase_status = PhaseStatus::Blocked;
    WorkflowState { phase_status, reopen_category: category, ..state.clone() }
}

const TABLE_RULES: &[Rule] = &[
    Rule {
        row: "13.A #2",
        instead: "a reviewer's reopen never goes on to QA",
        applies: |args| at_review(args) && text(&args["transition"], "outcome") == "reopen",
        expected: |args, _| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            let category = ReopenCategory::of(args["transition"].get("reopen_category"));
            if state.review_cycle_count >= state.review_cycle_limit {
                let category = category.unwrap_or(ReopenCategory::Implementation);
                return stop(&at_limit(&state, Some(category)));
            }
            match category {
                None | Some(ReopenCategory::Implementation) => {
                    on(&state, Step::DeveloperRevision, category, None)
                }
                Some(_) => {
                    routed(reopen(&state, Role::parse(text(args, "current_role")), category))
                }
            }
        },
    },
    Rule {
        row: "13.A #18",
        instead: "at the review limit everything but a pass stops",
        applies: |args| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            at_review(args) && state.review_cycle_count >= state.review_cycle_limit
        },
        expected: |args, _| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            let category = ReopenCategory::of(args["transition"].get("reopen_category"));
            stop(&at_limit(&state, category.or(Some(ReopenCategory::Implementation))))
        },
    },
];

/// A count or a limit that is not a number.
fn no_number((key, value): (&String, &Value)) -> bool {
    let counts = key.ends_with("_count") || key.ends_with("_limit") || key == "contract_version";
    counts
        && match value {
            Value::String(text) => !text.is_empty() && text.trim().parse::<i64>().is_err(),
            Value::Array(entries) => !entries.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
}

fn at_review(args: &Value) -> bool {
    text(&args["workflow_state"], "step") == "architect_review"
}

/// The state without what the recorded runtime does not know.
fn plain(state: &WorkflowState) -> Value {
    let mut state = json!(state);
    state.as_object_mut().unwrap().remove("budgets");
    state
}

fn strings(value: &Value) -> Vec<String> {
    let entries = value.as_array().into_iter().flatten();
    entries.map(|entry| entry.as_str().unwrap_or_default().to_owned()).collect()
}

fn on(
    state: &WorkflowState,
    step: Step,
    category: Option<ReopenCategory>,
    source: Option<Role>,
) -> Value {
    let mut next = state.clone();
    next.step = step;
    next.phase = step.phase();
    next.phase_owner = step.owner();
    next.reopen_category = category;
    next.reopen_source_role = source;
    json!({"next": step.owner().as_str(), "blocked": false, "state": plain(&next)})
}

fn stop(state: &WorkflowState) -> Value {
    json!({"next": "", "blocked": true, "state": plain(state)})
}

fn routed(routed: Routed) -> Value {
    match routed {
        Routed::To(state) if state.step == Step::Closeout => {
            json!({"next": "", "blocked": false, "state": plain(&state)})
        }
        Routed::To(state) => {
            json!({"next": state.phase_owner.as_str(), "blocked": false, "state": plain(&state)})
        }
        Routed::Stop(state, _) => stop(&state),
        Routed::Over => Value::Null,
    }
}

fn decision(ok: &Value) -> Value {
    if ok.is_null() {
        return Value::Null;
    }
    json!({
        "next": ok["next_role"],
        "blocked": ok["terminal_status"] == json!("blocked"),
        "state": plain(&WorkflowState::normalize(&ok["workflow_state"])),
    })
}

/// What our guardrails do: refuse, send back to the planner, or nothing; and which artifacts stay.
fn guardrail(args: &Value) -> Value {
    let state = WorkflowState::normalize(&args["workflow_state"]);
    let role = Role::parse(text(args, "role")).unwrap_or(Role::Orchestrator);
    let mut result = normalize(&args["result"], role, "r");
    let mut report = StepReport::from_result(&result);
    report.transition = Transition::normalize(&args["transition"]);
    report.document_rule = DocumentRule::Sprint;
    report.documents_present =
        report.artifacts.iter().map(|path| normalize_artifact_hint(path)).collect();
    let notes = match decide(&state, &report) {
        WorkflowDecision::Next { notes, .. } => notes,
        WorkflowDecision::Closeout { .. } | WorkflowDecision::Blocked { .. } => Vec::new(),
    };
    let effect = if notes.iter().any(|note| matches!(note, Note::WrongReporter(_))) {
        result.artifacts = strings(&args["result"]["artifacts"]);
        "refused"
    } else {
        drop_foreign_documents(&state, &mut result);
        let back =
            |note: &Note| matches!(note, Note::DocumentsMissing(_) | Note::SpecificationAtFault);
        if notes.iter().any(back) { "to planner" } else { "none" }
    };
    json!({"artifacts": result.artifacts, "effect": effect})
}

fn guardrail_effect(ok: &Value) -> Value {
    let transition = &ok["proposals"]["workflow_transition"];
    let to_planner = text(transition, "target_step") == "planner_finalize"
        && text(transition, "reopen_category") == "scope";
    json!({"artifacts": ok["artifacts"], "effect": if to_planner { "to planner" } else { "none" }})
}
