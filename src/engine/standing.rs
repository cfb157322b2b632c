//! How the team stands, in the values that its answers show: the same by a command, in plain words and on
//! the command line.

use std::sync::Arc;

use chrono_tz::Tz;
use serde_json::{Value, json};

use super::train;
use crate::domain::actor::Actor;
use crate::domain::effect::{Effect, EffectKind};
use crate::domain::item::ItemStatus;
use crate::domain::outgoing::Outgoing;
use crate::domain::policy::Policy;
use crate::domain::request::Request;
use crate::domain::sprint::TodoStatus;
use crate::domain::state::State;
use crate::domain::verification::Verification;

/// Lines of a list: an answer has to fit into one message, and be read on a phone.
pub const LINES: usize = 10;

/// What is open, and what waits for a person; for one `asker` alone, or for everybody.
#[must_use]
pub fn overview(state: &State, asker: Option<&Actor>) -> Value {
    let open: Vec<&Request> = open(state).collect();
    let line = |request: &&Request| line(request, asker, train::place(state, &request.request_id));
    let lines: Vec<Value> = open.iter().take(LINES).map(line).collect();
    let refused = refused(state).count();
    let hidden = |it: &Verification| asker.is_some_and(|asker| it.is_hidden_from(asker));
    let shown = state.verifications.values().filter(|it| !hidden(it));
    let verify: usize = shown.map(|it| it.open().count()).sum();
    json!({
        "open": open.len(), "lines": lines, "waiting": state.gates.len(), "verify": verify,
        "refused": refused, "blocked_items": blocked_items(state),
    })
}

/// The same of one request.
#[must_use]
pub fn overview_of(state: &State, request: &Request, asker: Option<&Actor>) -> Value {
    let waiting = usize::from(request.work.gate_id.is_some());
    let place = train::place(state, &request.request_id);
    json!({ "open": 1, "lines": [line(request, asker, place)], "waiting": waiting, "verify": 0, "refused": 0, "blocked_items": 0 })
}

/// How many items of the backlog wait for somebody.
#[must_use]
pub fn blocked_items(state: &State) -> usize {
    state.backlog.values().filter(|item| item.status == ItemStatus::Blocked).count()
}

fn line(request: &Request, asker: Option<&Actor>, place: Option<usize>) -> Value {
    let title = asker.map_or_else(|| title(request), |asker| title_for(request, asker));
    json!({
        "request_id": request.request_id,
        "title": title,
        "status": if request.work.gate_id.is_some() { "waiting" } else { request.status.as_str() },
        "role": request.route.current_role,
        "place": place.unwrap_or(0),
        "who": request.conversation.reply_route.author_name,
    })
}

/// The open requests, those that wait for a person first, then the newest first.
pub fn open(state: &State) -> impl Iterator<Item = &Request> {
    let requests = state.requests.values().map(Arc::as_ref);
    let mut all: Vec<&Request> = requests.filter(|it| !it.status.is_terminal()).collect();
    all.sort_by_key(|request| {
        let waits = request.work.gate_id.is_some() || request.blocked.is_some();
        (!waits, std::cmp::Reverse(request.created_at))
    });
    all.into_iter()
}

/// The first line of what was asked for, as everybody may see it: what somebody said to the team alone stays there.
#[must_use]
pub fn title(request: &Request) -> String {
    if request.conversation.reply_route.is_dm { "DM".to_owned() } else { own_title(request) }
}

/// The same where nobody but `reader` sees it: whoever asked, and the operator, see it whole.
#[must_use]
pub fn title_for(request: &Request, reader: &Actor) -> String {
    if request.conversation.reply_route.is_other(reader) {
        title(request)
    } else {
        own_title(request)
    }
}

fn own_title(request: &Request) -> String {
    request.scope.lines().next().unwrap_or_default().chars().take(80).collect()
}

/// Whether the checks that an effect runs wait for others that are under way to end.
#[must_use]
pub fn waits_for_check_run(state: &State, policy: &Policy, effect: &Effect) -> bool {
    let is_proof = |it: &&Arc<Effect>| matches!(it.kind, EffectKind::Checks { .. });
    let since = |it: &Effect| (it.planned_at, it.effect_id.clone());
    let before = state.effects.values().filter(is_proof).filter(|it| since(it) < since(effect));
    matches!(effect.kind, EffectKind::Checks { .. }) && before.count() >= policy.limits.check_runs
}

/// The messages that Discord refused, oldest first.
pub fn refused(state: &State) -> impl Iterator<Item = &Outgoing> + Clone {
    state.outgoing.values().map(Arc::as_ref).filter(|it| it.refused.is_some())
}

/// What Discord said about a message that it refused, and what the message is about.
#[must_use]
pub fn refusal(state: &State, outgoing: &Outgoing) -> String {
    let reason = outgoing.refused.as_ref().map(|it| it.reason.as_str()).unwrap_or_default();
    let about =
        outgoing.request_id.as_ref().and_then(|id| state.requests.get(id)).map(|it| title(it));
    match about {
        Some(title) if !title.is_empty() => format!("{reason} · {title}"),
        Some(_) | None => reason.to_owned(),
    }
}

/// The messages that Discord refused, in the values that answers show.
#[must_use]
pub fn refusals<'a>(state: &State, refused: impl Iterator<Item = &'a Outgoing> + Clone) -> Value {
    let lines: Vec<Value> = refused
        .clone()
        .take(LINES)
        .map(|it| json!({ "id": it.short_id(), "reason": refusal(state, it) }))
        .collect();
    json!({ "count": refused.count(), "lines": lines })
}

/// The active sprint, or else the last one, in the words in which the team answers plain questions.
#[must_use]
pub fn sprint(state: &State, zone: Tz) -> Value {
    let slot = state.scheduler.slots.next_slot_at;
    let slot = slot.map(|at| at.format_in(zone, "%Y-%m-%d %H:%M")).unwrap_or_default();
    let latest = || state.last_sprint();
    let Some(sprint) = state.active_sprint().or_else(latest) else {
        return json!({ "next_slot_at": slot });
    };
    let running: Vec<Value> = sprint
        .work
        .todos
        .iter()
        .filter(|todo| todo.progress.status == TodoStatus::Running)
        .take(LINES)
        .map(|todo| json!({ "title": todo.title, "request_id": todo.progress.request_id }))
        .collect();
    json!({
        "sprint_id": sprint.sprint_id,
        "milestone": sprint.milestone_title,
        "status": sprint.status,
        "phase": sprint.phase,
        "step": sprint.planning.step,
        "done": sprint.work.todos.iter().filter(|todo| todo.progress.status.is_success()).count(),
        "total": sprint.work.todos.len(),
        "running": running,
        "next_slot_at": slot,
    })
}
