//! Sprints: when they begin, how they are planned, worked on and closed (`spec/teams.md` 9 and 10).
//!
//! Every decision ends in [`follow`]: todos and backlog items are brought in line with the requests that
//! this decision changed, and then what is next is done. Nothing else moves a todo.

pub mod backlog;
pub mod closeout;
pub(in crate::engine) mod commands;
pub mod names;
pub mod planning;
pub mod slots;
pub mod todos;

mod closing;
mod duties;
mod follow;
mod initial;
mod invariant;
pub(in crate::engine) mod plans;
mod queue;
mod research;
mod running;
mod say;
mod schedule;
mod sourcing;
mod start;

use serde_json::json;

use super::decide::Answer;
use super::turn::Turn;
use crate::domain::effect::{EffectKind, EffectOutcome};
use crate::domain::ids::SprintId;
use crate::domain::sprint::{CloseoutStatus, SprintEventKind, SprintStatus};

pub(in crate::engine) use closing::withdraw_older;
pub(in crate::engine) use duties::result as duty_result;
pub(in crate::engine) use follow::follow;
pub use invariant::consistent;
pub use schedule::due;
pub(in crate::engine) use sourcing::answered;

/// An instant has come.
pub(super) fn tick(turn: &mut Turn<'_>) -> Answer {
    schedule::come(turn);
    advance(turn);
    Answer::Accepted
}

/// Does what is next, as far as something is. Doing it again changes nothing.
pub(in crate::engine) fn advance(turn: &mut Turn<'_>) {
    let Some(id) = turn.scheduler().active_sprint_id.clone() else {
        schedule::consider(turn);
        return;
    };
    let Some(status) = turn.sprint(&id).map(|sprint| sprint.status) else {
        // The record is gone: a slot that nothing holds is free (S28).
        turn.edit_scheduler().active_sprint_id = None;
        schedule::consider(turn);
        return;
    };
    queue::restore(turn, &id);
    match status {
        SprintStatus::Planning => initial::advance(turn, &id),
        SprintStatus::Running => running::advance(turn, &id),
        SprintStatus::Closeout => closing::advance(turn, &id),
        SprintStatus::Completed
        | SprintStatus::Failed
        | SprintStatus::Blocked
        | SprintStatus::Cancelled => {
            turn.edit_scheduler().active_sprint_id = None;
            schedule::consider(turn);
        }
    }
}

/// Something was done for a sprint or for the team.
pub(super) fn effect_finished(turn: &mut Turn<'_>, kind: &EffectKind, outcome: EffectOutcome) {
    match (kind, outcome) {
        (EffectKind::Baseline { sprint_id }, EffectOutcome::Baselined(baseline)) => {
            if let Some(sprint) = turn.edit_sprint(sprint_id) {
                sprint.git_baseline = Some(baseline);
            }
        }
        (EffectKind::Baseline { sprint_id }, EffectOutcome::Failed { message }) => {
            not_begun(turn, sprint_id, &message);
        }
        (EffectKind::Inspect { sprint_id }, EffectOutcome::Inspected(found)) => {
            closing::inspected(turn, sprint_id, found);
        }
        (EffectKind::Inspect { sprint_id }, EffectOutcome::Failed { message }) => {
            closing::not_inspected(turn, sprint_id, &message);
        }
        (EffectKind::Archive { sprint_id }, EffectOutcome::Archived { report_path }) => {
            closing::archived(turn, sprint_id, Some(report_path));
        }
        (EffectKind::Archive { sprint_id }, EffectOutcome::Failed { message }) => {
            turn.sprint_event(sprint_id, SprintEventKind::ArchiveFailed, &message, json!({}));
            closing::archived(turn, sprint_id, None);
        }
        (EffectKind::Publish { sprint_id }, EffectOutcome::Published { url }) => {
            let values = json!({ "sprint_id": sprint_id.as_str(), "url": url });
            say::report(turn, Some(sprint_id), "sprint.published", values, Vec::new());
        }
        (EffectKind::Publish { sprint_id }, EffectOutcome::Failed { message }) => {
            let (stage, message) = message.split_once(": ").unwrap_or(("", &message));
            let values =
                json!({ "sprint_id": sprint_id.as_str(), "stage": stage, "message": message });
            say::report(turn, Some(sprint_id), "sprint.publish_failed", values, Vec::new());
        }
        (EffectKind::Discover { .. }, EffectOutcome::Discovered { findings, watermarks }) => {
            sourcing::discovered(turn, findings, watermarks);
        }
        // An executor that answers something else than it was asked has done nothing.
        (_, _) => {}
    }
}

/// The project could not be looked at, so nothing can be built in it.
fn not_begun(turn: &mut Turn<'_>, id: &SprintId, message: &str) {
    closing::end(turn, id, SprintStatus::Blocked, CloseoutStatus::PlanningIncomplete, message);
}
