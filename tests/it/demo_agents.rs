//! `teams demo --script request` with the real agents, by nothing but its command line, against a scripted model
//! on loopback: a commit in the demo's own repository, or an end that says what to do.

use std::process::Stdio;

use serde_json::{Value, json};
use teams::git::create;
use tokio::process::Command;
use tokio::time::timeout;

use crate::acp::codex_acp;
use crate::support::model_server::{ModelServer, Request};
use crate::support::whole::PATIENCE;
use crate::team_codex::can_confine;
use crate::{claude, codex, team_claude, team_codex};

/// What came of a demo.
struct Ended {
    well: bool,
    said: String,
    folder: tempfile::TempDir,
}

/// Plays the demo's request by itself; `programs` say where the agents' programs are.
async fn demo(agent: &str, url: &str, programs: &[(&str, &str)]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let demo = Command::new(env!("CARGO_BIN_EXE_teams"))
        .args(["demo", "--agent", agent, "--script", "request", "--model-url", url, "--dir"])
        .arg(folder.path().join("demo"))
        .envs(programs.iter().copied())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ended = timeout(PATIENCE, demo).await.expect("the demo does not end").unwrap();
    let text = [ended.stdout, ended.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    Ended { well: ended.status.success(), said: text.concat(), folder }
}

impl Ended {
    /// It ended well, with one commit more on the branch that does what was asked.
    fn has_its_commit(&self) {
        let said = &self.said;
        assert!(self.well, "{said}");
        assert!(said.contains("checks before: red") && !said.contains("rehears"), "{said}");
        let project = self.folder.path().join("demo/project");
        let commits = create::first_parents(&project, "main").unwrap();
        assert_eq!(commits.len(), 2, "{said}");
        let head = commits[0].to_string();
        assert!(said.contains(&format!("at {}: green", &head[..10])), "{said}");
        let repository = git2::Repository::open(&project).unwrap();
        let tree = repository.revparse_single("main^{tree}").unwrap().peel_to_tree().unwrap();
        let file = tree.get_name("greet.sh").unwrap().to_object(&repository).unwrap();
        let text = String::from_utf8_lossy(file.as_blob().unwrap().content()).into_owned();
        assert!(text.contains("--shout) shout=yes"), "{text}");
    }

    /// It failed, in the words of the server or the agent, and names what to do.
    fn says_what_to_do(&self, words: &str) {
        let said = &self.said;
        assert!(!self.well, "{said}");
        assert!(said.contains("waits for a person") && said.contains(words), "{said}");
        assert!(said.contains("Put that right on the machine"), "{said}");
        let project = self.folder.path().join("demo/project");
        assert_eq!(create::first_parents(&project, "main").unwrap().len(), 1, "{said}");
    }
}

/// Every request had the run's own word taken off on its way.
fn no_key_passed(requests: &[Request]) {
    assert!(!requests.is_empty() && !requests.iter().any(|request| request.authorized));
}

fn refuses_everybody(_: &Value, _: usize) -> Value {
    json!({"status": 401, "error": "invalid_api_key", "message": "who are you"})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_ends_in_a_commit_by_codex() {
    let Some(binary) = codex::codex() else { return };
    if !can_confine().await {
        return;
    }
    let server = ModelServer::choosing(Box::new(team_codex::model)).await;
    let programs = [("TEAMS_CODEX", binary.to_str().unwrap())];
    demo("codex", &server.url, &programs).await.has_its_commit();
    // One for each step, two for the developer's tools, one for an answer that was not taken.
    assert_eq!(server.requests().len(), 10);
    no_key_passed(&server.requests());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_ends_in_a_commit_by_claude_code() {
    let Some(binary) = claude::claude() else { return };
    if !can_confine().await {
        return;
    }
    let server = ModelServer::choosing(Box::new(team_claude::model)).await;
    let programs = [("TEAMS_CLAUDE", binary.to_str().unwrap())];
    demo("claude", &server.base, &programs).await.has_its_commit();
    no_key_passed(&server.requests());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_ends_in_a_commit_by_an_agent_of_the_protocol() {
    let Some((script, codex)) = codex_acp() else { return };
    let server = ModelServer::choosing(Box::new(team_codex::model)).await;
    let agent = format!("acp:node {}", script.display());
    let programs = [("TEAMS_CODEX", codex.to_str().unwrap())];
    demo(&agent, &server.url, &programs).await.has_its_commit();
    no_key_passed(&server.requests());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_whose_model_refuses_codex_says_what_to_do() {
    let Some(binary) = codex::codex() else { return };
    let server = ModelServer::choosing(Box::new(refuses_everybody)).await;
    let programs = [("TEAMS_CODEX", binary.to_str().unwrap())];
    demo("codex", &server.url, &programs).await.says_what_to_do("who are you");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_whose_model_refuses_claude_code_says_what_to_do() {
    let Some(binary) = claude::claude() else { return };
    let server = ModelServer::choosing(Box::new(refuses_everybody)).await;
    let programs = [("TEAMS_CLAUDE", binary.to_str().unwrap())];
    demo("claude", &server.base, &programs).await.says_what_to_do("who are you");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_whose_model_refuses_an_agent_of_the_protocol_says_what_to_do() {
    let Some((script, codex)) = codex_acp() else { return };
    let server = ModelServer::choosing(Box::new(refuses_everybody)).await;
    let agent = format!("acp:node {}", script.display());
    let programs = [("TEAMS_CODEX", codex.to_str().unwrap())];
    demo(&agent, &server.url, &programs).await.says_what_to_do("Authentication required");
}
