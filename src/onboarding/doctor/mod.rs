//! `teams doctor`: looks at everything that a team needs, changes nothing, and says for each failure the
//! exact fix. [`repair`] does those that are safe.

mod agents;
mod discord;
mod machine;
mod programs;
mod repair;
mod server;

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::agents::check_templates;
use crate::assets::AssetKind;
use crate::domain::role::Role;
use crate::platform::redact;
use crate::workspace::{self, ConfigError};

pub use repair::{Repair, repair};

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
    fn new(check: Check, health: Health, key: &'static str, values: Value) -> Finding {
        let values = values.as_object().cloned().unwrap_or_default();
        Finding { check, health, key, values, repair: None }
    }

    fn ok(check: Check, key: &'static str, values: Value) -> Finding {
        Finding::new(check, Health::Ok, key, values)
    }

    fn problem(check: Check, key: &'static str, values: Value) -> Finding {
        Finding::new(check, Health::Problem, key, values)
    }

    fn not_needed(check: Check, key: &'static str, values: Value) -> Finding {
        Finding::new(check, Health::NotNeeded, key, values)
    }

    fn repaired_by(mut self, repair: Repair) -> Finding {
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
fn safe(error: &dyn std::fmt::Display) -> String {
    redact::redact(&error.to_string()).into_owned()
}

/// Looks at everything. `root` need not be a workspace: then that is what is found.
pub async fn diagnose(root: &Path) -> Vec<Finding> {
    let workspace = match workspace::load(root) {
        Ok(workspace) => workspace,
        Err(error) => {
            let mut found = vec![wrong_config(&error)];
            found.extend(machine::place(root, None));
            return found;
        }
    };
    let mut found = config(&workspace);
    let (met, skew) = discord::look(&workspace, &mut found).await;
    if let Some(met) = &met {
        server::judge(&workspace, met, &mut found);
    }
    let live = met.as_ref().is_some_and(|met| crate::discord::is_taken(&met.rest));
    found.extend(machine::service(root, live));
    found.extend(machine::place(root, Some(&workspace)));
    found.extend(machine::project(&workspace).await);
    found.extend(programs::look(&workspace).await);
    found.extend(agents::look(&workspace).await);
    found.push(machine::clock(&workspace, skew));
    found
}

fn wrong_config(error: &ConfigError) -> Finding {
    let values = json!({"error": safe(error), "hint": error.hint().unwrap_or_default()});
    match error {
        ConfigError::NotAWorkspace { .. } => {
            Finding::problem(Check::Config, "doctor.config.none", values)
        }
        ConfigError::File(_)
        | ConfigError::TooLarge { .. }
        | ConfigError::Invalid(_)
        | ConfigError::TokenMissing { .. }
        | ConfigError::Asset(_) => Finding::problem(Check::Config, "doctor.config.wrong", values),
    }
}

fn config(workspace: &workspace::Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    let placeholders = workspace.refuse_placeholders();
    let channels = workspace.channels();
    match (&placeholders, &channels) {
        (Ok(()), Ok(_)) => {
            let values = json!({"path": workspace.root.display().to_string()});
            found.push(Finding::ok(Check::Config, "doctor.config.ok", values));
        }
        (Err(error), _) => {
            let values = json!({"error": safe(error)});
            found.push(Finding::problem(Check::Config, "doctor.config.example", values));
        }
        (Ok(()), Err(error)) => found.push(wrong_config(error)),
    }
    let people = &workspace.runtime.people;
    let nobody = people.owner.is_none()
        && [&people.ask, &people.approve, &people.administer]
            .iter()
            .all(|holders| holders.users.is_empty() && holders.roles.is_empty());
    if nobody {
        found.push(Finding::problem(Check::Config, "doctor.config.nobody", json!({})));
    }
    if let Some(error) = &workspace.policy_problem {
        let values = json!({"error": safe(error), "path": workspace::POLICY_FILE});
        found.push(Finding::problem(Check::Config, "doctor.config.policy", values));
    }
    for role in Role::ALL {
        if let Err(error) = workspace.role(role) {
            found.push(wrong_config(&error));
        }
    }
    found.extend(templates(workspace));
    found
}

/// The workspace's own templates of prompts: each is in force and can be filled in.
fn templates(workspace: &workspace::Workspace) -> Option<Finding> {
    let wrong = |error: &dyn std::fmt::Display| {
        let values = json!({"error": safe(error)});
        Finding::problem(Check::Config, "doctor.config.prompt", values)
    };
    for role in Role::ALL {
        let lookup = workspace.lookup().in_room(role);
        let strays = match lookup.strays(AssetKind::Prompt) {
            Ok(strays) => strays,
            Err(error) => return Some(wrong(&error)),
        };
        // The lifecycle may name templates of its own.
        let named = |path: &std::path::PathBuf| {
            workspace.lifecycle.steps().any(|step| path.ends_with(step.template()))
        };
        if let Some(path) = strays.iter().find(|path| !named(path)) {
            let path = path.strip_prefix(&workspace.root).unwrap_or(path);
            let values = json!({"path": path.display().to_string()});
            return Some(Finding::problem(Check::Config, "doctor.config.prompt_stray", values));
        }
        let checked = lookup
            .overrides(AssetKind::Prompt)
            .map_err(|error| wrong(&error))
            .and_then(|all| check_templates(&all).map_err(|error| wrong(&error)));
        if let Err(problem) = checked {
            return Some(problem);
        }
    }
    None
}
