//! A whole sprint of six todos whose team is killed once, at points spread over its life: it ends as if
//! nothing had happened, and nothing is there twice.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;
use teams::domain::request::Request;
use teams::domain::sprint::TodoStatus;
use teams::engine::sprint::consistent;
use teams::local_guild::{Config, serve};
use teams::platform::plug::COUNT_VARIABLE;
use teams::{git, store};
use tokio::process::Command;

use super::support::earlier;
use super::support::guild::Caller;
use super::support::house::{author, words};

/// Lives at the same time.
const PARALLEL: usize = 2;
/// Kills, spread over a life.
const KILLS: u64 = 8;
/// How long a life may take. Only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(300);

/// Plays the demo's sprint in the folder: whether the team was killed. It ends well or the test fails.
async fn live(folder: &Path, kill_at: Option<u64>, counts: Option<&Path>) -> bool {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_teams"));
    demo.args(["demo", "--script", "sprint", "--dir"]).arg(folder).env("LC_ALL", "C.UTF-8");
    if let Some(number) = kill_at {
        demo.args(["--pull-plug", &number.to_string()]);
    }
    if let Some(path) = counts {
        demo.env(COUNT_VARIABLE, path);
    }
    let demo = demo.stdin(Stdio::null()).kill_on_drop(true).output();
    let ended = tokio::time::timeout(PATIENCE, demo).await.expect("the sprint ends").unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "killed at {kill_at:?}: {}\n{said}\n{errors}", ended.status);
    said.contains("The plug was pulled")
}

/// What a life came to, without ids, times and numbers: how often each thing is there.
async fn outcome(folder: &Path) -> BTreeMap<String, usize> {
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    let mut add = |what: String| *all.entry(what).or_default() += 1;
    let root = folder.join("workspace");
    let state = store::read_only(&root).unwrap();
    consistent(&state).unwrap();
    assert!(state.scheduler.active_sprint_id.is_none());
    for sprint in state.sprints.values() {
        add(format!("sprint {}", sprint.status));
        for todo in &sprint.work.todos {
            assert_eq!(todo.progress.status, TodoStatus::Committed);
            add(format!("todo {}", todo.title));
        }
    }
    for item in state.backlog.values() {
        add(format!("item {} {}", item.title, item.status.as_str()));
    }
    for request in requests(&root) {
        let duty = request.duty().map_or(String::new(), |duty| duty.to_string());
        let step = request.planning_step().map_or(String::new(), |step| step.to_string());
        add(format!("request {} {duty} {step}", request.status.as_str()));
    }
    for _ in git::create::first_parents(&folder.join("project"), "main").unwrap() {
        add("commit".to_owned());
    }
    for (place, text) in messages(&folder.join("guild")).await {
        add(format!("{place}: {text}"));
    }
    all
}

fn requests(root: &Path) -> Vec<Request> {
    let entries = std::fs::read_dir(root.join(".teams_runtime/requests")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
        .collect()
}

/// Everything that was said in the guild that was kept there.
async fn messages(dir: &Path) -> Vec<(String, String)> {
    let guild = serve(Config { dir: Some(dir.to_owned()), ..Config::default() }).await.unwrap();
    let owner = Caller::person(&guild.info, "owner");
    let state = owner.ok("GET", "/_local/state", Value::Null).await;
    let mut said = Vec::new();
    for channel in state["channels"].as_array().unwrap() {
        let path =
            format!("/_local/messages?channel={}&limit=100", channel["id"].as_str().unwrap());
        let page = owner.ok("GET", &path, Value::Null).await;
        let name = channel["name"].as_str().unwrap_or_default();
        for message in page.as_array().unwrap() {
            let text = format!("{}: {}", author(message), still(&words(message)));
            // How often the team came up, and cut something off before, is how often it was killed.
            if !text.contains("The team is up") && !text.contains("The team went down while") {
                said.push((name.to_owned(), text));
            }
        }
    }
    guild.shutdown().await;
    said
}

/// Ids and numbers become one sign, and how long something took is left out.
fn still(text: &str) -> String {
    let number = regex::Regex::new(r"[0-9a-f]{10,40}|[0-9]+([.,:-][0-9a-f]+)*").unwrap();
    let text = number.replace_all(text, "#").replace('\n', " / ");
    text.replace("# min # s", "# s")
        .replace("# min", "# s")
        .replace(", # s.", ".")
        .replace(" (# s)", "")
        .replace("Time: # s", "Time")
}

/// What one has and the other has not.
fn difference(expected: &BTreeMap<String, usize>, found: &BTreeMap<String, usize>) -> Vec<String> {
    let of = |all: &BTreeMap<String, usize>, what| all.get(what).copied().unwrap_or(0);
    let mut all: Vec<&String> = expected.keys().chain(found.keys()).collect();
    all.sort();
    all.dedup();
    all.into_iter()
        .filter(|what| of(expected, *what) != of(found, *what))
        .map(|what| format!("{} instead of {}: {what}", of(found, what), of(expected, what)))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sprint_ends_the_same_wherever_the_team_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("counts");
    assert!(!live(&folder.path().join("demo"), None, Some(&counts)).await);
    let counted = std::fs::read_to_string(&counts).unwrap();
    let appends = counted.lines().find_map(|line| line.strip_prefix("after_sync ")).unwrap();
    let appends: u64 = appends.parse().unwrap();
    let expected = outcome(&folder.path().join("demo")).await;
    assert_eq!(expected["commit"], 7);

    let lives = (0..KILLS).map(|number| 1 + number * (appends - 1) / KILLS);
    let folder = folder.path();
    let expected = &expected;
    let mut lives = stream::iter(lives)
        .map(|wanted| async move {
            let (mut at, mut wrong) = (wanted, Vec::new());
            loop {
                let home = folder.join(format!("killed-{wanted}-{at}"));
                let was_killed = live(&home, Some(at), None).await;
                let difference = difference(expected, &outcome(&home).await);
                if !difference.is_empty() {
                    wrong.push(format!(
                        "killed at {at} of {appends}:\n  {}",
                        difference.join("\n  ")
                    ));
                }
                if was_killed {
                    return wrong;
                }
                at = earlier(at);
            }
        })
        .buffer_unordered(PARALLEL);
    let mut wrong = Vec::new();
    while let Some(of_life) = lives.next().await {
        wrong.extend(of_life);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
