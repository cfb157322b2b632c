//! The JSON schema that an agent's answer has to follow, generated from types.
//!
//! It is strict in the sense of structured outputs: every object lists all of its properties as
//! required and allows no others, and what may be absent is nullable instead.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::plan;
use crate::domain::lifecycle::{Phase, ReopenCategory, StepName};
use crate::domain::result::{EvidenceResult, QaDecision, ResultStatus};
use crate::domain::role::Role;
use crate::domain::sprint::Duty;
use crate::domain::workflow::Outcome;

/// The result of one step.
#[derive(JsonSchema, Serialize)]
struct Answer<P> {
    /// completed: the step is done. blocked: a person has to decide. failed: it was tried and did
    /// not work.
    status: ResultStatus,
    /// What happened, for the person who asked, in their language.
    summary: String,
    /// What is worth remembering for later steps.
    insights: Vec<String>,
    /// Files that matter, relative to the workspace.
    artifacts: Vec<String>,
    /// Why it failed or what blocks; empty when completed.
    error: String,
    /// What should follow.
    proposals: P,
}

/// What should happen after this step.
#[derive(JsonSchema, Serialize)]
struct WireTransition {
    /// continue, advance, reopen (send back), block (a person decides), complete; null leaves it to
    /// the rules.
    outcome: Option<Outcome>,
    /// The phase aimed at.
    target_phase: Option<Phase>,
    /// The step aimed at.
    target_step: Option<StepName>,
    /// With reopen: what has to be done again.
    reopen_category: Option<ReopenCategory>,
    /// Why.
    reason: String,
    /// What is still open.
    unresolved_items: Vec<String>,
    /// Whether the phase is finished.
    finalize_phase: bool,
}

/// Who should go on.
#[derive(JsonSchema, Serialize)]
struct NextStep {
    /// The role.
    owner: Option<Role>,
    /// Why.
    reason: String,
}

/// A name and a value.
#[derive(JsonSchema, Serialize)]
struct Pair {
    /// Name.
    name: String,
    /// Value.
    value: String,
}

/// How the request was handled.
#[derive(JsonSchema, Serialize)]
struct Handling {
    /// complete: the summary answers it. route: the team has to work on it.
    mode: HandlingMode,
}

/// How the request was handled.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum HandlingMode {
    Complete,
    Route,
}

/// What the runtime should do.
#[derive(JsonSchema, Serialize)]
struct Control {
    /// The kind of action.
    kind: ControlKind,
    /// For sprint_lifecycle: start, stop, restart or status.
    command: Option<String>,
    /// For cancel_request.
    request_id: Option<String>,
    /// For execute_action: its registered name.
    action_name: Option<String>,
    /// For execute_action.
    params: Vec<Pair>,
    /// For a sprint start.
    milestone_title: Option<String>,
    /// For a sprint start.
    kickoff_brief: Option<String>,
    /// For a sprint start.
    kickoff_requirements: Vec<String>,
}

/// What the runtime should do.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum ControlKind {
    SprintLifecycle,
    CancelRequest,
    ExecuteAction,
}

#[derive(JsonSchema, Serialize)]
struct OrchestratorProposals {
    request_handling: Handling,
    /// Only when the person asked for it.
    control_action: Option<Control>,
}

#[derive(JsonSchema, Serialize)]
struct ResearchProposals {
    workflow_transition: WireTransition,
    /// Whether facts from outside are needed, and which.
    research_signal: Option<plan::Signal>,
    /// What was found; null where nothing had to be looked for.
    research_report: Option<plan::Research>,
}

#[derive(JsonSchema, Serialize)]
struct PlannerProposals {
    workflow_transition: WireTransition,
    /// When the plan itself answers the request: the answer.
    planning_note: Option<String>,
    /// When the cause of a problem was the question: the cause.
    root_cause_contract: Option<String>,
    /// What exactly is to be done.
    todo_brief: Option<String>,
    /// What can be seen to pass or fail when it is done, one thing each.
    acceptance_criteria: Option<Vec<String>>,
    /// In a sprint's planning: how the milestone is framed.
    sprint_plan_update: Option<plan::PlanUpdate>,
    /// For the closing report of a sprint.
    sprint_report: Option<plan::Report>,
    /// Items to add, and items to change by their id.
    backlog_items: Vec<plan::Item>,
    /// What a person has to provide before it can go on.
    required_inputs: Vec<String>,
    suggested_next_step: Option<NextStep>,
}

/// Advice on what people see.
#[derive(JsonSchema, Serialize)]
struct Design {
    /// What the advice is about.
    entry_point: DesignEntry,
    user_judgment: Vec<String>,
    routing_rationale: String,
    acceptance_criteria: Vec<String>,
}

/// What the advice is about.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum DesignEntry {
    PlanningRoute,
    MessageReadability,
    InfoPrioritization,
    UxReopen,
}

#[derive(JsonSchema, Serialize)]
struct DesignerProposals {
    workflow_transition: WireTransition,
    design_feedback: Option<Design>,
}

/// A finding of a review.
#[derive(JsonSchema, Serialize)]
struct Finding {
    file: String,
    problem: String,
    wanted: String,
}

#[derive(JsonSchema, Serialize)]
struct ArchitectProposals {
    workflow_transition: WireTransition,
    /// How to build it.
    implementation_guidance: Option<String>,
    /// In a review: everything that has to change; empty when it passes.
    code_review: Vec<Finding>,
    suggested_next_step: Option<NextStep>,
}

#[derive(JsonSchema, Serialize)]
struct DeveloperProposals {
    workflow_transition: WireTransition,
    /// What was changed and how it was tried.
    implementation_report: String,
    suggested_next_step: Option<NextStep>,
}

/// One criterion and what was seen.
#[derive(JsonSchema, Serialize)]
struct WireEvidence {
    /// Its number, such as C-1; its words where it has no number.
    criterion: String,
    /// Where the criterion stands.
    source: String,
    /// What was seen.
    evidence: String,
    result: EvidenceResult,
}

/// The verdict. It passes only if the decision and every row pass.
#[derive(JsonSchema, Serialize)]
struct WireValidation {
    methodology: Methodology,
    decision: QaDecision,
    /// One row for each acceptance criterion, no more and no fewer.
    evidence_matrix: Vec<WireEvidence>,
    passed_checks: Vec<String>,
    findings: Vec<String>,
    residual_risks: Vec<String>,
    not_checked: Vec<String>,
}

/// The only method there is.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum Methodology {
    EvidenceMatrix,
}

#[derive(JsonSchema, Serialize)]
struct QaProposals {
    workflow_transition: WireTransition,
    qa_validation: WireValidation,
}

#[derive(JsonSchema, Serialize)]
struct InternalProposals {
    /// Candidates, at most one a finding.
    backlog_items: Vec<plan::Candidate>,
}

/// The schema of the answer of `role`; with `step`, as a part of the workflow; with `duty`, for what a
/// sprint or the backlog wants of it.
#[must_use]
pub fn schema(role: Role, step: Option<StepName>, duty: Option<Duty>) -> Value {
    let mut schema = match role {
        Role::Orchestrator => generate::<OrchestratorProposals>(),
        Role::Research => generate::<ResearchProposals>(),
        Role::Planner => generate::<PlannerProposals>(),
        Role::Designer => generate::<DesignerProposals>(),
        Role::Architect => generate::<ArchitectProposals>(),
        Role::Developer => generate::<DeveloperProposals>(),
        Role::Qa => generate::<QaProposals>(),
        Role::Parser | Role::Sourcer | Role::VersionController => generate::<InternalProposals>(),
    };
    let workflow = step.is_some();
    if let Some(Value::Object(proposals)) = schema.pointer_mut("/properties/proposals/properties") {
        if !workflow {
            proposals.shift_remove("workflow_transition");
            proposals.shift_remove("acceptance_criteria");
        }
        if role == Role::Qa && !workflow {
            proposals.shift_remove("qa_validation");
        }
        for part in plan::not_for(role, duty) {
            proposals.shift_remove(*part);
        }
    }
    strict(&mut schema);
    schema
}

fn generate<P: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<Answer<P>>().to_value()
}

/// Makes a schema strict: all properties required, no others, enums as one list, no annotations
/// that structured outputs refuse.
fn strict(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    for key in ["title", "format", "minimum", "default"] {
        // Inside "properties" these would be names, but properties are walked one by one below.
        fields.shift_remove(key);
    }
    if let Some(words) = fields.get("oneOf").and_then(constants) {
        fields.shift_remove("oneOf");
        fields.insert("type".to_owned(), json!("string"));
        fields.insert("enum".to_owned(), words);
    }
    if let Some(word) = fields.shift_remove("const") {
        fields.insert("enum".to_owned(), json!([word]));
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(strict);
        let names: Vec<String> = properties.keys().cloned().collect();
        fields.insert("required".to_owned(), json!(names));
        fields.insert("additionalProperties".to_owned(), json!(false));
    }
    for key in ["items", "additionalItems"] {
        fields.get_mut(key).into_iter().for_each(strict);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let entries = fields.get_mut(key).and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            strict(entry);
            // The property says what it is for; its type's own words are for programmers.
            if let Value::Object(entry) = entry {
                entry.shift_remove("description");
            }
        }
    }
}

/// The words of an enum that is written as one alternative a word.
fn constants(alternatives: &Value) -> Option<Value> {
    let words = alternatives
        .as_array()?
        .iter()
        .map(|alternative: &Value| {
            let fields: &Map<String, Value> = alternative.as_object()?;
            fields.get("const").cloned()
        })
        .collect::<Option<Vec<Value>>>()?;
    Some(Value::Array(words))
}
