//! The built-in templates, from the folder `prompts/`.

use super::task::Task;
use crate::domain::role::Role;

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        /// Every template by its name within `prompts/`.
        const TEMPLATES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/prompts/", $name)))),+
        ];
    };
}

embedded!(
    "charter.md",
    "contract.md",
    "request.md",
    "criteria.md",
    "decisions.md",
    "plan_findings.md",
    "edited.md",
    "continues.md",
    "handover.md",
    "builds_on.md",
    "hand_over.md",
    "again.md",
    "conflict.md",
    "sprint.md",
    "facts.md",
    "backlog.md",
    "followups.md",
    "evidence.md",
    "upstream.md",
    "diff.md",
    "documents.md",
    "history.md",
    "repair.md",
    "steer.md",
    "hint.md",
    "tools/submit_result.md",
    "tools/backlog.md",
    "tools/memory.md",
    "tools/status.md",
    "steps/intake.md",
    "steps/internal.md",
    "steps/research_initial.md",
    "steps/planner_draft.md",
    "steps/designer_advisory.md",
    "steps/addressed.md",
    "steps/architect_advisory.md",
    "steps/planner_finalize.md",
    "steps/architect_guidance.md",
    "steps/developer_build.md",
    "steps/architect_review.md",
    "steps/developer_revision.md",
    "steps/conflict_resolution.md",
    "steps/qa_validation.md",
    "steps/research_prepass.md",
    "steps/milestone_refinement.md",
    "steps/artifact_sync.md",
    "steps/backlog_definition.md",
    "steps/backlog_prioritization.md",
    "steps/todo_finalization.md",
    "steps/plan_review.md",
    "steps/ongoing_review.md",
    "steps/closing_report.md",
    "steps/sourcing.md",
    "steps/sourcer_review.md",
    "steps/blocked_backlog_review.md",
);

/// The built-in text of a template.
pub(super) fn built_in(name: &str) -> Option<&'static str> {
    TEMPLATES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names of all built-in templates.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TEMPLATES.iter().map(|(name, _)| *name)
}

/// The texts of all built-in templates.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    TEMPLATES.iter().map(|(_, text)| *text)
}

/// The template with the rules of a task.
pub(super) fn step(task: &Task) -> String {
    let word = match (&task.step, task.role) {
        (_, _) if !task.template.is_empty() => &task.template,
        (Some(step), _) => step.as_str(),
        (None, Role::Orchestrator) => "intake",
        (None, role) if task.work.duty.is_none() && Role::ADDRESSED.contains(&role) => "addressed",
        (
            None,
            Role::Research
            | Role::Planner
            | Role::Designer
            | Role::Architect
            | Role::Developer
            | Role::Qa
            | Role::Parser
            | Role::Sourcer
            | Role::VersionController
            | Role::ConflictResolver,
        ) => "internal",
    };
    format!("steps/{word}.md")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::prompt::PersonMessage;
    use crate::domain::lifecycle::{Lifecycle, Subject};

    fn task(role: Role) -> Task {
        Task::first(role, None, "r", PersonMessage::new("a", "b"))
    }

    #[test]
    fn every_step_and_role_has_a_template() {
        for role in Role::ALL {
            assert!(built_in(&step(&task(role))).is_some());
        }
        for subject in Subject::ALL {
            let steps = Lifecycle::of(subject).steps();
            for one in steps.filter(|step| !step.kind.roles().is_empty()) {
                let mut task = task(one.role);
                task.step = Some(one.name);
                assert_eq!(step(&task), format!("steps/{}.md", one.name));
                task.template.clone_from(&one.prompt);
                assert_eq!(step(&task), one.template());
                assert!(built_in(&one.template()).is_some(), "{}", one.name);
            }
        }
    }
}
