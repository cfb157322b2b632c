//! What somebody answers who was asked whether several pieces of work are one request.

use serde_json::{Value, json};

use super::authorize::{Act as Action, Granted, Resource, act, authorize};
use super::decision::Answer;
use super::turn::Turn;
use super::{ending, handoff, intake, lanes, progress, reports, say, sprint};
use crate::domain::actor::Actor;
use crate::domain::block::BlockCode;
use crate::domain::criterion::Criterion;
use crate::domain::ids::{ChannelId, MessageId, RequestId};
use crate::domain::lifecycle::StepKind;
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::plan_decision::PlanDecision;
use crate::domain::request::{EventKind, ReplyRoute, Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::sprint::Kickoff;

/// The request that somebody means who answers what is asked about it, as far as it `waits` for that and the person may
/// answer.
pub(super) fn asked<A: Action>(
    turn: &Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    waits: impl FnOnce(&Request) -> bool,
    otherwise: &str,
) -> Result<(Request, Granted<A>), Answer> {
    let values = json!({ "request_id": id.as_str() });
    let refused =
        |key: &str, values| Err(Answer::Refused(say::content(key, turn.policy.language, values)));
    let Some(request) = turn.request(id) else { return refused("unknown_request", values) };
    let Ok(granted) = authorize(turn.policy, actor, Resource::Request(request)) else {
        return refused("cancel.not_yours", values);
    };
    if !waits(request) {
        return refused(otherwise, values);
    }
    Ok((request.clone(), granted))
}

/// A card that asks whether something is one request: where it is, and about which pieces.
pub(super) type PartsCard = (ChannelId, MessageId, u32);

/// Whether people are asked by this card whether it is one request.
fn is_asked((_, _, version): PartsCard) -> impl FnOnce(&Request) -> bool {
    move |request| {
        let waits = request.blocked.as_ref().is_some_and(|it| it.code == BlockCode::Parts);
        // Cards of an older build have no version.
        waits && (version == 0 || request.params.parts_version() == version)
    }
}

/// They are one request: it goes on as the orchestrator handed it on.
pub(super) fn together(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    card: PartsCard,
) -> Result<Answer, Answer> {
    let (request, granted) = asked::<act::Retry>(turn, actor, id, is_asked(card), "gate.stale")?;
    say::unbutton(turn, (card.0, card.1), Some(id));
    turn.record(id, EventKind::Retried, &granted.name(), "one request", Value::Null);
    if let Some(request) = turn.edit(id) {
        request.status = RequestStatus::Delegated;
        request.blocked = None;
    }
    match (&request.work.result, turn.step(id)) {
        // What the planner would have divided is built by the plan that it has made.
        (_, Some(step)) => {
            let stands = turn.stands(id);
            let from = stands.and_then(|(lifecycle, _)| lifecycle.step_of(StepKind::Plan).cloned());
            let waits = from.is_some_and(|from| progress::holds_plan(turn, id, &from, step.name));
            if !waits {
                progress::begin_current(turn, id);
            }
        }
        (Some(result), None) => reports::start_workflow(turn, id, result),
        (None, None) => handoff::delegate(turn, id, Role::Orchestrator, None, &request.scope, None),
    }
    Ok(Answer::Accepted)
}

/// Each is a request in a room of its own. Pieces of a message: the first stays with this one. Items of a plan: all begin
/// anew, and this one ends.
pub(super) fn split(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    card: PartsCard,
) -> Result<Answer, Answer> {
    let (request, granted) = asked::<act::Retry>(turn, actor, id, is_asked(card), "gate.stale")?;
    let route = &request.conversation.reply_route;
    // The request itself goes on as the first, or ends.
    let more = request.params.parts.len().saturating_sub(1);
    if let Some(limit) = intake::too_many(turn, route.author_id, more) {
        let language = request.conversation.language;
        let values = json!({ "limit": limit });
        return Err(Answer::Refused(say::content("too_many", language, values)));
    }
    if !request.params.proposed_items.is_empty() {
        say::unbutton(turn, (card.0, card.1), Some(id));
        turn.record(id, EventKind::Split, &granted.name(), "several requests", Value::Null);
        let parts = request.params.parts.iter();
        let all: Vec<String> = parts.map(|part| begin(turn, &request, part).to_string()).collect();
        note_goes_on_elsewhere(turn, id);
        // What was made for the whole ends with it.
        let values = json!({ "request_id": id.as_str(), "others": all });
        ending::end(turn, id, RequestStatus::Completed, "final.as_requests", values);
        return Ok(Answer::Accepted);
    }
    let mut parts = request.params.parts.iter();
    let Some(first) = parts.next() else { return Err(Answer::Ignored("it is one piece of work")) };
    say::unbutton(turn, (card.0, card.1), Some(id));
    turn.record(id, EventKind::Retried, &granted.name(), "several requests", Value::Null);
    note_goes_on_elsewhere(turn, id);
    lanes::read_signals(turn, id);
    if let Some(request) = turn.edit(id) {
        request.scope.clone_from(first);
        request.body.clone_from(first);
        request.work.persons_criteria = Criterion::manual_lines(first);
        request.params.parts = vec![first.clone()];
    }
    handoff::delegate(turn, id, Role::Orchestrator, None, first, None);
    let others: Vec<String> = parts.map(|part| begin(turn, &request, part).to_string()).collect();
    let values = json!({ "request_id": id.as_str(), "others": others });
    say::in_room(turn, id, Voice::Team, Priority::Progress, "parts.split", values);
    Ok(Answer::Accepted)
}

/// They are the items of a sprint, which begins, and goes on with what the planner has made of the request.
pub(super) fn as_sprint(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    card: PartsCard,
) -> Result<Answer, Answer> {
    let (request, granted) = asked::<act::Retry>(turn, actor, id, is_asked(card), "gate.stale")?;
    let items = &request.params.proposed_items;
    if items.is_empty() {
        return Err(Answer::Ignored("nobody has planned items"));
    }
    let decided: Vec<String> =
        request.work.decisions.iter().filter_map(PlanDecision::line).collect();
    let said = request.params.followups.iter().filter(|words| !words.at_gate);
    let said = said.map(|words| format!("{}: {}", words.author_name, words.body)).collect();
    // What was decided is short, and not cut off where the rest is long.
    let brief = [decided, vec![request.body.clone()], said].concat().join("\n");
    let kickoff = Kickoff {
        milestone: say::title(&request.scope),
        brief,
        requirements: Vec::new(),
        artifacts: request.artifacts.clone(),
        missing_files: 0,
        request_text: request.body.clone(),
        source_request_id: Some(id.clone()),
        reply_route: request.conversation.reply_route.clone(),
        language: Some(request.conversation.language),
    };
    let said = sprint::commands::may(turn, actor)
        .and_then(|may| sprint::start_with_items(turn, &may, kickoff, (&request, items)));
    let (_, values) = said.map_err(|(key, values)| {
        Answer::Refused(say::content(key, request.conversation.language, values))
    })?;
    say::unbutton(turn, (card.0, card.1), Some(id));
    turn.record(id, EventKind::Split, &granted.name(), "a sprint", Value::Null);
    note_goes_on_elsewhere(turn, id);
    ending::end(turn, id, RequestStatus::Completed, "final.as_sprint", values);
    Ok(Answer::Accepted)
}

fn note_goes_on_elsewhere(turn: &mut Turn<'_>, id: &RequestId) {
    if let Some(request) = turn.edit(id) {
        request.outcome.goes_on_elsewhere = true;
    }
}

/// Begins a request for one piece of another one's message; what came with that belongs to each.
fn begin(turn: &mut Turn<'_>, of: &Request, part: &str) -> RequestId {
    // The message itself stays with the first: what is edited in it is for that one.
    let route = ReplyRoute { message_id: None, ..of.conversation.reply_route.clone() };
    // Where the whole has no room, its parts have none.
    let target = say::room_channel(&route).filter(|_| of.conversation.room.is_some());
    let language = of.conversation.language;
    // What the whole message says counts for each.
    let mut signals = of.route.signals.clone();
    signals.extend(turn.policy.routes.signals_in(&of.body));
    let id = intake::begin(turn, part, route, language, None);
    if let Some(request) = turn.edit(&id) {
        request.artifacts.clone_from(&of.artifacts);
        request.route.signals.clone_from(&signals);
        request.params.parts = vec![part.to_owned()];
        // What the planner has made of the whole is no person's word.
        let is_planned = !of.params.proposed_items.is_empty();
        let own = of.params.persons_words.clone();
        request.params.persons_words = own.or_else(|| is_planned.then(|| of.body.clone()));
        request.params.followups.clone_from(&of.params.followups);
        request.params.others_wrote = of.params.others_wrote;
        request.params.other_askers.clone_from(&of.params.other_askers);
        request.params.follows_request_id.clone_from(&of.params.follows_request_id);
    }
    let values = json!({ "request_id": id.as_str(), "of": of.request_id.as_str(), "text": part });
    if let Some(target) = target {
        say::post_for_room(turn, &id, target, ("parts.begun", values));
    }
    id
}
