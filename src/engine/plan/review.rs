//! The plan of a request is looked at before anything of it is built: by rules, and by the architect where its way has
//! one. While less is found each time its planner gets it back; then a person decides.

use std::collections::BTreeSet;

use serde_json::json;

use super::check::{self, PlanProblem};
use crate::domain::criterion::Criterion;
use crate::domain::ids::{PlanItemId, RequestId, RequirementId};
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::plan::{Plan, PlanItem, PlanPart, PlanRule, RequirementTime};
use crate::domain::plan_review::{PlanFinding, PlanReviewer};
use crate::domain::request::{EventKind, Request};
use crate::domain::request_plan::RequestPlan;
use crate::domain::result::{ProposedFinding, RoleResult};
use crate::engine::contract::numbered;
use crate::engine::say;
use crate::engine::turn::Turn;

/// The most that is kept of what one reviewer found.
const MOST_FINDINGS: usize = 12;
/// The longest words of a finding, in characters.
const LONGEST: usize = 300;
/// The longest name of a part, in characters.
const LONGEST_PART: usize = 80;

/// A plan is settled: whether its planner gets it back for what rules find in it.
pub(in crate::engine) fn by_rules(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let found = turn.request(id).map(of_request).unwrap_or_default();
    if let Some(request) = turn.edit(id) {
        request.work.plan_review.begin();
    }
    take(turn, id, PlanReviewer::Rules, found)
}

/// The architect has read the plan: whether its planner gets it back for that. A plan that is sent back in so many words is
/// one with a finding.
pub(in crate::engine) fn by_architect(
    turn: &mut Turn<'_>,
    id: &RequestId,
    is_sent_back: bool,
) -> bool {
    let Some(request) = turn.request(id) else { return false };
    let result = request.work.result.as_ref();
    let mut found = result.map(|it| proposed(it)).unwrap_or_default();
    if let Some(result) = result.filter(|_| is_sent_back && found.is_empty()) {
        let reason = result.proposals.transition().reason;
        let text = if reason.trim().is_empty() { &result.summary } else { &reason };
        found.push(by_somebody("", text, ""));
    }
    take(turn, id, PlanReviewer::Architect, found)
}

/// What the architect found.
pub(in crate::engine) fn proposed(result: &RoleResult) -> Vec<PlanFinding> {
    let said = result.proposals.plan_findings.as_deref().unwrap_or_default();
    let finding = |it: &ProposedFinding| by_somebody(&it.part, &it.problem, &it.wanted);
    kept(said.iter().map(finding).collect())
}

/// As much of what was found as is kept.
fn kept(mut found: Vec<PlanFinding>) -> Vec<PlanFinding> {
    found.truncate(MOST_FINDINGS);
    found
}

fn by_somebody(part: &str, problem: &str, wanted: &str) -> PlanFinding {
    PlanFinding {
        by: PlanReviewer::Architect,
        rule: None,
        part: say::cut(part.trim(), LONGEST_PART),
        phrase: String::new(),
        text: say::cut(problem, LONGEST),
        advice: say::cut(wanted, LONGEST),
    }
}

fn take(turn: &mut Turn<'_>, id: &RequestId, by: PlanReviewer, found: Vec<PlanFinding>) -> bool {
    let told = json!({ "by": by, "findings": found });
    let number = found.len();
    let Some(request) = turn.edit(id) else { return false };
    let goes_back = request.work.plan_review.take(by, found);
    if number > 0 {
        let words = format!("{number} findings");
        turn.record(id, EventKind::PlanReviewed, by.as_str(), &words, told.clone());
    }
    if goes_back {
        say::in_room(turn, id, Voice::Team, Priority::Progress, "room.plan_back", told);
    }
    goes_back
}

/// What rules find in the plan of a request. What a person wrote is not the planner's to change.
fn of_request(request: &Request) -> Vec<PlanFinding> {
    let Some(planned) = &request.work.planned else { return Vec::new() };
    let Some(plan) = as_plan(planned, &request.work.criteria) else { return Vec::new() };
    let own = &request.work.criteria;
    let words = persons_words(request);
    let is_the_planners = |problem: &PlanProblem| match problem.part {
        PlanPart::Criterion(_, at) => {
            let criterion = planned.criteria.get(at);
            criterion.is_none_or(|it| own.iter().any(|one| one.text == it.text))
        }
        PlanPart::Whole
        | PlanPart::Requirement(_)
        | PlanPart::Item(_)
        | PlanPart::Dependency(..)
        | PlanPart::Path(..) => true,
    };
    // What a person wants to hold is no reason to split it.
    let mut without = plan.clone();
    without.items.iter_mut().for_each(|item| item.criteria.clone_from(own));
    let is_large =
        check::check(&without, &BTreeSet::new()).iter().any(|it| it.rule == PlanRule::Size);
    let counts = |problem: &PlanProblem| match problem.rule {
        // Nothing collides with the one item of a request.
        PlanRule::NoPaths => false,
        PlanRule::Size => is_large,
        PlanRule::NoItems
        | PlanRule::NoCriterion
        | PlanRule::DoubledId
        | PlanRule::UnknownItem
        | PlanRule::UnknownRequirement
        | PlanRule::Cycle
        | PlanRule::OutsidePath
        | PlanRule::UncoveredRequirement
        | PlanRule::Weakening
        | PlanRule::Unseen
        | PlanRule::ContradictingPath => {
            let asked_for = |phrase| check::phrase_in(&words, &[phrase]).is_some();
            is_the_planners(problem) && !problem.phrase.is_some_and(asked_for)
        }
    };
    let problems = check::check(&plan, &BTreeSet::new()).into_iter().filter(counts);
    let part = |problem: &PlanProblem| match problem.part {
        PlanPart::Criterion(_, at) => numbered::name(numbered::CRITERION, at),
        PlanPart::Requirement(at) => {
            planned.requirements.get(at).map(|it| it.id.to_string()).unwrap_or_default()
        }
        PlanPart::Whole | PlanPart::Item(_) | PlanPart::Dependency(..) | PlanPart::Path(..) => {
            String::new()
        }
    };
    found(problems, part)
}

/// What rules found, each in the part that `part` names.
pub(in crate::engine) fn found(
    problems: impl Iterator<Item = PlanProblem>,
    part: impl Fn(&PlanProblem) -> String,
) -> Vec<PlanFinding> {
    let finding = |problem: PlanProblem| PlanFinding {
        by: PlanReviewer::Rules,
        rule: Some(problem.rule),
        part: part(&problem),
        phrase: problem.phrase.unwrap_or_default().to_owned(),
        text: say::cut(&problem.message, LONGEST),
        advice: problem.hint,
    };
    kept(problems.map(finding).collect())
}

/// Everything that people said about the request.
fn persons_words(request: &Request) -> String {
    let followups = request.params.followups.iter().map(|it| it.body.as_str());
    let criteria = request.work.persons_criteria.iter().map(|it| it.text.as_str());
    let own = request.params.persons_words.as_ref().unwrap_or(&request.body);
    let mut words = vec![own.as_str()];
    words.extend(followups.chain(criteria));
    words.join("\n")
}

/// A request's plan as one that rules can be held against: it has one item.
fn as_plan(planned: &RequestPlan, own: &[Criterion]) -> Option<Plan> {
    let mut item = PlanItem::new(PlanItemId::parse("plan").ok()?, "plan");
    item.scope.clone_from(&planned.summary);
    item.criteria.clone_from(&planned.criteria);
    item.allowed_paths.clone_from(&planned.allowed_paths);
    item.excluded_paths.clone_from(&planned.excluded_paths);
    // A person's criteria may speak of other documents' ids.
    let criteria = own.iter().map(|it| it.text.as_str());
    let named: BTreeSet<RequirementId> = criteria.flat_map(requirements_in).collect();
    let now = planned.requirements.iter().filter(|it| it.when == RequirementTime::Now);
    // Where no criterion says what it is for, its one item serves all of them.
    item.requirements = match named.is_empty() {
        true => now.map(|it| it.id.clone()).collect(),
        false => named.into_iter().collect(),
    };
    let requirements = planned.requirements.clone();
    // Ids of others' documents, in a plan that has none of its own, are not looked up.
    if requirements.is_empty() {
        item.requirements.clear();
    }
    Some(Plan { title: String::new(), requirements, items: vec![item] })
}

/// The requirements that words name: `R-1` is not `R-10`.
fn requirements_in(words: &str) -> impl Iterator<Item = RequirementId> + '_ {
    words.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter_map(|word| {
        let number = word.strip_prefix("R-")?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        RequirementId::parse(word).ok().filter(|_| is_number)
    })
}
