//! What setup made, so that it can go on after being cut off and undo exactly that. A file of the
//! workspace, durable before each thing is made and again when it is. It holds no secret.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::discord::setup::object::ServerObject;
use crate::domain::ids::GuildId;
use crate::domain::role::Role;
use crate::platform::files::{self, FileError};
use crate::platform::plug::{self, Point};

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its text.
    #[error("{} cannot be read: {source}; it says what setup made, so it is not overwritten", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// How far a thing came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    /// It is about to be made; these of the same name were there before.
    Intended(Vec<u64>),
    /// It was made.
    Made(u64),
}

/// What setup made. What is not known is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Pages {
    version: u32,
    application: Option<String>,
    guild: Option<GuildId>,
    things: BTreeMap<String, Record>,
    flags: u64,
    /// The application that has them; in older journals that of `application`.
    flags_of: Option<String>,
    token: bool,
    files: BTreeMap<String, Value>,
    bots: BTreeMap<Role, BotPages>,
}

/// What setup did for the bot of a role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BotPages {
    /// Flags of its application that were switched on.
    pub flags: u64,
    /// Whether its token is kept.
    pub token: bool,
}

/// The journal of a workspace.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    pages: Pages,
}

impl Journal {
    /// Reads the journal; an absent one is empty.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let text = files::read_text_if_present(path)?.unwrap_or_else(|| "{}".to_owned());
        let pages = serde_json::from_str(&text)
            .map_err(|source| JournalError::Broken { path: path.to_owned(), source })?;
        Ok(Journal { path: path.to_owned(), pages })
    }

    /// Whether nothing was ever made, or all of it is undone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Pages {
            version: _,
            application: _,
            guild: _,
            flags_of: _,
            things,
            flags,
            token,
            files,
            bots,
        } = &self.pages;
        things.is_empty() && *flags == 0 && !token && files.is_empty() && bots.is_empty()
    }

    fn save(&mut self) -> Result<(), JournalError> {
        self.pages.version = 1;
        let text = serde_json::to_string_pretty(&self.pages).unwrap_or_default();
        plug::point(Point::BeforeAppend);
        files::write_durable(&self.path, text)?;
        plug::point(Point::AfterSync);
        Ok(())
    }

    /// The server that things were made in.
    #[must_use]
    pub fn guild(&self) -> Option<GuildId> {
        self.pages.guild
    }

    /// The server that things were made in, where that is another than this one.
    #[must_use]
    pub fn other_guild(&self, guild: GuildId) -> Option<GuildId> {
        self.guild().filter(|made| *made != guild && self.things().next().is_some())
    }

    /// Remembers where things are made.
    pub fn begin(&mut self, application: u64, guild: GuildId) -> Result<(), JournalError> {
        let application = Some(application.to_string());
        if self.pages.flags != 0 && self.pages.flags_of.is_none() {
            // Noted by an earlier build, for the application that there was.
            self.pages.flags_of.clone_from(&self.pages.application);
        }
        if self.pages.guild == Some(guild) && self.pages.application == application {
            return Ok(());
        }
        self.pages.guild = Some(guild);
        self.pages.application = application;
        self.save()
    }

    /// The id of a thing that was made.
    #[must_use]
    pub fn made(&self, thing: ServerObject) -> Option<u64> {
        match self.pages.things.get(&thing.to_string())? {
            Record::Made(id) => Some(*id),
            Record::Intended(_) => None,
        }
    }

    /// Those of the same name that were there before a thing was to be made, where it is not known
    /// whether it was.
    #[must_use]
    pub fn intended(&self, thing: ServerObject) -> Option<&[u64]> {
        match self.pages.things.get(&thing.to_string())? {
            Record::Intended(before) => Some(before),
            Record::Made(_) => None,
        }
    }

    /// Things that were made or were about to be, the last one first.
    pub fn things(&self) -> impl Iterator<Item = ServerObject> {
        ServerObject::all().rev().filter(|thing| self.pages.things.contains_key(&thing.to_string()))
    }

    pub(super) fn intend(
        &mut self,
        thing: ServerObject,
        before: Vec<u64>,
    ) -> Result<(), JournalError> {
        self.pages.things.insert(thing.to_string(), Record::Intended(before));
        self.save()
    }

    pub(super) fn note(&mut self, thing: ServerObject, id: u64) -> Result<(), JournalError> {
        self.pages.things.insert(thing.to_string(), Record::Made(id));
        self.save()
    }

    /// Forgets a thing: it is gone, or out of reach.
    pub fn forget(&mut self, thing: ServerObject) -> Result<(), JournalError> {
        self.pages.things.remove(&thing.to_string());
        self.save()
    }

    /// Flags of the application that setup switched on.
    #[must_use]
    pub fn flags(&self) -> u64 {
        self.pages.flags
    }

    /// Whether they are this application's.
    #[must_use]
    pub fn flags_are_of(&self, application: u64) -> bool {
        let of = self.pages.flags_of.as_ref().or(self.pages.application.as_ref());
        of.is_none_or(|of| *of == application.to_string())
    }

    /// Remembers that none is switched on any more.
    pub fn forget_flags(&mut self) -> Result<(), JournalError> {
        (self.pages.flags, self.pages.flags_of) = (0, None);
        self.save()
    }

    /// Remembers flags of an application that are about to be switched on, or that none is any more.
    pub fn note_flags(&mut self, application: u64, flags: u64) -> Result<(), JournalError> {
        if self.pages.flags != 0 && !self.flags_are_of(application) {
            // One at a time: those of the other stay noted until they are taken back.
            return Ok(());
        }
        self.pages.flags_of = Some(application.to_string()).filter(|_| flags != 0);
        self.pages.flags = flags;
        self.save()
    }

    /// Whether setup keeps the token.
    #[must_use]
    pub fn keeps_token(&self) -> bool {
        self.pages.token
    }

    /// Remembers whether setup keeps the token.
    pub fn note_token(&mut self, kept: bool) -> Result<(), JournalError> {
        self.pages.token = kept;
        self.save()
    }

    /// What was done for the bots of roles.
    #[must_use]
    pub const fn bots(&self) -> &BTreeMap<Role, BotPages> {
        &self.pages.bots
    }

    /// Remembers what is about to be done for the bot of a role, or that it is undone.
    pub fn note_bot(&mut self, role: Role, pages: BotPages) -> Result<(), JournalError> {
        match pages {
            BotPages { flags: 0, token: false } => self.pages.bots.remove(&role),
            BotPages { .. } => self.pages.bots.insert(role, pages),
        };
        self.save()
    }

    /// How a configuration file was changed, in the words of whoever changed it.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&Value> {
        self.pages.files.get(name)
    }

    /// The configuration files that were changed.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        self.pages.files.keys().cloned().collect()
    }

    /// Remembers how a configuration file is changed, or that it is as it was.
    pub fn note_file(&mut self, name: &str, change: Option<Value>) -> Result<(), JournalError> {
        match change {
            Some(change) => self.pages.files.insert(name.to_owned(), change),
            None => self.pages.files.remove(name),
        };
        self.save()
    }

    /// Takes the journal away once all is undone.
    pub fn close(self) -> Result<(), JournalError> {
        Ok(files::remove_file(&self.path)?)
    }
}
