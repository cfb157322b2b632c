//! Items, and with them the todos that they are, follow their requests (`spec/teams.md` 9.7; 13.A #1: from the request's
//! own status alone).

use serde_json::json;

use super::advance::advance;
use super::queue::block_dependents_of_dropped;
use super::todo_progress::{how_it_ended, item, moved, refuse, status, with_paths};
use super::{closing, initial, plan_review, running, say, sourcing, start};
use crate::domain::item::{ItemStatus, ItemTodo};
use crate::domain::request::{Request, RequestStatus};
use crate::domain::sprint::{Duty, SprintEventKind, SprintStatus, Todo, TodoStatus, WrapUp};
use crate::engine::ending;
use crate::engine::turn::Turn;

/// Closes a decision: what the changed requests mean for sprints, and then what is next.
pub(in crate::engine) fn follow(turn: &mut Turn<'_>) {
    requests(turn);
    block_dependents_of_dropped(turn);
    // Whatever lifts that may be what a sprint waits for.
    let before = turn.before();
    let is_declined = before.spending.declined().next().is_some();
    if turn.planning.is_touched() || is_declined || turn.scheduler().active_sprint_id.is_some() {
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
        let outlives = sprint.closing.wrap_up == Some(WrapUp::Now)
            && old.progress.status == TodoStatus::Uncommitted;
        sprint.sprint_id == *sprint_id && sprint.status == SprintStatus::Running && !outlives
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
        start::renew_cutoff(turn, sprint_id);
    }
    if status != TodoStatus::Running {
        say::todo(turn, sprint_id, at);
    }
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
            RequestStatus::Completed if request.was_refused() => refuse(item, request),
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
