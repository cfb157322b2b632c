//! The lane of a request: how it is chosen, what its steps look like, and when its change is more than it is for.

use serde::Serialize;
use serde_json::{Value, json};

use super::gates::guards::machinery;
use super::intent;
use super::lifecycle::{self, WorkflowDecision};
use super::turn::Turn;
use crate::domain::evidence::Evidence;
use crate::domain::gate::{Stance, WayAhead};
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::intent::Intent;
use crate::domain::lifecycle::{Lifecycle, Step, StepKind, StepName};
use crate::domain::outgoing::LaneMenu;
use crate::domain::policy::Policy;
use crate::domain::request::{EventKind, Request, RequestStatus, RequestWork};
use crate::domain::result::RequestIntent;
use crate::domain::role::Role;
use crate::domain::routes::{Lane, LaneChoice, LaneSource, Routes, WorkSize};
use crate::domain::usage::Usage;
use crate::domain::workflow::WorkflowState;

/// The lane of work, by what the rules and the orchestrator take it for: where they differ the longer one, and where
/// nobody is sure the one that the routes have for that.
#[must_use]
pub fn choose(
    routes: &Routes,
    by_rules: Option<Intent>,
    said: Option<RequestIntent>,
) -> LaneChoice {
    let rules = by_rules.map(|intent| routes.lane(intent, WorkSize::Normal));
    let told = said.map(|said| routes.lane(said.intent, said.size));
    let is_sure = said.is_some_and(|said| said.confidence >= routes.confidence);
    let same = by_rules.is_some() && by_rules == said.map(|said| said.intent);
    let (lane, source) = match (rules, told) {
        // By its size alone nobody who is not sure makes it shorter.
        (Some(rules), Some(told)) if same => {
            (if is_sure { told } else { rules.max(told) }, LaneSource::Both)
        }
        // Nor makes work of a question by the shortest lane.
        (Some(rules), Some(told)) if rules == Lane::Answer && !is_sure => {
            (told.max(routes.unsure), LaneSource::Unsure)
        }
        (Some(rules), Some(told)) => (rules.max(told), LaneSource::Longer),
        (Some(rules), None) => (rules, LaneSource::Rules),
        (None, Some(told)) if is_sure => (told, LaneSource::Orchestrator),
        (None, told) => (told.unwrap_or(Lane::Answer).max(routes.unsure), LaneSource::Unsure),
    };
    // Who reads it as something to answer and still hands it on as work is not sure of it.
    let (lane, source) = match lane {
        Lane::Answer => (routes.unsure, LaneSource::Unsure),
        Lane::Fast | Lane::Quick | Lane::Standard | Lane::Full => (lane, source),
    };
    let by_orchestrator = said.map(|said| said.intent);
    LaneChoice { lane, source, by_rules, by_orchestrator, shortened: None }
}

/// Notes the signals of the routes that are in a request's words, and in what was written to it since, beside those that
/// it has of the words that it comes of.
pub(super) fn read_signals(turn: &mut Turn<'_>, id: &RequestId) -> Vec<String> {
    let routes = &turn.policy.routes;
    let Some(request) = turn.edit(id) else { return Vec::new() };
    let asked = request.params.followups.iter().filter(|words| !words.at_gate || words.guides);
    let words = asked.map(|words| words.body.as_str()).chain([request.body.as_str()]);
    for name in words.flat_map(|words| routes.signals_in(words)).collect::<Vec<_>>() {
        if !request.route.signals.contains(&name) {
            request.route.signals.push(name);
        }
    }
    request.route.signals.clone()
}

/// The words of a request are others: what their signals ask for is added to the way that is still ahead of it, unless a
/// person has shortened that. Who builds already is told the words, and no plan is made for them.
pub(super) fn follow_new_signals(turn: &mut Turn<'_>, id: &RequestId) {
    let known = turn.request(id).map(|it| it.route.signals.len()).unwrap_or_default();
    let signals = read_signals(turn, id);
    let choice = turn.request(id).and_then(|request| request.route.lane);
    let Some(choice) = choice.filter(|_| signals.len() > known) else { return };
    let routes = &turn.policy.routes;
    let is_short = choice.is_shortened();
    let choice = if is_short { choice } else { with_signals(routes, &signals, choice) };
    let choice = with_plan(turn, id, choice);
    let Some((lifecycle, mut state)) = turn.stands(id) else { return };
    let signals = if is_short { &[] } else { signals.as_slice() };
    let still = routes.left_out_with(choice.lane, signals, &lifecycle);
    // A route only grows.
    state.route.left_out.retain(|step| still.contains(step));
    state.route.wanted.extend(advice_of(routes, signals, &lifecycle));
    if let Some(request) = turn.edit(id) {
        request.params.workflow = Some(state);
        request.route.lane = Some(choice);
    }
    turn.record(id, EventKind::Routed, "runtime", choice.lane.as_str(), json!(choice));
}

/// The advice that signals ask for.
#[must_use]
pub fn advice_of(routes: &Routes, signals: &[String], lifecycle: &Lifecycle) -> Vec<StepName> {
    let added = routes.signals_of(signals).flat_map(|signal| &signal.add).copied();
    let kind = |step: StepName| lifecycle.step(step).map(|step| step.kind);
    added.filter(|step| kind(*step) == Some(StepKind::Advice)).collect()
}

/// A lane that is as long as the signals of the message ask for.
#[must_use]
pub fn with_signals(routes: &Routes, signals: &[String], choice: LaneChoice) -> LaneChoice {
    let shortest = routes.signals_of(signals).filter_map(|signal| signal.lane).max();
    match shortest.filter(|lane| *lane > choice.lane) {
        // Where nobody is sure, people are asked all the same.
        Some(lane) => match choice.source {
            LaneSource::Longer | LaneSource::Unsure => LaneChoice { lane, ..choice },
            LaneSource::Person
            | LaneSource::Both
            | LaneSource::Rules
            | LaneSource::Orchestrator
            | LaneSource::Signal
            | LaneSource::Outgrown => LaneChoice { lane, source: LaneSource::Signal, ..choice },
        },
        None => choice,
    }
}

/// What is settled about a plan: the strictest of what its lane and the signals of its message say.
pub(super) fn plan_stance(policy: &Policy, lane: Option<LaneChoice>, signals: &[String]) -> Stance {
    let said = policy.routes.signals_of(signals).filter_map(|signal| signal.plan);
    let all = said.chain(std::iter::once(policy.gates.of_plan(lane)));
    all.min_by_key(|stance| stance.strictness()).unwrap_or_default()
}

/// A person names the lane of a request that is new.
pub(super) fn name(turn: &mut Turn<'_>, id: &RequestId, lane: Lane) {
    let signals = read_signals(turn, id);
    let Some(request) = turn.request(id) else { return };
    let (routes, by_rules) = (&turn.policy.routes, intent::read(&request.body).intent);
    let own = with_signals(routes, &signals, choose(routes, by_rules, None));
    let shortened = Some(lane < own.lane);
    if let Some(request) = turn.edit(id) {
        let named = LaneChoice::named(lane, None);
        request.route.lane = Some(LaneChoice { by_rules, shortened, ..named });
    }
}

/// The orchestrator hands a request on: its lane is chosen, unless a person has named one, and its first step begins.
pub(super) fn begin(
    turn: &mut Turn<'_>,
    id: &RequestId,
    said: Option<RequestIntent>,
) -> WorkflowDecision {
    let named = turn.request(id).and_then(|request| request.route.lane);
    let text = turn.request(id).map(|request| request.body.as_str()).unwrap_or_default();
    let read = intent::read(text).intent;
    let routes = &turn.policy.routes;
    let signals = read_signals(turn, id);
    let choice = match named {
        Some(named) => LaneChoice { by_rules: named.by_rules.or(read), ..named },
        None => with_signals(routes, &signals, choose(routes, read, said)),
    };
    // What is written to the planner is planned.
    let addressed = turn.request(id).and_then(|request| request.params.user_requested_role);
    let plans = addressed == Some(Role::Planner) && named.is_none();
    let lane = if plans { choice.lane.max(Lane::Standard) } else { choice.lane };
    let choice = with_plan(turn, id, LaneChoice { lane, ..choice });
    let mut state = turn.begin_request();
    let lifecycle = &turn.policy.lifecycle;
    // A person who shortens the lane is not overruled; a request for changes takes the lane that it comes of.
    let is_short = choice.is_shortened()
        && !turn.request(id).is_some_and(|request| request.work.wants_changes);
    let signals = if is_short { &[] } else { signals.as_slice() };
    let left_out = routes.left_out_with(choice.lane, signals, lifecycle);
    state.route.wanted.extend(advice_of(routes, signals, lifecycle));
    let decision = lifecycle::begin(lifecycle, state, left_out);
    if let Some(request) = turn.edit(id) {
        request.route.lane = Some(choice);
    }
    turn.record(id, EventKind::Routed, "runtime", choice.lane.as_str(), json!(choice));
    decision
}

/// Where a plan is asked about, and nobody has said yes to what is planned now, there has to be one.
pub(super) fn with_plan(turn: &Turn<'_>, id: &RequestId, choice: LaneChoice) -> LaneChoice {
    let request = turn.request(id);
    let work = request.map(|request| &request.work);
    let signals = request.map(|it| it.route.signals.as_slice()).unwrap_or_default();
    let asks = plan_stance(turn.policy, Some(choice), signals) != Stance::Allow
        || work.is_some_and(|work| work.wants_changes);
    let accepted = work.is_some_and(RequestWork::is_plan_approved);
    let lane = if asks && !accepted { choice.lane.max(Lane::Standard) } else { choice.lane };
    LaneChoice { lane, ..choice }
}

/// Why a change is more than the fast lane is for; `None` where it is not.
pub(super) fn outgrown(turn: &Turn<'_>, request: &Request) -> Option<Value> {
    let fast = &turn.policy.routes.fast;
    let candidate = request.work.candidate.as_ref()?;
    let files = candidate.paths.len();
    let lines = candidate.added_lines + candidate.removed_lines;
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let mut paths = candidate.paths.iter().map(|changed| changed.path.as_str());
    let dependency = paths.find(|path| fast.dependencies.contains(&name(path)));
    let evidence = request.work.evidence.as_ref().filter(|it| it.commit == candidate.commit);
    let tests =
        |it: &Evidence| it.checks.iter().filter_map(|check| check.tests_passed).sum::<u64>();
    let why = if files > fast.most_files {
        json!({ "why": "files", "count": files, "most": fast.most_files })
    } else if lines > fast.most_lines {
        json!({ "why": "lines", "count": lines, "most": fast.most_lines })
    } else if let Some(path) = machinery(&turn.policy.gates, candidate) {
        json!({ "why": "guarded", "path": path })
    } else if let Some(path) = dependency {
        json!({ "why": "dependency", "path": path })
    } else if !turn.policy.has_checks() {
        json!({ "why": "unproven" })
    } else if evidence.is_some_and(Evidence::is_red_before) {
        json!({ "why": "not_green" })
    } else if fast.tests && evidence.is_some_and(|it| tests(it) == 0) {
        json!({ "why": "untested" })
    } else {
        return None;
    };
    Some(why)
}

/// How a step of a request stands on its card.
fn place_of(
    lifecycle: &Lifecycle,
    state: &WorkflowState,
    name: StepName,
    status: RequestStatus,
) -> &'static str {
    let (is_done, is_over) = (status == RequestStatus::Committed, status.is_terminal());
    let at = |name| lifecycle.steps().position(|step| step.name == name);
    let is_left_out = lifecycle.step(name).is_some_and(|step| state.route.leaves_out(step));
    let is_passed = state.route.passed_over.contains(&name);
    if is_passed || (is_left_out && at(name) >= at(state.step)) {
        "left_out"
    } else if !is_over && name == state.step {
        "current"
    } else if is_done || at(name) < at(state.step) {
        "done"
    } else {
        "ahead"
    }
}

/// A step, and in one word where its request stands to it.
#[derive(Debug, Serialize)]
pub(super) struct StepOfCard {
    step: StepName,
    place: &'static str,
}

/// The steps of a request as a line of its card; none where every step is taken, as it always was.
pub(super) fn line(turn: &Turn<'_>, request: &Request) -> Vec<StepOfCard> {
    let state = request.params.workflow.as_ref().filter(|_| request.route.lane.is_some());
    let Some(state) = state else { return Vec::new() };
    let lifecycle = turn.lifecycle_of(state);
    // What is only gone to when it is asked for or sent back is shown where it is under way.
    let is_advice = |step: &Step| step.kind == StepKind::Advice;
    let first = |step: &Step| lifecycle.step_of(step.kind).is_some_and(|it| it.name == step.name);
    lifecycle
        .steps()
        .filter(|step| (!is_advice(step) && first(step)) || step.name == state.step)
        .map(|step| {
            let place = place_of(lifecycle, state, step.name, request.status);
            StepOfCard { step: step.name, place }
        })
        .collect()
}

/// The way ahead of a request: its roles' turns, and what they may cost by what those before did.
pub(super) fn ahead(turn: &Turn<'_>, request: &Request) -> Option<WayAhead> {
    let (lifecycle, state) = turn.stands(&request.request_id)?;
    let turns = turns_ahead(&lifecycle, &state);
    Some(way_ahead(turns, request.work.usage, request.work.spent.turns))
}

/// The way ahead of a sprint: the turns for all its todos, and what they may cost by what planning did.
pub(super) fn ahead_of_sprint(turn: &Turn<'_>, id: &SprintId) -> Option<WayAhead> {
    let sprint = turn.sprint(id)?;
    let (todos, had) = (sprint.work.todos.len(), sprint.planning.iterations.len());
    let lifecycle = &turn.policy.lifecycle;
    let state = WorkflowState::begin(lifecycle, lifecycle.begin_todo);
    // The planner looks at each once more.
    let turns = todos * (1 + turns_ahead(lifecycle, &state));
    let had = u32::try_from(had).unwrap_or(u32::MAX);
    Some(way_ahead(turns, turn.spending().of_sprint(id).used, had))
}

fn turns_ahead(lifecycle: &Lifecycle, state: &WorkflowState) -> usize {
    let is_open = |place| matches!(place, "current" | "ahead");
    let open =
        |step: &&Step| is_open(place_of(lifecycle, state, step.name, RequestStatus::Delegated));
    lifecycle.usual_steps().filter(open).count()
}

/// `turns` that cost what `had` turns before them cost.
fn way_ahead(turns: usize, used: Usage, had: u32) -> WayAhead {
    let each = if had > 0 { used.cost_usd / f64::from(had) } else { 0.0 };
    let ahead = each * f64::from(u32::try_from(turns).unwrap_or(u32::MAX));
    WayAhead { turns, usd: (ahead > 0.0).then(|| format!("{ahead:.2}")) }
}

/// Whether a person may still say that they want nothing but an answer.
pub(super) fn may_only_be_answered(request: &Request) -> bool {
    let begun = request.is_built() || request.work.gate_id.is_some();
    let is_work = request.route.lane.is_some_and(|choice| choice.lane != Lane::Answer);
    !request.status.is_terminal() && is_work && !begun
}

/// The lanes that a person may choose from; none where the way is not theirs to choose.
pub(super) fn menu(request: &Request) -> Option<LaneMenu> {
    let choice = request.route.lane.filter(|choice| choice.lane != Lane::Answer)?;
    let is_open = !request.status.is_terminal();
    is_open.then(|| LaneMenu { request_id: request.request_id.clone(), chosen: choice.lane })
}

/// The steps that a request does not take and that are still ahead of it.
pub(super) fn addable<'l>(
    lifecycle: &'l Lifecycle,
    state: &'l WorkflowState,
) -> impl Iterator<Item = &'l StepName> {
    let at = |name| lifecycle.steps().position(|step| step.name == name);
    let here = at(state.step);
    let plans = lifecycle.step(state.step).is_some_and(|step| step.kind == StepKind::Plan)
        || lifecycle.steps().any(|step| {
            step.kind == StepKind::Plan && at(step.name) > here && !state.route.leaves_out(step)
        });
    let is_open = move |step: &&Step| match step.kind {
        // Advice is asked for by a plan.
        StepKind::Advice => plans && !state.route.wanted.contains(&step.name),
        StepKind::Research
        | StepKind::Plan
        | StepKind::Guidance
        | StepKind::Change
        | StepKind::Review
        | StepKind::Verdict
        | StepKind::Land
        | StepKind::Sprint(_) => state.route.leaves_out(step) && at(step.name) > here,
    };
    lifecycle.steps().filter(is_open).map(|step| &step.name)
}

/// The step that a word means among those that can be added: its name, or a part of only one name.
pub(super) fn step_named(
    lifecycle: &Lifecycle,
    state: &WorkflowState,
    word: &str,
) -> Option<StepName> {
    let word = word.trim().to_lowercase();
    let mut found = addable(lifecycle, state).filter(|name| name.as_str() == word);
    if let Some(name) = found.next() {
        return Some(*name);
    }
    let mut like = addable(lifecycle, state).filter(|name| {
        word.len() > 1 && name.as_str().split('_').any(|part| part.starts_with(word.as_str()))
    });
    match (like.next(), like.next()) {
        (Some(one), None) => Some(*one),
        (Some(_) | None, _) => None,
    }
}
