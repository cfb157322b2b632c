//! The built-in templates, from the folder `prompts/`.

use crate::domain::role::Role;
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
    "again.md",
    "followups.md",
    "evidence.md",
    "upstream.md",
    "diff.md",
    "documents.md",
    "history.md",
    "repair.md",
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
);

/// The built-in text of a template.
pub(super) fn built_in(name: &str) -> Option<&'static str> {
    TEMPLATES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The template with the rules of a step.
pub(super) const fn step(role: Role, step: Option<Step>) -> &'static str {
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
        for role in Role::ALL {
            assert!(built_in(step(role, None)).is_some());
        }
        for one in Step::ALL {
            let name = step(one.owner(), Some(one));
            assert_eq!(name, format!("steps/{}.md", one.as_str()));
            assert!(built_in(name).is_some());
        }
    }
}
