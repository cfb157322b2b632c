//! What was taken over from the older runtime, as it is kept.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::ImportError;
use crate::domain::record::{RUNTIME, inside, pretty};
use crate::platform::disk::{Disk, replace_synced};

/// The version of [`Notes`] that this build writes. Earlier ones left ended requests in their older shape.
pub(super) const VERSION: u32 = 2;

/// What was taken over from the older runtime. Paths are relative to the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// The build's way of taking over.
    #[serde(default)]
    pub version: u32,
    /// The copy of the state folder as it was before; blank where it was only looked at.
    #[serde(default)]
    pub backup: String,
    /// What was changed on the way, a line each, beginning with the file.
    #[serde(default)]
    pub repaired: Vec<String>,
    /// What could not be carried over, a line each, beginning with the file.
    #[serde(default)]
    pub left: Vec<String>,
    /// The records are still those of the older runtime, or half written over: they are read from the copy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
}

impl Notes {
    pub(super) fn repaired(&mut self, path: &str, what: &str) {
        self.repaired.push(format!("{path}: {what}"));
    }

    pub(super) fn left(&mut self, path: &str, what: &str) {
        self.left.push(format!("{path}: {what}"));
    }
}

/// The file of the notes, below the folder of the runtime.
pub(super) const FILE: &str = "import.json";

/// The notes of a workspace that was taken over, in whole or in part; `None` for any other.
pub(super) fn read(disk: &dyn Disk, root: &Path) -> Result<Option<Notes>, ImportError> {
    match disk.read(&root.join(inside(FILE))) {
        // A file that does not parse was being written when the machine stopped: the next opening knows more.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Keeps the notes durably.
pub(super) fn keep(disk: &dyn Disk, root: &Path, notes: &Notes) -> Result<(), ImportError> {
    replace_synced(disk, &root.join(inside(FILE)), &pretty(notes)?)?;
    disk.sync_dir(&root.join(RUNTIME))?;
    Ok(())
}
