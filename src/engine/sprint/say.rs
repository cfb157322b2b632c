//! What is said about sprints, and where (`spec/teams.md` 12): reports go to the startup channel, the
//! outcome to the report channel, and the question for a milestone to the relay channel.

use serde_json::{Value, json};

use super::backlog::{self, MergeResult};
use super::todos;
use crate::domain::effect::EffectKind;
use crate::domain::ids::{SprintId, TodoId};
use crate::domain::item::ItemStatus;
use crate::domain::outgoing::{Act, NamedChannel, Post, Priority, Target, Voice};
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::sprint::{ExecutionMode, PlanningStep, PrepassStatus, Todo, TodoStatus, WrapUp};
use crate::engine::budget::{self, DeclinedBudget};
use crate::engine::lifecycle::is_planner_document;
use crate::engine::say;
use crate::engine::turn::Turn;

/// A report about a sprint, or about the team where there is none.
pub(super) fn report(
    turn: &mut Turn<'_>,
    id: Option<&SprintId>,
    key: &str,
    values: Value,
    files: Vec<String>,
) {
    post(turn, id, NamedChannel::Startup, Voice::Team, Priority::Progress, key, values, files);
}

#[expect(clippy::too_many_arguments, reason = "one message has that many sides")]
fn post(
    turn: &mut Turn<'_>,
    id: Option<&SprintId>,
    channel: NamedChannel,
    voice: Voice,
    priority: Priority,
    key: &str,
    values: Value,
    files: Vec<String>,
) {
    let language = id.and_then(|id| turn.sprint(id)).map_or(turn.policy.language, |it| it.language);
    let act = Act::Post(Post { files, ..Post::new(say::content(key, language, values)) });
    let outgoing = say::outgoing(turn, Target::Named(channel), voice, priority, act);
    turn.send(outgoing);
}

/// It begins.
pub(super) fn started(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(sprint) = turn.sprint(id) else { return };
    if sprint.execution_mode == ExecutionMode::Auto {
        kickoff(turn, id);
        return;
    }
    let values = json!({
        "sprint_id": id.as_str(),
        "milestone": sprint.milestone_title,
        "trigger": sprint.trigger,
        "brief": say::cut(sprint.kickoff.public_brief(), 600),
        "requirements": sprint.kickoff.requirements,
        "project": turn.policy.project,
        "research": turn.policy.sprint.research,
    });
    report(turn, Some(id), "sprint.started", values, Vec::new());
}

/// One begins by itself: with what waited in the backlog.
fn kickoff(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(sprint) = turn.sprint(id) else { return };
    let all = turn.items();
    let mut items: Vec<_> =
        all.values().filter(|item| item.planned_in_sprint_id.as_ref() == Some(id)).collect();
    items.sort_by_key(|item| backlog::priority_key(item));
    let lines: Vec<Value> = items
        .iter()
        .take(20)
        .map(|item| {
            json!({
                "title": say::cut(&item.title, 120),
                "rank": item.priority_rank,
                "kind": item.kind,
            })
        })
        .collect();
    let values = json!({
        "sprint_id": id.as_str(),
        "milestone": sprint.milestone_title,
        "trigger": sprint.trigger,
        "items": lines,
    });
    report(turn, Some(id), "sprint.kickoff", values, Vec::new());
}

/// The planner changed the plan of the running sprint.
pub(super) fn review(turn: &mut Turn<'_>, id: &SprintId, summary: &str, merged: &MergeResult) {
    let values = json!({
        "sprint_id": id.as_str(),
        "summary": say::whole(summary),
        "changes": merged.added + merged.updated,
        "left_out": merged.left_out,
    });
    report(turn, Some(id), "sprint.review", values, Vec::new());
}

/// Proposals of a review that are wrong, each with why.
pub(super) fn not_taken(turn: &mut Turn<'_>, id: Option<&SprintId>, reasons: &[String]) {
    if !reasons.is_empty() {
        let reasons: Vec<String> = reasons.iter().map(|it| say::cut(it, 300)).collect();
        report(turn, id, "backlog.not_taken", json!({ "reasons": reasons }), Vec::new());
    }
}

/// Todos that cannot begin because of others that were not delivered.
pub(super) fn waiting(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(sprint) = turn.sprint(id) else { return };
    let title = |id: &TodoId| sprint.todo(id).map_or_else(|| id.to_string(), |it| it.title.clone());
    let stuck: Vec<Value> = sprint
        .work
        .todos
        .iter()
        .filter(|todo| todo.progress.status == TodoStatus::Queued)
        .map(|todo| (todo, todos::waiting_on(todo, &sprint.work.todos)))
        .filter(|(_, on)| !on.is_empty())
        .map(|(todo, on)| {
            let on: Vec<String> = on.iter().map(title).collect();
            json!({ "title": say::cut(&todo.title, 120), "waits_on": on })
        })
        .collect();
    if !stuck.is_empty() {
        let values = json!({ "sprint_id": id.as_str(), "todos": stuck });
        report(turn, Some(id), "sprint.waiting", values, Vec::new());
    }
}

/// Nobody grants more of a budget of the day, and a todo waits for the next one: told once.
pub(super) fn next_day(turn: &mut Turn<'_>, id: &SprintId, declined: &DeclinedBudget) {
    let Some(sprint) = turn.sprint(id).filter(|_| !declined.is_told()) else { return };
    let mut values = declined.values(sprint);
    values["sprint_id"] = json!(id.as_str());
    error(turn, id, "sprint.next_day", values);
    budget::told_of_declined(turn);
}

/// A planning step is over.
pub(super) fn step(
    turn: &mut Turn<'_>,
    id: &SprintId,
    step: PlanningStep,
    number: usize,
    request: &Request,
    problems: &[String],
) {
    let summary = request.work.result.as_ref().map(|result| say::whole(&result.summary));
    let values = json!({
        "sprint_id": id.as_str(),
        "step": step,
        "number": number,
        "ok": problems.is_empty(),
        "summary": summary.unwrap_or_default(),
        "problems": problems.iter().map(|it| say::cut(it, 300)).take(4).collect::<Vec<_>>(),
    });
    let voice = Voice::Role(Role::Planner);
    post(
        turn,
        Some(id),
        NamedChannel::Report,
        voice,
        Priority::Progress,
        "sprint.step",
        values,
        Vec::new(),
    );
}

/// The plan stands.
pub(super) fn plan(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(sprint) = turn.sprint(id) else { return };
    let title =
        |id: &TodoId| sprint.todo(id).map_or_else(|| id.to_string(), |todo| todo.title.clone());
    let todos: Vec<Value> = todos::order(&sprint.work.todos)
        .into_iter()
        .map(|at| &sprint.work.todos[at])
        .map(|todo| {
            json!({
                "rank": todo.priority_rank,
                "title": say::cut(&todo.title, 120),
                "depends_on": todo.depends_on.iter().map(title).collect::<Vec<_>>(),
            })
        })
        .collect();
    let note = sprint.planning.research.as_ref().map_or("", |it| match it.status {
        PrepassStatus::Completed if it.is_source_backed() => "sources",
        PrepassStatus::Completed => "local",
        PrepassStatus::Blocked | PrepassStatus::Failed => "failed",
        PrepassStatus::NotConfigured => "not_configured",
    });
    let written = sprint.work.reference_artifacts.iter().filter(|path| is_planner_document(path));
    let documents = written.take(10).cloned().collect();
    let summary = sprint.planning.iterations.last().map(|it| say::whole(&it.summary));
    let values = json!({
        "sprint_id": id.as_str(),
        "milestone": sprint.milestone_title,
        "requested_milestone": sprint.kickoff.milestone,
        "summary": summary.unwrap_or_default(),
        "research_note": note,
        "todos": todos,
        "documents": sprint.work.reference_artifacts.iter().take(12).collect::<Vec<_>>(),
    });
    report(turn, Some(id), "sprint.plan", values, documents);
}

/// A todo begins: the message on which its room hangs.
pub(super) fn todo_started(turn: &mut Turn<'_>, id: &SprintId, at: usize) {
    let Some(sprint) = turn.sprint(id) else { return };
    let todo = &sprint.work.todos[at];
    let Some(request) = todo.progress.request_id.clone() else { return };
    let values = json!({
        "sprint_id": id.as_str(),
        "number": at + 1,
        "total": sprint.work.todos.len(),
        "title": todo.title,
        "request_id": request.as_str(),
    });
    let target = Target::Named(NamedChannel::Startup);
    say::post_for_room(turn, &request, target, ("sprint.todo_started", values));
}

/// A todo stands somewhere else.
pub(super) fn todo(turn: &mut Turn<'_>, id: &SprintId, at: usize) {
    let Some(sprint) = turn.sprint(id) else { return };
    let todo = &sprint.work.todos[at];
    let counts = sprint.todo_counts();
    let of = |status: TodoStatus| counts.get(&status).copied().unwrap_or(0);
    let values = json!({
        "sprint_id": id.as_str(),
        "number": at + 1,
        "total": sprint.work.todos.len(),
        "title": todo.title,
        "status": todo.progress.status,
        "summary": say::whole(&todo.progress.summary),
        "commit": say::short(&todo.progress.commit_sha),
        "through": say::short(&todo.progress.proven_through),
        "request_id": todo.progress.request_id.as_ref().map_or("", |id| id.as_str()),
        "done": of(TodoStatus::Committed) + of(TodoStatus::Completed),
        "left": of(TodoStatus::Queued) + of(TodoStatus::Running),
    });
    report(turn, Some(id), "sprint.todo", values, Vec::new());
}

/// It was asked to end.
pub(super) fn wrap_up(turn: &mut Turn<'_>, id: &SprintId, how: WrapUp, by: &str) {
    let values = json!({ "sprint_id": id.as_str(), "how": how, "by": by });
    report(turn, Some(id), "sprint.wrap_up", values, Vec::new());
}

/// It could not be planned.
pub(super) fn blocked(turn: &mut Turn<'_>, id: &SprintId, step: PlanningStep, problems: &[String]) {
    let problems: Vec<String> = problems.iter().map(|it| say::cut(it, 300)).take(4).collect();
    let values = json!({ "sprint_id": id.as_str(), "step": step, "problems": problems });
    error(turn, id, "sprint.blocked", values);
}

/// Something about it needs people.
pub(super) fn error(turn: &mut Turn<'_>, id: &SprintId, key: &str, values: Value) {
    let channel = NamedChannel::Report;
    post(turn, Some(id), channel, Voice::Team, Priority::Error, key, values, Vec::new());
}

/// It is over.
pub(super) fn summary(turn: &mut Turn<'_>, id: &SprintId, files: Vec<String>) {
    let Some(sprint) = turn.sprint(id) else { return };
    let counts = sprint.todo_counts();
    let of = |status: TodoStatus| counts.get(&status).copied().unwrap_or(0);
    let with = |status: TodoStatus| {
        sprint.work.todos.iter().filter(move |todo| todo.progress.status == status)
    };
    let is_left = |todo: &&Todo| {
        matches!(todo.progress.status, TodoStatus::Failed | TodoStatus::Cancelled)
            && !todo.progress.is_dropped
    };
    // What a person kept off the branch waits for people.
    let waits = |todo: &&Todo| {
        let item = todo.backlog_id.as_ref().and_then(|id| turn.item(id));
        item.is_some_and(|item| item.status == ItemStatus::Blocked)
    };
    let left = sprint.work.todos.iter().filter(is_left);
    let (waiting, put_back): (Vec<&Todo>, Vec<&Todo>) = left.partition(waits);
    let blocked = with(TodoStatus::Blocked).chain(with(TodoStatus::Uncommitted)).chain(waiting);
    let with_reason = |todo: &Todo| json!({ "title": say::cut(&todo.title, 120), "reason": say::cut(&todo.progress.summary, 200) });
    let blocked: Vec<Value> = blocked.map(with_reason).collect();
    let put_back: Vec<Value> =
        put_back.into_iter().map(|todo| json!({ "title": say::cut(&todo.title, 120) })).collect();
    let headline = sprint.closing.report_draft.get("headline").and_then(Value::as_str);
    let seconds = match (sprint.started_at, sprint.ended_at) {
        (Some(start), Some(end)) => end.seconds_since(start),
        (_, _) => 0,
    };
    let values = json!({
        "sprint_id": id.as_str(),
        "milestone": sprint.milestone_title,
        "status": sprint.status,
        "closeout_status": sprint.closing.status,
        "headline": say::cut(headline.unwrap_or_default(), 400),
        "counts": {
            "committed": of(TodoStatus::Committed),
            "completed": of(TodoStatus::Completed),
            "blocked": blocked.len(),
            "failed": of(TodoStatus::Failed),
            "cancelled": of(TodoStatus::Cancelled),
        },
        "total": sprint.work.todos.len(),
        "commits": sprint.work.commit_count,
        "seconds": seconds,
        "blocked": blocked,
        "put_back": put_back,
        "unmet": sprint.closing.unmet_requirements,
        "unverified": sprint.closing.unverified,
        "uncommitted_paths": sprint.closing.uncommitted_paths.iter().take(10).collect::<Vec<_>>(),
    });
    let channel = NamedChannel::Report;
    let key = "sprint.summary";
    post(turn, Some(id), channel, Voice::Team, Priority::Final, key, values, files);
}

/// Nothing is under way and nothing waits: people are asked for a milestone, once.
pub(super) fn idle(turn: &mut Turn<'_>) {
    // What came of the last sprint is told first.
    let tells = turn.has_effect(|kind| matches!(kind, EffectKind::Archive { .. }));
    if tells || turn.scheduler().milestone_request.pending {
        return;
    }
    let now = turn.now;
    let channel = turn.policy.relay_channel;
    let scheduler = turn.edit_scheduler();
    scheduler.milestone_request.pending = true;
    scheduler.milestone_request.sent_at = Some(now);
    scheduler.milestone_request.channel_id = channel;
    "idle".clone_into(&mut scheduler.milestone_request.reason);
    let values = json!({ "project": turn.policy.project });
    let channel = NamedChannel::Relay;
    post(turn, None, channel, Voice::Team, Priority::Progress, "sprint.idle", values, Vec::new());
}
