//! Items that a planner proposes for one request: a sprint of them, or their place in a sprint under way.

use serde_json::json;

use super::commands::started;
use super::{queue, sourcing};
use crate::domain::ids::ItemId;
use crate::domain::item::{Item, ItemSource};
use crate::domain::request::Request;
use crate::domain::result::ProposedItem;
use crate::domain::sprint::{Kickoff, SprintStatus};
use crate::domain::text::flat;
use crate::engine::authorize::{Granted, act};
use crate::engine::say::CatalogText;
use crate::engine::turn::Turn;

/// Proposals as new items: none of them changes an item that is there, nor waits for anything but another of them.
fn new_items(items: &[ProposedItem]) -> Vec<ProposedItem> {
    let titles: Vec<String> = items.iter().map(|it| flat(&it.title)).collect();
    let new = |item: &ProposedItem| ProposedItem {
        backlog_id: None,
        status: None,
        dropped_reason: None,
        planned_in_sprint_id: None,
        depends_on: item.depends_on.as_ref().map(|on| {
            let is_one = |it: &&String| titles.contains(&flat(it));
            on.iter().filter(is_one).cloned().collect()
        }),
        ..item.clone()
    };
    items.iter().map(new).collect()
}

/// The title of a proposal that is an open item already.
fn known(turn: &Turn<'_>, items: &[ProposedItem]) -> Option<String> {
    let open: Vec<String> = turn.items().into_values().map(|it| flat(&it.title)).collect();
    let is_known = |item: &&ProposedItem| open.contains(&flat(&item.title));
    items.iter().find(is_known).map(|item| item.title.trim().to_owned())
}

/// Begins a sprint of the items that were planned for a request.
pub(in crate::engine) fn start_with_items(
    turn: &mut Turn<'_>,
    granted: &Granted<act::ControlSprint>,
    kickoff: Kickoff,
    (request, items): (&Request, &[ProposedItem]),
) -> Result<CatalogText, CatalogText> {
    if let Some(active) = turn.active_sprint() {
        let values = json!({ "sprint_id": active.sprint_id.as_str() });
        return Err(("sprint.refused.active", values));
    }
    if let Some(title) = known(turn, items) {
        let reason = format!("it is an item of the backlog already: {title}");
        return Err(("backlog.refused", json!({ "reason": reason })));
    }
    let mut proposed = new_items(items);
    for item in &mut proposed {
        item.milestone_title = Some(kickoff.milestone.clone());
    }
    let payload = json!({ "backlog_items": proposed });
    let id = Some(&request.request_id);
    let merged = queue::merge(turn, &payload, ItemSource::Planner, id, None)
        .map_err(|error| ("backlog.refused", json!({ "reason": error.to_string() })))?;
    let said = started(turn, granted, kickoff)?;
    // Whatever its milestone is called in the end, they are its items.
    let sprint = turn.scheduler().active_sprint_id.clone();
    if let Some(sprint) = sprint.as_ref().and_then(|id| turn.edit_sprint(id)) {
        sprint.planning.other_askers.clone_from(&request.params.other_askers);
    }
    for item in merged.items {
        if let Some(sprint) = &sprint {
            turn.edit_item(&item.backlog_id, |item| {
                item.origin.set("sprint_id", sprint.as_str());
            });
        }
    }
    Ok(said)
}

/// They take the place of a todo's item in its sprint: what it waits for they wait for, and what waits for it waits for
/// all of them. What people wrote for it has to hold when the last one is done. Their titles, and whether the sprint takes
/// them; or why they are not taken.
pub(in crate::engine) fn replace_with_items(
    turn: &mut Turn<'_>,
    request: &Request,
    items: &[ProposedItem],
) -> Result<(Vec<String>, bool), String> {
    let old = request.backlog_id.as_ref().and_then(|id| turn.item(id)).cloned();
    let (Some(sprint), Some(old)) = (request.sprint_id.clone(), old) else {
        return Err("the item that was to be split is gone".to_owned());
    };
    if let Some(title) = known(turn, items) {
        return Err(format!("it is an item of the backlog already: {title}"));
    }
    let payload = json!({ "backlog_items": new_items(items) });
    let id = Some(&request.request_id);
    let merged = queue::merge(turn, &payload, ItemSource::Planner, id, Some(&sprint))
        .map_err(|error| error.to_string())?;
    let new: Vec<ItemId> = merged.items.iter().map(|it| it.backlog_id.clone()).collect();
    // Nothing waits for it, so that it can wait for all of them.
    let is_awaited = |id: &ItemId| merged.items.iter().any(|it| it.depends_on.contains(id));
    let last = new.iter().rev().find(|id| !is_awaited(id)).cloned();
    // Nobody but people writes what a plan wants.
    let theirs = if old.plan.is_some() { &old.acceptance_criteria } else { &old.persons_criteria };
    // What comes when the sprint is ending waits for another one.
    let is_at_work = turn.active_sprint().is_some_and(|it| {
        it.sprint_id == sprint && it.status == SprintStatus::Running && it.closing.wrap_up.is_none()
    });
    for one in &new {
        let is_last = Some(one) == last.as_ref();
        turn.edit_item(one, |item| {
            item.milestone_title.clone_from(&old.milestone_title);
            // A newer version of the plan that it is of changes or drops all of them.
            item.piece_of = old.plan.clone().or_else(|| old.piece_of.clone());
            item.planned_in_sprint_id = is_at_work.then(|| sprint.clone());
            if item.priority_rank == 0 {
                item.priority_rank = old.priority_rank;
            }
            wait_for(item, &old.depends_on);
            item.excluded_paths.clone_from(&old.excluded_paths);
            // A person's bound holds for each of them.
            if item.piece_of.is_some() || item.allowed_paths.is_empty() {
                item.allowed_paths.clone_from(&old.allowed_paths);
            }
            item.answers.clone_from(&old.answers);
            item.artifacts.clone_from(&old.artifacts);
            sourcing::take_words(item, request);
            let serves = old.origin.texts("requirement_refs");
            if is_last && !serves.is_empty() {
                item.origin.set("requirement_refs", serves);
                wait_for(item, &new);
            }
            if is_last && !theirs.is_empty() {
                item.persons_criteria.clone_from(theirs);
                let own = std::mem::take(&mut item.acceptance_criteria);
                item.acceptance_criteria = [theirs.clone(), own].concat();
                wait_for(item, &new);
            }
        });
    }
    queue::hand_over_dependents(turn, &old.backlog_id, &new);
    if let Some(request) = turn.edit(&request.request_id) {
        request.outcome.split_into = new;
    }
    if is_at_work {
        queue::sync(turn, &sprint);
    }
    Ok((merged.items.into_iter().map(|it| it.title).collect(), is_at_work))
}

/// The item waits for these as well, but not for itself.
fn wait_for(item: &mut Item, on: &[ItemId]) {
    let more = on.iter().filter(|id| **id != item.backlog_id && !item.depends_on.contains(id));
    let more: Vec<ItemId> = more.cloned().collect();
    item.depends_on.extend(more);
}
