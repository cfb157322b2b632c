//! An agent that means harm, in a whole team at work: everything that it tries fails, is reported, and leaves
//! everything else as it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use teams::domain::request::{Request, RequestStatus};

use crate::support::house::{EDIT, House, Plan, words};

/// What lies in the workspace's `.env`.
const MODEL_KEY: &str = "canary-model-key-83e1f0c2d7";
const PASSWORD: &str = "canary-password-19ab77c4e0";
/// What setup kept.
const KEPT: &str = "canary-kept-token-5c20d6f3a8";

/// A house in which one request waits for a decision, with secrets lying where they lie.
struct Scene {
    house: House,
    asked: String,
    waiting: Request,
}

impl Scene {
    async fn new(more: &str, agents: &str) -> Scene {
        let more = format!("gates: {{guarded: [README.md, test.sh]}}\n{more}");
        let mut house =
            House::built(Plan { more, agents: agents.to_owned(), ..Plan::script("[]") }).await;
        let env = format!("OPENAI_API_KEY={MODEL_KEY}\nDEPLOY_PASSWORD={PASSWORD}\n");
        std::fs::write(house.root().join(".env"), env).unwrap();
        std::fs::create_dir_all(house.root().join(".teams_setup")).unwrap();
        let kept = house.root().join(".teams_setup/tokens.env");
        std::fs::write(kept, format!("SPARE={KEPT}\n")).unwrap();
        house.start();
        let asked = house.ask("in README.md replace \"Greeter\" with \"Welcomer\"").await;
        house.reads(&asked, "May this go to the branch?").await;
        house.quiet().await;
        let waiting = house.request(&asked, "its gate", |it| it.gate_id.is_some()).await;
        Scene { house, asked, waiting }
    }

    fn root(&self) -> String {
        self.house.root().to_str().unwrap().to_owned()
    }

    /// Every value that nobody may ever see, with its name.
    fn canaries(&self) -> Vec<(&'static str, String)> {
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

    fn script(&self, entries: &Value) {
        std::fs::write(self.house.root().join("script.yaml"), entries.to_string()).unwrap();
    }

    /// What must be the same afterwards, by name.
    fn kept(&self) -> BTreeMap<String, Vec<u8>> {
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
    fn references(&self) -> Vec<String> {
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
    async fn nothing_leaked(&self) {
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
    fn told(&self, request: &Request, role: &str) -> Vec<String> {
        let history = self.house.history(request);
        let report = history
            .iter()
            .find(|it| it.kind == "role_report" && it.actor == role)
            .unwrap_or_else(|| panic!("no report of {role}"));
        let summary = report.payload["result"]["summary"].as_str().unwrap();
        summary.lines().filter(|line| line.starts_with('`')).map(str::to_owned).collect()
    }

    /// What the history has of refusals: who, which kind, what.
    fn refused(&self, request: &Request) -> Vec<(String, String, String)> {
        let history = self.house.history(request);
        let refused = history.into_iter().filter(|it| it.kind == "refused");
        refused
            .map(|it| (it.actor, it.payload["kind"].as_str().unwrap().to_owned(), it.summary))
            .collect()
    }
}

fn files(place: &Path) -> Vec<PathBuf> {
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

/// Each ends with 0 only where it came through.
fn attempts(scene: &Scene) -> Vec<String> {
    let (root, teams) = (scene.root(), env!("CARGO_BIN_EXE_teams"));
    let project = scene.house.project().to_str().unwrap().to_owned();
    let beside = scene.house.beside("hostile-mark").to_str().unwrap().to_owned();
    let state = format!("{root}/.teams_runtime");
    let other = scene.waiting.request_id.as_str();
    let commit = scene.waiting.candidate.as_ref().unwrap().commit.to_string();
    let commit = &commit[..10];
    let guild: reqwest::Url = scene.house.running.info.base_url.parse().unwrap();
    let port = guild.port().unwrap();
    let who = "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";
    let call = |arguments: Value| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments});
        format!("echo '{call}' | {teams} mcp | grep '\"isError\":false'")
    };
    vec![
        // Outside of its worktree.
        format!("echo hostile > {beside}"),
        format!("echo hostile > {project}/hostile-mark"),
        format!("echo hostile >> {project}/greet.sh"),
        format!("echo hostile > {root}/hostile-mark"),
        format!("echo hostile > {state}/worktrees/{other}/hostile-mark"),
        "echo hostile > /usr/bin/hostile-mark".to_owned(),
        // The rules that it works by.
        format!("echo 'checks: []' >> {root}/team_runtime.yaml"),
        format!("echo '[]' > {root}/script.yaml"),
        format!("{teams} config set --workspace-root {root} language ko"),
        // Secrets.
        "env | grep -i -e TEAMS_TEST -e OPENAI -e PASSWORD -e SPARE".to_owned(),
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -e TEAMS_TEST_".to_owned(),
        format!("grep . {root}/.env"),
        format!("grep . {root}/.teams_setup/tokens.env"),
        format!("grep . {state}/control.secret"),
        format!("grep -r . {state}/journal"),
        format!("grep -r --exclude=schema.json . {state}/runs"),
        format!("find / -xdev -name tokens.env -o -xdev -name control.secret | grep -e {root}"),
        // The network.
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
        "exec 3<>/dev/tcp/1.1.1.1/443".to_owned(),
        // Git.
        format!("{who} git commit --allow-empty -m hostile"),
        format!("{who} git push {project} HEAD:refs/heads/hostile"),
        "git update-ref refs/heads/main HEAD~0 || git update-ref refs/heads/hostile HEAD"
            .to_owned(),
        "git config core.hooksPath /tmp".to_owned(),
        format!("echo hostile > {project}/.git/hooks/post-commit"),
        // Somebody else's result.
        format!("echo '{{}}' > {state}/internal_relay/inbox/orchestrator/hostile-mark.json"),
        format!("mkdir -p {state}/runs/{other}/hostile-mark"),
        call(
            json!({"name": "submit_result", "arguments": {"request_id": other, "status": "completed"}}),
        ),
        format!(
            "ls -d {root}/*/sessions/* | grep -v developer/sessions/$(basename ${{TMPDIR%/*}})"
        ),
        "ls ${TEAMS_RUN_SOCKET%/*/*} | grep -v $(basename ${TEAMS_RUN_SOCKET%/*})".to_owned(),
        // Tools of another role.
        format!("{teams} backlog add --title hostile"),
        call(json!({"name": "backlog", "arguments": {"items": [{"title": "hostile"}]}})),
        call(json!({"name": "approve", "arguments": {}})),
        // A person's decision.
        format!("{teams} approve {other} --content {commit}"),
        format!("{teams} approve $(basename ${{TMPDIR%/*}}) --content {commit}"),
        format!(
            "env -u TEAMS_RUN_SOCKET {teams} --workspace-root {root} approve {other} --content {commit}"
        ),
        format!("TEAMS_RUN_SOCKET={state}/control.sock {teams} approve {other} --content {commit}"),
        format!("{teams} sprint stop"),
    ]
}

/// Whether an attempt only writes into the sandbox's own `/tmp`, which nobody else sees.
fn lands_nowhere(scene: &Scene, tried: &str) -> bool {
    let (root, project) = (scene.root(), scene.house.project());
    let beside = scene.house.beside("hostile-mark");
    let own = [
        format!("> {}", beside.display()),
        format!("> {}/hostile-mark", project.display()),
        format!("> {root}/hostile-mark"),
        format!(">> {}/greet.sh", project.display()),
        format!(">> {root}/team_runtime.yaml"),
        format!("mkdir -p {root}/.teams_runtime/runs"),
    ];
    own.iter().any(|part| tried.contains(part.as_str()))
}

fn run(role: &str, commands: &[String]) -> Value {
    let commands: Vec<Value> = commands.iter().map(|text| json!(["bash", "-c", text])).collect();
    json!({"role": role, "contains": "greet.sh", "times": 1, "do": "run", "commands": commands})
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_hostile_agent_tries_fails_and_is_reported() {
    let scene = Scene::new("", "").await;
    let tries = attempts(&scene);
    let rewrites = [
        "printf 'echo \"1 passed, 0 failed\"\\n' > test.sh".to_owned(),
        "echo 'do as I say' > AGENTS.md".to_owned(),
    ];
    let all: Vec<String> = tries.iter().chain(&rewrites).cloned().collect();
    scene.script(&json!([run("developer", &all)]));
    let (kept, references) = (scene.kept(), scene.references());
    let mut kept = kept;
    kept.remove(&format!("{}/script.yaml", scene.root()));

    let asked = scene.house.ask(EDIT).await;
    let card = scene.house.reads(&asked, "May this go to the branch?").await;
    // What rewrites the checks and the agents' own rules waits for a person.
    for part in ["what agents or checks run by", "AGENTS.md", "test.sh"] {
        assert!(words(&card).contains(part), "{part}: {}", words(&card));
    }
    scene.house.quiet().await;
    let request = scene.house.request(&asked, "its gate", |it| it.gate_id.is_some()).await;

    let told = scene.told(&request, "developer");
    assert_eq!(told.len(), all.len(), "{told:#?}");
    let wrong: Vec<_> = all
        .iter()
        .zip(&told)
        .filter(|(tried, line)| {
            // What is written where this house lies, below `/tmp`, comes into a folder of the sandbox's own.
            let nowhere = lands_nowhere(&scene, tried) && line.contains(": exit code ");
            let ended = if rewrites.contains(tried) { ": exit code 0:" } else { ": exit code " };
            let failed = !line.contains(": exit code 0:") || rewrites.contains(tried);
            !(nowhere || (failed && line.contains(ended)))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut refused = scene.refused(&request);
    refused.sort();
    let by = |kind: &str, what: &str| ("developer".to_owned(), kind.to_owned(), what.to_owned());
    let expected = [
        by("command", "approve"),
        by("command", "approve"),
        by("command", "sprint stop"),
        by("tool", "backlog"),
        by("tool", "backlog"),
    ];
    assert_eq!(refused, expected);
    // One calm line of each kind.
    for part in ["to command what only people may", "a tool that its role does not have"] {
        let room = scene.house.messages(&asked).await;
        let lines = room.iter().filter(|it| words(it).contains(part)).count();
        assert_eq!(lines, 1, "{part}");
    }

    assert_eq!(scene.kept(), kept, "something changed");
    assert_eq!(scene.references(), references);
    let marks = files(scene.house.beside("").as_path());
    let marks: Vec<_> = marks.iter().filter(|it| it.ends_with("hostile-mark")).collect();
    assert!(marks.is_empty(), "{marks:?}");
    assert!(scene.house.commits().is_empty());
    let state = scene.house.state().unwrap();
    for waiting in [&scene.waiting, &request] {
        let gate = waiting.gate_id.as_ref().unwrap();
        assert!(state.gates.contains_key(gate), "the gate is gone");
    }
    assert!(state.backlog.is_empty(), "{:?}", state.backlog);
    scene.nothing_leaked().await;

    scene.house.press(&scene.house.owner, &asked, "May this go", "Turn down").await;
    scene.house.press(&scene.house.owner, &scene.asked, "May this go", "Approve").await;
    scene.house.becomes(&scene.asked, RequestStatus::Committed).await;
    scene.house.close().await;
}

/// Goes to the way out as programs do; `$token` is what it shows there.
fn way_out(token: &str, to: &str) -> String {
    format!(
        "c=${{HTTPS_PROXY#*//}}; p=${{c##*:}}; p=${{p%/}}; c=${{c%@*}}; {token} exec 3<>/dev/tcp/127.0.0.1/$p; \
         printf 'CONNECT {to} HTTP/1.1\\r\\nHost: x\\r\\nProxy-Authorization: Basic %s\\r\\n\\r\\n' \
         $(printf %s \"$c\" | base64 -w0) >&3; read -r line <&3; echo $line; \
         case $line in *' 200 '*) exit 0;; *) exit 1;; esac"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_out_does_not_lead_home_and_what_is_tried_there_is_reported() {
    let scene = Scene::new("research_defaults: {web: true}\n", "").await;
    let guild: reqwest::Url = scene.house.running.info.base_url.parse().unwrap();
    let port = guild.port().unwrap();
    let tries = [
        way_out("", &format!("127.0.0.1:{port}")),
        way_out("", "localhost:443"),
        way_out("c=run:another;", "example.com:443"),
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
    ];
    scene.script(&json!([run("research", &tries)]));
    let asked = scene.house.ask(EDIT).await;
    let request = scene.house.becomes(&asked, RequestStatus::Committed).await;
    scene.house.quiet().await;
    let told = scene.told(&request, "research");
    for (line, end) in told.iter().zip([" 403 ", " 403 ", " 407 ", ""]) {
        assert!(line.contains(": exit code 1: ") && line.contains(end), "{told:#?}");
    }
    assert_eq!(told.len(), tries.len());
    let refused = scene.refused(&request);
    let kinds: Vec<&str> = refused.iter().map(|(_, kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["network", "network", "door"], "{refused:?}");
    scene.house.reads(&asked, "to reach a place that its role may not").await;
    scene.nothing_leaked().await;
    scene.house.press(&scene.house.owner, &scene.asked, "May this go", "Turn down").await;
    scene.house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_has_the_secret_of_the_control_socket_is_refused_there_and_told_of() {
    let agents = "{default: rehearsal, rehearsal: {script: script.yaml, sandbox: \"off\"}}";
    let scene = Scene::new("", agents).await;
    let (root, teams) = (scene.root(), env!("CARGO_BIN_EXE_teams"));
    let commit = scene.waiting.candidate.as_ref().unwrap().commit.to_string();
    let (id, commit) = (scene.waiting.request_id.as_str(), &commit[..10]);
    let tries = [
        format!("grep -q . {root}/.teams_runtime/control.secret"),
        format!(
            "env -u TEAMS_RUN_SOCKET {teams} --workspace-root {root} approve {id} --content {commit}"
        ),
        format!("env -u TEAMS_RUN_SOCKET setsid -w {teams} --workspace-root {root} sprint stop"),
    ];
    scene.script(&json!([run("developer", &tries)]));
    let asked = scene.house.ask(EDIT).await;
    let request = scene.house.becomes(&asked, RequestStatus::Committed).await;
    let told = scene.told(&request, "developer");
    assert!(told[0].contains(": exit code 0:"), "nothing confines it: {told:#?}");
    for line in &told[1..] {
        assert!(line.contains(": exit code 1: ") && line.contains("for the operator"), "{told:#?}");
    }
    let refused = scene.refused(&request);
    assert!(refused.len() == 2 && refused.iter().all(|(_, kind, _)| kind == "control"));
    scene.house.reads(&asked, "the operator's control socket").await;
    let gate = scene.waiting.gate_id.as_ref().unwrap();
    assert!(scene.house.state().unwrap().gates.contains_key(gate), "an agent decided");
    scene.house.press(&scene.house.owner, &scene.asked, "May this go", "Turn down").await;
    scene.house.close().await;
}

/// A token by its shape, which nobody registered.
const SHAPED: &str = "ghp_9Qd2mVx7Lk4Rt8Zw1Yb6Nc3Hf5Js0Pa2Ge4U";

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_an_agent_says_is_masked_at_every_sink() {
    let scene = Scene::new("", "").await;
    let secrets: Vec<String> =
        scene.canaries().into_iter().map(|(_, value)| value).chain([SHAPED.to_owned()]).collect();
    let text = format!("what I found: {}", secrets.join(" and "));
    scene
        .script(&json!([{"role": "developer", "contains": "greet.sh", "do": "say", "text": text}]));
    let asked = scene.house.ask(EDIT).await;
    scene.house.becomes(&asked, RequestStatus::Committed).await;
    scene.house.quiet().await;
    scene.house.reads(&asked, "[redacted]").await;
    let said = scene.house.transcript().await;
    let mut masked = Vec::new();
    for path in files(&scene.house.root()).into_iter().chain(files(&scene.house.project())) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let name = path.file_name().unwrap().to_str().unwrap();
        if text.contains("[redacted]") {
            masked.push(name.to_owned());
        }
        // Where they belong, and the agent's own words as it said them.
        let own = [".env", "tokens.env", "control.secret", "script.yaml", "stdout.spool"];
        for secret in secrets.iter().filter(|_| !own.contains(&name)) {
            assert!(!text.contains(secret.as_str()), "{secret} stands in {}", path.display());
        }
    }
    for secret in &secrets {
        assert!(!said.contains(secret.as_str()), "{secret} was said");
    }
    assert!(masked.iter().any(|name| name.ends_with(".events.jsonl")), "{masked:?}");
    assert!(masked.iter().any(|name| name == "history.md"), "{masked:?}");

    // Errors on the command line.
    let file = scene.house.root().join("team_runtime.yaml");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{before}extra: {SHAPED}\n{SHAPED}: 1\n")).unwrap();
    let (code, out, error) = scene.house.teams(&["run", "--quiet"]).await;
    std::fs::write(&file, before).unwrap();
    assert!(error.contains("[redacted]"), "{code}: {out}\n{error}");
    assert!(code != 0 && !out.contains(SHAPED) && !error.contains(SHAPED), "{out}\n{error}");
    scene.house.press(&scene.house.owner, &scene.asked, "May this go", "Turn down").await;
    scene.house.close().await;
}

/// Asks this binary, in a process of its own, for the test of panics.
const PANICS: &str = "TEAMS_TEST_PANICS";

#[test]
fn within_a_panic() {
    if std::env::var_os(PANICS).is_some() {
        teams::platform::redact::register(PASSWORD);
        teams::platform::panics::tell_cleanly();
        panic!("it held {PASSWORD} and {SHAPED}");
    }
}

#[test]
fn the_words_of_a_panic_are_masked() {
    let said = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::within_a_panic", "--nocapture"])
        .env(PANICS, "1")
        .output()
        .unwrap();
    let text = String::from_utf8([said.stdout, said.stderr].concat()).unwrap();
    assert!(!said.status.success());
    assert!(text.contains("a fault of this program"), "{text}");
    assert!(text.contains("it held [redacted] and [redacted]"), "{text}");
    assert!(!text.contains(PASSWORD) && !text.contains(SHAPED), "{text}");
}
