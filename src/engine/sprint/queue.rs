//! The backlog as the source of todos (`spec/teams.md` 9.6).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::backlog::{self, MergeContext, MergeError, MergeResult};
use super::todos;
use crate::domain::backlog::{BacklogItem, BacklogSource, BacklogStatus, GAVE_UP};
use crate::domain::criterion::Criterion;
use crate::domain::ids::{BacklogId, RequestId, SprintId, TodoId};
use crate::domain::request::RequestStatus;
use crate::domain::sprint::{Phase, Sprint, SprintEventKind, Todo, TodoStatus};
use crate::engine::plan::graph;
use crate::engine::turn::Turn;

/// Merges items into the backlog: all of them or none.
pub(super) fn merge(
    turn: &mut Turn<'_>,
    payload: &Value,
    source: BacklogSource,
    request: Option<&RequestId>,
    sprint: Option<&SprintId>,
) -> Result<MergeResult, MergeError> {
    let (known, settled) = (turn.items(), turn.settled_items());
    let sprint = sprint.and_then(|id| turn.sprint(id));
    let mut fixed = under_way(turn);
    if source != BacklogSource::User {
        fixed.extend(approved(turn));
    }
    let context = MergeContext {
        source,
        request_id: request,
        sprint,
        now: turn.now,
        zone: turn.zone(),
        fixed: &fixed,
    };
    let mut ids = turn.ids.clone();
    let merged = backlog::merge(&known, &settled, payload, &context, &mut ids);
    turn.ids = ids;
    let mut merged = merged?;
    if source == BacklogSource::User {
        let old = |item: &BacklogItem| turn.item(&item.backlog_id);
        let is_refused = |item: &&BacklogItem| {
            old(item).is_some_and(|old| old.status != item.status && is_in_work(turn, old))
        };
        if let Some(item) = merged.items.iter().find(is_refused) {
            return Err(MergeError::UnderWay { item: item.title.clone() });
        }
    }
    for item in &merged.items {
        let mut item = kept(turn, source, item.clone());
        if source != BacklogSource::User && is_of_approved_plan(turn, &item) {
            // It joins the plan that a person has approved when a person says so.
            let old = turn.item(&item.backlog_id);
            item.planned_in_sprint_id = old.and_then(|old| old.planned_in_sprint_id.clone());
            merged.left_out.push(item.title.clone());
        }
        turn.put_item(item);
    }
    Ok(merged)
}

/// Adds what a person found to the backlog, or finds it there.
pub(in crate::engine) fn add_items(
    turn: &mut Turn<'_>,
    items: &Value,
) -> Result<Vec<BacklogId>, MergeError> {
    let merged = merge(turn, items, BacklogSource::User, None, None)?;
    Ok(merged.items.into_iter().map(|item| item.backlog_id).collect())
}

/// An item as a payload leaves it, with what the payload cannot change. One that is as it was has not changed: a review
/// is not asked for the same again.
fn kept(turn: &Turn<'_>, source: BacklogSource, item: BacklogItem) -> BacklogItem {
    let known = turn.item(&item.backlog_id);
    let item = of_people(known, source, item, &turn.policy.check_names);
    let Some(old) = known else { return item };
    let item = keep_held(turn, old, keep_planned(old, source, item));
    let item = keep_given_up(old, source, item);
    let item = keep_delivered(turn, old, source, item);
    let same = BacklogItem { updated_at: old.updated_at, ..item.clone() };
    if same == *old { same } else { item }
}

/// What the team could not do people alone make possible again.
fn keep_given_up(old: &BacklogItem, source: BacklogSource, mut item: BacklogItem) -> BacklogItem {
    if !old.origin.has(GAVE_UP) || old.status != BacklogStatus::Blocked {
        return item;
    }
    if source == BacklogSource::User {
        if item.status != old.status {
            item.origin.remove(GAVE_UP);
        }
        return item;
    }
    for key in ["request_id", "todo_id", GAVE_UP] {
        if let Some(value) = old.origin.text(key) {
            item.origin.set(key, value);
        }
    }
    BacklogItem {
        status: old.status,
        dropped_reason: old.dropped_reason.clone(),
        blocked_reason: old.blocked_reason.clone(),
        blocked_by_role: old.blocked_by_role.clone(),
        required_inputs: old.required_inputs.clone(),
        recommended_next_step: old.recommended_next_step.clone(),
        ..item
    }
}

/// What an item was built on stays known when that has been delivered, though no agent names it any more: it is handed over
/// to whoever builds the item, and nothing waits for it.
fn keep_delivered(
    turn: &Turn<'_>,
    old: &BacklogItem,
    source: BacklogSource,
    mut item: BacklogItem,
) -> BacklogItem {
    if source == BacklogSource::User {
        return item;
    }
    let settled = turn.settled_items();
    let is_delivered = |id: &BacklogId| match turn.item(id) {
        Some(on) => on.status == BacklogStatus::Done,
        None => settled.contains_key(id),
    };
    let gone = old.depends_on.iter().filter(|id| is_delivered(id));
    let gone: Vec<BacklogId> = gone.filter(|id| !item.depends_on.contains(id)).cloned().collect();
    item.depends_on.extend(gone);
    item
}

/// What a person's plan says of an item stays as it is, whatever an agent proposes.
fn keep_planned(old: &BacklogItem, source: BacklogSource, item: BacklogItem) -> BacklogItem {
    if source == BacklogSource::User || (old.plan.is_none() && old.piece_of.is_none()) {
        return item;
    }
    if old.plan.is_none() {
        // Of a piece it says how far it goes, and that it is wanted.
        let is_dropped = item.status == BacklogStatus::Dropped;
        return BacklogItem {
            status: if is_dropped { old.status } else { item.status },
            dropped_reason: old.dropped_reason.clone(),
            allowed_paths: old.allowed_paths.clone(),
            ..item
        };
    }
    let mut origin = item.origin.clone();
    match old.origin.texts("requirement_refs") {
        refs if refs.is_empty() => origin.remove("requirement_refs"),
        refs => origin.set("requirement_refs", refs),
    }
    let is_dropped = item.status == BacklogStatus::Dropped;
    BacklogItem {
        // People drop what they have planned.
        status: if is_dropped { old.status } else { item.status },
        dropped_reason: old.dropped_reason.clone(),
        origin,
        title: old.title.clone(),
        scope: old.scope.clone(),
        acceptance_criteria: old.acceptance_criteria.clone(),
        depends_on: old.depends_on.clone(),
        effort: old.effort,
        allowed_paths: old.allowed_paths.clone(),
        fingerprint: old.fingerprint.clone(),
        ..item
    }
}

/// What a person wrote stands first among the criteria, whatever an agent proposes, which leaves none of its own to
/// people.
fn of_people(
    known: Option<&BacklogItem>,
    source: BacklogSource,
    mut item: BacklogItem,
    checks: &[String],
) -> BacklogItem {
    if source == BacklogSource::User {
        item.persons_criteria.clone_from(&item.acceptance_criteria);
        return item;
    }
    item.persons_criteria = known.map(|old| old.persons_criteria.clone()).unwrap_or_default();
    let is_new = |one: &Criterion| item.persons_criteria.iter().all(|it| it.text != one.text);
    let own = item.acceptance_criteria.iter().filter(|one| is_new(one));
    let own: Vec<Criterion> = own.cloned().map(|it| it.by_agent(checks)).collect();
    item.acceptance_criteria = [item.persons_criteria.clone(), own].concat();
    item
}

/// What a todo holds is not taken from it by words: its status follows its request.
fn keep_held(turn: &Turn<'_>, old: &BacklogItem, item: BacklogItem) -> BacklogItem {
    if !is_held(turn, old) {
        // A sprint selects, nobody else.
        let selected = item.status == BacklogStatus::Selected;
        let status = if selected { old.status } else { item.status };
        return BacklogItem { status, ..item };
    }
    BacklogItem {
        status: old.status,
        selected_in_sprint_id: old.selected_in_sprint_id.clone(),
        planned_in_sprint_id: old.planned_in_sprint_id.clone(),
        blocked_reason: old.blocked_reason.clone(),
        blocked_by_role: old.blocked_by_role.clone(),
        required_inputs: old.required_inputs.clone(),
        recommended_next_step: old.recommended_next_step.clone(),
        dropped_reason: old.dropped_reason.clone(),
        ..item
    }
}

/// Brings the sprint's todos in line with the items that are planned for it; says what is wrong with them.
pub(super) fn sync(turn: &mut Turn<'_>, id: &SprintId) -> Vec<String> {
    let Some(sprint) = turn.sprint(id).cloned() else { return Vec::new() };
    let items = turn.items();
    let mut planned: BTreeMap<BacklogId, BacklogItem> = items
        .into_iter()
        .filter(|(_, item)| {
            let mine = item.planned_in_sprint_id.as_ref() == Some(id)
                || item.selected_in_sprint_id.as_ref() == Some(id);
            let free = || item.status == BacklogStatus::Pending && is_free(turn, item);
            mine && (item.status == BacklogStatus::Selected || free())
        })
        .map(|(id, item)| (id.clone(), item.clone()))
        .collect();
    let edges: Vec<(BacklogId, Vec<BacklogId>)> =
        planned.iter().map(|(id, item)| (id.clone(), item.depends_on.clone())).collect();
    if let Some(cycle) = graph::cycle(&edges) {
        let names: Vec<&str> = cycle.iter().map(BacklogId::as_str).collect();
        return vec![format!("depends_on: a cycle: {}", names.join(" → "))];
    }
    let early = too_early(turn, &sprint, &planned);
    let titles: Vec<&str> =
        early.iter().filter_map(|id| planned.get(id)).map(|it| it.title.as_str()).collect();
    let left_out = format!(
        "left out, since what they depend on is open and no todo of the sprint: {}",
        titles.join(", ")
    );
    for item in &early {
        planned.remove(item);
        if turn.item(item).is_some_and(|it| it.status == BacklogStatus::Selected) {
            turn.edit_item(item, |it| {
                it.status = BacklogStatus::Pending;
                it.selected_in_sprint_id = None;
            });
            release_todo(turn, item);
        }
    }
    let Some(sprint) = turn.sprint(id).cloned() else { return Vec::new() };
    let todos = refreshed(turn, &sprint, &planned);
    let kept: Vec<BacklogId> = todos.iter().filter_map(|todo| todo.backlog_id.clone()).collect();
    for (backlog_id, item) in planned {
        let mut item = item;
        item.status = BacklogStatus::Selected;
        item.selected_in_sprint_id = Some(id.clone());
        item.milestone_title.clone_from(&sprint.milestone_title);
        if kept.contains(&backlog_id) && turn.item(&backlog_id) != Some(&item) {
            item.updated_at = turn.now;
            turn.put_item(item);
        }
    }
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.work.selected_backlog_ids = kept;
        sprint.work.todos = todos;
    }
    if early.is_empty() {
        return Vec::new();
    }
    let is_over = |sprint: &Sprint| sprint.work.todos.iter().all(|it| it.status.is_terminal());
    if turn.sprint(id).is_some_and(|it| it.phase == Phase::Initial && is_over(it)) {
        return vec![left_out];
    }
    turn.sprint_event(id, SprintEventKind::PlanningSyncWarning, &left_out, Value::Null);
    Vec::new()
}

/// Planned items that depend, directly or not, on an open one that gets no todo in this sprint: they would begin without
/// it. What has begun stays.
fn too_early(
    turn: &Turn<'_>,
    sprint: &Sprint,
    planned: &BTreeMap<BacklogId, BacklogItem>,
) -> BTreeSet<BacklogId> {
    let todos = &sprint.work.todos;
    let has_todo = |id: &BacklogId| {
        let is_its = |todo: &Todo| {
            todo.backlog_id.as_ref() == Some(id) || todo.carry_over_backlog_id.as_ref() == Some(id)
        };
        todos.iter().any(is_its)
    };
    let has_begun = |id: &BacklogId| {
        let is_open = |todo: &Todo| todo.status != TodoStatus::Queued && !todo.status.is_terminal();
        todos.iter().any(|todo| is_open(todo) && todo.backlog_id.as_ref() == Some(id))
    };
    let mut left_out = BTreeSet::new();
    loop {
        let comes = |id: &BacklogId| planned.contains_key(id) || has_todo(id);
        let waits = |item: &BacklogItem| {
            let mut on = item.depends_on.iter();
            on.any(|id| turn.item(id).is_some() && (left_out.contains(id) || !comes(id)))
        };
        let open = planned.iter().filter(|(id, _)| !left_out.contains(*id) && !has_begun(id));
        let more: Vec<BacklogId> =
            open.filter(|(_, item)| waits(item)).map(|(id, _)| id.clone()).collect();
        if more.is_empty() {
            return left_out;
        }
        left_out.extend(more);
    }
}

/// The item of a todo; where its record is gone, what the todo still tells of it (`spec/teams.md` 9.7). `None`
/// where the todo has none, or it was settled by somebody else.
pub(super) fn item_of(turn: &Turn<'_>, todo: &Todo) -> Option<BacklogItem> {
    let id = todo.backlog_id.as_ref()?;
    match turn.item(id) {
        Some(item) => Some(item.clone()),
        None if turn.settled_items().contains_key(id) => None,
        None => Some(backlog::restored(id.clone(), todo, turn.now)),
    }
}

/// Items that are gone come back from the todos that wait for their turn or are at work: somebody removed a
/// record while the team was down.
pub(super) fn restore(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(sprint) = turn.sprint(id) else { return };
    let is_gone = |todo: &&Todo| {
        !todo.status.is_terminal()
            && todo.backlog_id.as_ref().is_some_and(|id| turn.item(id).is_none())
    };
    let gone: Vec<Todo> = sprint.work.todos.iter().filter(is_gone).cloned().collect();
    for todo in gone {
        let Some(mut item) = item_of(turn, &todo) else { continue };
        backlog::set_by_todo(&mut item, &todo, None, id, turn.now);
        let payload = json!({ "todo_id": todo.todo_id.as_str() });
        turn.sprint_event(id, SprintEventKind::ItemRestored, &item.title, payload);
        turn.put_item(item);
    }
}

/// What depends on an item that was dropped in this turn is blocked, since nobody will deliver that; a person or the
/// planner says whether it is wanted without.
pub(super) fn block_dependents_of_dropped(turn: &mut Turn<'_>) {
    let dropped: Vec<BacklogItem> =
        turn.changed_items().filter(|it| it.status == BacklogStatus::Dropped).cloned().collect();
    for gone in dropped {
        let waits = |item: &&BacklogItem| item.depends_on.contains(&gone.backlog_id);
        let items = turn.items().into_values().filter(waits);
        let is_free = |item: &&BacklogItem| !is_in_work(turn, item);
        let all: Vec<BacklogId> = items.filter(is_free).map(|it| it.backlog_id.clone()).collect();
        for id in all {
            turn.edit_item(&id, |item| {
                let reason = format!(
                    "it depended on {}, which was dropped: {}",
                    gone.backlog_id, gone.title
                );
                // One that waits for something else as well says both.
                item.blocked_reason = match (item.status, item.blocked_reason.as_str()) {
                    (BacklogStatus::Blocked, old) if !old.is_empty() => format!("{old}\n{reason}"),
                    (_, _) => reason,
                };
                item.status = BacklogStatus::Blocked;
                "set it to pending if it is wanted without, or drop it as well"
                    .clone_into(&mut item.recommended_next_step);
                // Whoever lets it go on does without.
                item.depends_on.retain(|on| *on != gone.backlog_id);
                item.selected_in_sprint_id = None;
                item.planned_in_sprint_id = None;
            });
            release_todo(turn, &id);
        }
    }
}

/// Takes the todo of an item that is not to be done now out of the active sprint, where it has not begun.
fn release_todo(turn: &mut Turn<'_>, item: &BacklogId) {
    let waits =
        |todo: &Todo| todo.status == TodoStatus::Queued && todo.backlog_id.as_ref() == Some(item);
    let Some(sprint) = turn.active_sprint() else { return };
    let Some(at) = sprint.work.todos.iter().position(waits) else { return };
    let (id, todo) = (sprint.sprint_id.clone(), sprint.work.todos[at].clone());
    let now = turn.now;
    if let Some(todo) = turn.edit_todo(&id, at) {
        todo.status = TodoStatus::Cancelled;
        todo.ended_at = Some(now);
    }
    let payload = json!({ "todo_id": todo.todo_id.as_str() });
    turn.sprint_event(&id, SprintEventKind::TodoReleased, &todo.title, payload);
}

/// What waits for an item waits for those that take its place.
pub(in crate::engine) fn hand_over_dependents(
    turn: &mut Turn<'_>,
    old: &BacklogId,
    new: &[BacklogId],
) {
    let waits = |item: &&BacklogItem| item.depends_on.contains(old);
    let all: Vec<BacklogId> =
        turn.items().into_values().filter(waits).map(|item| item.backlog_id.clone()).collect();
    for id in all {
        turn.edit_item(&id, |item| {
            item.depends_on.retain(|on| on != old);
            let more = new.iter().filter(|on| !item.depends_on.contains(on));
            let more: Vec<BacklogId> = more.cloned().collect();
            item.depends_on.extend(more);
        });
    }
}

fn refreshed(
    turn: &mut Turn<'_>,
    sprint: &Sprint,
    planned: &BTreeMap<BacklogId, BacklogItem>,
) -> Vec<Todo> {
    let now = turn.now;
    let waits = |todo: &Todo| todo.status == TodoStatus::Queued;
    // What has begun stays whatever became of its item; what has not goes with it.
    let mut todos: Vec<Todo> = sprint
        .work
        .todos
        .iter()
        .filter(|todo| {
            !waits(todo) || todo.backlog_id.as_ref().is_some_and(|id| planned.contains_key(id))
        })
        .cloned()
        .collect();
    // Records and reports list todos as they were made: by rank, as people expect them.
    let mut by_rank: Vec<(&BacklogId, &BacklogItem)> = planned.iter().collect();
    by_rank.sort_by_key(|(_, item)| (todos::rank_or_last(item.priority_rank), item.created_at));
    for (backlog_id, item) in by_rank {
        let at = todos.iter().position(|todo| {
            todo.backlog_id.as_ref() == Some(backlog_id) && !todo.status.is_terminal()
        });
        let at = at.unwrap_or_else(|| {
            let id = turn.ids.todo(&now.format_in(turn.zone(), "%H%M%S"));
            let mut todo = Todo::new(id, &item.title, now);
            todo.backlog_id = Some(backlog_id.clone());
            todos.push(todo);
            todos.len() - 1
        });
        let todo = &mut todos[at];
        todo.priority_rank = item.priority_rank;
        todo.effort = item.effort;
        if waits(todo) {
            // Whoever goes on with it reads what came of it before.
            let goes_on = item.carry_over_of.is_some()
                || !item.answers.is_empty()
                || item.origin.has("todo_id");
            let before = item.origin.text("request_id").filter(|_| goes_on);
            let before = before.and_then(|id| RequestId::parse(id).ok());
            todo.retry_of_request_id = todo.retry_of_request_id.take().or(before);
            todo.title.clone_from(&item.title);
            todo.milestone_title.clone_from(&sprint.milestone_title);
            todo.acceptance_criteria.clone_from(&item.acceptance_criteria);
            todo.requirements = item.origin.texts("requirement_refs");
        }
    }
    // A todo that failed stands for the item that carries it on, until a todo is made of that.
    let carried = todos
        .iter()
        .filter_map(|todo| Some((todo.carry_over_backlog_id.clone()?, todo.todo_id.clone())));
    let own =
        todos.iter().filter_map(|todo| Some((todo.backlog_id.clone()?, todo.todo_id.clone())));
    let by_item: BTreeMap<BacklogId, TodoId> = carried.chain(own).collect();
    for todo in &mut todos {
        let item = todo.backlog_id.as_ref().and_then(|id| planned.get(id));
        if let Some(item) = item {
            // What is not in the sprint any more is delivered, or is not waited for.
            todo.depends_on =
                item.depends_on.iter().filter_map(|id| by_item.get(id).cloned()).collect();
        }
    }
    todos
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

/// Whether a sprint has taken the item, or an open request still works on it: then it is not changed.
pub(in crate::engine) fn is_held(turn: &Turn<'_>, item: &BacklogItem) -> bool {
    item.status == BacklogStatus::Selected || is_in_work(turn, item)
}

/// The items that somebody works on now, or whose change is made and judged. One whose request waits for an answer may
/// be changed.
fn under_way(turn: &Turn<'_>) -> BTreeSet<BacklogId> {
    let at_work = turn.requests().filter(|request| match request.status {
        RequestStatus::Queued | RequestStatus::Delegated => true,
        RequestStatus::Blocked => {
            request.work.candidate.is_some() || request.work.conflict.is_some()
        }
        RequestStatus::Committed
        | RequestStatus::Completed
        | RequestStatus::Failed
        | RequestStatus::Cancelled => false,
    });
    at_work.filter_map(|request| request.backlog_id.clone()).collect()
}

/// The items of the sprint whose plan a person has approved.
fn approved(turn: &Turn<'_>) -> BTreeSet<BacklogId> {
    let items = turn.items().into_values().filter(|item| is_of_approved_plan(turn, item));
    items.map(|item| item.backlog_id.clone()).collect()
}

/// Whether an item is, as it says, of the sprint whose plan a person has approved.
fn is_of_approved_plan(turn: &Turn<'_>, item: &BacklogItem) -> bool {
    turn.active_sprint().filter(|sprint| sprint.planning.is_approved).is_some_and(|sprint| {
        let its = [&item.planned_in_sprint_id, &item.selected_in_sprint_id];
        its.iter().any(|id| id.as_ref() == Some(&sprint.sprint_id))
    })
}

/// Whether an open request still works on the item, such as one whose commit waits for the branch.
fn is_in_work(turn: &Turn<'_>, item: &BacklogItem) -> bool {
    turn.requests().any(|request| {
        request.backlog_id.as_ref() == Some(&item.backlog_id) && !request.status.is_terminal()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::backlog::BacklogKind;
    use crate::domain::criterion::written;
    use crate::domain::time::Timestamp;

    #[test]
    fn what_a_person_wrote_stays_and_what_an_agent_wrote_may_change() {
        let id = BacklogId::parse("backlog-1").unwrap();
        let new = BacklogItem::new(id, "T", "", BacklogKind::Bug, Timestamp::from_millis(0));
        let said = |criteria: &[&str]| BacklogItem {
            acceptance_criteria: criteria.iter().map(|text| Criterion::from(*text)).collect(),
            ..new.clone()
        };
        let by = |known: Option<&BacklogItem>, source, criteria: &[&str]| {
            of_people(known, source, said(criteria), &["unit".to_owned()])
        };
        let item = by(None, BacklogSource::User, &["it works", "(manual) it looks calm"]);
        let once = by(Some(&item), BacklogSource::Planner, &["it works", "(manual) it is fast"]);
        let all = ["it works", "(manual) it looks calm", "it is fast"];
        assert_eq!(written(&once.acceptance_criteria), all);
        // What the planner added it may take back, and nothing grows with each review.
        let again = by(Some(&once), BacklogSource::Planner, &["it is small"]);
        let all = ["it works", "(manual) it looks calm", "it is small"];
        assert_eq!(written(&again.acceptance_criteria), all);
        let own = by(None, BacklogSource::Planner, &["(manual) whatever"]);
        assert_eq!(written(&own.acceptance_criteria), ["whatever"]);
    }
}
