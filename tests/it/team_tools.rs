//! The team's tools, `teams mcp`, in the hands of the real agents: a wrong result and then a right one in
//! the same turn, a note that is remembered, and what belongs to others refused. The model is scripted.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::claude::claude;
use crate::codex::codex;
use crate::support::model_server::{ModelServer, Request};
use crate::support::whole::{Whole, words};
use crate::team_codex::can_confine;

/// What the model calls, one tool a step, and then what it says.
fn calls() -> Vec<(&'static str, Value)> {
    let right = json!({"status": "completed", "summary": "Good day to everybody.", "insights": [],
        "artifacts": [], "error": "", "proposals": {"request_handling": {"mode": "complete"}, "request_intent": null, "request_parts": null, "control_action": null}});
    vec![
        ("submit_result", json!({"summary": "only half of it"})),
        ("status", json!({})),
        ("memory", json!({"action": "note", "text": "people here like good days"})),
        ("memory", json!({"action": "read", "what": "documents"})),
        ("submit_result", right),
    ]
}

/// The words that each call got back have to hold these.
const ANSWERS: [&str; 5] =
    ["/status is missing", "orchestrator", "noted", "shared_workspace/", "accepted"];

/// A team whose agents are as `agents` says answers one message, with one run and without a repair.
async fn hands_in(
    server: &ModelServer,
    agents: &str,
    secret: &str,
    answers: fn(&Request) -> Vec<String>,
) {
    let mut team = Whole::start(agents, &[("GITHUB_TOKEN", secret)]).await;
    team.ask("wish everybody a good day").await;
    team.until(|said| words(said).contains("Good day to everybody.")).await;
    team.stop().await;
    let requests = server.requests();
    let last = requests.last().unwrap();
    let got = answers(last);
    assert_eq!(got.len(), ANSWERS.len(), "{got:#?}");
    for (got, wanted) in got.iter().zip(ANSWERS) {
        assert!(got.contains(wanted), "{wanted}: {got}");
    }
    let repair = "could not be taken as the result";
    assert!(!requests.iter().any(|request| request.body.to_string().contains(repair)));
    assert!(requests.len() <= ANSWERS.len() + 2, "one turn: {}", requests.len());
    assert!(!requests.iter().any(|request| request.body.to_string().contains(secret)));
    let root = team.workspace();
    let journal = std::fs::read_to_string(root.join("orchestrator/journal.md")).unwrap();
    assert!(journal.contains("- people here like good days"), "{journal}");
}

const SECRET: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";

/// What Codex was told by its tools.
fn outputs(request: &Request) -> Vec<String> {
    let items = request.body["input"].as_array().unwrap();
    let outputs = items.iter().filter(|item| item["type"] == "function_call_output");
    outputs.map(|item| item["output"].to_string()).collect()
}

fn codex_model() -> crate::support::model_server::Choose {
    Box::new(|_, index| match calls().get(index) {
        Some((tool, args)) => json!({"tool": tool, "namespace": "mcp__teams", "args": args}),
        None => json!({"say": "It is handed in."}),
    })
}

async fn sandbox() -> &'static str {
    if can_confine().await { "auto" } else { "\"off\"" }
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_hands_its_result_in_wrong_and_then_right_in_one_turn() {
    let Some(binary) = codex() else { return };
    let server = ModelServer::choosing(codex_model()).await;
    let agents = format!(
        "  default: codex\n  codex: {{binary: {}, model_url: {}, sandbox: {}}}",
        json!(binary),
        json!(server.url),
        sandbox().await,
    );
    hands_in(&server, &agents, SECRET, outputs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_hands_its_result_in_wrong_and_then_right_in_one_turn() {
    let Some(binary) = claude() else { return };
    let model = |_: &Value, index: usize| match calls().get(index) {
        Some((tool, args)) => json!({"tool": format!("mcp__teams__{tool}"), "args": args}),
        // The CLI reminds of its own tool for the result, once; it is not needed.
        None => json!({"say": "It is handed in."}),
    };
    let server = ModelServer::choosing(Box::new(model)).await;
    let agents = format!(
        "  default: claude\n  claude: {{binary: {}, model_url: {}, sandbox: {}}}",
        json!(binary),
        json!(server.base),
        sandbox().await,
    );
    hands_in(&server, &agents, SECRET, |request| {
        let messages = request.body["messages"].as_array().unwrap();
        let blocks = messages.iter().flat_map(|it| it["content"].as_array().into_iter().flatten());
        let results = blocks.filter(|block| block["type"] == "tool_result");
        results.map(|block| block["content"].to_string()).collect()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_protocol_hands_its_result_in_wrong_and_then_right_in_one_turn() {
    let Some((script, codex)) = crate::acp::codex_acp() else { return };
    let server = ModelServer::choosing(codex_model()).await;
    let home = tempfile::tempdir().unwrap();
    crate::acp::codex_home(home.path(), &server.url);
    let text = |path: PathBuf| json!(path.to_string_lossy());
    let agents = format!(
        "  default: acp\n  acp: {{command: [node, {}], env: {{CODEX_HOME: {}, CODEX_PATH: {}}}, mode: agent-full-access, sandbox: \"off\"}}",
        text(script),
        text(home.path().to_owned()),
        text(codex),
    );
    hands_in(&server, &agents, SECRET, outputs).await;
}

/// `teams mcp` with these lines as its input, outside of any run.
async fn alone(input: &[u8]) -> Vec<Value> {
    let mut server = Command::new(env!("CARGO_BIN_EXE_teams"))
        .arg("mcp")
        .env_remove("TEAMS_RUN_SOCKET")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(input).await.unwrap();
    drop(stdin);
    let ended = server.wait_with_output().await.unwrap();
    assert!(ended.status.success());
    let text = String::from_utf8(ended.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn outside_of_a_run_there_are_no_tools_and_rubbish_ends_nothing() {
    let request = |id: u64, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let lines = [
        "\u{feff}{ rubbish".to_owned(),
        request(1, "initialize", json!({"protocolVersion": "2025-06-18"})),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        request(2, "tools/list", json!({})),
        request(3, "tools/call", json!({"name": "submit_result", "arguments": {}})),
        request(4, "no/such/method", json!({})),
    ];
    let answers = alone(lines.join("\n").as_bytes()).await;
    assert_eq!(answers.len(), 5, "{answers:#?}");
    assert_eq!(answers[0]["error"]["code"], -32700);
    assert_eq!(answers[1]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answers[2]["result"]["tools"], json!([]));
    assert_eq!(answers[3]["result"]["isError"], true);
    assert_eq!(answers[4]["error"]["code"], -32601);
}
