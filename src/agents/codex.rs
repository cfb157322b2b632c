//! Codex CLI: how it is started and what its JSON lines mean (`spec/agents.md` section 1).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::blame::classify;
use crate::agents::codec::{Codec, Event, number, text};
use crate::agents::error::{self, RunError};
pub use crate::agents::sandbox::Sandbox;
use crate::agents::sandbox::{ProxyAddress, RUN_SOCKET, WriteAccess};
use crate::agents::stuck::digest;
use crate::agents::tools::{Tools, toml};
use crate::domain::run::FailKind;
use crate::domain::usage::Usage;

/// The environment variable that names the binary.
const BINARY_VARIABLE: &str = "TEAMS_CODEX";

/// The environment variable that it takes the run's token from.
const TOKEN_VARIABLE: &str = "TEAMS_MODEL_TOKEN";
/// What its commands get of its environment.
const FOR_COMMANDS: [&str; 14] = [
    "HOME",
    "PATH",
    "TMPDIR",
    "LANG",
    "TZ",
    RUN_SOCKET,
    "CARGO_HOME",
    "RUSTUP_HOME",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Settings of Codex CLI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodexSettings {
    /// The program: a path or a name; `codex` by default, `TEAMS_CODEX` before it.
    pub binary: Option<PathBuf>,
    /// The model's slug. Always passed: resuming with another one costs an extra model call.
    pub model: String,
    /// `low`, `medium`, `high`.
    pub reasoning: String,
    /// The base address of a model server that speaks the Responses API without a key.
    pub model_url: Option<String>,
    /// The model server behind the team's proxy; counts where the run has one.
    pub server: Option<String>,
    /// A folder in which the operator ran `codex login`; runs have its login.
    pub login_home: Option<PathBuf>,
    /// Whether commands are confined.
    pub sandbox: Sandbox,
    /// How often Codex itself repeats a request, and a broken stream.
    pub retries: u8,
}

impl Default for CodexSettings {
    fn default() -> CodexSettings {
        CodexSettings {
            binary: None,
            model: "gpt-5.5".to_owned(),
            reasoning: "medium".to_owned(),
            model_url: None,
            server: None,
            login_home: None,
            sandbox: Sandbox::Auto,
            retries: 2,
        }
    }
}

/// The folder of a session that Codex keeps its state in.
pub(super) const HOME: &str = "codex";

impl CodexSettings {
    /// Finds the program: the setting, then `TEAMS_CODEX`, then `codex` in `PATH`.
    pub fn program(&self) -> Result<PathBuf, RunError> {
        let setting = "agents.codex.binary";
        error::program("Codex CLI", self.binary.as_deref(), BINARY_VARIABLE, "codex", setting)
    }

    /// What its environment holds beside what every agent's does: the run's token, which stands for a key.
    pub(super) fn environment(&self, proxy: Option<&ProxyAddress>) -> Option<(String, String)> {
        let proxy = proxy.filter(|_| self.server.is_some())?;
        Some((TOKEN_VARIABLE.to_owned(), proxy.token.clone()))
    }
}

/// What a turn differs in.
pub(super) struct Turn<'a> {
    pub(super) worktree: &'a Path,
    pub(super) access: &'a WriteAccess,
    pub(super) schema: &'a Path,
    pub(super) charter: &'a str,
    /// Its environment, of which its commands get what they need.
    pub(super) env: &'a BTreeMap<String, String>,
    /// Which variables of it tell where prepared dependencies are.
    pub(super) prepared: &'a BTreeMap<String, String>,
    /// The tools of the team.
    pub(super) tools: Option<&'a Tools>,
    pub(super) resume: Option<&'a str>,
    /// Whether it may search the web.
    pub(super) web: bool,
    /// Whether something else keeps its commands within what the role may do.
    pub(super) confined: bool,
    /// Whether the project's settings are pinned.
    pub(super) pinned: bool,
    pub(super) proxy: Option<&'a ProxyAddress>,
}

/// The arguments; the prompt comes on stdin. Options stand before `resume`, which takes none of
/// them, and everything is said again on a resume because nothing is remembered.
pub(super) fn arguments(config: &CodexSettings, turn: &Turn<'_>) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    let folder = match turn.access {
        WriteAccess::Documents(folder) => folder.as_path(),
        WriteAccess::ReadOnly | WriteAccess::Worktree => turn.worktree,
    };
    let mode = match (turn.confined, turn.access) {
        // Its own sandbox within ours would have nothing to add, and often cannot be made there.
        (true, _) => "danger-full-access",
        (false, WriteAccess::ReadOnly) => "read-only",
        // Everything is readable in this mode and only the folder is writable; where that is one of
        // documents, the prompt names the worktree.
        (false, WriteAccess::Worktree | WriteAccess::Documents(_)) => "workspace-write",
    };
    add(&["exec", "--json", "--skip-git-repo-check", "--ignore-user-config"]);
    add(&["-C", &folder.to_string_lossy(), "-s", mode, "-m", &config.model]);
    add(&["--output-schema", &turn.schema.to_string_lossy()]);
    // None of these talks to the network at start, nor waits for it for ever.
    for feature in ["plugins", "apps", "unbounded_connection_retries"] {
        add(&["--disable", feature]);
    }
    // One agent per run, seen whole: no agents below it that outlast a turn.
    for feature in ["multi_agent", "goals", "tool_suggest"] {
        add(&["--disable", feature]);
    }
    let mut set = |key: &str, value: &str| add(&["-c", &format!("{key}={value}")]);
    set("analytics.enabled", "false");
    set("web_search", if turn.web { "live" } else { "disabled" });
    // /tmp is shared with everyone; the session's own temporary folder stays writable.
    set("sandbox_workspace_write.exclude_slash_tmp", "true");
    set("sandbox_workspace_write.network_access", "false");
    // By name: other programs can read a command line, and the way out has the run's token in its address.
    let prepared = turn.prepared.keys().map(String::as_str);
    let names =
        FOR_COMMANDS.into_iter().chain(prepared).filter(|name| turn.env.contains_key(*name));
    let names: BTreeSet<String> = names.map(toml).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(",");
    set("shell_environment_policy.inherit", "all");
    set("shell_environment_policy.ignore_default_excludes", "true");
    set("shell_environment_policy.include_only", &format!("[{names}]"));
    for (key, value) in turn.tools.iter().flat_map(|tools| tools.codex()) {
        set(&key, &value);
    }
    if turn.pinned {
        // Settings of a folder that is not trusted are not read.
        let worktree = toml(&turn.worktree.to_string_lossy());
        set("projects", &format!("{{{worktree}={{trust_level=\"trusted\"}}}}"));
    }
    set("model_reasoning_effort", &toml(&config.reasoning));
    set("developer_instructions", &toml(turn.charter));
    let behind = turn.proxy.zip(config.server.as_deref()).map(|(proxy, server)| proxy.url(server));
    let key =
        if behind.is_some() { format!("env_key=\"{TOKEN_VARIABLE}\",") } else { String::new() };
    if let Some(url) = behind.as_ref().or(config.model_url.as_ref()) {
        set("model_provider", "teams");
        set(
            "model_providers.teams",
            &format!(
                "{{name=\"teams\",{key}base_url={url},wire_api=\"responses\",request_max_retries={n},stream_max_retries={n},stream_idle_timeout_ms=300000}}",
                url = toml(url),
                n = config.retries,
            ),
        );
    }
    match turn.resume {
        Some(id) => add(&["resume", id, "-"]),
        None => add(&["-"]),
    }
    args
}

/// Reads `codex exec --json`.
#[derive(Debug, Default)]
pub struct CodexCodec {
    last_error: Option<String>,
}

impl Codec for CodexCodec {
    fn line(&mut self, line: &Value) -> Vec<Event> {
        match text(line, "type").as_str() {
            "thread.started" => vec![Event::Session(text(line, "thread_id"))],
            "item.started" => self.goes_on(line.get("item").map(started).unwrap_or_default()),
            "item.completed" => self.goes_on(line.get("item").map(completed).unwrap_or_default()),
            "turn.completed" => {
                let usage = line.get("usage").unwrap_or(&Value::Null);
                vec![
                    Event::UsageTotal(Usage {
                        input_tokens: number(usage, "input_tokens"),
                        cached_tokens: number(usage, "cached_input_tokens"),
                        output_tokens: number(usage, "output_tokens"),
                        ..Usage::default()
                    }),
                    Event::Done,
                ]
            }
            "turn.failed" => {
                let error = line.get("error").unwrap_or(&Value::Null);
                let message = text(error, "message");
                // The end of a retry storm may say less than its beginning did.
                let kind = classify(&message)
                    .or_else(|| self.last_error.as_deref().and_then(classify))
                    .unwrap_or(FailKind::Other);
                vec![Event::Failed { kind, message }]
            }
            "error" => {
                let message = text(line, "message");
                self.last_error = Some(message.clone());
                vec![Event::Retry(message)]
            }
            _ => Vec::new(),
        }
    }

    fn without_terminal(&self, stderr_tail: &str) -> FailKind {
        let last = self.last_error.as_deref().and_then(classify);
        last.or_else(|| classify(stderr_tail)).unwrap_or(FailKind::NoTerminal)
    }
}

impl CodexCodec {
    /// Where its model answers, what went wrong before it is overcome.
    fn goes_on(&mut self, events: Vec<Event>) -> Vec<Event> {
        if events.iter().any(Event::is_work) {
            self.last_error = None;
        }
        events
    }
}

fn started(item: &Value) -> Vec<Event> {
    // Of an edit only the paths are told, and many edits of one file are no circle.
    let (name, input) = match text(item, "type").as_str() {
        "command_execution" => (text(item, "command"), Some(&Value::Null)),
        "mcp_tool_call" => {
            (format!("{}.{}", text(item, "server"), text(item, "tool")), item.get("arguments"))
        }
        "web_search" => {
            let query = text(item, "query");
            let known = (!query.is_empty()).then_some(&Value::Null);
            (format!("search {query}"), known)
        }
        "file_change" => ("edit".to_owned(), None),
        _ => return Vec::new(),
    };
    let call = input.map(|input| Event::Call { name: name.clone(), digest: digest(&name, input) });
    call.into_iter().chain([Event::ToolStart { id: text(item, "id"), name }]).collect()
}

fn completed(item: &Value) -> Vec<Event> {
    // A web search says no status.
    let ok = matches!(text(item, "status").as_str(), "" | "completed");
    let end = || Event::ToolEnd { id: text(item, "id"), ok };
    match text(item, "type").as_str() {
        "agent_message" => vec![Event::Text(text(item, "text"))],
        "reasoning" => vec![Event::Thought(text(item, "text"))],
        "command_execution" | "mcp_tool_call" | "web_search" => vec![end()],
        "file_change" => {
            let changes = item.get("changes").and_then(Value::as_array);
            let paths = changes.into_iter().flatten().map(|change| text(change, "path"));
            vec![Event::Files(paths.collect()), end()]
        }
        "error" => vec![Event::Warning(text(item, "message"))],
        _ => Vec::new(),
    }
}
