//! Workflow: state, transition, decision table, reopen map, guardrails.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use teams::domain::role::Role;
use teams::domain::workflow::{ReopenCategory, Step, Transition, Word, WorkflowState};
use teams::engine::contract::normalize;
use teams::engine::workflow::{
    DocumentRule, Note, Routed, StepReport, WorkflowDecision, close_in_planning, decide,
    drop_foreign_documents, is_planner_document, reopen, review_limit, route,
};

use super::{Rule, Subject, text, whole};

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "normalize_workflow_state",
        ours: |args| plain(&WorkflowState::normalize(&args["raw"])),
        theirs: whole,
        rules: &[],
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
        name: "workflow_review_cycle_limit_block_decision",
        ours: |args| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            let state = review_limit(&state, ReopenCategory::of(args.get("category")));
            json!({"next": "", "blocked": true, "state": plain(&state)})
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
            let role = Role::parse(text(args, "current_role")).unwrap_or(Role::Orchestrator);
            let mut report = StepReport::from_result(&normalize(&result, role, "r"));
            report.transition = Transition::normalize(&args["transition"]);
            report.wants_execution = args["request_indicates_execution_flag"] == json!(true);
            json!(close_in_planning(&state, &report))
        },
        theirs: whole,
        rules: &[],
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
        name: "coerce_nonterminal_workflow_role_result",
        ours: |args| json!({"status": args["result"]["status"], "error": args["result"]["error"]}),
        theirs: |ok| json!({"status": ok["status"], "error": ok["error"]}),
        rules: &[Rule {
            row: "W15",
            instead: "a negative report keeps its status in the record; routing decides beside it",
            applies: |args| {
                text(&args["result"], "status") != "completed"
                    && Transition::normalize(&args["transition"]).continues()
                    && !text(&args["workflow_decision"], "next_role").is_empty()
            },
            expected: |args, _| {
                json!({"status": args["result"]["status"], "error": args["result"]["error"]})
            },
        }],
    },
    Subject {
        name: "enforce_workflow_role_report_contract",
        ours: guardrail,
        theirs: whole,
        rules: &[],
    },
];

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
                return stop(&review_limit(&state, Some(category)));
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
            stop(&review_limit(&state, category.or(Some(ReopenCategory::Implementation))))
        },
    },
];

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

fn guardrail(_: &Value) -> Value {
    let _ = (
        BTreeSet::<String>::new(),
        DocumentRule::Sprint,
        is_planner_document,
        decide as fn(&WorkflowState, &StepReport) -> WorkflowDecision,
        Note::Contradiction,
    );
    Value::Null
}
