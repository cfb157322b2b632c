//! The backlog as the source of todos (`spec/teams.md` 9.6).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::backlog::{self, MergeContext, MergeError, MergeResult};
use super::{closeout, todos};
use crate::domain::criterion::Criterion;
use crate::domain::ids::{ItemId, RequestId, SprintId, TodoId};
use crate::domain::item::{GAVE_UP, Item, ItemSource, ItemStatus, ItemTodo};
use crate::domain::request::RequestStatus;
use crate::domain::result::ProposedItem;
use crate::domain::sprint::{Phase, Sprint, SprintEventKind, Todo, TodoProgress, TodoStatus};
use crate::engine::plan::graph;
use crate::engine::turn::Turn;

/// Merges items into the backlog: all of them or none.
pub(super) fn merge(
    turn: &mut Turn<'_>,
    payload: &Value,
    source: ItemSource,
    request: Option<&RequestId>,
    sprint: Option<&SprintId>,
) -> Result<MergeResult, MergeError> {
    let mut merged = read(turn, payload, source, request, sprint)?;
    if source == ItemSource::User {
        let old = |item: &Item| turn.item(&item.backlog_id);
        let is_refused = |item: &&Item| {
            old(item).is_some_and(|old| old.status != item.status && is_in_work(turn, old))
        };
        if let Some(item) = merged.items.iter().find(is_refused) {
            return Err(MergeError::UnderWay { item: item.title.clone() });
        }
    }
    for item in &merged.items {
        let mut item = kept(turn, source, item.clone());
        let old = turn.item(&item.backlog_id).map(|old| old.status);
        if old == Some(ItemStatus::Blocked) && item.status == ItemStatus::Done {
            release_todo(turn, &item.backlog_id, item.status);
        }
        if old == Some(ItemStatus::Selected) && item.status != ItemStatus::Selected {
            release_todo(turn, &item.backlog_id, item.status);
            (item.todo, item.selected_in_sprint_id, item.planned_in_sprint_id) = (None, None, None);
        }
        if source != ItemSource::User && is_of_approved_plan(turn, &item) {
            // It joins the plan that a person has approved when a person says so.
            let old = turn.item(&item.backlog_id);
            item.planned_in_sprint_id = old.and_then(|old| old.planned_in_sprint_id.clone());
            merged.left_out.push(item.title.clone());
        }
        turn.put_item(item);
    }
    Ok(merged)
}

/// What a payload would come to.
fn read(
    turn: &mut Turn<'_>,
    payload: &Value,
    source: ItemSource,
    request: Option<&RequestId>,
    sprint: Option<&SprintId>,
) -> Result<MergeResult, MergeError> {
    let (known, settled) = (turn.items(), turn.settled_items());
    let sprint = sprint.and_then(|id| turn.sprint(id));
    let mut fixed = under_way(turn);
    if source != ItemSource::User {
        fixed.extend(approved(turn));
        let waiting = closeout::waits_for_restart(turn);
        if sprint.map(|it| &it.sprint_id) != waiting.as_ref() {
            let items = turn.items().into_values().filter(|_| waiting.is_some());
            let its = items.filter(|item| item.planned_in_sprint_id == waiting);
            fixed.extend(its.map(|item| item.backlog_id.clone()));
        }
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
    merged
}

/// Merges what a review proposes, whose role is not asked again: what is wrong with an entry is said, and the others
/// are taken.
pub(super) fn merge_what_fits(
    turn: &mut Turn<'_>,
    items: &[ProposedItem],
    source: ItemSource,
    request: Option<&RequestId>,
    sprint: Option<&SprintId>,
) -> (MergeResult, Vec<String>) {
    if items.is_empty() {
        return (MergeResult::default(), Vec::new());
    }
    if let Ok(all) = merge(turn, &json!({ "backlog_items": items }), source, request, sprint) {
        return (all, Vec::new());
    }
    let mut fitting: Vec<&ProposedItem> = Vec::new();
    let mut left: Vec<&ProposedItem> = items.iter().collect();
    // One may depend on another that comes later.
    let wrong = loop {
        let (before, mut wrong) = (fitting.len(), Vec::new());
        for item in std::mem::take(&mut left) {
            let with_it = [&fitting[..], &[item]].concat();
            let payload = json!({ "backlog_items": with_it });
            match read(turn, &payload, source, request, sprint) {
                Ok(_) => fitting.push(item),
                Err(error) => {
                    left.push(item);
                    wrong.push(error.to_string());
                }
            }
        }
        if fitting.len() == before || left.is_empty() {
            break wrong;
        }
    };
    if fitting.is_empty() {
        return (MergeResult::default(), wrong);
    }
    match merge(turn, &json!({ "backlog_items": fitting }), source, request, sprint) {
        Ok(merged) => (merged, wrong),
        Err(error) => (MergeResult::default(), vec![error.to_string()]),
    }
}

/// Adds what a person found to the backlog, or finds it there.
pub(in crate::engine) fn add_items(
    turn: &mut Turn<'_>,
    items: &Value,
) -> Result<Vec<ItemId>, MergeError> {
    let merged = merge(turn, items, ItemSource::User, None, None)?;
    Ok(merged.items.into_iter().map(|item| item.backlog_id).collect())
}

/// An item as a payload leaves it, with what the payload cannot change. One that is as it was has not changed: a review
/// is not asked for the same again.
fn kept(turn: &Turn<'_>, source: ItemSource, item: Item) -> Item {
    let known = turn.item(&item.backlog_id);
    let item = of_people(known, source, item, &turn.policy.check_names);
    let Some(old) = known else { return item };
    let item = keep_held(turn, old, source, keep_planned(old, source, item));
    let item = keep_persons(old, source, keep_given_up(old, source, item));
    let item = keep_delivered(turn, old, source, item);
    let same = Item { updated_at: old.updated_at, ..item.clone() };
    if same == *old { same } else { item }
}

/// What the team could not do, or a person refused, people alone make possible again.
fn keep_given_up(old: &Item, source: ItemSource, mut item: Item) -> Item {
    if !old.origin.has(GAVE_UP) || old.status != ItemStatus::Blocked {
        return item;
    }
    if source == ItemSource::User {
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
    as_it_stood(old, item)
}

/// An item that stands where it stood, for the same reasons.
fn as_it_stood(old: &Item, item: Item) -> Item {
    Item {
        status: old.status,
        dropped_reason: old.dropped_reason.clone(),
        blocked_reason: old.blocked_reason.clone(),
        blocked_by_role: old.blocked_by_role.clone(),
        required_inputs: old.required_inputs.clone(),
        recommended_next_step: old.recommended_next_step.clone(),
        ..item
    }
}

/// People drop what they have put there.
fn keep_persons(old: &Item, source: ItemSource, item: Item) -> Item {
    let is_theirs = old.source == ItemSource::User && source != ItemSource::User;
    if !is_theirs || item.status != ItemStatus::Dropped {
        return item;
    }
    as_it_stood(old, item)
}

/// What an item was built on stays known when that has been delivered, though no agent names it any more: it is handed over
/// to whoever builds the item, and nothing waits for it.
fn keep_delivered(turn: &Turn<'_>, old: &Item, source: ItemSource, mut item: Item) -> Item {
    if source == ItemSource::User {
        return item;
    }
    let is_delivered = |id: &ItemId| match turn.item(id) {
        Some(on) => on.status == ItemStatus::Done,
        None => turn.is_settled(id),
    };
    let gone = old.depends_on.iter().filter(|id| is_delivered(id));
    let gone: Vec<ItemId> = gone.filter(|id| !item.depends_on.contains(id)).cloned().collect();
    item.depends_on.extend(gone);
    item
}

/// What a person's plan says of an item stays as it is, whatever an agent proposes.
fn keep_planned(old: &Item, source: ItemSource, item: Item) -> Item {
    if source == ItemSource::User || (old.plan.is_none() && old.piece_of.is_none()) {
        return item;
    }
    if old.plan.is_none() {
        // Of a piece it says how far it goes, and that it is wanted.
        let is_dropped = item.status == ItemStatus::Dropped;
        return Item {
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
    let is_dropped = item.status == ItemStatus::Dropped;
    Item {
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
fn of_people(known: Option<&Item>, source: ItemSource, mut item: Item, checks: &[String]) -> Item {
    if source == ItemSource::User {
        // Who changes something else of it has written none of them.
        let same = known.filter(|old| old.acceptance_criteria == item.acceptance_criteria);
        let theirs = same.map_or(&item.acceptance_criteria, |old| &old.persons_criteria);
        item.persons_criteria = theirs.clone();
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
fn keep_held(turn: &Turn<'_>, old: &Item, source: ItemSource, item: Item) -> Item {
    let is_taken_out = item.status != ItemStatus::Selected && old.status == ItemStatus::Selected;
    if !is_held(turn, old) || is_taken_out && source == ItemSource::User && !is_in_work(turn, old) {
        // A sprint selects, nobody else.
        let selected = item.status == ItemStatus::Selected;
        let status = if selected { old.status } else { item.status };
        return Item { status, ..item };
    }
    Item {
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
    restore(turn, id);
    let Some(sprint) = turn.sprint(id).cloned() else { return Vec::new() };
    let items = turn.items();
    let mut planned: BTreeMap<ItemId, Item> = items
        .into_iter()
        .filter(|(_, item)| {
            let mine = item.planned_in_sprint_id.as_ref() == Some(id)
                || item.selected_in_sprint_id.as_ref() == Some(id);
            let free = || item.status == ItemStatus::Pending && is_free(turn, item);
            mine && (item.status == ItemStatus::Selected || free())
        })
        .map(|(id, item)| (id.clone(), item.clone()))
        .collect();
    let edges: Vec<(ItemId, Vec<ItemId>)> =
        planned.iter().map(|(id, item)| (id.clone(), item.depends_on.clone())).collect();
    if let Some(cycle) = graph::cycle(&edges) {
        let names: Vec<&str> = cycle.iter().map(ItemId::as_str).collect();
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
        if turn.item(item).is_some_and(|it| it.status == ItemStatus::Selected) {
            turn.edit_item(item, |it| {
                it.status = ItemStatus::Pending;
                it.selected_in_sprint_id = None;
            });
            release_todo(turn, item, ItemStatus::Pending);
        }
    }
    select(turn, id, planned);
    if early.is_empty() {
        return Vec::new();
    }
    let is_over =
        |sprint: &Sprint| sprint.work.todos.iter().all(|it| it.progress.status.is_terminal());
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
    planned: &BTreeMap<ItemId, Item>,
) -> BTreeSet<ItemId> {
    let (todos, shown) = (&sprint.work.todos, shown(sprint));
    let has_begun = |id: &ItemId| {
        let is_open = |todo: &Todo| {
            let waits =
                todo.progress.status == TodoStatus::Queued && !todo.progress.is_checkpoint();
            !waits && !todo.progress.status.is_terminal()
        };
        todos.iter().any(|todo| is_open(todo) && todo.backlog_id.as_ref() == Some(id))
    };
    let mut left_out = BTreeSet::new();
    loop {
        let comes = |id: &ItemId| planned.contains_key(id) || shown.contains(id);
        let waits = |item: &Item| {
            let mut on = item.depends_on.iter();
            on.any(|id| turn.item(id).is_some() && (left_out.contains(id) || !comes(id)))
        };
        let open = planned.iter().filter(|(id, _)| !left_out.contains(*id) && !has_begun(id));
        let more: Vec<ItemId> =
            open.filter(|(_, item)| waits(item)).map(|(id, _)| id.clone()).collect();
        if more.is_empty() {
            return left_out;
        }
        left_out.extend(more);
    }
}

/// The item of a todo; where its record is gone, what the todo still tells of it (`spec/teams.md` 9.7). `None`
/// where the todo has none, or it was settled by somebody else.
pub(super) fn item_of(turn: &Turn<'_>, todo: &Todo, sprint: &SprintId) -> Option<Item> {
    let id = todo.backlog_id.as_ref()?;
    match turn.item(id) {
        Some(item) => Some(item.clone()),
        None if turn.is_settled(id) => None,
        None => {
            let among = turn.sprint(sprint).map_or(&[][..], |sprint| &sprint.work.todos);
            let kind = backlog::classify(&todo.title);
            Some(todo.item_again(id.clone(), kind, (sprint, among), turn.now))
        }
    }
}

/// Items that are gone come back from the todos that wait for their turn or are at work: somebody removed a record while
/// the team was down. One whose record says nothing of its todo, as an older copy of it, gets that back.
pub(super) fn restore(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(sprint) = turn.sprint(id) else { return };
    let is_lost = |todo: &Todo| {
        let id = &todo.progress.todo_id;
        let lacks_it = |item: &Item| !item.is_todo(id) && item.may_be_todo(id);
        let item = todo.backlog_id.as_ref().map(|id| turn.item(id));
        !todo.progress.status.is_terminal() && item.is_some_and(|it| it.is_none_or(lacks_it))
    };
    let todos: Vec<(usize, Todo)> = (sprint.work.todos.iter().enumerate())
        .filter(|(_, todo)| is_lost(todo))
        .map(|(at, todo)| (at, todo.clone()))
        .collect();
    for (at, todo) in todos {
        if todo.backlog_id.as_ref().is_some_and(|id| turn.item(id).is_some()) {
            turn.edit_todo(id, at, |_| ());
            continue;
        }
        let Some(mut item) = item_of(turn, &todo, id) else { continue };
        backlog::set_by_todo(&mut item, None, turn.now);
        let payload = json!({ "todo_id": todo.progress.todo_id.as_str() });
        turn.sprint_event(id, SprintEventKind::ItemRestored, &item.title, payload);
        turn.put_item(item);
    }
}

/// What depends on an item that was dropped in this turn is blocked, since nobody will deliver that; a person or the
/// planner says whether it is wanted without.
pub(super) fn block_dependents_of_dropped(turn: &mut Turn<'_>) {
    let dropped: Vec<Item> =
        turn.changed_items().filter(|it| it.status == ItemStatus::Dropped).cloned().collect();
    for gone in dropped {
        let waits = |item: &&Item| item.depends_on.contains(&gone.backlog_id);
        let items = turn.items().into_values().filter(waits);
        let is_free = |item: &&Item| !is_in_work(turn, item);
        let all: Vec<ItemId> = items.filter(is_free).map(|it| it.backlog_id.clone()).collect();
        for id in all {
            turn.edit_item(&id, |item| {
                let reason = format!(
                    "it depended on {}, which was dropped: {}",
                    gone.backlog_id, gone.title
                );
                // One that waits for something else as well says both.
                item.blocked_reason = match (item.status, item.blocked_reason.as_str()) {
                    (ItemStatus::Blocked, old) if !old.is_empty() => format!("{old}\n{reason}"),
                    (_, _) => reason,
                };
                item.status = ItemStatus::Blocked;
                "set it to pending if it is wanted without, or drop it as well"
                    .clone_into(&mut item.recommended_next_step);
                // Whoever lets it go on does without.
                item.depends_on.retain(|on| *on != gone.backlog_id);
                item.selected_in_sprint_id = None;
                item.planned_in_sprint_id = None;
            });
            release_todo(turn, &id, ItemStatus::Blocked);
        }
    }
}

/// Takes the todo of an item that is not to be done now out of the active sprint, where it has not begun. What a person
/// calls done is, for whoever waits for it, also where its todo had ended otherwise.
pub(in crate::engine) fn release_todo(turn: &mut Turn<'_>, item: &ItemId, becomes: ItemStatus) {
    let is_done = becomes == ItemStatus::Done;
    let is_meant = |todo: &Todo| {
        todo.backlog_id.as_ref() == Some(item)
            && match todo.progress.status {
                TodoStatus::Queued => true,
                TodoStatus::Cancelled | TodoStatus::Failed => is_done,
                TodoStatus::Running
                | TodoStatus::Blocked
                | TodoStatus::Uncommitted
                | TodoStatus::Committed
                | TodoStatus::Completed => false,
            }
    };
    let Some(sprint) = turn.active_sprint() else { return };
    let Some(at) = sprint.work.todos.iter().rposition(is_meant) else { return };
    let (id, todo) = (sprint.sprint_id.clone(), sprint.work.todos[at].clone());
    let now = turn.now;
    turn.edit_todo(&id, at, |progress| {
        progress.status = if is_done { TodoStatus::Completed } else { TodoStatus::Cancelled };
        progress.ended_at = Some(now);
        progress.is_dropped = becomes == ItemStatus::Dropped;
    });
    turn.leave_todo(&todo, |_| ());
    let payload = json!({ "todo_id": todo.progress.todo_id.as_str() });
    turn.sprint_event(&id, SprintEventKind::TodoReleased, &todo.title, payload);
}

/// What waits for an item waits for those that take its place.
pub(in crate::engine) fn hand_over_dependents(turn: &mut Turn<'_>, old: &ItemId, new: &[ItemId]) {
    let waits = |item: &&Item| item.depends_on.contains(old);
    let all: Vec<ItemId> =
        turn.items().into_values().filter(waits).map(|item| item.backlog_id.clone()).collect();
    for id in all {
        turn.edit_item(&id, |item| {
            item.depends_on.retain(|on| on != old);
            let more = new.iter().filter(|on| !item.depends_on.contains(on));
            let more: Vec<ItemId> = more.cloned().collect();
            item.depends_on.extend(more);
        });
    }
}

/// The todos that would begin before something that their items depend on: that is open, and no todo of the sprint. The
/// next [`sync`] takes that in as well, or leaves them out.
pub(super) fn ahead(turn: &Turn<'_>, sprint: &Sprint) -> BTreeSet<TodoId> {
    let shown = shown(sprint);
    let waits = |todo: &&Todo| {
        // One that a restart put first waits for nothing.
        todo.progress.status == TodoStatus::Queued && !todo.progress.is_checkpoint()
    };
    let is_ahead = |todo: &&Todo| {
        let item = todo.backlog_id.as_ref().and_then(|id| turn.item(id));
        let mut on = item.into_iter().flat_map(|item| &item.depends_on);
        on.any(|id| turn.item(id).is_some() && !shown.contains(id))
    };
    let todos = sprint.work.todos.iter().filter(waits).filter(is_ahead);
    todos.map(|todo| todo.progress.todo_id.clone()).collect()
}

/// The items that a sprint shows as todos, and those that carry one on.
fn shown(sprint: &Sprint) -> BTreeSet<&ItemId> {
    let todos = sprint.work.todos.iter();
    todos.flat_map(|it| [&it.backlog_id, &it.progress.carry_over_backlog_id]).flatten().collect()
}

/// Makes todos of the planned items. What has begun stays whatever became of its item; what has not goes with it.
fn select(turn: &mut Turn<'_>, id: &SprintId, planned: BTreeMap<ItemId, Item>) {
    let waits = |progress: &TodoProgress| progress.status == TodoStatus::Queued;
    let is_planned = |id: &ItemId| planned.contains_key(id);
    let stays =
        |todo: &Todo| !waits(&todo.progress) || todo.backlog_id.as_ref().is_some_and(is_planned);
    let Some(sprint) = turn.edit_sprint(id) else { return };
    let milestone = sprint.milestone_title.clone();
    let gone: Vec<Todo> = sprint.work.todos.extract_if(.., |todo| !stays(todo)).collect();
    for todo in &gone {
        turn.leave_todo(todo, |_| ());
    }
    // Records and reports list todos as they were made: by rank, as people expect them.
    let mut by_rank: Vec<Item> = planned.into_values().collect();
    by_rank.sort_by_key(|item| (todos::rank_or_last(item.priority_rank), item.created_at));
    for item in &mut by_rank {
        item.status = ItemStatus::Selected;
        item.selected_in_sprint_id = Some(id.clone());
        if item.milestone_title.trim().is_empty() {
            item.milestone_title.clone_from(&milestone);
        }
        let is_open =
            |todo: &ItemTodo| todo.sprint_id == *id && !todo.progress.status.is_terminal();
        let todo = item.todo.take().filter(is_open);
        let mut progress = todo.map(|todo| todo.progress).unwrap_or_else(|| {
            let todo_id = turn.ids.todo(&turn.now.format_in(turn.zone(), "%H%M%S"));
            TodoProgress::new(todo_id, turn.now)
        });
        if waits(&progress) {
            // Whoever goes on with it reads what came of it before.
            let goes_on = item.carry_over_of.is_some()
                || !item.answers.is_empty()
                || item.origin.has("todo_id");
            let before = item.origin.text("request_id").filter(|_| goes_on);
            let before = before.and_then(|id| RequestId::parse(id).ok());
            progress.retry_of_request_id = progress.retry_of_request_id.take().or(before);
        }
        item.todo = Some(ItemTodo { sprint_id: id.clone(), progress });
        if turn.item(&item.backlog_id) != Some(item) {
            item.updated_at = turn.now;
            turn.put_item(item.clone());
        }
    }
    // What depends on one that came later knows its todo only now.
    for item in &by_rank {
        turn.show(item);
    }
    if let Some(sprint) = turn.edit_sprint(id) {
        let all = sprint.work.todos.iter().filter_map(|todo| todo.backlog_id.clone());
        sprint.work.selected_backlog_ids = all.collect();
    }
}

/// Whether an item can be taken into a sprint now: it waits for nothing that is blocked or in other hands, nor for itself,
/// as two plans may have it that know nothing of each other.
pub(super) fn is_free(turn: &Turn<'_>, item: &Item) -> bool {
    is_free_beside(turn, item, &mut BTreeSet::new(), &mut BTreeSet::new())
}

/// The same for one on which those of `path` depend; `free` are those that were looked at before.
fn is_free_beside<'t>(
    turn: &'t Turn<'_>,
    item: &'t Item,
    path: &mut BTreeSet<&'t ItemId>,
    free: &mut BTreeSet<&'t ItemId>,
) -> bool {
    let id = &item.backlog_id;
    if item.status == ItemStatus::Selected || free.contains(id) {
        return true;
    }
    if !backlog::is_actionable(item) || is_in_work(turn, item) || !path.insert(id) {
        return false;
    }
    let mut on = item.depends_on.iter().filter_map(|id| turn.item(id));
    let is_free = on.all(|other| is_free_beside(turn, other, path, free));
    path.remove(id);
    if is_free {
        free.insert(id);
    }
    is_free
}

/// The items that a sprint could begin with by itself, and those that the one that waits for its restart keeps: its own,
/// and what depends on them.
pub(super) fn free_and_kept<'t>(turn: &'t Turn<'_>) -> (Vec<&'t Item>, Vec<&'t Item>) {
    let waiting = closeout::waits_for_restart(turn);
    let free = turn.items().into_values().filter(|item| is_free(turn, item));
    let waiting = waiting.as_ref();
    free.partition(|item| !is_kept(turn, item, waiting, &mut BTreeSet::new()))
}

fn is_kept<'t>(
    turn: &'t Turn<'_>,
    item: &'t Item,
    waiting: Option<&SprintId>,
    seen: &mut BTreeSet<&'t ItemId>,
) -> bool {
    if waiting.is_none() || !seen.insert(&item.backlog_id) {
        return false;
    }
    item.planned_in_sprint_id.as_ref() == waiting
        || item
            .depends_on
            .iter()
            .filter_map(|id| turn.item(id))
            .any(|other| is_kept(turn, other, waiting, seen))
}

/// Whether a sprint has taken the item, or an open request still works on it: then it is not changed.
pub(super) fn is_held(turn: &Turn<'_>, item: &Item) -> bool {
    item.status == ItemStatus::Selected || is_in_work(turn, item)
}

/// The items that somebody works on now, or whose change is made and judged. One whose request waits for an answer may
/// be changed.
fn under_way(turn: &Turn<'_>) -> BTreeSet<ItemId> {
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
fn approved(turn: &Turn<'_>) -> BTreeSet<ItemId> {
    let items = turn.items().into_values().filter(|item| is_of_approved_plan(turn, item));
    items.map(|item| item.backlog_id.clone()).collect()
}

/// Whether an item is, as it says, of the sprint whose plan a person has approved.
fn is_of_approved_plan(turn: &Turn<'_>, item: &Item) -> bool {
    turn.active_sprint().filter(|sprint| sprint.planning.is_approved).is_some_and(|sprint| {
        let its = [&item.planned_in_sprint_id, &item.selected_in_sprint_id];
        its.iter().any(|id| id.as_ref() == Some(&sprint.sprint_id))
    })
}

/// Whether an open request still works on the item, such as one whose commit waits for the branch.
pub(in crate::engine) fn is_in_work(turn: &Turn<'_>, item: &Item) -> bool {
    turn.requests().any(|request| {
        request.backlog_id.as_ref() == Some(&item.backlog_id) && !request.status.is_terminal()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::criterion::written;
    use crate::domain::item::ItemKind;
    use crate::domain::time::Timestamp;

    #[test]
    fn what_a_person_wrote_stays_and_what_an_agent_wrote_may_change() {
        let id = ItemId::parse("backlog-1").unwrap();
        let new = Item::new(id, "T", "", ItemKind::Bug, Timestamp::from_millis(0));
        let said = |criteria: &[&str]| Item {
            acceptance_criteria: criteria.iter().map(|text| Criterion::from(*text)).collect(),
            ..new.clone()
        };
        let by = |known: Option<&Item>, source, criteria: &[&str]| {
            of_people(known, source, said(criteria), &["unit".to_owned()])
        };
        let item = by(None, ItemSource::User, &["it works", "(manual) it looks calm"]);
        let once = by(Some(&item), ItemSource::Planner, &["it works", "(manual) it is fast"]);
        let all = ["it works", "(manual) it looks calm", "it is fast"];
        assert_eq!(written(&once.acceptance_criteria), all);
        // What the planner added it may take back, and nothing grows with each review.
        let again = by(Some(&once), ItemSource::Planner, &["it is small"]);
        let all = ["it works", "(manual) it looks calm", "it is small"];
        assert_eq!(written(&again.acceptance_criteria), all);
        let own = by(None, ItemSource::Planner, &["(manual) whatever"]);
        assert_eq!(written(&own.acceptance_criteria), ["whatever"]);
    }
}
