//! The JSON schema that an agent's answer has to follow: that of the type which is read, cut to the parts that the
//! role may give at its step.

use serde_json::Value;

use crate::domain::lifecycle::StepName;
use crate::domain::result::{Proposals, RoleResult, shape};
use crate::domain::role::Role;
use crate::domain::sprint::Duty;

/// The parts that a role is asked for: those that it always gives, and those that may be null. What nobody will read
/// is not asked for.
fn asked(
    role: Role,
    workflow: bool,
    duty: Option<Duty>,
) -> (&'static [&'static str], &'static [&'static str]) {
    const ITEMS: &[&str] = &["backlog_items", "required_inputs"];
    match (role, duty) {
        (Role::Orchestrator, _) => {
            (&["request_handling"], &["request_intent", "request_parts", "control_action"])
        }
        // Written to the role itself.
        (Role::Research | Role::Planner | Role::Designer | Role::Architect | Role::Qa, None)
            if !workflow =>
        {
            (&["request_handling"], &[])
        }
        (Role::Research, _) if workflow => {
            (&["workflow_transition"], &["research_signal", "research_report"])
        }
        (Role::Research, _) => (&[], &["research_signal", "research_report"]),
        (Role::Planner, Some(Duty::Planning)) => (ITEMS, &["sprint_plan_update"]),
        (Role::Planner, Some(Duty::ClosingReport)) => (&[], &["sprint_report"]),
        (Role::Planner, Some(Duty::OngoingReview | Duty::SourcerReview | Duty::BlockedReview)) => {
            (ITEMS, &[])
        }
        (Role::Planner, Some(Duty::ResearchPrepass | Duty::PlanReview | Duty::Sourcing) | None)
            if workflow =>
        {
            (
                &["workflow_transition", "backlog_items", "required_inputs"],
                &[
                    "planning_note",
                    "root_cause_contract",
                    "todo_brief",
                    "acceptance_criteria",
                    "requirements",
                    "allowed_paths",
                    "excluded_paths",
                    "questions",
                    "suggested_next_step",
                ],
            )
        }
        (Role::Planner, Some(Duty::ResearchPrepass | Duty::PlanReview | Duty::Sourcing) | None) => {
            (ITEMS, &["planning_note", "root_cause_contract", "todo_brief", "suggested_next_step"])
        }
        (Role::Designer, _) if workflow => (&["workflow_transition"], &["design_feedback"]),
        (Role::Designer, _) => (&[], &["design_feedback"]),
        (Role::Architect, Some(Duty::PlanReview)) => (&["plan_findings"], &[]),
        (Role::Architect, _) if workflow => (
            &["workflow_transition", "code_review"],
            &["plan_findings", "implementation_guidance", "suggested_next_step"],
        ),
        (Role::Architect, _) => {
            (&["code_review"], &["implementation_guidance", "suggested_next_step"])
        }
        (Role::Developer | Role::ConflictResolver, _) if workflow => {
            (&["workflow_transition", "implementation_report"], &["suggested_next_step"])
        }
        (Role::Developer | Role::ConflictResolver, _) => {
            (&["implementation_report"], &["suggested_next_step"])
        }
        (Role::Qa, _) if workflow => (&["workflow_transition", "qa_validation"], &[]),
        (Role::Qa, _) => (&[], &[]),
        (Role::Parser | Role::Sourcer | Role::VersionController, _) => (&["backlog_items"], &[]),
    }
}

/// What only the planner says of an item, and what only a finding says of where it was.
const OF_THE_PLANNER: [&str; 8] = [
    "backlog_id",
    "priority_rank",
    "effort",
    "allowed_paths",
    "depends_on",
    "status",
    "dropped_reason",
    "planned_in_sprint_id",
];
const REFS: [&str; 4] = ["milestone_ref", "requirement_refs", "spec_refs", "research_refs"];
const FOUND_AT: [&str; 5] = ["signal", "trace", "request_id", "role", "log_file"];

/// The schema of the answer of `role`; with `step`, as a part of the workflow; with `duty`, for what a
/// sprint or the backlog wants of it.
#[must_use]
pub fn schema(role: Role, step: Option<StepName>, duty: Option<Duty>) -> Value {
    let (always, or_null) = asked(role, step.is_some(), duty);
    let mut parts = Proposals::schema().clone();
    if let Value::Object(fields) = &mut parts {
        if let Some(Value::Object(properties)) = fields.get_mut("properties") {
            properties.retain(|name, _| {
                always.contains(&name.as_str()) || or_null.contains(&name.as_str())
            });
            for name in always {
                properties.get_mut(*name).into_iter().for_each(shape::without_null);
            }
        }
        shape::close(fields);
    }
    let item = "/properties/backlog_items/items";
    if role == Role::Planner {
        cut(&mut parts, &format!("{item}/properties/origin/anyOf/0"), &FOUND_AT);
    } else {
        cut(&mut parts, &format!("{item}/properties/origin/anyOf/0"), &REFS);
        cut(&mut parts, item, &OF_THE_PLANNER);
    }
    let mut schema = RoleResult::schema().clone();
    if let Some(proposals) = schema.pointer_mut("/properties/proposals") {
        let about = proposals.get("description").cloned();
        *proposals = parts;
        if let (Some(about), Some(fields)) = (about, proposals.as_object_mut()) {
            fields.insert("description".to_owned(), about);
        }
    }
    schema
}

/// Takes properties out of the schema of an object.
fn cut(schema: &mut Value, pointer: &str, names: &[&str]) {
    let Some(Value::Object(fields)) = schema.pointer_mut(pointer) else { return };
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _: &mut Value| !names.contains(&name.as_str()));
    }
    shape::close(fields);
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn every_part_is_asked_for_by_somebody() {
        let mut parts: Map<String, Value> =
            Proposals::schema()["properties"].as_object().unwrap().clone();
        for role in Role::ALL {
            for duty in Duty::ALL.map(Some).into_iter().chain([None]) {
                for workflow in [true, false] {
                    let (always, or_null) = asked(role, workflow, duty);
                    for name in always.iter().chain(or_null) {
                        assert!(Proposals::schema()["properties"].get(name).is_some(), "{name}");
                        parts.shift_remove(*name);
                    }
                }
            }
        }
        assert_eq!(parts, Map::new());
    }
}
