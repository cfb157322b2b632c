//! What a check found, and what can be done about it.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::discord::setup::ServerObject;
use crate::domain::word::words;
use crate::platform::redact;

words! {
    /// What is looked at.
    pub enum Check {
        /// The configuration.
        Config = "config",
        /// The bots' tokens.
        Token = "token",
        /// What the bot may read.
        Intents = "intents",
        /// The server, and that it is the only one.
        Server = "server",
        /// What the bot may do in each channel.
        Permissions = "permissions",
        /// The channels.
        Channels = "channels",
        /// The server roles.
        Roles = "roles",
        /// The webhooks.
        Webhooks = "webhooks",
        /// Who runs the workspace.
        Service = "service",
        /// The journal and the records.
        Records = "records",
        /// Space.
        Disk = "disk",
        /// Rights on files and folders.
        Folders = "folders",
        /// git and the project.
        Git = "git",
        /// The programs of checks and actions.
        Programs = "programs",
        /// The agents' programs.
        Agent = "agent",
        /// The agents' confinement.
        Sandbox = "sandbox",
        /// Clock and time zone.
        Clock = "clock",
    }
}

words! {
    /// How a check came out.
    pub enum Health {
        /// As it should be.
        Ok = "ok",
        /// Not as it should be.
        Problem = "problem",
        /// It works, and would be better otherwise.
        Advice = "advice",
        /// Nothing that is in use needs it.
        NotNeeded = "not_needed",
        /// It was a problem and is put right.
        Fixed = "fixed",
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// How it came out.
    pub health: Health,
    /// A key of the catalog; for a problem or an advice, `<key>.fix` says what to do.
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

    pub(super) fn advice(check: Check, key: &'static str, values: Value) -> Finding {
        Finding::new(check, Health::Advice, key, values)
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
        match self.health {
            Health::Problem | Health::Advice => Some(format!("{}.fix", self.key)),
            Health::Ok | Health::NotNeeded | Health::Fixed => None,
        }
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
    Thing(ServerObject),
    /// Lets the bot read messages.
    Intents,
    /// Takes the rights of others on a file away.
    Private(PathBuf),
    /// Puts the journal and the checkpoint's index right.
    Records,
}
