//! What setup is asked for, and how it talks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::error::SetupError;
use crate::domain::check_proposal::CheckProposal;
use crate::domain::config::AgentKind;
use crate::domain::ids::{GuildId, UserId};
use crate::domain::language::Language;
use crate::domain::role::Role;
use crate::domain::word::words;

/// Where Discord is.
pub const DISCORD: &str = "https://discord.com";

/// What is to be set up.
#[derive(Debug, Default)]
pub struct Options {
    /// The workspace; written where there is none.
    pub root: PathBuf,
    /// The repository that a new workspace works on; by default as `team_runtime.yaml` has it.
    pub project: Option<PathBuf>,
    /// A token that was handed over, to be kept.
    pub token: Option<SecretString>,
    /// Tokens of the bots of roles that were handed over, to be kept.
    pub tokens: BTreeMap<Role, SecretString>,
    /// The address of a local guild, which tells the rest itself.
    pub local: Option<String>,
    /// Another REST server than Discord's.
    pub base_url: Option<String>,
    /// The server, where the bot is in several.
    pub guild: Option<GuildId>,
    /// Who may do everything; by default the person that the application belongs to.
    pub owner: Option<UserId>,
    /// The agent of a workspace that is written.
    pub agent: Option<AgentKind>,
    /// For [`AgentKind::Acp`]: the program with its arguments.
    pub acp_command: Vec<String>,
    /// The language of a workspace that is written.
    pub language: Language,
    /// How long a person is waited for.
    pub wait: Duration,
    /// Accept the checks that the project shows without asking.
    pub accept_checks: bool,
    /// Tell what would be done, and do nothing.
    pub dry_run: bool,
}

words! {
    /// What became of a step.
    pub enum Outcome {
        /// It was there already.
        Kept = "kept",
        /// It was made or changed.
        Done = "done",
        /// It would be made or changed.
        Planned = "planned",
        /// A person is waited for.
        Waiting = "waiting",
        /// A person has to do it; the rest goes on without.
        Open = "open",
        /// It is taken away again.
        Undone = "undone",
        /// It stays although it was to be taken away.
        Left = "left",
    }
}

/// A step that was taken, for people and programs.
#[derive(Debug, Clone, PartialEq)]
pub struct SetupStep {
    /// Which: `workspace`, `token`, `intents`, `server`, `permissions`, `category`, `channel`, `role`,
    /// `webhook`, `config`, `checks`, `ready`.
    pub step: &'static str,
    /// What became of it.
    pub outcome: Outcome,
    /// A key of the catalog.
    pub key: &'static str,
    /// Its values.
    pub values: Map<String, Value>,
}

impl SetupStep {
    pub(super) fn new(
        step: &'static str,
        outcome: Outcome,
        key: &'static str,
        values: Value,
    ) -> SetupStep {
        let values = values.as_object().cloned().unwrap_or_default();
        SetupStep { step, outcome, key, values }
    }
}

/// How setup talks to the person: what it tells, and how it asks for the token.
pub struct SetupDialog<'a> {
    /// Tells a step.
    pub tell: &'a mut (dyn FnMut(SetupStep) + Send),
    /// Asks for the token, that of a role where each has its bot; `None` where nobody can be asked or nothing
    /// is said.
    pub ask: &'a mut (dyn FnMut(Option<Role>) -> std::io::Result<Option<SecretString>> + Send),
    /// Asks whether these checks are to be written; `None` where nobody can be asked.
    pub accept: &'a mut (dyn FnMut(&CheckProposal) -> std::io::Result<Option<bool>> + Send),
}

/// The tokens of a file: one alone, or a line `role=token` for the bot of each role.
pub fn tokens(
    text: &str,
) -> Result<(Option<SecretString>, BTreeMap<Role, SecretString>), SetupError> {
    // A token has no such sign.
    if !text.contains('=') {
        return Ok((Some(SecretString::from(text)), BTreeMap::new()));
    }
    let mut tokens = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let read = line.split_once('=').and_then(|(role, token)| {
            Some((Role::parse(role.trim())?, SecretString::from(token.trim())))
        });
        let (role, token) = read.ok_or(SetupError::TokenLine(at + 1))?;
        tokens.insert(role, token);
    }
    Ok((None, tokens))
}
