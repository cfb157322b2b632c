//! What a planning step has to bring before the next one begins (`spec/teams.md` 9.4).

use serde_json::Value;

use super::backlog::is_relevant;
use crate::domain::backlog::{BacklogItem, BacklogStatus};
use crate::domain::lenient;
use crate::domain::result::ResultStatus;
use crate::domain::sprint::{InitialStep, Sprint};

/// How many problems are quoted; the planner is told of the others by the next attempt.
pub const PROBLEMS_QUOTED: usize = 4;

/// Times that one step may be reopened.
pub const REOPENS: u32 = 2;

/// What is missing, each naming item and field; empty where the step is good enough.
///
/// `items` are the open items, whether they belong to the sprint or not; `plan_update` is the planner's
/// `sprint_plan_update`; `persisted` says whether the items that the planner gave are in the store.
#[must_use]
pub fn problems(
    step: InitialStep,
    sprint: &Sprint,
    items: &[&BacklogItem],
    result_status: ResultStatus,
    plan_update: &Value,
    persisted: bool,
) -> Vec<String> {
    if result_status != ResultStatus::Completed {
        return vec![format!(
            "{step}: the result's status is {}, not completed",
            result_status.as_str()
        )];
    }
    let relevant: Vec<&BacklogItem> =
        items.iter().copied().filter(|item| is_relevant(item, sprint)).collect();
    let mut found = match step {
        InitialStep::MilestoneRefinement => milestone(sprint, plan_update),
        InitialStep::ArtifactSync => Vec::new(),
        InitialStep::BacklogDefinition
        | InitialStep::BacklogPrioritization
        | InitialStep::TodoFinalization
            if relevant.is_empty() =>
        {
            let id = &sprint.sprint_id;
            vec![format!("{step}: 0 backlog items belong to sprint {id}, at least 1 is needed")]
        }
        InitialStep::BacklogDefinition => defined(sprint, &relevant, persisted),
        InitialStep::BacklogPrioritization => ranked(&relevant),
        InitialStep::TodoFinalization => selected(sprint, &relevant),
    };
    found.truncate(PROBLEMS_QUOTED);
    found
}

fn is_source_backed(sprint: &Sprint) -> bool {
    sprint.research_prepass.as_ref().is_some_and(|prepass| prepass.is_source_backed())
}

/// Research that rests on sources has to show in the milestone.
fn milestone(sprint: &Sprint, update: &Value) -> Vec<String> {
    if !is_source_backed(sprint) {
        return Vec::new();
    }
    let text = |key: &str| lenient::text(update.get(key)).trim().to_owned();
    let title = text("revised_milestone_title");
    let mut found = Vec::new();
    if title.is_empty() {
        found.push("sprint_plan_update: revised_milestone_title is blank".to_owned());
    }
    if text("refinement_rationale").is_empty() {
        found.push("sprint_plan_update: refinement_rationale is blank".to_owned());
    }
    let flat = |text: &str| text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    if !title.is_empty() && flat(&title) == flat(&sprint.requested_milestone_title) {
        let framing = update.get("problem_framing");
        if text("problem_framing").is_empty() && lenient::list(framing).is_empty() {
            found.push(
                "sprint_plan_update: problem_framing is blank, and the requested milestone is kept"
                    .to_owned(),
            );
        }
        if lenient::list(update.get("research_refs")).is_empty() {
            found.push(
                "sprint_plan_update: research_refs is empty, and the requested milestone is kept"
                    .to_owned(),
            );
        }
    }
    found
}

fn name(item: &BacklogItem) -> String {
    format!("{} ({})", item.backlog_id, item.title)
}

fn defined(sprint: &Sprint, relevant: &[&BacklogItem], persisted: bool) -> Vec<String> {
    let mut found = Vec::new();
    if !persisted {
        found.push("backlog_items: none of them is in the backlog".to_owned());
    }
    for item in relevant {
        let origin = |key: &str| !lenient::list(item.origin.get(key)).is_empty();
        let mut missing = |holds: bool, field: &str| {
            if !holds {
                found.push(format!("{}: {field} is missing", name(item)));
            }
        };
        missing(!item.acceptance_criteria.is_empty(), "acceptance_criteria");
        missing(origin("milestone_ref"), "origin.milestone_ref");
        missing(
            !item.milestone_title.trim().is_empty() || origin("sprint_id"),
            "milestone_title or origin.sprint_id",
        );
        missing(
            sprint.kickoff_requirements.is_empty() || origin("requirement_refs"),
            "origin.requirement_refs",
        );
        missing(origin("spec_refs"), "origin.spec_refs");
        missing(!is_source_backed(sprint) || origin("research_refs"), "origin.research_refs");
    }
    found
}

fn ranked(relevant: &[&BacklogItem]) -> Vec<String> {
    let mut found = Vec::new();
    for item in relevant {
        if item.priority_rank == 0 {
            found.push(format!("{}: priority_rank is 0, 1 or more is needed", name(item)));
        }
        if item.milestone_title.trim().is_empty() {
            found.push(format!("{}: milestone_title is blank", name(item)));
        }
    }
    found
}

fn selected(sprint: &Sprint, relevant: &[&BacklogItem]) -> Vec<String> {
    let id = &sprint.sprint_id;
    let is_planned = |item: &BacklogItem| item.planned_in_sprint_id.as_ref() == Some(id);
    let can_begin = |item: &BacklogItem| item.status != BacklogStatus::Blocked;
    let mut found = Vec::new();
    if !relevant.iter().any(|item| is_planned(item) && can_begin(item)) {
        found.push(format!(
            "todo_finalization: no item that can begin has planned_in_sprint_id {id}"
        ));
    }
    for item in relevant {
        let is_selected = item.status == BacklogStatus::Selected
            || item.selected_in_sprint_id.as_ref() == Some(id)
            || sprint.selected_backlog_ids.contains(&item.backlog_id);
        if is_selected && !is_planned(item) {
            let other = item.planned_in_sprint_id.as_ref().map_or("blank", |other| other.as_str());
            found.push(format!(
                "{}: planned_in_sprint_id is {other}, and the item is selected for {id}",
                name(item)
            ));
        }
        if is_planned(item) {
            let outside = item.depends_on.iter().find(|on| {
                relevant.iter().any(|other| {
                    other.backlog_id == **on && !(is_planned(other) && can_begin(other))
                })
            });
            if let Some(on) = outside {
                found.push(format!(
                    "{}: depends_on names {on}, which is open and not a todo of {id}",
                    name(item)
                ));
            }
        }
    }
    found
}
