//! The real Claude Code through the driver, against a scripted model on loopback.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use teams::agents::claude::ClaudeSettings;
use teams::agents::{Agent, Event, RunSpec, Sandbox, Watch, WriteAccess};
use teams::domain::ids::MessageId;
use teams::domain::run::{FailKind, RunOutcome};

use crate::support::agent_run::{Place, failure, in_time, result, words};
use crate::support::until;

/// Where the tests look for the program when nobody says: `TEAMS_CLAUDE`, then `PATH`.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub(crate) fn claude() -> Option<PathBuf> {
    match ClaudeSettings::default().program() {
        Ok(path) => Some(path),
        Err(error) => {
            assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "{error}");
            eprintln!("skipped: claude not installed");
            None
        }
    }
}

fn spec(place: &Place, binary: &Path, run: &str) -> RunSpec {
    let agent = Agent::Claude(ClaudeSettings {
        binary: Some(binary.to_owned()),
        model_url: Some(place.server.base.clone()),
        // What the tests run is scripted, and containers often have no user namespaces.
        sandbox: Sandbox::Off,
        retries: 1,
        ..ClaudeSettings::default()
    });
    place.spec(agent, run)
}

/// The model hands its result in by the tool that the schema became.
fn answer() -> Value {
    json!({"tool": "StructuredOutput", "args": result()})
}

#[tokio::test]
async fn it_edits_a_file_and_its_second_run_counts_only_its_own_tokens() {
    let Some(binary) = claude() else { return };
    let usage = json!({"in": 1000, "cached": 400, "out": 20});
    let with = move |mut step: Value| {
        step["usage"] = usage.clone();
        step
    };
    let place = Place::new(Box::new(move |_, index| match index {
        0 => with(json!({"tool": "Read", "args": {"file_path": "hello.txt"}})),
        1 => with(json!({"say": "I change it.", "tool": "Bash",
            "args": {"command": "sed -i s/hello/goodday/ hello.txt; env; cat hello.txt", "description": "edit"}})),
        _ => with(answer()),
    }))
    .await;
    let spec = spec(&place, &binary, "edit");
    let outcome = place.run(&spec).await;
    let RunOutcome::Result(done) = &outcome.outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((done.summary.as_str(), done.request_id.as_str()), ("did it", "20260101-00000001"));
    assert!(outcome.agent.starts_with("claude 2."), "{}", outcome.agent);
    assert_eq!((outcome.usage.input_tokens, outcome.usage.cached_tokens), (3000, 1200));
    assert_eq!(outcome.usage.output_tokens, 60);
    assert_eq!(place.file("hello.txt"), "goodday\n");

    let requests = place.server.requests();
    assert_eq!(requests.len(), 3);
    let first = requests[0].body.to_string();
    assert!(first.contains("say good day") && first.contains("On two lines."));
    assert!(!requests.iter().any(|request| request.authorized));
    let seen = requests[2].body["messages"].to_string();
    assert!(seen.contains("goodday") && seen.contains("PATH="), "{seen}");
    assert!(!seen.contains("CARGO"), "the environment leaks: {seen}");

    let mut again = self::spec(&place, &binary, "edit-again");
    again.resume = outcome.session_id.clone();
    let second = place.run(&again).await;
    assert!(matches!(second.outcome, RunOutcome::Result(_)), "{second:?}");
    assert_eq!(second.usage.input_tokens, 1000);
    let last = place.server.requests()[3].body["messages"].to_string();
    assert!(last.contains("I change it."), "the conversation is lost: {last}");
}

#[tokio::test]
async fn a_wrong_answer_is_repaired_in_the_same_conversation() {
    let Some(binary) = claude() else { return };
    let bare = json!({"status": "completed", "summary": "no transition"});
    let place = Place::new(Box::new(move |_, index| match index {
        // Prose gets one reminder of its own from the CLI before it counts.
        0 | 1 => json!({"say": "It is done, trust me."}),
        2 => json!({"tool": "StructuredOutput", "args": bare}),
        _ => answer(),
    }))
    .await;
    let outcome = place.run(&spec(&place, &binary, "repair")).await;
    let RunOutcome::Result(done) = &outcome.outcome else {
        panic!("{outcome:?}");
    };
    assert!(done.contract_repair_attempted && outcome.repairs >= 1, "{outcome:?}");
    let requests = place.server.requests();
    let last = requests.last().unwrap().body["messages"].to_string();
    assert!(last.contains("trust me") && last.contains("missing_workflow_transition"));
}

#[tokio::test]
async fn failures_of_the_model_have_their_kinds() {
    let Some(binary) = claude() else { return };
    let error = |status: u16, kind: &str, message: &str| {
        json!({"status": status,
            "body": {"type": "error", "error": {"type": kind, "message": message}}})
    };
    let table = [
        ("error-500", error(500, "api_error", "oops"), FailKind::Overloaded),
        ("overloaded", error(529, "overloaded_error", "busy"), FailKind::Overloaded),
        ("rate-limit", error(429, "rate_limit_error", "slower"), FailKind::RateLimit),
        ("unauthorized", error(401, "authentication_error", "who are you"), FailKind::Auth),
        ("bad-request", error(400, "invalid_request_error", "no"), FailKind::BadRequest),
        (
            "context",
            error(400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000"),
            FailKind::Context,
        ),
        ("refusal", json!({"say": "no", "stop": "refusal"}), FailKind::Refusal),
    ];
    for (name, step, kind) in table {
        let place = Place::new(Box::new(move |_, _| step.clone())).await;
        let outcome = place.run(&spec(&place, &binary, name)).await;
        assert_eq!(failure(&outcome), kind, "{name}: {outcome:?}");
    }
}

#[tokio::test]
async fn words_reach_the_model_within_the_run() {
    let Some(binary) = claude() else { return };
    let place = Place::new(Box::new(|_, index| match index {
        0 => json!({"tool": "Bash", "args":
            {"command": "until [ -e go ]; do sleep 0.05; done", "description": "wait"}}),
        _ => answer(),
    }))
    .await;
    let spec = spec(&place, &binary, "steered");
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let steering = async {
        while !matches!(seen.recv().await, Some(Event::ToolStart { .. })) {}
        watch.words.put(words(7, "and make it blue"));
        // The tool ends once the words stand in the input, so that they are there when it does.
        let stdin = spec.run_dir.join("turn-0/stdin");
        until("the words stand there", async || {
            std::fs::read_to_string(&stdin).unwrap().contains("make it blue").then_some(())
        })
        .await;
        std::fs::write(spec.worktree.join("go"), "").unwrap();
    };
    let run = place.watched(&spec, &watch);
    let (outcome, ()) = in_time(async { tokio::join!(run, steering) }).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert_eq!(outcome.heard, [MessageId(7)]);
    let last = place.server.requests().last().unwrap().body["messages"].to_string();
    assert!(last.contains("make it blue"), "{last}");
    assert!(!spec.run_dir.join("turn-1").exists(), "it was ended for them");
}

#[tokio::test]
async fn words_that_nobody_took_are_not_called_heard() {
    let Some(binary) = claude() else { return };
    let place = Place::new(Box::new(|_, index| match index {
        0 => json!({"hang": true}),
        _ => answer(),
    }))
    .await;
    let spec = spec(&place, &binary, "hanging");
    let watch = Watch::default();
    let steering = async {
        place.server.asked(1).await;
        watch.words.put(words(8, "too late"));
        watch.cancel.cancel();
    };
    let run = place.watched(&spec, &watch);
    let (outcome, ()) = in_time(async { tokio::join!(run, steering) }).await;
    assert_eq!(failure(&outcome), FailKind::Cancelled);
    assert!(outcome.heard.is_empty(), "nobody can have heard that");
}

#[tokio::test]
async fn a_run_at_work_is_counted_and_ended_for_its_budget() {
    let Some(binary) = claude() else { return };
    let usage = json!({"in": 1000, "cached": 0, "out": 20});
    let place = Place::new(Box::new(move |_, index| match index {
        0 => json!({"tool": "Read", "args": {"file_path": "hello.txt"}, "usage": usage}),
        _ => json!({"hang": true}),
    }))
    .await;
    let spec = spec(&place, &binary, "spent");
    crate::codex::ended_for_its_budget(&place, &spec, 1000).await;
}

#[tokio::test]
async fn a_role_that_may_not_write_cannot() {
    let Some(binary) = claude() else { return };
    let place = Place::new(Box::new(|_, index| match index {
        0 => json!({"tool": "Write", "args": {"file_path": "made.txt", "content": "x"}}),
        1 => {
            json!({"tool": "Bash", "args": {"command": "echo y >> hello.txt", "description": "x"}})
        }
        _ => answer(),
    }))
    .await;
    let mut spec = spec(&place, &binary, "read-only");
    spec.access = WriteAccess::ReadOnly;
    if let Agent::Claude(config) = &mut spec.agent {
        config.sandbox = Sandbox::Auto;
    }
    let _proxy = place.proxy(&mut spec).await;
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert!(!spec.worktree.join("made.txt").exists());
    assert_eq!(place.file("hello.txt"), "hello\n");
}

#[tokio::test]
async fn a_conversation_is_not_in_the_folder_of_the_login() {
    let Some(binary) = claude() else { return };
    if !crate::sandbox::bubblewrap().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let login = folder.path().canonicalize().unwrap();
    std::fs::write(login.join(".credentials.json"), r#"{"the": "login"}"#).unwrap();
    let look = format!("cat {0}/.credentials.json; ls {0}/projects | wc -l", login.display());
    let place = Place::new(Box::new(move |_, index| match index {
        0 | 2 => json!({"say": "I look.", "tool": "Bash",
            "args": {"command": look, "description": "look"}}),
        _ => answer(),
    }))
    .await;
    let mut resume = None;
    for run in ["one", "two"] {
        let mut spec = spec(&place, &binary, run);
        spec.resume = resume.take();
        if let Agent::Claude(config) = &mut spec.agent {
            config.sandbox = Sandbox::Auto;
            config.login_home = Some(login.clone());
        }
        let _proxy = place.proxy(&mut spec).await;
        let outcome = place.run(&spec).await;
        assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
        resume = outcome.session_id;
        assert_eq!(std::fs::read_dir(login.join("projects")).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(spec.session_dir.join("claude/projects")).unwrap().count(), 1);
    }
    let requests = place.server.requests();
    let [first, last] = [1, 3].map(|index: usize| requests[index].body["messages"].to_string());
    assert!(first.contains("login"), "{first}");
    assert!(last.matches("I look.").count() == 2, "the conversation is lost: {last}");
}
