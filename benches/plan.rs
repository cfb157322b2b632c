//! How long a plan takes beside its longest chain, and beside its work over the slots: the whole service with the
//! rehearsal agent, steps of a second, on the disk of the build folder. `TEAMS_BENCH_ROUNDS` says how often.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods
)]

use std::process::Command;

use serde_json::Value;

/// What each item depends on, by its place: eight of them, three deep.
const DEPENDS_ON: [Option<usize>; 8] =
    [None, None, Some(0), Some(0), Some(1), Some(2), Some(4), None];
/// Steps of an item, each of a second.
const STEP_SECONDS: f64 = 1.0;

fn main() {
    let rounds = std::env::var("TEAMS_BENCH_ROUNDS").unwrap_or_else(|_| "2".to_owned());
    for _ in 0..rounds.parse().unwrap() {
        let enough = played(8);
        let (took, path) = (number(&enough, "makespan_s"), number(&enough, "critical_path_s"));
        println!("slots enough: {took:.1} s for a chain of {path:.1} s = {:.3} (1.1)", took / path);
        let two = played(2);
        let took = number(&two, "makespan_s");
        // All items take the same, so the work is what the chain is, as often as there are items to one of its links.
        let path = number(&two, "critical_path_s");
        let links = two["critical_path"].as_array().unwrap().len();
        let work = path / of(links) * of(DEPENDS_ON.len());
        let least = path.max(work / 2.0);
        println!("two slots: {took:.1} s for {least:.1} s = {:.3} (1.15)", took / least);
    }
}

fn number(figures: &Value, name: &str) -> f64 {
    figures[name].as_f64().unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn of(count: usize) -> f64 {
    count as f64
}

/// The figures of the plan with so many todos at the same time.
fn played(slots: usize) -> Value {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let item = |(at, on): (usize, &Option<usize>)| {
        let on = on.map(|on| format!("depends_on: [EPIC-00{}]\n", on + 1)).unwrap_or_default();
        let number = at + 1;
        format!(
            "## EPIC-00{number}: Part {number}\n{on}#### Acceptance Criteria\n- [ ] its file is there\n\n"
        )
    };
    let items: String = DEPENDS_ON.iter().enumerate().map(item).collect();
    let (plan, times) = (place.path().join("plan.md"), place.path().join("times.yaml"));
    std::fs::write(&plan, format!("# Parts\n\n{items}")).unwrap();
    std::fs::write(&times, format!("{{step: {STEP_SECONDS}, slots: {slots}}}\n")).unwrap();
    let played = Command::new(env!("CARGO_BIN_EXE_teams"))
        .args(["demo", "--script", "plan", "--json", "--plan"])
        .arg(&plan)
        .arg("--simulate")
        .arg(&times)
        .arg("--dir")
        .arg(place.path().join("demo"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
    serde_json::from_slice(&played.stdout).unwrap()
}
