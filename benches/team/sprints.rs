//! Memory of a team that delivers one small sprint after another.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Guild, Team, Voice, setting, wait};

/// What is allowed after all of them, of what there is after the first.
const GOAL: f64 = 1.2;
/// The last words of a sprint are out; its report and its archive follow.
const SETTLE: Duration = Duration::from_secs(5);

/// Ten sprints of one todo each, `TEAMS_BENCH_SPRINTS` otherwise.
pub(crate) async fn measure(guild: &Guild, place: &Path) {
    let many = setting("TEAMS_BENCH_SPRINTS", 10);
    let extra = "agents: {default: rehearsal}\n";
    let team = Team::with(place, &guild.info, Voice::Personas, None, extra);
    guild.greeted().await;
    let mut events = guild.events().await;
    let report = guild.info.channels["report"].clone();
    let mut after = Vec::new();
    for number in 1..=many {
        one(place, number);
        wait(&mut events, |event| {
            let is_report = event["d"]["channel_id"] == report.as_str();
            is_report && event["d"].to_string().contains("Sprint complete")
        })
        .await;
        tokio::time::sleep(SETTLE).await;
        after.push(Team::field(&team.proc("status"), "VmRSS") as f64 / 1024.0);
    }
    let (first, last) = (after[0], after[after.len() - 1]);
    println!(
        "{:<58} {last:>7.1} MB / {first:>7.1} MB = {:>5.2}   (goal <= {GOAL})",
        format!("memory after {many} sprints / after one"),
        last / first
    );
}

/// Puts one task on the list and begins a sprint.
fn one(place: &Path, number: u64) {
    let project = place.join("project");
    let tasks = format!(
        "# Tasks\n\n## 1. Say {number}\n\nCreate `say{number}.sh`:\n\n```sh\necho {number}\n```\n"
    );
    fs::write(project.join("TASKS.md"), tasks).unwrap();
    for words in [vec!["add", "TASKS.md"], vec!["commit", "-qm", "What is next"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=P", "-c", "user.email=p@example.com"]).args(words);
        assert!(git.current_dir(&project).status().unwrap().success());
    }
    let milestone = format!("Say {number}");
    let mut start = Command::new(env!("CARGO_BIN_EXE_teams"));
    start.arg("--workspace-root").arg(place.join("workspace"));
    start.args(["sprint", "start", "--milestone", &milestone]);
    assert!(start.output().unwrap().status.success());
}
