//! The whole team: a guild, a project, a workspace and `teams run` as a process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use serde_json::{Value, json};
use teams::git::create;
use teams::local_guild::{GuildInfo, Running};
use teams::workspace::init;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::guild::{Caller, fresh};
use super::model_server::ModelServer;

/// How long one thing may take. Only a failure takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// A team at work.
pub(crate) struct Whole {
    pub(crate) running: Running,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) owner: Caller,
    pub(crate) feed: Feed,
    process: Child,
    input: Option<ChildStdin>,
    env: Vec<(String, String)>,
}

impl Whole {
    /// Starts it on the demo's project. `agents` is the block of that name in `team_runtime.yaml`;
    /// `env` comes on top of the environment of the tests.
    pub(crate) async fn start(agents: &str, env: &[(&str, &str)]) -> Whole {
        Whole::start_with(agents, env, |_| {}).await
    }

    /// The same with what is done to the project before.
    pub(crate) async fn start_with(
        agents: &str,
        env: &[(&str, &str)],
        prepare: impl FnOnce(&Path),
    ) -> Whole {
        let running = fresh().await;
        let folder = tempfile::tempdir().unwrap();
        demo_project(&folder.path().join("project"));
        prepare(&folder.path().join("project"));
        workspace(folder.path(), &running.info, agents);
        let owner = Caller::person(&running.info, "owner");
        let feed = Feed::open(&running.info).await;
        let token = ("TEAM_TOKEN", running.info.bots["teams"].token.as_str());
        let env = env.iter().copied().chain([token]);
        let env: Vec<_> = env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut process = team(folder.path(), &env);
        let input = process.stdin.take();
        Whole { running, folder, owner, feed, process, input, env }
    }

    /// Kills it as a power cut would, and starts it again.
    pub(crate) async fn killed_and_started_again(&mut self) {
        self.process.kill().await.unwrap();
        self.process = team(self.folder.path(), &self.env);
        self.input = self.process.stdin.take();
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Writes to the team in `#general` as the owner; returns the message.
    pub(crate) async fn ask(&self, words: &str) -> Value {
        let content = format!("<@{}> {words}", self.running.info.bots["teams"].id);
        self.owner
            .ok("POST", "/_local/say", json!({"channel": "general", "content": content}))
            .await
    }

    /// Waits for a message, new or edited.
    pub(crate) async fn until(&mut self, wanted: impl FnMut(&Value) -> bool) -> Value {
        let found = self.feed.until(wanted);
        match timeout(PATIENCE, found).await {
            Ok(message) => message,
            Err(_) => panic!("it was never said; the team's log:\n{}", self.log()),
        }
    }

    /// Asks for it; the team makes one commit of it with green checks and stops. The answer, and the last
    /// state of the card.
    pub(crate) async fn commits(&mut self, wish: &str) -> (Value, Value) {
        self.ask(wish).await;
        // They come in either order.
        let (mut last, mut card) = (None, None);
        self.until(|said| {
            if words(said).contains("**Done.**") {
                last = Some(said.clone());
            } else if !field(said, "Commit").is_empty() {
                card = Some(said.clone());
            }
            last.is_some() && card.is_some()
        })
        .await;
        let (last, card) = (last.unwrap(), card.unwrap());
        let commits = create::first_parents(&self.project(), "main").unwrap();
        assert_eq!(commits.len(), 2);
        let sha = commits[0].to_string();
        assert!(words(&last).contains(&sha[..7]), "{last}");
        // The record files follow the journal; a clean stop brings them up to date.
        self.stop().await;
        let request = &self.requests()[0];
        assert_eq!(
            (&request["commit_sha"], &request["evidence"]["commit"]),
            (&json!(sha), &json!(sha))
        );
        assert_eq!(request["evidence"]["checks"][0]["verdict"], "passed");
        (last, card)
    }

    /// The agent's command ran, and no model was told a secret of the team or has seen a real key.
    pub(crate) fn told_no_secret(&self, server: &ModelServer, secrets: &[(&str, &str)]) {
        let requests = server.requests();
        let all = requests.iter().map(|request| request.body.to_string()).collect::<String>();
        assert!(all.contains("PATH="), "the command did not run");
        let info = &self.running.info;
        let tokens = info.bots.values().chain(info.users.values()).map(|one| one.token.as_str());
        for secret in secrets.iter().map(|(_, value)| *value).chain(tokens) {
            assert!(!all.contains(secret), "{secret} reached the model");
        }
        assert!(!requests.iter().any(|request| request.authorized));
    }

    /// The messages of a channel or thread, oldest first.
    pub(crate) async fn history(&self, channel: &str) -> Vec<Value> {
        let path = format!("/_local/messages?channel={channel}&limit=100");
        let page = self.owner.ok("GET", &path, Value::Null).await;
        let mut list = page.as_array().unwrap().clone();
        list.reverse();
        list
    }

    /// The records of all requests.
    pub(crate) fn requests(&self) -> Vec<Value> {
        json_files(&self.workspace().join(".teams_runtime/requests"))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.workspace().join("logs/teams.log")).unwrap_or_default()
    }

    /// Tells the team to stop, and waits until it did.
    pub(crate) async fn stop(&mut self) {
        drop(self.input.take());
        let ended = timeout(PATIENCE, self.process.wait()).await;
        let status = ended.expect("it does not stop").unwrap();
        assert!(status.success(), "{status}\n{}", self.log());
    }
}

fn team(folder: &Path, env: &[(String, String)]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_teams"))
        .args(["run", "--quiet", "--parent-pipe", "--workspace-root"])
        .arg(folder.join("workspace"))
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// The little program of the demo, in a repository with one commit.
pub(crate) fn demo_project(path: &Path) {
    for name in teams::assets::scaffold_files() {
        let Some(relative) = name.strip_prefix("demo/project/") else { continue };
        let file = path.join(relative);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, teams::assets::scaffold_text(&name).unwrap()).unwrap();
    }
    create::create(path, "main", "A greeting program").unwrap();
}

fn workspace(folder: &Path, info: &GuildInfo, agents: &str) {
    let owner = &info.users["owner"].id;
    let runtime = format!(
        "project: {{path: {project}, branch: main}}\n\
         allow_unisolated_checks: true\n\
         checks:\n  - {{name: tests, command: [sh, test.sh], timeout_seconds: 60}}\n\
         people: {{owner: \"{owner}\", ask: {{users: [\"{owner}\"]}}}}\n\
         agents:\n{agents}\nsprint: {{id: test}}\n",
        project = json!(folder.join("project")),
    );
    let channel = |name: &str| &info.channels[name];
    let discord = format!(
        "voice: personas\ntoken_env: TEAM_TOKEN\nguild_id: \"{}\"\nrelay_channel_id: \"{}\"\n\
         startup_channel_id: \"{}\"\nbase_url: {}\ngateway_url: {}\n",
        info.guild_id,
        channel("relay"),
        channel("startup"),
        json!(info.base_url),
        json!(info.gateway_url),
    );
    let options = init::Options {
        runtime_yaml: Some(runtime),
        discord_yaml: Some(discord),
        ..init::Options::default()
    };
    init::init(&folder.join("workspace"), &options).unwrap();
    std::fs::write(folder.join("workspace/routes.yaml"), super::house::all_steps()).unwrap();
}

fn json_files(folder: &Path) -> Vec<Value> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
        .collect()
}

/// What happens in the guild from now on, as the page's owner sees it.
pub(crate) struct Feed {
    stream: BoxStream<'static, reqwest::Result<Bytes>>,
    text: Vec<u8>,
}

impl Feed {
    pub(crate) async fn open(info: &GuildInfo) -> Feed {
        let owner = Caller::person(info, "owner");
        let state = owner.ok("GET", "/_local/state", Value::Null).await;
        let path =
            format!("/_local/events?after={}.{}", state["epoch"].as_str().unwrap(), state["feed"]);
        let answer = owner.request("GET", &path).send().await.unwrap();
        Feed { stream: answer.bytes_stream().boxed(), text: Vec::new() }
    }

    /// Waits for a message that was posted or edited.
    pub(crate) async fn until(&mut self, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        self.event(|event| {
            let about = matches!(event["t"].as_str(), Some("MESSAGE_CREATE" | "MESSAGE_UPDATE"));
            about && wanted(&event["d"])
        })
        .await
    }

    /// Waits for whatever the page is told.
    pub(crate) async fn event(&mut self, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        loop {
            while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                let line = String::from_utf8(line).unwrap();
                let Some(data) = line.strip_prefix("data:") else { continue };
                let event: Value = serde_json::from_str(data.trim()).unwrap();
                if wanted(&event) {
                    return event["d"].clone();
                }
            }
            let piece = self.stream.next().await.expect("the guild closed").unwrap();
            self.text.extend_from_slice(&piece);
        }
    }
}

/// Whether a message is by the bot itself or a persona of that name.
pub(crate) fn is_by(message: &Value, name: &str) -> bool {
    message["author"]["global_name"] == name || message["author"]["username"] == name
}

/// The text of a message.
pub(crate) fn words(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// The value of a field of a message's card.
pub(crate) fn field<'a>(message: &'a Value, name: &str) -> &'a str {
    let fields = message["embeds"][0]["fields"].as_array().into_iter().flatten();
    let found =
        fields.filter(|field| field["name"] == name).find_map(|field| field["value"].as_str());
    found.unwrap_or_default()
}
