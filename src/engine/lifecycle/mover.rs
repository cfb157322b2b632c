//! Follows the edges of a lifecycle: the one place that changes the step of a request.

use super::BlockReason;
use crate::domain::lifecycle::{Edge, Lifecycle, ReopenCategory, Step, StepKind, StepOutcome};
use crate::domain::role::Role;
use crate::domain::workflow::{PhaseStatus, WorkflowState};

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

/// Follows what came of the state's step.
pub(super) fn follow(
    lifecycle: &Lifecycle,
    step: &Step,
    state: WorkflowState,
    outcome: StepOutcome,
) -> MoveResult {
    let Some(edge) = step.on(outcome) else { return MoveResult::Over };
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
    state.reopen_source_role = Some(source);
    state.reopen_category = category;
    take(lifecycle, state, edge)
}

fn take(lifecycle: &Lifecycle, mut state: WorkflowState, edge: Edge) -> MoveResult {
    let spent = edge
        .within
        .filter(|counter| state.counter(*counter).is_spent())
        .or_else(|| edge.charge.filter(|counter| !state.take(*counter)));
    let to = match (spent, edge.otherwise) {
        (None, _) => edge.to,
        (Some(_), Some(otherwise)) => otherwise,
        (Some(counter), None) => {
            state.phase_status = PhaseStatus::Blocked;
            return MoveResult::Stop(state, BlockReason::Spent(counter));
        }
    };
    let Some(to) = lifecycle.step(to) else { return MoveResult::Over };
    state.place(to, lifecycle);
    if let Some(counted) = to.counts.and_then(|name| state.counters.get_mut(&name)) {
        counted.used = counted.used.saturating_add(1);
    }
    MoveResult::To(state)
}
