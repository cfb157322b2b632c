//! Checks that a project itself shows, where none are configured.

use serde::{Deserialize, Serialize};

/// A command that a file of the project shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedCommand {
    /// Its name in `team_runtime.yaml`.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The files that decide about what it makes; none for a check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The file that shows it.
    pub because: String,
}

/// What a project shows. A person accepts all of it, or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckProposal {
    /// The checks, in order.
    pub checks: Vec<ProposedCommand>,
    /// What is made ready for them, where lock files say what.
    pub prepare: Vec<ProposedCommand>,
    /// Folders with dependencies that lie in the checkout, are ignored by git, and that the checks need.
    pub carry: Vec<String>,
}
