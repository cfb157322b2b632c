//! Which agent works for which role, and how hard it thinks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::domain::role::Role;

/// An agent that the driver can start.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// The Codex CLI. The default, because workspaces of the older runtime name no agent and mean it.
    #[default]
    Codex,
    /// The built-in agent without a model.
    Rehearsal,
}

impl AgentKind {
    /// The word in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            AgentKind::Codex => "codex",
            AgentKind::Rehearsal => "rehearsal",
        }
    }
}

/// Whether the agent's own sandbox is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodexSandbox {
    /// Used; where the kernel cannot, the run fails and says so.
    #[default]
    Auto,
    /// Not used: for machines that are a sandbox themselves.
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
    /// The folder in which the operator ran `codex login` (as its `CODEX_HOME`); relative to the
    /// workspace. Where absent, each session has a home of its own, without a login.
    pub login_home: Option<PathBuf>,
    /// Its sandbox.
    pub sandbox: CodexSandbox,
}

/// The rehearsal agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RehearsalConfig {
    /// A file that makes it fail on purpose; relative to the workspace.
    pub script: Option<PathBuf>,
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
    /// Settings of the rehearsal agent.
    pub rehearsal: RehearsalConfig,
}

impl AgentsConfig {
    /// The agent of a role.
    #[must_use]
    pub fn of(&self, role: Role) -> AgentKind {
        self.roles.get(&role).copied().unwrap_or(self.default)
    }
}

/// How long a model may think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reasoning {
    /// Hardly.
    Minimal,
    /// A little.
    Low,
    /// As usual.
    Medium,
    /// Long.
    High,
    /// As long as it can.
    Xhigh,
}

impl Reasoning {
    /// The word in files and on command lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reasoning::Minimal => "minimal",
            Reasoning::Low => "low",
            Reasoning::Medium => "medium",
            Reasoning::High => "high",
            Reasoning::Xhigh => "xhigh",
        }
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
}
