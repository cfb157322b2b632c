//! What the rehearsal agent answers to a message by itself.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use super::draft::{Answer, Draft, needs_real_agent, say, words};
use super::tasks::{self, Job, TaskItem};
use crate::agents::prompt::Task;
use crate::domain::intent::Intent;
use crate::domain::role::Role;
use crate::domain::routes::WorkSize;
use crate::platform::files;

pub(super) fn intake(task: &Task, job: &Job, root: &Path) -> Answer {
    let handled = |summary: String, mode: &str| {
        Draft::new(task, summary).with("request_handling", json!({"mode": mode})).done()
    };
    // Its edits are spelled out: nobody has to plan them.
    let spelled_out = |summary: String| {
        if task.role != Role::Orchestrator {
            return handled(summary, "route");
        }
        let files: BTreeSet<&str> = job.edits().iter().map(|edit| edit.path.as_str()).collect();
        let size = if files.len() <= 3 { WorkSize::Small } else { WorkSize::Normal };
        let intent = json!({"intent": Intent::ImplementationOnly, "confidence": 100, "size": size});
        Draft::new(task, summary)
            .with("request_handling", json!({"mode": "route"}))
            .with("request_intent", intent)
            .done()
    };
    let text = words(task).to_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| text.trim().starts_with(word));
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match job {
        Job::Task(_) | Job::Literal(_) => {
            let title = job.title(&task.language);
            spelled_out(say(
                task,
                format!("Understood: {title}."),
                format!("확인했습니다: {title}."),
            ))
        }
        Job::NoSuchTask => {
            let open = open_tasks(task, root);
            handled(
                say(
                    task,
                    format!("There is no such task. {open}"),
                    format!("그런 작업이 없습니다. {open}"),
                ),
                "complete",
            )
        }
        Job::Unknown
            if has(&[
                "what tasks",
                "which tasks",
                "tasks are",
                "tasks remain",
                "open tasks",
                "남은 작업",
                "할 일",
                "어떤 작업",
                "작업 목록",
            ]) =>
        {
            handled(open_tasks(task, root), "complete")
        }
        Job::Unknown
            if has(&[
                "what files",
                "which files",
                "list the files",
                "어떤 파일",
                "파일 목록",
                "무슨 파일",
            ]) =>
        {
            handled(listing(task, root), "complete")
        }
        Job::Unknown
            if has(&[
                "what are you",
                "who are you",
                "what can you do",
                "누구",
                "뭐 할 수",
                "무엇을 할 수",
                "도움말",
            ]) || begins(&["help", "hello", "hi ", "안녕"]) =>
        {
            handled(introduction(task, root), "complete")
        }
        Job::Unknown if text.trim_end().ends_with('?') => needs_real_agent(task),
        // Planning may be another agent's: it is for the planner to say that it cannot.
        Job::Unknown => handled(say(task, "Handed on to the team.", "팀에 전달했습니다."), "route"),
    }
}

fn introduction(task: &Task, root: &Path) -> String {
    let open = open_tasks(task, root);
    say(
        task,
        format!(
            "I am the rehearsal agent: no model, only rules. I do tasks of TASKS.md (\"do task 1\", \"next task\") and literal edits (in FILE replace \"a\" with \"b\"). {open}"
        ),
        format!(
            "저는 리허설 에이전트입니다. 모델 없이 규칙만으로 TASKS.md의 작업(\"1번 작업 해줘\", \"다음 작업\")과 글자 그대로의 수정을 합니다. {open}"
        ),
    )
}

fn open_tasks(task: &Task, root: &Path) -> String {
    let items = tasks::list(root);
    let open: Vec<&TaskItem> = items.iter().filter(|item| !item.is_done(root)).collect();
    if items.is_empty() {
        return say(task, "The project has no task list.", "프로젝트에 작업 목록이 없습니다.");
    }
    if open.is_empty() {
        return say(task, "All tasks are done.", "모든 작업이 끝났습니다.");
    }
    let names: Vec<String> =
        open.iter().map(|item| format!("{}. {}", item.number, item.title)).collect();
    let names = names.join("; ");
    say(task, format!("Open tasks: {names}."), format!("남은 작업: {names}."))
}

fn listing(task: &Task, root: &Path) -> String {
    let entries = files::list(root).unwrap_or_default();
    let names: Vec<String> = entries
        .iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            (name != ".git")
                .then(|| if path.is_dir() { format!("{name}/") } else { name.to_owned() })
        })
        .take(50)
        .collect();
    let names = names.join(", ");
    say(task, format!("The project has: {names}."), format!("프로젝트의 파일: {names}."))
}
