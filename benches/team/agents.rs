//! What the team adds to a run of an agent, and sixteen runs at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::IntoResponse as _;
use axum::routing::post;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use teams::agents::codex::{CodexSettings, Sandbox};
use teams::agents::{
    Agent, ContractFns, Driver, Limits, PersonMessage, RunSpec, Task, Watch, WriteAccess,
};
use teams::domain::budget::{Allowance, SharedBudgets};
use teams::domain::config::ModelApi;
use teams::domain::ids::RunId;
use teams::domain::lifecycle::StepName;
use teams::domain::role::Role;
use teams::domain::time::Timestamp;
use teams::engine::contract;
use teams::model_proxy::{
    AllowedHosts, ModelProxy, ModelServers, ProxyOptions, RunAllowance, Server,
};
use teams::platform::spawn::set_own_binary;

use super::{Guild, PATIENCE, Team, Voice, setting};

/// Runs that are timed.
const RUNS: usize = 12;
/// Runs at once, on the two cores of the reference machine.
const AT_ONCE: usize = 16;
/// Milliseconds between heartbeats while they run: a late one is seen at once.
const HEARTBEAT_MS: u64 = 2_000;
/// Milliseconds that each of them takes, with other work on both cores.
const WORK_MS: u64 = 20_000;

/// Everything about agents.
pub(crate) fn measure(runtime: &tokio::runtime::Runtime, place: &Path) {
    runtime.block_on(overhead(place));
    runtime.block_on(at_once(&place.join("many")));
}

/// A model that always says the same.
async fn model() -> String {
    let said = json!({"status": "completed", "summary": "done"}).to_string();
    let message = json!({"type": "message", "role": "assistant", "id": "m", "status": "completed",
        "content": [{"type": "output_text", "text": said, "annotations": []}]});
    let events = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": message}),
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed",
            "output": [message], "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}}),
    ];
    let line =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let body: String = events.iter().map(line).collect();
    let answer = move || async move {
        ([("content-type", "text/event-stream")], body.clone()).into_response()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let app = Router::new().route("/v1/responses", post(answer));
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

fn spec(root: &Path, config: CodexSettings, number: usize) -> RunSpec {
    RunSpec {
        run_id: RunId::parse(&format!("run-{number}")).unwrap(),
        run_dir: root.join(format!("runs/{number}")),
        session_dir: root.join(format!("session-{number}")),
        worktree: root.join("tree"),
        access: WriteAccess::Worktree,
        agent: Agent::Codex(config),
        task: Task {
            charter: "You build.".to_owned(),
            ..Task::first(
                Role::Developer,
                Some(StepName::of("developer_build")),
                "20260101-00000001",
                PersonMessage::new("Mina", "say good day"),
            )
        },
        resume: None,
        // The answer is no developer's result; asking for another is not what is timed.
        limits: Limits::default(),
        socket: None,
        surroundings: Default::default(),
        templates: Default::default(),
    }
}

/// Takes any object for a result: what is timed is the way of it, not the rules.
const CONTRACT: ContractFns = ContractFns {
    extract: |text| contract::extract_json_object(text).ok().map(Value::Object),
    check: |value, role, _, _| Ok(contract::normalize(value, role, "")),
    schema: |_, _, _| json!({"type": "object"}),
};

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}

/// From the start of a run to its judged result, against the agent's program alone; and the parts of it that
/// are the team's: until the agent's first word, and from its last.
async fn overhead(place: &Path) {
    let Ok(program) = CodexSettings::default().program() else {
        println!("skipped: the overhead of a run (codex is not installed; TEAMS_CODEX names it)");
        return;
    };
    set_own_binary(env!("CARGO_BIN_EXE_teams").into());
    let root = place.join("overhead");
    fs::create_dir_all(root.join("tree")).unwrap();
    let url = model().await;
    let (mut bare, mut whole, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let driver = Driver::default();
    // It looks once for what confines.
    driver.confinement(Sandbox::Auto).await;
    for number in 0..RUNS {
        // The model answers on this thread.
        let (program, root_, url_) = (program.clone(), root.clone(), url.clone());
        let timed = tokio::task::spawn_blocking(move || alone(&program, &root_, &url_, number));
        bare.push(timed.await.unwrap());
        for (sandbox, times) in [(Sandbox::Auto, &mut whole), (Sandbox::Off, &mut open)] {
            let confined = sandbox == Sandbox::Auto;
            let config = CodexSettings {
                model_url: (!confined).then(|| url.clone()),
                server: confined.then(|| "codex".to_owned()),
                sandbox,
                ..CodexSettings::default()
            };
            let run = number * 2 + usize::from(confined);
            let mut spec = spec(&root, config, run);
            let (events, mut seen) = tokio::sync::mpsc::channel(256);
            let watch = Watch { events: Some(events), ..Watch::default() };
            let start = Instant::now();
            let _proxy = if confined { Some(proxy(&driver, &mut spec, &url).await) } else { None };
            let listen = async {
                let (mut one, mut latest) = (None, start);
                while seen.recv().await.is_some() {
                    latest = Instant::now();
                    one.get_or_insert(latest);
                }
                (one.unwrap_or(latest), latest)
            };
            let run = async {
                let outcome = driver.run(&spec, &CONTRACT, &watch).await;
                drop(watch);
                (outcome, Instant::now())
            };
            let ((_, end), (one, latest)) = tokio::join!(run, listen);
            times.push(end - start);
            if sandbox == Sandbox::Off {
                first.push(one - start);
                last.push(end - latest);
            }
        }
    }
    let bare = median(&mut bare);
    for (name, times) in [("in the sandbox", &mut whole), ("without the sandbox", &mut open)] {
        let time = median(times);
        println!(
            "{:<58} {time:>7.1} ms / {bare:>7.1} ms = {:>5.2}   (the program alone)",
            format!("a run of Codex {name}"),
            time / bare
        );
    }
    println!(
        "{:<58} {:>7.1} ms until its first word, {:>7.1} ms from its last",
        "of it, without the sandbox",
        median(&mut first),
        median(&mut last)
    );
}

/// The team's proxy for a run, which has no other way to its model.
async fn proxy(driver: &Driver, spec: &mut RunSpec, url: &str) -> ModelProxy {
    let server = Server { api: ModelApi::Responses, base_url: url.to_owned(), key: None };
    let models =
        ModelServers::new([("codex".to_owned(), server)].into(), Default::default()).unwrap();
    let folder = spec.session_dir.with_extension("proxy");
    fs::create_dir(&folder).unwrap();
    let confinement = driver.confinement(Sandbox::Auto).await;
    let opening = ProxyOptions {
        socket: folder.join("door.sock"),
        port: !confinement.is_some_and(|it| it.has_own_network()),
        run_dir: spec.run_dir.clone(),
        servers: ["codex".to_owned()].into(),
        outside: AllowedHosts::Nothing,
        run: RunAllowance {
            run_id: spec.run_id.clone(),
            generation: 1,
            began: Timestamp::from_millis(0),
            model: String::new(),
            window: 200_000,
            allowance: Allowance::default(),
            shared: SharedBudgets::default(),
        },
        refused: tokio::sync::mpsc::channel(1).0,
    };
    let proxy = Arc::new(models).open(opening).await.unwrap();
    spec.surroundings.proxy = Some(proxy.address().clone());
    proxy
}

/// The program with the same prompt and model, started and waited for.
fn alone(program: &Path, root: &Path, url: &str, number: usize) -> Duration {
    let home = root.join(format!("home-{number}"));
    fs::create_dir_all(&home).unwrap();
    let provider =
        format!("model_providers.bare={{name=\"bare\",base_url=\"{url}\",wire_api=\"responses\"}}");
    let settings = ["model_provider=bare", &provider, "analytics.enabled=false"];
    let start = Instant::now();
    let mut command = Command::new(program);
    command.args(["exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access"]);
    command.args(["-m", "gpt-5.5", "--disable", "plugins", "--disable", "apps", "-C"]);
    command.arg(root.join("tree"));
    for setting in settings {
        command.args(["-c", setting]);
    }
    let status = command
        .arg("say good day")
        .env("CODEX_HOME", &home)
        .env("HOME", &home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    start.elapsed()
}

/// Sixteen requests whose agents work at the same time, with other work on both cores: how long the last
/// answer takes against the work of one, what a run takes of memory, and whether the bot ever seems gone.
async fn at_once(place: &Path) {
    fs::create_dir_all(place).unwrap();
    let guild = Guild::start();
    let order = json!({"heartbeat_ms": HEARTBEAT_MS});
    guild.call("POST", "faults").json(&order).send().await.unwrap().error_for_status().unwrap();
    let script = place.join("script.yaml");
    fs::write(&script, format!("- {{role: orchestrator, do: sleep, ms: {WORK_MS}}}\n")).unwrap();
    let extra = format!(
        "agents: {{default: rehearsal, rehearsal: {{script: {}}}}}\n\
         limits: {{open_requests_per_person: 1000, parallel_runs: {AT_ONCE}}}\n",
        script.display()
    );
    let team = Team::with(place, &guild.info, Voice::Personas, None, &extra);
    guild.greeted().await;
    let before = memory(&team);
    let mut events = guild.events().await;
    let busy = Arc::new(AtomicBool::new(true));
    let burners: Vec<_> = (0..2)
        .map(|_| {
            let busy = Arc::clone(&busy);
            std::thread::spawn(move || while busy.load(Ordering::Relaxed) {})
        })
        .collect();
    let bot = &guild.info.bots["teams"].id;
    let start = Instant::now();
    for number in 0..AT_ONCE {
        let content = format!("<@{bot}> which tasks are left, number {number}?");
        let said =
            guild.call("POST", "say").json(&json!({"channel": "general", "content": content}));
        guild.json(said).await;
    }
    let (mut answers, mut gone, mut peak) = (0, 0, (0, 0));
    let limit = tokio::time::Instant::now() + PATIENCE;
    while answers < AT_ONCE {
        let event = tokio::time::timeout_at(limit, events.next()).await.expect("no answer");
        let event = event.expect("the feed ended");
        let data = &event["d"];
        match event["t"].as_str() {
            Some("PRESENCE_UPDATE") if data["status"] == "offline" => gone += 1,
            Some("MESSAGE_CREATE") if !data["message_reference"].is_null() => {
                // The receipt is the first reply to a message, the answer the second.
                let text = data["content"].as_str().unwrap_or_default();
                answers += usize::from(!text.contains("Got it"));
            }
            _ => {}
        }
        let now = memory(&team);
        peak = (peak.0.max(now.0), peak.1.max(now.1));
    }
    let took = start.elapsed().as_secs_f64();
    busy.store(false, Ordering::Relaxed);
    for burner in burners {
        burner.join().unwrap();
    }
    let work = setting("TEAMS_BENCH_WORK_MS", WORK_MS) as f64 / 1_000.0;
    println!(
        "{:<58} {took:>7.1} s / {work:>7.1} s = {:>5.2}   (the work of one of them)",
        format!("{AT_ONCE} runs at once, both cores busy"),
        took / work
    );
    println!(
        "{:<58} {gone:>7} times   (heartbeats every {HEARTBEAT_MS} ms, late after half as much again)",
        "the bot seemed gone meanwhile"
    );
    let each = |kb: u64, before: u64| kb.saturating_sub(before) as f64 / 1024.0 / AT_ONCE as f64;
    println!(
        "{:<58} {:>7.1} MB in the team, {:.1} MB in its own processes",
        "memory a run",
        each(peak.0, before.0),
        each(peak.1, before.1)
    );
}

/// Resident kB of the team, and of everything below it.
fn memory(team: &Team) -> (u64, u64) {
    let own = Team::field(&team.proc("status"), "VmRSS");
    let root = team.0.0.id();
    let all: Vec<(u32, u32, PathBuf)> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            let status = path.join("status");
            let parent = u32::try_from(Team::field(&status, "PPid")).ok()?;
            Some((pid, parent, status))
        })
        .collect();
    let mut below = vec![root];
    let mut kb = 0;
    let mut at = 0;
    while let Some(parent) = below.get(at).copied() {
        at += 1;
        for (pid, _, status) in all.iter().filter(|(_, its, _)| *its == parent) {
            kb += Team::field(status, "RssAnon");
            below.push(*pid);
        }
    }
    (own, kb)
}
