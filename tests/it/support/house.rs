//! A whole team at home: a local guild in this process, a workspace, a project with one commit, and
//! `teams run` as the process that operators start. Tests write as a person, wait for events, and
//! close the house, which looks at what has to hold after every story.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use serde_json::{Value, json};
use teams::domain::ids::RequestId;
use teams::domain::request::{Request, RequestEvent, RequestStatus};
use teams::domain::role::Role;
use teams::domain::routes::{AllWord, Lane, LaneSteps, Routes};
use teams::domain::state::State;
use teams::local_guild::{Config, GuildInfo, Running, serve};
use teams::store::StateReader;
use teams::workspace::init::{self, Options};
use teams::{git, store};
use tokio::process::Command;
use tokio::sync::watch;

use super::guild::Caller;
use super::{looks, sound};

/// How long a fact may take. Only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the project is before anybody works on it.
pub(crate) const FILES: [(&str, &str); 3] = [
    ("README.md", "# Greeter\n"),
    ("greet.sh", "echo hello\n"),
    (
        "test.sh",
        "grep -q echo greet.sh || { echo '0 passed, 1 failed'; exit 1; }\necho '1 passed, 0 failed'\n",
    ),
];

/// Words that the rehearsal agent can carry out: one literal edit.
pub(crate) const EDIT: &str = "in greet.sh replace \"hello\" with \"good morning\"";
/// `greet.sh` after it.
pub(crate) const EDITED: &str = "echo good morning\n";
/// A check that passes before and after.
pub(crate) const CHECKS: &str = "[{name: tests, command: [sh, test.sh], timeout_seconds: 60}]";

/// How a house is furnished.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// `checks:`, as YAML in one line.
    pub(crate) checks: String,
    /// The script of the rehearsal agents.
    pub(crate) script: Option<String>,
    /// More keys of `team_runtime.yaml`, whole lines.
    pub(crate) more: String,
    /// More of `people:`, as YAML in one line.
    pub(crate) people: String,
    /// `agents:`, as YAML in one line; blank for rehearsal agents with the script.
    pub(crate) agents: String,
    /// More of `sprint:`, as YAML in one line.
    pub(crate) sprint: String,
    /// One bot for everybody, or one a role.
    pub(crate) bots: bool,
    /// More arguments of `teams run`.
    pub(crate) arguments: Vec<String>,
    /// Where the gateway is reached, if not at the guild itself.
    pub(crate) gateway_url: Option<String>,
    /// Whether requests take the lanes of a new workspace; else every one takes every step.
    pub(crate) lanes: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            checks: CHECKS.to_owned(),
            script: None,
            more: String::new(),
            people: String::new(),
            agents: String::new(),
            sprint: String::new(),
            bots: false,
            arguments: Vec::new(),
            gateway_url: None,
            lanes: false,
        }
    }
}

impl Plan {
    /// With a script for the rehearsal agents.
    pub(crate) fn script(script: &str) -> Plan {
        Plan { script: Some(script.to_owned()), ..Plan::default() }
    }
}

/// The routes of a new workspace, by which every request takes every step.
pub(crate) fn all_steps() -> String {
    let mut routes = Routes::clone(Routes::built_in());
    routes.intents.values_mut().for_each(|lane| *lane = Lane::Full);
    // What is small goes by a lane less.
    routes.lanes.insert(Lane::Standard, LaneSteps::All(AllWord::All));
    // Values go in as JSON, which is YAML.
    serde_json::to_string(&routes).unwrap()
}

/// How the team's process ended.
type End = Option<std::process::ExitStatus>;

struct Team {
    pid: u32,
    input: Option<tokio::process::ChildStdin>,
    ended: watch::Receiver<End>,
}

/// The house.
pub(crate) struct House {
    pub(crate) running: Running,
    pub(crate) owner: Caller,
    pub(crate) guest: Caller,
    folder: tempfile::TempDir,
    plan: Plan,
    team: Option<Team>,
    /// Where the team looks for programs before everywhere else.
    programs: Option<PathBuf>,
    /// What the team's program is started by.
    starter: Vec<String>,
    signal: watch::Sender<u64>,
    feed: Arc<Mutex<Vec<(&'static str, Value)>>>,
    watcher: RecommendedWatcher,
    complaints: bool,
    read: Mutex<AlreadyRead>,
}

/// What was read last: whoever waits looks at every event, and nothing needs a second reading.
#[derive(Default)]
struct AlreadyRead {
    /// Of the team's process.
    reader: Option<(u32, StateReader)>,
    requests: BTreeMap<PathBuf, (Vec<u8>, Request)>,
}

impl House {
    /// Furnishes a house and starts its team.
    pub(crate) async fn open(plan: Plan) -> House {
        let mut house = House::built(plan).await;
        house.start();
        house
    }

    /// Furnishes a house; its team is not running.
    pub(crate) async fn built(plan: Plan) -> House {
        let config = Config { gateway_url: plan.gateway_url.clone(), ..Config::default() };
        let running = serve(config).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (project, root) = (folder.path().join("project"), folder.path().join("workspace"));
        for (name, text) in FILES {
            std::fs::create_dir_all(&project).unwrap();
            std::fs::write(project.join(name), text).unwrap();
        }
        git::create::create(&project, "main", "A greeter").unwrap();
        let options = Options {
            runtime_yaml: Some(runtime_yaml(&running.info, &project, &plan)),
            discord_yaml: Some(discord_yaml(&running.info, plan.bots)),
            ..Options::default()
        };
        init::init(&root, &options).unwrap();
        if !plan.lanes {
            std::fs::write(root.join("routes.yaml"), all_steps()).unwrap();
        }
        if let Some(script) = &plan.script {
            std::fs::write(root.join("script.yaml"), script).unwrap();
        }
        let signal = watch::Sender::new(0);
        let feed = Arc::new(Mutex::new(Vec::new()));
        for name in ["owner", "guest"] {
            follow(&running.info, name, signal.clone(), Arc::clone(&feed)).await;
        }
        let watcher = watch_records(&root, signal.clone());
        let owner = Caller::person(&running.info, "owner");
        let guest = Caller::person(&running.info, "guest");
        House {
            running,
            owner,
            guest,
            folder,
            plan,
            team: None,
            programs: None,
            starter: Vec::new(),
            signal,
            feed,
            watcher,
            complaints: false,
            read: Mutex::default(),
        }
    }

    /// The workspace.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// The project.
    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// A file beside both.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// More people may do something; before the team starts.
    pub(crate) fn allow(&mut self, people: &str) {
        people.clone_into(&mut self.plan.people);
        let text = runtime_yaml(&self.running.info, &self.project(), &self.plan);
        std::fs::write(self.root().join("team_runtime.yaml"), text).unwrap();
    }

    /// Other agents, as YAML in one line; before the team starts.
    pub(crate) fn agents(&mut self, agents: &str) {
        agents.clone_into(&mut self.plan.agents);
        let text = runtime_yaml(&self.running.info, &self.project(), &self.plan);
        std::fs::write(self.root().join("team_runtime.yaml"), text).unwrap();
    }

    /// The team finds the programs of this folder before all others; before it starts.
    pub(crate) fn finds_programs_in(&mut self, folder: PathBuf) {
        self.programs = Some(folder);
    }

    /// Another program becomes the team's, which it is told as its last arguments; before the team starts.
    pub(crate) fn started_by(&mut self, starter: &[String]) {
        self.starter = starter.to_vec();
    }

    /// The next start has other arguments.
    pub(crate) fn arguments(&mut self, arguments: &[&str]) {
        self.plan.arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
    }

    /// The variables that the tokens are read from.
    fn tokens(&self) -> BTreeMap<String, String> {
        let bots = self.running.info.bots.iter();
        bots.map(|(name, bot)| (token_variable(name), bot.token.clone())).collect()
    }

    /// Where the team looks for programs.
    pub(crate) fn path(&self) -> OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let rest = std::env::split_paths(&path).collect::<Vec<_>>();
        std::env::join_paths(self.programs.iter().chain(&rest)).unwrap()
    }

    /// Starts the team.
    pub(crate) fn start(&mut self) {
        self.start_with::<&str>(&[]);
    }

    /// Starts the team with more variables.
    pub(crate) fn start_with<V: AsRef<std::ffi::OsStr>>(&mut self, variables: &[(&str, V)]) {
        let errors = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.beside("stderr.txt"))
            .unwrap();
        let own = env!("CARGO_BIN_EXE_teams").to_owned();
        let mut words = self.starter.iter().chain([&own]);
        let mut child = Command::new(words.next().unwrap())
            .args(words)
            .args(["run", "--quiet", "--parent-pipe", "--workspace-root"])
            .arg(self.root())
            .args(&self.plan.arguments)
            .envs(self.tokens())
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("TEAMS_RUNTIME_LOG_LEVEL", "debug")
            .env("PATH", self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pid = child.id().unwrap();
        let input = child.stdin.take();
        let (tell, ended) = watch::channel(None);
        let signal = self.signal.clone();
        tokio::spawn(async move {
            let status = child.wait().await.unwrap();
            tell.send_replace(Some(status));
            signal.send_modify(|count| *count += 1);
        });
        self.team = Some(Team { pid, input, ended });
    }

    /// The team's process.
    pub(crate) fn team_pid(&self) -> u32 {
        self.team.as_ref().unwrap().pid
    }

    /// Ends the team as its parent would, and looks that it ended well.
    pub(crate) async fn stop(&mut self) {
        let mut team = self.team.take().unwrap();
        drop(team.input.take());
        let ended = tokio::time::timeout(PATIENCE, team.ended.wait_for(Option::is_some)).await;
        let status = match ended {
            Ok(status) => status.unwrap().unwrap(),
            Err(_) => panic!("the team does not stop\n{}", self.log()),
        };
        assert!(status.success(), "{status}\n{}", self.log());
    }

    /// Ends the team as its parent would, however that goes.
    pub(crate) async fn halt(&mut self) -> std::process::ExitStatus {
        drop(self.team.as_mut().unwrap().input.take());
        self.ends().await
    }

    /// Waits until the team's process has ended by itself, however it did.
    pub(crate) async fn ends(&mut self) -> std::process::ExitStatus {
        let mut team = self.team.take().unwrap();
        let ended = tokio::time::timeout(PATIENCE, team.ended.wait_for(Option::is_some)).await;
        match ended {
            Ok(status) => status.unwrap().unwrap(),
            Err(_) => panic!("the team does not end\n{}", self.log()),
        }
    }

    /// Everything that the team has logged.
    pub(crate) fn whole_log(&self) -> String {
        std::fs::read_to_string(self.root().join("logs/teams.log")).unwrap_or_default()
    }

    /// Waits until the team has logged this so many times.
    pub(crate) async fn logs(&self, words: &str, times: usize) {
        let (news, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // A look of our own is no news.
                if event.map_or(true, |event| !event.kind.is_access()) {
                    // The test may be over.
                    let _ = news.send(());
                }
            })
            .unwrap();
        let folder = self.root().join("logs");
        std::fs::create_dir_all(&folder).unwrap();
        watcher.watch(&folder, RecursiveMode::NonRecursive).unwrap();
        let mut looks = looks();
        let logged = async {
            while self.whole_log().matches(words).count() < times {
                heard.recv().await.unwrap();
                looks.tick().await;
                while heard.try_recv().is_ok() {}
            }
        };
        let logged = tokio::time::timeout(PATIENCE, logged).await;
        assert!(logged.is_ok(), "never logged: {words}\n{}", self.log());
    }

    /// The team's log, for a failure.
    pub(crate) fn log(&self) -> String {
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let text = read(self.root().join("logs/teams.log")) + &read(self.beside("stderr.txt"));
        let tail: Vec<&str> = text.lines().rev().take(120).collect();
        tail.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Looks again at every event until there is an answer.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut(&House) -> Option<T>,
    ) -> T {
        let mut signal = self.signal.subscribe();
        let mut looks = looks();
        let looked = async {
            loop {
                looks.tick().await;
                signal.mark_unchanged();
                if let Some(found) = look(self).await {
                    return found;
                }
                if let Some(status) = self.team.as_ref().and_then(|team| *team.ended.borrow()) {
                    panic!("the team ended ({status}) before: {what}\n{}", self.log());
                }
                signal.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(PATIENCE, looked).await {
            Ok(found) => found,
            Err(_) => panic!("never happened: {what}\n{}\n{}", self.transcript().await, self.log()),
        }
    }

    /// Waits until this is so, or the team was killed; whether it is so.
    pub(crate) async fn lives_until(&mut self, is_so: impl Fn(&House) -> bool) -> bool {
        let mut signal = self.signal.subscribe();
        let mut looks = looks();
        let looked = async {
            loop {
                looks.tick().await;
                signal.mark_unchanged();
                if is_so(self) {
                    return true;
                }
                if let Some(status) = self.team.as_ref().and_then(|team| *team.ended.borrow()) {
                    assert_eq!(status.signal(), Some(9), "{}", self.log());
                    return false;
                }
                signal.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(PATIENCE, looked).await {
            Ok(true) => true,
            Ok(false) => {
                self.team = None;
                false
            }
            Err(_) => panic!("it neither happens nor ends\n{}", self.log()),
        }
    }

    /// Everything that was said in the guild's channels and threads, for a failure.
    pub(crate) async fn transcript(&self) -> String {
        let mut text = String::new();
        for id in self.channels().await {
            for message in self.messages(&id).await {
                text.push_str(&format!("[{id}] {}: {}\n", author(&message), words(&message)));
            }
        }
        text
    }

    /// The ids of all channels and threads that the owner sees.
    pub(crate) async fn channels(&self) -> Vec<String> {
        let state = self.owner.ok("GET", "/_local/state", Value::Null).await;
        let channels = state["channels"].as_array().unwrap();
        channels.iter().map(|channel| channel["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The messages of a channel (name or id), oldest first.
    pub(crate) async fn messages(&self, channel: &str) -> Vec<Value> {
        let path = format!("/_local/messages?channel={channel}&limit=100");
        let page = self.owner.ok("GET", &path, Value::Null).await;
        let mut list = page.as_array().unwrap().clone();
        list.reverse();
        list
    }

    /// The owner writes in a channel. The message's id.
    pub(crate) async fn say(&self, channel: &str, content: &str) -> String {
        self.write(&self.owner, json!({"channel": channel, "content": content})).await
    }

    /// Somebody writes. The message's id.
    pub(crate) async fn write(&self, who: &Caller, body: Value) -> String {
        let said = who.ok("POST", "/_local/say", body).await;
        said["id"].as_str().unwrap().to_owned()
    }

    /// A mention of the team's bot.
    pub(crate) fn mention(&self) -> String {
        let name = if self.plan.bots { "orchestrator" } else { "teams" };
        format!("<@{}>", self.running.info.bots[name].id)
    }

    /// The owner asks the team in #general. The message's id, which is its room's id as well.
    pub(crate) async fn ask(&self, content: &str) -> String {
        self.say("general", &format!("{} {content}", self.mention())).await
    }

    /// Waits for a message of a channel that fits.
    pub(crate) async fn heard(
        &self,
        channel: &str,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Value {
        let path = format!("/_local/messages?channel={channel}&limit=100");
        self.until(what, async |house: &House| {
            // It may still have to be opened.
            let (200, Value::Array(newest_first)) =
                house.owner.call("GET", &path, Value::Null).await
            else {
                return None;
            };
            newest_first.into_iter().rev().find(|message| fits(message))
        })
        .await
    }

    /// Waits for words in a channel.
    pub(crate) async fn reads(&self, channel: &str, part: &str) -> Value {
        self.heard(channel, part, |message| words(message).contains(part)).await
    }

    /// Waits for a card with buttons that has words, and presses one of them by its label.
    pub(crate) async fn press(&self, who: &Caller, channel: &str, part: &str, label: &str) {
        let card = self
            .heard(channel, part, |message| {
                words(message).contains(part) && button(message, label).is_some()
            })
            .await;
        let body = json!({
            "channel": channel, "message": card["id"], "custom_id": button(&card, label),
        });
        who.ok("POST", "/_local/click", body).await;
    }

    /// What somebody's page was told so far.
    pub(crate) fn told(&self, name: &str) -> Vec<Value> {
        let feed = self.feed.lock().unwrap();
        feed.iter().filter(|(who, _)| *who == name).map(|(_, event)| event.clone()).collect()
    }

    /// The records as they are; `None` in the moment where they move.
    pub(crate) fn state(&self) -> Option<State> {
        let read = || (0..20).find_map(|_| store::read_only(&self.root()).ok());
        let running = self.team.as_ref().filter(|team| team.ended.borrow().is_none());
        // Without a team, records may be edited by hand.
        let Some(team) = running else { return read() };
        let mut last = self.read.lock().unwrap();
        let reader = match &mut last.reader {
            Some((pid, reader)) if *pid == team.pid => reader,
            other => &mut other.insert((team.pid, StateReader::new(&self.root()))).1,
        };
        (0..20).find_map(|_| reader.read().ok().cloned())
    }

    /// All requests, open and ended.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let mut all: BTreeMap<RequestId, Request> = BTreeMap::new();
        let folder = self.root().join(".teams_runtime/requests");
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|end| end != "json") {
                continue;
            }
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let known = &mut self.read.lock().unwrap().requests;
            if known.get(&path).is_none_or(|(read, _)| *read != bytes) {
                let Ok(request) = serde_json::from_slice(&bytes) else { continue };
                known.insert(path.clone(), (bytes, request));
            }
            let request = &known[&path].1;
            all.insert(request.request_id.clone(), request.clone());
        }
        let open = self.state().map(|state| state.requests).unwrap_or_default();
        // Of one that has just ended the file is written a little later than the journal.
        let behind = all
            .values_mut()
            .filter(|it| !it.status.is_terminal() && !open.contains_key(&it.request_id));
        for request in behind {
            if let Ok(Some(now)) = store::read_request(&self.root(), &request.request_id) {
                *request = now;
            }
        }
        all.extend(open.into_iter().map(|(id, request)| (id, Arc::unwrap_or_clone(request))));
        all.into_values().collect()
    }

    /// Waits until the request of a message fits.
    pub(crate) async fn request(
        &self,
        message: &str,
        what: &str,
        fits: impl Fn(&Request) -> bool,
    ) -> Request {
        let is_it = |request: &Request| {
            let asked = request.conversation.reply_route.message_id.map(|id| id.to_string());
            asked.as_deref() == Some(message)
        };
        self.until(what, async |house: &House| {
            // One that is open is in no file that says more.
            let state = house.state()?;
            if let Some(open) = state.requests.values().find(|it| is_it(it)) {
                return fits(open).then(|| Request::clone(open));
            }
            house.requests().into_iter().find(|request| is_it(request) && fits(request))
        })
        .await
    }

    /// Waits until the request of a message has that status.
    pub(crate) async fn becomes(&self, message: &str, status: RequestStatus) -> Request {
        self.request(message, status.as_str(), |request| request.status == status).await
    }

    /// The history of a request.
    pub(crate) fn history(&self, request: &Request) -> Vec<RequestEvent> {
        store::read_events(&self.root(), &request.request_id).unwrap()
    }

    /// How often something stands in the history of a request.
    pub(crate) fn times(&self, request: &Request, kind: &str) -> usize {
        self.history(request).iter().filter(|event| event.kind.as_str() == kind).count()
    }

    /// Waits until nothing moves and nothing waits for Discord but what it refused.
    pub(crate) async fn quiet(&self) {
        self.until("nothing moves", async |house: &House| {
            let state = house.state()?;
            let sent = state.outgoing.values().all(|it| it.refused.is_some());
            let still = sent && state.effects.is_empty() && state.runs.is_empty();
            still.then_some(())
        })
        .await;
    }

    /// Commits a file to the branch as a person at the project would.
    pub(crate) fn commit_by_hand(&self, path: &str, text: &str, message: &str) {
        std::fs::write(self.project().join(path), text).unwrap();
        let repository = git2::Repository::open(self.project()).unwrap();
        let mut index = repository.index().unwrap();
        index.add_path(Path::new(path)).unwrap();
        index.write().unwrap();
        let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
        let parent = repository.head().unwrap().peel_to_commit().unwrap();
        let me = git2::Signature::now("Mina", "mina@example.org").unwrap();
        repository.commit(Some("HEAD"), &me, &me, message, &tree, &[&parent]).unwrap();
    }

    /// The subjects of the branch's commits after the first, newest first.
    pub(crate) fn commits(&self) -> Vec<String> {
        let repository = git2::Repository::open(self.project()).unwrap();
        let mut ids = git::create::first_parents(&self.project(), "main").unwrap();
        ids.pop();
        ids.into_iter()
            .map(|id| {
                let commit = repository.find_commit(id.to_string().parse().unwrap()).unwrap();
                commit.summary().unwrap().unwrap_or_default().to_owned()
            })
            .collect()
    }

    /// A file at the head of the branch.
    pub(crate) fn on_branch(&self, path: &str) -> String {
        let repository = git2::Repository::open(self.project()).unwrap();
        let tree = repository.revparse_single("main^{tree}").unwrap().peel_to_tree().unwrap();
        let blob = tree.get_path(Path::new(path)).unwrap().to_object(&repository).unwrap();
        String::from_utf8(blob.as_blob().unwrap().content().to_vec()).unwrap()
    }

    /// Runs `teams` with these arguments in the workspace: exit code, stdout, stderr.
    pub(crate) async fn teams(&self, arguments: &[&str]) -> (i32, String, String) {
        self.elsewhere(&self.root(), arguments).await
    }

    /// The same in another workspace.
    pub(crate) async fn elsewhere(&self, root: &Path, arguments: &[&str]) -> (i32, String, String) {
        let mut all = arguments.to_vec();
        all.extend(["--workspace-root", root.to_str().unwrap()]);
        teams(&all, &self.tokens()).await
    }

    /// Waits until a program wrote a process id into a file among the operations: where `/proc` has it.
    pub(crate) async fn pid(&self, name: &str) -> PathBuf {
        let path = self.root().join(".teams_runtime/operations").join(name);
        self.until(name, async |_: &House| {
            let text = std::fs::read_to_string(&path).ok()?;
            text.ends_with('\n').then(|| Path::new("/proc").join(text.trim()))
        })
        .await
    }

    /// Sets faults of the guild.
    pub(crate) async fn faults(&self, order: Value) {
        self.owner.ok("POST", "/_local/faults", order).await;
    }

    /// Bad envelopes or refused messages belong to the story.
    pub(crate) fn expects_complaints(&mut self) {
        self.complaints = true;
    }

    /// Waits for quiet, stops the team, and looks at everything that must hold after every story.
    pub(crate) async fn close(mut self) {
        self.quiet().await;
        self.stop().await;
        sound::looks_right(&self, self.complaints).await;
        let folder = self.folder.path().to_owned();
        let left = sound::processes_in(&folder);
        assert!(left.is_empty(), "processes are left: {left:?}\n{}", self.log());
        drop(self.team.take());
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // Only a failed test leaves any; they are ours, because they work in our folder.
        for (pid, _) in sound::processes_in(self.folder.path()) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Runs `teams`: exit code, stdout, stderr.
pub(crate) async fn teams(
    arguments: &[&str],
    env: &BTreeMap<String, String>,
) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_teams"))
        .args(arguments)
        .envs(env)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, output).await.expect("it ends").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Everything that a message says: its text and its cards.
pub(crate) fn words(message: &Value) -> String {
    let mut all = vec![message["content"].as_str().unwrap_or_default().to_owned()];
    for embed in message["embeds"].as_array().into_iter().flatten() {
        for key in ["title", "description"] {
            all.push(embed[key].as_str().unwrap_or_default().to_owned());
        }
        for field in embed["fields"].as_array().into_iter().flatten() {
            let part = |key: &str| field[key].as_str().unwrap_or_default().to_owned();
            all.push(format!("{}: {}", part("name"), part("value")));
        }
    }
    all.join("\n")
}

/// The name that a message was written under.
pub(crate) fn author(message: &Value) -> &str {
    let name = message["author"]["global_name"].as_str();
    name.or(message["author"]["username"].as_str()).unwrap_or_default()
}

/// The id behind a button with that label, if it can be pressed.
pub(crate) fn button(message: &Value, label: &str) -> Option<String> {
    let rows = message["components"].as_array().into_iter().flatten();
    let mut all = rows.flat_map(|row| row["components"].as_array().into_iter().flatten());
    let found = all.find(|it| it["label"] == label && it["disabled"] != true)?;
    Some(found["custom_id"].as_str()?.to_owned())
}

fn token_variable(bot: &str) -> String {
    format!("TEAMS_TEST_{}", bot.to_uppercase())
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn runtime_yaml(info: &GuildInfo, project: &Path, plan: &Plan) -> String {
    let owner = quoted(&info.users["owner"].id);
    let script = if plan.script.is_some() { "script.yaml" } else { "null" };
    let sprint = if plan.sprint.is_empty() { String::new() } else { format!(", {}", plan.sprint) };
    // One todo after the other, unless a test is about more.
    let one = if plan.sprint.contains("wip_limit") { "" } else { ", wip_limit: 1" };
    let agents = match plan.agents.as_str() {
        "" => format!("{{default: rehearsal, rehearsal: {{script: {script}}}}}"),
        agents => agents.to_owned(),
    };
    let people = if plan.people.is_empty() { String::new() } else { format!(", {}", plan.people) };
    // Where a test is about something else, its checks run when they did before.
    let base = if plan.more.contains("prove_base") { "" } else { "prove_base: false\n" };
    format!(
        "project: {{path: {}, branch: main}}\n\
         checks: {}\n\
         allow_unisolated_checks: true\n{base}\
         people: {{owner: {owner}{people}}}\n\
         agents: {agents}\n\
         language: en\n\
         sprint: {{id: test, cutoff_time: null{one}{sprint}}}\n\
         {}",
        quoted(project.to_str().unwrap()),
        plan.checks,
        plan.more,
    )
}

fn discord_yaml(info: &GuildInfo, bots: bool) -> String {
    let channel = |name: &str| quoted(&info.channels[name]);
    let voice = if bots {
        let agents = Role::PUBLIC.map(|role| {
            let bot = &info.bots[role.as_str()];
            format!(
                "  {role}: {{token_env: {}, bot_id: {}}}\n",
                token_variable(role.as_str()),
                quoted(&bot.id)
            )
        });
        format!("voice: bots\nagents:\n{}", agents.concat())
    } else {
        format!("voice: personas\ntoken_env: {}\n", token_variable("teams"))
    };
    format!(
        "{voice}guild_id: {}\nrelay_channel_id: {}\nstartup_channel_id: {}\nreport_channel_id: {}\n\
         base_url: {}\ngateway_url: {}\n",
        quoted(&info.guild_id),
        channel("relay"),
        channel("startup"),
        channel("report"),
        quoted(&info.base_url),
        quoted(&info.gateway_url),
    )
}

/// Follows a person's page: what it is told is kept, and everybody who waits looks again.
async fn follow(
    info: &GuildInfo,
    name: &'static str,
    signal: watch::Sender<u64>,
    feed: Arc<Mutex<Vec<(&'static str, Value)>>>,
) {
    let caller = Caller::person(info, name);
    let state = caller.ok("GET", "/_local/state", Value::Null).await;
    let after = format!("{}.{}", state["epoch"].as_str().unwrap(), state["feed"]);
    let path = format!("/_local/events?after={after}");
    let mut stream = caller.request("GET", &path).send().await.unwrap().bytes_stream();
    tokio::spawn(async move {
        let mut text = Vec::new();
        while let Some(Ok(chunk)) = stream.next().await {
            text.extend_from_slice(&chunk);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                let line = String::from_utf8(line).unwrap();
                if let Some(data) = line.strip_prefix("data:") {
                    let event = serde_json::from_str(data.trim()).unwrap();
                    feed.lock().unwrap().push((name, event));
                }
            }
            signal.send_modify(|count| *count += 1);
        }
    });
}

impl House {
    /// What a file of the workspace says once it says this: files follow the journal a moment later.
    pub(crate) async fn file(&mut self, path: &str, says: &str) -> String {
        self.watch(path.rsplit_once('/').unwrap().0);
        let path = self.root().join(path);
        self.until(says, async |_: &House| {
            std::fs::read_to_string(&path).ok().filter(|text| text.contains(says))
        })
        .await
    }

    /// Whoever waits looks again when something in this folder of the workspace changes as well.
    pub(crate) fn watch(&mut self, name: &str) {
        let folder = self.root().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        self.watcher.watch(&folder, RecursiveMode::Recursive).unwrap();
    }
}

/// Whoever waits looks again when a record changes. Reads are no changes.
fn watch_records(root: &Path, signal: watch::Sender<u64>) -> RecommendedWatcher {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.map_or(true, |event| !event.kind.is_access()) {
            signal.send_modify(|count| *count += 1);
        }
    })
    .unwrap();
    for name in ["requests", "journal", "internal_relay", "operations", "discord"] {
        let folder = root.join(".teams_runtime").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        watcher.watch(&folder, RecursiveMode::Recursive).unwrap();
    }
    watcher
}
