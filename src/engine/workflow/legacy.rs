//! Requests of older workspaces that carry no workflow state.

use serde_json::Value;

use crate::domain::role::Role;
use crate::domain::workflow::{Step, Word, WorkflowState};

/// The state of a sprint request that was written without one: planning requests are taken up where
/// their current role stands, requests that were already carried out have none. Events are read
/// under both of their names (`spec/teams.md` 13.A #19).
#[must_use]
pub fn infer_legacy(record: &Value) -> Option<WorkflowState> {
    let reports: Vec<Role> = record
        .get("events")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|event| {
            ["type", "event_type"].iter().any(|key| {
                let kind = event.get(key).and_then(Value::as_str).unwrap_or_default();
                kind.trim().eq_ignore_ascii_case("role_report")
            })
        })
        .filter_map(|event| Role::of(event.get("actor")))
        .collect();
    if reports.iter().any(|role| matches!(role, Role::Developer | Role::Qa)) {
        return None;
    }
    let advice = reports.iter().filter(|role| Step::advisory_of(**role).is_some()).count();
    let advice = u32::try_from(advice).unwrap_or(u32::MAX);
    let current = Role::of(record.get("current_role"))?;
    let (step, passes) = match current {
        Role::Research => (Step::ResearchInitial, advice),
        Role::Planner if advice > 0 => (Step::PlannerFinalize, advice),
        Role::Planner => (Step::PlannerDraft, 0),
        Role::Designer => (Step::DesignerAdvisory, advice.max(1)),
        Role::Architect => (Step::ArchitectAdvisory, advice.max(1)),
        Role::Orchestrator
        | Role::Developer
        | Role::Qa
        | Role::Parser
        | Role::Sourcer
        | Role::VersionController => return None,
    };
    let mut state = WorkflowState::initial(step);
    super::table::place(&mut state, step);
    state.planning_pass_count = passes.min(state.planning_pass_limit);
    Some(state)
}
