//! What the rehearsal agent does for a sprint and for the backlog beside planning: research, reviews, the
//! closing words, candidates.

use std::path::Path;

use serde_json::{Value, json};

use super::draft::{Answer, Draft, say, write_plan};
use super::{plan, web};
use crate::agents::prompt::{SprintBrief, Task};
use crate::domain::sprint::Duty;

/// Pages that are read for one sprint.
const PAGES: usize = 5;

/// Does what a sprint or the backlog wants.
pub(super) fn answer(task: &Task, duty: Duty, root: &Path, wrote: &mut dyn FnMut(&Path)) -> Answer {
    match duty {
        Duty::ResearchPrepass => research(task, wrote),
        Duty::Planning => plan::answer(task, root, wrote),
        Duty::PlanReview => Draft::new(
            task,
            say(task, "Read the plan: no objection.", "계획을 읽었습니다. 이견이 없습니다."),
        )
        .with("plan_findings", json!([]))
        .done(),
        Duty::OngoingReview => {
            Draft::new(task, say(task, "The plan still holds.", "계획은 그대로 유효합니다."))
                .with("backlog_items", json!([]))
                .with("required_inputs", json!([]))
                .done()
        }
        Duty::ClosingReport => closing(task),
        Duty::Sourcing => candidates(task),
        Duty::SourcerReview => review(task),
        Duty::BlockedReview => blocked(task),
    }
}

fn signal(needed: bool, subject: &str, reason: &str) -> Value {
    json!({
        "needed": needed,
        "subject": subject,
        "research_query": subject,
        "reason_code": reason,
    })
}

/// Reads the pages that the kickoff names, where the web may be read.
fn research(task: &Task, wrote: &mut dyn FnMut(&Path)) -> Answer {
    let words = task.work.sprint.as_ref().map(plan::kickoff_words).unwrap_or_default();
    let addresses = web::addresses(&format!("{words}\n{}", task.request.text));
    if !task.work.web || addresses.is_empty() {
        let (reason, summary) = if task.work.web {
            (
                "not_needed_no_subject",
                say(
                    task,
                    "The kickoff names no page to read; what lies in the project is enough.",
                    "킥오프에 읽을 페이지가 없습니다. 프로젝트 안의 근거로 충분합니다.",
                ),
            )
        } else {
            (
                "not_needed_local_evidence",
                say(
                    task,
                    "What lies in the project is enough.",
                    "프로젝트 안의 근거로 충분합니다.",
                ),
            )
        };
        return Draft::new(task, summary)
            .with("research_signal", signal(false, "", reason))
            .with("research_report", Value::Null)
            .done();
    }
    let subject = addresses.join(", ");
    let needed = signal(true, &subject, "needed_external_grounding");
    let mut sources = Vec::new();
    let mut problems = Vec::new();
    for address in addresses.iter().take(PAGES) {
        match web::read(address) {
            Ok(page) => sources.push(json!({
                "title": page.title,
                "url": address,
                "published_at": Value::Null,
                "relevance": say(task, "named by the kickoff", "킥오프가 지목한 페이지"),
                "summary": page.beginning,
            })),
            Err(error) => problems.push(format!("{address}: {error}")),
        }
    }
    if sources.is_empty() {
        let why = problems.join("; ");
        return Draft::new(
            task,
            say(
                task,
                "None of the pages that the kickoff names could be read.",
                "킥오프가 지목한 페이지를 하나도 읽지 못했습니다.",
            ),
        )
        .with("research_signal", needed)
        .with("research_report", Value::Null)
        .status("failed", why)
        .done();
    }
    let titles: Vec<&str> = sources.iter().filter_map(|source| source["title"].as_str()).collect();
    let headline = say(
        task,
        format!("Read: {}.", titles.join("; ")),
        format!("읽은 페이지: {}.", titles.join("; ")),
    );
    let guidance = say(
        task,
        "Plan with these pages at hand; the rehearsal agent quotes them and draws no conclusions.",
        "이 페이지들을 참고해 계획하십시오. 리허설 에이전트는 인용만 하고 결론을 내지 않습니다.",
    );
    let lines: Vec<String> = sources
        .iter()
        .map(|source| {
            format!(
                "- [{}]({})\n",
                source["title"].as_str().unwrap_or_default(),
                source["url"].as_str().unwrap_or_default()
            )
        })
        .collect();
    let text = format!("# {headline}\n\n{guidance}\n\n{}", lines.concat());
    let mut draft = Draft::new(task, headline.clone());
    let mut artifact = Value::Null;
    if let Some(document) =
        task.documents.iter().find(|one| one.writable && one.name.ends_with("/research.md"))
        && write_plan(&document.path, &text).is_ok()
    {
        wrote(&document.path);
        artifact = json!(document.name);
        draft = draft.artifact(&document.name);
    }
    draft
        .with("research_signal", needed)
        .with(
            "research_report",
            json!({
                "report_artifact": artifact,
                "headline": headline,
                "planner_guidance": guidance,
                "backing_sources": sources,
                "milestone_refinement_hints": titles,
                "problem_framing_hints": [],
                "spec_implications": [],
                "todo_definition_hints": [],
                "backing_reasoning": titles,
                "open_questions": problems,
            }),
        )
        .done()
}

/// The closing words, from the record alone.
fn closing(task: &Task) -> Answer {
    let nobody = SprintBrief::default();
    let sprint = task.work.sprint.as_ref().unwrap_or(&nobody);
    let (done, open): (Vec<_>, Vec<_>) =
        sprint.todos.iter().partition(|todo| todo.progress.status.is_success());
    let total = sprint.todos.len();
    let headline = say(
        task,
        format!("{}: {} of {total} todos delivered.", sprint.milestone, done.len()),
        format!("{}: 할 일 {total}건 중 {}건을 끝냈습니다.", sprint.milestone, done.len()),
    );
    let changes: Vec<&str> = done.iter().map(|todo| todo.title.as_str()).collect();
    let mut issues: Vec<String> =
        open.iter().map(|todo| format!("{} ({})", todo.title, todo.progress.status)).collect();
    issues.extend(sprint.uncommitted_paths.iter().map(|path| {
        let ko = format!("{path}: 커밋되지 않은 채 그대로 있음");
        say(task, format!("{path} lies uncommitted in the project"), ko)
    }));
    let commits: Vec<String> = sprint
        .commits
        .iter()
        .map(|commit| format!("{} {}", commit.short_sha, commit.subject))
        .collect();
    let begun = sprint.todos.iter().filter(|todo| todo.progress.started_at.is_some()).count();
    let timeline = say(
        task,
        format!("{begun} of {total} todos were begun, {} commits were made.", commits.len()),
        format!("할 일 {total}건 중 {begun}건을 시작했고 커밋은 {}건입니다.", commits.len()),
    );
    let spec: Vec<String> =
        (total > 0).then(|| format!("{}/spec.md", sprint.folder)).into_iter().collect();
    Draft::new(task, headline.clone())
        .with(
            "sprint_report",
            json!({
                "headline": headline,
                "changes": changes,
                "timeline": timeline,
                // Who did what stands in the record of their reports, which the report is made with.
                "agent_contributions": [],
                "issues": issues,
                "achievements": commits,
                "highlight_artifacts": spec,
            }),
        )
        .done()
}

/// One candidate a finding.
fn candidates(task: &Task) -> Answer {
    let made: Vec<Value> =
        task.work.findings.iter().map(|finding| candidate(task, finding)).collect();
    Draft::new(
        task,
        say(
            task,
            format!("{} candidates from {} findings.", made.len(), made.len()),
            format!("발견 {}건에서 후보 {}건을 만들었습니다.", made.len(), made.len()),
        ),
    )
    .with("backlog_items", json!(made))
    .done()
}

fn candidate(task: &Task, finding: &Value) -> Value {
    let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let signal = text("signal");
    let kind = if signal == "git_dirty" { "chore" } else { "bug" };
    let mut origin = finding["origin"].as_object().cloned().unwrap_or_default();
    origin.insert("signal".to_owned(), json!(signal));
    origin.insert("trace".to_owned(), finding["trace"].clone());
    json!({
        "title": text("title"),
        "summary": text("summary"),
        "kind": kind,
        "scope": say(
            task,
            format!("Find out why, and put it right: {}", text("title")),
            format!("원인을 찾아 바로잡는다: {}", text("title")),
        ),
        "acceptance_criteria": [say(
            task,
            "the same trace is not found again",
            "같은 흔적이 다시 발견되지 않는다",
        )],
        "origin": origin,
    })
}

/// Keeps every candidate that the backlog does not have yet.
fn review(task: &Task) -> Answer {
    let known = |title: &Value| {
        task.work.backlog.iter().any(|item| Some(item.title.as_str()) == title.as_str())
    };
    let kept: Vec<&Value> =
        task.work.candidates.iter().filter(|candidate| !known(&candidate["title"])).collect();
    let all = task.work.candidates.len();
    Draft::new(
        task,
        say(
            task,
            format!("{} of {all} candidates are kept.", kept.len()),
            format!("후보 {all}건 중 {}건을 남깁니다.", kept.len()),
        ),
    )
    .with("backlog_items", json!(kept))
    .with("required_inputs", json!([]))
    .done()
}

/// Lets those go on for which somebody brought an answer.
fn blocked(task: &Task) -> Answer {
    let (answered, waiting): (Vec<_>, Vec<_>) = task
        .work
        .blocked_items
        .iter()
        .partition(|item| item["answers"].as_array().is_some_and(|list| !list.is_empty()));
    let freed: Vec<Value> = answered
        .iter()
        .map(|item| {
            json!({
                "backlog_id": item["backlog_id"],
                "title": item["title"],
                "scope": item["scope"],
                "kind": item["kind"],
                "status": "pending",
            })
        })
        .collect();
    let wanted: Vec<&Value> =
        waiting.iter().filter_map(|item| item["required_inputs"].as_array()).flatten().collect();
    Draft::new(
        task,
        say(
            task,
            format!("{} items can go on, {} still wait.", freed.len(), waiting.len()),
            format!(
                "{}건은 다시 진행할 수 있고 {}건은 아직 기다립니다.",
                freed.len(),
                waiting.len()
            ),
        ),
    )
    .with("backlog_items", json!(freed))
    .with("required_inputs", json!(wanted))
    .done()
}
