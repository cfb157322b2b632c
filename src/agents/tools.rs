//! The team's tools as an agent is offered them: our own binary as an MCP server beside it, which talks to
//! the socket of the run (`spec/agents.md` 5.4).

use std::path::Path;

use serde_json::{Value, json};

use crate::agents::codex::toml;
use crate::agents::run::{RUN_SOCKET, RunError, RunSpec};
use crate::platform::spawn;

/// The name of the server, by which agents call its tools: `mcp__teams__submit_result`.
pub(super) const SERVER: &str = "teams";
/// The command that serves them.
const COMMAND: &str = "mcp";

/// How the server is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tools {
    program: String,
    socket: String,
}

impl Tools {
    /// Those of a run; none where it has no socket.
    pub(super) fn of(spec: &RunSpec) -> Result<Option<Tools>, RunError> {
        let Some(socket) = &spec.socket else { return Ok(None) };
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
