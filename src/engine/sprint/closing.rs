//! A sprint ends (`spec/teams.md` 9.9): what was not done is released, the project is looked at, the
//! planner says what came of it, and the slot is free, whatever happened.

use serde_json::{Value, json};

use super::duties::{self, DutyRequest};
use super::{closeout, coverage, next_slot, position, queue, say, sourcing, todo_progress, todos};
use crate::domain::block::BlockCode;
use crate::domain::effect::{EffectKind, Inspection};
use crate::domain::gate::{Gate, GateKind};
use crate::domain::ids::{ItemId, RequestId, SprintId};
use crate::domain::item::{GAVE_UP, Item, ItemStatus};
use crate::domain::lifecycle::Step;
use crate::domain::request::{EndQuestion, Request, RequestStatus};
use crate::domain::sprint::{
    CloseoutStatus, DutyDetails, Phase, Sprint, SprintEventKind, SprintStatus, Todo, TodoStatus,
    WrapUp,
};
use crate::engine::turn::Turn;
use crate::engine::{ending, train};
/// What records say of a commit of what lies in the project: the team makes none.
const NOT_NEEDED: &str = "not_needed";

/// Whether a person or the clock wants the sprint to end, and nothing stands against it any more.
pub(super) fn is_asked_for(turn: &Turn<'_>, id: &SprintId) -> bool {
    turn.sprint(id).is_some_and(|sprint| {
        let is_running = |todo: &Todo| {
            todo.progress.status == TodoStatus::Running && !waits_for_a_decision(turn, todo)
        };
        sprint.phase != Phase::WrapUp
            && match sprint.closing.wrap_up {
                Some(WrapUp::Now) => true,
                Some(WrapUp::AfterCurrent | WrapUp::Cutoff) => {
                    !sprint.work.todos.iter().any(is_running)
                }
                None => false,
            }
    })
}

/// The team stops working on todos and closes the sprint. A commit that is on its way to the branch is waited
/// for: only then is known what became of its todo.
pub(super) fn begin(turn: &mut Turn<'_>, id: &SprintId) {
    release(turn, id);
    let duty = turn.sprint(id).and_then(|sprint| sprint.planning_request_id.clone());
    if let Some(duty) = duty {
        if let Some(sprint) = turn.edit_sprint(id) {
            sprint.planning_request_id = None;
        }
        drop_duty(turn, &duty);
    }
    let lands = |sprint: &Sprint| {
        sprint.work.todos.iter().any(|todo| todo.progress.status == TodoStatus::Running)
    };
    if turn.sprint(id).is_none_or(lands) {
        return;
    }
    let Some(sprint) = turn.edit_sprint(id) else { return };
    sprint.closing.status = None;
    turn.sprint_event(id, SprintEventKind::Closeout, "", Value::Null);
    position::stop(turn, id);
}

/// Ends a request of the sprint itself that nobody waits for any more.
fn drop_duty(turn: &mut Turn<'_>, id: &RequestId) {
    if turn.request(id).is_some_and(|request| !request.status.is_terminal()) {
        ending::end(turn, id, RequestStatus::Cancelled, "sprint.duty", json!({}));
    }
}

/// What the sprint did not do, or could not, goes back to the backlog. Work whose commit waits for the
/// branch stays open: it is done, and a person can still let it through.
fn release(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(todos) = turn.sprint(id).map(|sprint| sprint.work.todos.clone()) else { return };
    for (at, todo) in todos.iter().enumerate() {
        match todo.progress.status {
            TodoStatus::Running if lands(turn, todo) => {}
            TodoStatus::Running if waits_for_a_yes(turn, todo) => {
                todo_progress::outlives(turn, id, at, todo);
            }
            TodoStatus::Queued | TodoStatus::Running => put_back(turn, id, at, todo),
            TodoStatus::Blocked => put_aside(turn, todo),
            TodoStatus::Uncommitted
            | TodoStatus::Committed
            | TodoStatus::Completed
            | TodoStatus::Failed
            | TodoStatus::Cancelled => {}
        }
    }
}

/// Whether the commit of a todo is on its way to the branch.
fn lands(turn: &Turn<'_>, todo: &Todo) -> bool {
    todo.progress.request_id.as_ref().is_some_and(|id| train::is_merging(turn, id))
}

/// Whether nothing goes on with a todo before a person decides, who may take days, and nothing that is built for it is
/// lost when its sprint ends before.
fn waits_for_a_decision(turn: &Turn<'_>, todo: &Todo) -> bool {
    let request = todo.progress.request_id.as_ref().and_then(|id| turn.request(id));
    let is_built = request.is_some_and(|it| it.work.candidate.is_some());
    match gate_of(turn, todo).map(|gate| gate.kind) {
        // Its agent is at work.
        Some(GateKind::Action) | None => false,
        Some(
            GateKind::UnprovenCommit
            | GateKind::GuardedCommit
            | GateKind::RedBase
            | GateKind::Commit,
        ) => true,
        Some(GateKind::Prepare | GateKind::Plan | GateKind::Budget) => !is_built,
    }
}

/// Whether a todo is built, and somebody is asked whether its commit may go to the branch.
fn waits_for_a_yes(turn: &Turn<'_>, todo: &Todo) -> bool {
    gate_of(turn, todo).is_some_and(|it| it.kind.is_about_commit())
}

/// The gate at which the request of a todo waits.
fn gate_of<'t>(turn: &'t Turn<'_>, todo: &Todo) -> Option<&'t Gate> {
    let request = todo.progress.request_id.as_ref().and_then(|id| turn.request(id))?;
    turn.before().gates.get(request.work.gate_id.as_ref()?).map(|it| &**it)
}

/// A todo that was not delivered: its item waits again.
fn put_back(turn: &mut Turn<'_>, id: &SprintId, at: usize, todo: &Todo) {
    let now = turn.now;
    let its = todo.progress.request_id.as_ref().and_then(|id| turn.request(id));
    let spans =
        its.map_or_else(|| todo.progress.spans.clone(), |request| request.work.spans.clone());
    let asked_to_end = its.and_then(|request| request.params.open_end()).map(EndQuestion::line);
    turn.edit_todo(id, at, |progress| {
        progress.status = TodoStatus::Cancelled;
        progress.ended_at = Some(now);
        progress.spans = spans;
    });
    sourcing::keep_words(turn, todo);
    turn.leave_todo(todo, |item| {
        item.status = ItemStatus::Pending;
        if let Some(said) = asked_to_end {
            // Nobody has answered yet: no other sprint takes it up before somebody does.
            item.status = ItemStatus::Blocked;
            item.blocked_reason = said;
            item.origin.set(GAVE_UP, "yes");
        }
        item.selected_in_sprint_id = None;
        item.planned_in_sprint_id = None;
        if let Some(request) = &todo.progress.request_id {
            item.leave_request(request, &todo.progress.todo_id);
        }
    });
    if let Some(request) = &todo.progress.request_id {
        end_quietly(turn, request);
    }
    let payload = json!({ "todo_id": todo.progress.todo_id.as_str() });
    turn.sprint_event(id, SprintEventKind::TodoReleased, &todo.title, payload);
}

/// A todo that waits for a person: its item waits for the same, and its room stays the place to answer.
fn put_aside(turn: &mut Turn<'_>, todo: &Todo) {
    let Some(request) = &todo.progress.request_id else { return };
    // Put aside before, when the sprint began to close.
    let Some(its) = turn.request(request).filter(|it| !it.status.is_terminal()) else { return };
    let waits_for_words = its
        .blocked
        .as_ref()
        .is_some_and(|it| it.code.asks_for_words() || it.code == BlockCode::NeedsRealAgent);
    let has_given_up = its.has_given_up() || waits_for_words;
    sourcing::keep_words(turn, todo);
    turn.leave_todo(todo, |item| {
        item.leave_request(request, &todo.progress.todo_id);
        match has_given_up {
            true => item.origin.set(GAVE_UP, "yes"),
            false => item.origin.remove(GAVE_UP),
        }
        item.planned_in_sprint_id = None;
        item.selected_in_sprint_id = None;
    });
    end_quietly(turn, request);
}

fn end_quietly(turn: &mut Turn<'_>, id: &RequestId) {
    if turn.request(id).is_some_and(|request| !request.status.is_terminal()) {
        if let Some(request) = turn.edit(id) {
            // Its todo does not follow it any more.
            request.params.released = true;
        }
        let values = json!({ "request_id": id.as_str(), "by": "sprint" });
        ending::end(turn, id, RequestStatus::Cancelled, "final.released", values);
    }
}

/// Ends requests whose place another one has taken, such as one whose record was gone for a while: nothing is built twice.
pub(in crate::engine) fn withdraw_replaced(turn: &mut Turn<'_>) {
    let open = || turn.requests().filter(|it| !it.status.is_terminal() && it.todo_id.is_some());
    let is_replaced = |request: &&Request| {
        let id = &request.request_id;
        let mut others = open().filter(|it| it.request_id != *id && it.todo_id == request.todo_id);
        let newer = others.any(|it| it.created_at > request.created_at);
        let todos = turn.active_sprint().into_iter().flat_map(|sprint| &sprint.work.todos);
        let mut own = todos.filter(|todo| Some(&todo.progress.todo_id) == request.todo_id.as_ref());
        newer || own.any(|todo| todo.progress.request_id.as_ref().is_some_and(|it| it != id))
    };
    let replaced: Vec<RequestId> =
        open().filter(is_replaced).map(|it| it.request_id.clone()).collect();
    for id in replaced {
        if !train::is_merging(turn, &id) {
            end_quietly(turn, &id);
        }
    }
}

/// Has git asked what came of the sprint.
pub(super) fn inspect(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(sprint) = turn.sprint(id) else { return };
    match sprint.closing.status {
        // Nobody has looked at the project yet, and nobody has done anything in it.
        None if sprint.work.git_baseline.is_none() && !sprint.has_worked() => {
            if let Some(sprint) = turn.edit_sprint(id) {
                sprint.closing.status = Some(CloseoutStatus::NoNewCommits);
            }
            position::done(turn, id);
        }
        // An older build was about to commit what people had in the project.
        None | Some(CloseoutStatus::PendingChanges) => {
            let is_mine = |kind: &EffectKind| matches!(kind, EffectKind::Inspect { sprint_id } if sprint_id == id);
            if !turn.has_effect(is_mine) {
                turn.plan(EffectKind::Inspect { sprint_id: id.clone() });
            }
        }
        Some(_) => position::done(turn, id),
    }
}

/// Asks the planner for the closing words.
pub(super) fn report(turn: &mut Turn<'_>, id: &SprintId, step: &Step) {
    let Some(sprint) = turn.edit_sprint(id) else { return };
    if sprint.closing.wrap_up == Some(WrapUp::Now) && sprint.closing.report_draft.is_null() {
        // A person does not want to wait for words.
        sprint.closing.report_draft = json!({ "fallback": "stopped" });
        if let Some(duty) = sprint.planning_request_id.take() {
            drop_duty(turn, &duty);
        }
        return position::done(turn, id);
    }
    if !sprint.closing.report_draft.is_null() {
        return position::done(turn, id);
    }
    if sprint.planning_request_id.is_some() {
        return;
    }
    let closeout_status = sprint.closing.status.unwrap_or(CloseoutStatus::Failed);
    let duty = DutyDetails::ClosingReport { closeout_status };
    duties::ask(turn, DutyRequest { duty, step, sprint: Some(id), scope: format!("report: {id}") });
}

/// The sprint is over as git says.
pub(super) fn archive(turn: &mut Turn<'_>, id: &SprintId) {
    let Some(sprint) = turn.sprint(id) else { return };
    let closeout = sprint.closing.status.unwrap_or(CloseoutStatus::Failed);
    let stopped = sprint.closing.wrap_up.is_some() && !sprint.work.todos.iter().any(is_delivered);
    let closeout =
        if stopped && closeout.is_success() { CloseoutStatus::Stopped } else { closeout };
    let message = sprint.closing.message.clone();
    end(turn, id, closeout::status_of(closeout), closeout, &message);
}

fn is_delivered(todo: &Todo) -> bool {
    todo.progress.status.is_success()
}

/// Git has told what the sprint committed, and what people have uncommitted in the project.
pub(super) fn inspected(turn: &mut Turn<'_>, id: &SprintId, found: Inspection) {
    let Some(sprint) = turn.edit_sprint(id) else { return };
    if sprint.status != SprintStatus::Closeout {
        return;
    }
    sprint.work.commit_shas = found.commits.iter().map(|commit| commit.sha.clone()).collect();
    sprint.work.commit_sha = sprint.work.commit_shas.last().cloned().unwrap_or_default();
    sprint.work.commit_count = found.commits.len() as u64;
    sprint.work.commits = found.commits;
    sprint.closing.uncommitted_paths.clone_from(&found.uncommitted_paths);
    sprint.closing.message = found.message;
    sprint.closing.status = Some(found.status);
    if sprint.closing.version_control_status.is_empty() {
        NOT_NEEDED.clone_into(&mut sprint.closing.version_control_status);
    }
}

/// Git could not be asked.
pub(super) fn not_inspected(turn: &mut Turn<'_>, id: &SprintId, message: &str) {
    let Some(sprint) = turn.edit_sprint(id) else { return };
    if sprint.status == SprintStatus::Closeout {
        sprint.closing.status = Some(CloseoutStatus::Failed);
        sprint.closing.message = crate::engine::say::cut(message, 600);
    }
}

/// Withdraws a sprint's request that is neither a todo's nor a duty: an older build began a commit of what people
/// had uncommitted in the project. The sprint goes on closing without it.
pub(in crate::engine) fn withdraw_older(turn: &mut Turn<'_>) {
    let is_one = |request: &&Request| {
        let ours = request.todo_id.is_some() || request.params.duty.is_some();
        request.sprint_id.is_some() && !ours && !request.status.is_terminal()
    };
    let all: Vec<_> = turn.requests().filter(is_one).map(|it| it.request_id.clone()).collect();
    for id in all {
        let sprint = turn.request(&id).and_then(|request| request.sprint_id.clone());
        if let Some(sprint) = sprint.and_then(|sprint| turn.edit_sprint(&sprint))
            && sprint.planning_request_id.as_ref() == Some(&id)
        {
            sprint.planning_request_id = None;
        }
        if !train::is_merging(turn, &id) {
            let values = json!({ "request_id": id.as_str(), "by": "" });
            ending::end(turn, &id, RequestStatus::Cancelled, "final.cancelled", values);
        }
    }
}

/// The closing words are there; where they are not, the report goes without.
pub(super) fn worded(turn: &mut Turn<'_>, request: &Request) {
    let Some(id) = duties::awaited_by(turn, request) else { return };
    let draft = duties::outcome(request)
        .ok()
        .and_then(|result| result.proposals.sprint_report.as_ref())
        .map_or_else(|| json!({ "fallback": "no words came" }), |report| json!(report));
    if let Some(sprint) = turn.edit_sprint(&id) {
        sprint.closing.report_draft = draft;
    }
}

/// The sprint is over: the slot is free in the same decision.
pub(super) fn end(
    turn: &mut Turn<'_>,
    id: &SprintId,
    status: SprintStatus,
    closeout: CloseoutStatus,
    message: &str,
) {
    // What comes late for a sprint that is over must not take the slot from the next one.
    if turn.sprint(id).is_none_or(|sprint| sprint.status.is_terminal()) {
        return;
    }
    let planned = its_items(turn, id);
    release(turn, id);
    unplan(turn, id);
    let now = turn.now;
    let message = crate::engine::say::cut(message, 600);
    let unmet = turn.sprint(id).map(|sprint| {
        let plans = turn.before().plans.values().map(|it| &it.plan);
        let mine = plans.filter(|plan| sprint.is_about(&plan.title));
        coverage::unmet(sprint, mine)
    });
    let unmet = unmet.unwrap_or_default();
    let verifications = turn.before().verifications.values();
    let mine = verifications.filter(|it| it.sprint_id.as_ref() == Some(id));
    let unverified = mine.flat_map(|it| it.unanswered()).collect();
    let Some(sprint) = turn.edit_sprint(id) else { return };
    sprint.closing.unmet_requirements = unmet;
    sprint.closing.unverified = unverified;
    let course = todos::course(&sprint.work.todos);
    sprint.closing.makespan_seconds = course.makespan_seconds;
    sprint.closing.chain = course.chain;
    sprint.closing.chain_seconds = course.chain_seconds;
    sprint.status = status;
    sprint.closing.status = Some(closeout);
    sprint.closing.message = message;
    sprint.ended_at = Some(now);
    let was_stopped = sprint.closing.wrap_up.is_some();
    let goes_on_later = closeout::is_resumable(sprint);
    let duty = sprint.planning_request_id.take();
    turn.sprint_event(id, SprintEventKind::of(status), closeout.as_str(), Value::Null);
    if let Some(duty) = duty {
        drop_duty(turn, &duty);
    }
    if goes_on_later {
        let is_open = |item: &Item| item.status == ItemStatus::Pending;
        for item in planned {
            if turn.item(&item).is_some_and(is_open) {
                turn.edit_item(&item, |item| item.planned_in_sprint_id = Some(id.clone()));
            }
        }
    }
    if was_stopped && !goes_on_later {
        let free = turn.items().into_values().filter(|item| queue::is_free(turn, item));
        let free = free.map(|item| item.backlog_id.clone()).collect();
        if let Some(sprint) = turn.edit_sprint(id) {
            sprint.closing.left = Some(free);
        }
    }
    next_slot::ended(turn);
    turn.plan(EffectKind::Archive { sprint_id: id.clone() });
}

/// The items that are planned for a sprint, or its todos.
fn its_items(turn: &Turn<'_>, id: &SprintId) -> Vec<ItemId> {
    let is_its = |item: &&Item| {
        [&item.planned_in_sprint_id, &item.selected_in_sprint_id].contains(&&Some(id.clone()))
    };
    let items = turn.items().into_values();
    items.filter(is_its).map(|item| item.backlog_id.clone()).collect()
}

/// Items that were planned for the sprint and did not become todos are nobody's again.
pub(super) fn unplan(turn: &mut Turn<'_>, id: &SprintId) {
    for item in its_items(turn, id) {
        turn.edit_item(&item, Item::leave_sprint);
    }
}

/// The report and the history are written: people are told, with the files.
pub(super) fn archived(turn: &mut Turn<'_>, id: &SprintId, report: Option<String>) {
    let publish = turn.policy.sprint.publish;
    // A sprint that was restarted meanwhile is told about at its end.
    if turn.sprint(id).is_none_or(|sprint| !sprint.status.is_terminal()) {
        return;
    }
    let Some(sprint) = turn.edit_sprint(id) else { return };
    let mut files = Vec::new();
    if let Some(report) = report {
        files.push(report.clone());
        let folder = sprint.sprint_folder.clone();
        files.extend(["burndown", "lanes"].map(|name| format!("{folder}/{name}.png")));
        sprint.closing.report_path = report;
    }
    say::summary(turn, id, files);
    if publish {
        turn.plan(EffectKind::Publish { sprint_id: id.clone() });
    }
}
