//! A plan of more than one item: the plan of a request has one. Whoever asked says whether its items make a sprint, are
//! requests of their own, or one request all the same ([`super::split`]); those of a todo that a person has split take its
//! place in the sprint.

use serde_json::{Value, json};

use super::turn::Turn;
use super::{ending, lifecycle, say, sprint};
use crate::domain::block::BlockCode;
use crate::domain::criterion::Criterion;
use crate::domain::ids::RequestId;
use crate::domain::lifecycle::{Step, StepKind};
use crate::domain::outgoing::{ButtonAct, Priority, Voice};
use crate::domain::plan_decision::PlanDecision;
use crate::domain::request::{EventKind, RequestStatus};
use crate::domain::result::ProposedItem;
use crate::domain::role::Role;

/// The most items that a person is asked about.
const MOST: usize = 12;

/// What came of a step leads on: whether the request stops there, because its planner has proposed several items.
pub(super) fn holds(turn: &mut Turn<'_>, id: &RequestId, from: &Step) -> bool {
    // A plan that is made again is none yet.
    let is_made = from.kind == StepKind::Plan
        && turn.step(id).is_some_and(|next| next.kind != StepKind::Plan);
    let Some(request) = turn.request(id).filter(|_| is_made) else { return false };
    let said = request.work.result.as_ref().filter(|it| it.role == Role::Planner);
    let items: Vec<ProposedItem> =
        said.and_then(|it| it.proposals.backlog_items.clone()).unwrap_or_default();
    let wants_items = request.params.wants_items;
    let (is_todo, is_duty) = (request.todo_id.is_some(), request.duty().is_some());
    let is_asked_before = !request.params.parts.is_empty();
    // What people want to hold of the whole belongs to one plan.
    let is_one = request.is_one_plan();
    if wants_items && let Some(request) = turn.edit(id) {
        request.params.wants_items = false;
    }
    let is_several = (2..=MOST).contains(&items.len());
    if is_duty || is_one || !is_several || !(wants_items || !is_todo && !is_asked_before) {
        if wants_items {
            say::in_room(turn, id, Voice::Team, Priority::Progress, "room.one_item", json!({}));
        }
        return false;
    }
    if is_todo { take_the_place(turn, id, &items) } else { ask(turn, id, items) }
}

fn ask(turn: &mut Turn<'_>, id: &RequestId, items: Vec<ProposedItem>) -> bool {
    ending::stop(turn, id, BlockCode::Parts, "", Vec::new());
    let titles: Vec<String> = items.iter().map(|it| say::cut(it.title.trim(), 200)).collect();
    let checks = &turn.policy.check_names;
    let Some(request) = turn.request(id) else { return false };
    let decided: Vec<String> =
        request.work.decisions.iter().filter_map(PlanDecision::line).collect();
    let parts = items.iter().map(|item| words(item, &decided, checks)).collect();
    let Some(request) = turn.edit(id) else { return false };
    request.params.parts = parts;
    let version = request.params.parts_version();
    request.params.proposed_items = items;
    let values = json!({ "request_id": id.as_str(), "items": titles });
    let buttons = [ButtonAct::AsSprint, ButtonAct::Split, ButtonAct::Together, ButtonAct::Cancel];
    say::ask(turn, id, ("plan_items.card", values), (&buttons, version, Vec::new()), None);
    true
}

/// An item as a request of its own would be written, with what was decided for all of them. The planner leaves nothing to
/// people.
fn words(item: &ProposedItem, decided: &[String], checks: &[String]) -> String {
    let mut text = Criterion::nothing_left_to_people(item.title.trim());
    let scope = if item.scope.trim().is_empty() { &item.summary } else { &item.scope };
    let scope = Criterion::nothing_left_to_people(scope);
    if !scope.trim().is_empty() && scope.trim() != text {
        text = format!("{text}\n\n{}", scope.trim());
    }
    for (place, criterion) in item.acceptance_criteria.iter().enumerate() {
        text.push_str(if place == 0 { "\n\n- " } else { "\n- " });
        text.push_str(&Criterion::from(criterion.trim()).by_agent(checks).to_string());
    }
    if !decided.is_empty() {
        text.push_str("\n\n");
        text.push_str(&decided.join("\n"));
    }
    text
}

/// The items take the place of a todo's one in its sprint.
fn take_the_place(turn: &mut Turn<'_>, id: &RequestId, items: &[ProposedItem]) -> bool {
    let Some(request) = turn.request(id).cloned() else { return false };
    match sprint::replace_with_items(turn, &request, items) {
        Ok((titles, at_work)) => {
            let values = json!({ "request_id": id.as_str(), "items": titles, "at_work": at_work });
            turn.record(id, EventKind::Split, "planner", &titles.join("; "), Value::Null);
            ending::end(turn, id, RequestStatus::Cancelled, "final.split", values);
            true
        }
        Err(reason) => {
            // Whoever lets it go on has it planned as several items once more.
            if let Some((lifecycle, state)) = turn.stands(id) {
                let planned = lifecycle::resume(&lifecycle, &state).state().clone();
                if let Some(request) = turn.edit(id) {
                    request.params.workflow = Some(planned);
                    request.params.wants_items = true;
                }
            }
            ending::block(turn, id, BlockCode::PlannerContract, &reason, Vec::new());
            true
        }
    }
}
