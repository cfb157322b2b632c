//! The decision table and the reopen map (`spec/teams.md` 7.3), the close-in-planning test (7.4).

use super::report::StepReport;
use super::surfaces::is_planning_surface;
use super::{BlockReason, PhaseStatus, ReopenCategory, Role, Step, WorkflowState};
use crate::domain::workflow::{Outcome, Phase, Transition};

/// What the table says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Routed {
    /// The state's step is next (or it is the closeout).
    To(WorkflowState),
    /// A limit of the table is reached, or the role asked for a person.
    Stop(WorkflowState, BlockReason),
    /// The workflow is over; there is nothing to route.
    Over,
}

/// The first matching row of the decision table. `reporter` is the role that reported, `close` the
/// answer of the close-in-planning test.
#[must_use]
pub fn route(
    state: &WorkflowState,
    reporter: Option<Role>,
    transition: &Transition,
    close: bool,
) -> Routed {
    let mut next = state.clone();
    if transition.outcome == Some(Outcome::Block) {
        next.reopen_category = transition.reopen_category;
        next.phase_status = PhaseStatus::Blocked;
        return Routed::Stop(next, BlockReason::RoleAsked);
    }
    next.reopen_source_role = None;
    next.reopen_category = transition.reopen_category;
    let reopens = transition.outcome == Some(Outcome::Reopen);
    match state.step {
        Step::ResearchInitial => to(next, Step::PlannerDraft),
        Step::PlannerDraft | Step::PlannerFinalize => {
            planner(state, next, reporter, transition, close)
        }
        Step::PlannerAdvisory | Step::DesignerAdvisory | Step::ArchitectAdvisory => {
            to(next, Step::PlannerFinalize)
        }
        Step::ArchitectGuidance if reopens => reopen(state, reporter, transition.reopen_category),
        Step::ArchitectGuidance => to(next, Step::DeveloperBuild),
        Step::DeveloperBuild if reopens => reopen(state, reporter, transition.reopen_category),
        Step::DeveloperBuild => to_review(next),
        Step::ArchitectReview => review(state, next, reporter, transition),
        Step::DeveloperRevision if reopens => reopen(state, reporter, transition.reopen_category),
        Step::DeveloperRevision if transition.target_step == Some(Step::ArchitectReview) => {
            to_review(next)
        }
        Step::DeveloperRevision => to(clear(next), Step::QaValidation),
        Step::QaValidation if reopens => reopen(state, reporter, transition.reopen_category),
        Step::QaValidation => to(clear(next), Step::Closeout),
        Step::Closeout => Routed::Over,
    }
}

fn planner(
    state: &WorkflowState,
    mut next: WorkflowState,
    reporter: Option<Role>,
    transition: &Transition,
    close: bool,
) -> Routed {
    if reporter != Some(Role::Planner) {
        return to(clear(next), Step::PlannerFinalize);
    }
    let reopens = transition.outcome == Some(Outcome::Reopen);
    if reopens
        && (transition.target_step == Some(Step::PlannerFinalize)
            || transition.reopen_category == Some(ReopenCategory::Scope))
    {
        return to(next, Step::PlannerFinalize);
    }
    let advisory = transition.target_step.filter(|step| step.advisor(None).is_some());
    if let Some(step) = advisory
        && transition.outcome != Some(Outcome::Complete)
    {
        if state.planning_pass_count >= state.planning_pass_limit {
            next.phase_status = PhaseStatus::Blocked;
            return Routed::Stop(next, BlockReason::AdvisoryCap);
        }
        next.planning_pass_count += 1;
        return to(next, step);
    }
    if close {
        return to(clear(next), Step::Closeout);
    }
    to(next, Step::ArchitectGuidance)
}

/// A review passes only by an explicit move to QA. A "reopen" never passes, and at the limit
/// everything but a pass stops (`spec/teams.md` 13.A #18, appendix C 7).
fn review(
    state: &WorkflowState,
    mut next: WorkflowState,
    reporter: Option<Role>,
    transition: &Transition,
) -> Routed {
    let reopens = transition.outcome == Some(Outcome::Reopen);
    let passes = !reopens
        && (transition.target_step == Some(Step::QaValidation)
            || transition.target_phase == Some(Phase::Validation)
            || transition.outcome == Some(Outcome::Complete));
    if passes {
        return to(clear(next), Step::QaValidation);
    }
    if state.review_cycle_count >= state.review_cycle_limit {
        next.phase_status = PhaseStatus::Blocked;
        next.reopen_category =
            Some(transition.reopen_category.unwrap_or(ReopenCategory::Implementation));
        return Routed::Stop(next, BlockReason::ReviewBudget);
    }
    match transition.reopen_category {
        Some(
            category @ (ReopenCategory::Scope
            | ReopenCategory::Ux
            | ReopenCategory::Architecture
            | ReopenCategory::Verification),
        ) if reopens => reopen(state, reporter, Some(category)),
        Some(_) | None => to(next, Step::DeveloperRevision),
    }
}

/// The reopen map: who has to do what again.
#[must_use]
pub fn reopen(
    state: &WorkflowState,
    reporter: Option<Role>,
    category: Option<ReopenCategory>,
) -> Routed {
    let mut next = state.clone();
    let source = reporter.unwrap_or(state.step.owner());
    next.reopen_source_role = Some(source);
    next.reopen_category = category;
    let by_qa = source == Role::Qa;
    let step = match category {
        None | Some(ReopenCategory::Scope) => Step::PlannerFinalize,
        Some(ReopenCategory::Ux) if state.planning_pass_count >= state.planning_pass_limit => {
            Step::PlannerFinalize
        }
        Some(ReopenCategory::Ux) => {
            next.planning_pass_count += 1;
            Step::DesignerAdvisory
        }
        Some(ReopenCategory::Architecture) if by_qa => return to_review(next),
        Some(ReopenCategory::Architecture) => Step::ArchitectGuidance,
        Some(ReopenCategory::Implementation | ReopenCategory::Verification) => {
            let revises = matches!(state.step, Step::ArchitectReview | Step::DeveloperRevision);
            if by_qa || revises { Step::DeveloperRevision } else { Step::DeveloperBuild }
        }
    };
    to(next, step)
}

/// Whether planning alone answers the request. A "reopen" never closes (`spec/teams.md` 13.A #2).
#[must_use]
pub fn close_in_planning(state: &WorkflowState, report: &StepReport) -> bool {
    let transition = &report.transition;
    let goes_on = matches!(transition.outcome, Some(Outcome::Advance | Outcome::Continue));
    if report.role != Role::Planner
        || !matches!(state.step, Step::PlannerDraft | Step::PlannerFinalize)
        || transition.outcome == Some(Outcome::Reopen)
        || transition.target_step.is_some_and(|step| step.advisor(None).is_some())
        || (goes_on && transition.target_phase == Some(Phase::Implementation))
    {
        return false;
    }
    let artifacts: Vec<&String> =
        report.artifacts.iter().filter(|path| !path.trim().is_empty()).collect();
    if !artifacts.iter().all(|path| is_planning_surface(path)) {
        return false;
    }
    if report.planning_record {
        return true;
    }
    let closes = transition.outcome == Some(Outcome::Complete)
        || (transition.finalize_phase && !transition.continues());
    !artifacts.is_empty() && (!report.wants_execution || closes)
}

/// Puts the state on a step: phase, owner and status follow.
pub(super) fn place(state: &mut WorkflowState, step: Step) {
    state.step = step;
    state.phase = step.phase();
    state.phase_owner = step.owner();
    state.phase_status = match step {
        Step::PlannerFinalize => PhaseStatus::Finalizing,
        Step::Closeout => PhaseStatus::Completed,
        Step::ResearchInitial
        | Step::PlannerDraft
        | Step::PlannerAdvisory
        | Step::DesignerAdvisory
        | Step::ArchitectAdvisory
        | Step::ArchitectGuidance
        | Step::DeveloperBuild
        | Step::ArchitectReview
        | Step::DeveloperRevision
        | Step::QaValidation => PhaseStatus::Active,
    };
}

fn to(mut state: WorkflowState, step: Step) -> Routed {
    place(&mut state, step);
    Routed::To(state)
}

fn to_review(mut state: WorkflowState) -> Routed {
    state.review_cycle_count = state.review_cycle_count.saturating_add(1);
    to(state, Step::ArchitectReview)
}

fn clear(mut state: WorkflowState) -> WorkflowState {
    state.reopen_category = None;
    state
}
