//! What always holds between backlog, todos, requests and the sprint.

use crate::domain::item::ItemStatus;
use crate::domain::sprint::{SprintStatus, Todo, TodoStatus};
use crate::domain::state::State;

/// Whether backlog, todos and sprint agree (`issue`: every outcome leaves them consistent):
///
/// 1. the slot is held by a sprint that is not over, or by none;
/// 2. an item is selected exactly where a todo of that sprint that can still be worked on holds it, and no
///    two such todos hold the same item;
/// 3. a todo that runs has a request that is under way, and one that does not has none;
/// 4. a delivered todo's item is not active any more;
/// 5. no sprint that is over has a todo that waits or runs;
/// 6. a todo of an open sprint that is not over is what its item's record says.
///
/// # Errors
/// The first thing that is not so, in words.
pub fn consistent(state: &State) -> Result<(), String> {
    let active = state.scheduler.active_sprint_id.as_ref();
    if let Some(id) = active {
        let sprint =
            state.sprints.get(id).ok_or(format!("{id} holds the slot and is not there"))?;
        if sprint.status.is_terminal() {
            return Err(format!("{id} holds the slot and is {}", sprint.status));
        }
    }
    for sprint in state.sprints.values() {
        let id = &sprint.sprint_id;
        if !sprint.status.is_terminal() && active != Some(id) {
            return Err(format!("{id} is {} and does not hold the slot", sprint.status));
        }
        for todo in &sprint.work.todos {
            let name = format!("{} ({})", todo.progress.todo_id, todo.progress.status);
            let request = todo.progress.request_id.as_ref().and_then(|id| state.requests.get(id));
            let item = todo.backlog_id.as_ref().and_then(|id| state.backlog.get(id));
            let open = request.is_some_and(|request| !request.status.is_terminal());
            match todo.progress.status {
                TodoStatus::Queued if todo.progress.request_id.is_some() => {
                    return Err(format!("{name} has a request"));
                }
                TodoStatus::Running if !open => {
                    return Err(format!("{name} has no request under way"));
                }
                TodoStatus::Committed
                | TodoStatus::Completed
                | TodoStatus::Failed
                | TodoStatus::Cancelled
                    if open =>
                {
                    return Err(format!("{name} has a request under way"));
                }
                TodoStatus::Committed | TodoStatus::Completed
                    if item.is_some_and(|item| {
                        item.selected_in_sprint_id.as_ref() == Some(id)
                            && item.status == ItemStatus::Selected
                    }) =>
                {
                    return Err(format!("{name} is delivered and its item is selected"));
                }
                TodoStatus::Queued | TodoStatus::Running => {
                    if sprint.status.is_terminal() || sprint.status == SprintStatus::Closeout {
                        return Err(format!(
                            "{name} is left in a sprint that is {}",
                            sprint.status
                        ));
                    }
                    if todo.backlog_id.is_some()
                        && item.is_none_or(|item| item.status != ItemStatus::Selected)
                    {
                        return Err(format!("{name} works on an item that is not selected"));
                    }
                }
                TodoStatus::Uncommitted
                | TodoStatus::Committed
                | TodoStatus::Completed
                | TodoStatus::Blocked
                | TodoStatus::Failed
                | TodoStatus::Cancelled => {}
            }
        }
    }
    if let Some(sprint) = state.active_sprint() {
        let todos = &sprint.work.todos;
        for todo in todos.iter().filter(|todo| !todo.progress.status.is_terminal()) {
            let item = todo.backlog_id.as_ref().and_then(|id| state.backlog.get(id));
            let shown = item.and_then(|item| Some((item, item.todo.as_ref()?)));
            if todo.backlog_id.is_some()
                && shown.is_none_or(|(item, it)| Todo::of(item, &it.progress, todos) != *todo)
            {
                return Err(format!("{} is not what its item says", todo.progress.todo_id));
            }
        }
    }
    for item in state.backlog.values() {
        let holders = state.active_sprint().map_or(0, |sprint| {
            let holds = |todo: &&Todo| {
                todo.backlog_id.as_ref() == Some(&item.backlog_id)
                    && matches!(todo.progress.status, TodoStatus::Queued | TodoStatus::Running)
            };
            sprint.work.todos.iter().filter(holds).count()
        });
        let selected = item.status == ItemStatus::Selected;
        if holders > 1 || (selected && holders == 0) {
            return Err(format!(
                "{} is {} and held by {holders}",
                item.backlog_id,
                item.status.as_str()
            ));
        }
    }
    Ok(())
}
