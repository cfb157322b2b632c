//! A whole sprint whose report goes to the issues of the project's repository, by a scripted `gh`; and what a
//! person has in the project meanwhile.

use std::path::PathBuf;

use serde_json::Value;
use teams::domain::sprint::{CloseoutStatus, Sprint, SprintStatus, TodoStatus};

use crate::git_repo::{git_in, set_mode};
use crate::publish::GH;
use crate::support::house::{House, Plan, words};
use crate::team_sprint::{sprint_that, start};

const TASKS: &str = "# Tasks\n\n## 1. Say goodbye\n\nCreate `bye.sh`:\n\n```sh\necho bye\n```\n";

/// A house with one task whose team publishes; `fail` is the stage at which `gh` fails.
async fn publishing(fail: Option<&str>) -> House {
    let sprint = "start_mode: manual_daily, publish_issues: true".to_owned();
    let mut house = House::built(Plan { sprint, ..Plan::default() }).await;
    std::fs::write(house.project().join("TASKS.md"), TASKS).unwrap();
    git_in(&house.project(), &["add", "TASKS.md"]);
    git_in(&house.project(), &["commit", "-qm", "What is to be done"]);
    let programs = house.beside("programs");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(programs.join("gh"), GH).unwrap();
    set_mode(&programs.join("gh"), 0o755);
    if let Some(stage) = fail {
        std::fs::write(programs.join("fail"), stage).unwrap();
    }
    house.finds_programs_in(programs);
    house.start();
    house.reads("startup", "The team is up").await;
    house
}

/// The sprint's end, with its one todo delivered.
async fn ended(house: &House) -> Sprint {
    let ended =
        sprint_that(house, "the sprint ends", |it| !it.closing.report_path.is_empty()).await;
    let todos: Vec<TodoStatus> = ended.work.todos.iter().map(|todo| todo.progress.status).collect();
    assert_eq!((ended.status, &todos[..]), (SprintStatus::Completed, &[TodoStatus::Committed][..]));
    ended
}

/// What `gh` has of a kind, in order.
fn published(house: &House, kind: &str) -> Vec<Value> {
    let folder = house.beside("programs").join(kind);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().map(|it| it.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g12_an_ended_sprint_is_an_issue_and_what_a_person_has_there_is_named_and_left() {
    let house = publishing(None).await;
    let base = git_in(&house.project(), &["rev-parse", "HEAD"]);
    start(&house).await;
    let at_work =
        |it: &Sprint| it.work.todos.iter().any(|todo| todo.progress.status == TodoStatus::Running);
    sprint_that(&house, "a todo is at work", at_work).await;
    let theirs =
        [("README.md", "# Greeter, edited\n"), (".env", "API_KEY=sk-live-0123456789abcdef\n")];
    for (path, text) in theirs {
        std::fs::write(house.project().join(path), text).unwrap();
    }
    let sprint = ended(&house).await;
    let said = house.reads("startup", "is in the issue tracker").await;
    assert!(words(&said).contains("https://example.test/issues/1"), "{}", words(&said));
    house.quiet().await;

    let issues = published(&house, "issues");
    assert_eq!(issues.len(), 1);
    let (id, title) = (&sprint.sprint_id, &sprint.milestone_title);
    assert_eq!(issues[0]["title"], format!("[{id}] {title}"));
    let body = issues[0]["body"].as_str().unwrap();
    assert!(body.starts_with(&format!("<!-- teams:sprint:{id} -->\n")), "{body}");
    assert!(body.contains("## At a glance") && body.contains("Say goodbye"), "{body}");
    let comments = published(&house, "comments");
    let marks: Vec<&str> =
        comments.iter().map(|it| it["body"].as_str().unwrap().lines().next().unwrap()).collect();
    for name in ["kickoff.md", "plan.md", "todo_backlog.md"] {
        let mark = format!("<!-- teams:sprint:{id}:{name}:part-1 -->");
        assert!(marks.contains(&mark.as_str()), "{name}: {marks:?}");
    }

    // What the person edited and added is theirs: as it was, in no commit of any branch, and named.
    for (path, text) in theirs {
        assert_eq!(std::fs::read_to_string(house.project().join(path)).unwrap(), text);
        assert!(body.contains(&format!("`{path}`")), "{path}: {body}");
        let ours = ["log", "--all", "--format=%s", "--not", &base, "--", path];
        assert_eq!(git_in(&house.project(), &ours), "", "{path} is in a commit of the team");
    }
    let changed = git_in(&house.project(), &["status", "--porcelain"]);
    assert_eq!(changed.lines().collect::<Vec<_>>(), [" M README.md", "?? .env"]);
    assert_eq!(sprint.closing.status, Some(CloseoutStatus::Verified));
    assert_eq!(sprint.closing.uncommitted_paths, [".env", "README.md"]);
    let summary = words(&house.reads("report", "Sprint complete").await);
    assert!(summary.contains(".env") && summary.contains("README.md"), "{summary}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g12_a_sprint_that_cannot_be_published_is_complete_and_says_so() {
    let house = publishing(Some("auth")).await;
    start(&house).await;
    let sprint = ended(&house).await;
    let said = house.reads("startup", "is not in the issue tracker").await;
    let text = words(&said);
    assert!(text.contains("`auth`") && text.contains("you shall not pass"), "{text}");
    assert!(text.contains(sprint.sprint_id.as_str()), "{text}");
    house.quiet().await;
    assert!(published(&house, "issues").is_empty());
    assert!(house.state().unwrap().scheduler.active_sprint_id.is_none());
    house.close().await;
}
