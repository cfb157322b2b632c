//! A team at work with secrets lying around, and what an agent among it can see or change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use teams::domain::request::Request;
use teams::platform::landlock::{Strength, strength};

use crate::support::broken_bubblewrap;
use crate::support::house::{House, Plan};
use crate::support::until;

/// What confines the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wall {
    Bubblewrap,
    Landlock(Strength),
    /// The configuration says that the machine is a sandbox.
    Nothing,
}

impl Wall {
    /// Landlock, where this kernel has enough of it to be worth asking.
    #[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
    pub(super) fn landlock() -> Option<Wall> {
        match strength() {
            Some(found @ (Strength::FilesAndTcp | Strength::FilesTcpAndSignals)) => {
                Some(Wall::Landlock(found))
            }
            found @ (Some(Strength::Files) | None) => {
                assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "{found:?}");
                eprintln!("skipped: this kernel has no landlock, or only for files");
                None
            }
        }
    }

    /// Makes the machine of a house such a one; before its team starts.
    pub(super) fn around(self, house: &mut House) {
        match self {
            Wall::Bubblewrap => {}
            Wall::Landlock(_) => {
                let programs = house.beside("programs");
                broken_bubblewrap(&programs);
                house.finds_programs_in(programs);
            }
            Wall::Nothing => house
                .agents("{default: rehearsal, rehearsal: {script: script.yaml, sandbox: \"off\"}}"),
        }
    }

    /// Looks that it is what the team uses.
    pub(super) fn is_used(self, house: &House) {
        let log = std::fs::read_to_string(house.root().join("logs/teams.log")).unwrap_or_default()
            + &std::fs::read_to_string(house.beside("stderr.txt")).unwrap_or_default();
        let said = match self {
            Wall::Bubblewrap => "agents are confined by bubblewrap",
            Wall::Landlock(_) => "agents are confined by Landlock",
            Wall::Nothing => "not confined: the configuration says",
        };
        assert!(log.contains(said), "{said}: {log}");
    }
}

/// What lies in the workspace's `.env`.
pub(super) const MODEL_KEY: &str = "canary-model-key-83e1f0c2d7";
pub(super) const PASSWORD: &str = "canary-password-19ab77c4e0";
/// What setup kept.
const KEPT: &str = "canary-kept-token-5c20d6f3a8";

/// A house in which one request waits for a decision, with secrets lying where they lie.
pub(super) struct Scene {
    pub(super) house: House,
    pub(super) asked: String,
    pub(super) waiting: Request,
}

impl Scene {
    pub(super) async fn new(wall: Wall, more: &str) -> Scene {
        let more = format!("gates: {{guarded: [README.md, test.sh]}}\n{more}");
        let mut house = House::built(Plan { more, ..Plan::script("[]") }).await;
        wall.around(&mut house);
        let env = format!("OPENAI_API_KEY={MODEL_KEY}\nDEPLOY_PASSWORD={PASSWORD}\n");
        std::fs::write(house.root().join(".env"), env).unwrap();
        std::fs::create_dir_all(house.root().join(".teams_setup")).unwrap();
        let kept = house.root().join(".teams_setup/tokens.env");
        std::fs::write(kept, format!("SPARE={KEPT}\n")).unwrap();
        house.start();
        let asked = house.ask("in README.md replace \"Greeter\" with \"Welcomer\"").await;
        house.reads(&asked, "May this go to the branch?").await;
        house.quiet().await;
        let waiting = house.request(&asked, "its gate", |it| it.work.gate_id.is_some()).await;
        // The file of a record is written a little later than the journal.
        let file = format!(".teams_runtime/requests/{}.json", waiting.request_id);
        let file = house.root().join(file);
        until("its file is as its record", async || {
            let written = std::fs::read(&file).ok()?;
            let written: Request = serde_json::from_slice(&written).ok()?;
            let state = house.state()?;
            (*state.requests[&waiting.request_id] == written).then_some(())
        })
        .await;
        wall.is_used(&house);
        Scene { house, asked, waiting }
    }

    pub(super) fn root(&self) -> String {
        self.house.root().to_str().unwrap().to_owned()
    }

    /// Every value that nobody may ever see, with its name.
    pub(super) fn canaries(&self) -> Vec<(&'static str, String)> {
        let token = self.house.running.info.bots["teams"].token.clone();
        let secret = self.house.root().join(".teams_runtime/control.secret");
        vec![
            ("the bot's token", token),
            ("the control secret", std::fs::read_to_string(secret).unwrap().trim().to_owned()),
            ("the model's key", MODEL_KEY.to_owned()),
            ("a password", PASSWORD.to_owned()),
            ("what setup kept", KEPT.to_owned()),
        ]
    }

    pub(super) fn script(&self, entries: &Value) {
        std::fs::write(self.house.root().join("script.yaml"), entries.to_string()).unwrap();
    }

    /// What must be the same afterwards, by name.
    pub(super) fn kept(&self) -> BTreeMap<String, Vec<u8>> {
        let (root, project) = (self.house.root(), self.house.project());
        let id = self.waiting.request_id.as_str();
        let state = root.join(".teams_runtime");
        let git = project.join(".git");
        let places = [
            root.join("team_runtime.yaml"),
            root.join("discord_agents_config.yaml"),
            root.join(".env"),
            root.join(".teams_setup"),
            root.join("roles"),
            state.join(format!("requests/{id}.json")),
            state.join(format!("requests/{id}.events.jsonl")),
            state.join("worktrees").join(id),
            state.join("control.secret"),
            git.join("config"),
            git.join("hooks"),
            git.join("HEAD"),
            git.join("refs/heads/main"),
        ];
        let mut all = BTreeMap::new();
        let own = std::fs::read_dir(&project).unwrap().map(|entry| entry.unwrap().path());
        for place in places.into_iter().chain(own.filter(|path| !path.ends_with(".git"))) {
            for path in files(&place) {
                all.insert(path.display().to_string(), std::fs::read(&path).unwrap());
            }
        }
        assert!(all.len() > 12, "{:?}", all.keys());
        all
    }

    /// The names of all references that are not the runtime's own.
    pub(super) fn references(&self) -> Vec<String> {
        let repository = git2::Repository::open(self.house.project()).unwrap();
        let all = repository.references().unwrap();
        let lines = all.map(|it| {
            let it = it.unwrap();
            format!("{} {:?}", it.name().unwrap(), it.target())
        });
        let mut lines: Vec<String> = lines.filter(|line| !line.contains("/teams/")).collect();
        lines.sort();
        lines
    }

    /// Looks for every secret wherever the team writes or says anything.
    pub(super) async fn nothing_leaked(&self) {
        let beside = self.house.beside("stderr.txt");
        let places = files(&self.house.root()).into_iter().chain(files(&self.house.project()));
        let own = [".env", "tokens.env", "control.secret"];
        let said = self.house.transcript().await;
        for (name, secret) in self.canaries() {
            assert!(!said.contains(&secret), "{name} was said in Discord");
            for path in places.clone().chain([beside.clone()]) {
                let bytes = std::fs::read(&path).unwrap_or_default();
                let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
                let there = own.iter().any(|file| path.ends_with(file));
                assert!(!found || there, "{name} stands in {}", path.display());
            }
        }
    }

    /// What a role's report says of each command, in order.
    pub(super) fn told(&self, request: &Request, role: &str) -> Vec<String> {
        told(&self.house, request, role)
    }

    /// What the history has of refusals: who, which kind, what.
    pub(super) fn refused(&self, request: &Request) -> Vec<(String, String, String)> {
        refused(&self.house, request)
    }
}

/// What a role's report says of each command, in order.
pub(super) fn told(house: &House, request: &Request, role: &str) -> Vec<String> {
    let history = house.history(request);
    let report = history
        .iter()
        .find(|it| it.kind.as_str() == "role_report" && it.actor == role)
        .unwrap_or_else(|| panic!("no report of {role}"));
    let summary = report.payload["result"]["summary"].as_str().unwrap();
    summary.lines().filter(|line| line.starts_with('`')).map(str::to_owned).collect()
}

/// What the history has of refusals: who, which kind, what.
pub(super) fn refused(house: &House, request: &Request) -> Vec<(String, String, String)> {
    let history = house.history(request);
    let refused = history.into_iter().filter(|it| it.kind.as_str() == "refused");
    refused
        .map(|it| (it.actor, it.payload["kind"].as_str().unwrap().to_owned(), it.summary))
        .collect()
}

pub(super) fn files(place: &Path) -> Vec<PathBuf> {
    let Ok(meta) = std::fs::symlink_metadata(place) else { return Vec::new() };
    if meta.is_file() {
        return vec![place.to_owned()];
    }
    if !meta.is_dir() {
        return Vec::new();
    }
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    entries.flat_map(|entry| files(&entry.path())).collect()
}

/// A line of a script: the role runs these.
pub(super) fn run(role: &str, commands: &[String]) -> Value {
    let commands: Vec<Value> = commands.iter().map(|text| json!(["bash", "-c", text])).collect();
    json!({"role": role, "contains": "greet.sh", "times": 1, "do": "run", "commands": commands})
}

/// One call of a tool by the proxy of the run; ends with 0 where the team did it, and says what the team said.
pub(super) fn call(tool: &str, arguments: &Value) -> String {
    let teams = env!("CARGO_BIN_EXE_teams");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    format!(
        "said=$(echo '{call}' | {teams} mcp); echo \"$said\"; case $said in *'\"isError\":false'*) ;; *) false;; esac"
    )
}
