//! A whole life of a team: a guild, a project with one red check, a workspace and the real process,
//! which may be killed on the way; and everything that has to be true when its request has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use notify::Watcher as _;
use serde_json::{Value, json};
use teams::domain::gate::GateKind;
use teams::domain::request::Request;
use teams::domain::state::State;
use teams::local_guild::{GuildInfo, Running};
use teams::{assets, git, platform, store, workspace};
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::guild::{Caller, fresh};
use super::house::teams;
use super::looks;

/// How long anything may take. Only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(240);
const BRANCH: &str = "main";

/// The gates of the demonstration, which ask nobody on the way of a request.
pub(crate) const FREE: &str = "";
/// Those of one that asks about each plan.
pub(crate) const PLANS: &str = "gates: {plan: ask}\n";

/// A variable that is given to one start of the team.
pub(crate) type Variable = (&'static str, String);

/// How one start of the team went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Went {
    /// It killed itself.
    Killed,
    /// The request has ended, and the team was stopped.
    Done,
}

/// The world of one team.
pub(crate) struct Life {
    pub(crate) folder: tempfile::TempDir,
    running: Running,
    owner: Caller,
    bot: Caller,
}

/// What people and git see at the end, without what differs from life to life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Channel, author and words of every message, sorted.
    pub(crate) messages: Vec<String>,
    /// The request's events.
    pub(crate) events: Vec<String>,
    /// Envelopes by the folder where they ended.
    pub(crate) envelopes: BTreeMap<String, usize>,
    /// How often its room heard that something was cut off.
    pub(crate) interruptions: usize,
}

impl Life {
    /// A fresh world with these gates, in which the owner has asked for the first task.
    pub(crate) async fn new(gates: &'static str) -> Life {
        let running = fresh().await;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let info = running.info.clone();
        tokio::task::spawn_blocking(move || furnish(&root, &info, gates)).await.unwrap();
        let owner = Caller::person(&running.info, "owner");
        let bot = Caller::bot(&running.info, "teams");
        let words = format!("<@{}> do task 1", running.info.bots["teams"].id);
        let said = json!({"user": "owner", "channel": "general", "content": words});
        owner.ok("POST", "/_local/say", said).await;
        Life { folder, running, owner, bot }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// Runs `teams` on its workspace: exit code, stdout, stderr.
    pub(crate) async fn teams(&self, arguments: &[&str]) -> (i32, String, String) {
        let workspace = self.workspace();
        let place = ["--workspace-root", workspace.to_str().unwrap()];
        let token = self.running.info.bots["teams"].token.clone();
        let env = BTreeMap::from([("TEAMS_DEMO_TOKEN".to_owned(), token)]);
        teams(&[arguments, &place].concat(), &env).await
    }

    /// Puts a file into the orchestrator's inbox, as another program would.
    pub(crate) fn drop_letter(&self, text: &str) {
        let inbox = self.workspace().join(store::RELAY).join("inbox/orchestrator");
        std::fs::create_dir_all(&inbox).unwrap();
        std::fs::write(inbox.join("letter.json"), text).unwrap();
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn start(&self, variables: &[Variable]) -> (Child, ChildStdin) {
        let mut team = Command::new(env!("CARGO_BIN_EXE_teams"))
            .args(["run", "--quiet", "--parent-pipe", "--workspace-root"])
            .arg(self.workspace())
            .env("TEAMS_DEMO_TOKEN", &self.running.info.bots["teams"].token)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pipe = team.stdin.take().unwrap();
        (team, pipe)
    }

    /// Starts the team and lets it work until it dies or the request has ended. Whoever is asked about a plan says yes.
    pub(crate) async fn live(&self, variables: &[Variable]) -> Went {
        match timeout(PATIENCE, self.live_on(variables)).await {
            Ok(went) => went,
            Err(_) => panic!("the request did not end\n{}", self.trouble()),
        }
    }

    async fn live_on(&self, variables: &[Variable]) -> Went {
        let runtime = self.workspace().join(teams::domain::record::RUNTIME);
        let (news, mut heard) = mpsc::unbounded_channel();
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // The test may be over.
                if event.is_ok_and(|event| !event.kind.is_access()) {
                    let _ = news.send(());
                }
            })
            .unwrap();
        watcher.watch(&runtime, notify::RecursiveMode::Recursive).unwrap();
        let (mut team, pipe) = self.start(variables);
        let mut deciding: Option<Child> = None;
        let mut looks = looks();
        loop {
            tokio::select! {
                ended = team.wait() => {
                    let status = ended.unwrap();
                    assert_eq!(status.signal(), Some(9), "{status}\n{}", self.trouble());
                    return Went::Killed;
                }
                Some(said) = async { Some(deciding.as_mut()?.wait().await) } => {
                    let is_heard = said.unwrap().success();
                    deciding = if is_heard { None } else { self.state().and_then(|it| self.say_yes(&it)) };
                }
                _ = async { (looks.tick().await, heard.recv().await) } => {
                    while heard.try_recv().is_ok() {}
                    // A team that opens or stops moves files under a reader; the next look is complete.
                    let Some(state) = self.state() else { continue };
                    if self.has_ended(&state) {
                        break;
                    }
                    deciding = deciding.take().or_else(|| self.say_yes(&state));
                }
            }
        }
        drop(pipe);
        let status = team.wait().await.unwrap();
        if status.signal() == Some(9) {
            return Went::Killed;
        }
        assert!(status.success(), "{status}\n{}", self.trouble());
        Went::Done
    }

    fn state(&self) -> Option<State> {
        store::read_only(&self.workspace()).ok()
    }

    /// Says yes to the plan that a person is asked about, where it has been shown.
    fn say_yes(&self, state: &State) -> Option<Child> {
        let gate = state.gates.values().find(|gate| gate.kind == GateKind::Plan)?;
        if !(state.outgoing.is_empty() && state.effects.is_empty()) {
            return None;
        }
        let mut said = Command::new(env!("CARGO_BIN_EXE_teams"));
        said.arg("approve").arg(gate.request_id.as_str()).args(["--content", &gate.artifact]);
        said.arg("--workspace-root").arg(self.workspace());
        said.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        Some(said.spawn().unwrap())
    }

    /// Whether the request is over and nothing about it is left to do.
    fn has_ended(&self, state: &State) -> bool {
        if let Some(stuck) = state.requests.values().find(|request| request.blocked.is_some()) {
            panic!("the request waits for a person: {:?}\n{}", stuck.blocked, self.trouble());
        }
        state.ended_requests > 0
            && state.requests.is_empty()
            && state.effects.is_empty()
            && state.outgoing.is_empty()
            && state.envelopes.is_empty()
            && state.runs.is_empty()
    }

    /// What the team's log says, for messages about failures.
    fn trouble(&self) -> String {
        let log = std::fs::read_to_string(self.workspace().join("logs/teams.log"));
        let log = log.unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(60).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Checks what must be true in every life and returns what must be the same in all.
    pub(crate) async fn outcome(self) -> Outcome {
        let request = self.request();
        self.check_project(&request).await;
        self.check_folders();
        let envelopes = self.envelopes();
        self.no_process_is_left().await;
        let messages = self.messages(&request).await;
        let cut_off = |text: &String| text.contains("The team went down while");
        let (cut_off, messages): (Vec<_>, Vec<_>) = messages.into_iter().partition(cut_off);
        assert!(cut_off.iter().all(|text| text.starts_with("room: ")), "{cut_off:?}");
        let interruptions = cut_off.len();
        let events = store::read_events(&self.workspace(), &request.request_id).unwrap();
        let events = events.into_iter().map(|event| format!("{} {}", event.kind, event.actor));
        let outcome = Outcome { messages, events: events.collect(), envelopes, interruptions };
        self.running.shutdown().await;
        outcome
    }

    fn request(&self) -> Request {
        let records: Vec<PathBuf> = entries(&self.workspace().join(".teams_runtime/requests"))
            .into_iter()
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        assert_eq!(records.len(), 1, "one message is one request: {records:?}");
        let text = std::fs::read_to_string(&records[0]).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// One commit more, named by the record; the files are its files; its checks are green.
    async fn check_project(&self, request: &Request) {
        let commits = git::create::first_parents(&self.project(), BRANCH).unwrap();
        assert_eq!(commits.len(), 2, "exactly one commit\n{}", self.trouble());
        assert_eq!(request.outcome.commit_sha, Some(commits[0].to_string()));
        let status = self.git(&["status", "--porcelain"]).await;
        assert_eq!(status, "", "the checked-out branch moved with its files");
        assert_eq!(self.git(&["fsck", "--no-dangling"]).await, "");
        let worktrees = self.git(&["worktree", "list", "--porcelain"]).await;
        assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
        let checks = Command::new("sh").arg("test.sh").current_dir(self.project()).output();
        let checks = checks.await.unwrap();
        assert!(checks.status.success(), "{}", String::from_utf8_lossy(&checks.stdout));
    }

    async fn git(&self, args: &[&str]) -> String {
        let git = Command::new("git").args(args).current_dir(self.project()).output();
        let output = git.await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Nothing that was only needed on the way is left.
    fn check_folders(&self) {
        let runtime = self.workspace().join(".teams_runtime");
        for name in ["worktrees", "checks", "effects", "outgoing", "internal_relay/tmp"] {
            let left = entries(&runtime.join(name));
            assert!(left.is_empty(), "{left:?}\n{}", self.trouble());
        }
        let stages = entries(&self.project().join(".git/teams"));
        let staged = |path: &PathBuf| path.to_string_lossy().contains("/stage-");
        assert!(!stages.iter().any(staged), "{stages:?}");
    }

    /// Each envelope is in one place only; how many there are in each.
    fn envelopes(&self) -> BTreeMap<String, usize> {
        let relay = self.workspace().join(store::RELAY);
        let mut seen = BTreeSet::new();
        let mut counts = BTreeMap::new();
        let mut folders = vec![relay.clone()];
        while let Some(folder) = folders.pop() {
            for path in entries(&folder) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.file_name().unwrap().to_owned();
                assert!(seen.insert(name), "{} is in two places", path.display());
                let place = path.strip_prefix(&relay).unwrap().components().take(2);
                let place: PathBuf = place.collect();
                *counts.entry(place.to_string_lossy().into_owned()).or_default() += 1;
            }
        }
        counts
    }

    /// Waits for the last of what the team started, and checks that this was all.
    async fn no_process_is_left(&self) {
        // A supervisor writes down how its program ended and then ends itself.
        for (pid, name) in self.processes() {
            let Ok(process) = rustix::process::pidfd_open(
                rustix::process::Pid::from_raw(pid).unwrap(),
                rustix::process::PidfdFlags::NONBLOCK,
            ) else {
                continue;
            };
            #[expect(deprecated, reason = "the descriptor is ours alone and stays open")]
            let process: AsyncFd<OwnedFd> = AsyncFd::new(process).unwrap();
            let gone = timeout(PATIENCE, process.readable()).await;
            assert!(gone.is_ok(), "{name} is left");
        }
        assert_eq!(self.processes(), []);
    }

    fn processes(&self) -> Vec<(i32, String)> {
        let here = self.folder.path().to_string_lossy().into_owned();
        let mut found = Vec::new();
        for path in entries(Path::new("/proc")) {
            let pid = path.file_name().and_then(|name| name.to_str()?.parse::<i32>().ok());
            let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if let Some(pid) = pid
                && line.contains(&here)
            {
                found.push((pid, line));
            }
        }
        found
    }

    /// Every message in every channel but the one where starts are told.
    async fn messages(&self, request: &Request) -> Vec<String> {
        let mut channels: Vec<(String, String)> = ["general", "relay"]
            .map(|name| (name.to_owned(), self.running.info.channels[name].clone()))
            .into();
        let room =
            request.conversation.room.as_ref().and_then(|room| room.thread_id).expect("a room");
        channels.push(("room".to_owned(), room.to_string()));
        let state = self.owner.ok("GET", "/_local/state", Value::Null).await;
        let threads = state["channels"].as_array().into_iter().flatten();
        let threads = threads.filter(|channel| channel["type"] == 11).count();
        assert_eq!(threads, 1, "one request has one room: {}", state["channels"]);
        let mut said = Vec::new();
        for (name, id) in channels {
            let path = format!("/channels/{id}/messages?limit=100");
            let page = self.bot.ok("GET", &path, Value::Null).await;
            for message in page.as_array().unwrap() {
                said.push(format!("{name}: {}", words(message)));
            }
        }
        said.sort();
        said
    }
}

/// Who said what, with ids, times and numbers taken out.
fn words(message: &Value) -> String {
    let embed = &message["embeds"][0];
    let text: Vec<&str> = [&message["content"], &embed["title"], &embed["description"]]
        .into_iter()
        .filter_map(Value::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    let author = message["author"]["username"].as_str().unwrap_or_default();
    let emoji: Vec<&str> = message["reactions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|reaction| reaction["emoji"]["name"].as_str())
        .collect();
    let number = regex::Regex::new("[0-9a-f]{10,40}|[0-9]+([.,][0-9]+)*").unwrap();
    let text = format!("{author}: {} {}", text.join(" | "), emoji.join(" "));
    let text = regex::Regex::new("[0-9]{8}-[0-9a-f]{8}").unwrap().replace_all(&text, "<request>");
    let text = number.replace_all(&text, "#").replace('\n', " / ");
    // How long something took is only said from a second on.
    text.replace("# min # s", "# s").replace("# min", "# s").replace(" (# s)", "")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|it| it.ok().map(|it| it.path())).collect();
    paths.sort();
    paths
}

/// The project and the workspace, as the demo makes them.
fn furnish(root: &Path, info: &GuildInfo, gates: &str) {
    let project = root.join("project");
    for name in assets::scaffold_files() {
        if let Some(relative) = name.strip_prefix("demo/project/") {
            let path = project.join(relative);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, assets::scaffold_text(&name).unwrap()).unwrap();
        }
    }
    git::create::create(&project, BRANCH, "A greeting program").unwrap();
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let channel = |name: &str| quoted(&info.channels[name]);
    let runtime = json!({
        "project": quoted(&project.to_string_lossy()),
        "owner": quoted(&info.users["owner"].id),
        "agent": "rehearsal",
        "model_url": "null",
        "command": "[]",
        "script": "null",
        "slots": null,
        "language": "en",
    });
    let discord = json!({
        "guild_id": quoted(&info.guild_id),
        "relay_channel_id": channel("relay"),
        "startup_channel_id": channel("startup"),
        "report_channel_id": channel("report"),
        "base_url": quoted(&info.base_url),
        "gateway_url": quoted(&info.gateway_url),
    });
    let render = |name: &str, values: &Value| {
        assets::render(name, &assets::scaffold_text(name).unwrap(), values).unwrap()
    };
    let runtime = render("demo/team_runtime.yaml", &runtime);
    let options = workspace::init::Options {
        runtime_yaml: Some(format!("{runtime}{gates}")),
        discord_yaml: Some(render("demo/discord_agents_config.yaml", &discord)),
        ..workspace::init::Options::default()
    };
    workspace::init::init(&root.join("workspace"), &options).unwrap();
    platform::files::create_dir_all(&root.join("workspace").join(teams::domain::record::RUNTIME))
        .unwrap();
}
