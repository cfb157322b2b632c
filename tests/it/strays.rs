//! However a run ends, nothing of it is left: children with sessions of their own, orphans of two forks, and
//! ones that ignore every signal that can be ignored.

use std::path::Path;

use teams::agents::codex::{CodexSettings, Sandbox};
use teams::agents::{Agent, AgentOutcome, Driver, Event, RunSpec, Watch};
use teams::domain::run::{FailKind, RunOutcome};

use crate::scenarios::left_in;
use crate::support::CONTRACT;
use crate::support::agent_run::{Place, failure, in_time, result};

/// Stands for an agent: begins what wants to stay, says so, and ends in the way of `$here/way`.
const STUBBORN: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "codex-cli 0.0.1"; exit; fi
cat > /dev/null
here=$(dirname "$0")
trap '' INT TERM HUP
setsid sh -c 'trap "" INT TERM HUP; while :; do sleep 100; done' > /dev/null 2>&1 &
(setsid sh -c 'trap "" INT TERM HUP; sleep 1000 & sleep 1000' > /dev/null 2>&1 &)
(env -i sh -c 'sleep 1000 & sleep 1000' > /dev/null 2>&1 &)
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"item.started","item":{"id":"1","type":"command_execution","command":"stay"}}'
case $(cat "$here/way") in
  done) cat "$here/answer"; exit 0 ;;
  stays) cat "$here/answer" ;;
  crash) kill -9 $$ ;;
  go) read -r _ < "$here/go"; cat "$here/answer"; exit 0 ;;
esac
while :; do sleep 100; done
"#;

fn spec(place: &Place, way: &str) -> RunSpec {
    let here = place.folder.path();
    let program = here.join("agent");
    std::fs::write(&program, STUBBORN).unwrap();
    crate::git_repo::set_mode(&program, 0o755);
    std::fs::write(here.join("way"), way).unwrap();
    let said = serde_json::json!({"type": "item.completed",
        "item": {"type": "agent_message", "text": result().to_string()}});
    let answer = format!("{said}\n{{\"type\":\"turn.completed\",\"usage\":{{}}}}\n");
    std::fs::write(here.join("answer"), answer).unwrap();
    let settings =
        CodexSettings { binary: Some(program), sandbox: Sandbox::Off, ..CodexSettings::default() };
    let mut spec = place.spec(Agent::Codex(settings), way);
    spec.limits.grace_ms = 50;
    spec
}

async fn place() -> Place {
    Place::new(Box::new(|_, _| serde_json::Value::Null)).await
}

fn nothing_is_left(folder: &Path, way: &str) {
    assert_eq!(left_in(folder), Vec::<String>::new(), "{way}");
}

/// Runs it until it has begun everything, and does something then.
async fn then(spec: &RunSpec, watch: Watch, act: impl FnOnce()) -> AgentOutcome {
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..watch };
    let begun = async {
        while !matches!(seen.recv().await.expect("it begins"), Event::ToolStart { .. }) {}
        act();
    };
    let driver = Driver::default();
    let (outcome, ()) =
        in_time(async { tokio::join!(driver.run(spec, &CONTRACT, &watch), begun) }).await;
    outcome
}

#[tokio::test]
async fn no_process_of_a_run_is_left_however_it_ends() {
    let ends = [
        ("done", None),
        // It says that it is done, and does not end.
        ("stays", None),
        ("crash", Some(FailKind::Crash)),
        ("cancel", Some(FailKind::Cancelled)),
        ("wall", Some(FailKind::WallTimeout)),
        ("idle", Some(FailKind::Stuck)),
    ];
    for (way, kind) in ends {
        let place = place().await;
        let mut spec = spec(&place, way);
        match way {
            "wall" => spec.limits.wall_ms = 15_000,
            "idle" => spec.limits.idle_ms = 3_000,
            _ => {}
        }
        let watch = Watch::default();
        let cancel = watch.cancel.clone();
        let outcome = then(&spec, watch, || {
            // The others may be over already.
            if way == "cancel" {
                assert!(left_in(place.folder.path()).len() > 3, "it began nothing");
                cancel.cancel();
            }
        })
        .await;
        match kind {
            Some(kind) => assert_eq!(failure(&outcome), kind, "{way}: {outcome:?}"),
            None => assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}"),
        }
        nothing_is_left(place.folder.path(), way);
    }
}

#[tokio::test]
async fn no_process_of_a_run_is_left_whose_team_was_killed() {
    for way in ["go", "for ever"] {
        let place = place().await;
        let spec = spec(&place, way.split(' ').next().unwrap());
        let go = place.folder.path().join("go");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &go, mode).unwrap();
        let (events, mut seen) = tokio::sync::mpsc::channel(64);
        let watch = Watch { events: Some(events), ..Watch::default() };
        let driver = Driver::default();
        let begun = async { while !matches!(seen.recv().await, Some(Event::ToolStart { .. })) {} };
        tokio::select! {
            outcome = driver.run(&spec, &CONTRACT, &watch) => panic!("over already: {outcome:?}"),
            () = in_time(begun) => {}
        }
        if way == "go" {
            // It works on, and what it began ends with it.
            tokio::fs::write(&go, "go\n").await.unwrap();
            let adopted = in_time(driver.adopt(&spec.run_dir, &CONTRACT, &Watch::default())).await;
            let outcome = adopted.unwrap().expect("an outcome");
            assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
        } else {
            in_time(teams::agents::end(&spec.run_dir)).await.unwrap();
        }
        nothing_is_left(place.folder.path(), way);
    }
}
