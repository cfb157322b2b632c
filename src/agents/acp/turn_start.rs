//! What a turn begins with.

use std::path::PathBuf;

use serde_json::Value;

use crate::agents::sandbox::WriteAccess;

/// What a turn begins with.
#[derive(Debug)]
pub(in crate::agents) struct TurnStart {
    pub(in crate::agents) worktree: PathBuf,
    pub(in crate::agents) access: WriteAccess,
    pub(in crate::agents) prompt: String,
    pub(in crate::agents) resume: Option<String>,
    /// Whether a new conversation will do where the earlier one is lost.
    pub(in crate::agents) anew: bool,
    pub(in crate::agents) mode: Option<String>,
    pub(in crate::agents) web: bool,
    /// Whether something else keeps it within what the role may do.
    pub(in crate::agents) confined: bool,
    /// The tools of the team, as the protocol names them.
    pub(in crate::agents) servers: Value,
}
