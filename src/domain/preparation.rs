//! Preparing the dependencies of a project: what a person is asked before the code of strangers is run that a change
//! brings along.

use serde::{Deserialize, Serialize};

/// A change alters files by which dependencies are prepared. Until a person has agreed, nothing of it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparationQuestion {
    /// SHA-256 over the keys of what would be made: commands, the content of those files, tools.
    pub digest: String,
    /// The files that differ from those of the base, relative to the project.
    pub files: Vec<String>,
    /// What would be run, as people would type it.
    pub commands: Vec<String>,
    /// Whether one of the commands has the machine's network.
    pub has_network: bool,
    /// Names of the secrets that they are given.
    pub secrets: Vec<String>,
}
