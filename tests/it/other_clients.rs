//! Clients that others wrote, unmodified, at home in the local guild: discord.js and discord.py. Their
//! programs lie in `tests/clients`; each prints a line a step, and the person is played from here.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::{Duration, timeout};

use crate::support::guild::{Caller, fresh, text};
use crate::support::installed;

/// What every client does, in order; the same for all.
const STEPS: [&str; 13] = [
    "login teams general",
    "send hello",
    "edit hello again",
    "react ✅",
    "thread room",
    "delete gone soon",
    "upload a.txt",
    "webhook Planner",
    "register plan",
    "run plan ship owner",
    "press go owner",
    "modal reason because",
    "hear bye",
];

fn program(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(path)
}

/// What the person does once a step is done.
async fn answer(owner: &Caller, step: &str, clicked: &mut Value) {
    match step.split(' ').next() {
        Some("register") => {
            let goal = json!([{"type": 3, "name": "goal", "value": "ship"}]);
            let body = json!({"channel": "general", "command": "plan", "options": goal});
            owner.ok("POST", "/_local/slash", body).await;
        }
        Some("run") => {
            let shown = owner.ok("GET", "/_local/messages?channel=general", Value::Null).await;
            assert_eq!(shown[0]["content"], "planning ship");
            let body = json!({"channel": "general", "message": shown[0]["id"], "custom_id": "go"});
            *clicked = owner.ok("POST", "/_local/click", body).await;
        }
        Some("press") => {
            let body = json!({"interaction": clicked["interaction"], "custom_id": "reason", "values": {"why": "because"}});
            owner.ok("POST", "/_local/modal", body).await;
        }
        Some("modal") => {
            let shown = owner.ok("GET", "/_local/messages?channel=general", Value::Null).await;
            let contents: Vec<&str> =
                shown.as_array().unwrap().iter().take(2).map(|it| text(&it["content"])).collect();
            assert_eq!(contents, ["only for you", "because because"]);
            owner.ok("POST", "/_local/say", json!({"channel": "general", "content": "bye"})).await;
        }
        Some(_) | None => {}
    }
}

/// Runs a client against a fresh guild, plays the person, and compares its steps.
async fn story(mut command: Command) {
    let running = fresh().await;
    let info = &running.info;
    let owner = Caller::person(info, "owner");
    let mut child = command
        .env("TEAMS_BASE", &info.base_url)
        .env("TEAMS_GATEWAY", &info.gateway_url)
        .env("TEAMS_TOKEN", &info.bots["teams"].token)
        .env("TEAMS_GUILD", &info.guild_id)
        .env("TEAMS_CHANNEL", &info.channels["general"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut complaints = child.stderr.take().unwrap();
    let complaints = tokio::spawn(async move {
        let mut all = String::new();
        complaints.read_to_string(&mut all).await.unwrap();
        all
    });
    let (mut steps, mut clicked) = (Vec::new(), Value::Null);
    let told = timeout(Duration::from_secs(60), async {
        while let Some(line) = lines.next_line().await.unwrap() {
            answer(&owner, &line, &mut clicked).await;
            steps.push(line);
        }
        child.wait().await.unwrap()
    });
    let ended = told.await;
    if ended.is_err() {
        child.kill().await.unwrap();
    }
    let complaints = complaints.await.unwrap();
    assert_eq!(steps, STEPS, "{complaints}");
    assert!(ended.is_ok_and(|status| status.success()), "{complaints}");
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discord_js_takes_the_local_guild_for_the_real_thing() {
    let Some(folder) = installed("TEAMS_DISCORD_JS") else { return };
    let mut command = Command::new("node");
    command.arg(program("discord_js/main.js")).env("NODE_PATH", folder.join("node_modules"));
    story(command).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discord_py_takes_the_local_guild_for_the_real_thing() {
    let Some(python) = installed("TEAMS_DISCORD_PY") else { return };
    let mut command = Command::new(python);
    command.arg(program("discord_py/main.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    story(command).await;
}
