//! What programs say and do that are broken, or no agents at all: a failed attempt with a reason that a person
//! understands, and the next run is none the worse for it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use teams::agents::acp::AcpSettings;
use teams::agents::claude::ClaudeSettings;
use teams::agents::codex::CodexSettings;
use teams::agents::{Agent, AgentOutcome, RunSpec, Sandbox};
use teams::domain::run::{AnswerFault, BadAnswer, FailKind, RunOutcome};
use tokio::process::Command;

use crate::support::agent_run::{Place, failure, in_time, result};
use crate::team_codex::can_confine;

/// Prints a file.
const PRINTS: &str = r#"if [ "$1" = --version ]; then echo "codex-cli 0.0.1"; exit; fi
cat "$(dirname "$0")/output""#;

/// Lines that mean nothing, in the middle of a stream.
const NOISE: &[u8] = b"starting up...\n{\"type\":\n[]\nnull\n7\n\xff\xfe\x00\x01\n\
    {\"type\":\"something.new\",\"x\":{\"y\":[1]}}\n{\"type\":5}\n{\"type\":\"item.completed\",\"item\":\"x\"}\n\
    {\"type\":\"item.started\"}\n{\"type\":\"assistant\",\"message\":7}\n{\"type\":\"user\",\"message\":{\"content\":{}}}\n\
    {\"type\":\"system\"}\n{\"jsonrpc\":\"2.0\",\"id\":\"strange\",\"result\":1}\n\n";

fn program(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("agent");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    crate::git_repo::set_mode(&path, 0o755);
    path
}

fn codex(place: &Place, run: &str) -> RunSpec {
    let binary = Some(place.folder.path().join("agent"));
    let settings = CodexSettings { binary, sandbox: Sandbox::Off, ..CodexSettings::default() };
    place.spec(Agent::Codex(settings), run)
}

async fn place() -> Place {
    Place::new(Box::new(|_, _| Value::Null)).await
}

/// The outcome of an agent that prints this.
async fn prints(output: &[u8]) -> AgentOutcome {
    let place = place().await;
    program(place.folder.path(), PRINTS);
    std::fs::write(place.folder.path().join("output"), output).unwrap();
    place.run(&codex(&place, "prints")).await
}

fn lines(lines: &[Value]) -> Vec<u8> {
    lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

fn answer(text: &str) -> Vec<Value> {
    vec![
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}}),
        json!({"type": "turn.completed", "usage": "much"}),
    ]
}

#[track_caller]
fn fails(outcome: &AgentOutcome, kind: FailKind, reason: &str) {
    assert_eq!(failure(outcome), kind, "{outcome:?}");
    let RunOutcome::Failed { message, .. } = &outcome.outcome else { panic!("{outcome:?}") };
    assert!(message.contains(reason) && !message.contains('\n'), "{message}");
}

fn succeeds(outcome: &AgentOutcome) {
    let RunOutcome::Result(done) = &outcome.outcome else { panic!("{outcome:?}") };
    assert_eq!(done.request_id, "20260101-00000001");
}

#[tokio::test]
async fn noise_between_the_lines_of_an_agent_is_no_harm() {
    let good = lines(&answer(&result().to_string()));
    succeeds(&prints(&[NOISE, &good, NOISE].concat()).await);

    let place = place().await;
    let here = place.folder.path();
    let end = json!({"type": "result", "is_error": false, "structured_output": result()});
    std::fs::write(here.join("output"), [NOISE, &lines(&[end])].concat()).unwrap();
    let binary = Some(program(here, PRINTS));
    let claude = ClaudeSettings { binary, sandbox: Sandbox::Off, ..ClaudeSettings::default() };
    succeeds(&place.run(&place.spec(Agent::Claude(claude), "claude")).await);

    let update =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"text": result().to_string()}});
    let said = [
        json!({"id": 0, "result": {"protocolVersion": 1}}),
        json!({"id": 1, "result": {"sessionId": "s", "modes": "none"}}),
        json!({"method": "session/update", "params": {"update": update}}),
        json!({"id": 2, "result": {"stopReason": "end_turn", "usage": []}}),
    ];
    std::fs::write(here.join("noise"), NOISE).unwrap();
    let script: String = said
        .iter()
        .map(|line| {
            let waits = if line["id"].is_null() { "" } else { "read -r _; " };
            format!("{waits}cat \"$(dirname \"$0\")/noise\"; echo '{line}'\n")
        })
        .collect();
    let command = vec![program(here, &script).to_string_lossy().into_owned()];
    let acp = AcpSettings { command, sandbox: Sandbox::Off, ..AcpSettings::default() };
    succeeds(&place.run(&place.spec(Agent::Acp(acp), "acp")).await);
}

#[tokio::test]
async fn what_is_no_answer_fails_with_a_reason() {
    fails(&prints(NOISE).await, FailKind::NoTerminal, "without an answer");
    fails(&prints(b"").await, FailKind::NoTerminal, "without an answer");
    // The end of the stream is missing, in the middle of a line.
    let whole = lines(&answer(&result().to_string()));
    let half = &whole[..whole.len() - 20];
    fails(&prints(half).await, FailKind::NoTerminal, "without an answer");
    // An answer that is no UTF-8 is none.
    let broken: Vec<u8> =
        whole.iter().map(|byte| if *byte == b'w' { 0xff } else { *byte }).collect();
    fails(&prints(&broken).await, FailKind::Contract, "empty");
    fails(&prints(&lines(&answer("{\"status\":"))).await, FailKind::Contract, "no valid JSON");
    // Somebody else's result is none of this request, however well it reads.
    let mut other = result();
    other["request_id"] = json!("20990101-99999999");
    let outcome = prints(&lines(&answer(&other.to_string()))).await;
    fails(&outcome, FailKind::Contract, "request_id_of_another_request");
}

/// The outcome of an agent of each kind whose model says this and nothing else.
async fn each_says(text: &str) -> [(&'static str, AgentOutcome); 3] {
    let place = place().await;
    let here = place.folder.path();
    let output = here.join("output");
    let binary = program(here, PRINTS);
    std::fs::write(&output, lines(&answer(text))).unwrap();
    let codex = place.run(&codex(&place, "codex")).await;
    let end = json!({"type": "result", "is_error": false, "result": text});
    std::fs::write(&output, lines(&[end])).unwrap();
    let claude =
        ClaudeSettings { binary: Some(binary), sandbox: Sandbox::Off, ..ClaudeSettings::default() };
    let claude = place.run(&place.spec(Agent::Claude(claude), "claude")).await;
    speaks_acp(here, text, "end_turn");
    let acp = place.run(&place.spec(acp(here), "acp")).await;
    [("codex", codex), ("claude", claude), ("acp", acp)]
}

/// An agent of the protocol whose model says this in its only turn, which ends so.
fn speaks_acp(here: &Path, text: &str, stop: &str) {
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"text": text}});
    let said = [
        (true, json!({"id": 0, "result": {"protocolVersion": 1}})),
        (true, json!({"id": 1, "result": {"sessionId": "s"}})),
        (true, json!({"method": "session/update", "params": {"update": update}})),
        (false, json!({"id": 2, "result": {"stopReason": stop}})),
    ];
    let mut script = String::new();
    for (at, (waits, line)) in said.iter().enumerate() {
        std::fs::write(here.join(format!("line-{at}")), format!("{line}\n")).unwrap();
        let waits = if *waits { "read -r _; " } else { "" };
        script.push_str(&format!("{waits}cat \"$(dirname \"$0\")/line-{at}\"\n"));
    }
    program(here, &script);
}

fn acp(here: &Path) -> Agent {
    let command = vec![here.join("agent").to_string_lossy().into_owned()];
    Agent::Acp(AcpSettings { command, sandbox: Sandbox::Off, ..AcpSettings::default() })
}

#[track_caller]
fn answered(outcome: &AgentOutcome) -> &BadAnswer {
    let RunOutcome::Failed { answer: Some(answer), .. } = &outcome.outcome else {
        panic!("{outcome:?}");
    };
    answer
}

#[tokio::test]
async fn what_a_model_says_instead_of_a_result_is_kept_with_every_agent() {
    use AnswerFault as F;
    let huge = format!("First line.\n{}", "word ".repeat(1_200_000));
    let long = format!("First line.\n{}", "word ".repeat(100_000));
    for (said, fault, beginning) in [
        ("I am done.\nAll is well.", F::Prose, "I am done.\nAll is well."),
        ("", F::Empty, ""),
        ("{\"status\": \"comp", F::NotJson, "{\"status\": \"comp"),
        ("{\"status\": \"completed\"}", F::WrongSchema, "{\"status\": \"completed\"}"),
        (&long, F::TooLarge, "First line.\nword word"),
        // A line of it is longer than what is kept of one.
        (&huge, F::TooLarge, "First line.\nword word"),
    ] {
        for (agent, outcome) in each_says(said).await {
            let shown: String = said.chars().take(40).collect();
            assert_eq!(failure(&outcome), FailKind::Contract, "{agent} {shown}: {outcome:?}");
            let answer = answered(&outcome);
            assert_eq!(answer.fault, fault, "{agent} {shown}: {answer:?}");
            assert!(answer.beginning.starts_with(beginning), "{agent} {shown}: {answer:?}");
            assert!(answer.beginning.len() < 4_000, "{agent} {shown}");
            let RunOutcome::Failed { message, .. } = &outcome.outcome else { unreachable!() };
            assert!(!message.contains("missing_json_object"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_refusal_is_kept_as_one_with_its_words() {
    let place = place().await;
    let here = place.folder.path();
    let binary = Some(program(here, PRINTS));
    let end = json!({"type": "result", "is_error": true, "stop_reason": "refusal", "result": "I will not."});
    std::fs::write(here.join("output"), lines(&[end])).unwrap();
    let claude = ClaudeSettings { binary, sandbox: Sandbox::Off, ..ClaudeSettings::default() };
    let claude = place.run(&place.spec(Agent::Claude(claude), "claude")).await;
    speaks_acp(here, "I will not.", "refusal");
    let acp = place.run(&place.spec(acp(here), "acp")).await;
    for outcome in [claude, acp] {
        assert_eq!(failure(&outcome), FailKind::Refusal, "{outcome:?}");
        let answer = answered(&outcome);
        let words = (answer.fault, answer.beginning.as_str());
        assert_eq!(words, (AnswerFault::Refused, "I will not."));
    }
}

#[tokio::test]
async fn a_program_that_is_no_agent_fails_with_what_it_says() {
    let place = place().await;
    let here = place.folder.path();
    program(here, "echo 'usage: cp SOURCE TARGET' >&2; exit 64");
    let outcome = place.run(&codex(&place, "cp")).await;
    fails(&outcome, FailKind::NoTerminal, "usage: cp SOURCE TARGET");
    std::fs::write(here.join("agent"), b"\x7fELF and then nothing of the kind").unwrap();
    fails(&place.run(&codex(&place, "broken")).await, FailKind::Crash, "cannot start");
    std::fs::remove_file(here.join("agent")).unwrap();
    fails(&place.run(&codex(&place, "gone")).await, FailKind::Auth, "not installed");
}

#[tokio::test]
async fn a_missing_worktree_is_named_and_made_again_it_is_no_harm() {
    let place = place().await;
    program(place.folder.path(), PRINTS);
    let good = lines(&answer(&result().to_string()));
    std::fs::write(place.folder.path().join("output"), good).unwrap();
    let tree = place.folder.path().join("tree");
    std::fs::rename(&tree, tree.with_extension("away")).unwrap();
    fails(&place.run(&codex(&place, "missing")).await, FailKind::Crash, "cannot start");
    std::fs::rename(tree.with_extension("away"), &tree).unwrap();
    succeeds(&place.run(&codex(&place, "back")).await);
}

/// Where the disk is that the next test fills.
const FULL: &str = "TEAMS_TEST_FULL";

/// Not a test of its own: the next one runs it with a small disk.
#[tokio::test]
async fn within_a_small_disk() {
    let Some(disk) = std::env::var_os(FULL).map(PathBuf::from) else { return };
    let place = place().await;
    let here = place.folder.path();
    program(here, PRINTS);
    let good = lines(&answer(&result().to_string()));
    let spec = |run: &str| RunSpec { run_dir: disk.join(run), ..codex(&place, run) };
    // Full before it begins.
    std::fs::write(here.join("output"), &good).unwrap();
    let filler = disk.join("filler");
    let mut all = Vec::new();
    while std::fs::write(&filler, &all).is_ok() {
        all.resize(all.len() + 64 * 1024, b'x');
    }
    fails(&place.run(&spec("before")).await, FailKind::Crash, "o space left");
    // Full while it works.
    std::fs::remove_file(&filler).unwrap();
    std::fs::remove_dir_all(disk.join("before")).ok();
    let much = [vec![b'y'; 4 << 20], good.clone()].concat();
    std::fs::write(here.join("output"), much).unwrap();
    fails(&place.run(&spec("while")).await, FailKind::Crash, "o space left");
    assert_eq!(crate::scenarios::left_in(here), Vec::<String>::new());
    // There is room again.
    std::fs::remove_dir_all(disk.join("while")).unwrap();
    std::fs::write(here.join("output"), &good).unwrap();
    succeeds(&place.run(&spec("after")).await);
}

#[tokio::test]
async fn a_full_disk_fails_the_run_with_that_reason_and_no_other() {
    if !can_confine().await {
        return;
    }
    let disk = tempfile::tempdir().unwrap();
    let path = disk.path().to_str().unwrap();
    let own = std::env::current_exe().unwrap();
    let inner = Command::new("bwrap")
        .args([
            "--dev-bind",
            "/",
            "/",
            "--size",
            "1000000",
            "--tmpfs",
            path,
            "--setenv",
            FULL,
            path,
        ])
        .arg(own)
        .args(["--exact", "agent_rubbish::within_a_small_disk", "--nocapture"])
        .stdin(Stdio::null())
        .output();
    let ended = in_time(inner).await.unwrap();
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
}
