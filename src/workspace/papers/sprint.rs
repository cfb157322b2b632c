//! The documents in a sprint's folder (`spec/teams.md` 3.5). The planner writes in most of them as well.

use chrono_tz::Tz;
use serde_json::{Value, json};

use super::reports::Reports;
use super::values::{in_order, record, todos};
use super::{Keep, Paper, fill_with, final_report, is_korean, nothing, sprint_folder};
use crate::assets::{AssetError, Values};
use crate::domain::language::Language;
use crate::domain::sprint::{PlanningIteration, PlanningStep, Sprint, SprintStatus, TodoStatus};

/// The files, as the index lists them: name in the marks, heading.
const FILES: [(&str, &str); 8] = [
    ("index", "Sprint Folder"),
    ("kickoff", "Sprint Kickoff"),
    ("milestone", "Sprint Milestone"),
    ("plan", "Sprint Plan"),
    ("spec", "Sprint Spec"),
    ("todo_backlog", "Sprint Todo Backlog"),
    ("iteration_log", "Sprint Iteration Log"),
    (REPORT, "Sprint Report"),
];

const REPORT: &str = "report";

/// Every document of the folder.
pub fn sprint_papers(
    sprint: &Sprint,
    zone: Tz,
    reports: &Reports,
) -> Result<Vec<Paper>, AssetError> {
    let context = context(sprint, reports)?;
    let folder = sprint_folder(sprint);
    let mut papers = Vec::new();
    for (name, heading) in FILES {
        let text = match name {
            REPORT => report_text(sprint, zone, reports, &context)?,
            _ => fill_with(name, &context)?,
        };
        let keep = if name == "kickoff" { Keep::Once } else { Keep::Part };
        papers.push(Paper { path: format!("{folder}/{name}.md"), heading, name, text, keep });
    }
    Ok(papers)
}

/// The report alone: how it stands while the sprint runs, the final report afterwards.
pub fn report_paper(sprint: &Sprint, zone: Tz, reports: &Reports) -> Result<Paper, AssetError> {
    Ok(Paper {
        path: format!("{}/{REPORT}.md", sprint_folder(sprint)),
        heading: "Sprint Report",
        name: REPORT,
        text: report_text(sprint, zone, reports, &context(sprint, reports)?)?,
        keep: Keep::Part,
    })
}

fn report_text(
    sprint: &Sprint,
    zone: Tz,
    reports: &Reports,
    context: &Values,
) -> Result<String, AssetError> {
    if sprint.status.is_terminal() {
        return final_report(sprint, zone, reports);
    }
    fill_with("live_report", context)
}

fn context(sprint: &Sprint, reports: &Reports) -> Result<Values, AssetError> {
    let todos = todos(sprint)?;
    let framing_step = PlanningStep::MilestoneRefinement.as_str();
    let framing =
        latest(sprint, |one| one.step == framing_step).or_else(|| latest(sprint, |_| true));
    let insights: Vec<&String> =
        sprint.planning.iterations.iter().flat_map(|one| &one.insights).collect();
    let done = sprint.work.todos.iter().filter(|todo| todo.progress.status.is_success()).count();
    let running: Vec<&Value> =
        todos.iter().filter(|todo| todo["status"] == json!(TodoStatus::Running.as_str())).collect();
    Ok(Values::of(json!({
        "s": record(sprint)?,
        "ko": is_korean(sprint.language),
        "nothing": nothing(sprint.language),
        "files": FILES.map(|(name, _)| format!("{name}.md")),
        "framing": framing,
        "latest": latest(sprint, |_| true),
        "insights": insights,
        "bodies": bodies(sprint, reports),
        "done": done,
        "running": running,
        "next": next(sprint),
        "todos": todos,
    })))
}

/// The record without its todos: templates have them beside it, in order.
fn latest(
    sprint: &Sprint,
    wanted: impl Fn(&PlanningIteration) -> bool,
) -> Option<&PlanningIteration> {
    sprint.planning.iterations.iter().rev().find(|one| wanted(one))
}

/// Each todo that has a request, with what its roles reported.
fn bodies(sprint: &Sprint, reports: &Reports) -> Vec<Value> {
    let todos = in_order(sprint).into_iter();
    let begun = todos.filter_map(|todo| Some((todo, todo.progress.request_id.as_ref()?)));
    begun
        .map(|(todo, request)| {
            json!({
                "title": todo.title,
                "todo_id": todo.progress.todo_id,
                "request_id": request,
                "status": todo.progress.status,
                "acceptance_criteria": todo.acceptance_criteria,
                "reports": reports.get(request).map(Vec::as_slice).unwrap_or_default(),
            })
        })
        .collect()
}

/// What comes next where no todo is running.
fn next(sprint: &Sprint) -> &'static str {
    match (sprint.status, sprint.language) {
        (SprintStatus::Planning, Language::En) => "the plan",
        (SprintStatus::Planning, Language::Ko) => "계획",
        (SprintStatus::Running, Language::En) => "the next todo",
        (SprintStatus::Running, Language::Ko) => "다음 작업",
        (SprintStatus::Closeout, Language::En) => "the closing of the sprint",
        (SprintStatus::Closeout, Language::Ko) => "스프린트 마감",
        (
            SprintStatus::Completed
            | SprintStatus::Failed
            | SprintStatus::Blocked
            | SprintStatus::Cancelled,
            language,
        ) => nothing(language),
    }
}
