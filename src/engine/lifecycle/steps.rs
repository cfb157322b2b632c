//! The steps of the lifecycle that is built in, for tests.

use crate::domain::lifecycle::{Lifecycle, Step, StepName};

pub(in crate::engine) const RESEARCH: StepName = StepName::of("research_initial");
pub(in crate::engine) const DRAFT: StepName = StepName::of("planner_draft");
pub(in crate::engine) const DESIGNER: StepName = StepName::of("designer_advisory");
pub(in crate::engine) const ARCHITECT: StepName = StepName::of("architect_advisory");
pub(in crate::engine) const FINALIZE: StepName = StepName::of("planner_finalize");
pub(in crate::engine) const GUIDANCE: StepName = StepName::of("architect_guidance");
pub(in crate::engine) const BUILD: StepName = StepName::of("developer_build");
pub(in crate::engine) const REVIEW: StepName = StepName::of("architect_review");
pub(in crate::engine) const REVISION: StepName = StepName::of("developer_revision");
pub(in crate::engine) const QA: StepName = StepName::of("qa_validation");
pub(in crate::engine) const CLOSEOUT: StepName = StepName::of("closeout");

/// All of them that a role works.
pub(in crate::engine) fn of_roles() -> Vec<StepName> {
    let steps = Lifecycle::built_in().steps().map(|step| step.name);
    steps.filter(|name| *name != CLOSEOUT).collect()
}

/// A step by its name.
pub(in crate::engine) fn step(name: StepName) -> &'static Step {
    Lifecycle::built_in().step(name).expect("a step")
}
