//! How far a todo is by its request (13.A #1: from the request's own status alone), and what its item says of that.

use serde_json::json;

use super::{backlog, queue, say, sourcing};
use crate::domain::gate::NoApproval;
use crate::domain::ids::{ItemId, RequestId, SprintId};
use crate::domain::item::{GAVE_UP, Item, ItemStatus, ItemTodo};
use crate::domain::request::{Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::schedule::ReviewEnd;
use crate::domain::sprint::{Todo, TodoProgress, TodoStatus};
use crate::engine::gates::guards;
use crate::engine::turn::Turn;

/// Where a todo stands by its request.
pub(super) fn status(request: &Request) -> TodoStatus {
    if request.was_refused() { TodoStatus::Cancelled } else { TodoStatus::of(request) }
}

/// The same todo, as its request moved it.
pub(super) fn moved(
    turn: &Turn<'_>,
    old: &TodoProgress,
    request: &Request,
    status: TodoStatus,
) -> TodoProgress {
    let delivered = request.params.delivered.as_deref();
    let said = request.work.result.as_ref().map(|result| result.summary.as_str());
    let detail = request.blocked.as_ref().map(|blocked| blocked.detail.as_str());
    let ended = how_it_ended(request);
    // What the sprint lets go of itself is released, and not looked at here.
    let is_dropped = ended.is_some() || request.status == RequestStatus::Cancelled;
    let decided = ended.or_else(|| request.was_refused().then(|| kept_aside(request)));
    let summary = match status {
        _ if decided.is_some() => decided.as_deref(),
        TodoStatus::Blocked | TodoStatus::Uncommitted => detail.or(said),
        TodoStatus::Queued
        | TodoStatus::Running
        | TodoStatus::Committed
        | TodoStatus::Completed
        | TodoStatus::Failed
        | TodoStatus::Cancelled => delivered.or(said),
    };
    let moved = TodoProgress {
        status,
        summary: crate::engine::say::cut(summary.unwrap_or_default(), 1_200),
        is_dropped,
        ended_at: (status != TodoStatus::Running).then_some(turn.now),
        spans: request.work.spans.clone(),
        commit_sha: request.outcome.commit_sha.clone().unwrap_or_default(),
        proven_through: request.outcome.proven_through.clone().unwrap_or_default(),
        version_control_message: if status == TodoStatus::Uncommitted {
            let blocked = request.blocked.as_ref().map(|blocked| blocked.code.word());
            blocked.unwrap_or("its commit waits to be let through").to_owned()
        } else {
            String::new()
        },
        dependency_gate_bypass: if status.is_terminal() {
            String::new()
        } else {
            old.dependency_gate_bypass.clone()
        },
        ..old.clone()
    };
    with_paths(turn, request, moved)
}

/// A todo whose commit waits for somebody's yes when its sprint ends: it stays what it is, and its item follows it.
pub(super) fn outlives(turn: &mut Turn<'_>, sprint: &SprintId, at: usize, todo: &Todo) {
    let request = todo.progress.request_id.as_ref().and_then(|id| turn.request(id)).cloned();
    let Some(request) = request else { return };
    let moved = moved(turn, &todo.progress, &request, TodoStatus::Uncommitted);
    let progress = TodoProgress { summary: moved.version_control_message.clone(), ..moved };
    let todo = Todo { progress: progress.clone(), ..todo.clone() };
    turn.edit_todo(sprint, at, |place| *place = progress);
    item(turn, sprint, &todo, &request);
}

/// Todos at work whose request's record is gone, or could not be read: nobody would end them. Where it comes back, they
/// follow it again.
pub(in crate::engine) fn without_request(turn: &mut Turn<'_>) {
    let review = turn.scheduler().blocked_review.request_id.clone();
    if review.is_some_and(|id| turn.request(&id).is_none())
        && turn.scheduler().blocked_review.status == ReviewEnd::Open
    {
        // What is blocked is looked at once more: no sprint would begin by itself before.
        turn.edit_scheduler().blocked_review.fingerprint.clear();
    }
    let Some(sprint) = turn.active_sprint().cloned() else { return };
    let id = &sprint.sprint_id;
    let is_gone = |request: &RequestId| turn.request(request).is_none();
    let gone: Vec<(usize, Todo, RequestId)> = (sprint.work.todos.iter().enumerate())
        .filter(|(_, todo)| !todo.progress.status.is_terminal())
        .filter_map(|(at, todo)| Some((at, todo.clone(), todo.progress.request_id.clone()?)))
        .filter(|(_, _, request)| is_gone(request))
        .collect();
    if sprint.planning_request_id.as_ref().is_some_and(is_gone)
        && let Some(sprint) = turn.edit_sprint(id)
    {
        // What it was to find out is asked again.
        sprint.planning_request_id = None;
    }
    for todo in &sprint.work.todos {
        let request = todo.progress.request_id.as_ref().and_then(|id| turn.request(id));
        let is_back = request.filter(|it| status(it) != todo.progress.status);
        if let Some(id) = is_back.map(|it| it.request_id.clone()) {
            // It is looked at when the decision closes.
            turn.edit(&id);
        }
    }
    for (at, todo, request) in gone {
        let summary = format!("the record of its request {request} is gone");
        let ended_at = Some(turn.now);
        let progress = TodoProgress {
            status: TodoStatus::Blocked,
            summary,
            ended_at,
            ..todo.progress.clone()
        };
        let todo = Todo { progress: progress.clone(), ..todo };
        let values = json!({ "sprint_id": id.as_str(), "title": todo.title, "request_id": request.as_str() });
        turn.edit_todo(id, at, |place| *place = progress);
        if let Some(mut item) = queue::item_of(turn, &todo, id)
            && item.may_be_todo(&todo.progress.todo_id)
        {
            item.todo = Some(ItemTodo { sprint_id: id.clone(), progress: todo.progress.clone() });
            backlog::set_by_todo(&mut item, None, turn.now);
            item.updated_at = turn.now;
            turn.put_item(item);
        }
        say::error(turn, id, "sprint.request_gone", values);
    }
}

/// Why a todo is over without a change, where a person decided that.
pub(super) fn how_it_ended(request: &Request) -> Option<String> {
    let outcome = &request.outcome;
    let pieces: Vec<&str> = outcome.split_into.iter().map(ItemId::as_str).collect();
    match &outcome.skipped {
        Some(skipped) => Some(skipped.line()),
        None if pieces.is_empty() => None,
        None => Some(format!("split into {}", pieces.join(", "))),
    }
}

/// Where a change is that was not let to the branch, and why it was not.
fn kept_aside(request: &Request) -> String {
    let why = match request.outcome.not_approved {
        // An earlier build did not note it.
        Some(NoApproval::Rejected) | None => " by a person",
        Some(NoApproval::Expired) => ": nobody decided in time",
        Some(NoApproval::Refused) => ": the configuration does not allow it",
    };
    format!("kept on teams/{}{why}", request.request_id)
}

/// How far a todo is, with what its request has changed so far, held beside what its item declares.
pub(super) fn with_paths(
    turn: &Turn<'_>,
    request: &Request,
    progress: TodoProgress,
) -> TodoProgress {
    let paths = request.work.candidate.iter().flat_map(|candidate| &candidate.paths);
    let artifacts: Vec<String> = paths.map(|changed| changed.path.clone()).collect();
    let item = request.backlog_id.as_ref().and_then(|id| turn.item(id));
    let item = item.filter(|_| request.work.candidate.is_some());
    let (undeclared_paths, untouched_paths) =
        item.map(|item| guards::beside_declared(item, &artifacts)).unwrap_or_default();
    TodoProgress { undeclared_paths, untouched_paths, artifacts, ..progress }
}

/// Brings the item of a todo in line with it.
pub(super) fn item(turn: &mut Turn<'_>, sprint: &SprintId, todo: &Todo, request: &Request) {
    let Some(mut item) = queue::item_of(turn, todo, sprint) else { return };
    if !item.may_be_todo(&todo.progress.todo_id) {
        return;
    }
    item.todo = Some(ItemTodo { sprint_id: sprint.clone(), progress: todo.progress.clone() });
    backlog::set_by_todo(&mut item, Some(request), turn.now);
    // What an earlier request of it came to is over.
    item.origin.remove("todo_id");
    if request.was_refused() {
        refuse(&mut item, request);
    }
    if item.status != ItemStatus::Done && request.status.is_terminal() {
        // People say what becomes of it, and in which sprint.
        item.todo = None;
    }
    item.updated_at = turn.now;
    turn.put_item(item);
}

/// A person keeps the change off the branch: what is to be done about the item, people say.
pub(super) fn refuse(item: &mut Item, request: &Request) {
    sourcing::take_words(item, request);
    item.status = ItemStatus::Blocked;
    item.dropped_reason.clear();
    item.origin.set(GAVE_UP, "yes");
    if let Some(todo) = &request.todo_id {
        // Its room stays the place to say what becomes of it.
        item.leave_request(&request.request_id, todo);
    }
    item.blocked_reason = kept_aside(request);
    Role::VersionController.as_str().clone_into(&mut item.blocked_by_role);
}
