//! Items, and with them the todos that they are, follow their requests (`spec/teams.md` 9.7; 13.A #1: from the request's
//! own status alone).

use serde_json::json;

use super::advance::advance;
use super::queue::block_dependents_of_dropped;
use super::{backlog, closing, initial, plan_review, queue, running, say, sourcing};
use crate::domain::ids::{ItemId, SprintId};
use crate::domain::item::{GAVE_UP, Item, ItemStatus, ItemTodo};
use crate::domain::request::{Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::sprint::{Duty, SprintEventKind, SprintStatus, Todo, TodoProgress, TodoStatus};
use crate::engine::ending;
use crate::engine::gates::guards;
use crate::engine::turn::Turn;

/// Closes a decision: what the changed requests mean for sprints, and then what is next.
pub(in crate::engine) fn follow(turn: &mut Turn<'_>) {
    requests(turn);
    block_dependents_of_dropped(turn);
    if turn.planning.is_touched() || turn.scheduler().active_sprint_id.is_some() {
        advance(turn);
        // What was ended on the way is followed as well.
        requests(turn);
        block_dependents_of_dropped(turn);
    }
}

fn requests(turn: &mut Turn<'_>) {
    for id in turn.touched() {
        let Some(request) = turn.request(&id).cloned() else { continue };
        match request.duty() {
            Some(duty) => follow_duty(turn, &request, duty),
            None => todo(turn, &request),
        }
    }
}

/// Brings what waits for a duty in line with it. Nobody waits for a person in it: where a role is stuck,
/// the sprint has its own way on.
fn follow_duty(turn: &mut Turn<'_>, request: &Request, duty: Duty) {
    let over = request.status.is_terminal() || request.status == RequestStatus::Blocked;
    if !over {
        return;
    }
    if request.status == RequestStatus::Blocked {
        ending::end(turn, &request.request_id, RequestStatus::Failed, "sprint.duty", json!({}));
    }
    match duty {
        Duty::ResearchPrepass => initial::researched(turn, request),
        Duty::Planning => initial::planned(turn, request),
        Duty::PlanReview => plan_review::reviewed(turn, request),
        Duty::OngoingReview => running::reviewed(turn, request),
        Duty::ClosingReport => closing::worded(turn, request),
        Duty::Sourcing => sourcing::sourced(turn, request),
        Duty::SourcerReview => sourcing::reviewed(turn, request),
        Duty::BlockedReview => sourcing::blocked_reviewed(turn, request),
    }
}

/// Where a todo stands by its request.
fn status(request: &Request) -> TodoStatus {
    if was_refused(request) { TodoStatus::Cancelled } else { TodoStatus::of(request) }
}

/// Whether a person kept the change off the branch: it was made, and is not there.
fn was_refused(request: &Request) -> bool {
    request.status == RequestStatus::Completed
        && request.work.candidate.is_some()
        && request.outcome.commit_sha.is_none()
}

fn todo(turn: &mut Turn<'_>, request: &Request) {
    let (Some(sprint_id), Some(_)) = (&request.sprint_id, &request.todo_id) else {
        return;
    };
    if request.params.released {
        return;
    }
    let found = turn.sprint(sprint_id).and_then(|sprint| {
        let mine = |todo: &Todo| todo.progress.request_id.as_ref() == Some(&request.request_id);
        sprint.work.todos.iter().position(mine).map(|at| (at, sprint.work.todos[at].clone()))
    });
    let Some((at, old)) = found else {
        alone(turn, request);
        return;
    };
    let status = status(request);
    // A commit that waits beyond the end of its sprint stays what it was until it is there.
    let at_work = turn.active_sprint().is_some_and(|sprint| {
        sprint.sprint_id == *sprint_id && sprint.status == SprintStatus::Running
    });
    if old.progress.status == status || (!at_work && !status.is_terminal()) {
        // What is over has noted them.
        if at_work && !old.progress.status.is_terminal() {
            let noted = with_paths(turn, request, old.progress.clone());
            if noted != old.progress {
                turn.edit_todo(sprint_id, at, |progress| *progress = noted);
            }
        }
        return;
    }
    let progress = moved(turn, &old.progress, request, status);
    turn.edit_todo(sprint_id, at, |place| *place = progress);
    let shown = turn.sprint(sprint_id).and_then(|sprint| sprint.work.todos.get(at));
    let Some(todo) = shown.cloned() else { return };
    item(turn, sprint_id, &todo, request);
    let kind = if status == TodoStatus::Running {
        SprintEventKind::TodoResumed
    } else {
        SprintEventKind::TodoCompleted
    };
    let payload = json!({
        "todo_id": todo.progress.todo_id.as_str(),
        "status": status,
        "request_id": request.request_id.as_str(),
    });
    turn.sprint_event(sprint_id, kind, &todo.title, payload);
    let before = turn.before().requests.get(&request.request_id);
    let was_paused = before.is_some_and(|it| it.is_paused());
    let is_other_paused = turn.requests().any(|it| {
        it.sprint_id.as_ref() == Some(sprint_id)
            && it.request_id != request.request_id
            && it.is_paused()
    });
    if was_paused
        && !is_other_paused
        && status != TodoStatus::Blocked
        && let Some(sprint) = turn.edit_sprint(sprint_id)
    {
        // What it was paused for goes on, or is over.
        sprint.work.paused_by = None;
    }
    if status != TodoStatus::Running {
        say::todo(turn, sprint_id, at);
    }
}

fn moved(
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
    let summary = match status {
        _ if ended.is_some() => ended.as_deref(),
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
    let progress = moved(turn, &todo.progress, &request, TodoStatus::Uncommitted);
    let todo = Todo { progress: progress.clone(), ..todo.clone() };
    turn.edit_todo(sprint, at, |place| *place = progress);
    item(turn, sprint, &todo, &request);
}

/// Why a todo is over without a change, where a person decided that.
fn how_it_ended(request: &Request) -> Option<String> {
    let outcome = &request.outcome;
    let pieces: Vec<&str> = outcome.split_into.iter().map(ItemId::as_str).collect();
    match &outcome.skipped {
        Some(skipped) => Some(skipped.line()),
        None if pieces.is_empty() => None,
        None => Some(format!("split into {}", pieces.join(", "))),
    }
}

/// How far a todo is, with what its request has changed so far, held beside what its item declares.
fn with_paths(turn: &Turn<'_>, request: &Request, progress: TodoProgress) -> TodoProgress {
    let paths = request.work.candidate.iter().flat_map(|candidate| &candidate.paths);
    let artifacts: Vec<String> = paths.map(|changed| changed.path.clone()).collect();
    let item = request.backlog_id.as_ref().and_then(|id| turn.item(id));
    let item = item.filter(|_| request.work.candidate.is_some());
    let (undeclared_paths, untouched_paths) =
        item.map(|item| guards::beside_declared(item, &artifacts)).unwrap_or_default();
    TodoProgress { undeclared_paths, untouched_paths, artifacts, ..progress }
}

fn item(turn: &mut Turn<'_>, sprint: &SprintId, todo: &Todo, request: &Request) {
    let Some(mut item) = queue::item_of(turn, todo, sprint) else { return };
    if !item.may_be_todo(&todo.progress.todo_id) {
        return;
    }
    item.todo = Some(ItemTodo { sprint_id: sprint.clone(), progress: todo.progress.clone() });
    backlog::set_by_todo(&mut item, Some(request), turn.now);
    // What an earlier request of it came to is over.
    item.origin.remove("todo_id");
    if was_refused(request) {
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
fn refuse(item: &mut Item, request: &Request) {
    sourcing::take_words(item, request);
    item.status = ItemStatus::Blocked;
    item.dropped_reason.clear();
    item.origin.set(GAVE_UP, "yes");
    item.blocked_reason = format!("kept on teams/{} by a person", request.request_id);
    Role::VersionController.as_str().clone_into(&mut item.blocked_by_role);
}

/// A request that outlived its sprint: its item alone follows it.
fn alone(turn: &mut Turn<'_>, request: &Request) {
    let Some(id) = &request.backlog_id else { return };
    // What a restart put aside is done anew by another request.
    let held = turn.active_sprint().is_some_and(|sprint| {
        sprint.work.todos.iter().any(|todo| todo.backlog_id.as_ref() == Some(id))
    });
    if held || !request.status.is_terminal() {
        return;
    }
    let sprint = request.sprint_id.clone();
    let is_its = |todo: &&ItemTodo| todo.progress.request_id.as_ref() == Some(&request.request_id);
    let todo = turn.item(id).and_then(|item| item.todo.as_ref()).filter(is_its).cloned();
    let todo = todo.map(|todo| {
        let progress = moved(turn, &todo.progress, request, status(request));
        ItemTodo { progress, ..todo }
    });
    turn.edit_item(id, |item| {
        item.clear_blockers();
        item.selected_in_sprint_id = None;
        item.todo = None;
        match request.status {
            RequestStatus::Completed if was_refused(request) => refuse(item, request),
            RequestStatus::Committed | RequestStatus::Completed => {
                item.completed_in_sprint_id = sprint;
                item.status = ItemStatus::Done;
                item.todo = todo;
            }
            RequestStatus::Cancelled => {
                item.dropped_reason =
                    how_it_ended(request).unwrap_or_else(|| "withdrawn by a person".to_owned());
                item.status = ItemStatus::Dropped;
            }
            RequestStatus::Failed
            | RequestStatus::Queued
            | RequestStatus::Delegated
            | RequestStatus::Blocked => item.status = ItemStatus::Pending,
        }
    });
}
