//! What `teams init` is asked for.

use std::path::PathBuf;

use crate::domain::config::AgentKind;
use crate::domain::ids::UserId;
use crate::domain::language::Language;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Fresh where there is no workspace, else a refresh.
    #[default]
    Auto,
    /// Only bring newer texts of prompts and skills.
    Refresh,
    /// Begin again; what there was is kept in a folder beside. Sprint history, Discord configuration and
    /// commit policy stay.
    Reset,
}

/// What goes into the files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What is to be done.
    pub mode: Mode,
    /// Who may do everything.
    pub owner: Option<UserId>,
    /// The agent of all roles; `rehearsal` where not given, because it needs nothing.
    pub agent: Option<AgentKind>,
    /// For [`AgentKind::Acp`]: the program with its arguments.
    pub acp_command: Vec<String>,
    /// The repository that the team works on; the usual place where not given.
    pub project: Option<PathBuf>,
    /// The branch that finished work goes to; the one that is checked out where not given.
    pub branch: Option<String>,
    /// The language where a person's own is unknown.
    pub language: Language,
    /// Instead of the scaffold's `team_runtime.yaml`.
    pub runtime_yaml: Option<String>,
    /// Instead of the scaffold's `discord_agents_config.yaml`.
    pub discord_yaml: Option<String>,
}
