//! What a planning step has to bring before the next one begins (`spec/teams.md` 9.4).

use super::backlog::relevant;
use crate::domain::item::{Item, ItemStatus};
use crate::domain::result::{ResultStatus, SprintPlanUpdate};
use crate::domain::sprint::{PlanningStep, Sprint};
use crate::domain::text::flat;
use crate::engine::contract::numbered::{self, REQUIREMENT};

/// How many problems are quoted; the planner is told of the others by the next attempt.
pub const PROBLEMS_QUOTED: usize = 4;

/// What is missing, each naming item and field; empty where the step is good enough.
///
/// `items` are the open items, whether they belong to the sprint or not; `plan_update` is the planner's
/// `sprint_plan_update`; `persisted` says whether the items that the planner gave are in the store.
#[must_use]
pub fn problems(
    step: PlanningStep,
    sprint: &Sprint,
    items: &[&Item],
    result_status: ResultStatus,
    plan_update: &SprintPlanUpdate,
    persisted: bool,
) -> Vec<String> {
    if result_status != ResultStatus::Completed {
        return vec![format!(
            "{step}: the result's status is {}, not completed",
            result_status.as_str()
        )];
    }
    let relevant = relevant(items.iter().copied(), sprint);
    let mut found = match step {
        PlanningStep::MilestoneRefinement => milestone(sprint, plan_update),
        PlanningStep::ArtifactSync => Vec::new(),
        PlanningStep::BacklogDefinition
        | PlanningStep::BacklogPrioritization
        | PlanningStep::TodoFinalization
            if relevant.is_empty() =>
        {
            let id = &sprint.sprint_id;
            vec![format!("{step}: 0 backlog items belong to sprint {id}, at least 1 is needed")]
        }
        PlanningStep::BacklogDefinition => defined(sprint, &relevant, persisted),
        PlanningStep::BacklogPrioritization => ranked(&relevant),
        PlanningStep::TodoFinalization => selected(sprint, &relevant),
    };
    found.truncate(PROBLEMS_QUOTED);
    found
}

fn is_source_backed(sprint: &Sprint) -> bool {
    sprint.planning.research.as_ref().is_some_and(|prepass| prepass.is_source_backed())
}

/// Research that rests on sources has to show in the milestone.
fn milestone(sprint: &Sprint, update: &SprintPlanUpdate) -> Vec<String> {
    if !is_source_backed(sprint) {
        return Vec::new();
    }
    let title = update.revised_milestone_title.trim();
    let mut found = Vec::new();
    if title.is_empty() {
        found.push("sprint_plan_update: revised_milestone_title is blank".to_owned());
    }
    if update.refinement_rationale.trim().is_empty() {
        found.push("sprint_plan_update: refinement_rationale is blank".to_owned());
    }
    if !title.is_empty() && flat(title) == flat(&sprint.kickoff.milestone) {
        if update.problem_framing.trim().is_empty() {
            found.push(
                "sprint_plan_update: problem_framing is blank, and the requested milestone is kept"
                    .to_owned(),
            );
        }
        if update.research_refs.is_empty() {
            found.push(
                "sprint_plan_update: research_refs is empty, and the requested milestone is kept"
                    .to_owned(),
            );
        }
    }
    found
}

fn name(item: &Item) -> String {
    format!("{} ({})", item.backlog_id, item.title)
}

fn defined(sprint: &Sprint, relevant: &[&Item], persisted: bool) -> Vec<String> {
    let mut found = Vec::new();
    if !persisted {
        found.push("backlog_items: none of them is in the backlog".to_owned());
    }
    for item in relevant {
        let origin = |name: &str| item.origin.has(name);
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
        // One of a plan serves the requirements of that, which nobody may change.
        let is_of_plan = item.plan.is_some();
        missing(
            is_of_plan || sprint.kickoff.requirements.is_empty() || origin("requirement_refs"),
            "origin.requirement_refs",
        );
        missing(origin("spec_refs"), "origin.spec_refs");
        missing(!is_source_backed(sprint) || origin("research_refs"), "origin.research_refs");
        if !is_of_plan {
            found.extend(unknown_requirements(sprint, item));
        }
    }
    found
}

/// The requirements that an item says it serves and that the sprint does not have.
fn unknown_requirements(sprint: &Sprint, item: &Item) -> Vec<String> {
    let known = &sprint.kickoff.requirements;
    let named = item.origin.texts("requirement_refs");
    let unknown = named.iter().filter(|it| numbered::find(known, REQUIREMENT, it).is_none());
    let told = unknown.filter_map(|wrong| {
        let (index, text) = numbered::nearest(known, wrong)?;
        let (number, text) = (numbered::name(REQUIREMENT, index), crate::engine::say::cut(text, 120));
        let wrong = crate::engine::say::cut(wrong, 120);
        Some(format!(
            "{}: origin.requirement_refs names \"{wrong}\", which is no requirement of the sprint; the nearest \
             is {number} (\"{text}\")",
            name(item)
        ))
    });
    told.collect()
}

fn ranked(relevant: &[&Item]) -> Vec<String> {
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

fn selected(sprint: &Sprint, relevant: &[&Item]) -> Vec<String> {
    let id = &sprint.sprint_id;
    let is_planned = |item: &Item| item.planned_in_sprint_id.as_ref() == Some(id);
    let can_begin = |item: &Item| item.status != ItemStatus::Blocked;
    let mut found = Vec::new();
    if !relevant.iter().any(|item| is_planned(item) && can_begin(item)) {
        found.push(format!(
            "todo_finalization: no item that can begin has planned_in_sprint_id {id}"
        ));
    }
    for item in relevant {
        let is_selected = item.status == ItemStatus::Selected
            || item.selected_in_sprint_id.as_ref() == Some(id)
            || sprint.work.selected_backlog_ids.contains(&item.backlog_id);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{ItemId, SprintId};
    use crate::domain::item::ItemKind;
    use crate::domain::language::Language;
    use crate::domain::origin::OriginValue;
    use crate::domain::sprint::{BackingSource, Kickoff, PrepassStatus, ResearchPrepass, Trigger};
    use crate::domain::time::Timestamp;
    use serde_json::json;

    fn sprint(requirements: &[&str], source: &str) -> Sprint {
        let kickoff = Kickoff {
            milestone: "Faster search".to_owned(),
            requirements: requirements.iter().map(|text| (*text).to_owned()).collect(),
            ..Kickoff::default()
        };
        let id = SprintId::parse("260324-Sprint-09:00").unwrap();
        let mut sprint = Sprint::new(id, Trigger::ManualStart, kickoff, Language::En);
        let url = source.to_owned();
        sprint.planning.research = Some(ResearchPrepass {
            request_id: None,
            status: PrepassStatus::Completed,
            reason_code: String::new(),
            subject: String::new(),
            report_artifact: String::new(),
            headline: String::new(),
            planner_guidance: String::new(),
            backing_sources: vec![BackingSource { url, ..BackingSource::default() }],
        });
        sprint
    }

    fn item(id: &str) -> Item {
        let now = Timestamp::from_millis(0);
        let id = ItemId::parse(id).unwrap();
        let mut item = Item::new(id, "Index", "", ItemKind::Feature, now);
        "faster  SEARCH".clone_into(&mut item.milestone_title);
        item
    }

    fn asked(
        step: PlanningStep,
        sprint: &Sprint,
        items: &[Item],
        update: &SprintPlanUpdate,
    ) -> String {
        let items: Vec<&Item> = items.iter().collect();
        problems(step, sprint, &items, ResultStatus::Completed, update, true).join("\n")
    }

    #[test]
    fn any_step_needs_a_completed_result() {
        for step in PlanningStep::ALL {
            for status in [ResultStatus::Blocked, ResultStatus::Failed] {
                let found = problems(
                    step,
                    &sprint(&[], ""),
                    &[],
                    status,
                    &SprintPlanUpdate::default(),
                    true,
                );
                assert!(found[0].contains(status.as_str()), "{step}");
            }
        }
    }

    #[test]
    fn s15_research_has_to_show_in_the_milestone() {
        let step = PlanningStep::MilestoneRefinement;
        let backed = sprint(&[], "https://example.org/a");
        let local = sprint(&[], "notes.md");
        let framed = |title: &str, rationale: &str| SprintPlanUpdate {
            revised_milestone_title: title.to_owned(),
            refinement_rationale: rationale.to_owned(),
            ..SprintPlanUpdate::default()
        };
        let kept =
            SprintPlanUpdate { problem_framing: "slow".to_owned(), ..framed("Faster Search", "r") };
        let research_refs = vec!["https://example.org/a".to_owned()];
        let complete = SprintPlanUpdate { research_refs, ..kept.clone() };
        let revised = framed("Search in 50 ms", "r");
        for (sprint, update, words) in [
            (&backed, &framed("", ""), "revised_milestone_title is blank"),
            (&backed, &framed("x", ""), "refinement_rationale is blank"),
            (&backed, &kept, "research_refs is empty"),
            (&backed, &complete, ""),
            (&backed, &revised, ""),
            (&local, &framed("", ""), ""),
        ] {
            let found = asked(step, sprint, &[], update);
            assert!(
                found.contains(words) && found.is_empty() == words.is_empty(),
                "S15 {update:?}: {found}"
            );
        }
    }

    #[test]
    fn s12_without_an_item_the_backlog_steps_are_reopened() {
        for (step, passes) in [
            (PlanningStep::ArtifactSync, true),
            (PlanningStep::BacklogDefinition, false),
            (PlanningStep::BacklogPrioritization, false),
            (PlanningStep::TodoFinalization, false),
        ] {
            let mut other = item("backlog-1");
            "Another".clone_into(&mut other.milestone_title);
            let mut done = item("backlog-2");
            done.status = ItemStatus::Done;
            let found = asked(step, &sprint(&[], ""), &[other, done], &SprintPlanUpdate::default());
            assert_eq!(found.is_empty(), passes, "S12 {step}");
            assert!(passes || found.contains("0 backlog items"), "S12 {found}");
        }
    }

    #[test]
    fn definition_names_what_each_item_lacks() {
        let step = PlanningStep::BacklogDefinition;
        let plain = sprint(&[], "");
        let mut full = item("backlog-1");
        full.acceptance_criteria = vec!["c".into()];
        for key in ["milestone_ref", "requirement_refs", "spec_refs", "research_refs"] {
            full.origin.set(key, vec!["R-1".to_owned()]);
        }
        assert_eq!(asked(step, &plain, &[full.clone()], &SprintPlanUpdate::default()), "");
        let demanding = sprint(&["r"], "http://example.org");
        for field in ["milestone_ref", "requirement_refs", "spec_refs", "research_refs"] {
            let mut lacking = full.clone();
            lacking.origin.set(field, vec![" ".to_owned()]);
            let found = asked(step, &demanding, &[lacking.clone()], &SprintPlanUpdate::default());
            assert_eq!(found, format!("backlog-1 (Index): origin.{field} is missing"));
            let needed = field == "milestone_ref" || field == "spec_refs";
            assert_eq!(
                asked(step, &plain, &[lacking], &SprintPlanUpdate::default()).is_empty(),
                !needed,
                "{field}"
            );
        }
        let mut lacking = full.clone();
        lacking.acceptance_criteria.clear();
        assert!(
            asked(step, &plain, &[lacking], &SprintPlanUpdate::default())
                .contains("acceptance_criteria")
        );
        let found = problems(
            step,
            &plain,
            &[&full],
            ResultStatus::Completed,
            &SprintPlanUpdate::default(),
            false,
        );
        assert_eq!(found.len(), 1, "what was given has to be stored");
        let bare: Vec<Item> = (1..9).map(|n| item(&format!("backlog-{n}"))).collect();
        let found = asked(step, &plain, &bare, &SprintPlanUpdate::default());
        assert_eq!(found.lines().count(), PROBLEMS_QUOTED);
    }

    #[test]
    fn a_requirement_that_the_sprint_does_not_have_is_refused_with_the_nearest() {
        let step = PlanningStep::BacklogDefinition;
        let sprint = sprint(&["answers in 50 ms", "works offline"], "");
        let mut item = item("backlog-1");
        item.acceptance_criteria = vec!["c".into()];
        for key in ["milestone_ref", "spec_refs"] {
            item.origin.set(key, vec!["x".to_owned()]);
        }
        for (refs, wrong, nearest) in [
            (json!(["R-1", "works  offline"]), "", ""),
            (json!(["r-2"]), "", ""),
            (json!("R-1"), "", ""),
            (json!(["R-3"]), "R-3", "R-"),
            (json!(["R-0"]), "R-0", "R-"),
            (json!(["R-1", "work offline"]), "work offline", "R-2 (\"works offline\")"),
            (json!(["Answers in 500 ms"]), "Answers in 500 ms", "R-1 (\"answers in 50 ms\")"),
            (json!(["x".repeat(10_000)]), "xxx", "R-"),
        ] {
            item.origin.set("requirement_refs", OriginValue::of(&refs).unwrap());
            let found =
                asked(step, &sprint, std::slice::from_ref(&item), &SprintPlanUpdate::default());
            assert_eq!(found.is_empty(), wrong.is_empty(), "{refs}: {found}");
            assert!(found.contains(wrong) && found.contains(nearest), "{refs}: {found}");
            assert!(found.chars().count() < 500, "{found}");
        }
    }

    #[test]
    fn s14_a_rank_for_every_item() {
        let step = PlanningStep::BacklogPrioritization;
        let mut items = [item("backlog-1"), item("backlog-2")];
        items[0].priority_rank = 1;
        let found = asked(step, &sprint(&[], ""), &items, &SprintPlanUpdate::default());
        assert_eq!(found, "backlog-2 (Index): priority_rank is 0, 1 or more is needed", "S14");
        items[1].priority_rank = 2;
        assert_eq!(asked(step, &sprint(&[], ""), &items, &SprintPlanUpdate::default()), "");
        items[1].milestone_title.clear();
        items[1].planned_in_sprint_id = Some(sprint(&[], "").sprint_id);
        assert!(
            asked(step, &sprint(&[], ""), &items, &SprintPlanUpdate::default())
                .contains("milestone_title is blank")
        );
    }

    #[test]
    fn s16_what_is_selected_is_planned_here() {
        let step = PlanningStep::TodoFinalization;
        let sprint = sprint(&[], "");
        let mut items = [item("backlog-1"), item("backlog-2")];
        let found = asked(step, &sprint, &items, &SprintPlanUpdate::default());
        assert!(found.contains("no item that can begin"), "{found}");
        items[0].planned_in_sprint_id = Some(sprint.sprint_id.clone());
        assert_eq!(asked(step, &sprint, &items, &SprintPlanUpdate::default()), "");
        items[1].status = ItemStatus::Selected;
        items[1].planned_in_sprint_id = SprintId::parse("260101-Sprint-09:00").ok();
        let found = asked(step, &sprint, &items, &SprintPlanUpdate::default());
        assert!(
            found.contains("backlog-2") && found.contains("260101-Sprint-09:00"),
            "S16 {found}"
        );
        items[1].status = ItemStatus::Pending;
        items[0].depends_on = vec![items[1].backlog_id.clone()];
        let found = asked(step, &sprint, &items, &SprintPlanUpdate::default());
        assert!(found.contains("depends_on names backlog-2"), "{found}");
        items[0].depends_on.clear();
        items[0].status = ItemStatus::Blocked;
        assert!(
            asked(step, &sprint, &items, &SprintPlanUpdate::default())
                .contains("no item that can begin")
        );
    }
}
