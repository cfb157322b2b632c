//! From a person's message to the commit on the branch of a project with many files, with an agent that answers at
//! once and a check that is `true`, beside `git worktree add` and `git commit` of the same tree.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use teams::domain::request::{EventKind, RequestEvent};

use super::{Guild, Team, Voice, setting, wait};

/// Files of the projects, and seconds that the second and later requests may take. In the smallest, trees cost nothing.
const SIZES: [(usize, f64); 4] = [(50, 2.0), (5_000, 2.0), (10_000, 5.0), (50_000, 5.0)];
/// Seconds that the first request may take more than git alone, and the most files with which it may not.
const FIRST_MORE: f64 = 1.5;
const FIRST_LIMITED: usize = 5_000;
/// Bytes of a file.
const BYTES: usize = 4_800;
/// Requests that are timed; the first makes the trees.
const REQUESTS: usize = 5;
/// Milliseconds for what follows a commit: rooms, cards, worktrees that are given back.
const REST: Duration = Duration::from_millis(1_500);

/// Both projects, or those with at most `TEAMS_BENCH_FILES` files.
pub(crate) async fn measure(place: &Path) {
    let most = setting("TEAMS_BENCH_FILES", 50_000);
    for (files, goal) in SIZES.into_iter().filter(|(files, _)| *files as u64 <= most) {
        let place = place.join(files.to_string());
        requests(&place, files, goal).await;
        fs::remove_dir_all(&place).unwrap();
    }
}

fn git(folder: &Path, words: &[&str]) {
    // A collection in the background would be in the way of the one that is asked for.
    let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"];
    let status = Command::new("git").args(who).args(words).current_dir(folder).status();
    assert!(status.unwrap().success(), "git {words:?}");
}

/// A project of so many files, a hundred in a folder.
fn project(path: &Path, files: usize) {
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("greet.sh"), "echo \"word 0\"\n").unwrap();
    for number in 0..files {
        let folder = path.join(format!("src/part{}", number / 100));
        if number % 100 == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        let line = format!("line of file {number}\n");
        fs::write(folder.join(format!("file{number}.txt")), line.repeat(BYTES / line.len()))
            .unwrap();
    }
    git(path, &["init", "-q", "-b", "main"]);
    git(path, &["add", "-A"]);
    git(path, &["commit", "-qm", "Begin"]);
    git(path, &["gc", "-q"]);
}

/// What git alone takes.
fn alone(place: &Path) -> Duration {
    let (project, tree) = (place.join("project"), place.join("alone"));
    let start = Instant::now();
    git(&project, &["worktree", "add", "-q", "-b", "alone", tree.to_str().unwrap()]);
    fs::write(tree.join("greet.sh"), "echo \"alone\"\n").unwrap();
    git(&tree, &["commit", "-qam", "alone"]);
    let took = start.elapsed();
    git(&project, &["worktree", "remove", "--force", tree.to_str().unwrap()]);
    git(&project, &["branch", "-qD", "alone"]);
    took
}

async fn requests(place: &Path, files: usize, goal: f64) {
    project(&place.join("project"), files);
    let alone = alone(place);
    let guild = Guild::start();
    let extra = "agents: {default: rehearsal}\nallow_unisolated_checks: true\n";
    let _team = Team::with(place, &guild.info, Voice::Personas, None, extra);
    guild.greeted().await;
    let bot = &guild.info.bots["teams"].id;
    let mut times = Vec::new();
    for number in 0..REQUESTS {
        let mut events = guild.events().await;
        let content =
            format!("<@{bot}> in greet.sh replace \"word {number}\" with \"word {}\"", number + 1);
        let start = Instant::now();
        let said =
            guild.call("POST", "say").json(&json!({"channel": "general", "content": content}));
        let said = guild.json(said).await;
        wait(&mut events, |event| {
            event["d"]["message_reference"]["message_id"] == said["id"]
                && event["d"]["content"].as_str().is_some_and(|text| text.contains("**Done.**"))
        })
        .await;
        times.push(start.elapsed().as_secs_f64());
        tokio::time::sleep(REST).await;
    }
    let first = times.remove(0);
    let git = alone.as_secs_f64();
    println!(
        "{:<58} {first:>8.2} s / {git:>8.2} s   (goal with 5,000: at most {FIRST_MORE} s more)",
        format!("{files} files, first request / git worktree add + commit")
    );
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!(
        "{:<58} {median:>8.2} s / {goal:>8.2} s = {:>5.2}   (goal <= 1; {:.2} to {:.2} s)",
        format!("{files} files, later requests"),
        median / goal,
        times[0],
        times[times.len() - 1]
    );
    let limit = if files > 10_000 { 1_000 } else { 300 };
    let mut landings = landings(place);
    landings.sort_by(f64::total_cmp);
    println!(
        "{:<58} {:>8.0} ms / {limit:>7} ms   (goal <= 1; {:.0} to {:.0} ms)",
        format!("{files} files, from all being green to the branch"),
        landings[landings.len() / 2],
        landings[0],
        landings[landings.len() - 1]
    );
    let landing = landings[landings.len() / 2];
    assert!(landing <= f64::from(limit), "from all being green it takes {landing:.0} ms");
    assert!(median <= goal, "a later request with {files} files takes {median:.2} s");
    let is_limited = files <= FIRST_LIMITED;
    assert!(!is_limited || first <= git + FIRST_MORE, "the first with {files} takes {first:.2} s");
}

/// Milliseconds from the end of what came last before each request's landing, its checks or whoever judged it, to its
/// commit on the branch: the team's own part of a landing.
fn landings(place: &Path) -> Vec<f64> {
    let folder = place.join("workspace/.teams_runtime/requests");
    let histories = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let histories = histories.filter(|path| path.to_str().unwrap().ends_with(".events.jsonl"));
    let landing = |path| {
        let text = fs::read_to_string(path).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<RequestEvent>(line).unwrap());
        let at = |kind: EventKind| {
            let mut found = events.clone().filter(|event| event.kind == kind);
            found.next_back().unwrap().timestamp.millis()
        };
        let ready = at(EventKind::Checks).max(at(EventKind::RoleReport));
        (at(EventKind::Committed) - ready) as f64
    };
    histories.map(landing).collect()
}
