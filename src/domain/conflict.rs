//! Two changes that met in the same place.

use serde::{Deserialize, Serialize};

/// A change that does not fit onto what came onto the branch meanwhile. It stands on the branch's head already,
/// and what both sides wrote is marked in the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The commit of the branch that the worktree stands on now.
    pub head: String,
    /// The change before, as a commit.
    pub commit: String,
    /// The commit of the branch that the change grew from.
    pub base: String,
    /// The paths that both sides changed in ways that do not fit together.
    pub paths: Vec<String>,
}
