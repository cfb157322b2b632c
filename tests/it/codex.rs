//! The real Codex CLI through the driver, against a scripted model on loopback.

use std::path::PathBuf;

use serde_json::json;
use teams::agents::codex::{CodexSettings, Sandbox};
use teams::agents::{Agent, AgentOutcome, Driver, Event, RunSpec, Watch, WriteAccess};
use teams::domain::run::{FailKind, RunOutcome};
use teams::domain::usage::Usage;

use crate::support::CONTRACT;
use crate::support::agent_run::{Place, failure, in_time, result};

/// Where the tests look for the program when nobody says: `TEAMS_CODEX`, then `PATH`.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub(crate) fn codex() -> Option<PathBuf> {
    match CodexSettings::default().program() {
        Ok(path) => Some(path),
        Err(error) => {
            assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "{error}");
            eprintln!("skipped: codex not installed");
            None
        }
    }
}

fn run_of(place: &Place, binary: PathBuf, run: &str) -> RunSpec {
    let agent = Agent::Codex(CodexSettings {
        binary: Some(binary),
        model_url: Some(place.server.url.clone()),
        // What the tests run is scripted, and containers often have no user namespaces.
        sandbox: Sandbox::Off,
        retries: 1,
        ..CodexSettings::default()
    });
    place.spec(agent, run)
}

#[tokio::test]
async fn it_edits_a_file_and_its_second_run_counts_only_its_own_tokens() {
    let Some(binary) = codex() else { return };
    let patch =
        "*** Begin Patch\n*** Update File: hello.txt\n@@\n-hello\n+good day\n*** End Patch\n";
    let usage = json!({"in": 1000, "cached": 400, "out": 20});
    let place = Place::playing(json!([
        {"custom": "apply_patch", "input": patch, "usage": usage},
        {"tool": "exec_command", "args": {"cmd": "env; cat hello.txt"}, "usage": usage},
        {"say": result(), "usage": usage},
    ]))
    .await;
    let spec = run_of(&place, binary.clone(), "edit");
    let outcome = place.run(&spec).await;
    let RunOutcome::Result(done) = &outcome.outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((done.summary.as_str(), done.request_id.as_str()), ("did it", "20260101-00000001"));
    assert_eq!(outcome.agent, "codex 0.169.0");
    assert_eq!((outcome.usage.input_tokens, outcome.usage.cached_tokens), (3000, 1200));
    let text = std::fs::read_to_string(spec.worktree.join("hello.txt")).unwrap();
    assert_eq!(text, "good day\n");

    let requests = place.server.requests();
    assert_eq!(requests.len(), 3);
    let first = requests[0].body.to_string();
    assert!(first.contains("say good day") && first.contains("On two lines."));
    assert_eq!(requests[0].body["text"]["format"]["type"], "json_schema");
    assert!(!requests.iter().any(|request| request.authorized));
    let seen = requests[2].body["input"].to_string();
    assert!(seen.contains("good day"), "{seen}");
    assert!(!seen.contains("CARGO"), "the environment leaks: {seen}");

    let mut again = run_of(&place, binary, "edit-again");
    again.resume = outcome.session_id.clone();
    let second = place.run(&again).await;
    assert!(matches!(second.outcome, RunOutcome::Result(_)), "{second:?}");
    assert_eq!(second.session_id, outcome.session_id);
    assert_eq!(second.usage.input_tokens, 1000);

    // Its supervisor is lost: nobody settles it, and the next generation goes on in the same conversation.
    let usage_file = again.session_dir.join("usage.json");
    let before = std::fs::read_to_string(&usage_file).unwrap();
    let lost = RunSpec { run_dir: place.folder.path().join("lost"), ..again.clone() };
    place.run(&lost).await;
    std::fs::write(&usage_file, before).unwrap();
    let next = RunSpec { run_dir: place.folder.path().join("next"), ..again };
    assert_eq!(place.run(&next).await.usage.input_tokens, 1000);
}

/// Stands for Codex: notes how it was called, and answers.
const NOTES: &str = r#"#!/bin/sh
here=$(dirname "$0")
if [ "$1" = --version ]; then echo "codex-cli 0.0.1"; exit; fi
for word in "$@"; do printf '%s\n' "$word"; done > "$here/words"
cat > "$here/prompt"
cat "$here/answer"
"#;

#[tokio::test]
async fn k11_a_long_prompt_is_in_no_argument() {
    let place = Place::playing(json!([])).await;
    let here = place.folder.path();
    let program = here.join("codex");
    std::fs::write(&program, NOTES).unwrap();
    crate::git_repo::set_mode(&program, 0o755);
    let said = json!({"type": "agent_message", "text": result().to_string()});
    let answer = [
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "item.completed", "item": said}),
        json!({"type": "turn.completed", "usage": {}}),
    ];
    std::fs::write(here.join("answer"), answer.map(|line| format!("{line}\n")).concat()).unwrap();
    let mut spec = run_of(&place, program, "long");
    spec.task.request.text = "a needle in 200 kB of hay\n".repeat(8_000);
    spec.limits.prompt_bytes = 400_000;
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    let read = |name: &str| std::fs::read_to_string(here.join(name)).unwrap();
    assert!(read("prompt").len() > 200_000 && read("prompt").contains("needle"));
    let words = read("words");
    assert!(!words.contains("needle") && words.len() < 10_000, "{words}");
    assert!(words.ends_with("-\n"), "it is read from stdin: {words}");
}

#[tokio::test]
async fn a_wrong_answer_is_repaired_in_the_same_conversation() {
    let Some(binary) = codex() else { return };
    let place = Place::playing(json!([
        {"say": "It is done, trust me."},
        {"say": {"status": "completed", "summary": "no transition"}},
        {"say": result()},
    ]))
    .await;
    let outcome = place.run(&run_of(&place, binary, "repair")).await;
    let RunOutcome::Result(done) = &outcome.outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(outcome.repairs, 2);
    assert!(done.contract_repair_attempted);
    let requests = place.server.requests();
    assert_eq!(requests.len(), 3);
    let last = requests[2].body["input"].to_string();
    assert!(last.contains("trust me") && last.contains("missing_workflow_transition"));
}

#[tokio::test]
async fn failures_of_the_model_have_their_kinds() {
    let Some(binary) = codex() else { return };
    let error = |kind: &str, message: &str| json!({"error": {"type": kind, "message": message, "code": kind}});
    let table = [
        (
            "error-500",
            json!([{"status": 500, "body": error("server_error", "oops")}]),
            FailKind::Overloaded,
        ),
        (
            "quota",
            json!([{"status": 429, "body": error("insufficient_quota", "no credit")}]),
            FailKind::Quota,
        ),
        ("cut", json!([{"say": "half", "cut": true}]), FailKind::Transport),
        (
            "unauthorized",
            json!([{"status": 401, "body": error("invalid_api_key", "who are you")}]),
            FailKind::Auth,
        ),
        (
            "bad-request",
            json!([{"status": 400, "body": error("invalid_request_error", "no")}]),
            FailKind::BadRequest,
        ),
        (
            "overloaded",
            json!([{"failed": {"code": "server_is_overloaded", "message": "busy"}}]),
            FailKind::Overloaded,
        ),
        (
            "context",
            json!([{"failed": {"code": "context_length_exceeded", "message": "too long"}}]),
            FailKind::Context,
        ),
    ];
    for (name, steps, kind) in table {
        let place = Place::playing(steps).await;
        let outcome = place.run(&run_of(&place, binary.clone(), name)).await;
        assert_eq!(failure(&outcome), kind, "{name}: {outcome:?}");
    }
}

#[tokio::test]
async fn prose_for_ever_is_a_broken_contract() {
    let Some(binary) = codex() else { return };
    let place = Place::playing(json!([{"say": "I am done."}])).await;
    let outcome = place.run(&run_of(&place, binary, "prose")).await;
    assert_eq!(failure(&outcome), FailKind::Contract);
    assert_eq!((outcome.repairs, place.server.requests().len()), (2, 3));
}

#[tokio::test]
async fn a_cancelled_run_ends_with_its_commands() {
    let Some(binary) = codex() else { return };
    let command = json!({"cmd": "echo up; sleep 1000", "yield_time_ms": 600_000});
    let place = Place::playing(json!([{"tool": "exec_command", "args": command}])).await;
    let mut spec = run_of(&place, binary, "cancel");
    spec.limits.grace_ms = 10_000;
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let driver = Driver::default();
    let run = driver.run(&spec, &CONTRACT, &watch);
    let cancel = async {
        while !matches!(seen.recv().await, Some(Event::ToolStart { .. })) {}
        watch.cancel.cancel();
    };
    let (outcome, ()) = in_time(async { tokio::join!(run, cancel) }).await;
    assert_eq!(failure(&outcome), FailKind::Cancelled);
}

#[tokio::test]
async fn a_role_that_may_not_write_cannot() {
    let Some(binary) = codex() else { return };
    let steps = json!([
        {"tool": "exec_command", "args": {"cmd": "echo x > made.txt; echo y >> hello.txt; echo tried"}},
        {"say": result()},
    ]);
    let place = Place::playing(steps).await;
    let mut spec = run_of(&place, binary, "read-only");
    spec.access = WriteAccess::ReadOnly;
    if let Agent::Codex(config) = &mut spec.agent {
        config.sandbox = Sandbox::Auto;
    }
    let _proxy = place.proxy(&mut spec).await;
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert!(!spec.worktree.join("made.txt").exists());
    let text = std::fs::read_to_string(spec.worktree.join("hello.txt")).unwrap();
    assert_eq!(text, "hello\n");
}

/// What a tool of the team says from within Codex: the output that the model was sent.
async fn tool_of_the_team(sandbox: Sandbox) -> Option<String> {
    let binary = codex()?;
    let cmd = format!("{} backlog add --title goodbye 2>&1", env!("CARGO_BIN_EXE_teams"));
    let place = Place::playing(json!([
        {"tool": "exec_command", "args": {"cmd": cmd, "yield_time_ms": 30_000}},
        {"say": result()},
    ]))
    .await;
    std::fs::create_dir(place.folder.path().join("sockets")).unwrap();
    let socket = place.folder.path().join("sockets/run.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let team = tokio::spawn(async move {
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut call = String::new();
            stream.read_line(&mut call).await.unwrap();
            // The server beside the agent asks what it has to offer.
            let text = if call.contains("\"tools\"") { "[]" } else { "one was added" };
            let wanted = call.contains("backlog_merge") && call.contains("goodbye");
            assert!(text == "[]" || wanted, "{call}");
            let reply = json!({"ok": true, "text": text});
            stream.write_all(format!("{reply}\n").as_bytes()).await.unwrap();
        }
    });
    let mut spec = run_of(&place, binary, "tool");
    spec.socket = Some(socket);
    if let Agent::Codex(config) = &mut spec.agent {
        config.sandbox = sandbox;
    }
    let _proxy = place.proxy(&mut spec).await;
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    team.abort();
    Some(place.server.requests()[1].body["input"].to_string())
}

#[tokio::test]
async fn the_tools_of_the_team_are_reached_within_the_sandbox_and_without() {
    let Some(open) = tool_of_the_team(Sandbox::Off).await else { return };
    assert!(open.contains("one was added"), "{open}");
    let Some(within) = tool_of_the_team(Sandbox::Auto).await else { return };
    assert!(within.contains("one was added"), "{within}");
}

#[tokio::test]
async fn sessions_share_a_login_and_nothing_else() {
    let Some(binary) = codex() else { return };
    if !crate::sandbox::bubblewrap().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let login = folder.path().canonicalize().unwrap();
    std::fs::create_dir(login.join("sessions")).unwrap();
    std::fs::write(login.join("sessions/old.jsonl"), "somebody else's words").unwrap();
    std::fs::write(login.join("auth.json"), r#"{"OPENAI_API_KEY": "the login"}"#).unwrap();
    let cmd = format!(
        "cd {}; cat auth.json; echo '{{}}' > auth.new; mv auth.new auth.json; echo done",
        login.display()
    );
    let turn = json!({"tool": "exec_command", "args": {"cmd": cmd}});
    let say = json!({"say": result()});
    let place = Place::playing(json!([turn, say, turn, say])).await;
    for run in ["one", "two"] {
        let mut spec = run_of(&place, binary.clone(), run);
        spec.session_dir = place.folder.path().join(run);
        if let Agent::Codex(config) = &mut spec.agent {
            config.sandbox = Sandbox::Auto;
            config.login_home = Some(login.clone());
        }
        let _proxy = place.proxy(&mut spec).await;
        let outcome = place.run(&spec).await;
        assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
        assert!(spec.session_dir.join("codex/sessions").is_dir());
    }
    let seen = |request: usize| place.server.requests()[request].body["input"].to_string();
    assert!(seen(1).contains("the login") && seen(1).contains("done"), "{}", seen(1));
    // What renews the login is seen by the next session.
    assert!(seen(3).contains("{}") && seen(3).contains("done"), "{}", seen(3));
    let kept = std::fs::read_dir(login.join("sessions")).unwrap().count();
    assert_eq!(kept, 1, "the conversations of others are as they were");
}

/// A model by which an agent has used 1000 tokens, and works on.
async fn spent_and_at_work() -> Place {
    Place::playing(json!([
        {"tool": "exec_command", "args": {"cmd": "true"}, "usage": {"in": 1000, "cached": 400, "out": 20}},
        {"hang": true},
    ]))
    .await
}

/// With a login no call to a model comes by the proxy; what Codex writes down while it works is what there is to count.
#[tokio::test]
async fn a_run_at_work_is_counted_and_ended_for_its_budget() {
    let Some(binary) = codex() else { return };
    let place = spent_and_at_work().await;
    let spec = run_of(&place, binary, "spent");
    ended_for_its_budget(&place, &spec, 1000).await;
}

/// The answer with which the budget is used up may be the last one.
#[tokio::test]
async fn what_was_done_when_the_budget_was_used_up_is_done() {
    let Some(binary) = codex() else { return };
    let usage = json!({"in": 1000, "cached": 400, "out": 20});
    let place = Place::playing(json!([{"say": result(), "usage": usage}])).await;
    let spec = run_of(&place, binary, "spent-at-the-end");
    let outcome = held_to(1000, async |watch| place.watched(&spec, watch).await).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    assert_eq!(outcome.usage.input_tokens, 1000);
}

/// The agent outlives its team, and the next one counts what it uses.
#[tokio::test]
async fn a_run_of_an_earlier_team_is_ended_for_its_budget() {
    let Some(binary) = codex() else { return };
    let place = spent_and_at_work().await;
    let spec = run_of(&place, binary, "outlives");
    let (driver, nobody) = (Driver::default(), Watch::default());
    tokio::select! {
        outcome = driver.run(&spec, &CONTRACT, &nobody) => panic!("over already: {outcome:?}"),
        _ = in_time(place.server.asked(2)) => {}
    }
    let adopted = held_to(1000, async |watch| {
        driver.adopt(&spec.run_dir, &CONTRACT, watch).await.unwrap().expect("an outcome")
    });
    let outcome = adopted.await;
    assert_eq!(failure(&outcome), FailKind::Budget, "{outcome:?}");
    assert_eq!(outcome.usage.input_tokens, 1000, "{outcome:?}");
}

pub(crate) async fn ended_for_its_budget(place: &Place, spec: &RunSpec, input_tokens: u64) {
    let outcome = held_to(input_tokens, async |watch| place.watched(spec, watch).await).await;
    assert_eq!(failure(&outcome), FailKind::Budget, "{outcome:?}");
    assert_eq!(outcome.usage.input_tokens, input_tokens, "{outcome:?}");
}

/// Runs it with a budget that it has used up when it tells so much.
async fn held_to(input_tokens: u64, run: impl AsyncFnOnce(&Watch) -> AgentOutcome) -> AgentOutcome {
    let (used, mut told) = tokio::sync::watch::channel(Usage::default());
    let watch = Watch { used: Some(used), ..Watch::default() };
    let budget = async {
        in_time(told.wait_for(|used| used.input_tokens >= input_tokens)).await.unwrap();
        watch.over_budget.cancel();
        std::future::pending().await
    };
    tokio::select! {
        outcome = in_time(run(&watch)) => outcome,
        never = budget => match never {},
    }
}
