//! Workflow: state, transition, decision table, reopen map, guardrails.

use serde_json::{Value, json};
use teams::domain::lifecycle::{
    Lifecycle, Phase, ReopenCategory, StepAccess, StepKind, StepName, counter,
};
use teams::domain::role::Role;
use teams::domain::word::Word;
use teams::domain::workflow::{PhaseStatus, Transition, WorkflowState};
use teams::engine::contract::normalize;
use teams::engine::lifecycle::{
    DocumentRule, MoveResult, ReportChange, StepReport, WorkflowDecision, close_in_planning,
    decide, drop_foreign_documents, reopen, route,
};
use teams::engine::parse::normalize_artifact_hint;

use super::{Rule, Subject, text, whole};

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "normalize_workflow_state",
        ours: |args| plain(&WorkflowState::normalize(&args["raw"])),
        theirs: whole,
        rules: &[
            Rule {
                row: "7.1",
                instead: NOBODYS,
                applies: |args| nobodys_advisory(&args["raw"]),
                expected: |args, _| plain(&WorkflowState::normalize(&settled(&args["raw"]))),
            },
            Rule {
                row: "7.1",
                instead: "a count that is no number is the default instead of an exception",
                applies: |args| {
                    args["raw"].as_object().is_some_and(|raw| raw.iter().any(no_number))
                },
                expected: |args, _| {
                    let mut raw = args["raw"].clone();
                    raw.as_object_mut().unwrap().retain(|key, value| !no_number((key, value)));
                    plain(&WorkflowState::normalize(&raw))
                },
            },
        ],
    },
    Subject {
        name: "workflow_transition",
        ours: |args| {
            let result = normalize(&args["result"], Role::Planner, "r");
            json!(result.proposals.transition())
        },
        theirs: whole,
        rules: &[Rule {
            row: "7.1",
            instead: "a lifecycle names its steps itself, so any name is one",
            applies: |args| target(args).is_some(),
            expected: |args, theirs| {
                let mut expected = theirs.clone();
                expected["target_step"] = json!(target(args));
                expected
            },
        }],
    },
    Subject {
        name: "planning_advisory_role_for_step",
        ours: |args| {
            let asked = json!({"step": args["step"], "phase_owner": args["phase_owner"]});
            let step = lifecycle().step(WorkflowState::normalize(&asked).step);
            let advises = step.filter(|step| step.kind == StepKind::Advice);
            json!(advises.map_or("", |step| step.role.as_str()))
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "planning_advisory_step_for_role",
        ours: |args| {
            let role = Role::parse(text(args, "role"));
            let mut advice = lifecycle().steps().filter(|step| step.kind == StepKind::Advice);
            let step = advice.find(|step| Some(step.role) == role);
            json!(step.map_or("", |step| step.name.as_str()))
        },
        theirs: whole,
        rules: &[],
    },
    Subject {
        name: "workflow_reopen_decision",
        ours: |args| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            let category = ReopenCategory::of(args.get("category"));
            routed(reopened(&state, args, category))
        },
        theirs: decision,
        rules: &[],
    },
    Subject {
        name: "derive_workflow_routing_decision",
        ours: |args| routed_by(args),
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
            let step = lifecycle().step(state.step).expect("a step");
            json!(close_in_planning(lifecycle(), step, &report))
        },
        theirs: whole,
        rules: &[
            Rule {
                row: "13.A #2",
                instead: "a reopen never closes a request",
                applies: |args| text(&args["transition"], "outcome") == "reopen",
                expected: |_, _| json!(false),
            },
            Rule {
                row: "7.4",
                instead: "who does not say that nothing is left has not answered what is to be carried out",
                applies: |args| {
                    let transition = &args["transition"];
                    let goes_on = match text(transition, "outcome") {
                        "" => transition["finalize_phase"] != json!(true),
                        outcome => ["advance", "continue"].contains(&outcome),
                    };
                    goes_on && args["request_indicates_execution_flag"] == json!(true)
                },
                expected: |_, _| json!(false),
            },
            Rule {
                row: "7.4",
                instead: "nor has who says that building comes next",
                applies: |args| {
                    let transition = Transition::normalize(&args["transition"]);
                    let target = transition.target_step.and_then(|name| lifecycle().step(name));
                    transition.target_phase == Some(Phase::Implementation)
                        || target.is_some_and(|step| step.access == StepAccess::Write)
                },
                expected: |_, _| json!(false),
            },
        ],
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
    lifecycle().step(state.step).map(|step| step.role) != Role::parse(text(args, "role"))
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

/// The older step that the advisers share, where it is neither's.
const NOBODYS: &str = "the shared advisory of nobody is the settling of the plan";

fn nobodys_advisory(state: &Value) -> bool {
    let owner = Role::of(state.get("phase_owner"));
    text(state, "step").trim().eq_ignore_ascii_case("planner_advisory")
        && !matches!(owner, Some(Role::Designer | Role::Architect))
}

fn settled(state: &Value) -> Value {
    let mut state = state.clone();
    state["step"] = json!("planner_finalize");
    state
}

/// Only the role at work is heard, so what is sent back goes by the step and not by who sent it.
const SENT_BACK_BY_ANOTHER: Rule = Rule {
    row: "R08",
    instead: "what is sent back goes by the step, not by who sent it",
    applies: |args| {
        let state = WorkflowState::normalize(&args["workflow_state"]);
        let by_qa = Role::parse(text(args, "current_role")) == Some(Role::Qa);
        by_qa != (state.step == StepName::of("qa_validation"))
    },
    expected: |args, _| {
        let state = WorkflowState::normalize(&args["workflow_state"]);
        let category = ReopenCategory::of(args.get("category"))
            .or_else(|| ReopenCategory::of(args["transition"].get("reopen_category")));
        let by = Role::parse(text(args, "current_role"));
        let (at, mut next) = (state.step.as_str().to_owned(), state.clone());
        let to = match category {
            None | Some(ReopenCategory::Scope) => "planner_finalize",
            Some(ReopenCategory::Ux) if state.counter(counter::ADVICE).is_spent() => {
                "planner_finalize"
            }
            Some(ReopenCategory::Ux) => {
                assert!(next.take(counter::ADVICE));
                "designer_advisory"
            }
            Some(ReopenCategory::Architecture) if at == "qa_validation" => {
                next.counters.get_mut(&counter::REVIEW).unwrap().used += 1;
                "architect_review"
            }
            Some(ReopenCategory::Architecture) => "architect_guidance",
            Some(ReopenCategory::Implementation | ReopenCategory::Verification) => {
                let judged = ["qa_validation", "architect_review", "developer_revision"];
                if judged.contains(&at.as_str()) { "developer_revision" } else { "developer_build" }
            }
        };
        on(&next, StepName::of(to), category, by)
    },
};

const TABLE_RULES: &[Rule] = &[
    Rule {
        row: "7.1",
        instead: NOBODYS,
        applies: |args| nobodys_advisory(&args["workflow_state"]),
        expected: |args, _| {
            let mut asked = args.clone();
            asked["workflow_state"] = settled(&args["workflow_state"]);
            routed_by(&asked)
        },
    },
    SENT_BACK_BY_ANOTHER,
    Rule {
        row: "13.A #2",
        instead: "a reviewer's reopen never goes on to QA",
        applies: |args| at_review(args) && text(&args["transition"], "outcome") == "reopen",
        expected: |args, _| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            let category = ReopenCategory::of(args["transition"].get("reopen_category"));
            if state.counter(counter::REVIEW).is_spent() {
                let category = category.unwrap_or(ReopenCategory::Implementation);
                return stop(&at_limit(&state, Some(category)));
            }
            match category {
                None | Some(ReopenCategory::Implementation) => {
                    on(&state, StepName::of("developer_revision"), category, None)
                }
                Some(_) => routed(reopened(&state, args, category)),
            }
        },
    },
    Rule {
        row: "13.A #18",
        instead: "at the review limit everything but a pass stops",
        applies: |args| {
            let state = WorkflowState::normalize(&args["workflow_state"]);
            at_review(args) && state.counter(counter::REVIEW).is_spent()
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

/// The step that a proposal names.
fn target(args: &Value) -> Option<StepName> {
    let name = args.pointer("/result/proposals/workflow_transition/target_step")?.as_str()?;
    StepName::parse(name).ok()
}

fn lifecycle() -> &'static Lifecycle {
    Lifecycle::built_in()
}

fn routed_by(args: &Value) -> Value {
    let state = WorkflowState::normalize(&args["workflow_state"]);
    let transition = Transition::normalize(&args["transition"]);
    let close = args["should_close_in_planning"] == json!(true);
    let step = lifecycle().step(state.step).expect("a step");
    // A plan of nobody is nobody's; of other steps it is the role at work.
    let nobody = if step.kind == StepKind::Plan { Role::Orchestrator } else { step.role };
    let reporter = Role::parse(text(args, "current_role")).unwrap_or(nobody);
    routed(route(lifecycle(), &state, reporter, &transition, close))
}

fn reopened(state: &WorkflowState, args: &Value, category: Option<ReopenCategory>) -> MoveResult {
    let step = lifecycle().step(state.step).expect("a step");
    let source = Role::parse(text(args, "current_role")).unwrap_or(step.role);
    reopen(lifecycle(), step, state.clone(), source, category)
}

/// The state without what the recorded runtime does not know.
fn plain(state: &WorkflowState) -> Value {
    let mut state = json!(state);
    for ours in ["budgets", "lifecycle", "route"] {
        state.as_object_mut().unwrap().remove(ours);
    }
    state
}

fn strings(value: &Value) -> Vec<String> {
    let entries = value.as_array().into_iter().flatten();
    entries.map(|entry| entry.as_str().unwrap_or_default().to_owned()).collect()
}

fn on(
    state: &WorkflowState,
    step: StepName,
    category: Option<ReopenCategory>,
    source: Option<Role>,
) -> Value {
    let mut next = state.clone();
    next.place(lifecycle().step(step).expect("a step"), lifecycle());
    next.reopen_category = category;
    next.reopen_source_role = source;
    json!({"next": next.phase_owner.as_str(), "blocked": false, "state": plain(&next)})
}

fn stop(state: &WorkflowState) -> Value {
    json!({"next": "", "blocked": true, "state": plain(state)})
}

fn routed(routed: MoveResult) -> Value {
    match routed {
        MoveResult::To(state) if state.step == lifecycle().landing() => {
            json!({"next": "", "blocked": false, "state": plain(&state)})
        }
        MoveResult::To(state) => {
            json!({"next": state.phase_owner.as_str(), "blocked": false, "state": plain(&state)})
        }
        MoveResult::Stop(state, _) => stop(&state),
        MoveResult::Over => Value::Null,
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
    let notes = match decide(lifecycle(), &state, &report) {
        WorkflowDecision::Next { notes, .. } => notes,
        WorkflowDecision::Closeout { .. } | WorkflowDecision::Blocked { .. } => Vec::new(),
    };
    let effect = if notes.iter().any(|note| matches!(note, ReportChange::WrongReporter(_))) {
        result.artifacts = strings(&args["result"]["artifacts"]);
        "refused"
    } else {
        drop_foreign_documents(&state, &mut result);
        let back = |note: &ReportChange| {
            matches!(note, ReportChange::DocumentsMissing(_) | ReportChange::SpecificationAtFault)
        };
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
