//! People change the way of a request: longer, shorter, or nothing but an answer; where nobody is sure of it, they are
//! asked.

use serde_json::{Value, json};

use super::authorize::{Granted, Resource, act, authorize};
use super::decision::Answer;
use super::lanes::{addable, may_only_be_answered, step_named};
use super::say::CatalogText;
use super::turn::Turn;
use super::{gates, handoff, lanes, progress, questions, say, train};
use crate::domain::actor::Actor;
use crate::domain::envelope::{Envelope, EnvelopeFolder};
use crate::domain::ids::RequestId;
use crate::domain::incoming::RouteChange;
use crate::domain::lifecycle::{StepKind, StepName};
use crate::domain::outgoing::{ButtonAct, Menu, Priority, Voice};
use crate::domain::request::{EventKind, Request, SelectionSource};
use crate::domain::result::RequestIntent;
use crate::domain::role::Role;
use crate::domain::routes::{Lane, LaneChoice, LaneSource, WorkSize};

/// Whoever asked may choose where the rules and the orchestrator differ about the lane, or nobody is sure of it. Nothing
/// waits for that: the longer way is begun, and may be made shorter.
pub(super) fn ask_where_unsure(turn: &mut Turn<'_>, id: &RequestId, said: Option<RequestIntent>) {
    let Some(request) = turn.request(id) else { return };
    let (Some(choice), Some(menu)) = (request.route.lane, lanes::menu(request)) else { return };
    let routes = &turn.policy.routes;
    let by_rules = choice.by_rules.map(|intent| routes.lane(intent, WorkSize::Normal));
    let told = said.map(|said| routes.lane(said.intent, said.size));
    let is_asked = match choice.source {
        LaneSource::Longer => by_rules != told,
        LaneSource::Unsure => said.is_some(),
        LaneSource::Person
        | LaneSource::Both
        | LaneSource::Rules
        | LaneSource::Orchestrator
        | LaneSource::Signal
        | LaneSource::Outgrown => false,
    };
    if !is_asked || request.todo_id.is_some() {
        return;
    }
    let values = json!({
        "by_rules": choice.by_rules, "by_orchestrator": choice.by_orchestrator,
        "confidence": said.map_or(0, |it| it.confidence), "lane": choice.lane,
    });
    let buttons = may_only_be_answered(request).then_some(ButtonAct::Answer);
    let below = (buttons.as_slice(), 0, vec![Menu::Lane(menu)]);
    say::ask(turn, id, ("room.which_lane", values), below, None);
}

/// A person changes the way of a request.
pub(super) fn change(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    change: RouteChange,
) -> Answer {
    let Some(request) = turn.request(id).cloned() else {
        let values = json!({ "request_id": id.as_str() });
        return Answer::Refused(say::content("unknown_request", turn.policy.language, values));
    };
    let language = request.conversation.language;
    let said = changed(turn, actor, &request, change);
    match said {
        Ok((key, values)) => Answer::Say(say::content(key, language, values)),
        Err((key, values)) => Answer::Refused(say::content(key, language, values)),
    }
}

fn changed(
    turn: &mut Turn<'_>,
    actor: &Actor,
    request: &Request,
    change: RouteChange,
) -> Result<CatalogText, CatalogText> {
    let id = &request.request_id;
    let refused = || ("route.not_yours", json!({ "request_id": id.as_str() }));
    let fixed = || ("route.fixed", json!({ "request_id": id.as_str() }));
    if request.status.is_terminal() {
        return Err((
            "cancel.ended",
            json!({ "request_id": id.as_str(), "status": request.status }),
        ));
    }
    let policy = turn.policy;
    let may_lengthen = || -> Result<Granted<act::Lengthen>, CatalogText> {
        authorize(policy, actor, Resource::Request(request)).map_err(|_| refused())
    };
    // What a sprint plans is its own matter.
    if request.todo_id.is_some() || request.duty().is_some() {
        return Err(fixed());
    }
    match change {
        RouteChange::Lane(Lane::Answer) => just_answer(turn, &may_lengthen()?, request),
        RouteChange::Lane(lane) => {
            let now = chosen(request).map_or(Lane::Full, |choice| choice.lane);
            let by = if lane < now {
                let granted = authorize(policy, actor, Resource::Request(request));
                let granted: Granted<act::Shorten> =
                    granted.map_err(|_| ("route.shorter_not_yours", json!({ "lane": lane })))?;
                granted.name()
            } else {
                may_lengthen()?.name()
            };
            take_lane(turn, request, lane, &by)
        }
        RouteChange::Add(word) => {
            let granted = may_lengthen()?;
            let (lifecycle, mut state) = turn.stands(id).ok_or_else(fixed)?;
            let Some(step) = step_named(&lifecycle, &state, &word) else {
                let open: Vec<&str> = addable(&lifecycle, &state).map(StepName::as_str).collect();
                let values = json!({ "step": say::cut(&word, 60), "steps": open });
                return Err(("route.no_step", values));
            };
            let is_advice = lifecycle.step(step).is_some_and(|it| it.kind == StepKind::Advice);
            state.route.left_out.remove(&step);
            if is_advice {
                state.route.wanted.insert(step);
            }
            if let Some(request) = turn.edit(id) {
                request.params.workflow = Some(state);
            }
            turn.record(id, EventKind::Routed, &granted.name(), step.as_str(), Value::Null);
            Ok(("route.added", json!({ "request_id": id.as_str(), "step": step })))
        }
    }
}

/// The lane by which a request is worked on; none where a person wants an answer instead, which says nothing of how
/// work may be done.
fn chosen(request: &Request) -> Option<LaneChoice> {
    request.route.lane.filter(|choice| choice.lane != Lane::Answer)
}

fn take_lane(
    turn: &mut Turn<'_>,
    request: &Request,
    lane: Lane,
    by: &str,
) -> Result<CatalogText, CatalogText> {
    let id = &request.request_id;
    let wanted = lane;
    let choice = lanes::with_plan(turn, id, LaneChoice::named(lane, request.route.lane));
    let lane = choice.lane;
    let is_shorter = chosen(request).is_some_and(|choice| lane < choice.lane);
    // Before a lane is chosen every shorter one than the longest is a shortening, as it is for the right to it.
    let is_shortened = match chosen(request) {
        Some(before) => is_shorter || before.is_shortened() && before.lane == lane,
        None => lane < Lane::Full,
    };
    let choice = LaneChoice { shortened: Some(is_shortened), ..choice };
    let wanted = Some(wanted).filter(|wanted| *wanted != lane);
    let lands = turn.step(id).is_some_and(|step| step.kind == StepKind::Land);
    let mut goes_back = false;
    if lands && train::is_merging(turn, id) {
        return Err(("words_too_late", json!({ "request_id": id.as_str() })));
    }
    if let Some((lifecycle, mut state)) = turn.stands(id) {
        // Only who may shorten the way drops what the signals of the message added to it.
        let signals = if is_shorter { &[] } else { request.route.signals.as_slice() };
        if is_shorter {
            let advice = lanes::advice_of(&turn.policy.routes, &request.route.signals, &lifecycle);
            state.route.wanted.retain(|step| !advice.contains(step));
        }
        let left_out = turn.policy.routes.left_out_with(lane, signals, &lifecycle);
        let left_out = match is_shorter {
            true => left_out,
            // Nor the steps that somebody added.
            false => &left_out & &state.route.left_out,
        };
        let judges = |step: &StepName| lifecycle.step(*step).is_some_and(|step| step.kind.judges());
        let is_judged_by_more = state.route.left_out.difference(&left_out).any(judges);
        state.route.left_out = left_out;
        // What was sent back on the way so far is not let through by leaving out who would judge it next. At its end it
        // goes back where somebody on the longer way has not judged it.
        state.route.judge_again |= match lands {
            true => is_judged_by_more,
            false => request.work.candidate.is_some(),
        };
        goes_back = lands && is_judged_by_more;
        if let Some(request) = turn.edit(id) {
            request.params.workflow = Some(state);
        }
    }
    if let Some(request) = turn.edit(id) {
        request.route.lane = Some(choice);
    }
    turn.record(id, EventKind::Routed, by, lane.as_str(), json!(choice));
    let values = json!({ "lane": lane, "by": by, "wanted": wanted });
    say::in_room(turn, id, Voice::Team, Priority::Progress, "room.lane", values);
    let waits = request.work.gate_id.is_some();
    if goes_back && (waits || train::leave(turn, id)) {
        // Whoever judges it now does so before it lands.
        gates::card::void(turn, id);
        progress::begin(turn, id);
    }
    Ok(("route.lane", json!({ "request_id": id.as_str(), "lane": lane, "wanted": wanted })))
}

/// Nothing is to be built: whoever works on it is called back, and the orchestrator answers.
fn just_answer(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Lengthen>,
    request: &Request,
) -> Result<CatalogText, CatalogText> {
    let id = &request.request_id;
    if !may_only_be_answered(request) || turn.has_effect(|kind| kind.change_of() == Some(id)) {
        return Err(("route.too_late", json!({ "request_id": id.as_str() })));
    }
    let before = turn.before();
    let run = turn.edit(id).and_then(|request| request.work.active_run.take());
    // The envelope of a run under way is put away when the run ends.
    let is_worked =
        |envelope: &Envelope| before.runs.values().any(|run| run.envelope_id == envelope.relay_id);
    let its = before.envelopes.values().filter(|it| it.envelope.request_id == *id);
    for envelope in its.filter(|it| !is_worked(it)) {
        turn.put_away(envelope, EnvelopeFolder::Archive, "only an answer is wanted");
    }
    if let Some(run) = run {
        turn.stop_run(run);
    }
    questions::planned_anew(turn, id);
    if let Some(request) = turn.edit(id) {
        request.route.lane = Some(LaneChoice::named(Lane::Answer, request.route.lane));
        request.params.workflow = None;
        request.chosen_by(SelectionSource::WorkflowContract);
    }
    turn.record(id, EventKind::Routed, &granted.name(), Lane::Answer.as_str(), Value::Null);
    let why =
        "A person wants an answer and nothing else: answer in your summary, and hand nothing on.";
    handoff::delegate(turn, id, Role::Orchestrator, None, why, None);
    Ok(("route.answering", json!({ "request_id": id.as_str() })))
}
