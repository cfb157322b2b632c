//! The todos of the active sprint, by their requests, and the items that they need.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::{ItemId, RequestId, TodoId};
use crate::domain::item::{Item, ItemKind, ItemStatus};
use crate::domain::record::{inside, item_path, sprint_path};
use crate::domain::request::Request;
use crate::domain::sprint::{Sprint, Todo, TodoStatus};
use crate::domain::time::Timestamp;
use crate::import::older::notes::Notes;
use crate::import::older::records::Records;

/// Where a todo stands by its request alone (13.A #1).
fn status_of(request: &Request) -> TodoStatus {
    match TodoStatus::of(request) {
        // It has a request, which is handed on at the start.
        TodoStatus::Queued => TodoStatus::Running,
        // Its change lies in the project, where a person can commit it; here there is none to retry.
        TodoStatus::Uncommitted if request.work.candidate.is_none() => TodoStatus::Blocked,
        status @ (TodoStatus::Running
        | TodoStatus::Uncommitted
        | TodoStatus::Committed
        | TodoStatus::Completed
        | TodoStatus::Blocked
        | TodoStatus::Failed
        | TodoStatus::Cancelled) => status,
    }
}

pub(super) const fn waits_or_runs(status: TodoStatus) -> bool {
    matches!(status, TodoStatus::Queued | TodoStatus::Running)
}

/// Brings the todos of the active sprint in line with their requests, and recovers those that were lost.
pub(super) fn follow(sprint: &mut Sprint, older: &Records, notes: &mut Notes) {
    let path = inside(&sprint_path(&sprint.sprint_id));
    unique(sprint, &path, notes);
    recover(sprint, older, &path, notes);
    let known: BTreeSet<TodoId> =
        sprint.work.todos.iter().map(|todo| todo.progress.todo_id.clone()).collect();
    let mut taken: BTreeSet<RequestId> = BTreeSet::new();
    for todo in &mut sprint.work.todos {
        todo.depends_on.retain(|id| known.contains(id) && *id != todo.progress.todo_id);
        if todo.progress.request_id.as_ref().is_some_and(|id| !taken.insert(id.clone())) {
            notes.repaired(
                &path,
                &format!("{} shared its request with another todo", todo.progress.todo_id),
            );
            todo.progress.request_id = None;
        }
        let request = todo.progress.request_id.as_ref().and_then(|id| older.requests.get(id));
        let status = match request {
            Some(request) => status_of(request),
            None if todo.progress.status.is_terminal() => todo.progress.status,
            None => TodoStatus::Queued,
        };
        if status != todo.progress.status {
            let by = todo.progress.request_id.as_ref().map_or("no request", RequestId::as_str);
            let line = format!(
                "{} was {} and is {status} by {by}",
                todo.progress.todo_id, todo.progress.status
            );
            notes.repaired(&path, &line);
            todo.progress.status = status;
        }
        if let Some(request) = request
            && todo.progress.commit_sha.is_empty()
        {
            todo.progress.commit_sha = request.outcome.commit_sha.clone().unwrap_or_default();
        }
        match status {
            TodoStatus::Queued => {
                todo.progress.request_id = None;
                todo.progress.ended_at = None;
            }
            TodoStatus::Running | TodoStatus::Uncommitted => todo.progress.ended_at = None,
            TodoStatus::Committed
            | TodoStatus::Completed
            | TodoStatus::Blocked
            | TodoStatus::Failed
            | TodoStatus::Cancelled => todo.progress.dependency_gate_bypass.clear(),
        }
    }
    one_each(sprint, older, &path, notes);
}

/// No two todos with one id.
fn unique(sprint: &mut Sprint, path: &str, notes: &mut Notes) {
    let mut seen = BTreeSet::new();
    sprint.work.todos.retain(|todo| {
        let first = seen.insert(todo.progress.todo_id.clone());
        if !first {
            notes.repaired(path, &format!("{} was there twice", todo.progress.todo_id));
        }
        first
    });
}

/// Requests of the sprint that no todo has: the todo takes its own, and one that is gone comes back (4.5).
fn recover(sprint: &mut Sprint, older: &Records, path: &str, notes: &mut Notes) {
    let retired: BTreeSet<RequestId> = sprint
        .work
        .todos
        .iter()
        .filter_map(|todo| todo.progress.retry_of_request_id.clone())
        .collect();
    let mut mine: Vec<&Request> = (older.requests.values())
        .filter(|it| it.sprint_id.as_ref() == Some(&sprint.sprint_id))
        .filter(|it| it.backlog_id.is_some() || it.todo_id.is_some())
        .filter(|it| it.params.kind.as_deref() == Some("sprint_internal"))
        .filter(|it| !retired.contains(&it.request_id) && it.duty().is_none())
        .collect();
    mine.sort_by_key(|it| (it.updated_at, it.request_id.clone()));
    for request in mine {
        let id = &request.request_id;
        if sprint.work.todos.iter().any(|todo| todo.progress.request_id.as_ref() == Some(id)) {
            continue;
        }
        let same = |todo: &&mut Todo| {
            (request.todo_id.is_some() && Some(&todo.progress.todo_id) == request.todo_id.as_ref())
                || (request.backlog_id.is_some() && todo.backlog_id == request.backlog_id)
        };
        if let Some(todo) = sprint.work.todos.iter_mut().find(same) {
            let known = todo.progress.request_id.as_ref().and_then(|id| older.requests.get(id));
            let newer = known.is_none_or(|old| old.updated_at <= request.updated_at);
            if newer && !(todo.progress.status.is_success() && known.is_none()) {
                notes.repaired(path, &format!("{} is done by {id}", todo.progress.todo_id));
                todo.progress.request_id = Some(id.clone());
            }
            continue;
        }
        let Ok(fresh) = TodoId::parse(&format!("recovered-{id}")) else { continue };
        let todo_id = request.todo_id.clone().unwrap_or(fresh);
        notes.repaired(path, &format!("{todo_id} was missing and comes back from {id}"));
        let mut todo = Todo::new(todo_id, title(request), request.created_at);
        todo.backlog_id.clone_from(&request.backlog_id);
        todo.milestone_title.clone_from(&sprint.milestone_title);
        todo.progress.request_id = Some(id.clone());
        todo.progress.started_at = Some(request.created_at);
        sprint.work.todos.push(todo);
    }
}

fn title(request: &Request) -> &str {
    let texts = [&request.scope, &request.body];
    let line = texts.into_iter().find_map(|text| text.lines().find(|line| !line.trim().is_empty()));
    line.map_or(request.request_id.as_str(), str::trim)
}

/// An item is worked on by one todo, and a todo that waits or runs has an item that may become work.
fn one_each(sprint: &mut Sprint, older: &Records, path: &str, notes: &mut Notes) {
    let mut order: Vec<usize> = (0..sprint.work.todos.len()).collect();
    order.sort_by_key(|at| sprint.work.todos[*at].progress.status != TodoStatus::Running);
    // What was delivered is not done again.
    let mut held: BTreeSet<ItemId> = (sprint.work.todos.iter())
        .filter(|todo| todo.progress.status.is_success())
        .filter_map(|todo| todo.backlog_id.clone())
        .collect();
    for at in order {
        let todo = &mut sprint.work.todos[at];
        let Some(id) = todo.backlog_id.clone().filter(|_| waits_or_runs(todo.progress.status))
        else {
            continue;
        };
        match older.items.get(&id) {
            Some(item)
                if todo.progress.status == TodoStatus::Queued
                    && matches!(item.status, ItemStatus::Dropped | ItemStatus::CarriedOver) =>
            {
                let word = item.status.as_str();
                notes.repaired(
                    path,
                    &format!("{} is withdrawn: {id} is {word}", todo.progress.todo_id),
                );
                todo.progress.status = TodoStatus::Cancelled;
            }
            Some(item)
                if todo.progress.status == TodoStatus::Queued
                    && item.status == ItemStatus::Done
                    && held.insert(id.clone()) =>
            {
                notes.repaired(
                    path,
                    &format!("{} is completed: {id} is done", todo.progress.todo_id),
                );
                todo.progress.status = TodoStatus::Completed;
            }
            Some(_) | None if !held.insert(id.clone()) => {
                notes.repaired(
                    path,
                    &format!("{} is withdrawn: another todo has {id}", todo.progress.todo_id),
                );
                todo.progress.status = TodoStatus::Cancelled;
            }
            // What is gone comes back.
            Some(_) | None => {}
        }
    }
}

/// The items of todos that are not over whose records are gone: as the sprint holds them, or as far as the todos still
/// tell (9.7).
pub(super) fn items_again(
    sprint: &Sprint,
    older: &Records,
    notes: &mut Notes,
) -> BTreeMap<ItemId, Item> {
    let mut again = BTreeMap::new();
    let epoch = sprint.started_at.unwrap_or(Timestamp::from_millis(0));
    for todo in &sprint.work.todos {
        let Some(id) = todo.backlog_id.clone() else { continue };
        let lives = matches!(
            todo.progress.status,
            TodoStatus::Queued
                | TodoStatus::Running
                | TodoStatus::Blocked
                | TodoStatus::Uncommitted
        );
        if !lives || older.items.contains_key(&id) || again.contains_key(&id) {
            continue;
        }
        let path = inside(&item_path(&id));
        notes
            .repaired(&path, &format!("it was gone and comes back from {}", todo.progress.todo_id));
        let mut item = older.copies.get(&id).cloned().unwrap_or_else(|| {
            let among = (&sprint.sprint_id, &*sprint.work.todos);
            todo.item_again(id.clone(), ItemKind::default(), among, epoch)
        });
        // Where it stands follows from the todo.
        item.status = ItemStatus::Selected;
        again.insert(id, item);
    }
    // Selected in a planning that had made no todos of them yet.
    for id in &sprint.work.selected_backlog_ids {
        if older.items.contains_key(id) || again.contains_key(id) {
            continue;
        }
        if let Some(item) = older.copies.get(id) {
            notes.repaired(&inside(&item_path(id)), "it was gone and comes back from its sprint");
            again.insert(id.clone(), item.clone());
        }
    }
    again
}
