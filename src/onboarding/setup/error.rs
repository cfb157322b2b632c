//! Why setup stops.

use std::path::PathBuf;

use crate::discord::error::RestError;
use crate::discord::setup::{BuildError, JournalError};
use crate::domain::ids::GuildId;
use crate::domain::role::Role;
use crate::git::GitError;
use crate::platform::files::FileError;
use crate::workspace::ConfigError;
use crate::workspace::edit::EditError;
use crate::workspace::init::InitError;

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
    /// Nobody can be asked whether what was made is to go.
    #[error("nobody can be asked here whether the {things} things that setup made are to go")]
    UndoUnasked {
        /// How many there are.
        things: usize,
    },
    /// Discord refused to take some of it away.
    #[error("{things} things that setup made are still there")]
    Left {
        /// How many.
        things: usize,
    },
    /// Somebody was asked, and said no.
    #[error("nothing was taken away")]
    Declined,
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
    /// The same where what was made was being taken away.
    #[must_use]
    pub fn undo_hint(&self) -> Option<String> {
        if let SetupError::NoToken { variable } = self {
            return Some(format!("set the variable {variable}, then `teams setup --undo` again"));
        }
        if matches!(self, SetupError::Refused) {
            let said = "make a new one: https://discord.com/developers/applications, your application, Bot, Reset \
                        Token; put it into the variable that `token_env` of discord_agents_config.yaml names, where it \
                        counts before the kept one; then `teams setup --undo` again";
            return Some(said.to_owned());
        }
        let goes_on = matches!(self, SetupError::Build(_))
            || matches!(self, SetupError::Rest(error) if error.is_retryable());
        if goes_on {
            Some("`teams setup --undo` again: it goes on here".to_owned())
        } else {
            self.hint()
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            SetupError::Init(error) => return error.hint(),
            SetupError::Config(error) => return error.hint(),
            SetupError::Git(_) => {
                "where the project is another folder: `teams init`, set project.path in team_runtime.yaml, then `teams \
                 setup`"
                    .to_owned()
            }
            SetupError::UndoUnasked { .. } => {
                "`teams setup --undo --dry-run` shows them; `teams setup --undo --yes` takes them away, channels with \
                 what was written in them"
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
                "give the whole address that it prints, or start one: `teams local-guild --port 4000 --dir <folder>`"
                    .to_owned()
            }
            SetupError::Running(_) => "stop it first".to_owned(),
            SetupError::Left { .. } => {
                "give the bot Manage Channels, Manage Roles and Manage Webhooks, and in the list of roles a place above \
                 those that it made; then `teams setup --undo` again"
                    .to_owned()
            }
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
            | SetupError::Declined
            | SetupError::Busy(_) => return None,
        })
    }
}
