//! What a role's result means for its step: one function, for the results of every kind of step
//! (`spec/teams.md` 7.3 and 7.4).

use super::report::StepReport;
use super::surfaces::is_planning_surface;
use crate::domain::lifecycle::{
    Lifecycle, Phase, ReopenCategory, Step, StepAccess, StepKind, StepOutcome,
};
use crate::domain::role::Role;
use crate::domain::workflow::{Outcome, Transition};

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepResult {
    /// One of the step's outcomes.
    Out(StepOutcome),
    /// Something has to be done again; without a category it is the scope.
    Reopened(Option<ReopenCategory>),
    /// Nothing: the lifecycle has ended.
    Over,
}

/// What `reporter`'s proposal means at `step`. `close` says that planning alone answers the request.
pub(super) fn outcome(
    lifecycle: &Lifecycle,
    step: &Step,
    reporter: Role,
    transition: &Transition,
    close: bool,
) -> StepResult {
    let reopens = transition.outcome == Some(Outcome::Reopen);
    let category = transition.reopen_category;
    let target = transition.target_step.and_then(|name| lifecycle.step(name));
    let target_kind = target.map(|target| target.kind);
    match step.kind {
        StepKind::Research | StepKind::Advice => StepResult::Out(StepOutcome::Done),
        StepKind::Plan if reporter != step.role => StepResult::Out(StepOutcome::Again),
        StepKind::Plan => StepResult::Out(plan(lifecycle, step, target, transition, close)),
        StepKind::Guidance | StepKind::Change if reopens => StepResult::Reopened(category),
        StepKind::Change
            if target_kind == Some(StepKind::Review) && step.on(StepOutcome::Review).is_some() =>
        {
            StepResult::Out(StepOutcome::Review)
        }
        StepKind::Guidance | StepKind::Change => StepResult::Out(StepOutcome::Done),
        StepKind::Review => {
            // It passes only by an explicit move on, and what reopens never does (`spec/teams.md` 13.A #2).
            let onward = step.on(StepOutcome::Pass).map(|edge| edge.to);
            let passes = !reopens
                && (target_kind == Some(StepKind::Verdict)
                    || (onward.is_some() && transition.target_step == onward)
                    || transition.target_phase == Some(Phase::Validation)
                    || transition.outcome == Some(Outcome::Complete));
            match category {
                _ if passes => StepResult::Out(StepOutcome::Pass),
                Some(ReopenCategory::Implementation) | None => StepResult::Out(StepOutcome::Revise),
                Some(
                    ReopenCategory::Scope
                    | ReopenCategory::Ux
                    | ReopenCategory::Architecture
                    | ReopenCategory::Verification,
                ) if reopens => StepResult::Reopened(category),
                Some(_) => StepResult::Out(StepOutcome::Revise),
            }
        }
        StepKind::Verdict if reopens => StepResult::Reopened(category),
        StepKind::Verdict => StepResult::Out(StepOutcome::Pass),
        // Nobody reports of the runtime's steps, and sprints are followed by `super::sprint`.
        StepKind::Land | StepKind::Sprint(_) => StepResult::Over,
    }
}

fn plan(
    lifecycle: &Lifecycle,
    step: &Step,
    target: Option<&Step>,
    transition: &Transition,
    close: bool,
) -> StepOutcome {
    let reopens = transition.outcome == Some(Outcome::Reopen);
    if reopens
        && (transition.target_step == Some(lifecycle.resume)
            || transition.reopen_category == Some(ReopenCategory::Scope))
    {
        return StepOutcome::Again;
    }
    let advice = target
        .filter(|target| target.kind == StepKind::Advice)
        .filter(|_| transition.outcome != Some(Outcome::Complete))
        .map(|target| match target.role {
            Role::Designer => StepOutcome::AskDesigner,
            Role::Orchestrator
            | Role::Research
            | Role::Planner
            | Role::Architect
            | Role::Developer
            | Role::Qa
            | Role::Parser
            | Role::Sourcer
            | Role::VersionController
            | Role::ConflictResolver => StepOutcome::AskArchitect,
        })
        .filter(|outcome| step.on(*outcome).is_some());
    match advice {
        Some(advice) => advice,
        None if close && step.on(StepOutcome::Answered).is_some() => StepOutcome::Answered,
        None => StepOutcome::Done,
    }
}

/// Whether planning alone answers the request. A "reopen" never closes (`spec/teams.md` 13.A #2). What is to be
/// built is done by what is built and proven, whatever its planner says of it.
#[must_use]
pub fn close_in_planning(lifecycle: &Lifecycle, step: &Step, report: &StepReport) -> bool {
    let transition = &report.transition;
    let completes = match transition.outcome {
        Some(Outcome::Complete) => true,
        None => transition.finalize_phase,
        Some(Outcome::Advance | Outcome::Continue | Outcome::Block | Outcome::Reopen) => false,
    };
    let target = transition.target_step.and_then(|name| lifecycle.step(name));
    if report.is_to_be_built
        || report.role != Role::Planner
        || step.kind != StepKind::Plan
        || transition.outcome == Some(Outcome::Reopen)
        || target.is_some_and(|target| target.kind == StepKind::Advice)
        // A plan of what is to be carried out is no answer, unless its planner says so.
        || (!completes && report.wants_execution)
        || transition.target_phase == Some(Phase::Implementation)
        || target.is_some_and(|target| target.access == StepAccess::Write)
    {
        return false;
    }
    let artifacts: Vec<&String> =
        report.artifacts.iter().filter(|path| !path.trim().is_empty()).collect();
    if !artifacts.iter().all(|path| is_planning_surface(path)) {
        return false;
    }
    report.planning_record || !artifacts.is_empty()
}
