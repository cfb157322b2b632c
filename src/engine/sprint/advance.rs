//! Does what is next of a sprint, or begins one.

use super::{closing, initial, plan_review, position, queue, running, schedule};
use crate::domain::ids::SprintId;
use crate::domain::lifecycle::{SprintStep, Step};
use crate::domain::sprint::{Duty, Sprint, SprintStatus, WrapUp};
use crate::engine::decision::Answer;
use crate::engine::turn::Turn;

/// An instant has come.
pub(in crate::engine) fn tick(turn: &mut Turn<'_>) -> Answer {
    schedule::come(turn);
    advance(turn);
    Answer::Accepted
}

/// Does what is next, as far as something is. Doing it again changes nothing.
pub(in crate::engine) fn advance(turn: &mut Turn<'_>) {
    if let Some(id) = &turn.scheduler().active_sprint_id
        && turn.sprint(id).is_none_or(|sprint| sprint.status.is_terminal())
    {
        // A slot that nothing holds is free, also where the record is gone (S28).
        turn.edit_scheduler().active_sprint_id = None;
    }
    // Something else may be heard of before the instant, such as after a night of sleep.
    schedule::go_by_clock(turn);
    schedule::end_day(turn);
    if turn.scheduler().active_sprint_id.is_none() {
        schedule::consider(turn);
    }
    if let Some(id) = turn.scheduler().active_sprint_id.clone() {
        queue::restore(turn, &id);
        work(turn, &id);
    }
}

/// Works the steps of a sprint, one after another, until one has to wait; the lifecycle ends every way round that
/// does not wait.
fn work(turn: &mut Turn<'_>, id: &SprintId) {
    loop {
        let Some((step, kind)) = position::step(turn, id) else { return };
        if closing::is_asked_for(turn, id) {
            let is_put_off = |sprint: &Sprint| {
                let is_cutoff = sprint.closing.wrap_up == Some(WrapUp::Cutoff);
                is_cutoff && sprint.status == SprintStatus::Planning
            };
            if turn.sprint(id).is_some_and(is_put_off) {
                let reason = "the working day ended before its plan was settled";
                plan_review::put_off(turn, id, reason);
            } else {
                closing::begin(turn, id);
            }
        } else {
            work_step(turn, id, step, kind);
        }
        let now = turn.sprint(id);
        if now.is_none_or(|now| now.status.is_terminal() || now.step == Some(step.name)) {
            return;
        }
    }
}

fn work_step(turn: &mut Turn<'_>, id: &SprintId, step: &Step, kind: SprintStep) {
    let waits = turn.sprint(id).is_some_and(|sprint| sprint.planning_request_id.is_some());
    match kind {
        SprintStep::Baseline => {
            if initial::has_baseline(turn, id) {
                position::done(turn, id);
            }
        }
        SprintStep::Work => running::advance(turn, id),
        SprintStep::Inspection => closing::inspect(turn, id),
        SprintStep::Duty(Duty::ClosingReport) => closing::report(turn, id, step),
        SprintStep::Archive => closing::archive(turn, id),
        SprintStep::Duty(Duty::OngoingReview) => {
            if !waits {
                running::review(turn, id, step);
            }
            // The planner looks while the work goes on; what it changes counts for what has not begun.
            running::begin_todos(turn, id);
        }
        SprintStep::Duty(Duty::PlanReview) if waits => plan_review::keep_current(turn, id, step),
        SprintStep::Duty(Duty::PlanReview) => plan_review::begin(turn, id, step),
        SprintStep::Planning(_) | SprintStep::Duty(_) if waits => {}
        SprintStep::Planning(part) => initial::plan(turn, id, step, part),
        SprintStep::Duty(Duty::ResearchPrepass) => initial::research(turn, id, step),
        // These are no steps of a sprint: the compiler refuses them.
        SprintStep::Duty(
            Duty::Planning | Duty::Sourcing | Duty::SourcerReview | Duty::BlockedReview,
        ) => {}
    }
}
