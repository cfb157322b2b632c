//! The team's tools as an agent is offered them: our own binary as an MCP server beside it, which talks to
//! the socket of the run (`spec/agents.md` 5.4).

use std::path::Path;

use serde_json::{Value, json};

use crate::agents::error::RunError;
use crate::agents::sandbox::RUN_SOCKET;
use crate::platform::spawn;

/// The name of the server, by which agents call its tools: `mcp__teams__submit_result`.
pub(super) const SERVER: &str = "teams";
/// Its tools.
const NAMES: [&str; 4] = [SUBMIT, "backlog", "memory", "status"];
/// The one by which a result is handed in.
const SUBMIT: &str = "submit_result";
/// The command that serves them.
const COMMAND: &str = "mcp";

/// Whether the title that an agent gives a call is that of a tool of the team, as agents write it:
/// `mcp__teams__status`, `mcp.teams.status`, `teams.status`, `teams/status`, `status (teams MCP Server)`.
pub(super) fn is_ours(title: &str) -> bool {
    let title = title.trim();
    let title = title.strip_prefix("Tool: ").unwrap_or(title);
    let name = title
        .strip_prefix("mcp__teams__")
        .or_else(|| title.strip_prefix("mcp.teams."))
        .or_else(|| title.strip_prefix("teams"))
        .map(|rest| rest.trim_start_matches(['.', '/', '_', ':']))
        .or_else(|| title.strip_suffix(" (teams MCP Server)"));
    name.is_some_and(|name| NAMES.contains(&name))
}

/// Whether that is the tool by which a result is handed in.
pub(super) fn hands_in(title: &str) -> bool {
    is_ours(title) && title.contains(SUBMIT)
}

/// A basic string of TOML. JSON's escapes are a part of TOML's, which also wants DEL escaped.
pub(super) fn toml(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// How the server is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tools {
    program: String,
    socket: String,
}

impl Tools {
    /// Those of a run; none where it has no socket.
    pub(super) fn of(socket: Option<&Path>) -> Result<Option<Tools>, RunError> {
        let Some(socket) = socket else { return Ok(None) };
        let program = spawn::own_binary().map_err(RunError::OwnBinary)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        Ok(Some(Tools { program: text(&program), socket: text(socket) }))
    }

    /// For Codex: the settings, a key and a value each.
    pub(super) fn codex(&self) -> Vec<(String, String)> {
        let server = format!(
            "{{command={},args=[\"{COMMAND}\"],env={{{RUN_SOCKET}={}}},startup_timeout_sec=60,tool_timeout_sec=120,\
             default_tools_approval_mode=\"approve\"}}",
            toml(&self.program),
            toml(&self.socket)
        );
        vec![(format!("mcp_servers.{SERVER}"), server)]
    }

    /// For Claude Code: what `--mcp-config` takes.
    pub(super) fn claude(&self) -> Value {
        let server = json!({
            "type": "stdio", "command": self.program, "args": [COMMAND],
            "env": {RUN_SOCKET: self.socket}, "alwaysLoad": true,
        });
        json!({"mcpServers": {SERVER: server}})
    }

    /// For the Agent Client Protocol: `mcpServers`.
    pub(super) fn acp(&self) -> Value {
        json!([{
            "name": SERVER, "command": self.program, "args": [COMMAND],
            "env": [{"name": RUN_SOCKET, "value": self.socket}],
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_ours_is_known_by_its_title() {
        for title in [
            "mcp__teams__submit_result",
            "mcp.teams.submit_result",
            "teams.status",
            "teams/memory",
            "Tool: teams/backlog",
            "status (teams MCP Server)",
        ] {
            assert!(is_ours(title), "{title}");
        }
        for title in [
            "",
            "teams",
            "status",
            "teams.status; rm -rf /",
            "other.status",
            "mcp__teams__approve",
            "mcp.teams",
        ] {
            assert!(!is_ours(title), "{title}");
        }
    }

    #[test]
    fn every_agent_is_given_the_server_in_its_own_words() {
        let tools =
            Tools { program: "/bin/te ams".to_owned(), socket: "/run/a\"b.sock".to_owned() };
        let (key, value) = tools.codex().remove(0);
        assert_eq!(key, "mcp_servers.teams");
        assert!(
            value.starts_with(
                r#"{command="/bin/te ams",args=["mcp"],env={TEAMS_RUN_SOCKET="/run/a\"b.sock"}"#
            ),
            "{value}"
        );
        let claude = tools.claude();
        assert_eq!(claude["mcpServers"]["teams"]["env"][RUN_SOCKET], "/run/a\"b.sock");
        let acp = tools.acp();
        assert_eq!(
            (&acp[0]["command"], &acp[0]["env"][0]["name"]),
            (&json!("/bin/te ams"), &json!(RUN_SOCKET))
        );
    }
}
