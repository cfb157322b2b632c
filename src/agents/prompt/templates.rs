//! The built-in templates, from the folder `prompts/`.

use super::Work;
use crate::domain::role::Role;
use crate::domain::sprint::{Duty, InitialStep};
use crate::domain::workflow::Step;

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
    "edited.md",
    "continues.md",
    "handover.md",
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
    "steps/planner_advisory.md",
    "steps/designer_advisory.md",
    "steps/architect_advisory.md",
    "steps/planner_finalize.md",
    "steps/architect_guidance.md",
    "steps/developer_build.md",
    "steps/architect_review.md",
    "steps/developer_revision.md",
    "steps/qa_validation.md",
    "steps/closeout.md",
    "steps/research_prepass.md",
    "steps/milestone_refinement.md",
    "steps/artifact_sync.md",
    "steps/backlog_definition.md",
    "steps/backlog_prioritization.md",
    "steps/todo_finalization.md",
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

/// The template with the rules of a step: of the duty where there is one, else of the workflow.
pub(super) fn step(role: Role, step: Option<Step>, work: &Work) -> String {
    let word = match (work.duty, work.planning_step) {
        (Some(Duty::Planning), step) => step.unwrap_or(InitialStep::MilestoneRefinement).as_str(),
        (Some(duty), _) => duty.as_str(),
        (None, _) => return in_workflow(role, step).to_owned(),
    };
    format!("steps/{word}.md")
}

const fn in_workflow(role: Role, step: Option<Step>) -> &'static str {
    match step {
        Some(Step::ResearchInitial) => "steps/research_initial.md",
        Some(Step::PlannerDraft) => "steps/planner_draft.md",
        Some(Step::PlannerAdvisory) => "steps/planner_advisory.md",
        Some(Step::DesignerAdvisory) => "steps/designer_advisory.md",
        Some(Step::ArchitectAdvisory) => "steps/architect_advisory.md",
        Some(Step::PlannerFinalize) => "steps/planner_finalize.md",
        Some(Step::ArchitectGuidance) => "steps/architect_guidance.md",
        Some(Step::DeveloperBuild) => "steps/developer_build.md",
        Some(Step::ArchitectReview) => "steps/architect_review.md",
        Some(Step::DeveloperRevision) => "steps/developer_revision.md",
        Some(Step::QaValidation) => "steps/qa_validation.md",
        Some(Step::Closeout) => "steps/closeout.md",
        None => match role {
            Role::Orchestrator => "steps/intake.md",
            Role::Research
            | Role::Planner
            | Role::Designer
            | Role::Architect
            | Role::Developer
            | Role::Qa
            | Role::Parser
            | Role::Sourcer
            | Role::VersionController => "steps/internal.md",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::workflow::Word as _;

    #[test]
    fn every_step_and_role_has_a_template() {
        let none = Work::default();
        for role in Role::ALL {
            assert!(built_in(&step(role, None, &none)).is_some());
        }
        for one in Step::ALL {
            let name = step(one.owner(), Some(one), &none);
            assert_eq!(name, format!("steps/{}.md", one.as_str()));
            assert!(built_in(&name).is_some());
        }
        for duty in Duty::ALL {
            for planning_step in InitialStep::ALL {
                let work = Work {
                    duty: Some(*duty),
                    planning_step: Some(*planning_step),
                    ..Work::default()
                };
                assert!(built_in(&step(Role::Planner, None, &work)).is_some(), "{duty}");
            }
        }
    }
}
