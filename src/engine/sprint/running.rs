//! A sprint at work (`spec/teams.md` 9.5 and 9.7).

use serde_json::{Value, json};

use super::backlog::MergeResult;
use super::duties::{self, DutyRequest};
use super::todos::{self, TodoRecords};
use super::{closing, initial, position, queue, say};
use crate::domain::block::BlockCode;
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::item::ItemSource;
use crate::domain::lifecycle::{Step, StepOutcome};
use crate::domain::policy::Policy;
use crate::domain::request::{
    EventKind, Params, ReplyRoute, Request, RequestConversation, RequestStatus,
};
use crate::domain::role::Role;
use crate::domain::sprint::{DutyDetails, Sprint, SprintEventKind, Todo, TodoStatus};
use crate::engine::turn::Turn;
use crate::engine::{budget, handoff, retry};

/// Times that the sprint itself tries a commit again that could not be brought to the branch.
const COMMIT_RETRIES: u32 = 1;

/// Does what is next.
pub(super) fn advance(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(sprint) = turn.sprint(id) else { return };
    if sprint.closing.wrap_up.is_some() || sprint.work.paused_by.is_some() {
        return;
    }
    // A sprint of an older workspace may have none.
    if !initial::has_baseline(turn, id) {
        return;
    }
    if let Some(request) = turn.sprint(id).and_then(|sprint| sprint.work.tries_again.clone()) {
        if let Some(sprint) = turn.edit_sprint(id) {
            sprint.work.tries_again = None;
        }
        if turn.request(&request).is_some_and(|it| it.status == RequestStatus::Blocked) {
            turn.record(&request, EventKind::Retried, "runtime", "the sprint goes on", Value::Null);
            // Others begin when its todo is under way.
            return retry::try_again(turn, &request);
        }
    }
    let Some(sprint) = turn.sprint(id) else { return };
    // A look at what ended costs money as well.
    if !budget::is_declined(turn, Role::Planner) && review_is_due(turn, sprint) {
        // Nothing is charged for it, so that there is a way.
        return position::follow(turn, id, StepOutcome::Review).unwrap_or_default();
    }
    if !begin_todos(turn, id) && !try_commits_again(turn, id) {
        say::waiting(turn, id);
        closing::begin(turn, id);
    }
}

/// Begins the todos that can begin: delivered is what they depend on, a slot is free, and nothing that is under way has
/// declared the same paths; none where the sprint is to end, or where nobody grants more of a budget of the day. Before that
/// the todos follow what their items have come to depend on. Says whether any todo is under way then, or begins with the
/// next day.
pub(super) fn begin_todos(turn: &mut Turn<'_>, id: &SprintId) -> bool {
    let ahead = |turn: &Turn<'_>| {
        turn.sprint(id).map(|sprint| queue::ahead(turn, sprint)).unwrap_or_default()
    };
    let may_begin = |sprint: &Sprint| slots(turn.policy, sprint) > 0;
    if turn.sprint(id).is_some_and(may_begin) && !ahead(turn).is_empty() {
        queue::sync(turn, id);
    }
    let ahead = ahead(turn);
    let Some(sprint) = turn.sprint(id) else { return false };
    let records = |todo: &Todo| {
        let item = todo.backlog_id.as_ref().and_then(|id| turn.item(id));
        let request = todo.progress.request_id.as_ref().and_then(|id| turn.request(id));
        // One that is opened just now counts from the next decision on.
        let gate = request.and_then(|it| turn.before().gates.get(it.work.gate_id.as_ref()?));
        TodoRecords::of(item, request, gate.map(|it| &**it))
    };
    let mut begin = todos::next(&sprint.work.todos, slots(turn.policy, sprint), records);
    begin.retain(|at| !ahead.contains(&sprint.work.todos[*at].progress.todo_id));
    let declined = budget::declined(turn).filter(|_| !begin.is_empty());
    match declined {
        Some(declined) => say::next_day(turn, id, &declined),
        None => begin.into_iter().for_each(|at| start(turn, id, at)),
    }
    let is_running = |todo: &Todo| todo.progress.status == TodoStatus::Running;
    let is_at_work = |sprint: &Sprint| sprint.work.todos.iter().any(is_running);
    declined.is_some() || turn.sprint(id).is_some_and(is_at_work)
}

/// How many todos may be under way at once; none where the sprint is to end, or is paused.
#[must_use]
pub fn slots(policy: &Policy, sprint: &Sprint) -> usize {
    match sprint.closing.wrap_up {
        Some(_) => 0,
        None if sprint.work.paused_by.is_some() => 0,
        None => usize::try_from(policy.sprint.wip_limit).unwrap_or(1).max(1),
    }
}

/// Whether a todo of the sprint is at work, so that there is something new to look at: one that waits for a person is
/// not.
pub(super) fn is_at_work<'r>(
    sprint: &Sprint,
    request: impl Fn(&RequestId) -> Option<&'r Request>,
) -> bool {
    let mut its =
        sprint.work.todos.iter().filter_map(|todo| request(todo.progress.request_id.as_ref()?));
    its.any(|it| {
        matches!(it.status, RequestStatus::Queued | RequestStatus::Delegated)
            && it.work.gate_id.is_none()
    })
}

/// Whether the planner has to look: after every todo, and once an interval while one is at work.
fn review_is_due(turn: &Turn<'_>, sprint: &Sprint) -> bool {
    let Some(last) = sprint.planning.last_review_at else { return true };
    let ended =
        sprint.work.todos.iter().any(|todo| todo.progress.ended_at.is_some_and(|at| at > last));
    let is_over = turn.now >= last.plus_seconds(turn.policy.sprint.interval_seconds());
    ended || is_over && is_at_work(sprint, |id| turn.request(id))
}

pub(super) fn review(turn: &mut Turn<'_>, id: &SprintId, step: &Step) {
    let now = turn.now;
    let Some(sprint) = turn.edit_sprint(id) else { return };
    sprint.planning.last_review_at = Some(now);
    let scope = format!("review: {}", sprint.milestone_title);
    duties::ask(
        turn,
        DutyRequest { duty: DutyDetails::OngoingReview, step, sprint: Some(id), scope },
    );
}

/// The planner has looked; what it changed in the backlog counts, and nothing waits for it if it failed.
pub(super) fn reviewed(turn: &mut Turn<'_>, request: &Request) {
    let Some(id) = duties::awaited_by(turn, request) else { return };
    position::done(turn, &id);
    let Ok(result) = duties::outcome(request).cloned() else {
        turn.sprint_event(
            &id,
            SprintEventKind::PlanningSyncWarning,
            "the review failed",
            Value::Null,
        );
        // What others planned meanwhile is begun without it.
        queue::sync(turn, &id);
        return;
    };
    let items = result.proposals.backlog_items.as_deref().unwrap_or_default();
    let (planner, its) = (ItemSource::Planner, Some(&request.request_id));
    let (merged, mut problems) = queue::merge_what_fits(turn, items, planner, its, Some(&id));
    if merged != MergeResult::default() {
        initial::kept(turn, &id, request, &merged);
        say::review(turn, &id, &result.summary, &merged);
    }
    say::not_taken(turn, Some(&id), &problems);
    problems.extend(queue::sync(turn, &id));
    initial::note(turn, &id, "", "ongoing_review", request, problems.is_empty());
    if !problems.is_empty() {
        turn.sprint_event(
            &id,
            SprintEventKind::PlanningSyncInvalid,
            &problems.join("; "),
            Value::Null,
        );
    }
}

/// Begins a todo: its own request, with the workflow at the planner, and a room of its own.
fn start(turn: &mut Turn<'_>, id: &SprintId, at: usize) {
    let Some(sprint) = turn.sprint(id).cloned() else { return };
    let todo = &sprint.work.todos[at];
    let request_id = turn.ids.request(&turn.today());
    let now = turn.now;
    let item = todo.backlog_id.as_ref().and_then(|id| turn.item(id)).cloned();
    let workflow = turn.begin_todo();
    let (role, step) = (workflow.phase_owner, workflow.step);
    let mut artifacts = sprint.kickoff.artifacts.clone();
    artifacts.extend(item.iter().flat_map(|item| item.artifacts.clone()));
    let request = Request {
        request_id: request_id.clone(),
        scope: todo.title.clone(),
        body: words(todo, item.as_ref()),
        artifacts,
        params: Params {
            kind: Some("sprint_internal".to_owned()),
            workflow: Some(workflow),
            retry_of_request_id: todo.progress.retry_of_request_id.clone(),
            other_askers: sprint.planning.other_askers.clone(),
            ..Params::default()
        },
        sprint_id: Some(id.clone()),
        backlog_id: todo.backlog_id.clone(),
        todo_id: Some(todo.progress.todo_id.clone()),
        created_at: now,
        updated_at: now,
        conversation: RequestConversation {
            // Whoever asked for the sprint may answer in the todo's room.
            reply_route: ReplyRoute {
                author_id: sprint.kickoff.reply_route.author_id,
                author_name: sprint.kickoff.reply_route.author_name.clone(),
                guild_id: sprint.kickoff.reply_route.guild_id,
                ..ReplyRoute::default()
            },
            language: sprint.language,
            ..RequestConversation::default()
        },
        ..Request::default()
    };
    turn.create(request);
    turn.record(&request_id, EventKind::Created, "runtime", &todo.title, Value::Null);
    turn.edit_todo(id, at, |progress| {
        progress.status = TodoStatus::Running;
        progress.request_id = Some(request_id.clone());
        progress.started_at = Some(now);
        progress.ended_at = None;
    });
    let payload = json!({
        "todo_id": todo.progress.todo_id.as_str(),
        "request_id": request_id.as_str(),
    });
    turn.sprint_event(id, SprintEventKind::TodoStarted, &todo.title, payload);
    say::todo_started(turn, id, at);
    handoff::delegate(turn, &request_id, role, Some(step), "", None);
}

/// What the todo's request says.
fn words(todo: &Todo, item: Option<&crate::domain::item::Item>) -> String {
    let mut text = todo.title.clone();
    if let Some(item) = item {
        for part in [&item.summary, &item.scope] {
            if !part.trim().is_empty() && !text.contains(part.trim()) {
                text.push_str("\n\n");
                text.push_str(part.trim());
            }
        }
        for answer in &item.answers {
            text.push_str("\n\n");
            text.push_str(answer);
        }
    }
    if !todo.acceptance_criteria.is_empty() {
        text.push('\n');
    }
    for criterion in &todo.acceptance_criteria {
        text.push_str("\n- ");
        text.push_str(&criterion.to_string());
    }
    text
}

/// Nothing else is left: what could not be brought to the branch is tried once more. Whether something is.
fn try_commits_again(turn: &mut Turn<'_>, id: &SprintId) -> bool {
    let Some(sprint) = turn.sprint(id) else { return false };
    let again: Vec<(usize, Option<RequestId>)> = (sprint.work.todos.iter().enumerate())
        .filter(|(_, todo)| {
            // Where two versions do not go together, or somebody has asked to end it, trying is over.
            let request = todo.progress.request_id.as_ref().and_then(|id| turn.request(id));
            let blocked = request.and_then(|request| request.blocked.as_ref());
            let has_given_up = request.is_some_and(Request::has_given_up);
            todo.progress.status == TodoStatus::Uncommitted
                && !has_given_up
                && todo.progress.commit_retries < COMMIT_RETRIES
                && blocked.is_none_or(|it| {
                    !it.code.is_about_a_conflict() && it.code != BlockCode::EndQuestion
                })
        })
        .map(|(at, todo)| (at, todo.progress.request_id.clone()))
        .collect();
    for (at, request) in &again {
        turn.edit_todo(id, *at, |progress| progress.commit_retries += 1);
        let Some(request) = request else { continue };
        if turn.request(request).is_some() {
            turn.record(
                request,
                EventKind::Retried,
                "runtime",
                "the commit once more",
                Value::Null,
            );
            retry::try_again(turn, request);
        }
    }
    !again.is_empty()
}
