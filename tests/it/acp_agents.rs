//! Real agents that speak the Agent Client Protocol, beside codex-acp: a turn each, with a tool, against a
//! scripted model in the words of their API.

use std::path::PathBuf;

use serde_json::{Value, json};
use teams::agents::acp::{AcpSettings, known};
use teams::agents::{Agent, Sandbox};
use teams::domain::run::RunOutcome;

use crate::claude::claude;
use crate::support::agent_run::{Place, result};

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

async fn turn(name: &str, command: Vec<String>, versioned: bool, env: &[(&str, String)]) {
    let place = Place::new(Box::new(|body: &Value, _| {
        let usage = json!({"in": 100, "cached": 0, "out": 5});
        let said = body.to_string();
        let used = ["tool_result", "functionResponse", "\"role\":\"tool\""];
        // They ask for titles and the like as well, without tools.
        let asks = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        if asks && !used.iter().any(|word| said.contains(word)) {
            json!({"shell": "echo made > made.txt", "usage": usage})
        } else {
            json!({"answer": result(), "usage": usage})
        }
    }))
    .await;
    let url = if versioned { &place.server.url } else { &place.server.base };
    let mut all = known::environment(&command, url, "none").unwrap();
    all.extend(env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let agent = Agent::Acp(AcpSettings {
        command,
        env: all,
        // What the tests run is scripted, and containers often have no user namespaces.
        sandbox: Sandbox::Off,
        ..AcpSettings::default()
    });
    let spec = place.spec(agent, name);
    let outcome = place.run(&spec).await;
    assert!(matches!(outcome.outcome, RunOutcome::Result(_)), "{outcome:?}");
    let said = std::fs::read_to_string(spec.run_dir.join("turn-0/stdout.spool")).unwrap();
    assert!(spec.worktree.join("made.txt").exists(), "{said}");
    assert_eq!(crate::scenarios::left_in(place.folder.path()), Vec::<String>::new());
    assert!(outcome.usage.input_tokens > 0, "{said}");
    assert!(place.server.requests().len() < 6, "{:#?}", place.server.requests());
}

fn node(script: String, words: &[&str]) -> Vec<String> {
    let words = words.iter().map(|word| (*word).to_owned());
    ["node".to_owned(), script].into_iter().chain(words).collect()
}

#[tokio::test]
async fn gemini_takes_a_turn() {
    let Some(script) = named("TEAMS_GEMINI", true) else { return };
    turn("gemini", node(script, &["--acp"]), false, &[]).await;
}

#[tokio::test]
async fn claude_agent_acp_takes_a_turn() {
    let (Some(script), Some(claude)) = (named("TEAMS_CLAUDE_ACP", true), claude()) else { return };
    let program = claude.to_string_lossy().into_owned();
    turn("claude-acp", node(script, &[]), false, &[("CLAUDE_CODE_EXECUTABLE", program)]).await;
}

#[tokio::test]
async fn opencode_takes_a_turn() {
    let Some(program) = named("TEAMS_OPENCODE", false) else { return };
    turn("opencode", vec![program, "acp".to_owned()], true, &[]).await;
}
