//! Which agent works for which role, and how hard it thinks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::values::{ContentHash, ProjectPath};
use crate::domain::role::Role;
use crate::domain::word::words;

words! {
    /// An agent that the driver can start.
    #[derive(Default)]
    pub enum AgentKind {
        /// The Codex CLI. The default, because workspaces of the older runtime name no agent and mean it.
        #[default]
        Codex = "codex",
        /// Claude Code.
        Claude = "claude",
        /// An agent that speaks the Agent Client Protocol.
        Acp = "acp",
        /// The built-in agent without a model.
        Rehearsal = "rehearsal",
    }
}

/// Whether an agent is confined: by bubblewrap, or by the kernel's Landlock where that does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// By what its role may do. Where this machine can do neither, it is not started; the rehearsal is.
    #[default]
    Auto,
    /// Not confined: for machines that are a sandbox themselves.
    Off,
}

/// The Codex CLI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodexConfig {
    /// The program; found through `TEAMS_CODEX`, then `PATH`, where absent.
    pub binary: Option<PathBuf>,
    /// Another model server than the CLI's own (`http://host:port/v1`).
    pub model_url: Option<String>,
    /// The entry of `models` that it works with; where absent `openai`, if there is a key for it and no login.
    pub server: Option<String>,
    /// The folder in which the operator ran `codex login` (as its `CODEX_HOME`); relative to the
    /// workspace. Where absent, each session has a home of its own, without a login.
    pub login_home: Option<PathBuf>,
    /// Its sandbox.
    pub sandbox: Sandbox,
    /// Tokens of its model's window; by the model where absent.
    pub context_window: Option<u64>,
}

/// Claude Code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClaudeConfig {
    /// The program; found through `TEAMS_CLAUDE`, then `PATH`, where absent.
    pub binary: Option<PathBuf>,
    /// The model of roles that name none of Claude's under `role_defaults`; `sonnet` where absent.
    pub model: Option<String>,
    /// Another model server than the CLI's own (`http://host:port`).
    pub model_url: Option<String>,
    /// The entry of `models` that it works with; where absent `anthropic`, if there is a key for it and no
    /// login.
    pub server: Option<String>,
    /// The folder in which the operator logged the CLI in (as its `CLAUDE_CONFIG_DIR`); relative to the
    /// workspace. Where absent, each session has a home of its own, without a login.
    pub login_home: Option<PathBuf>,
    /// Its sandbox.
    pub sandbox: Sandbox,
    /// Tokens of its model's window; by the model where absent.
    pub context_window: Option<u64>,
}

/// An agent that speaks the Agent Client Protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AcpConfig {
    /// The program with its arguments: `[gemini, --acp]`, `[opencode, acp]`.
    pub command: Vec<String>,
    /// What its environment holds on top of the few words that every agent's does. No secrets: the
    /// commands of the agent see it. `{models}/<name>` stands for the address of an entry of `models`,
    /// `{token}` for the run's own key to it, and `{model}` for `model`.
    pub env: BTreeMap<String, String>,
    /// A model server that wants no key (`http://host:port/v1`), for the agents that are known.
    pub model_url: Option<String>,
    /// The entry of `models` that it works with, for the agents that are known; others are told by `env`.
    pub server: Option<String>,
    /// What it asks that server for, for the agents that are known; its own choice where absent. Others are told by `env`.
    pub model: Option<String>,
    /// Hosts that it has to reach by itself, for a login of its own: `example.com`, `.example.com`,
    /// `example.com:8443`.
    pub hosts: Vec<String>,
    /// The mode of the agent to be set; by role where absent.
    pub mode: Option<String>,
    /// The folder in which the operator logged it in (as its `HOME`); relative to the workspace.
    pub login_home: Option<PathBuf>,
    /// Its sandbox.
    pub sandbox: Sandbox,
    /// Tokens of its model's window; by the model where absent.
    pub context_window: Option<u64>,
}

/// The rehearsal agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RehearsalConfig {
    /// A file that makes it fail on purpose; relative to the workspace.
    pub script: Option<PathBuf>,
    /// Its sandbox.
    pub sandbox: Sandbox,
}

/// `agents:` of `team_runtime.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentsConfig {
    /// Who works where `roles` says nothing.
    pub default: AgentKind,
    /// Who works for a role.
    pub roles: BTreeMap<Role, AgentKind>,
    /// Settings of Codex.
    pub codex: CodexConfig,
    /// Settings of Claude Code.
    pub claude: ClaudeConfig,
    /// Settings of the agent that speaks the Agent Client Protocol.
    pub acp: AcpConfig,
    /// Settings of the rehearsal agent.
    pub rehearsal: RehearsalConfig,
}

impl AgentsConfig {
    /// The window that the settings name for an agent, in tokens.
    #[must_use]
    pub const fn window_of(&self, agent: AgentKind) -> Option<u64> {
        match agent {
            AgentKind::Codex => self.codex.context_window,
            AgentKind::Claude => self.claude.context_window,
            AgentKind::Acp => self.acp.context_window,
            AgentKind::Rehearsal => None,
        }
    }

    /// The agent of a role.
    #[must_use]
    pub fn of(&self, role: Role) -> AgentKind {
        self.roles.get(&role).copied().unwrap_or(self.default)
    }
}

/// `sandbox:` of `team_runtime.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Files and folders of tools that agents may read beside the system's; `~` is the home of whoever runs
    /// the team. Where absent: the usual ones there, such as `~/.cargo` and `~/.nvm`, without their keys.
    pub readable: Option<Vec<PathBuf>>,
    /// Settings, hooks and tool servers for agents that the project may bring along: the SHA-256 of each file.
    pub project_settings: BTreeMap<ProjectPath, ContentHash>,
}

words! {
    /// How long a model may think.
    pub enum Reasoning {
        /// Hardly.
        Minimal = "minimal",
        /// A little.
        Low = "low",
        /// As usual.
        Medium = "medium",
        /// Long.
        High = "high",
        /// As long as it can.
        Xhigh = "xhigh",
    }
}

/// `role_defaults.<role>`; what is absent comes from `roles/<role>.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleDefaults {
    /// The model.
    pub model: Option<String>,
    /// How long it may think.
    pub reasoning: Option<Reasoning>,
    /// Tokens of the model's window; by the agent or the model where absent.
    pub context_window: Option<u64>,
}
