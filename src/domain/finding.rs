//! What the sourcer found: candidates for the backlog before anybody judged them (`spec/teams.md` 10.2).

use serde::{Deserialize, Serialize};

use crate::domain::origin::Origin;
use crate::domain::word::words;

words! {
    /// What kind of trace it is.
    pub enum Signal {
        /// A request that ended without success.
        OpenRequest = "open_request",
        /// A role that failed.
        RoleFailure = "role_failure",
        /// Uncommitted changes in the project.
        GitDirty = "git_dirty",
        /// An error in a log.
        RuntimeLogError = "runtime_log_error",
        /// A discovery action that could not run.
        DiscoveryActionFailure = "discovery_action_failure",
        /// A discovery action that did not pass.
        DiscoveryActionCheck = "discovery_action_check",
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of trace it is.
    pub signal: Signal,
    /// What it is about, the same each time the same thing is found: request, file, action.
    pub trace: String,
    /// One line.
    pub title: String,
    /// A few lines, cut and redacted.
    pub summary: String,
    /// Where it was found (`spec/teams.md` 4.3, `origin`).
    #[serde(default)]
    pub origin: Origin,
}
