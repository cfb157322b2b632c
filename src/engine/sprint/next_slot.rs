//! When the next slot is, by the settings in force (`spec/teams.md` 9.1).

use serde_json::json;

use super::slots;
use crate::domain::modes::{SprintMode, StartMode};
use crate::domain::sprint::ExecutionMode;
use crate::domain::time::Timestamp;
use crate::engine::turn::Turn;

/// The sprint is over: the slot is free, and one that rolls comes an interval later.
pub(super) fn ended(turn: &mut Turn<'_>) {
    let now = turn.now;
    let scheduler = turn.edit_scheduler();
    scheduler.active_sprint_id = None;
    scheduler.slots.last_completed_at = Some(now);
    if rolls(turn) {
        name_slot(turn);
        turn.edit_scheduler().slots.deferred_slot_at = None;
    }
}

/// Names the next slot, and what it follows from.
pub(super) fn name_slot(turn: &mut Turn<'_>) {
    let (next, settings) = (next_slot(turn), settings(turn));
    let slots = &mut turn.edit_scheduler().slots;
    (slots.next_slot_at, slots.settings) = (next, settings);
}

/// Whether a slot comes an interval after the sprint before it.
pub(super) fn rolls(turn: &Turn<'_>) -> bool {
    let policy = &turn.policy.sprint;
    policy.mode == SprintMode::Rolling && policy.start_mode == StartMode::Auto
}

/// Forgets instants that other settings have named.
pub(in crate::engine) fn go_by_settings(turn: &mut Turn<'_>) {
    let settings = settings(turn);
    let slots = &turn.scheduler().slots;
    if slots.next_slot_at.is_none() && slots.deferred_slot_at.is_none()
        || slots.settings == settings
    {
        return;
    }
    // An earlier build noted none.
    let is_changed = !slots.settings.is_empty();
    let next = next_slot(turn);
    let cutoff = next_cutoff(turn);
    let active = turn.active_sprint().filter(|it| {
        is_changed
            && it.execution_mode == ExecutionMode::Manual
            && it.closing.wrap_up.is_none()
            && it.cutoff_at != cutoff
    });
    if let Some(id) = active.map(|it| it.sprint_id.clone())
        && let Some(sprint) = turn.edit_sprint(&id)
    {
        sprint.cutoff_at = cutoff;
    }
    let slots = &mut turn.edit_scheduler().slots;
    slots.settings = settings;
    if is_changed {
        (slots.next_slot_at, slots.deferred_slot_at) = (next, None);
    }
}

/// What the instants of slots follow from.
fn settings(turn: &Turn<'_>) -> String {
    let policy = &turn.policy.sprint;
    let zone = policy.zone.0.name();
    json!([policy.start_mode, policy.mode, policy.interval_minutes, zone, policy.cutoff])
        .to_string()
}

/// The next slot by mode.
pub(super) fn next_slot(turn: &Turn<'_>) -> Option<Timestamp> {
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
            SprintMode::Rolling => rolls_at(turn)
                .filter(|at| *at > turn.now)
                .unwrap_or_else(|| turn.now.plus_seconds(policy.interval_seconds())),
        }),
    }
}

/// The end of the working day that comes next.
pub(super) fn next_cutoff(turn: &Turn<'_>) -> Option<Timestamp> {
    let policy = &turn.policy.sprint;
    policy.cutoff.as_ref().map(|cutoff| slots::cutoff_at(turn.now, cutoff, policy.zone.0))
}

/// An interval after the last sprint; none before the first.
fn rolls_at(turn: &Turn<'_>) -> Option<Timestamp> {
    let last = turn.scheduler().slots.last_completed_at?;
    Some(last.plus_seconds(turn.policy.sprint.interval_seconds()))
}

/// Whether the interval after the last sprint went by with nothing to do: what comes then waits for no slot.
pub(super) fn is_over_the_interval(turn: &Turn<'_>) -> bool {
    rolls(turn) && rolls_at(turn).is_some_and(|at| at <= turn.now)
}
