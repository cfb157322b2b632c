//! When sprints begin by themselves (`spec/teams.md` 9.1 and 9.2). Nothing is polled: [`due`] names the
//! next instant at which something can change by time alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::next_slot::{is_over_the_interval, name_slot, next_cutoff, next_slot, rolls};
use super::{backlog, closeout, queue, running, say, sourcing, start};
use crate::domain::ids::ItemId;
use crate::domain::item::{Item, ItemStatus};
use crate::domain::modes::{SprintMode, StartMode};
use crate::domain::policy::Policy;
use crate::domain::sprint::{Kickoff, Phase, Sprint, SprintStatus, Trigger, WrapUp};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::budget;
use crate::engine::turn::Turn;

/// The next instant at which the engine wants to hear [`crate::domain::event::Event::Tick`]; none while
/// only people and running work can change anything.
#[must_use]
pub fn due(state: &State, policy: &Policy) -> BTreeSet<Timestamp> {
    let scheduler = &state.scheduler;
    let mut instants = BTreeSet::new();
    match state.active_sprint() {
        Some(sprint) => {
            instants.extend(sprint.cutoff_at.filter(|_| ends_with_the_day(sprint)));
            if sprint.status == SprintStatus::Running
                && sprint.closing.wrap_up.is_none()
                && sprint.work.paused_by.is_none()
                && sprint.planning_request_id.is_none()
            {
                let at_work =
                    running::is_at_work(sprint, |id| state.requests.get(id).map(Arc::as_ref));
                let last = sprint.planning.last_review_at.filter(|_| at_work);
                let interval = policy.sprint.interval_seconds();
                let until = state.spending.declined_until();
                instants.extend(last.map(|at| at.plus_seconds(interval).max(until)));
            }
            if scheduler.slots.deferred_slot_at.is_none() {
                instants.extend(scheduler.slots.next_slot_at);
            }
        }
        None => instants.extend(scheduler.slots.next_slot_at),
    }
    instants.extend(sourcing::due(state, policy));
    instants.extend(state.spending.declined().map(|it| it.until));
    instants
}

/// Whether the end of the working day closes it: one that closes already ends as it does, and one that is paused waits
/// for whoever lets it go on.
fn ends_with_the_day(sprint: &Sprint) -> bool {
    sprint.closing.wrap_up.is_none()
        && sprint.phase != Phase::WrapUp
        && sprint.work.paused_by.is_none()
}

/// The working day of the active sprint may be over.
pub(super) fn end_day(turn: &mut Turn<'_>) {
    let now = turn.now;
    let is_over = |it: &&Sprint| ends_with_the_day(it) && it.cutoff_at.is_some_and(|at| at <= now);
    let Some(sprint) = turn.active_sprint().filter(is_over) else { return };
    let (id, is_planned) = (sprint.sprint_id.clone(), sprint.status == SprintStatus::Planning);
    if let Some(sprint) = turn.edit_sprint(&id) {
        sprint.closing.wrap_up = Some(WrapUp::Cutoff);
        sprint.closing.requested_at = Some(now);
    }
    match is_planned {
        true => say::error(turn, &id, "sprint.put_off", json!({ "sprint_id": id.as_str() })),
        false => say::wrap_up(turn, &id, WrapUp::Cutoff, ""),
    }
}

/// What the records say of the time to come follows from the clock, which may have been ahead and put right.
pub(super) fn go_by_clock(turn: &mut Turn<'_>) {
    let now = turn.now;
    let cutoff = next_cutoff(turn);
    if let Some(sprint) = turn.active_sprint() {
        let is_late = sprint.cutoff_at.zip(cutoff).is_some_and(|(at, next)| at > next);
        let was_ahead = sprint.planning.last_review_at.is_some_and(|at| at > now);
        let id = sprint.sprint_id.clone();
        if (is_late || was_ahead)
            && let Some(sprint) = turn.edit_sprint(&id)
        {
            if is_late {
                sprint.cutoff_at = cutoff;
            }
            sprint.planning.last_review_at = sprint.planning.last_review_at.min(Some(now));
        }
    }
    if turn.scheduler().slots.last_completed_at.is_some_and(|at| at > now) {
        turn.edit_scheduler().slots.last_completed_at = Some(now);
    }
    let slot = turn.scheduler().slots.next_slot_at;
    if slot.is_some() && slot > next_slot(turn) {
        name_slot(turn);
    }
}

/// What the clock alone brings about.
pub(super) fn come(turn: &mut Turn<'_>) {
    let now = turn.now;
    if turn.before().spending.declined().any(|it| it.until <= now) {
        // With the day its budgets are others.
        budget::ask_again(turn);
    }
    go_by_clock(turn);
    end_day(turn);
    if turn.scheduler().active_sprint_id.is_some()
        && turn.scheduler().slots.next_slot_at.is_some_and(|at| at <= now)
    {
        // The slot waits for the end of the sprint (S19); of several, the first is enough.
        defer_slot(turn);
    }
    sourcing::look(turn);
}

/// The slot that has come waits, and the next one is named.
fn defer_slot(turn: &mut Turn<'_>) {
    let slot = turn.scheduler().slots.next_slot_at;
    // One that rolls waits for an interval after this sprint.
    if turn.scheduler().slots.deferred_slot_at.is_none() && !rolls(turn) {
        turn.edit_scheduler().slots.deferred_slot_at = slot;
    }
    name_slot(turn);
}

/// Whether sprints are a matter of this workspace at all: nobody is asked for a milestone, and no slot is
/// kept, where there never was a sprint and nothing is in the backlog.
fn is_used(turn: &Turn<'_>) -> bool {
    let scheduler = turn.scheduler();
    scheduler.slots.next_slot_at.is_some()
        || scheduler.slots.last_started_at.is_some()
        || !turn.before().backlog.is_empty()
        || turn.planning.is_touched()
        || turn.policy.sprint.start_mode == StartMode::ManualDaily
}

/// Nothing holds the slot: asks people, or begins a sprint, where it is time.
pub(super) fn consider(turn: &mut Turn<'_>) {
    if !is_used(turn) {
        return;
    }
    let now = turn.now;
    if turn.scheduler().slots.next_slot_at.is_none() {
        name_slot(turn);
    }
    let passed = turn.scheduler().slots.next_slot_at.is_some_and(|at| at <= now);
    if turn.policy.sprint.start_mode == StartMode::ManualDaily {
        if passed {
            name_slot(turn);
        }
        say::idle(turn);
        return;
    }
    drop_echoes(turn);
    let prospect = prospect(turn);
    if prospect == Prospect::Stopped && turn.scheduler().slots.deferred_slot_at.is_some() {
        // The slot came while what was stopped still ran: the next one decides.
        turn.edit_scheduler().slots.deferred_slot_at = None;
    }
    let deferred = turn.scheduler().slots.deferred_slot_at.is_some();
    if prospect == Prospect::Nothing {
        if passed || deferred {
            skip(turn, "no_actionable_backlog");
        }
        say::idle(turn);
        return;
    }
    let trigger = if deferred {
        Some(Trigger::DeferredSlot)
    } else if turn.policy.sprint.mode == SprintMode::Hybrid && prospect == Prospect::Fresh {
        Some(Trigger::BacklogReady)
    } else if passed || prospect == Prospect::Fresh && is_over_the_interval(turn) {
        Some(Trigger::ScheduledSlot)
    } else {
        None
    };
    let Some(trigger) = trigger else { return };
    if budget::declined(turn).is_some() {
        if passed {
            defer_slot(turn);
        }
        return;
    }
    if prospect == Prospect::Failed {
        skip(turn, "nothing_changed");
        return;
    }
    // What is blocked may have become possible: the planner looks once at each new set of it.
    if sourcing::waits_for_review_of_blocked(turn) {
        return;
    }
    if passed {
        name_slot(turn);
    }
    turn.edit_scheduler().slots.deferred_slot_at = None;
    start::begin(turn, trigger, Kickoff::default());
}

/// Items that only repeat what the team itself did leave the backlog before a sprint is thought of (S39).
/// Today's sourcing lets none in; older workspaces bring them.
fn drop_echoes(turn: &mut Turn<'_>) {
    let is_waiting_echo =
        |item: &&Item| item.status == ItemStatus::Pending && backlog::is_echo(item);
    let items = turn.items().into_values();
    let echoes: Vec<ItemId> =
        items.filter(is_waiting_echo).map(|item| item.backlog_id.clone()).collect();
    for id in echoes {
        turn.edit_item(&id, |item| {
            item.status = ItemStatus::Dropped;
            item.planned_in_sprint_id = None;
            "an echo of the team's own work".clone_into(&mut item.dropped_reason);
        });
    }
}

/// What a new sprint could come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prospect {
    /// There is nothing to do.
    Nothing,
    /// There is, and the last sprint did not fail at exactly that.
    Fresh,
    /// The last sprint was stopped, by a person or by the end of the day, and nothing has changed since: the
    /// next slot decides.
    Stopped,
    /// The last sprint failed, and nothing has changed since: trying again would come to the same. Or it waits for
    /// somebody to restart it.
    Failed,
}

fn prospect(turn: &Turn<'_>) -> Prospect {
    let (free, kept) = queue::free_and_kept(turn);
    if free.is_empty() {
        return if kept.is_empty() { Prospect::Nothing } else { Prospect::Failed };
    }
    let last =
        turn.before().sprints.keys().filter_map(|id| turn.sprint(id)).max_by_key(|it| it.ended_at);
    let Some((last, ended)) = last.and_then(|sprint| Some((sprint, sprint.ended_at?))) else {
        return Prospect::Fresh;
    };
    // What was asked to end does not begin again because somebody orders the backlog.
    let is_fresh = |item: &Item| match &last.closing.left {
        Some(left) => item.updated_at > ended && !left.contains(&item.backlog_id),
        // An earlier build did not note what was left.
        None if last.closing.wrap_up.is_some() && !closeout::is_resumable(last) => {
            item.created_at > ended
        }
        None => item.updated_at > ended,
    };
    if free.into_iter().any(is_fresh) {
        return Prospect::Fresh;
    }
    if closeout::is_resumable(last) {
        return Prospect::Failed;
    }
    // What was asked to end does not go on under another name, also where it had delivered something.
    if last.closing.wrap_up.is_some() {
        return Prospect::Stopped;
    }
    match last.status {
        SprintStatus::Completed => Prospect::Fresh,
        SprintStatus::Cancelled => Prospect::Stopped,
        SprintStatus::Failed
        | SprintStatus::Blocked
        | SprintStatus::Planning
        | SprintStatus::Running
        | SprintStatus::Closeout => Prospect::Failed,
    }
}

/// A slot passes with nothing to do (S20).
fn skip(turn: &mut Turn<'_>, reason: &str) {
    let now = turn.now;
    let scheduler = turn.edit_scheduler();
    scheduler.slots.last_skipped_at = Some(now);
    reason.clone_into(&mut scheduler.slots.last_skip_reason);
    scheduler.slots.deferred_slot_at = None;
    name_slot(turn);
}
