//! Real agents that speak the Agent Client Protocol, against a scripted model in the words of their API: a turn
//! each, with a tool; what they ask before they do it; and what they say when their model fails. Most of what is
//! in `tests/data/acp` was recorded here.

use std::path::PathBuf;

use serde_json::{Value, json};
use teams::agents::acp::{AcpSettings, known};
use teams::agents::{Agent, AgentOutcome, Event, RunSpec, Sandbox, Watch, WriteAccess};
use teams::domain::run::{FailKind, RunOutcome};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::acp::{codex_acp, real};
use crate::claude::claude;
use crate::support::agent_run::{Place, failure, in_time, result};
use crate::support::model_server::Choose;

/// Where an agent is, by its variable.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
fn named(variable: &str, must: bool) -> Option<String> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    if found.is_none() {
        assert!(!must || std::env::var_os("TEAMS_NO_SKIP").is_none(), "{variable} is not set");
        eprintln!("skipped: {variable} is not set");
    }
    found.map(|path| path.to_string_lossy().into_owned())
}

/// What an agent is told in its environment.
type Env = [(&'static str, String); 2];

/// An agent that is known, with a model of that name at that address.
fn settings(
    command: Vec<String>,
    (url, model): (&str, &str),
    env: &[(&str, String)],
) -> AcpSettings {
    let mut all = known::environment(&command, (url, "none"), Some(model)).unwrap();
    all.extend(env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    // What the tests run is scripted, and containers often have no user namespaces.
    AcpSettings { command, env: all, sandbox: Sandbox::Off, ..AcpSettings::default() }
}

/// Whether the model is asked for work rather than for a title and the like, which comes without tools.
fn at_work(body: &Value) -> bool {
    body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

async fn turn(name: &str, command: Vec<String>, model: &str, env: &[(&str, String)]) {
    let place = Place::new(Box::new(|body: &Value, _| {
        let usage = json!({"in": 100, "cached": 0, "out": 5});
        let said = body.to_string();
        let used = ["tool_result", "functionResponse", "\"role\":\"tool\""];
        if at_work(body) && !used.iter().any(|word| said.contains(word)) {
            json!({"shell": "echo made > made.txt", "usage": usage})
        } else {
            json!({"answer": result(), "usage": usage})
        }
    }))
    .await;
    let versioned = name == "opencode";
    let url = if versioned { &place.server.url } else { &place.server.base };
    let spec = place.spec(Agent::Acp(settings(command, (url, model), env)), name);
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    let said = std::fs::read_to_string(spec.run_dir.join("turn-0/stdout.spool")).unwrap();
    assert!(spec.worktree.join("made.txt").exists(), "{said}");
    assert_eq!(crate::scenarios::left_in(place.folder.path()), Vec::<String>::new());
    assert!(outcome.usage.input_tokens > 0, "{said}");
    let requests = place.server.requests();
    assert!(requests.len() < 6, "{requests:#?}");
    // In Gemini's API it stands in the address.
    let asked =
        requests.iter().filter(|it| at_work(&it.body)).filter_map(|it| it.body.get("model"));
    assert!(asked.clone().all(|it| it == model), "{:?}", asked.collect::<Vec<_>>());
}

fn node(script: String, words: &[&str]) -> Vec<String> {
    let words = words.iter().map(|word| (*word).to_owned());
    ["node".to_owned(), script].into_iter().chain(words).collect()
}

fn gemini() -> Option<Vec<String>> {
    named("TEAMS_GEMINI", true).map(|script| node(script, &["--acp"]))
}

/// With the Claude Code that it is to play, which repeats a request ten times where nobody says otherwise.
fn claude_acp() -> Option<(Vec<String>, Env)> {
    let script = named("TEAMS_CLAUDE_ACP", true)?;
    let program = claude()?.to_string_lossy().into_owned();
    let retries = ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned());
    Some((node(script, &[]), [("CLAUDE_CODE_EXECUTABLE", program), retries]))
}

#[tokio::test]
async fn gemini_takes_a_turn() {
    let Some(command) = gemini() else { return };
    turn("gemini-tool", command, "gemini-2.5-pro", &[]).await;
}

#[tokio::test]
async fn claude_agent_acp_takes_a_turn() {
    let Some((command, env)) = claude_acp() else { return };
    turn("claude-tool", command, "claude-haiku-4-5", &env).await;
}

#[tokio::test]
async fn opencode_takes_a_turn() {
    let Some(program) = named("TEAMS_OPENCODE", false) else { return };
    turn("opencode", vec![program, "acp".to_owned()], "a/model", &[]).await;
}

/// What a model fails with, and what that is for an agent.
fn failures() -> [(&'static str, Value, FailKind); 4] {
    let error = |status: u16, kind: &str, message: &str| json!({"status": status, "error": kind, "message": message});
    [
        ("500", error(500, "api_error", "oops"), FailKind::Overloaded),
        ("429", error(429, "rate_limit_error", "slow down"), FailKind::RateLimit),
        ("401", error(401, "authentication_error", "who are you"), FailKind::Auth),
        ("400", error(400, "invalid_request_error", "no such thing"), FailKind::BadRequest),
    ]
}

async fn fails(agent: &str, command: &[String], env: &[(&str, String)], but: &[&str]) {
    let mut wrong = Vec::new();
    for (name, step, kind) in failures().into_iter().filter(|(name, _, _)| !but.contains(name)) {
        let place = Place::new(Box::new(move |_, _| step.clone())).await;
        let settings = settings(command.to_vec(), (&place.server.base, "a-model"), env);
        let spec = place.spec(Agent::Acp(settings), &format!("{agent}-{name}"));
        let outcome = place.run(&spec).await;
        if failure(&outcome) != kind {
            wrong.push(format!("{name}: not {kind:?}: {outcome:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn failures_of_gemini_have_their_kinds() {
    let Some(command) = gemini() else { return };
    // It tries those again, for a minute and for more than three.
    fails("gemini", &command, &[], &["500", "429"]).await;
}

#[tokio::test]
async fn failures_of_claude_agent_acp_have_their_kinds() {
    let Some((command, env)) = claude_acp() else { return };
    fails("claude", &command, &env, &[]).await;
}

/// A run of codex-acp in a mode of its own; where it is installed.
async fn codex_in(mode: &str, name: &str, model: Choose) -> Option<(Place, RunSpec)> {
    let (script, codex) = codex_acp()?;
    let place = Place::new(model).await;
    let settings = real(place.folder.path(), &place.server.url, script, codex);
    let settings = AcpSettings { mode: Some(mode.to_owned()), ..settings };
    let spec = place.spec(Agent::Acp(settings), name);
    Some((place, spec))
}

/// A model that plays these, and then answers.
fn plays(steps: Vec<Value>) -> Choose {
    let usage = json!({"in": 1000, "cached": 400, "out": 20});
    Box::new(move |_, index| {
        let mut step = steps.get(index).cloned().unwrap_or_else(|| json!({"answer": result()}));
        step["usage"] = usage.clone();
        step
    })
}

fn is_result(outcome: &AgentOutcome) -> bool {
    matches!(outcome.outcome, RunOutcome::Result(_))
}

#[tokio::test]
async fn codex_acp_edits_and_goes_on_in_another_run() {
    let patch =
        "*** Begin Patch\n*** Update File: hello.txt\n@@\n-hello\n+good day\n*** End Patch\n";
    let steps = vec![
        json!({"custom": "apply_patch", "input": patch}),
        json!({"shell": "cat hello.txt; exit 3"}),
    ];
    let Some((place, spec)) = codex_in("agent-full-access", "codex-edit", plays(steps)).await
    else {
        return;
    };
    let outcome = place.run(&spec).await;
    assert!(is_result(&outcome), "{outcome:?}");
    assert_eq!(place.file("hello.txt"), "good day\n");
    let mut again = place.spec(spec.agent.clone(), "codex-edit-again");
    again.resume = outcome.session_id.clone();
    let second = place.run(&again).await;
    assert!(is_result(&second), "{second:?}");
    assert_eq!(second.session_id, outcome.session_id);
    assert_eq!((outcome.usage.input_tokens, second.usage.input_tokens), (3000, 1000));
}

#[tokio::test]
async fn codex_acp_asks_before_it_leaves_its_own_sandbox() {
    let args = json!({"cmd": "echo made > made.txt", "sandbox_permissions": "require_escalated",
        "justification": "to see whether it is allowed"});
    let steps = vec![json!({"tool": "exec_command", "args": args})];
    let Some((place, spec)) = codex_in("workspace-write", "codex-permission", plays(steps)).await
    else {
        return;
    };
    let outcome = place.run(&spec).await;
    assert!(is_result(&outcome), "{outcome:?}");
    assert_eq!(place.file("made.txt"), "made\n");
    let told = std::fs::read_to_string(spec.run_dir.join("turn-0/stdin")).unwrap();
    assert!(told.contains("\"outcome\":\"selected\""), "{told}");
}

#[tokio::test]
async fn codex_acp_is_refused_an_edit_that_its_role_may_not_make_and_goes_on() {
    let patch = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n";
    let steps = vec![json!({"custom": "apply_patch", "input": patch})];
    let Some((place, mut spec)) = codex_in("read-only", "codex-refused", plays(steps)).await else {
        return;
    };
    spec.access = WriteAccess::ReadOnly;
    let outcome = place.run(&spec).await;
    assert!(is_result(&outcome), "{outcome:?}");
    assert!(!spec.worktree.join("made.txt").exists());
    let told = std::fs::read_to_string(spec.run_dir.join("turn-0/stdin")).unwrap();
    assert!(told.contains("may not do that"), "{told}");
}

#[tokio::test]
async fn codex_acp_stops_at_a_command_when_it_is_cancelled() {
    let steps = vec![json!({"shell": "echo up; sleep 1000"})];
    let Some((place, spec)) = codex_in("agent-full-access", "codex-cancelled", plays(steps)).await
    else {
        return;
    };
    let (events, mut seen) = tokio::sync::mpsc::channel(64);
    let watch = Watch { events: Some(events), ..Watch::default() };
    let cancel = async {
        while !matches!(seen.recv().await, Some(Event::ToolStart { .. })) {}
        watch.cancel.cancel();
    };
    let (outcome, ()) = in_time(async { tokio::join!(place.watched(&spec, &watch), cancel) }).await;
    assert_eq!(failure(&outcome), FailKind::Cancelled);
    let said = std::fs::read_to_string(spec.run_dir.join("turn-0/stdout.spool")).unwrap();
    assert!(said.contains("\"stopReason\":\"cancelled\""), "{said}");
    assert_eq!(crate::scenarios::left_in(place.folder.path()), Vec::<String>::new());
}

/// The team's side of a run's tools: it takes whatever result is handed in.
async fn team_of(listener: tokio::net::UnixListener, run_dir: PathBuf) {
    let schema = json!({"type": "object", "additionalProperties": true});
    let tool = json!({"name": "submit_result", "description": "hand it in", "inputSchema": schema});
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut call = String::new();
        stream.read_line(&mut call).await.unwrap();
        let text = if call.contains("submit_result") {
            teams::agents::submit(&run_dir, &result()).unwrap();
            "accepted".to_owned()
        } else {
            json!([tool]).to_string()
        };
        let reply = json!({"ok": true, "text": text});
        stream.write_all(format!("{reply}\n").as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn codex_acp_hands_its_result_in_with_a_tool_of_the_team() {
    let call = json!({"tool": "submit_result", "namespace": "mcp__teams", "args": result()});
    let steps = vec![call, json!({"say": "It is handed in."})];
    let Some((place, mut spec)) = codex_in("workspace-write", "codex-submit", plays(steps)).await
    else {
        return;
    };
    let socket = place.folder.path().join("run.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let team = tokio::spawn(team_of(listener, spec.run_dir.clone()));
    spec.socket = Some(socket);
    let outcome = place.run(&spec).await;
    team.abort();
    assert!(is_result(&outcome), "{outcome:?}");
    assert_eq!(outcome.repairs, 0);
}
