//! The whole team with an agent that speaks the Agent Client Protocol at every step, against a scripted model
//! on loopback: codex-acp by its own program.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use teams::git::create;
use tokio::process::Command;
use tokio::time::timeout;

use crate::acp::{codex_acp, real};
use crate::scenarios::left_in;
use crate::support::model_server::ModelServer;
use crate::support::whole::{PATIENCE, Whole, field, words};
use crate::team_codex::{SECRETS, model, step};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_becomes_a_commit_through_an_acp_agent() {
    let Some((script, codex)) = codex_acp() else { return };
    let server = ModelServer::choosing(Box::new(model)).await;
    let home = tempfile::tempdir().unwrap();
    let settings = real(home.path(), &server.url, script, codex);
    // Its state lies beside the sandbox that the others get; the machine is the sandbox here.
    let agents = format!(
        "  default: acp\n  acp: {{command: {}, env: {}, mode: agent-full-access, sandbox: \"off\"}}",
        json!(settings.command),
        json!(settings.env),
    );
    let mut team = Whole::start(&agents, &SECRETS).await;
    let (_, card) = team.commits("let greet.sh --shout print capital letters").await;
    assert!(field(&card, "Agent").contains("codex-acp"), "{card}");
    assert!(!field(&card, "Spent").is_empty(), "{card}");
    team.told_no_secret(&server, &SECRETS);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acp_agent_at_work_when_the_team_is_killed_goes_on_with_its_conversation() {
    let Some((script, codex)) = codex_acp() else { return };
    let struck = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&struck);
    // The model falls silent after the developer's first edit, and answers again in another life.
    let server = ModelServer::choosing(Box::new(move |body, index| {
        let play = model(body, index);
        let building = step(body) == "build it" && !play["tool"].is_null();
        if building && !once.swap(true, Ordering::SeqCst) { json!({"hang": true}) } else { play }
    }))
    .await;
    let home = tempfile::tempdir().unwrap();
    let settings = real(home.path(), &server.url, script, codex);
    let agents = format!(
        "  default: acp\n  acp: {{command: {}, env: {}, mode: agent-full-access, sandbox: \"off\"}}",
        json!(settings.command),
        json!(settings.env),
    );
    let mut team = Whole::start(&agents, &[]).await;
    team.ask("let greet.sh --shout print capital letters").await;
    let mut asked = 0;
    while !struck.load(Ordering::SeqCst) {
        asked += 1;
        timeout(PATIENCE, server.asked(asked)).await.expect("the model is not asked");
    }
    team.killed_and_started_again().await;
    team.until(|said| words(said).contains("**Done.**")).await;
    let commits = create::first_parents(&team.project(), "main").unwrap();
    assert_eq!(commits.len(), 2, "applied once");
    team.stop().await;
    assert_eq!(left_in(team.folder.path()), Vec::<String>::new());
    let requests = server.requests();
    let after = requests.iter().skip(asked).find(|request| step(&request.body) == "build it");
    let text = after.unwrap().body.to_string();
    assert!(text.contains("apply_patch") && text.contains("You were cut off"), "{text}");
}

/// Plays the demo's request by itself; whether it ended well, and all that it said.
async fn demo(agent: &str, url: &str, env: &[(&str, &str)]) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let demo = Command::new(env!("CARGO_BIN_EXE_teams"))
        .args(["demo", "--agent", agent, "--script", "request", "--model-url", url, "--dir"])
        .arg(folder.path().join("demo"))
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ended = timeout(PATIENCE, demo).await.expect("the demo does not end").unwrap();
    let text = [ended.stdout, ended.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    (ended.status.success(), text.concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_plays_its_request_with_an_acp_agent() {
    let Some((script, codex)) = codex_acp() else { return };
    let server = ModelServer::choosing(Box::new(model)).await;
    let agent = format!("acp:node {}", script.display());
    let env = [("TEAMS_CODEX", codex.to_str().unwrap())];
    let (well, said) = demo(&agent, &server.url, &env).await;
    assert!(well, "{said}");
    assert!(said.contains("checks before: red") && !said.contains("rehears"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_whose_model_refuses_everybody_says_so_and_fails() {
    let Some(binary) = crate::codex::codex() else { return };
    let refusal =
        |_: &Value, _| json!({"status": 401, "error": "invalid_api_key", "message": "who are you"});
    let server = ModelServer::choosing(Box::new(refusal)).await;
    let (well, said) =
        demo("codex", &server.url, &[("TEAMS_CODEX", binary.to_str().unwrap())]).await;
    assert!(!well, "{said}");
    assert!(said.contains("who are you"), "{said}");
}
