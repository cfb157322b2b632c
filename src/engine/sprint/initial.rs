//! How a sprint comes to its plan (`spec/teams.md` 9.4): research, then five steps of the planner, each
//! with its validation. The step stands in the record, so that a restart goes on with it.

use serde_json::{Value, json};

use super::backlog::MergeResult;
use super::duties::{self, DutyRequest};
use super::{closing, names, planning, position, queue, research, say};
use crate::domain::effect::EffectKind;
use crate::domain::ids::{ItemId, SprintId};
use crate::domain::item::{Item, ItemSource};
use crate::domain::lifecycle::{Step, StepOutcome};
use crate::domain::request::Request;
use crate::domain::result::RoleResult;
use crate::domain::sprint::{
    CloseoutStatus, DutyDetails, Phase, PlanningIteration, PlanningStep, PrepassStatus,
    ResearchPrepass, SprintEventKind, SprintStatus,
};
use crate::engine::turn::Turn;

/// Whether the project was looked at before the team changes it; else that is what comes first.
pub(super) fn has_baseline(turn: &mut Turn<'_>, id: &SprintId) -> bool {
    if turn.sprint(id).is_some_and(|sprint| sprint.work.git_baseline.is_some()) {
        return true;
    }
    let is_mine =
        |kind: &EffectKind| matches!(kind, EffectKind::Baseline { sprint_id } if sprint_id == id);
    if !turn.has_effect(is_mine) {
        turn.plan(EffectKind::Baseline { sprint_id: id.clone() });
    }
    false
}

pub(super) fn research(turn: &mut Turn<'_>, id: &SprintId, step: &Step) {
    let milestone = turn.sprint(id).map(|sprint| sprint.milestone_title.clone());
    let (duty, scope) = (DutyDetails::ResearchPrepass, milestone.unwrap_or_default());
    duties::ask(turn, DutyRequest { duty, step, sprint: Some(id), scope });
}

fn no_research() -> ResearchPrepass {
    ResearchPrepass {
        request_id: None,
        status: PrepassStatus::NotConfigured,
        reason_code: "not_configured".to_owned(),
        subject: String::new(),
        report_artifact: String::new(),
        headline: String::new(),
        planner_guidance: String::new(),
        backing_sources: Vec::new(),
    }
}

fn keep_prepass(turn: &mut Turn<'_>, id: &SprintId, prepass: ResearchPrepass) {
    let word = prepass.status.as_str();
    let payload = json!({ "reason_code": prepass.reason_code });
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.planning.research = Some(prepass);
    }
    turn.sprint_event(id, SprintEventKind::ResearchPrepassCompleted, word, payload);
}

/// Research is over. A failure costs the sources, not the sprint (`spec/teams.md` 13.A #28).
pub(super) fn researched(turn: &mut Turn<'_>, request: &Request) {
    let Some(id) = duties::awaited_by(turn, request) else { return };
    let mut prepass = match duties::outcome(request) {
        Ok(result) => research::prepass(result),
        Err(reason) => ResearchPrepass {
            status: PrepassStatus::Failed,
            reason_code: "failed".to_owned(),
            planner_guidance: crate::engine::say::cut(&reason, 600),
            ..no_research()
        },
    };
    prepass.request_id = Some(request.request_id.clone());
    keep_prepass(turn, &id, prepass);
    position::done(turn, &id);
}

/// Asks the planner for a step.
pub(super) fn plan(turn: &mut Turn<'_>, id: &SprintId, step: &Step, part: PlanningStep) {
    if turn.sprint(id).is_some_and(|sprint| sprint.planning.research.is_none()) {
        keep_prepass(turn, id, no_research());
    }
    let (number, of) = position::number(turn, id, part);
    let Some(sprint) = turn.sprint(id) else { return };
    let counter = step.on(StepOutcome::Again).and_then(|edge| edge.charge);
    let used = &sprint.planning.reopen_counts;
    let count = counter.and_then(|name| used.get(&name)).copied().unwrap_or(0);
    // The last step gets back what is found in the plan as a whole.
    let from_review = part == PlanningStep::TodoFinalization
        && sprint.planning.last_reopened == Some(part)
        && sprint.planning.last_reopen_request_id.is_none();
    let count = if from_review { count + sprint.planning.review.sent_back.max(1) } else { count };
    let reason = sprint.planning.last_reopen_reason.clone();
    let earlier = sprint.planning.last_reopen_request_id.clone();
    let scope = format!("{part} ({number}/{of}): {}", sprint.milestone_title);
    // Also where somebody has let it go on, and nothing is counted any more.
    let again = count > 0 || sprint.planning.last_reopened == Some(part);
    let duty = DutyDetails::Planning {
        initial_phase_step: part,
        initial_phase_reopen_count: count,
        initial_phase_reopen_reason: if again { reason } else { String::new() },
        reopen_of_request_id: earlier.filter(|_| again),
    };
    duties::ask(turn, DutyRequest { duty, step, sprint: Some(id), scope });
}

/// A planning step is over: its items are kept, it is judged, and the next one or the same one follows.
pub(super) fn planned(turn: &mut Turn<'_>, request: &Request) {
    let Some(step) = request.planning_step() else { return };
    let Some(id) = duties::awaited_by(turn, request) else { return };
    let outcome = duties::outcome(request).cloned();
    let mut problems = Vec::new();
    match &outcome {
        Ok(result) => {
            reframe(turn, &id, result);
            let before = planned_items(turn, &id);
            match keep_items(turn, &id, request, result) {
                Ok(_) if step == PlanningStep::TodoFinalization => {
                    leave_out(turn, &id, &before, result);
                }
                Ok(_) => {}
                Err(problem) => problems.push(problem),
            }
        }
        Err(reason) => {
            problems.push(format!("status: {}", crate::engine::say::cut(reason, 300)));
            let asked =
                request.work.result.as_ref().map(|result| &result.proposals.required_inputs);
            let asked = asked.and_then(|inputs| inputs.as_deref()).unwrap_or_default();
            let asked = asked.iter().filter(|input| !input.trim().is_empty());
            problems.extend(asked.map(|input| crate::engine::say::cut(input, 300)));
        }
    }
    let kept = problems.is_empty();
    if step == PlanningStep::TodoFinalization {
        problems.extend(queue::sync(turn, &id));
    }
    if let Ok(result) = &outcome {
        problems.extend(judge(turn, &id, step, result, kept));
    }
    note(turn, &id, step.as_str(), "initial", request, problems.is_empty());
    let (number, _) = position::number(turn, &id, step);
    say::step(turn, &id, step, number, request, &problems);
    if problems.is_empty() {
        if let Some(sprint) = turn.edit_sprint(&id) {
            sprint.planning.sent_back_with.clear();
        }
        position::done(turn, &id);
        if turn.sprint(&id).is_some_and(|sprint| sprint.phase == Phase::Ongoing) {
            ready(turn, &id);
        }
    } else {
        reopen(turn, &id, step, request, &problems);
    }
}

/// The items that are to be done in the sprint and that nobody has begun.
fn planned_items(turn: &Turn<'_>, id: &SprintId) -> Vec<ItemId> {
    let Some(sprint) = turn.sprint(id) else { return Vec::new() };
    let has_begun = |item: &ItemId| {
        let mut todos =
            sprint.work.todos.iter().filter(|todo| todo.backlog_id.as_ref() == Some(item));
        todos.any(|todo| todo.progress.started_at.is_some())
    };
    let mine =
        turn.items().into_values().map(|item| (&item.backlog_id, &item.planned_in_sprint_id));
    let mine = mine.filter(|(item, planned)| planned.as_ref() == Some(id) && !has_begun(item));
    mine.map(|(item, _)| item.clone()).collect()
}

/// Whoever chooses anew, because the choice came back, names each item of it: what they do not name any more is left out.
fn leave_out(turn: &mut Turn<'_>, id: &SprintId, before: &[ItemId], result: &RoleResult) {
    let came_back = turn.sprint(id).and_then(|sprint| sprint.planning.last_reopened);
    let items = result.proposals.backlog_items.as_deref().unwrap_or_default();
    let chooses =
        items.iter().any(|item| item.planned_in_sprint_id.as_deref() == Some(id.as_str()));
    // One that is only mended stays where it was.
    let chosen: Vec<&str> = items
        .iter()
        .filter(|item| item.planned_in_sprint_id.as_deref().is_none_or(|it| it == id.as_str()))
        .filter_map(|item| item.backlog_id.as_deref())
        .collect();
    if came_back != Some(PlanningStep::TodoFinalization) || !chooses {
        return;
    }
    for item in before.iter().filter(|item| !chosen.contains(&item.as_str())) {
        turn.edit_item(item, Item::leave_sprint);
    }
}

/// Takes over the milestone as the planner framed it.
fn reframe(turn: &mut Turn<'_>, id: &SprintId, result: &RoleResult) {
    let update = result.proposals.sprint_plan_update.as_ref();
    let title = update.map(|update| update.revised_milestone_title.as_str()).unwrap_or_default();
    let title = crate::engine::say::title(title);
    let zone = turn.zone();
    let Some(sprint) = turn.edit_sprint(id) else { return };
    if !title.is_empty() && title != sprint.milestone_title {
        sprint.milestone_title.clone_from(&title);
        let began = sprint.started_at.unwrap_or(crate::domain::time::Timestamp::from_millis(0));
        sprint.sprint_name = names::display_name(began, zone, &title);
    }
    for file in &result.artifacts {
        if !sprint.work.reference_artifacts.contains(file)
            && sprint.work.reference_artifacts.len() < 60
        {
            sprint.work.reference_artifacts.push(file.clone());
        }
    }
}

/// Merges the items of a planner's result, and says how many it changed; what is wrong with them is told
/// to the planner.
pub(super) fn keep_items(
    turn: &mut Turn<'_>,
    id: &SprintId,
    request: &Request,
    result: &RoleResult,
) -> Result<MergeResult, String> {
    let items = result.proposals.backlog_items.as_deref().unwrap_or_default();
    if items.is_empty() {
        return Ok(MergeResult::default());
    }
    let merged = queue::merge(
        turn,
        &json!({ "backlog_items": items }),
        ItemSource::Planner,
        Some(&request.request_id),
        Some(id),
    )
    .map_err(|error| format!("backlog_items: {error}"))?;
    kept(turn, id, request, &merged);
    Ok(merged)
}

/// Notes that items of a planner's result were merged.
pub(super) fn kept(turn: &mut Turn<'_>, id: &SprintId, request: &Request, merged: &MergeResult) {
    let payload = json!({
        "added": merged.added, "updated": merged.updated,
        "request_id": request.request_id.as_str(),
    });
    turn.sprint_event(id, SprintEventKind::PlanningSync, "backlog", payload);
}

fn judge(
    turn: &Turn<'_>,
    id: &SprintId,
    step: PlanningStep,
    result: &RoleResult,
    kept: bool,
) -> Vec<String> {
    let Some(sprint) = turn.sprint(id) else { return Vec::new() };
    let open: Vec<&Item> = turn.items().into_values().collect();
    let update = result.proposals.sprint_plan_update.clone().unwrap_or_default();
    planning::problems(step, sprint, &open, result.status, &update, kept)
}

/// Keeps what a planning request came to, one entry a request and phase.
pub(super) fn note(
    turn: &mut Turn<'_>,
    id: &SprintId,
    step: &str,
    phase: &str,
    request: &Request,
    ready: bool,
) {
    let result = request.work.result.as_ref();
    let iteration = PlanningIteration {
        created_at: turn.now,
        phase: phase.to_owned(),
        step: step.to_owned(),
        request_id: Some(request.request_id.clone()),
        summary: result.map(|it| crate::engine::say::cut(&it.summary, 1_200)).unwrap_or_default(),
        insights: result.map(|it| it.insights.clone()).unwrap_or_default(),
        artifacts: result.map(|it| it.artifacts.clone()).unwrap_or_default(),
        phase_ready: ready,
    };
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.planning.iterations.push(iteration);
    }
}

fn reopen(
    turn: &mut Turn<'_>,
    id: &SprintId,
    step: PlanningStep,
    request: &Request,
    problems: &[String],
) {
    let said = turn.sprint(id).map(|sprint| sprint.planning.sent_back_with.clone());
    let said = said.filter(|said| !said.is_empty()).or_else(|| match &request.params.duty {
        // An earlier build noted it with the request alone.
        Some(DutyDetails::Planning {
            initial_phase_reopen_reason,
            reopen_of_request_id: None,
            ..
        }) => Some(initial_phase_reopen_reason.clone()).filter(|said| !said.is_empty()),
        Some(_) | None => None,
    });
    // What was found in the plan, or what a person said about it, is not done yet.
    let reasons = said.into_iter().chain(problems.iter().cloned());
    let reason = reasons.collect::<Vec<_>>().join("; ");
    let spent = position::follow(turn, id, StepOutcome::Again).is_err();
    let Some(sprint) = turn.edit_sprint(id) else { return };
    sprint.planning.last_reopened = Some(step);
    sprint.planning.last_reopen_reason.clone_from(&reason);
    sprint.planning.last_reopen_request_id = Some(request.request_id.clone());
    let payload = json!({ "step": step, "request_id": request.request_id.as_str() });
    turn.sprint_event(id, SprintEventKind::InitialPhaseStepReopened, &reason, payload);
    if spent {
        say::blocked(turn, id, step, problems);
        closing::end(turn, id, SprintStatus::Blocked, CloseoutStatus::PlanningIncomplete, &reason);
    }
}

/// The plan stands: work begins.
pub(super) fn ready(turn: &mut Turn<'_>, id: &SprintId) {
    let now = turn.now;
    let Some(sprint) = turn.edit_sprint(id) else { return };
    sprint.planning.ready_at = Some(now);
    sprint.planning.last_review_at = Some(now);
    turn.sprint_event(id, SprintEventKind::PlanningReady, "", Value::Null);
    say::plan(turn, id);
}
