//! `teams setup`: from a token to a server in which the team can work. Each step looks first and does only
//! what is missing; what it makes goes into a journal, so that it can be cut off, repeated and undone.

mod bots;
mod flow;
mod local;
mod server;
mod undo;
pub(super) mod wanted;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::discord::error::RestError;
use crate::discord::setup::{BuildError, Journal, JournalError};
use crate::domain::config::AgentKind;
use crate::domain::ids::{GuildId, UserId};
use crate::domain::request::Language;
use crate::domain::role::Role;
use crate::git::GitError;
use crate::platform::disk::{Disk as _, MaskedSecret, RealDisk};
use crate::platform::files::FileError;
use crate::workspace::edit::EditError;
use crate::workspace::init::InitError;
use crate::workspace::{ConfigError, secrets};

pub use flow::setup;
pub(super) use flow::{done_key, write};
pub use undo::{Undoable, undo, undoable};

/// Where Discord is.
pub const DISCORD: &str = "https://discord.com";

/// What is to be set up.
#[derive(Debug, Default)]
pub struct Options {
    /// The workspace; written where there is none.
    pub root: PathBuf,
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
    /// Tell what would be done, and do nothing.
    pub dry_run: bool,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was there already.
    Kept,
    /// It was made or changed.
    Done,
    /// It would be made or changed.
    Planned,
    /// A person is waited for.
    Waiting,
    /// A person has to do it; the rest goes on without.
    Open,
    /// It is taken away again.
    Undone,
    /// It stays although it was to be taken away.
    Left,
}

impl Outcome {
    /// The word for programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Kept => "kept",
            Outcome::Done => "done",
            Outcome::Planned => "planned",
            Outcome::Waiting => "waiting",
            Outcome::Open => "open",
            Outcome::Undone => "undone",
            Outcome::Left => "left",
        }
    }
}

/// A step that was taken, for people and programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Which: `workspace`, `token`, `intents`, `server`, `permissions`, `category`, `channel`, `role`,
    /// `webhook`, `config`, `ready`.
    pub step: &'static str,
    /// What became of it.
    pub outcome: Outcome,
    /// A key of the catalog.
    pub key: &'static str,
    /// Its values.
    pub values: Map<String, Value>,
}

impl Told {
    fn new(step: &'static str, outcome: Outcome, key: &'static str, values: Value) -> Told {
        let values = values.as_object().cloned().unwrap_or_default();
        Told { step, outcome, key, values }
    }
}

/// How setup talks to the person: what it tells, and how it asks for the token.
pub struct Talk<'a> {
    /// Tells a step.
    pub tell: &'a mut (dyn FnMut(Told) + Send),
    /// Asks for the token, that of a role where each has its bot; `None` where nobody can be asked or nothing
    /// is said.
    pub ask: &'a mut (dyn FnMut(Option<Role>) -> std::io::Result<Option<SecretString>> + Send),
}

/// Why setup stops. What was made so far stays and is found by the next attempt.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The workspace could not be written.
    #[error(transparent)]
    Init(#[from] InitError),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration could not be changed.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The terminal.
    #[error("the terminal cannot be read: {0}")]
    Terminal(#[source] std::io::Error),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The project, in which the team could not work.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Discord.
    #[error(transparent)]
    Rest(#[from] RestError),
    /// Discord, about a thing.
    #[error("{0}")]
    Build(#[from] BuildError),
    /// Another setup of the workspace is under way.
    #[error("another `teams setup` is at work in {}", .0.display())]
    Busy(PathBuf),
    /// The team runs.
    #[error("the team of {} is running", .0.display())]
    Running(PathBuf),
    /// There is no token.
    #[error("there is no token: nobody can be asked for it here")]
    NoToken {
        /// The variable that it may stand in.
        variable: String,
    },
    /// It is no token.
    #[error(
        "that is not a bot token: it has three parts with dots between, and about 70 characters"
    )]
    NotAToken,
    /// Discord does not know the token.
    #[error("Discord does not accept the token")]
    Refused,
    /// Two roles were given one bot.
    #[error("{one} and {other} have the token of one bot")]
    SameBot {
        /// The one.
        one: Role,
        /// The other.
        other: Role,
    },
    /// A line of a file of tokens.
    #[error("line {0} of the file of tokens is not `role=token` with a role of the team")]
    TokenLine(usize),
    /// The bot is in several servers, or not in the one that is meant.
    #[error("it is not clear which server is meant; the bot is in {}", .0.join(", "))]
    WhichServer(Vec<String>),
    /// Nobody came in time.
    #[error("the bot is not yet in a server with what it needs")]
    Late,
    /// Setup was done elsewhere.
    #[error("setup made things in the server {made}, and the bot is meant for {wanted} now")]
    OtherServer {
        /// Where things were made.
        made: GuildId,
        /// What is meant.
        wanted: GuildId,
    },
    /// The local guild.
    #[error("no local guild answers at {0}")]
    NoLocalGuild(String),
}

impl SetupError {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            SetupError::Init(error) => return error.hint(),
            SetupError::Config(error) => return error.hint(),
            SetupError::Git(_) => {
                "nothing was made; where the project is another folder: `teams init`, set project.path in \
                 team_runtime.yaml, then `teams setup`"
                    .to_owned()
            }
            SetupError::NoToken { variable } => format!(
                "name a file that holds it (`--token-file`), or set the variable {variable}"
            ),
            SetupError::NotAToken => {
                "https://discord.com/developers/applications, your application, Bot, \
                 Reset Token; then copy it"
                    .to_owned()
            }
            SetupError::Refused => {
                "make a new one: https://discord.com/developers/applications, your \
                 application, Bot, Reset Token; then `teams setup` again"
                    .to_owned()
            }
            SetupError::SameBot { .. } => {
                "each role needs an application of its own, or set `voice: personas`, for which \
                 one token is enough"
                    .to_owned()
            }
            SetupError::TokenLine(_) => {
                "a line for each role, such as `planner=<its bot's token>`".to_owned()
            }
            SetupError::WhichServer(_) => "name one: `teams setup --guild <id>`".to_owned(),
            SetupError::Late => {
                "open the link above, then `teams setup` again: it goes on here".to_owned()
            }
            SetupError::OtherServer { .. } => {
                "`teams setup --undo` first, then `teams setup`".to_owned()
            }
            SetupError::NoLocalGuild(_) => {
                "start one: `teams local-guild --port 4000 --dir <folder>`".to_owned()
            }
            SetupError::Running(_) => "stop it first".to_owned(),
            SetupError::Build(_) => {
                "`teams doctor` says what is missing; then `teams setup` again: it goes on here"
                    .to_owned()
            }
            SetupError::Rest(error) if error.is_retryable() => {
                "`teams setup` again: it goes on here".to_owned()
            }
            SetupError::Rest(_)
            | SetupError::Edit(_)
            | SetupError::File(_)
            | SetupError::Terminal(_)
            | SetupError::Journal(_)
            | SetupError::Busy(_) => return None,
        })
    }
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

/// Where the journal of a workspace lies.
#[must_use]
pub(super) fn journal_file(root: &Path) -> PathBuf {
    root.join(secrets::FOLDER).join("made.json")
}

/// Opens the journal of a workspace.
pub(super) fn journal(root: &Path) -> Result<Journal, JournalError> {
    Journal::open(&journal_file(root))
}

/// Keeps a second setup out while this lives.
pub(super) fn lock(root: &Path) -> Result<Box<dyn MaskedSecret>, SetupError> {
    let folder = secrets::prepare(root)?;
    RealDisk.lock(&folder.join("lock"))?.ok_or_else(|| SetupError::Busy(root.to_owned()))
}
