//! A sprint begins.

use serde_json::json;

use super::next_slot::next_cutoff;
use super::{backlog, closeout, closing, names, position, say};
use crate::domain::effect::EffectKind;
use crate::domain::ids::{ItemId, SprintId};
use crate::domain::item::Item;
use crate::domain::record::RecordId;
use crate::domain::sprint::{ExecutionMode, Kickoff, Sprint, SprintEventKind, Trigger};
use crate::engine::sprint::queue;
use crate::engine::turn::Turn;

/// Where sprints have their folders.
pub(super) const FOLDERS: &str = "shared_workspace/sprints";

/// Begins a sprint; nothing holds the slot.
pub(super) fn begin(turn: &mut Turn<'_>, trigger: Trigger, kickoff: Kickoff) -> SprintId {
    let now = turn.now;
    let mut taken = turn.before().sprint_ids.clone();
    taken.extend(turn.before().sprints.keys().cloned());
    let id = names::sprint_id(now, turn.zone(), &taken);
    let mut sprint = Sprint::new(id.clone(), trigger, kickoff, turn.policy.language);
    sprint.started_at = Some(now);
    sprint.sprint_name = names::display_name(now, turn.zone(), &sprint.milestone_title);
    sprint.sprint_folder_name = names::folder_name(&id);
    sprint.sprint_folder = format!("{FOLDERS}/{}", sprint.sprint_folder_name);
    sprint.work.reference_artifacts.clone_from(&sprint.kickoff.artifacts);
    if sprint.execution_mode == ExecutionMode::Manual {
        sprint.cutoff_at = next_cutoff(turn);
    }
    // One that a person begins takes the place of the one that waits.
    let waiting =
        closeout::waits_for_restart(turn).filter(|_| trigger.mode() == ExecutionMode::Auto);
    let ended = turn.before().sprints.keys().filter(|id| waiting.as_ref() != Some(*id));
    for older in ended.cloned().collect::<Vec<_>>() {
        closing::unplan(turn, &older);
    }
    position::begin(turn, &mut sprint);
    retire_older(turn, &id);
    let scheduler = turn.edit_scheduler();
    scheduler.active_sprint_id = Some(id.clone());
    scheduler.slots.last_started_at = Some(now);
    scheduler.slots.last_trigger = Some(trigger);
    scheduler.milestone_request.pending = false;
    turn.create_sprint(sprint);
    turn.sprint_event(
        &id,
        SprintEventKind::Started,
        trigger.as_str(),
        json!({ "trigger": trigger }),
    );
    if trigger.mode() == ExecutionMode::Auto {
        plan_everything(turn, &id);
    }
    say::started(turn, &id);
    id
}

/// Whoever lets a sprint go on whose day is over gives it the next one.
pub(super) fn renew_cutoff(turn: &mut Turn<'_>, id: &SprintId) {
    let (now, next) = (turn.now, next_cutoff(turn));
    let is_over = |sprint: &Sprint| sprint.cutoff_at.is_some_and(|at| at <= now);
    if turn.sprint(id).is_some_and(is_over)
        && let Some(sprint) = turn.edit_sprint(id)
    {
        sprint.cutoff_at = next;
    }
}

/// Ended sprints leave memory: all but the last one and the one that waits for it, which a restart may need, and those
/// that are still being told about.
fn retire_older(turn: &mut Turn<'_>, id: &SprintId) {
    let ended = turn.before().sprints.values().filter(|sprint| sprint.sprint_id != *id);
    let last = ended.clone().max_by_key(|sprint| sprint.ended_at).map(|it| it.sprint_id.clone());
    let waiting = closeout::waits_for_restart(turn);
    let told = |id: &SprintId| {
        !turn.has_effect(|kind| {
            matches!(kind, EffectKind::Archive { sprint_id } | EffectKind::Publish { sprint_id }
                if sprint_id == id)
        })
    };
    let old: Vec<SprintId> = ended
        .map(|sprint| sprint.sprint_id.clone())
        .filter(|id| last.as_ref() != Some(id) && waiting.as_ref() != Some(id) && told(id))
        .collect();
    for id in old {
        turn.remove(RecordId::Sprint(id));
    }
}

/// A sprint without a milestone is about what waits in the backlog.
fn plan_everything(turn: &mut Turn<'_>, id: &SprintId) {
    let now = turn.now;
    let (mut free, _) = queue::free_and_kept(turn);
    free.sort_by_key(|item| backlog::priority_key(item));
    let title = milestone(&free);
    let free: Vec<ItemId> = free.into_iter().map(|item| item.backlog_id.clone()).collect();
    for item in free {
        turn.edit_item(&item, |item| item.planned_in_sprint_id = Some(id.clone()));
    }
    let name = names::display_name(now, turn.zone(), &title);
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.sprint_name = name;
        sprint.milestone_title = title;
    }
}

/// The milestone that the items serve, where it is one; else the first of them and how many follow.
fn milestone(items: &[&Item]) -> String {
    let Some(first) = items.first() else { return String::new() };
    let shared = first.milestone_title.trim();
    if !shared.is_empty() && items.iter().all(|item| item.milestone_title.trim() == shared) {
        return shared.to_owned();
    }
    let title = crate::engine::say::title(&first.title);
    match items.len() - 1 {
        0 => title,
        more => format!("{title} (+{more})"),
    }
}
