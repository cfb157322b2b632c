//! What a check found, and what can be done about it.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::discord::setup::Thing;
use crate::platform::redact;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The configuration.
    Config,
    /// The bots' tokens.
    Token,
    /// What the bot may read.
    Intents,
    /// The server, and that it is the only one.
    Server,
    /// What the bot may do in each channel.
    Permissions,
    /// The channels.
    Channels,
    /// The server roles.
    Roles,
    /// The webhooks.
    Webhooks,
    /// Who runs the workspace.
    Service,
    /// Space.
    Disk,
    /// Rights on files and folders.
    Folders,
    /// git and the project.
    Git,
    /// The programs of checks and actions.
    Programs,
    /// The agents' programs.
    Agent,
    /// The agents' confinement.
    Sandbox,
    /// Clock and time zone.
    Clock,
}

impl Check {
    /// The word for people and programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Check::Config => "config",
            Check::Token => "token",
            Check::Intents => "intents",
            Check::Server => "server",
            Check::Permissions => "permissions",
            Check::Channels => "channels",
            Check::Roles => "roles",
            Check::Webhooks => "webhooks",
            Check::Service => "service",
            Check::Disk => "disk",
            Check::Folders => "folders",
            Check::Git => "git",
            Check::Programs => "programs",
            Check::Agent => "agent",
            Check::Sandbox => "sandbox",
            Check::Clock => "clock",
        }
    }
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// As it should be.
    Ok,
    /// Not as it should be.
    Problem,
    /// Nothing that is in use needs it.
    NotNeeded,
    /// It was a problem and is put right.
    Fixed,
}

impl Health {
    /// The word for programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Health::Ok => "ok",
            Health::Problem => "problem",
            Health::NotNeeded => "not_needed",
            Health::Fixed => "fixed",
        }
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// How it came out.
    pub health: Health,
    /// A key of the catalog; for a problem, `<key>.fix` says what to do.
    pub key: &'static str,
    /// The values of both texts.
    pub values: Map<String, Value>,
    /// What `--fix` can do about it.
    pub repair: Option<Repair>,
}

impl Finding {
    pub(super) fn new(check: Check, health: Health, key: &'static str, values: Value) -> Finding {
        let values = values.as_object().cloned().unwrap_or_default();
        Finding { check, health, key, values, repair: None }
    }

    pub(super) fn ok(check: Check, key: &'static str, values: Value) -> Finding {
        Finding::new(check, Health::Ok, key, values)
    }

    pub(super) fn problem(check: Check, key: &'static str, values: Value) -> Finding {
        Finding::new(check, Health::Problem, key, values)
    }

    pub(super) fn not_needed(check: Check, key: &'static str, values: Value) -> Finding {
        Finding::new(check, Health::NotNeeded, key, values)
    }

    pub(super) fn repaired_by(mut self, repair: Repair) -> Finding {
        self.repair = Some(repair);
        self
    }

    /// The key of the text that says what to do.
    #[must_use]
    pub fn fix_key(&self) -> Option<String> {
        (self.health == Health::Problem).then(|| format!("{}.fix", self.key))
    }
}

/// A text of an error as it may be shown.
pub(super) fn safe(error: &dyn std::fmt::Display) -> String {
    redact::redact(&error.to_string()).into_owned()
}

/// Something that `--fix` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// Makes a channel, role or webhook, and writes its id where the configuration names it.
    Thing(Thing),
    /// Lets the bot read messages.
    Intents,
    /// Takes the rights of others on a file away.
    Private(PathBuf),
}
