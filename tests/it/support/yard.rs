//! A guild in this process, a bot that is new to it, a project, and the real `teams` to set it up with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use teams::git;
use teams::local_guild::{PAGE_KEY, Running};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::guild::{Caller, fresh, key_of, text};
use super::house::FILES;

/// How long a fact may take. Only a failure takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Came {
    /// The lines of JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        self.out.lines().map(parse).collect()
    }

    /// The command ended well.
    #[track_caller]
    pub(crate) fn well(self) -> Came {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
        self
    }
}

pub(crate) struct Yard {
    pub(crate) running: Running,
    pub(crate) owner: Caller,
    pub(crate) folder: tempfile::TempDir,
    /// The new bot's token.
    pub(crate) token: String,
    /// The new bot's id.
    pub(crate) bot: String,
    /// Variables of the commands.
    pub(crate) env: BTreeMap<String, String>,
    /// Everything that commands said so far.
    pub(crate) said: std::sync::Mutex<String>,
}

/// The name of the new bot.
pub(crate) const BOT: &str = "newcomer";

impl Yard {
    /// A guild of which only the people and `#lobby` are left, and a bot that is not in it.
    pub(crate) async fn empty() -> Yard {
        let yard = Yard::furnished().await;
        let guild = format!("/guilds/{}", yard.running.info.guild_id);
        let teams = Caller::bot(&yard.running.info, "teams");
        teams.ok("POST", &format!("{guild}/channels"), json!({"name": "lobby"})).await;
        for id in yard.running.info.channels.values() {
            yard.owner.ok("POST", "/_local/remove", json!({"channel": id})).await;
        }
        let roles = teams.ok("GET", &format!("{guild}/roles"), Value::Null).await;
        for role in roles.as_array().unwrap() {
            if role["managed"] == false && role["name"] != "@everyone" {
                yard.owner.ok("POST", "/_local/remove", json!({"role": role["id"]})).await;
            }
        }
        yard
    }

    /// A guild as it comes, and a bot that is not in it.
    pub(crate) async fn furnished() -> Yard {
        let running = fresh().await;
        let owner = Caller::person(&running.info, "owner");
        let made = owner.ok("POST", "/_local/bot", json!({"name": BOT})).await;
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir_all(&project).unwrap();
        for (name, text) in FILES {
            std::fs::write(project.join(name), text).unwrap();
        }
        git::create::create(&project, "main", "A greeter").unwrap();
        Yard {
            running,
            owner,
            folder,
            token: text(&made["token"]).to_owned(),
            bot: text(&made["id"]).to_owned(),
            env: BTreeMap::new(),
            said: std::sync::Mutex::default(),
        }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.project().join("teams_generated")
    }

    /// A file with the bot's token.
    pub(crate) fn token_file(&self) -> String {
        let path = self.folder.path().join("token.txt");
        std::fs::write(&path, format!("{}\n", self.token)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_teams"));
        command
            .args(arguments)
            .current_dir(self.project())
            .env_remove("TEAMS_DISCORD_TOKEN")
            .env_remove("LC_MESSAGES")
            .env("LC_ALL", "C")
            .env("NO_COLOR", "1")
            .envs(&self.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs `teams` in the project's folder.
    pub(crate) async fn teams(&self, arguments: &[&str]) -> Came {
        self.with(arguments, &[]).await
    }

    /// The same with more variables.
    pub(crate) async fn with(&self, arguments: &[&str], env: &[(&str, &str)]) -> Came {
        let output = self.command(arguments).envs(env.iter().copied()).output();
        let output = tokio::time::timeout(PATIENCE, output).await.expect("it ends").unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        self.said.lock().unwrap().push_str(&format!("{out}{err}"));
        Came { code: output.status.code(), out, err }
    }

    /// `teams setup` with the new bot's token.
    pub(crate) async fn setup(&self, more: &[&str], env: &[(&str, &str)]) -> Came {
        let file = self.token_file();
        let mut arguments =
            vec!["setup", "--token-file", &file, "--base-url", &self.running.info.base_url];
        arguments.extend(["--json"]);
        arguments.extend(more);
        self.with(&arguments, env).await
    }

    /// Opens an invite link and presses its button, as a person in a browser.
    pub(crate) async fn press(&self, link: &str) {
        let origin = &self.running.info.base_url;
        let pressed = reqwest::Client::new().post(link).header("origin", origin);
        let pressed = pressed.header(PAGE_KEY, key_of(&self.running.info)).send().await;
        assert_eq!(pressed.unwrap().status(), 204);
    }

    /// Brings the bot into the guild with every right that setup asks for.
    pub(crate) async fn invited(&self) {
        let rights =
            teams::discord::setup::permissions::TABLE.iter().fold(0, |all, it| all | it.bit);
        let body = json!({"bot": BOT, "permissions": rights.to_string()});
        self.owner.ok("POST", "/_local/invite", body).await;
    }

    /// Runs setup to its end; the link is opened when it comes.
    pub(crate) async fn setup_with_a_click(&self) -> Vec<Value> {
        self.setup_with_clicks(&self.token_file()).await
    }

    /// The same with a file of tokens; every link is opened when it comes.
    pub(crate) async fn setup_with_clicks(&self, file: &str) -> Vec<Value> {
        let base = &self.running.info.base_url;
        let mut child = self
            .command(&["setup", "--token-file", file, "--base-url", base, "--json"])
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        let work = async {
            let mut lines = Vec::new();
            while let Some(line) = out.next_line().await.unwrap() {
                self.said.lock().unwrap().push_str(&line);
                let told: Value = serde_json::from_str(&line).unwrap();
                if told["result"] == "waiting" {
                    let bots = told["bots"].as_array().into_iter().flatten();
                    let links = bots.map(|bot| &bot["link"]).chain(told.get("link"));
                    for link in links {
                        self.press(text(link)).await;
                    }
                }
                lines.push(told);
            }
            assert!(child.wait().await.unwrap().success(), "{lines:#?}");
            lines
        };
        tokio::time::timeout(PATIENCE, work).await.expect("it ends")
    }

    /// Roles, channels and webhooks of the guild, as an administrator sees them.
    pub(crate) async fn picture(&self) -> Value {
        let teams = Caller::bot(&self.running.info, "teams");
        let mut all = json!({});
        for what in ["roles", "channels", "webhooks"] {
            let path = format!("/guilds/{}/{what}", self.running.info.guild_id);
            all[what] = teams.ok("GET", &path, Value::Null).await;
        }
        // What counts about a role's place is who stands above whom.
        let roles = all["roles"].as_array_mut().unwrap();
        roles.sort_by_key(|role| role["position"].as_u64());
        for (rank, role) in roles.iter_mut().enumerate() {
            role["position"] = json!(rank);
        }
        all
    }

    /// The names of what is in the guild, sorted.
    pub(crate) async fn names(&self, what: &str) -> Vec<String> {
        let picture = self.picture().await;
        let mut names: Vec<_> = picture[what]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| text(&it["name"]).to_owned())
            .collect();
        names.sort();
        names
    }

    /// Both files of the configuration.
    pub(crate) fn config(&self) -> [String; 2] {
        ["discord_agents_config.yaml", "team_runtime.yaml"]
            .map(|name| std::fs::read_to_string(self.root().join(name)).unwrap())
    }

    /// The files below the project that hold the token.
    pub(crate) fn files_with_the_token(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.project(), &mut |path| {
            let bytes = std::fs::read(path).unwrap();
            let needle = self.token.as_bytes();
            if bytes.windows(needle.len()).any(|part| part == needle) {
                let below = path.strip_prefix(self.project()).unwrap();
                found.push(below.display().to_string());
            }
        });
        found.sort();
        found
    }
}

fn walk(folder: &Path, look: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap();
        if kind.is_dir() {
            walk(&path, look);
        } else if kind.is_file() {
            look(&path);
        }
    }
}
