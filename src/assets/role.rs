//! A role as its file describes it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::domain::config::Reasoning;
use crate::domain::role::Role;

/// Something that a role may do. What is not listed for a role, its agent has no tool for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Read the project.
    ReadProject,
    /// Change files of the project, in the worktree of its request.
    EditProject,
    /// Write planning documents.
    WritePlanning,
    /// Have decisions written down.
    RecordDecisions,
    /// Propose backlog items.
    ProposeBacklog,
    /// Propose control actions: status, cancel, execute, sprint commands.
    ProposeControl,
    /// Give a verdict on a change.
    GiveVerdict,
    /// Ask for facts from outside.
    UseWeb,
}

/// What of the network an agent's process reaches, beside its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing.
    #[default]
    None,
    /// Whatever is public. For research only where the workspace lets it read the web.
    Open,
}

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleSpec {
    /// Which.
    pub role: Role,
    /// One line about it, for people.
    pub description: String,
    /// What it may do.
    pub capabilities: BTreeSet<Capability>,
    /// Of older files, and without a meaning: what it may write stands with its step.
    #[serde(default, skip_serializing)]
    pub sandbox: String,
    /// What its process reaches of the network.
    #[serde(default)]
    pub network: Network,
    /// The model where the workspace names none.
    pub model: String,
    /// How long it may think where the workspace says nothing.
    pub reasoning: Reasoning,
    /// What it is told about itself, ahead of every task.
    pub charter: String,
}

impl RoleSpec {
    /// Whether it may do something.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}
