//! How the rehearsal agent plans a sprint: from the project's task list, or from the backlog where the team
//! began the sprint itself.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::draft::{Answer, Draft, say, write_plan};
use super::tasks::{self, TaskItem};
use crate::agents::prompt::{SprintBrief, Task};
use crate::domain::item::{Item, ItemStatus};
use crate::domain::sprint::PlanningStep;

/// Does a step of planning.
pub(super) fn answer(task: &Task, root: &Path, wrote: &mut dyn FnMut(&Path)) -> Answer {
    let nobody = SprintBrief::default();
    let sprint = task.work.sprint.as_ref().unwrap_or(&nobody);
    match task.work.planning_step.unwrap_or(PlanningStep::MilestoneRefinement) {
        PlanningStep::MilestoneRefinement => frame(task, sprint, root),
        PlanningStep::ArtifactSync => write_documents(task, sprint, root, wrote),
        PlanningStep::BacklogDefinition => define(task, sprint, root),
        PlanningStep::BacklogPrioritization => rank(task, sprint, root),
        PlanningStep::TodoFinalization => choose(task, sprint, root),
    }
}

/// Every word in which the milestone was asked for.
pub(super) fn kickoff_words(sprint: &SprintBrief) -> String {
    let mut words =
        vec![sprint.requested_milestone.as_str(), sprint.milestone.as_str(), sprint.brief.as_str()];
    words.extend(sprint.requirements.iter().map(String::as_str));
    words.push(&sprint.request_text);
    words.join("\n")
}

/// The open tasks that the sprint is about: those that its kickoff names, with what has to come before
/// them; all where it names none.
fn chosen(sprint: &SprintBrief, root: &Path) -> Vec<TaskItem> {
    let items = tasks::list(root);
    let named = tasks::named(&kickoff_words(sprint), &items);
    let mut wanted: BTreeSet<u32> = if named.is_empty() {
        items.iter().map(|item| item.number).collect()
    } else {
        named.iter().map(|item| item.number).collect()
    };
    // What comes before may name something before it in its turn; each round adds at least one.
    loop {
        let before: BTreeSet<u32> = items
            .iter()
            .filter(|item| wanted.contains(&item.number))
            .flat_map(|item| item.after.iter().copied())
            .filter(|number| !wanted.contains(number))
            .collect();
        if before.is_empty() {
            break;
        }
        wanted.extend(before);
    }
    items.into_iter().filter(|item| wanted.contains(&item.number) && !item.is_done(root)).collect()
}

/// Items that wait in the backlog: what a sprint without a kickoff is made of, and one whose milestone is the title of a
/// plan that a person brought.
fn waiting<'t>(task: &'t Task, sprint: &SprintBrief) -> Vec<&'t Item> {
    let asked = sprint.requested_milestone.trim();
    let is_meant = |item: &&Item| {
        asked.is_empty() || (item.plan.is_some() && item.milestone_title.trim() == asked)
    };
    let pending = task.work.backlog.iter().filter(|item| item.status == ItemStatus::Pending);
    pending.filter(is_meant).collect()
}

fn from_backlog(task: &Task, sprint: &SprintBrief) -> bool {
    !waiting(task, sprint).is_empty()
}

/// The addresses that research brought.
fn sources(sprint: &SprintBrief) -> Vec<&str> {
    let research = sprint.research.iter().flat_map(|research| &research.backing_sources);
    research.map(|source| source.url.as_str()).collect()
}

fn milestone(task: &Task, sprint: &SprintBrief) -> String {
    let asked = [&sprint.milestone, &sprint.requested_milestone];
    if let Some(title) = asked.into_iter().find(|title| !title.trim().is_empty()) {
        return title.clone();
    }
    match waiting(task, sprint).as_slice() {
        [] => say(task, "The open tasks of the project", "프로젝트의 남은 작업"),
        [one] => one.title.clone(),
        [first, rest @ ..] => say(
            task,
            format!("{} and {} more", first.title, rest.len()),
            format!("{} 외 {}건", first.title, rest.len()),
        ),
    }
}

fn frame(task: &Task, sprint: &SprintBrief, root: &Path) -> Answer {
    let title = milestone(task, sprint);
    let count = if from_backlog(task, sprint) {
        waiting(task, sprint).len()
    } else {
        chosen(sprint, root).len()
    };
    let framing = say(
        task,
        format!("{count} open items of the project stand between today and \"{title}\"."),
        format!("\"{title}\"까지 열린 항목이 {count}건 남아 있습니다."),
    );
    let rationale = say(
        task,
        "Kept: the rehearsal agent takes the milestone at its word.",
        "그대로 둡니다: 리허설 에이전트는 마일스톤을 글자 그대로 받아들입니다.",
    );
    let summary = say(
        task,
        format!("The milestone stands: {title}."),
        format!("마일스톤을 확정했습니다: {title}."),
    );
    Draft::new(task, summary)
        .with(
            "sprint_plan_update",
            json!({
                "revised_milestone_title": title,
                "refinement_rationale": rationale,
                "problem_framing": framing,
                "research_refs": sources(sprint),
            }),
        )
        .with("backlog_items", json!([]))
        .with("required_inputs", json!([]))
        .done()
}

fn write_documents(
    task: &Task,
    sprint: &SprintBrief,
    root: &Path,
    wrote: &mut dyn FnMut(&Path),
) -> Answer {
    let titles: Vec<String> = if from_backlog(task, sprint) {
        waiting(task, sprint).iter().map(|item| item.title.clone()).collect()
    } else {
        chosen(sprint, root).iter().map(|item| item.title.clone()).collect()
    };
    let list = |heading: String, lines: Vec<String>| {
        let lines: Vec<String> = lines.iter().map(|line| format!("- {line}\n")).collect();
        format!("## {heading}\n\n{}", lines.concat())
    };
    let goal = milestone(task, sprint);
    let plan = format!(
        "{}\n{}",
        list(say(task, "Goal", "목표"), vec![goal]),
        list(say(task, "What is done, in this order", "할 일과 순서"), titles.clone())
    );
    let mut must: Vec<String> =
        titles.iter().enumerate().map(|(n, title)| format!("S{}: {title}", n + 1)).collect();
    must.extend(sprint.requirements.iter().cloned());
    must.push(say(task, "the project's checks pass", "프로젝트의 검사가 통과한다"));
    let spec = list(say(task, "What must hold at the end", "끝났을 때 성립해야 하는 것"), must);
    let mut draft =
        Draft::new(task, say(task, "Plan and spec are written.", "계획과 명세를 적었습니다."));
    for (ending, text) in [("/plan.md", &plan), ("/spec.md", &spec)] {
        let found = task.documents.iter().find(|one| one.writable && one.name.ends_with(ending));
        let Some(document) = found else { continue };
        if let Err(error) = write_plan(&document.path, text) {
            return Draft::new(task, error.to_string()).status("failed", error.to_string()).done();
        }
        wrote(&document.path);
        draft = draft.artifact(&document.name);
    }
    draft.with("backlog_items", json!([])).with("required_inputs", json!([])).done()
}

/// An item as it stands, to be sent back with changes.
pub(super) fn same(item: &Item) -> Value {
    json!({
        "backlog_id": item.backlog_id,
        "title": item.title,
        "summary": item.summary,
        "kind": item.kind,
        "scope": item.scope,
        "acceptance_criteria": item.acceptance_criteria,
    })
}

fn define(task: &Task, sprint: &SprintBrief, root: &Path) -> Answer {
    let title = milestone(task, sprint);
    let spec = vec![format!("{}/spec.md", sprint.folder)];
    let origin = json!({
        "milestone_ref": title,
        "requirement_refs": sprint.requirements,
        "spec_refs": spec,
        "research_refs": sources(sprint),
    });
    let checks = say(task, "the project's checks pass", "프로젝트의 검사가 통과한다");
    let mut made: Vec<Value> = Vec::new();
    let is_from_backlog = from_backlog(task, sprint);
    let listed: BTreeSet<String> = tasks::list(root).into_iter().map(|one| one.title).collect();
    // What was planned for it before it began is kept.
    let is_there = |item: &&Item| {
        item.status.is_active() && task.work.is_of_the_sprint(item) && !listed.contains(&item.title)
    };
    let there: Vec<&Item> = match is_from_backlog {
        true => waiting(task, sprint),
        false => task.work.backlog.iter().filter(is_there).collect(),
    };
    for item in there {
        let mut sent = same(item);
        if item.acceptance_criteria.is_empty() {
            sent["acceptance_criteria"] = json!([item.title, checks]);
        }
        sent["milestone_title"] = json!(title);
        sent["origin"] = origin.clone();
        made.push(sent);
    }
    if !is_from_backlog {
        let items = chosen(sprint, root);
        let known = |name: &str| task.work.backlog.iter().find(|item| item.title == name);
        for item in &items {
            let before = items.iter().filter(|other| item.after.contains(&other.number));
            let before: Vec<String> = before
                .map(|other| match known(&other.title) {
                    Some(stored) => stored.backlog_id.to_string(),
                    None => other.title.clone(),
                })
                .collect();
            let paths: BTreeSet<&str> = item.edits.iter().map(|edit| edit.path.as_str()).collect();
            let mut criteria: Vec<String> = paths
                .iter()
                .map(|path| {
                    say(
                        task,
                        format!("{path} is as task {} wants it", item.number),
                        format!("{path}: {}번 작업의 내용과 같다", item.number),
                    )
                })
                .collect();
            criteria.push(checks.clone());
            made.push(json!({
                "backlog_id": known(&item.title).map(|stored| &stored.backlog_id),
                "title": item.title,
                "summary": say(
                    task,
                    format!("Task {} of the project's task list.", item.number),
                    format!("프로젝트 작업 목록의 {}번 작업입니다.", item.number),
                ),
                "kind": "feature",
                "scope": say(
                    task,
                    format!("Do task {} of TASKS.md.", item.number),
                    format!("TASKS.md의 {}번 작업을 한다.", item.number),
                ),
                "acceptance_criteria": criteria,
                "depends_on": before,
                "milestone_title": title,
                "origin": origin,
            }));
        }
    }
    let summary = if made.is_empty() {
        say(
            task,
            "The project's task list has nothing open that this milestone could be made of.",
            "이 마일스톤을 이룰 열린 작업이 작업 목록에 없습니다.",
        )
    } else {
        say(
            task,
            format!("{} items make up the milestone.", made.len()),
            format!("마일스톤을 이루는 항목은 {}건입니다.", made.len()),
        )
    };
    Draft::new(task, summary)
        .with("backlog_items", json!(made))
        .with("required_inputs", json!([]))
        .done()
}

/// The open items of the sprint, each after what it depends on.
fn in_order<'t>(task: &'t Task, root: &Path) -> Vec<&'t Item> {
    let list = tasks::list(root);
    let number = |item: &Item| {
        let found = list.iter().find(|one| one.title == item.title);
        found.map_or(u32::MAX, |one| one.number)
    };
    let mut left: Vec<&Item> = task
        .work
        .backlog
        .iter()
        .filter(|item| item.status.is_active() && task.work.is_of_the_sprint(item))
        .collect();
    left.sort_by_key(|item| {
        let rank = if item.priority_rank == 0 { u32::MAX } else { item.priority_rank };
        (rank, number(item), item.created_at)
    });
    let mut ordered: Vec<&'t Item> = Vec::new();
    while !left.is_empty() {
        let waits =
            |item: &&Item| left.iter().any(|other| item.depends_on.contains(&other.backlog_id));
        // In a circle nobody is first: the order of the list decides, and the runtime refuses it.
        let next = left.iter().position(|item| !waits(item)).unwrap_or_default();
        ordered.push(left.remove(next));
    }
    ordered
}

fn rank(task: &Task, sprint: &SprintBrief, root: &Path) -> Answer {
    let title = milestone(task, sprint);
    let ranked: Vec<Value> = in_order(task, root)
        .iter()
        .zip(1..)
        .map(|(item, rank)| {
            let mut sent = same(item);
            sent["priority_rank"] = json!(rank);
            sent["milestone_title"] = json!(title);
            sent
        })
        .collect();
    let summary = say(
        task,
        format!("{} items are in order.", ranked.len()),
        format!("항목 {}건의 순서를 정했습니다.", ranked.len()),
    );
    Draft::new(task, summary)
        .with("backlog_items", json!(ranked))
        .with("required_inputs", json!([]))
        .done()
}

fn choose(task: &Task, sprint: &SprintBrief, root: &Path) -> Answer {
    let chosen: Vec<Value> = in_order(task, root)
        .iter()
        .filter(|item| item.status != ItemStatus::Blocked)
        .map(|item| {
            let mut sent = same(item);
            sent["planned_in_sprint_id"] = json!(sprint.sprint_id);
            sent
        })
        .collect();
    let summary = say(
        task,
        format!("{} items become todos.", chosen.len()),
        format!("항목 {}건이 할 일이 됩니다.", chosen.len()),
    );
    Draft::new(task, summary)
        .with("backlog_items", json!(chosen))
        .with("required_inputs", json!([]))
        .done()
}
