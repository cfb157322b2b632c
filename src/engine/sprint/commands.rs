//! Commands about sprints and the backlog: from a person, the operator, or a planner's agent.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{closeout, plan_review, position, queue, say, sourcing, start};
use crate::domain::actor::Actor;
use crate::domain::budget::Scope;
use crate::domain::ids::{ItemId, RequestId, SprintId, TodoId};
use crate::domain::item::{GAVE_UP, ItemSource, ItemStatus};
use crate::domain::language::Language;
use crate::domain::request::{Request, RequestStatus};
use crate::domain::sprint::{
    Kickoff, Phase, RESTART_CHECKPOINT, Sprint, SprintEventKind, SprintStatus, Todo, TodoStatus,
    Trigger, WrapUp,
};
use crate::engine::authorize::{Granted, Resource, act, authorize, denied};
use crate::engine::decision::Answer;
use crate::engine::say::CatalogText;
use crate::engine::turn::Turn;
use crate::engine::{budget, ending, say as words};

/// Characters of a milestone.
const MILESTONE: usize = 200;
/// Characters of a brief and of the words that asked.
const BRIEF: usize = 8_000;
/// Requirements, and characters of one.
const REQUIREMENTS: (usize, usize) = (40, 500);
/// Files that go along.
const ARTIFACTS: usize = 12;

fn answer(language: Language, said: Result<CatalogText, CatalogText>) -> Answer {
    match said {
        Ok((key, values)) => Answer::Say(words::content(key, language, values)),
        Err((key, values)) => Answer::Refused(words::content(key, language, values)),
    }
}

fn language(turn: &Turn<'_>) -> Language {
    turn.active_sprint().map_or(turn.policy.language, |sprint| sprint.language)
}

/// The right to control sprints, for whoever has it.
pub(in crate::engine) fn may(
    turn: &Turn<'_>,
    actor: &Actor,
) -> Result<Granted<act::ControlSprint>, CatalogText> {
    authorize(turn.policy, actor, Resource::Team)
        .map_err(|_| (denied(turn.policy, actor), json!({})))
}

/// Begins a sprint, and answers at once.
pub(in crate::engine) fn start(turn: &mut Turn<'_>, actor: &Actor, kickoff: Kickoff) -> Answer {
    let language = kickoff.language.unwrap_or(turn.policy.language);
    let said = may(turn, actor).and_then(|granted| started(turn, &granted, kickoff));
    answer(language, said)
}

/// Begins a sprint for somebody who may.
pub(in crate::engine) fn started(
    turn: &mut Turn<'_>,
    _granted: &Granted<act::ControlSprint>,
    kickoff: Kickoff,
) -> Result<CatalogText, CatalogText> {
    if let Some(active) = &turn.scheduler().active_sprint_id
        && turn.sprint(active).is_some_and(|sprint| !sprint.status.is_terminal())
    {
        return Err(("sprint.refused.active", json!({ "sprint_id": active.as_str() })));
    }
    // A request that becomes a sprint stays to be read as it is.
    if kickoff.source_request_id.is_none() && is_too_much(&kickoff) {
        let values = json!({
            "requirements": REQUIREMENTS.0, "line": REQUIREMENTS.1, "brief": BRIEF, "files": ARTIFACTS,
        });
        return Err(("sprint.refused.too_much", values));
    }
    let kickoff = cut(kickoff);
    if kickoff.milestone.is_empty() {
        return Err(("sprint.refused.milestone", json!({})));
    }
    budget::ask_again(turn);
    let (milestone, missing_files) = (kickoff.milestone.clone(), kickoff.missing_files);
    let id = start::begin(turn, Trigger::ManualStart, kickoff);
    let values = json!({
        "sprint_id": id.as_str(), "milestone": milestone, "missing_files": missing_files,
    });
    Ok(("sprint.accepted", values))
}

/// Whether a part of it would be cut off.
fn is_too_much(kickoff: &Kickoff) -> bool {
    let longer = |text: &str, most| text.chars().count() > most;
    let Kickoff { requirements, artifacts, brief, request_text, .. } = kickoff;
    longer(brief, BRIEF)
        || brief.is_empty() && longer(request_text, BRIEF)
        || requirements.iter().any(|it| longer(it, REQUIREMENTS.1))
        || requirements.iter().filter(|it| !it.is_empty()).count() > REQUIREMENTS.0
        || artifacts.len() > ARTIFACTS
}

fn cut(kickoff: Kickoff) -> Kickoff {
    let requirements = kickoff.requirements.iter().map(|it| words::cut(it, REQUIREMENTS.1));
    let milestone = kickoff.milestone.split_whitespace().collect::<Vec<_>>().join(" ");
    Kickoff {
        milestone: words::cut(&milestone, MILESTONE),
        brief: words::cut(&kickoff.brief, BRIEF),
        requirements: requirements.filter(|it| !it.is_empty()).take(REQUIREMENTS.0).collect(),
        artifacts: kickoff.artifacts.into_iter().take(ARTIFACTS).collect(),
        request_text: words::cut(&kickoff.request_text, BRIEF),
        ..kickoff
    }
}

/// Ends the active sprint: after the running todos, or at once.
pub(in crate::engine) fn stop(turn: &mut Turn<'_>, actor: &Actor, now: bool) -> Answer {
    let language = language(turn);
    let said = may(turn, actor).and_then(|granted| stopped(turn, &granted, now));
    answer(language, said)
}

/// Ends the active sprint for somebody who may.
pub(in crate::engine) fn stopped(
    turn: &mut Turn<'_>,
    granted: &Granted<act::ControlSprint>,
    now: bool,
) -> Result<CatalogText, CatalogText> {
    let by = granted.name();
    let Some(id) = turn.active_sprint().map(|sprint| sprint.sprint_id.clone()) else {
        return Err(("sprint.refused.none", json!({})));
    };
    let how = if now { WrapUp::Now } else { WrapUp::AfterCurrent };
    let at = turn.now;
    let Some(sprint) = turn.edit_sprint(&id) else {
        return Err(("sprint.refused.none", json!({})));
    };
    // What ends at once does not end any later.
    let how = if sprint.closing.wrap_up == Some(WrapUp::Now) { WrapUp::Now } else { how };
    sprint.closing.wrap_up = Some(how);
    sprint.closing.requested_at = Some(at);
    turn.sprint_event(&id, SprintEventKind::WrapUpRequested, how.as_str(), json!({ "by": by }));
    say::wrap_up(turn, &id, how, &by);
    Ok(("sprint.stopping", json!({ "sprint_id": id.as_str(), "how": how })))
}

/// Nobody grants more than was spent: a sprint whose own budget that is ends after what is under way, and one that is
/// still planned waits for a restart, whichever budget its planning has used up.
pub(in crate::engine) fn out_of_budget(turn: &mut Turn<'_>, request: &RequestId, scope: Scope) {
    let its = turn.request(request).and_then(|it| it.sprint_id.clone());
    let is_its = |it: &&Sprint| {
        Some(&it.sprint_id) == its.as_ref()
            && it.phase != Phase::WrapUp
            && it.closing.wrap_up.is_none()
    };
    let Some(sprint) = turn.active_sprint().filter(is_its) else { return };
    let (id, is_planned) = (sprint.sprint_id.clone(), sprint.status == SprintStatus::Planning);
    if !is_planned && scope != Scope::Sprint {
        return;
    }
    let values = json!({
        "sprint_id": id.as_str(),
        "planned": !is_planned,
        "daily": scope.is_daily(),
    });
    say::error(turn, &id, "sprint.out_of_budget", values);
    if is_planned {
        return plan_review::put_off(turn, &id, "nobody granted more than its budget");
    }
    let (now, how) = (turn.now, WrapUp::AfterCurrent);
    if let Some(sprint) = turn.edit_sprint(&id) {
        sprint.closing.wrap_up = Some(how);
        sprint.closing.requested_at = Some(now);
    }
    let by = json!({ "by": "budget" });
    turn.sprint_event(&id, SprintEventKind::WrapUpRequested, how.as_str(), by);
}

/// Pauses the active sprint: what is under way goes on, and nothing more begins until it is restarted.
pub(in crate::engine) fn paused(turn: &mut Turn<'_>, granted: &Granted<act::ControlSprint>) {
    let Some(id) = turn.active_sprint().map(|sprint| sprint.sprint_id.clone()) else { return };
    let by = granted.name();
    if let Some(sprint) = turn.edit_sprint(&id) {
        sprint.work.paused_by = Some(by.clone());
    }
    turn.sprint_event(&id, SprintEventKind::Paused, &by, Value::Null);
}

/// Goes on with the active sprint, or with the last one, from its checkpoint (`spec/teams.md` 9.8).
pub(in crate::engine) fn restart(turn: &mut Turn<'_>, actor: &Actor) -> Answer {
    let language = language(turn);
    let said = may(turn, actor).and_then(|granted| restarted(turn, &granted));
    answer(language, said)
}

/// The same for somebody who may.
pub(in crate::engine) fn restarted(
    turn: &mut Turn<'_>,
    _granted: &Granted<act::ControlSprint>,
) -> Result<CatalogText, CatalogText> {
    let active = turn.active_sprint().map(|sprint| sprint.sprint_id.clone());
    let last = || turn.before().last_sprint().map(|sprint| sprint.sprint_id.clone());
    let resumable = |id: &SprintId| turn.sprint(id).is_some_and(closeout::is_resumable);
    let waiting = || last().filter(resumable).or_else(|| closeout::waits_for_restart(turn));
    let Some(id) = active.or_else(waiting).or_else(last) else {
        return Err(("sprint.refused.none", json!({})));
    };
    let Some(sprint) = turn.sprint(&id) else {
        return Err(("sprint.refused.none", json!({})));
    };
    let over = sprint.status.is_terminal() && !closeout::is_resumable(sprint);
    if over || sprint.status == SprintStatus::Closeout {
        let values = json!({ "sprint_id": id.as_str(), "status": sprint.status });
        return Err(("sprint.refused.not_restartable", values));
    }
    let terminal = sprint.status.is_terminal();
    let title = checkpoint(turn, &id).unwrap_or_default();
    let is_paused =
        |request: &&Request| request.sprint_id.as_ref() == Some(&id) && request.is_paused();
    let paused: Vec<RequestId> =
        turn.requests().filter(is_paused).map(|request| request.request_id.clone()).collect();
    for request in paused {
        if let Some(blocked) = turn.edit(&request).and_then(|it| it.blocked.as_mut()) {
            blocked.paused_by = None;
        }
    }
    let now = turn.now;
    budget::ask_again(turn);
    start::renew_cutoff(turn, &id);
    // What was let go before anybody began is planned again, as todos of their own.
    let items = turn.items();
    let is_open = |id: &ItemId| items.contains_key(id);
    let is_again = |todo: &Todo| {
        todo.progress.status == TodoStatus::Cancelled
            && todo.progress.request_id.is_none()
            && todo.backlog_id.as_ref().is_some_and(is_open)
    };
    let again: BTreeSet<TodoId> = turn
        .sprint(&id)
        .filter(|_| terminal)
        .into_iter()
        .flat_map(|sprint| &sprint.work.todos)
        .filter(|todo| is_again(todo))
        .map(|todo| todo.progress.todo_id.clone())
        .collect();
    if let Some(sprint) = turn.edit_sprint(&id) {
        sprint.work.todos.retain(|todo| !again.contains(&todo.progress.todo_id));
        sprint.work.resume_requested_at = Some(now);
        sprint.closing.wrap_up = None;
        sprint.work.paused_by = None;
        sprint.closing.requested_at = None;
        if terminal {
            sprint.ended_at = None;
            sprint.closing.status = None;
            sprint.closing.message.clear();
        }
    }
    if terminal {
        position::resume(turn, &id);
    }
    let scheduler = turn.edit_scheduler();
    scheduler.active_sprint_id = Some(id.clone());
    scheduler.slots.last_trigger = Some(Trigger::ManualRestart);
    scheduler.milestone_request.pending = false;
    turn.sprint_event(&id, SprintEventKind::RestartRequested, &title, Value::Null);
    Ok(("sprint.restarted", json!({ "sprint_id": id.as_str(), "todo": title })))
}

/// The todo to go on with: a blocked one is begun anew, before all others; where none is blocked, one that waits for its
/// commit or runs, which goes on by itself.
fn checkpoint(turn: &mut Turn<'_>, id: &SprintId) -> Option<String> {
    let sprint = turn.sprint(id)?;
    // What waits for words about a conflict waits on.
    let conflicts = |todo: &Todo| {
        let request = todo.progress.request_id.as_ref().and_then(|id| turn.request(id));
        request.is_some_and(Request::has_open_conflict)
    };
    let is_paused = |todo: &Todo| {
        todo.progress
            .request_id
            .as_ref()
            .and_then(|id| turn.request(id))
            .is_some_and(Request::is_paused)
    };
    // What somebody has asked to end waits for the answer.
    let is_to_end = |todo: &Todo| {
        let request = todo.progress.request_id.as_ref().and_then(|id| turn.request(id));
        request.is_some_and(|it| it.params.open_end().is_some())
    };
    // An item that is settled, or another todo by now, is not done once more.
    let is_its = |todo: &Todo| {
        let item = queue::item_of(turn, todo, id);
        todo.backlog_id.is_none() || item.is_some_and(|it| it.may_be_todo(&todo.progress.todo_id))
    };
    let rank = |todo: &Todo| match todo.progress.status {
        TodoStatus::Blocked if !is_its(todo) => None,
        TodoStatus::Blocked if is_paused(todo) => Some(0),
        TodoStatus::Blocked => Some(1),
        TodoStatus::Uncommitted => Some(2).filter(|_| !conflicts(todo) && !is_to_end(todo)),
        TodoStatus::Running => Some(3),
        TodoStatus::Queued
        | TodoStatus::Committed
        | TodoStatus::Completed
        | TodoStatus::Failed
        | TodoStatus::Cancelled => None,
    };
    let best = (0..sprint.work.todos.len())
        .filter_map(|at| {
            Some((
                rank(&sprint.work.todos[at])?,
                std::cmp::Reverse(sprint.work.todos[at].progress.started_at),
                at,
            ))
        })
        .min()?
        .2;
    let todo = sprint.work.todos[best].clone();
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.work.resumed_todo_id = Some(todo.progress.todo_id.clone());
        todo.progress.status.as_str().clone_into(&mut sprint.work.resumed_todo_status);
    }
    if todo.progress.status == TodoStatus::Uncommitted {
        turn.edit_todo(id, best, |progress| progress.commit_retries = 0);
    }
    if todo.progress.status == TodoStatus::Blocked {
        if let Some(old) = &todo.progress.request_id
            && turn.request(old).is_some_and(|it| {
                it.blocked.as_ref().is_some_and(|blocked| blocked.code.is_from_outside())
            })
        {
            // Nothing is wrong with what was done so far.
            let old = old.clone();
            if let Some(sprint) = turn.edit_sprint(id) {
                sprint.work.tries_again = Some(old);
            }
            return Some(todo.title);
        }
        sourcing::keep_words(turn, &todo);
        turn.edit_todo(id, best, |progress| {
            progress.status = TodoStatus::Queued;
            progress.retry_of_request_id = progress.request_id.take();
            progress.started_at = None;
            progress.ended_at = None;
            RESTART_CHECKPOINT.clone_into(&mut progress.dependency_gate_bypass);
        });
        if let Some(item) = &todo.backlog_id {
            let sprint = id.clone();
            turn.edit_item(item, |item| {
                item.clear_blockers();
                item.origin.remove(GAVE_UP);
                if let Some(old) = &todo.progress.request_id {
                    item.leave_request(old, &todo.progress.todo_id);
                }
                item.status = ItemStatus::Selected;
                item.selected_in_sprint_id = Some(sprint.clone());
                item.planned_in_sprint_id = Some(sprint);
            });
        }
        if let Some(old) = &todo.progress.request_id
            && turn.request(old).is_some_and(|request| !request.status.is_terminal())
        {
            let values = json!({ "request_id": old.as_str(), "by": "restart" });
            ending::end(turn, old, RequestStatus::Cancelled, "final.begun_anew", values);
        }
    }
    Some(todo.title)
}

/// Changes the backlog: all of it or nothing.
pub(in crate::engine) fn merge(
    turn: &mut Turn<'_>,
    actor: &Actor,
    payload: &Value,
    source: ItemSource,
) -> Answer {
    let language = language(turn);
    let granted: Granted<act::KeepBacklog> = match authorize(turn.policy, actor, Resource::Team) {
        Ok(granted) => granted,
        Err(_) => {
            let said = match actor {
                Actor::Agent { role, .. } => {
                    let reason = format!("{role} may not change the backlog; the planner may");
                    ("backlog.refused", json!({ "reason": reason }))
                }
                Actor::Person { .. } | Actor::Deleter | Actor::Operator => {
                    ("not_allowed", json!({}))
                }
            };
            return answer(language, Err(said));
        }
    };
    let (request, sprint) = match granted.actor() {
        Actor::Agent { request_id, .. } => {
            let sprint = turn.request(request_id).and_then(|request| request.sprint_id.clone());
            (Some(request_id.clone()), sprint)
        }
        // People plan an item for the sprint under way.
        Actor::Person { .. } | Actor::Deleter | Actor::Operator => {
            (None, turn.scheduler().active_sprint_id.clone())
        }
    };
    match queue::merge(turn, payload, source, request.as_ref(), sprint.as_ref()) {
        Ok(merged) => {
            let items: Vec<Value> = merged
                .items
                .iter()
                .map(|item| {
                    json!({
                        "backlog_id": item.backlog_id.as_str(),
                        "title": item.title,
                        "status": turn.item(&item.backlog_id).map_or(item.status, |it| it.status),
                        "fingerprint": item.fingerprint,
                    })
                })
                .collect();
            let values =
                json!({ "added": merged.added, "updated": merged.updated, "items": items });
            answer(language, Ok(("backlog.merged", values)))
        }
        Err(error) => {
            let values = json!({ "reason": error.to_string() });
            answer(language, Err(("backlog.refused", values)))
        }
    }
}
