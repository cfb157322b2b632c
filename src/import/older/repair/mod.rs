//! What records of the older runtime say about each other, made to agree: it wrote them from many processes
//! without a lock, and derived a todo's status from whatever a role last reported (`spec/teams.md` 13.A #1, #6,
//! #7, 13.B #36, #37). Requests are the truth, todos follow them, items follow todos. Nothing here needs a
//! clock or chance, so that looking and opening come to the same.

use std::collections::{BTreeMap, BTreeSet};

use super::notes::Notes;
use super::records::Records;
use crate::domain::ids::{ItemId, RequestId, SprintId};
use crate::domain::item::{ItemStatus, fingerprint as item_fingerprint};
use crate::domain::lifecycle::{Lifecycle, Prerequisite, StepKind, counter};
use crate::domain::record::{SCHEDULER, inside, item_path, request_path, sprint_path};
use crate::domain::request::{self, Blocked, Request, RequestStatus};
use crate::domain::schedule::ReviewEnd;
use crate::domain::sprint::{
    CloseoutStatus, Phase, PlanningStep, Sprint, SprintStatus, Todo, TodoStatus, WrapUp,
};
use crate::domain::workflow::WorkflowState;
use todos::waits_or_runs;

mod todos;

/// The kinds of requests that the runtime made for itself.
const INTERNAL: &[&str] =
    &["sprint_internal", "sourcer_review", "blocked_backlog_review", "sprint_closeout_report"];

/// Makes the records agree.
pub(super) fn repair(older: &mut Records, notes: &mut Notes) {
    slot(older, notes);
    let all = older.items.values_mut().chain(older.copies.values_mut());
    for item in all.filter(|item| item.fingerprint.is_empty()) {
        item.fingerprint = item_fingerprint(&item.title, &item.scope, item.kind);
    }
    let active = older.scheduler.active_sprint_id.clone();
    if let Some(mut sprint) = active.as_ref().and_then(|id| older.sprints.remove(id)) {
        resume(&mut sprint, notes);
        todos::follow(&mut sprint, older, notes);
        older.items.extend(todos::items_again(&sprint, older, notes));
        older.sprints.insert(sprint.sprint_id.clone(), sprint);
    }
    requests(older, active.as_ref(), notes);
    for sprint in older.sprints.values_mut() {
        if active.as_ref() != Some(&sprint.sprint_id) {
            settle(sprint, notes);
        }
    }
    items(older, active.as_ref(), notes);
    if let Some(sprint) = active.and_then(|id| older.sprints.get_mut(&id)) {
        sprint.show_todos(|id| older.items.get(id));
    }
    scheduler(older, notes);
}

/// Who holds the slot: the sprint that the scheduler names, if it is there and open; else the newest open one,
/// because the older scheduler forgot its sprint now and then (13.B #37).
fn slot(older: &mut Records, notes: &mut Notes) {
    let open = |sprint: &Sprint| !sprint.status.is_terminal() && sprint.ended_at.is_none();
    let named = older.scheduler.active_sprint_id.clone();
    let mut active = named.clone().filter(|id| older.sprints.get(id).is_some_and(open));
    if let Some(id) = &named
        && active.is_none()
    {
        let why = if older.sprints.contains_key(id) { "is over" } else { "has no record" };
        notes.repaired(
            &inside(SCHEDULER),
            &format!("{id} held the slot and {why}; the slot is free"),
        );
    }
    if active.is_none() {
        let newest = older.sprints.values().filter(|it| open(it));
        let newest = newest.max_by_key(|it| (it.started_at, it.sprint_id.clone()));
        if let Some(sprint) = newest {
            let id = &sprint.sprint_id;
            notes.repaired(&inside(SCHEDULER), &format!("{id} is open and gets the slot"));
            active = Some(id.clone());
        }
    }
    for sprint in older.sprints.values_mut() {
        if sprint.status.is_terminal() || active.as_ref() == Some(&sprint.sprint_id) {
            continue;
        }
        let over =
            if sprint.ended_at.is_some() { SprintStatus::Failed } else { SprintStatus::Cancelled };
        let path = inside(&sprint_path(&sprint.sprint_id));
        notes.repaired(
            &path,
            &format!("it was {} and does not hold the slot: {over}", sprint.status),
        );
        sprint.status = over;
        sprint.phase = Phase::WrapUp;
        sprint.closing.status.get_or_insert(CloseoutStatus::Stopped);
        sprint.ended_at = sprint.ended_at.or(sprint.updated_at).or(sprint.work.last_activity_at);
    }
    older.scheduler.active_sprint_id = active;
}

/// Where the active sprint goes on.
fn resume(sprint: &mut Sprint, notes: &mut Notes) {
    let path = inside(&sprint_path(&sprint.sprint_id));
    // Its own requests are asked for again.
    sprint.planning_request_id = None;
    if sprint.status == SprintStatus::Closeout {
        notes.repaired(
            &path,
            "it was being closed, and is closed anew once its running todos are through",
        );
        sprint.status = SprintStatus::Running;
        sprint.closing.status = None;
        sprint.closing.wrap_up.get_or_insert(WrapUp::AfterCurrent);
    }
    if sprint.closing.requested_at.is_some() {
        sprint.closing.wrap_up.get_or_insert(WrapUp::AfterCurrent);
    }
    sprint.phase = match (sprint.status, sprint.closing.wrap_up) {
        (SprintStatus::Planning, _) => Phase::Initial,
        (_, Some(_)) => Phase::WrapUp,
        (_, None) => Phase::Ongoing,
    };
    if sprint.cutoff_at.take().is_some() {
        notes.repaired(&path, "its cutoff was never enforced, and is not now");
    }
    if sprint.status == SprintStatus::Planning && sprint.planning.step.is_none() {
        let last = sprint.planning.iterations.iter().rev().find(|it| it.phase == "initial");
        let reached = last.and_then(|it| {
            let step: PlanningStep = it.step.parse().ok()?;
            let next = || PlanningStep::ALL.into_iter().find(|it| *it > step);
            Some(if it.phase_ready { next().unwrap_or(step) } else { step })
        });
        if let Some(step) = reached {
            notes.repaired(&path, &format!("planning goes on with {step}"));
        }
        sprint.planning.step = reached;
    }
}

/// A sprint that is over has nothing that waits or runs.
fn settle(sprint: &mut Sprint, notes: &mut Notes) {
    let path = inside(&sprint_path(&sprint.sprint_id));
    for todo in sprint.work.todos.iter_mut().filter(|todo| waits_or_runs(todo.progress.status)) {
        notes.repaired(
            &path,
            &format!(
                "{} was {} in a sprint that is over",
                todo.progress.todo_id, todo.progress.status
            ),
        );
        todo.progress.status = TodoStatus::Cancelled;
        todo.progress.dependency_gate_bypass.clear();
    }
}

/// Open requests: those that the active sprint does not wait for are withdrawn, the others can go on.
fn requests(older: &mut Records, active: Option<&SprintId>, notes: &mut Notes) {
    let mut awaited: BTreeSet<RequestId> = BTreeSet::new();
    let mut over: BTreeSet<RequestId> = BTreeSet::new();
    for sprint in older.sprints.values() {
        for todo in &sprint.work.todos {
            let Some(id) = &todo.progress.request_id else { continue };
            if active == Some(&sprint.sprint_id) && todo.progress.status != TodoStatus::Cancelled {
                awaited.insert(id.clone());
            } else {
                over.insert(id.clone());
            }
        }
    }
    for request in older.requests.values_mut().filter(|it| !it.status.is_terminal()) {
        let path = inside(&request_path(&request.request_id));
        let id = &request.request_id;
        let internal = request.params.kind.as_deref().is_some_and(|kind| INTERNAL.contains(&kind));
        if !awaited.contains(id) && (internal || over.contains(id)) {
            notes.repaired(
                &path,
                &format!("it was {} and nobody waits for it", request.status.as_str()),
            );
            request.status = RequestStatus::Cancelled;
            request.outcome.ended_at = Some(request.updated_at);
            request.route.current_role = None;
            continue;
        }
        go_on(request, internal, &path, notes);
    }
}

/// An open request in the shape from which it can go on here.
fn go_on(request: &mut Request, internal: bool, path: &str, notes: &mut Notes) {
    if request.fingerprint.is_empty() {
        let route = &request.conversation.reply_route;
        let author = route.author_id.map(|id| id.to_string()).unwrap_or_default();
        let channel = route.channel_id.map(|id| id.to_string()).unwrap_or_default();
        request.fingerprint =
            request::fingerprint(&author, &channel, &request.intent, &request.scope);
    }
    if internal && request.params.workflow.is_none() {
        notes.repaired(path, "it had no workflow and begins with the planner");
        let lifecycle = Lifecycle::built_in();
        request.params.workflow = Some(WorkflowState::begin(lifecycle, lifecycle.begin_todo));
    }
    // What an older developer left lies in the project itself, not in a worktree of the request: there is
    // nothing yet that could be judged or committed.
    let lifecycle = Lifecycle::built_in();
    if request.work.candidate.is_none()
        && let Some(state) = &mut request.params.workflow
        && let Some(step) =
            lifecycle.step(state.step).filter(|step| step.needs(Prerequisite::Commit))
    {
        notes.repaired(path, &format!("{} had no commit to look at: it is built again", step.name));
        let advice = state.counter(counter::ADVICE);
        let build = lifecycle.steps().find(|step| step.kind == StepKind::Change);
        *state = WorkflowState::begin(lifecycle, build.map_or(lifecycle.begin_todo, |it| it.name));
        state.counters.insert(counter::ADVICE, advice);
        request.work.evidence = None;
    }
    if request.status == RequestStatus::Blocked && request.blocked.is_none() {
        let said = request.work.result.as_ref();
        let inputs = said.and_then(|it| it.proposals.required_inputs.clone());
        request.blocked = Some(Blocked {
            code: crate::domain::block::BlockCode::RoleBlocked,
            detail: said.map(|it| it.summary.clone()).unwrap_or_default(),
            required_inputs: inputs.unwrap_or_default(),
            since: request.updated_at,
            paused_by: None,
            card: None,
        });
    }
}

/// Items follow the todos of the active sprint; without one nothing is selected.
fn items(older: &mut Records, active: Option<&SprintId>, notes: &mut Notes) {
    let sprint = active.and_then(|id| older.sprints.get(id));
    let mut by_item: BTreeMap<ItemId, &Todo> = BTreeMap::new();
    for todo in sprint.iter().flat_map(|sprint| &sprint.work.todos) {
        let Some(id) = &todo.backlog_id else { continue };
        // What waits or runs counts before what is over.
        let better = by_item.get(id).is_none_or(|old| !waits_or_runs(old.progress.status));
        if better {
            by_item.insert(id.clone(), todo);
        }
    }
    for todo in sprint.iter().flat_map(|sprint| &sprint.work.todos) {
        let item = todo.backlog_id.as_ref().and_then(|id| older.items.get_mut(id));
        if let (Some(item), Some(sprint_id)) = (item, active) {
            item.take_todo(sprint_id, &todo.progress);
        }
    }
    let known: BTreeSet<ItemId> = older.items.keys().cloned().collect();
    for item in older.items.values_mut() {
        let old = item.status;
        let todo = by_item.get(&item.backlog_id);
        item.depends_on.retain(|id| known.contains(id) && *id != item.backlog_id);
        item.status = match todo.map(|todo| todo.progress.status) {
            Some(TodoStatus::Queued | TodoStatus::Running) => ItemStatus::Selected,
            Some(TodoStatus::Committed | TodoStatus::Completed) if old.is_active() => {
                ItemStatus::Done
            }
            Some(TodoStatus::Blocked | TodoStatus::Uncommitted) if old == ItemStatus::Selected => {
                ItemStatus::Blocked
            }
            Some(_) | None if old == ItemStatus::Selected => ItemStatus::Pending,
            Some(_) | None => old,
        };
        if let Some(todo) = todo.filter(|_| item.status == ItemStatus::Blocked)
            && item.blocked_reason.is_empty()
        {
            item.blocked_reason.clone_from(&todo.progress.summary);
        }
        item.selected_in_sprint_id = match item.status {
            ItemStatus::Selected => active.cloned(),
            ItemStatus::Pending | ItemStatus::Blocked => None,
            ItemStatus::Done | ItemStatus::CarriedOver | ItemStatus::Dropped => {
                item.selected_in_sprint_id.take()
            }
        };
        if item.status == ItemStatus::Done && item.completed_in_sprint_id.is_none() {
            item.completed_in_sprint_id = todo.and(active.cloned());
        }
        if item.status.is_active()
            && item.planned_in_sprint_id.as_ref().is_some_and(|id| Some(id) != active)
        {
            // Of a sprint that is over: it is free for the next one.
            item.planned_in_sprint_id = None;
        }
        if old != item.status {
            let path = inside(&item_path(&item.backlog_id));
            let (old, new) = (old.as_str(), item.status.as_str());
            notes.repaired(&path, &format!("it was {old} and is {new}, as its todo says"));
        }
    }
}

/// Reviews that nobody waits for any more are asked for again.
fn scheduler(older: &mut Records, notes: &mut Notes) {
    let scheduler = &mut older.scheduler;
    let open = |id: &Option<RequestId>| {
        id.as_ref().and_then(|id| older.requests.get(id)).is_some_and(|it| !it.status.is_terminal())
    };
    if !open(&scheduler.blocked_review.request_id)
        && scheduler.blocked_review.status == ReviewEnd::Open
        && !scheduler.blocked_review.fingerprint.is_empty()
    {
        notes.repaired(
            &inside(SCHEDULER),
            "the review of blocked items was lost and is asked for again",
        );
        scheduler.blocked_review.fingerprint.clear();
        scheduler.blocked_review.request_id = None;
    }
    if !open(&scheduler.sourcing.review_request_id)
        && scheduler.sourcing.review_request_id.is_some()
        && scheduler.sourcing.review_status == ReviewEnd::Open
    {
        scheduler.sourcing.review_status = ReviewEnd::Cancelled;
    }
}
