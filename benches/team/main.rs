//! What a running team costs: memory and context switches while nothing happens, the time from a person's
//! message to its receipt, what its link to Discord stands, what sprint after sprint leaves in memory, and what it adds to
//! an agent's run. The team and the local guild are the real
//! binary, in processes of their own. `TEAMS_BENCH_IDLE_SECONDS` (60), `TEAMS_BENCH_MESSAGES` (30),
//! `TEAMS_BENCH_EVENTS` (1000), `TEAMS_BENCH_FLOOD` (100000), `TEAMS_BENCH_MISSED` (10000) `TEAMS_BENCH_FILES` (50000) and `TEAMS_BENCH_SPRINTS` (10) make it
//! shorter; `TEAMS_BENCH_ONLY=agents`, `=link`, `=sprints`, `=trees` or `=team` leaves the others out.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods
)]

mod agents;
mod link;
mod sprints;
mod trees;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _};
use serde_json::{Value, json};
use teams::local_guild::GuildInfo;
use teams::workspace::init::{self, Options};

/// Seconds between heartbeats that the local guild asks for, as Discord does.
const HEARTBEAT: f64 = 41.25;
/// Mean wait of the older runtime's relay alone, before it does anything with a message
/// (`spec/peer-baseline.md` 3a).
const PEER_RELAY: Duration = Duration::from_millis(102);
/// After its start the team is left alone for this long before it is measured.
const SETTLE: Duration = Duration::from_secs(8);
/// A failure takes this long.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let begin = |voice, only| {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let guild = Guild::start();
        let team = Team::start(place.path(), &guild.info, voice, only);
        runtime.block_on(guild.greeted());
        std::thread::sleep(SETTLE);
        (place, guild, team)
    };
    let only = std::env::var("TEAMS_BENCH_ONLY").unwrap_or_default();
    if matches!(only.as_str(), "" | "agents") {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        agents::measure(&runtime, place.path());
    }
    if only == "agents" {
        return;
    }
    if matches!(only.as_str(), "" | "link") {
        let (place, guild, team) = begin(Voice::Personas, Some("qa"));
        link::measure(&runtime, &guild, place.path(), team);
    }
    if only == "link" {
        return;
    }
    if matches!(only.as_str(), "" | "sprints") {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        runtime.block_on(sprints::measure(&Guild::start(), place.path()));
    }
    if only == "sprints" {
        return;
    }
    if matches!(only.as_str(), "" | "trees") {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        runtime.block_on(trees::measure(place.path()));
    }
    if only == "trees" {
        return;
    }
    for voice in [Voice::Personas, Voice::Bots] {
        let (_place, _guild, team) = begin(voice, None);
        idle(&team, voice);
    }
    // Messages come in all the same, and no agent takes the processor away while they are timed.
    let (place, guild, team) = begin(Voice::Bots, Some("qa"));
    runtime.block_on(receipts(&guild, place.path(), &team));
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Personas,
    Bots,
}

impl Voice {
    const fn gateways(self) -> u32 {
        match self {
            Voice::Personas => 1,
            Voice::Bots => 8,
        }
    }
}

/// A process of our binary that ends when its standard input does.
struct Process(Child);

impl Process {
    fn start(args: &[&str], env: &[(String, String)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_teams"));
        command.args(args).envs(env.iter().cloned());
        Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

struct Guild {
    info: GuildInfo,
    http: reqwest::Client,
    _process: Process,
}

impl Guild {
    fn start() -> Self {
        let mut process = Process::start(&["local-guild", "--json", "--parent-pipe"], &[]);
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let info = serde_json::from_str(&line).unwrap();
        Self { info, http: reqwest::Client::new(), _process: process }
    }

    /// A call in the owner's name.
    fn call(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}/_local/{path}", self.info.base_url);
        let method = method.parse().unwrap();
        self.http.request(method, url).header("authorization", &self.info.users["owner"].token)
    }

    async fn json(&self, call: reqwest::RequestBuilder) -> Value {
        call.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    }

    /// What happens from now on.
    async fn events(&self) -> impl Stream<Item = Value> + Unpin + use<> {
        let picture = self.json(self.call("GET", "state")).await;
        let after = format!("{}.{}", picture["epoch"].as_str().unwrap(), picture["feed"]);
        let answer = self.call("GET", "events").query(&[("after", after)]).send().await.unwrap();
        let mut rest = Vec::new();
        let lines = answer.bytes_stream().flat_map(move |chunk| {
            rest.extend_from_slice(&chunk.unwrap());
            let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let whole: Vec<u8> = rest.drain(..end).collect();
            let found: Vec<Value> = String::from_utf8_lossy(&whole)
                .lines()
                .filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok())
                .collect();
            futures_util::stream::iter(found)
        });
        Box::pin(lines)
    }

    /// Waits for the team's word in the startup channel.
    async fn greeted(&self) {
        let mut events = self.events().await;
        let path = format!("messages?channel={}", self.info.channels["startup"]);
        let there = self.json(self.call("GET", &path)).await;
        if there.as_array().is_some_and(|list| !list.is_empty()) {
            return;
        }
        let startup = Value::from(self.info.channels["startup"].clone());
        wait(&mut events, |event| event["d"]["channel_id"] == startup).await;
    }
}

async fn wait(
    events: &mut (impl Stream<Item = Value> + Unpin),
    is: impl Fn(&Value) -> bool,
) -> Value {
    let found = async {
        loop {
            let event = events.next().await.expect("the feed ended");
            if event["t"] == "MESSAGE_CREATE" && is(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("the message never came")
}

struct Team(Process);

impl Team {
    fn start(place: &Path, guild: &GuildInfo, voice: Voice, only: Option<&str>) -> Self {
        let usual = "agents: {default: rehearsal}\nlimits: {open_requests_per_person: 1000}\n";
        Self::with(place, guild, voice, only, usual)
    }

    /// The same, with these agents and limits.
    fn with(
        place: &Path,
        guild: &GuildInfo,
        voice: Voice,
        only: Option<&str>,
        extra: &str,
    ) -> Self {
        let project = place.join("project");
        if !project.exists() {
            fs::create_dir(&project).unwrap();
            fs::write(project.join("README.md"), "Something to work on.\n").unwrap();
            teams::git::create::create(&project, "main", "Begin").unwrap();
        }
        let (discord, env) = discord_yaml(guild, voice);
        let runtime = format!(
            "project: {{path: {}, branch: main}}\nchecks: [{{name: any, command: ['true']}}]\n\
             people: {{owner: \"{owner}\", ask: {{users: [\"{owner}\"]}}}}\n\
             sprint: {{id: bench}}\n{extra}",
            project.display(),
            owner = guild.users["owner"].id,
        );
        let root = place.join("workspace");
        let options = Options {
            runtime_yaml: Some(runtime),
            discord_yaml: Some(discord),
            ..Options::default()
        };
        init::init(&root, &options).unwrap();
        Self::again(place, &env, only)
    }

    /// Starts the team of a workspace that is there.
    fn again(place: &Path, env: &[(String, String)], only: Option<&str>) -> Self {
        let root = place.join("workspace");
        let root = root.to_str().unwrap();
        let mut args = vec!["run", "--quiet", "--parent-pipe", "--workspace-root", root];
        if let Some(role) = only {
            args.extend(["--agent", role]);
        }
        Self(Process::start(&args, env))
    }

    fn proc(&self, rest: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{rest}", self.0.0.id()))
    }

    /// A number of kB or of events from a `status` file.
    fn field(path: &Path, name: &str) -> u64 {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Voluntary and involuntary context switches, by the name of the thread.
    fn switches(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for task in fs::read_dir(self.proc("task")).unwrap() {
            let path = task.unwrap().path().join("status");
            let name = fs::read_to_string(path.with_file_name("comm")).unwrap_or_default();
            *counts.entry(name.trim().to_owned()).or_default() +=
                Self::field(&path, "voluntary_ctxt_switches")
                    + Self::field(&path, "nonvoluntary_ctxt_switches");
        }
        counts
    }
}

fn discord_yaml(guild: &GuildInfo, voice: Voice) -> (String, Vec<(String, String)>) {
    let mut text = format!(
        "guild_id: \"{}\"\nbase_url: {}\ngateway_url: {}\n",
        guild.guild_id, guild.base_url, guild.gateway_url
    );
    for name in ["relay", "startup", "report"] {
        text += &format!("{name}_channel_id: \"{}\"\n", guild.channels[name]);
    }
    let mut env = Vec::new();
    if voice == Voice::Personas {
        text += "voice: personas\ntoken_env: TEAMS_BENCH_TEAMS\n";
        env.push(("TEAMS_BENCH_TEAMS".to_owned(), guild.bots["teams"].token.clone()));
        return (text, env);
    }
    text += "voice: bots\nagents:\n";
    let mut internal = String::new();
    for (name, bot) in &guild.bots {
        let variable = format!("TEAMS_BENCH_{}", name.to_uppercase());
        let entry = format!("{{token_env: {variable}, bot_id: \"{}\"}}", bot.id);
        if name == "teams" {
            internal = format!("internal_agents:\n  version_controller: {entry}\n");
        } else {
            text += &format!("  {name}: {entry}\n");
        }
        env.push((variable, bot.token.clone()));
    }
    (text + &internal, env)
}

fn idle(team: &Team, voice: Voice) {
    let seconds = setting("TEAMS_BENCH_IDLE_SECONDS", 60);
    let gateways = voice.gateways();
    let (status, kilo) = (team.proc("status"), |kb: u64| kb as f64 / 1024.0);
    let rss = kilo(Team::field(&status, "VmRSS"));
    let peak = kilo(Team::field(&status, "VmHWM"));
    let file = kilo(Team::field(&status, "RssFile"));
    let goal = 30.0;
    println!(
        "{:<58} {rss:>7.1} MB / {goal:.0} MB = {:>5.2}   (goal <= 1; of it program pages {file:.1} MB, peak {peak:.1} MB)",
        format!("memory, {gateways} gateways"),
        rss / goal
    );
    let before = team.switches();
    std::thread::sleep(Duration::from_secs(seconds));
    let after = team.switches();
    // A thread may have ended meanwhile.
    let more =
        |name: &String, count: u64| count.saturating_sub(before.get(name).copied().unwrap_or(0));
    let switches: u64 = after.iter().map(|(name, count)| more(name, *count)).sum();
    // A heartbeat is two wakes: its time has come, and its answer comes.
    let heartbeats = f64::from(gateways) * seconds as f64 / HEARTBEAT;
    println!(
        "{:<58} {switches:>10} / {:>10.1} = {:>5.2}   (heartbeats {heartbeats:.1}, two wakes each)",
        format!("context switches, {gateways} gateways, {seconds} idle seconds"),
        heartbeats * 2.0,
        switches as f64 / (heartbeats * 2.0),
    );
    for (name, count) in after.iter().filter(|(name, count)| more(name, **count) > 0) {
        println!("  of them in threads named {name}: {}", more(name, *count));
    }
}

async fn receipts(guild: &Guild, place: &Path, team: &Team) {
    let messages = setting("TEAMS_BENCH_MESSAGES", 30);
    let bot = &guild.info.bots["orchestrator"].id;
    let mut events = guild.events().await;
    let (mut times, mut bares) = (Vec::new(), Vec::new());
    let mut bare =
        fs::OpenOptions::new().append(true).create(true).open(place.join("bare")).unwrap();
    for number in 0..messages {
        let content = format!("<@{bot}> add a page about subject number {number} to the handbook");
        let start = Instant::now();
        let said =
            guild.call("POST", "say").json(&json!({"channel": "general", "content": content}));
        let said = guild.json(said).await;
        let receipt =
            wait(&mut events, |event| event["d"]["message_reference"]["message_id"] == said["id"]);
        let receipt = receipt.await;
        let took = start.elapsed();
        assert_eq!(receipt["d"]["author"]["id"].as_str(), Some(bot.as_str()));
        times.push(took);
        let start = Instant::now();
        bare.write_all(&[b'x'; 2_048]).unwrap();
        bare.sync_data().unwrap();
        bares.push(start.elapsed());
        // The room and its card follow; the next message is to find the team at rest.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
    for list in [&mut times, &mut bares] {
        list.sort();
    }
    let (time, bare) = (times[times.len() / 2], bares[bares.len() / 2]);
    let ratio = |other: Duration| time.as_secs_f64() / other.as_secs_f64();
    println!(
        "{:<58} {time:>10.1?} / {bare:>10.1?} = {:>5.2}   (median of {messages}, {:.1?} to {:.1?})",
        "message in, receipt out / bare append+fdatasync",
        ratio(bare),
        times[0],
        times[times.len() - 1]
    );
    println!(
        "{:<58} {time:>10.1?} / {PEER_RELAY:>10.1?} = {:>5.2}   (the older runtime's mean wait for one relay)",
        "message in, receipt out / peer",
        ratio(PEER_RELAY)
    );
    println!(
        "  memory after {messages} open requests: {:.1} MB",
        Team::field(&team.proc("status"), "VmRSS") as f64 / 1024.0
    );
}
