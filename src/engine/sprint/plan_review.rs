//! The plan of a sprint is looked at before anything of it is built: by rules, then by the architect, who did not write
//! it. While less is found each time its planner gets it back. A person decides about what is left, and about every plan
//! where that is configured; the request at whose card that happens has no role.

use std::collections::BTreeSet;

use serde_json::json;

use super::duties::{self, DutyRequest};
use super::{closing, initial, position, queue, say};
use crate::domain::gate::{GateKind, Stance};
use crate::domain::ids::{PlanItemId, RequirementId, SprintId};
use crate::domain::item::{Item, ItemSource};
use crate::domain::lifecycle::{SprintStep, Step, StepOutcome};
use crate::domain::plan::{Plan, PlanItem, PlanPart, PlanRule, Requirement, RequirementTime};
use crate::domain::plan_review::{AcceptedFindings, PlanFinding, PlanReview, PlanReviewer};
use crate::domain::request::{ReplyRoute, Request, RequestStatus};
use crate::domain::request_plan::RequestPlan;
use crate::domain::sprint::{
    CloseoutStatus, Duty, DutyDetails, PlanningStep, Sprint, SprintEventKind, SprintStatus,
    TodoStatus,
};
use crate::engine::contract::numbered::{self, REQUIREMENT};
use crate::engine::gates::card;
use crate::engine::plan::check::{self, PlanProblem};
use crate::engine::plan::review;
use crate::engine::turn::Turn;
use crate::engine::{ending, say as words};

/// Has the plan looked at: by rules first, and then by the architect.
pub(super) fn begin(turn: &mut Turn<'_>, id: &SprintId, step: &Step) {
    // Todos say what their items say now; what is wrong with them, the rules find.
    queue::sync(turn, id);
    let found = by_rules(turn, id);
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.planning.review.begin();
    }
    if take(turn, id, PlanReviewer::Rules, found) {
        return;
    }
    let scope = turn.sprint(id).map(|sprint| sprint.milestone_title.clone()).unwrap_or_default();
    duties::ask(turn, DutyRequest { duty: DutyDetails::PlanReview, step, sprint: Some(id), scope });
}

/// What a person is asked about is another plan now: it is looked at anew.
pub(super) fn keep_current(turn: &mut Turn<'_>, id: &SprintId, step: &Step) {
    let Some(waits) = turn.sprint(id).and_then(|sprint| sprint.planning_request_id.clone()) else {
        return;
    };
    let shown = turn.request(&waits).and_then(|request| request.work.planned.as_ref());
    let Some(shown) = shown.map(|shown| shown.version.digest.clone()) else { return };
    if turn.changed_items().next().is_none() {
        return;
    }
    queue::sync(turn, id);
    if shown == digest(turn, id) {
        return;
    }
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.planning_request_id = None;
    }
    ending::end(turn, &waits, RequestStatus::Cancelled, "sprint.duty", json!({}));
    begin(turn, id, step);
}

/// The architect has read the plan, or a person has decided about it.
pub(super) fn reviewed(turn: &mut Turn<'_>, request: &Request) {
    let Some(id) = duties::awaited_by(turn, request) else { return };
    if request.work.planned.is_some() {
        return decided(turn, &id, request);
    }
    let (found, is_read) = match duties::outcome(request) {
        Ok(result) => (review::proposed(result), true),
        // A plan that nobody but its author has read is for a person.
        Err(_) => (Vec::new(), false),
    };
    if take(turn, &id, PlanReviewer::Architect, found) {
        return;
    }
    let stance = turn.policy.gates.of_sprint_plan();
    if !is_read && stance != Stance::Refuse {
        let told = json!({ "sprint_id": id.as_str() });
        say::report(turn, Some(&id), "room.plan_unread", told, Vec::new());
    }
    let is_open = turn.sprint(&id).is_some_and(|sprint| sprint.planning.review.is_open());
    match stance {
        Stance::Allow if !is_open && is_read => goes_on(turn, &id),
        Stance::Refuse => turned_down(turn, &id, Refusal::Rules),
        Stance::Ask | Stance::Allow => ask(turn, &id),
    }
}

/// Takes what somebody found; whether the planner gets the plan back.
fn take(turn: &mut Turn<'_>, id: &SprintId, by: PlanReviewer, found: Vec<PlanFinding>) -> bool {
    let Some(sprint) = turn.edit_sprint(id) else { return false };
    let told = json!({ "sprint_id": id.as_str(), "by": by, "findings": found });
    if !sprint.planning.review.take(by, found) {
        return false;
    }
    let reason = reason(&sprint.planning.review);
    if position::follow(turn, id, StepOutcome::Again).is_err() {
        return false;
    }
    say::report(turn, Some(id), "room.plan_back", told, Vec::new());
    given_back(turn, id, &reason);
    true
}

fn given_back(turn: &mut Turn<'_>, id: &SprintId, reason: &str) {
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.planning.is_approved = false;
        sprint.planning.last_reopened = Some(PlanningStep::TodoFinalization);
        reason.clone_into(&mut sprint.planning.last_reopen_reason);
        reason.clone_into(&mut sprint.planning.sent_back_with);
        sprint.planning.last_reopen_request_id = None;
    }
    turn.sprint_event(id, SprintEventKind::InitialPhaseStepReopened, reason, json!({}));
}

/// What the planner is told.
fn reason(review: &PlanReview) -> String {
    review.findings.iter().map(PlanFinding::line).collect::<Vec<_>>().join("; ")
}

/// A person is asked, at a request that nobody works on.
fn ask(turn: &mut Turn<'_>, id: &SprintId) {
    let digest = digest(turn, id);
    let Some(sprint) = turn.sprint(id) else { return };
    let review = sprint.planning.review.clone();
    let items = items(turn, sprint);
    // The titles first; the whole goes along as a file where it is long.
    let title = |item: &&Item| format!("- {}", words::title(&item.title));
    let titles: Vec<String> = items.iter().map(title).collect();
    let details: Vec<String> = items.iter().map(|item| detail(item)).collect();
    let plan = RequestPlan {
        summary: format!("{}\n\n{}", titles.join("\n"), details.join("\n\n")),
        ..RequestPlan::after(None, digest.clone(), turn.now)
    };
    let scope = sprint.milestone_title.clone();
    // Whoever asked for the sprint is who asked for its plan.
    let asker = ReplyRoute {
        author_id: sprint.kickoff.reply_route.author_id,
        author_name: sprint.kickoff.reply_route.author_name.clone(),
        guild_id: sprint.kickoff.reply_route.guild_id,
        ..ReplyRoute::default()
    };
    let other_askers = sprint.planning.other_askers.clone();
    let asked = duties::create(turn, DutyDetails::PlanReview, Some(id), scope);
    if let Some(request) = turn.edit(&asked) {
        request.status = RequestStatus::Delegated;
        request.work.planned = Some(plan);
        request.work.plan_review = review;
        request.conversation.reply_route = asker;
        request.params.other_askers = other_askers;
    }
    if let Some(sprint) = turn.edit_sprint(id) {
        sprint.planning_request_id = Some(asked.clone());
    }
    card::open(turn, &asked, GateKind::Plan, String::new(), digest, Vec::new());
}

/// An item with its criteria and paths, as its number and its globs say them.
fn detail(item: &Item) -> String {
    let criteria = (1..).zip(&item.acceptance_criteria);
    let criteria: String = criteria.map(|(number, it)| format!("\n- C-{number}: {it}")).collect();
    let paths: String = item.allowed_paths.iter().map(|path| format!("\n- `{path}`")).collect();
    format!("**{}**{criteria}{paths}", words::title(&item.title))
}

/// What a person decided at the card.
fn decided(turn: &mut Turn<'_>, id: &SprintId, request: &Request) {
    let work = &request.work;
    let is_approved = work.plan.is_some();
    let at_card = request.params.followups.iter().filter(|it| it.at_gate);
    let said: Vec<&str> = at_card.map(|it| it.body.as_str()).collect();
    if is_approved {
        if let Some(sprint) = turn.edit_sprint(id) {
            sprint.planning.review.accepted.clone_from(&work.plan_review.accepted);
            sprint.planning.is_approved = true;
        }
        if let Some(AcceptedFindings { by, reason, .. }) = &work.plan_review.accepted {
            let values =
                json!({ "decision": "approved", "by": by, "question": "", "reason": reason });
            say::report(turn, Some(id), "gate.decided", values, Vec::new());
        }
        goes_on(turn, id);
    } else if said.is_empty() {
        let mut gates = turn.before().gates.values();
        let its = gates.find(|gate| gate.request_id == request.request_id);
        let is_over = its.and_then(|gate| gate.expires_at).is_some_and(|at| at <= turn.now);
        turned_down(turn, id, if is_over { Refusal::Time } else { Refusal::Person });
    } else {
        let found = reason(&work.plan_review);
        let words = std::iter::once(found.as_str()).filter(|it| !it.is_empty()).chain(said);
        plan_again(turn, id, &words.collect::<Vec<_>>().join("\n"));
    }
}

fn goes_on(turn: &mut Turn<'_>, id: &SprintId) {
    position::done(turn, id);
    initial::ready(turn, id);
}

/// What has not let the plan of a sprint through.
#[derive(Clone, Copy)]
enum Refusal {
    Person,
    /// Nobody decided in time.
    Time,
    /// The configuration.
    Rules,
}

/// Nobody wants it so: the sprint stops, and one that goes on later chooses its todos anew.
fn turned_down(turn: &mut Turn<'_>, id: &SprintId, by: Refusal) {
    let found = turn.sprint(id).map(|sprint| reason(&sprint.planning.review)).unwrap_or_default();
    let (by, told, reason) = match by {
        Refusal::Person => ("person", "a person turned the plan down", "its plan was turned down"),
        Refusal::Time => {
            ("time", "nobody decided in time", "nobody decided about its plan in time")
        }
        Refusal::Rules => {
            ("rules", "no plan is let through", "the configuration lets no plan through")
        }
    };
    plan_again(turn, id, format!("{told}; {found}").trim_end_matches("; "));
    let (status, closeout) = (SprintStatus::Blocked, CloseoutStatus::PlanningIncomplete);
    let values = json!({ "sprint_id": id.as_str(), "by": by });
    say::error(turn, id, "sprint.plan_rejected", values);
    closing::end(turn, id, status, closeout, reason);
}

/// Something ends the sprint before its plan stands: when somebody restarts it, its todos are chosen anew.
pub(super) fn put_off(turn: &mut Turn<'_>, id: &SprintId, reason: &str) {
    let is_review = |(_, kind): &(&Step, SprintStep)| *kind == SprintStep::Duty(Duty::PlanReview);
    if position::step(turn, id).as_ref().is_some_and(is_review) {
        plan_again(turn, id, reason);
    }
    let (status, closeout) = (SprintStatus::Blocked, CloseoutStatus::PlanningIncomplete);
    closing::end(turn, id, status, closeout, reason);
}

/// A person sends the plan back, or the day ends: that is charged to nobody, so that there is a way back.
fn plan_again(turn: &mut Turn<'_>, id: &SprintId, reason: &str) {
    position::renew(turn, id);
    position::follow(turn, id, StepOutcome::Again).unwrap_or_default();
    given_back(turn, id, reason);
}

/// The items that the sprint is to deliver, in the order of its todos.
fn items<'t>(turn: &'t Turn<'_>, sprint: &Sprint) -> Vec<&'t Item> {
    let queued = sprint.work.todos.iter().filter(|todo| todo.progress.status == TodoStatus::Queued);
    let ids = queued.filter_map(|todo| todo.backlog_id.as_ref());
    ids.filter_map(|id| turn.item(id)).collect()
}

fn digest(turn: &Turn<'_>, id: &SprintId) -> String {
    let Some(sprint) = turn.sprint(id) else { return String::new() };
    plan_of(turn, sprint).digest()
}

/// The plan of a sprint as one that rules can be held against: what it was begun with, and its items.
fn plan_of(turn: &Turn<'_>, sprint: &Sprint) -> Plan {
    let known = &sprint.kickoff.requirements;
    let requirement = |(at, text): (usize, &String)| {
        let id = RequirementId::parse(&numbered::name(REQUIREMENT, at)).ok()?;
        Some(Requirement { id, text: text.clone(), when: RequirementTime::Now })
    };
    let item = |item: &&Item| {
        let mut one = PlanItem::new(PlanItemId::parse(item.backlog_id.as_str()).ok()?, &item.title);
        one.scope.clone_from(&item.scope);
        one.criteria.clone_from(&item.acceptance_criteria);
        // What is no requirement of the sprint is told where the item is defined, or is of a plan of its own.
        let named = item.origin.texts("requirement_refs");
        let named = named.iter().filter_map(|it| numbered::find(known, REQUIREMENT, it));
        let named = named.map(|at| numbered::name(REQUIREMENT, at));
        one.requirements = named.filter_map(|it| RequirementId::parse(&it).ok()).collect();
        one.allowed_paths.clone_from(&item.allowed_paths);
        one.excluded_paths.clone_from(&item.excluded_paths);
        let on = item.depends_on.iter();
        one.depends_on = on.filter_map(|it| PlanItemId::parse(it.as_str()).ok()).collect();
        Some(one)
    };
    Plan {
        title: sprint.milestone_title.clone(),
        requirements: known.iter().enumerate().filter_map(requirement).collect(),
        items: items(turn, sprint).iter().filter_map(item).collect(),
    }
}

/// What rules find. What a person wrote, of an item or of the sprint, is not the planner's to mend.
fn by_rules(turn: &Turn<'_>, id: &SprintId) -> Vec<PlanFinding> {
    let Some(sprint) = turn.sprint(id) else { return Vec::new() };
    let plan = plan_of(turn, sprint);
    let items = items(turn, sprint);
    let kickoff = &sprint.kickoff;
    let mut said = vec![&kickoff.milestone, &kickoff.brief, &kickoff.request_text];
    said.extend(&kickoff.requirements);
    for item in items.iter().filter(|it| it.source == ItemSource::User || it.plan.is_some()) {
        said.extend([&item.title, &item.scope, &item.summary]);
    }
    let said: Vec<&str> = said.into_iter().map(String::as_str).collect();
    let said = said.join("\n");
    let counts = |problem: &PlanProblem| {
        let is_persons = match problem.part {
            PlanPart::Criterion(at, number) => items.get(at).is_some_and(|item| {
                let criterion = item.acceptance_criteria.get(number);
                criterion
                    .is_some_and(|it| item.persons_criteria.iter().any(|one| one.text == it.text))
                    || item.plan.is_some()
            }),
            PlanPart::Item(at) | PlanPart::Dependency(at, _) | PlanPart::Path(at, _) => {
                items.get(at).is_some_and(|item| item.plan.is_some())
            }
            PlanPart::Whole | PlanPart::Requirement(_) => false,
        };
        let asked_for = |phrase| check::phrase_in(&said, &[phrase]).is_some();
        let counts = match problem.rule {
            // What an item depends on may be delivered, or be no todo: that is looked at with the todos.
            PlanRule::UnknownItem | PlanRule::NoItems | PlanRule::NoPaths => false,
            PlanRule::NoCriterion
            | PlanRule::DoubledId
            | PlanRule::UnknownRequirement
            | PlanRule::Cycle
            | PlanRule::OutsidePath
            | PlanRule::UncoveredRequirement
            | PlanRule::Weakening
            | PlanRule::Unseen
            | PlanRule::Size
            | PlanRule::ContradictingPath => true,
        };
        counts && !is_persons && !problem.phrase.is_some_and(asked_for)
    };
    let problems = check::check(&plan, &BTreeSet::new()).into_iter().filter(counts);
    let named = |at: usize| items.get(at).map_or("", |item| item.backlog_id.as_str());
    let part = |problem: &PlanProblem| match problem.part {
        PlanPart::Criterion(at, number) => {
            format!("{} {}", named(at), numbered::name(numbered::CRITERION, number))
        }
        PlanPart::Item(at) | PlanPart::Dependency(at, _) | PlanPart::Path(at, _) => {
            named(at).to_owned()
        }
        PlanPart::Requirement(at) => numbered::name(REQUIREMENT, at),
        PlanPart::Whole => String::new(),
    };
    review::found(problems, part)
}
