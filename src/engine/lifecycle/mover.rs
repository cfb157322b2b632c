//! Follows the edges of a lifecycle: the one place that changes the step of a request or of a sprint.

use std::collections::BTreeMap;

use super::decision::BlockReason;
use crate::domain::lifecycle::{
    Condition, CounterName, Edge, Lifecycle, ReopenCategory, Step, StepKind, StepName, StepOutcome,
};
use crate::domain::role::Role;
use crate::domain::sprint::Sprint;
use crate::domain::workflow::{Allowance, PhaseStatus, WorkflowState};

/// Where the mover came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveResult {
    /// The state's step is next.
    To(WorkflowState),
    /// A counter is used up, or a role asked for a person.
    Stop(WorkflowState, BlockReason),
    /// The lifecycle has ended; there is nowhere to go.
    Over,
}

/// Whether a way to the end may pass those who judge: a shortened one, and the one from a conflict. Elsewhere every way
/// from a refusal leads to whoever judges next.
fn may_pass_judges(state: &WorkflowState) -> bool {
    state.route.conflicted || !state.route.left_out.is_empty()
}

/// Follows what came of the state's step.
pub(super) fn follow(
    lifecycle: &Lifecycle,
    step: &Step,
    state: WorkflowState,
    outcome: StepOutcome,
) -> MoveResult {
    let Some(edge) = step.on(outcome) else { return MoveResult::Over };
    let mut state = state;
    if step.kind.judges() || step.kind == StepKind::Land {
        // A workspace's own lifecycle may lead from a red landing to whoever writes, and from there past whoever judged.
        let may_pass = step.kind == StepKind::Land || may_pass_judges(&state);
        // What comes of a conflict is QA's to pass, where there is a QA.
        let decides = !state.route.conflicted
            || step.kind == StepKind::Verdict
            || lifecycle.step_of(StepKind::Verdict).is_none();
        state.route.judge_again = if outcome == StepOutcome::Pass {
            state.route.judge_again && !decides
        } else {
            may_pass
        };
        let refused_by = state.route.refused_by.and_then(|name| lifecycle.step(name));
        // A review that the way leaves out by now is another review's to make good.
        let is_its = step.kind == StepKind::Verdict
            || refused_by.is_some_and(|it| {
                it.name == step.name || it.kind != StepKind::Verdict && state.route.leaves_out(it)
            });
        if outcome == StepOutcome::Pass && decides && is_its {
            state.route.refused_by = None;
        } else if outcome == StepOutcome::Revise {
            refuse(lifecycle, step, &mut state);
        }
    } else if outcome == StepOutcome::Answered {
        // Nothing was built that anybody could judge.
        state.route.judge_again = false;
        state.route.refused_by = None;
    }
    let moved = take(lifecycle, state, edge);
    match moved {
        // What is accepted has nothing more to be done again.
        MoveResult::To(mut next) if is_accepted(lifecycle, &next) => {
            next.reopen_category = None;
            MoveResult::To(next)
        }
        MoveResult::To(_) | MoveResult::Stop(..) | MoveResult::Over => moved,
    }
}

/// Notes who refuses the change. A review does not take the place of QA: it lets nothing through that QA refused.
fn refuse(lifecycle: &Lifecycle, step: &Step, state: &mut WorkflowState) {
    let before = state.route.refused_by.and_then(|name| lifecycle.step(name));
    if before.is_none_or(|it| it.kind != StepKind::Verdict) || step.kind == StepKind::Verdict {
        state.route.refused_by = Some(step.name);
    }
}

/// Where an edge leads, paid by the counters.
///
/// # Errors
/// The counter that is used up, where nothing else is left.
pub(super) fn target(
    edge: Edge,
    counters: &mut BTreeMap<CounterName, Allowance>,
) -> Result<StepName, CounterName> {
    let is_spent = |name: &CounterName| counters.get(name).is_none_or(|it| it.is_spent());
    let spent = match edge.within.filter(is_spent) {
        Some(counter) => Some(counter),
        None => edge.charge.filter(|name| !counters.get_mut(name).is_some_and(Allowance::take)),
    };
    match (spent, edge.otherwise) {
        (None, _) => Ok(edge.to),
        (Some(_), Some(otherwise)) => Ok(otherwise),
        (Some(counter), None) => Err(counter),
    }
}

fn is_accepted(lifecycle: &Lifecycle, state: &WorkflowState) -> bool {
    let kind = lifecycle.step(state.step).map(|step| step.kind);
    matches!(kind, Some(StepKind::Verdict | StepKind::Land))
}

/// Follows where a category of what is to be done again leads from the state's step. `source` sent it back.
#[must_use]
pub fn reopen(
    lifecycle: &Lifecycle,
    step: &Step,
    mut state: WorkflowState,
    source: Role,
    category: Option<ReopenCategory>,
) -> MoveResult {
    let Some(edge) = lifecycle.reopened(step, category) else { return MoveResult::Over };
    if step.kind.judges() {
        state.route.judge_again |= may_pass_judges(&state);
        refuse(lifecycle, step, &mut state);
    }
    state.reopen_source_role = Some(source);
    state.reopen_category = category;
    take(lifecycle, state, edge)
}

fn take(lifecycle: &Lifecycle, mut state: WorkflowState, edge: Edge) -> MoveResult {
    let to = match target(edge, &mut state.counters) {
        Ok(to) => to,
        Err(counter) => {
            state.phase_status = PhaseStatus::Blocked;
            return MoveResult::Stop(state, BlockReason::Spent(counter));
        }
    };
    match lifecycle.step(to) {
        Some(to) => MoveResult::To(arrive(lifecycle, state, to)),
        None => MoveResult::Over,
    }
}

/// Puts the state on a step; where the route leaves that out, on the one that follows along its first outcome. What was
/// sent back is judged again before it lands, by whoever judges on this route, or by whoever refused it.
pub(super) fn arrive(lifecycle: &Lifecycle, mut state: WorkflowState, to: &Step) -> WorkflowState {
    let mut step = to;
    // No way over steps that are passed over is longer than there are steps.
    for _ in lifecycle.steps() {
        if !state.route.leaves_out(step) {
            break;
        }
        let next = step.edges().next().and_then(|(_, edge)| lifecycle.step(edge.to));
        let Some(next) = next else { break };
        state.route.passed_over.insert(step.name);
        step = next;
    }
    let refused_by = state.route.refused_by.and_then(|name| lifecycle.step(name));
    if step.kind == StepKind::Land && (state.route.judge_again || refused_by.is_some()) {
        let judges = |it: &&Step| it.kind.judges() && !state.route.leaves_out(it);
        let is_verdict = |it: &&Step| state.route.conflicted && it.kind == StepKind::Verdict;
        let judge = lifecycle.steps().find(is_verdict);
        let is_next = |it: &&Step| it.kind == StepKind::Verdict || !state.route.leaves_out(it);
        let judge = judge.or(refused_by.filter(is_next));
        let judge = judge.or_else(|| lifecycle.steps().find(judges));
        step = judge.or(refused_by).unwrap_or(step);
    }
    state.route.passed_over.remove(&step.name);
    state.place(step, lifecycle);
    if let Some(counted) = step.counts.and_then(|name| state.counters.get_mut(&name)) {
        counted.used = counted.used.saturating_add(1);
    }
    state
}

/// Puts a sprint on a step; where that is not for it, on the one that follows along its first outcome.
pub fn place_sprint(
    lifecycle: &Lifecycle,
    sprint: &mut Sprint,
    name: StepName,
    holds: impl Fn(&Sprint, Condition) -> bool,
) {
    let mut step = lifecycle.step(name);
    // No way over steps that are passed over is longer than there are steps.
    for _ in lifecycle.steps() {
        let Some(at) = step else { return };
        if at.only_if.iter().all(|condition| holds(sprint, *condition)) {
            return sprint.place(at);
        }
        step = at.edges().next().and_then(|(_, edge)| lifecycle.step(edge.to));
    }
}

/// Follows what came of a sprint's step.
///
/// # Errors
/// The counter that is used up; the sprint stays where it is.
pub fn follow_sprint(
    lifecycle: &Lifecycle,
    sprint: &mut Sprint,
    outcome: StepOutcome,
    holds: impl Fn(&Sprint, Condition) -> bool,
) -> Result<(), CounterName> {
    let step = sprint.step.and_then(|name| lifecycle.step(name));
    let Some(edge) = step.and_then(|step| step.on(outcome)) else { return Ok(()) };
    let used = &sprint.planning.reopen_counts;
    let allowance = |(name, most): (&CounterName, &u32)| {
        (*name, Allowance { used: used.get(name).copied().unwrap_or(0), limit: *most })
    };
    let mut counters: BTreeMap<_, _> = lifecycle.counters.iter().map(allowance).collect();
    let to = target(edge, &mut counters)?;
    let used = counters.into_iter().filter(|(_, it)| it.used > 0);
    sprint.planning.reopen_counts = used.map(|(name, it)| (name, it.used)).collect();
    place_sprint(lifecycle, sprint, to, holds);
    Ok(())
}
