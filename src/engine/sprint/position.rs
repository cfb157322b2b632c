//! Where a sprint stands in its lifecycle, and how it gets on.

use std::sync::Arc;

use crate::domain::ids::SprintId;
use crate::domain::lifecycle::{
    Condition, CounterName, Lifecycle, SprintStep, Step, StepKind, StepOutcome, Subject,
};
use crate::domain::policy::Policy;
use crate::domain::sprint::{CloseoutStatus, Duty, PlanningStep, Sprint, SprintStatus};
use crate::engine::lifecycle::{follow_sprint, place_sprint};
use crate::engine::turn::Turn;

/// What of the conditions of a lifecycle holds for a sprint.
fn holds(policy: &Policy) -> impl Fn(&Sprint, Condition) -> bool {
    let research = policy.sprint.research;
    move |sprint, condition| match condition {
        Condition::Research => research || sprint.kickoff.has_material(),
        Condition::Worked => sprint.has_worked(),
        // The compiler lets only requests have it.
        Condition::Route => true,
    }
}

fn lifecycle<'a>(turn: &Turn<'a>, sprint: &Sprint) -> &'a Lifecycle {
    turn.before().sprint_lifecycle(sprint)
}

/// The step at which a sprint stands, with what that is for. Records of before sprints had a lifecycle say it in
/// other words.
pub(super) fn step<'a>(turn: &mut Turn<'a>, id: &SprintId) -> Option<(&'a Step, SprintStep)> {
    let sprint = turn.sprint(id)?;
    let lifecycle = lifecycle(turn, sprint);
    let step = match sprint.step.and_then(|name| lifecycle.step(name)) {
        Some(step) => step,
        None => {
            let step = lifecycle.step_of(StepKind::Sprint(of_older(sprint)))?;
            turn.edit_sprint(id)?.step = Some(step.name);
            step
        }
    };
    let kind = step.kind.of_sprint()?;
    Some((step, kind))
}

/// The step of a record that names none.
fn of_older(sprint: &Sprint) -> SprintStep {
    let planning = || match sprint.planning.step {
        Some(step) => SprintStep::Planning(step),
        None if sprint.work.git_baseline.is_none() => SprintStep::Baseline,
        None if sprint.planning.research.is_none() => SprintStep::Duty(Duty::ResearchPrepass),
        None => SprintStep::Planning(PlanningStep::MilestoneRefinement),
    };
    match sprint.status {
        SprintStatus::Planning => planning(),
        SprintStatus::Running if sprint.planning_request_id.is_some() => {
            SprintStep::Duty(Duty::OngoingReview)
        }
        SprintStatus::Running => SprintStep::Work,
        SprintStatus::Closeout => match sprint.closing.status {
            // An older build was about to commit what people had in the project.
            None | Some(CloseoutStatus::PendingChanges) => SprintStep::Inspection,
            Some(_) if sprint.has_worked() && sprint.closing.report_draft.is_null() => {
                SprintStep::Duty(Duty::ClosingReport)
            }
            Some(_) => SprintStep::Archive,
        },
        SprintStatus::Completed
        | SprintStatus::Failed
        | SprintStatus::Blocked
        | SprintStatus::Cancelled => match sprint.planning.ready_at {
            Some(_) => SprintStep::Work,
            None => planning(),
        },
    }
}

/// A sprint keeps the lifecycle with which it begins.
pub(super) fn begin(turn: &mut Turn<'_>, sprint: &mut Sprint) {
    let lifecycle = Lifecycle::of(Subject::Sprint);
    if !turn.before().lifecycles.contains_key(lifecycle.digest()) {
        turn.save(Arc::clone(lifecycle));
    }
    lifecycle.digest().clone_into(&mut sprint.lifecycle);
    place_sprint(lifecycle, sprint, lifecycle.begin, holds(turn.policy));
}

/// Follows what came of the sprint's step.
///
/// # Errors
/// The counter that is used up; the sprint stays where it is.
pub(super) fn follow(
    turn: &mut Turn<'_>,
    id: &SprintId,
    outcome: StepOutcome,
) -> Result<(), CounterName> {
    let Some(lifecycle) = turn.sprint(id).map(|sprint| lifecycle(turn, sprint)) else {
        return Ok(());
    };
    let holds = holds(turn.policy);
    match turn.edit_sprint(id) {
        Some(sprint) => follow_sprint(lifecycle, sprint, outcome, holds),
        None => Ok(()),
    }
}

/// The sprint's step is done.
pub(super) fn done(turn: &mut Turn<'_>, id: &SprintId) {
    // Nothing is charged for what is done, so that there is always a way on.
    follow(turn, id, StepOutcome::Done).unwrap_or_default();
}

/// The sprint ends before its time.
pub(super) fn stop(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(lifecycle) = turn.sprint(id).map(|sprint| lifecycle(turn, sprint)) else { return };
    let holds = holds(turn.policy);
    if let Some(sprint) = turn.edit_sprint(id) {
        place_sprint(lifecycle, sprint, lifecycle.stop, holds);
    }
}

/// A sprint that has ended goes on at the step at which it stopped, with nothing charged.
pub(super) fn resume(turn: &mut Turn<'_>, id: &SprintId) {
    let Some((step, _)) = step(turn, id) else { return };
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.place(step);
    }
    renew(turn, id);
}

/// Somebody lets it go on: nothing is charged.
pub(super) fn renew(turn: &mut Turn<'_>, id: &SprintId) {
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.planning.reopen_counts.clear();
        sprint.planning.review.renew();
    }
}

/// The number of a step of planning among all of them, and how many there are.
pub(super) fn number(turn: &Turn<'_>, id: &SprintId, step: PlanningStep) -> (usize, usize) {
    let Some(sprint) = turn.sprint(id) else { return (0, 0) };
    let lifecycle = lifecycle(turn, sprint);
    let is_planning = |step: &&Step| matches!(step.kind.of_sprint(), Some(SprintStep::Planning(_)));
    let steps: Vec<StepKind> = lifecycle.steps().filter(is_planning).map(|it| it.kind).collect();
    let at = steps.iter().position(|it| *it == StepKind::Sprint(SprintStep::Planning(step)));
    (at.map_or(0, |at| at + 1), steps.len())
}
