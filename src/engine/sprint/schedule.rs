//! When sprints begin by themselves (`spec/teams.md` 9.1 and 9.2). Nothing is polled: [`due`] names the
//! next instant at which something can change by time alone.

use std::collections::BTreeSet;

use super::{backlog, say, slots, sourcing, start};
use crate::domain::backlog::{BacklogItem, BacklogStatus};
use crate::domain::ids::BacklogId;
use crate::domain::modes::{SprintMode, StartMode};
use crate::domain::policy::Policy;
use crate::domain::sprint::{Kickoff, SprintStatus, Trigger, WrapUp};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::engine::turn::Turn;

/// The next instant at which the engine wants to hear [`crate::domain::event::Event::Tick`]; none while
/// only people and running work can change anything.
#[must_use]
pub fn due(state: &State, policy: &Policy) -> Option<Timestamp> {
    let scheduler = &state.scheduler;
    let interval = u64::from(policy.sprint.interval_minutes) * 60;
    let mut instants = Vec::new();
    match state.active_sprint() {
        Some(sprint) => {
            if sprint.wrap_up.is_none() {
                instants.extend(sprint.cutoff_at);
            }
            if sprint.status == SprintStatus::Running
                && sprint.wrap_up.is_none()
                && sprint.planning_request_id.is_none()
            {
                instants.extend(sprint.last_planner_review_at.map(|at| at.plus_seconds(interval)));
            }
            if scheduler.deferred_slot_at.is_none() {
                instants.extend(scheduler.next_slot_at);
            }
        }
        None => instants.extend(scheduler.next_slot_at),
    }
    instants.extend(sourcing::due(state, policy));
    instants.into_iter().min()
}

/// What the clock alone brings about.
pub(super) fn come(turn: &mut Turn<'_>) {
    let now = turn.now;
    if let Some(sprint) = turn.active_sprint()
        && sprint.wrap_up.is_none()
        && sprint.cutoff_at.is_some_and(|at| at <= now)
    {
        let id = sprint.sprint_id.clone();
        if let Some(sprint) = turn.edit_sprint(&id) {
            sprint.wrap_up = Some(WrapUp::Cutoff);
            sprint.wrap_up_requested_at = Some(now);
        }
        say::wrap_up(turn, &id, WrapUp::Cutoff, "");
    }
    if turn.scheduler().active_sprint_id.is_some()
        && turn.scheduler().next_slot_at.is_some_and(|at| at <= now)
    {
        // The slot waits for the end of the sprint (S19); of several, the first is enough.
        let slot = turn.scheduler().next_slot_at;
        let next = next_slot(turn);
        let scheduler = turn.edit_scheduler();
        if scheduler.deferred_slot_at.is_none() {
            scheduler.deferred_slot_at = slot;
        }
        scheduler.next_slot_at = next;
    }
    sourcing::look(turn);
}

/// The next slot by mode.
fn next_slot(turn: &Turn<'_>) -> Option<Timestamp> {
    let policy = &turn.policy.sprint;
    let zone = policy.zone.0;
    match policy.start_mode {
        StartMode::ManualDaily => {
            policy.cutoff.as_ref().map(|cutoff| slots::cutoff_at(turn.now, cutoff, zone))
        }
        StartMode::Auto => Some(match policy.mode {
            SprintMode::Hybrid | SprintMode::WallClock => {
                slots::next_slot(turn.now, policy.interval_minutes, zone)
            }
            SprintMode::Rolling => {
                let seconds = u64::from(policy.interval_minutes) * 60;
                let last = turn.scheduler().last_completed_at.unwrap_or(turn.now);
                last.plus_seconds(seconds).max(turn.now.plus_seconds(1))
            }
        }),
    }
}

/// Whether sprints are a matter of this workspace at all: nobody is asked for a milestone, and no slot is
/// kept, where there never was a sprint and nothing is in the backlog.
fn is_used(turn: &Turn<'_>) -> bool {
    let scheduler = turn.scheduler();
    scheduler.next_slot_at.is_some()
        || scheduler.last_started_at.is_some()
        || !turn.before().backlog.is_empty()
        || turn.plans.is_touched()
        || turn.policy.sprint.start_mode == StartMode::ManualDaily
}

/// Whether an item can be taken into a sprint now: it waits for nothing that is blocked or in other hands.
pub(super) fn is_free(turn: &Turn<'_>, item: &BacklogItem) -> bool {
    let mut seen = BTreeSet::new();
    is_free_beside(turn, item, &mut seen)
}

fn is_free_beside(turn: &Turn<'_>, item: &BacklogItem, seen: &mut BTreeSet<BacklogId>) -> bool {
    if item.status == BacklogStatus::Selected {
        return true;
    }
    if !backlog::is_actionable(item) || is_in_work(turn, item) {
        return false;
    }
    // A cycle is refused where it is written; here it only must not turn for ever.
    !seen.insert(item.backlog_id.clone())
        || item.depends_on.iter().all(|id| match turn.item(id) {
            Some(other) => is_free_beside(turn, other, seen),
            None => true,
        })
}

/// Whether an open request still works on the item, such as one whose commit waits for the branch.
pub(super) fn is_in_work(turn: &Turn<'_>, item: &BacklogItem) -> bool {
    turn.requests().any(|request| {
        request.backlog_id.as_ref() == Some(&item.backlog_id) && !request.status.is_terminal()
    })
}

/// Nothing holds the slot: asks people, or begins a sprint, where it is time.
pub(super) fn consider(turn: &mut Turn<'_>) {
    if !is_used(turn) {
        return;
    }
    let now = turn.now;
    if turn.scheduler().next_slot_at.is_none() {
        let next = next_slot(turn);
        turn.edit_scheduler().next_slot_at = next;
    }
    let late = turn.scheduler().next_slot_at.is_some_and(|at| at <= now);
    if turn.policy.sprint.start_mode == StartMode::ManualDaily {
        if late {
            let next = next_slot(turn);
            turn.edit_scheduler().next_slot_at = next;
        }
        say::idle(turn);
        return;
    }
    drop_echoes(turn);
    let deferred = turn.scheduler().deferred_slot_at.is_some();
    let hope = hope(turn);
    if hope == Hope::Nothing {
        if late || deferred {
            skip(turn, "no_actionable_backlog");
        }
        say::idle(turn);
        return;
    }
    let trigger = if deferred {
        Some(Trigger::DeferredSlot)
    } else if turn.policy.sprint.mode == SprintMode::Hybrid && hope == Hope::Fresh {
        Some(Trigger::BacklogReady)
    } else if late {
        Some(Trigger::ScheduledSlot)
    } else {
        None
    };
    let Some(trigger) = trigger else { return };
    if hope == Hope::Failed {
        skip(turn, "nothing_changed");
        return;
    }
    // What is blocked may have become possible: the planner looks once at each new set of it.
    if sourcing::waits_for_review_of_blocked(turn) {
        return;
    }
    let next = if late { next_slot(turn) } else { turn.scheduler().next_slot_at };
    let scheduler = turn.edit_scheduler();
    scheduler.deferred_slot_at = None;
    scheduler.next_slot_at = next;
    let id = start::begin(turn, trigger, Kickoff::default());
    super::initial::advance(turn, &id);
}

/// Items that only repeat what the team itself did leave the backlog before a sprint is thought of (S39).
/// Today's sourcing lets none in; older workspaces bring them.
fn drop_echoes(turn: &mut Turn<'_>) {
    let is_waiting_echo =
        |item: &&BacklogItem| item.status == BacklogStatus::Pending && backlog::is_echo(item);
    let items = turn.items().into_values();
    let echoes: Vec<BacklogId> =
        items.filter(is_waiting_echo).map(|item| item.backlog_id.clone()).collect();
    for id in echoes {
        turn.edit_item(&id, |item| {
            item.status = BacklogStatus::Dropped;
            item.planned_in_sprint_id = None;
            "an echo of the team's own work".clone_into(&mut item.dropped_reason);
        });
    }
}

/// What a new sprint could come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hope {
    /// There is nothing to do.
    Nothing,
    /// There is, and the last sprint did not fail at exactly that.
    Fresh,
    /// The last sprint was stopped, by a person or by the end of the day, and nothing has changed since: the
    /// next slot decides.
    Stopped,
    /// The last sprint failed, and nothing has changed since: trying again would come to the same.
    Failed,
}

fn hope(turn: &Turn<'_>) -> Hope {
    let mut free = turn.items().into_values().filter(|item| is_free(turn, item)).peekable();
    if free.peek().is_none() {
        return Hope::Nothing;
    }
    let last =
        turn.before().sprints.keys().filter_map(|id| turn.sprint(id)).max_by_key(|it| it.ended_at);
    let Some((last, ended)) = last.and_then(|sprint| Some((sprint, sprint.ended_at?))) else {
        return Hope::Fresh;
    };
    if free.any(|item| item.updated_at > ended) {
        return Hope::Fresh;
    }
    // What was asked to end does not go on under another name, also where it had delivered something.
    match last.status {
        SprintStatus::Completed if last.wrap_up.is_none() => Hope::Fresh,
        SprintStatus::Completed | SprintStatus::Cancelled => Hope::Stopped,
        SprintStatus::Failed
        | SprintStatus::Blocked
        | SprintStatus::Planning
        | SprintStatus::Running
        | SprintStatus::Closeout => Hope::Failed,
    }
}

/// A slot passes with nothing to do (S20).
fn skip(turn: &mut Turn<'_>, reason: &str) {
    let now = turn.now;
    let next = next_slot(turn);
    let scheduler = turn.edit_scheduler();
    scheduler.last_skipped_at = Some(now);
    reason.clone_into(&mut scheduler.last_skip_reason);
    scheduler.deferred_slot_at = None;
    scheduler.next_slot_at = next;
}
