//! What a todo builds on: what those that it depends on have delivered, and what came of earlier attempts at it. Read
//! from the records of their requests, as they ended.

use serde_json::Value;

use super::team::Team;
use crate::agents::EarlierWork;
use crate::domain::ids::{ItemId, RequestId};
use crate::domain::item::Item;
use crate::domain::record::{item_path, sprint_path};
use crate::domain::request::{EventKind, Request, RequestEvent, RequestStatus};
use crate::domain::result::Proposals;
use crate::domain::role::Role;
use crate::domain::sprint::{Sprint, Todo};
use crate::store;

/// Files of a change that are named.
const FILES: usize = 30;
/// Characters of a report.
const REPORT: usize = 1_500;
/// Characters of any other line.
const LINE: usize = 600;
/// Todos that it depends on.
const DEPENDENCIES: usize = 8;
/// Earlier attempts that are told, the last first.
const ATTEMPTS: usize = 2;

/// The work that a todo's request builds on; nothing for any other request.
pub(super) fn of(team: &Team, request: &Request) -> Vec<EarlierWork> {
    let Some(own) = &request.todo_id else { return Vec::new() };
    let (todos, items): (Vec<Todo>, Vec<ItemId>) = team.hub.read(|state| {
        let sprint = request.sprint_id.as_ref().and_then(|id| state.sprints.get(id));
        let item = request.backlog_id.as_ref().and_then(|id| state.backlog.get(id));
        let todos = sprint.map(|sprint| sprint.work.todos.clone()).unwrap_or_default();
        (todos, item.map(|item| item.depends_on.clone()).unwrap_or_default())
    });
    let on = todos
        .iter()
        .find(|todo| todo.progress.todo_id == *own)
        .map(|todo| todo.depends_on.as_slice());
    let on = on.unwrap_or_default().iter();
    let before = on.filter_map(|id| todos.iter().find(|todo| todo.progress.todo_id == *id));
    let delivered = before.filter_map(|todo| {
        let (old, events) = read(team, todo.progress.request_id.as_ref()?)?;
        Some(EarlierWork { title: todo.title.clone(), ..work(&old, &events) })
    });
    let is_here = |id: &&ItemId| todos.iter().any(|todo| todo.backlog_id.as_ref() == Some(id));
    let earlier = items.iter().filter(|id| !is_here(id)).filter_map(|id| {
        let todo = delivered_before(team, id)?;
        let (old, events) = read(team, todo.progress.request_id.as_ref()?)?;
        Some(EarlierWork { title: todo.title, ..work(&old, &events) })
    });
    let mut all: Vec<EarlierWork> = earlier.chain(delivered).take(DEPENDENCIES).collect();
    let mut next = request.params.retry_of_request_id.clone();
    for _ in 0..ATTEMPTS {
        let Some((old, events)) = next.take().and_then(|id| read(team, &id)) else { break };
        if old.outcome.skipped.is_some() {
            // Nobody was to go on with that.
            break;
        }
        all.push(EarlierWork { is_attempt: true, ..work(&old, &events) });
        next = old.params.retry_of_request_id.clone();
    }
    all
}

/// The todo of another sprint that delivered an item.
fn delivered_before(team: &Team, id: &ItemId) -> Option<Todo> {
    let found = store::read_settled::<Item>(team.root(), &item_path(id)).and_then(|item| {
        let sprint = item.and_then(|item| item.completed_in_sprint_id);
        sprint.map_or(Ok(None), |id| store::read_settled::<Sprint>(team.root(), &sprint_path(&id)))
    });
    let delivers =
        |todo: &Todo| todo.backlog_id.as_ref() == Some(id) && todo.progress.status.is_success();
    match found {
        Ok(sprint) => sprint?.work.todos.into_iter().rev().find(delivers),
        Err(error) => {
            tracing::warn!(item = %id, %error, "what a todo builds on cannot be read");
            None
        }
    }
}

/// A request and its history. What is gone by now is nothing to build on.
fn read(team: &Team, id: &RequestId) -> Option<(Request, Vec<RequestEvent>)> {
    let request = store::read_request(team.root(), id);
    let found = request.and_then(|it| Ok((it, store::read_settled_events(team.root(), id)?)));
    match found {
        Ok((request, events)) => Some((request?, events)),
        Err(error) => {
            tracing::warn!(request = %id, %error, "what a todo builds on cannot be read");
            None
        }
    }
}

fn work(old: &Request, events: &[RequestEvent]) -> EarlierWork {
    let results = || events.iter().rev().filter_map(RequestEvent::result);
    let built = results()
        .find(|it| matches!(it.role, Role::Developer | Role::ConflictResolver))
        .map(|it| it.proposals.implementation_report.unwrap_or(it.summary))
        .or_else(|| old.work.result.as_ref().map(|it| it.summary.clone()));
    let judged = results().find(|it| it.role == Role::Qa).map(|it| it.proposals);
    let is_done = matches!(old.status, RequestStatus::Committed | RequestStatus::Completed);
    let mut ends = events.iter().rev().filter(|event| event.kind == EventKind::Blocked);
    let stopped_by = ends.next().filter(|_| !is_done).map(|event| {
        let detail = event.payload.get("detail").and_then(Value::as_str).unwrap_or_default();
        cut(format!("{} {detail}", event.summary).trim_end(), LINE)
    });
    let files = old.work.candidate.iter().flat_map(|candidate| &candidate.paths);
    EarlierWork {
        title: old.scope.lines().next().unwrap_or_default().to_owned(),
        status: old.status.as_str().to_owned(),
        commit: old.outcome.commit_sha.clone().unwrap_or_default(),
        files: files.take(FILES).map(|changed| changed.path.clone()).collect(),
        report: cut(&built.unwrap_or_default(), REPORT),
        to_know: judged.map(|judged| to_know(&judged)).unwrap_or_default(),
        stopped_by: stopped_by.unwrap_or_default(),
        is_attempt: false,
    }
}

/// What QA saw that whoever goes on has to know.
fn to_know(judged: &Proposals) -> Vec<String> {
    let verdict = judged.qa_validation.iter();
    let lines = verdict.flat_map(|it| it.findings.iter().chain(&it.residual_risks));
    lines.take(10).map(|line| cut(line, LINE)).collect()
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
