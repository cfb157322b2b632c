//! Where a proposal, what the runtime saw or a person leads from the step of a request.

use std::collections::BTreeSet;

use super::decision::{BlockReason, ReportChange, WorkflowDecision};
use super::mover::{MoveResult, arrive, follow, reopen};
use super::outcome::{StepResult, outcome};
use crate::domain::lifecycle::{
    Edge, Lifecycle, ReopenCategory, Step, StepKind, StepName, StepOutcome,
};
use crate::domain::role::Role;
use crate::domain::workflow::{Outcome, PhaseStatus, Transition, WorkflowState};

/// Where a proposal leads from the state's step. `reporter` is the role that reported, `close` the answer of
/// [`close_in_planning`].
#[must_use]
pub fn route(
    lifecycle: &Lifecycle,
    state: &WorkflowState,
    reporter: Role,
    transition: &Transition,
    close: bool,
) -> MoveResult {
    let Some(step) = lifecycle.step(state.step) else { return MoveResult::Over };
    let mut next = state.clone();
    next.reopen_category = transition.reopen_category;
    if transition.outcome == Some(Outcome::Block) {
        next.phase_status = PhaseStatus::Blocked;
        return MoveResult::Stop(next, BlockReason::RoleAsked);
    }
    next.reopen_source_role = None;
    let came = outcome(lifecycle, step, reporter, transition, close);
    if step.kind == StepKind::Review && came != StepResult::Out(StepOutcome::Pass) {
        // At the limit of reviews everything but a pass stops (`spec/teams.md` 13.A #18, appendix C 7).
        let limit = step.on(StepOutcome::Revise).and_then(|edge| edge.within.or(edge.charge));
        if let Some(counter) = limit.filter(|counter| state.counter(*counter).is_spent()) {
            next.phase_status = PhaseStatus::Blocked;
            next.reopen_category.get_or_insert(ReopenCategory::Implementation);
            return MoveResult::Stop(next, BlockReason::Spent(counter));
        }
    }
    match came {
        StepResult::Out(outcome) => {
            if step.kind == StepKind::Plan && reporter != step.role {
                next.reopen_category = None;
            }
            let outcome = wanted_advice(lifecycle, step, &mut next, outcome).unwrap_or(outcome);
            follow(lifecycle, step, next, outcome)
        }
        StepResult::Reopened(category) => {
            reopen(lifecycle, step, state.clone(), reporter, category)
        }
        StepResult::Over => MoveResult::Over,
    }
}

/// The advice that a person wants before the plan goes on, and that is asked for now; where none of it is left to be
/// asked for, it is forgotten.
fn wanted_advice(
    lifecycle: &Lifecycle,
    step: &Step,
    state: &mut WorkflowState,
    outcome: StepOutcome,
) -> Option<StepOutcome> {
    if step.kind != StepKind::Plan || outcome != StepOutcome::Done {
        return None;
    }
    let asks = [StepOutcome::AskDesigner, StepOutcome::AskArchitect];
    let wanted = asks.into_iter().find(|ask| {
        let edge = step.on(*ask);
        let has_some = |edge: &Edge| edge.charge.is_none_or(|it| !state.counter(it).is_spent());
        edge.filter(has_some).is_some_and(|edge| state.route.wanted.contains(&edge.to))
    });
    match wanted.and_then(|ask| step.on(ask)).and_then(|edge| lifecycle.step(edge.to)) {
        Some(advice) => drop(state.route.wanted.remove(&advice.name)),
        None => state.route.wanted.clear(),
    }
    wanted
}

/// The change takes more steps than it would have, although it came to its end: the first judging step that it takes now.
/// `None` where nobody judges on that route either.
#[must_use]
pub fn lengthen(
    lifecycle: &Lifecycle,
    state: &WorkflowState,
    left_out: BTreeSet<StepName>,
) -> Option<WorkflowDecision> {
    let mut state = state.clone();
    state.route.left_out = left_out;
    state.route.judge_again = true;
    let landing = lifecycle.step(lifecycle.landing())?;
    let state = arrive(lifecycle, state, landing);
    (state.step != landing.name).then(|| entered(state, Vec::new()))
}

/// What the runtime itself saw at the state's step: its checks failed, or the branch changed the same places. Who is
/// to mend it gets it within the budget for that. What comes of a conflict is judged by QA, whatever the route was.
#[must_use]
pub fn observed(
    lifecycle: &Lifecycle,
    state: &WorkflowState,
    saw: Observation,
) -> WorkflowDecision {
    let mut next = state.clone();
    next.reopen_source_role = Some(Role::VersionController);
    let (outcome, category) = match saw {
        Observation::Red => (StepOutcome::Red, ReopenCategory::Verification),
        Observation::Conflict => (StepOutcome::Conflict, ReopenCategory::Implementation),
    };
    next.reopen_category = Some(category);
    next.route.conflicted |= saw == Observation::Conflict;
    let Some(step) = lifecycle.step(state.step) else { return unknown_step(next) };
    // A loop that nothing else counts is counted by its judgements.
    if saw == Observation::Red && step.on(outcome).is_some_and(|edge| edge.charge.is_some()) {
        not_judged(step, &mut next);
    }
    match follow(lifecycle, step, next.clone(), outcome) {
        MoveResult::To(next) => entered(next, Vec::new()),
        MoveResult::Stop(mut stopped, reason) => {
            if let (Observation::Conflict, Some(edge)) = (saw, step.on(outcome)) {
                // The worktree has both sides already. Whoever lets it go on has decided to spend as much again.
                if let Some(counter) = edge.charge.and_then(|it| stopped.counters.get_mut(&it)) {
                    counter.used = 0;
                }
                if let Some(to) = lifecycle.step(edge.to) {
                    stopped.place(to, lifecycle);
                }
            }
            blocked(stopped, reason, String::new())
        }
        // There is nobody to mend it.
        MoveResult::Over => blocked(next, BlockReason::RoleFailed, String::new()),
    }
}

/// What the runtime saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// The checks failed.
    Red,
    /// The branch changed the same places.
    Conflict,
}

/// A judgement that did not take place is not counted.
fn not_judged(step: &Step, state: &mut WorkflowState) {
    if let Some(counted) = step.counts.and_then(|name| state.counters.get_mut(&name)) {
        counted.used = counted.used.saturating_sub(1);
    }
}

/// What was handed in to be judged is no change at all, or none that can be judged: the same work again, before
/// whoever was to judge it.
#[must_use]
pub fn build_again(lifecycle: &Lifecycle, state: &WorkflowState) -> WorkflowState {
    let mut state = state.clone();
    let Some(step) = lifecycle.step(state.step) else { return state };
    not_judged(step, &mut state);
    if let Some(to) = step.on(StepOutcome::NoChange).and_then(|edge| lifecycle.step(edge.to)) {
        state.place(to, lifecycle);
    }
    state
}

/// A conflict is not solved: the same once more, before whoever was to judge it.
#[must_use]
pub fn solve_again(lifecycle: &Lifecycle, state: &WorkflowState) -> WorkflowState {
    let mut state = build_again(lifecycle, state);
    let landing = lifecycle.step(lifecycle.landing());
    let solves = landing.and_then(|step| step.on(StepOutcome::Conflict));
    if let Some(to) = solves.and_then(|edge| lifecycle.step(edge.to)) {
        state.place(to, lifecycle);
    }
    state
}

/// A person let a request go on whose loops are spent, or asked something: the planner takes it up again with fresh
/// budgets, because a person decided to spend them.
#[must_use]
pub fn resume(lifecycle: &Lifecycle, state: &WorkflowState) -> WorkflowDecision {
    enter(lifecycle, renewed(state), lifecycle.resume, Vec::new())
}

/// A person said more about what is to be done: the planner takes it up, or whoever builds, where the route has no plan
/// and the planner was not about to make one.
#[must_use]
pub fn resume_with_words(lifecycle: &Lifecycle, state: &WorkflowState) -> WorkflowDecision {
    let plans = |step: &Step| matches!(step.kind, StepKind::Plan | StepKind::Advice);
    let is_planned = lifecycle.step(state.step).is_some_and(plans);
    let plan = lifecycle.step_of(StepKind::Plan).filter(|step| state.route.leaves_out(step));
    match plan.filter(|_| !is_planned) {
        Some(plan) => entered(arrive(lifecycle, renewed(state), plan), Vec::new()),
        None => resume(lifecycle, state),
    }
}

/// A person said what the role of a step asked, or did not get by without: that step is done again.
#[must_use]
pub fn resume_at_its_step(lifecycle: &Lifecycle, state: &WorkflowState) -> WorkflowDecision {
    let mut renewed = state.clone();
    renewed.renew();
    enter(lifecycle, renewed, state.step, Vec::new())
}

fn renewed(state: &WorkflowState) -> WorkflowState {
    let mut state = state.clone();
    state.renew();
    state.reopen_source_role = None;
    state.reopen_category = None;
    // A workspace's own way from here may pass those who judge, and what is built now nobody has judged.
    state.route.judge_again = true;
    state
}

/// The state as it was before it stopped: the same step, which is to be tried again.
#[must_use]
pub fn again(lifecycle: &Lifecycle, state: &WorkflowState) -> WorkflowState {
    let mut state = state.clone();
    if let Some(step) = lifecycle.step(state.step) {
        state.place(step, lifecycle);
    }
    state
}

/// Where a request begins that takes a route: at the first step of that, from the step on that its lifecycle begins with.
#[must_use]
pub fn begin(
    lifecycle: &Lifecycle,
    mut state: WorkflowState,
    left_out: BTreeSet<StepName>,
) -> WorkflowDecision {
    state.route.left_out = left_out;
    match lifecycle.step(state.step) {
        Some(step) => entered(arrive(lifecycle, state, step), Vec::new()),
        None => unknown_step(state),
    }
}

/// Puts the state on a step and hands it to whoever works that.
pub(super) fn enter(
    lifecycle: &Lifecycle,
    mut state: WorkflowState,
    step: StepName,
    notes: Vec<ReportChange>,
) -> WorkflowDecision {
    state.step = step;
    match lifecycle.step(step) {
        Some(step) => state.place(step, lifecycle),
        None => return unknown_step(state),
    }
    entered(state, notes)
}

/// Something is wrong with the plan: its planner gets it back, before anything of it is built.
#[must_use]
pub fn plan_again(lifecycle: &Lifecycle, state: &WorkflowState) -> WorkflowDecision {
    enter(lifecycle, state.clone(), lifecycle.resume, vec![ReportChange::PlanFindings])
}

/// The plan is taken as it is, whatever whoever read it at `step` says: where that leads.
#[must_use]
pub fn plan_taken(lifecycle: &Lifecycle, state: &WorkflowState, step: &Step) -> WorkflowDecision {
    let mut state = state.clone();
    state.reopen_source_role = None;
    state.reopen_category = None;
    match follow(lifecycle, step, state.clone(), StepOutcome::Done) {
        MoveResult::To(next) => entered(next, Vec::new()),
        MoveResult::Stop(stopped, reason) => blocked(stopped, reason, String::new()),
        MoveResult::Over => unknown_step(state),
    }
}

/// Hands the state's step to whoever works it.
pub(super) fn entered(state: WorkflowState, notes: Vec<ReportChange>) -> WorkflowDecision {
    if state.phase_status == PhaseStatus::Completed {
        return WorkflowDecision::Closeout { state };
    }
    WorkflowDecision::Next { role: state.phase_owner, step: state.step, state, notes }
}

pub(super) fn unknown_step(state: WorkflowState) -> WorkflowDecision {
    let reason = BlockReason::UnknownStep(state.step);
    blocked(state, reason, String::new())
}

/// Stops where the state is.
pub(super) fn blocked(
    mut state: WorkflowState,
    reason: BlockReason,
    text: String,
) -> WorkflowDecision {
    state.phase_status = PhaseStatus::Blocked;
    WorkflowDecision::Blocked { state, reason, text }
}
