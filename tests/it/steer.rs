//! Words that reach an agent while it works: each agent in its own way, within the same run.

use serde_json::{Value, json};
use teams::agents::codex::{CodexSettings, Sandbox};
use teams::agents::rehearsal::RehearsalSettings;
use teams::agents::{Agent, AgentOutcome, Driver, Event, RunSpec, Watch};
use teams::domain::ids::MessageId;
use teams::domain::run::{FailKind, RunOutcome};

use crate::codex::codex;
use crate::support::agent_run::{Place, failure, in_time, result, words};
use crate::support::{CONTRACT, until};

fn codex_spec(place: &Place, run: &str) -> Option<RunSpec> {
    let agent = Agent::Codex(CodexSettings {
        binary: Some(codex()?),
        model_url: Some(place.server.url.clone()),
        sandbox: Sandbox::Off,
        retries: 1,
        ..CodexSettings::default()
    });
    Some(place.spec(agent, run))
}

/// Uses a tool, then thinks for ever, then answers.
fn thinking(_: &Value, index: usize) -> Value {
    match index {
        0 => json!({"tool": "exec_command", "args": {"cmd": "echo half > done.txt"}}),
        1 => json!({"hang": true}),
        _ => json!({"say": result(), "usage": {"in": 100, "cached": 0, "out": 5}}),
    }
}

#[tokio::test]
async fn codex_is_interrupted_and_goes_on_with_the_words_in_its_conversation() {
    let place = Place::new(Box::new(thinking)).await;
    let Some(spec) = codex_spec(&place, "steered") else { return };
    let watch = Watch::default();
    let steering = async {
        place.server.asked(2).await;
        watch.words.put(words(7, "and make it blue"));
    };
    let (outcome, ()) =
        in_time(async { tokio::join!(place.watched(&spec, &watch), steering) }).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert_eq!((outcome.heard.as_slice(), outcome.repairs), ([MessageId(7)].as_slice(), 0));
    let requests = place.server.requests();
    assert_eq!(requests.len(), 3);
    let last = requests[2].body["input"].to_string();
    assert!(last.contains("say good day") && last.contains("and make it blue"), "{last}");
    assert!(last.contains("echo half"), "what it had done is forgotten: {last}");
    assert_eq!(place.file("done.txt"), "half\n");
}

#[tokio::test]
async fn a_tool_of_codex_is_not_cut_off_for_words() {
    let command = "until [ -e go ]; do sleep 0.05; done; echo whole > done.txt";
    let place = Place::new(Box::new(move |body, index| {
        if body.to_string().contains("make it blue") {
            json!({"say": result()})
        } else if index == 0 {
            json!({"tool": "exec_command", "args": {"cmd": command, "yield_time_ms": 30_000}})
        } else {
            json!({"hang": true})
        }
    }))
    .await;
    let Some(spec) = codex_spec(&place, "patient") else { return };
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let steering = async {
        while !matches!(seen.recv().await, Some(Event::ToolStart { .. })) {}
        watch.words.put(words(7, "and make it blue"));
        // They are noted before the agent is interrupted for them.
        let noted = spec.run_dir.join("turn-0/words.json");
        until("the words are noted", async || noted.exists().then_some(())).await;
        std::fs::write(spec.worktree.join("go"), "").unwrap();
    };
    let (outcome, ()) =
        in_time(async { tokio::join!(place.watched(&spec, &watch), steering) }).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert_eq!(outcome.heard, [MessageId(7)]);
    assert_eq!(place.file("done.txt"), "whole\n");
}

#[tokio::test]
async fn a_run_that_was_interrupted_for_words_is_adopted_with_them() {
    let place = Place::new(Box::new(thinking)).await;
    let Some(spec) = codex_spec(&place, "adopted") else { return };
    let watch = Watch::default();
    let driver = Driver::default();
    // The team is killed right after it wrote down what it interrupts for.
    let killed = async {
        place.server.asked(2).await;
        watch.words.put(words(7, "and make it blue"));
        let noted = spec.run_dir.join("turn-0/words.json");
        until("the words are noted", async || noted.exists().then_some(())).await;
    };
    tokio::select! {
        outcome = driver.run(&spec, &CONTRACT, &watch) => panic!("over already: {outcome:?}"),
        () = in_time(killed) => {}
    }
    let outcome = if spec.run_dir.join("turn-1").exists() {
        // It had come further than that before it could be killed.
        None
    } else {
        interrupt(&spec).await;
        in_time(driver.adopt(&spec.run_dir, &CONTRACT, &Watch::default())).await.unwrap()
    };
    if let Some(AgentOutcome { outcome, heard, .. }) = outcome {
        assert!(matches!(outcome, RunOutcome::Result(_)), "{outcome:?}");
        assert_eq!(heard, [MessageId(7)]);
        let last = place.server.requests().last().unwrap().body["input"].to_string();
        assert!(last.contains("and make it blue"), "{last}");
    }
}

/// Ends the agent of the first turn as an interrupt would have.
async fn interrupt(spec: &RunSpec) {
    use teams::platform::supervise::{RunFolderState, adopt};
    if let RunFolderState::Running(adoption) = adopt(&spec.run_dir.join("turn-0")).unwrap() {
        adoption.interrupt().unwrap();
    }
}

#[tokio::test]
async fn an_agent_that_cannot_be_told_is_ended_before_another_gets_its_worktree() {
    use teams::platform::supervise::{RunFolderState, adopt};
    let place = Place::new(Box::new(thinking)).await;
    let Some(mut spec) = codex_spec(&place, "mistaken") else { return };
    spec.templates.insert("steer.md".to_owned(), "{{ nobody_knows_it }}".to_owned());
    let watch = Watch::default();
    let steering = async {
        place.server.asked(2).await;
        watch.words.put(words(7, "and make it blue"));
    };
    let driver = Driver::default();
    let run = driver.run(&spec, &CONTRACT, &watch);
    let (outcome, ()) = in_time(async { tokio::join!(run, steering) }).await;
    failure(&outcome);
    let left = adopt(&spec.run_dir.join("turn-0")).unwrap();
    assert!(matches!(left, RunFolderState::Finished(_)), "it is still at work: {left:?}");
}

fn rehearsal(place: &Place, run: &str, script: &str) -> RunSpec {
    let path = place.folder.path().join("script.yaml");
    std::fs::write(&path, script).unwrap();
    let mut spec = place.spec(
        Agent::Rehearsal(RehearsalSettings { script: Some(path), ..RehearsalSettings::default() }),
        run,
    );
    spec.task.request.text = "replace \"hello\" with \"bye\" in hello.txt".to_owned();
    spec
}

#[tokio::test]
async fn the_rehearsal_agent_reads_them_before_it_answers() {
    let place = Place::new(Box::new(thinking)).await;
    let spec = rehearsal(&place, "listening", "- {role: developer, do: listen}");
    let watch = Watch::default();
    watch.words.put(words(9, "replace \"hello\" with \"good day\" in hello.txt"));
    let outcome = in_time(place.watched(&spec, &watch)).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert_eq!(outcome.heard, [MessageId(9)]);
}

#[tokio::test]
async fn words_for_a_cancelled_run_are_not_called_heard() {
    let place = Place::new(Box::new(thinking)).await;
    let Some(spec) = codex_spec(&place, "cancelled") else { return };
    let watch = Watch::default();
    let cancel = async {
        place.server.asked(2).await;
        watch.words.put(words(7, "and make it blue"));
        watch.cancel.cancel();
    };
    let (outcome, ()) = in_time(async { tokio::join!(place.watched(&spec, &watch), cancel) }).await;
    assert_eq!(failure(&outcome), FailKind::Cancelled);
    assert!(outcome.heard.is_empty());
}
