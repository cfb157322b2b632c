//! Claude Code: how it is started and what its JSON lines mean (`spec/agents.md` section 2).
//!
//! It gets its prompt as a line on a standard input that stays open: what people say while it works is
//! another line, which it reads after the tool that is running, and it echoes what it has taken.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agents::blame::classify;
use crate::agents::codec::{Codec, Event, number, text};
use crate::agents::error::{self, RunError};
use crate::agents::sandbox::{ProxyAddress, Sandbox, WriteAccess};
use crate::agents::stuck::digest;
use crate::agents::tools::{SERVER, Tools};
use crate::agents::words::Words;
use crate::domain::ids::MessageId;
use crate::domain::run::FailKind;
use crate::domain::usage::{Usage, told_usd};

/// The environment variable that names the binary.
const BINARY_VARIABLE: &str = "TEAMS_CLAUDE";

/// Where a project names tool servers of its own.
pub(super) const SERVERS: &str = ".mcp.json";

/// Settings of Claude Code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClaudeSettings {
    /// The program: a path or a name; `claude` by default, `TEAMS_CLAUDE` before it.
    pub binary: Option<PathBuf>,
    /// The model: a name or one of the CLI's own short words.
    pub model: String,
    /// `low`, `medium`, `high`.
    pub reasoning: String,
    /// The base address of a model server that speaks the Messages API without a key.
    pub model_url: Option<String>,
    /// The model server behind the team's proxy; counts where the run has one.
    pub server: Option<String>,
    /// A folder in which the operator logged the CLI in; a private one by default.
    pub login_home: Option<PathBuf>,
    /// Whether commands are confined.
    pub sandbox: Sandbox,
    /// How often Claude Code itself repeats a request.
    pub retries: u8,
}

impl Default for ClaudeSettings {
    fn default() -> ClaudeSettings {
        ClaudeSettings {
            binary: None,
            model: "sonnet".to_owned(),
            reasoning: "medium".to_owned(),
            model_url: None,
            server: None,
            login_home: None,
            sandbox: Sandbox::Auto,
            retries: 4,
        }
    }
}

/// The folder of a session that Claude Code keeps its state in.
pub(super) const HOME: &str = "claude";

impl ClaudeSettings {
    /// Finds the program: the setting, then `TEAMS_CLAUDE`, then `claude` in `PATH`.
    ///
    /// # Errors
    /// [`RunError::NotInstalled`] where there is none.
    pub fn program(&self) -> Result<PathBuf, RunError> {
        let setting = "agents.claude.binary";
        error::program("Claude Code", self.binary.as_deref(), BINARY_VARIABLE, "claude", setting)
    }

    /// The folder that Claude Code keeps its state in.
    fn home(&self, session_dir: &Path) -> PathBuf {
        self.login_home.clone().unwrap_or_else(|| session_dir.join(HOME))
    }

    /// What its environment holds beside what every agent's does.
    pub(super) fn environment(
        &self,
        session_dir: &Path,
        confined: bool,
        proxy: Option<&ProxyAddress>,
    ) -> BTreeMap<String, String> {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut env = BTreeMap::from([
            ("CLAUDE_CONFIG_DIR", path(self.home(session_dir))),
            ("CLAUDE_CODE_TMPDIR", path(session_dir.join("tmp"))),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", self.retries.to_string()),
        ]);
        if let Some((proxy, server)) = proxy.zip(self.server.as_deref()) {
            env.insert("ANTHROPIC_BASE_URL", proxy.url(server));
            env.insert("ANTHROPIC_API_KEY", proxy.token.clone());
        } else if let Some(url) = &self.model_url {
            env.insert("ANTHROPIC_BASE_URL", url.clone());
            if self.login_home.is_none() {
                // It does not begin without a key; such a server wants none.
                env.insert("ANTHROPIC_API_KEY", "none".to_owned());
            }
        }
        if confined {
            // Without it it refuses, as root, to leave asking to whoever confines it.
            env.insert("IS_SANDBOX", "1".to_owned());
        }
        env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// What a turn differs in.
pub(super) struct Turn<'a> {
    pub(super) access: &'a WriteAccess,
    pub(super) worktree: &'a Path,
    /// Whether the project names servers of its own.
    pub(super) has_servers: bool,
    pub(super) schema: &'a Value,
    pub(super) charter: &'a str,
    pub(super) resume: Option<&'a str>,
    /// Whether it may search the web.
    pub(super) web: bool,
    /// Whether something else keeps its commands within what the role may do.
    pub(super) confined: bool,
    /// The tools of the team.
    pub(super) tools: Option<&'a Tools>,
    /// Whether the project's settings are pinned.
    pub(super) pinned: bool,
}

/// The arguments. Settings, hooks and servers of the user are not read, nor those of the project that are not
/// pinned.
pub(super) fn arguments(config: &ClaudeSettings, turn: &Turn<'_>) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    add(&["--replay-user-messages", "--model", &config.model, "--effort", &config.reasoning]);
    let sources = if turn.pinned { "project" } else { "" };
    add(&["--setting-sources", sources, "--strict-mcp-config", "--json-schema"]);
    add(&[&turn.schema.to_string(), "--append-system-prompt", turn.charter]);
    // Else the words of the first turn stay in force on a resume.
    add(&["--system-prompt-snapshot", "off"]);
    let servers = turn.worktree.join(SERVERS);
    let servers = (turn.pinned && turn.has_servers).then(|| servers.to_string_lossy().into_owned());
    let servers = turn.tools.map(|tools| tools.claude().to_string()).into_iter().chain(servers);
    let servers: Vec<String> = servers.collect();
    if !servers.is_empty() {
        add(&["--mcp-config"]);
        add(&servers.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let mut tools = vec!["Read", "Grep", "Glob"];
    let folder = match turn.access {
        WriteAccess::ReadOnly => None,
        WriteAccess::Worktree => Some(turn.worktree),
        WriteAccess::Documents(folder) => Some(folder.as_path()),
    };
    if folder.is_some() {
        tools.extend(["Edit", "Write"]);
    }
    if turn.confined {
        tools.push("Bash");
    }
    if turn.web {
        tools.extend(["WebSearch", "WebFetch"]);
    }
    add(&["--tools", &tools.join(",")]);
    if turn.confined {
        add(&["--dangerously-skip-permissions"]);
    } else {
        // No commands at all, and files only where the role may write them.
        let mut allowed = vec!["Read".to_owned(), "Grep".to_owned(), "Glob".to_owned()];
        if let Some(folder) = folder {
            allowed.push(format!("Edit(/{}/**)", folder.display()));
        }
        if turn.web {
            allowed.extend(["WebSearch".to_owned(), "WebFetch".to_owned()]);
        }
        if turn.tools.is_some() {
            allowed.push(format!("mcp__{SERVER}"));
        }
        add(&["--permission-mode", "dontAsk", "--allowedTools", &allowed.join(",")]);
    }
    if let Some(folder) = folder {
        add(&["--add-dir", &folder.to_string_lossy()]);
    }
    if let Some(id) = turn.resume {
        add(&["--resume", id]);
    }
    args
}

/// A message of the user as it stands on standard input.
pub(super) fn message(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}})
}

/// Reads the stream of Claude Code.
#[derive(Debug, Default)]
pub struct ClaudeCodec {
    replies: Vec<Value>,
    /// How many words were sent, and which of them it has not echoed yet.
    sent: u64,
    unheard: Vec<String>,
    last_error: Option<String>,
    over: bool,
    /// Answers of the model since the last result, and what they have used.
    answers: BTreeSet<String>,
    used: Usage,
}

impl Codec for ClaudeCodec {
    fn line(&mut self, line: &Value) -> Vec<Event> {
        // What agents below it say and do is its own business.
        let of_its_own = line.get("parent_tool_use_id").is_none_or(Value::is_null);
        match text(line, "type").as_str() {
            "system" => self.system(line),
            "assistant" => {
                let message = line.get("message");
                let used = message.and_then(|message| self.used(message));
                let events = if of_its_own { self.assistant(message) } else { Vec::new() };
                events.into_iter().chain(used).collect()
            }
            "user" if line.get("isReplay") == Some(&Value::Bool(true)) => self.echoed(line),
            "user" if of_its_own => tool_ends(line),
            "result" => self.result(line),
            "rate_limit_event" => limit(line),
            _ => Vec::new(),
        }
    }

    fn without_terminal(&self, stderr_tail: &str) -> FailKind {
        let last = self.last_error.as_deref().and_then(classify);
        last.or_else(|| classify(stderr_tail)).unwrap_or(FailKind::NoTerminal)
    }

    fn replies(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.replies)
    }

    fn hear(&mut self, words: &Words, text: &str) -> bool {
        if !self.over {
            let uuid = name(words.id, self.sent);
            self.sent += 1;
            self.tell(uuid, text);
        }
        true
    }

    fn hint(&mut self, text: &str) -> bool {
        if !self.over {
            // No message's name: nobody is told that it was heard.
            let uuid = format!("00000000-0000-4000-9000-{:012x}", self.sent);
            self.sent += 1;
            self.tell(uuid, text);
        }
        true
    }
}

impl ClaudeCodec {
    fn tell(&mut self, uuid: String, text: &str) {
        let mut said = message(text);
        said["uuid"] = Value::from(uuid.as_str());
        self.replies.push(said);
        self.unheard.push(uuid);
    }

    fn system(&mut self, line: &Value) -> Vec<Event> {
        match text(line, "subtype").as_str() {
            "init" => vec![
                Event::Session(text(line, "session_id")),
                Event::Agent(format!("claude {}", text(line, "claude_code_version"))),
            ],
            "api_retry" => {
                let status = number(line, "error_status");
                let message = format!("{status} {}", text(line, "error"));
                self.last_error = Some(message.clone());
                vec![Event::Retry(message)]
            }
            "permission_denied" => vec![Event::Warning(text(line, "message"))],
            _ => Vec::new(),
        }
    }

    fn assistant(&mut self, message: Option<&Value>) -> Vec<Event> {
        let Some(message) = message else { return Vec::new() };
        let blocks = message.get("content").and_then(Value::as_array);
        let blocks = blocks.into_iter().flatten();
        let used = message.get("usage").map(request_size).filter(|used| *used > 0);
        if text(message, "model") == "<synthetic>" {
            // Its own report of an error, not the model's words.
            self.last_error = blocks.map(|block| text(block, "text")).next_back();
            return Vec::new();
        }
        // Its model answers, so what went wrong before is overcome.
        self.last_error = None;
        blocks
            .flat_map(|block| match text(block, "type").as_str() {
                "text" => vec![Event::Text(text(block, "text"))],
                "thinking" => vec![Event::Thought(text(block, "thinking"))],
                "tool_use" => {
                    let input = block.get("input").unwrap_or(&Value::Null);
                    let tool = text(block, "name");
                    let name = called(&tool, input);
                    let digest = digest(&tool, &asked(input));
                    let start = Event::ToolStart { id: text(block, "id"), name: name.clone() };
                    vec![Event::Call { name, digest }, start]
                }
                _ => Vec::new(),
            })
            .chain(used.map(|used| Event::Context { used: Some(used), size: None }))
            .collect()
    }

    /// What it has used since its last result. Each block of an answer comes with the count of the whole, of which what it
    /// has written is known at the end alone.
    fn used(&mut self, message: &Value) -> Option<Event> {
        let usage = message.get("usage")?;
        if !self.answers.insert(text(message, "id")) {
            return None;
        }
        let output_tokens = number(usage, "output_tokens");
        let answer = Usage {
            input_tokens: request_size(usage).saturating_sub(output_tokens),
            cached_tokens: number(usage, "cache_read_input_tokens"),
            written_tokens: number(usage, "cache_creation_input_tokens"),
            output_tokens,
            cost_usd: 0.0,
        };
        self.used = self.used.plus(answer);
        Some(Event::Used(self.used))
    }

    /// It echoes a message when it takes it up.
    fn echoed(&mut self, line: &Value) -> Vec<Event> {
        let uuid = text(line, "uuid");
        self.unheard.retain(|sent| *sent != uuid);
        named(&uuid).map(Event::Heard).into_iter().collect()
    }

    /// The end of a turn, but not of the work while there are words that it has yet to take up.
    fn result(&mut self, line: &Value) -> Vec<Event> {
        (self.answers, self.used) = Default::default();
        // What the whole conversation used does not hold what a killed process of it did.
        let since_the_last = line.get("model_usage_since_last_result").and_then(Value::as_object);
        let mut events = vec![match since_the_last {
            Some(models) => Event::Usage(usage(models)),
            None => Event::UsageTotal(total(line)),
        }];
        events.extend(window(line).map(|size| Event::Context { used: None, size: Some(size) }));
        if text(line, "subtype") == "error_max_structured_output_retries" {
            // Its work is done, and only the form of its answer is not: that is asked for again.
            self.over = true;
            events.extend([Event::Text(String::new()), Event::Done]);
            return events;
        }
        if line.get("is_error") == Some(&Value::Bool(true)) {
            self.over = true;
            let (kind, message) = self.failure(line);
            events.push(Event::Failed { kind, message });
            return events;
        }
        match line.get("structured_output") {
            Some(output @ Value::Object(_)) => events.push(Event::Text(output.to_string())),
            Some(_) | None => events.push(Event::Text(text(line, "result"))),
        }
        if self.unheard.is_empty() {
            self.over = true;
            events.push(Event::Done);
        }
        events
    }

    /// Why a turn failed: the fields for it first, then the words.
    fn failure(&self, line: &Value) -> (FailKind, String) {
        let words = match text(line, "result") {
            words if words.is_empty() => self.last_error.clone().unwrap_or_default(),
            words => words,
        };
        let message = match words.as_str() {
            "" => format!("{} ({})", text(line, "subtype"), text(line, "terminal_reason")),
            words => words.to_owned(),
        };
        let by_words = classify(&words);
        let kind = match (text(line, "subtype").as_str(), text(line, "terminal_reason").as_str()) {
            ("error_max_turns", _) | (_, "max_turns") => FailKind::MaxTurns,
            ("error_max_budget_usd", _) | (_, "budget_exhausted") => FailKind::Budget,
            (_, "prompt_too_long") => FailKind::Context,
            ("error_during_execution", _) => FailKind::Other,
            _ => match (text(line, "stop_reason").as_str(), number(line, "api_error_status")) {
                ("refusal", _) => FailKind::Refusal,
                ("max_tokens", _) => FailKind::MaxTurns,
                (_, 401 | 403) => FailKind::Auth,
                (_, 429) if by_words == Some(FailKind::Quota) => FailKind::Quota,
                (_, 429) => FailKind::RateLimit,
                (_, 400) if by_words == Some(FailKind::Budget) => FailKind::Budget,
                (_, 400) if by_words == Some(FailKind::Context) => FailKind::Context,
                (_, 400) if by_words == Some(FailKind::Quota) => FailKind::Quota,
                (_, 400) => FailKind::BadRequest,
                (_, 500..=599) => FailKind::Overloaded,
                _ => by_words
                    .or_else(|| self.last_error.as_deref().and_then(classify))
                    .unwrap_or(FailKind::Other),
            },
        };
        (kind, message)
    }
}

/// How it stands with the limits of a plan.
fn limit(line: &Value) -> Vec<Event> {
    let info = line.get("rate_limit_info").unwrap_or(&Value::Null);
    let rejected = text(info, "status") == "rejected";
    let at = info.get("resetsAt").and_then(Value::as_i64).filter(|_| rejected);
    vec![Event::LimitEnds(at)]
}

/// A tool with what it is used on.
fn called(name: &str, input: &Value) -> String {
    let on = ["command", "file_path", "pattern", "url", "query"];
    match on.iter().map(|key| text(input, key)).find(|text| !text.is_empty()) {
        Some(on) => format!("{name} {on}"),
        None => name.to_owned(),
    }
}

/// What a tool is asked for. How the model describes a command to people changes from call to call.
fn asked(input: &Value) -> Value {
    let mut input = input.clone();
    if let Value::Object(fields) = &mut input
        && fields.contains_key("command")
    {
        fields.remove("description");
    }
    input
}

fn tool_ends(line: &Value) -> Vec<Event> {
    let blocks = line.pointer("/message/content").and_then(Value::as_array);
    let ends = blocks.into_iter().flatten().filter(|it| text(it, "type") == "tool_result");
    let mut events: Vec<Event> = ends
        .map(|block| Event::ToolEnd {
            id: text(block, "tool_use_id"),
            ok: block.get("is_error") != Some(&Value::Bool(true)),
        })
        .collect();
    let written = line.get("tool_use_result").filter(|it| it.get("structuredPatch").is_some());
    events.extend(written.map(|it| Event::Files(vec![text(it, "filePath")])));
    events
}

/// Tokens and money of the conversation so far: both fields count over its whole life.
fn total(result: &Value) -> Usage {
    let models = result.get("modelUsage").and_then(Value::as_object);
    let cost_usd = told_usd(result.get("total_cost_usd").and_then(Value::as_f64));
    Usage { cost_usd, ..models.map(usage).unwrap_or_default() }
}

/// Tokens and money by model.
fn usage(models: &serde_json::Map<String, Value>) -> Usage {
    let mut all = Usage::default();
    for model in models.values() {
        let cached = number(model, "cacheReadInputTokens");
        let written = number(model, "cacheCreationInputTokens");
        all = all.plus(Usage {
            input_tokens: number(model, "inputTokens")
                .saturating_add(written)
                .saturating_add(cached),
            cached_tokens: cached,
            written_tokens: written,
            output_tokens: number(model, "outputTokens"),
            cost_usd: told_usd(model.get("costUSD").and_then(Value::as_f64)),
        });
    }
    all
}

/// Tokens that a request to the model took, by the usage that its answer names.
fn request_size(usage: &Value) -> u64 {
    let parts =
        ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
    parts.iter().map(|part| number(usage, part)).fold(0, u64::saturating_add)
}

/// The window of the model that read the most: small ones help it along.
fn window(result: &Value) -> Option<u64> {
    let models = result.get("modelUsage")?.as_object()?.values();
    let read =
        |model: &&Value| number(model, "inputTokens") + number(model, "cacheReadInputTokens");
    models.max_by_key(read).map(|model| number(model, "contextWindow")).filter(|size| *size > 0)
}

/// The name by which it echoes words: a UUID that holds the message's id and how many came before, so
/// that the same message may come twice.
fn name(id: MessageId, before: u64) -> String {
    let (high, middle, low) = (id.0 >> 32, (id.0 >> 16) & 0xffff, id.0 & 0xffff);
    format!("{high:08x}-{middle:04x}-4{:03x}-8000-{low:012x}", before & 0xfff)
}

/// The message that a name was made for.
fn named(uuid: &str) -> Option<MessageId> {
    let parts: Vec<&str> = uuid.split('-').collect();
    let &[high, middle, _, "8000", low] = parts.as_slice() else { return None };
    let part = |text: &str, bits: u32| {
        u64::from_str_radix(text, 16).ok().filter(|it| it.checked_shr(bits).unwrap_or(0) == 0)
    };
    Some(MessageId(part(high, 32)? << 32 | part(middle, 16)? << 16 | part(low, 16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_name_and_its_name_leads_back() {
        for id in [0, 1, 0x1234_5678_9abc_def0, u64::MAX] {
            for before in [0, 7, 4096] {
                assert_eq!(named(&name(MessageId(id), before)), Some(MessageId(id)));
            }
        }
        assert_ne!(name(MessageId(7), 0), name(MessageId(7), 1));
        assert_eq!(named("53f3bce4-6a88-4710-a6d3-4784a882a059"), None);
    }
}
