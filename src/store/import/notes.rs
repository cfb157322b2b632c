//! What was taken over from the older runtime, as it is kept.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::platform::disk::Disk;
use crate::store::error::StoreError;
use crate::store::layout::{self, RUNTIME};
use crate::store::views::replace_synced;

/// What was taken over from the older runtime. Paths are relative to the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// The copy of the state folder as it was before; blank where it was only looked at.
    #[serde(default)]
    pub backup: String,
    /// What was changed on the way, a line each, beginning with the file.
    #[serde(default)]
    pub repaired: Vec<String>,
    /// What could not be carried over, a line each, beginning with the file.
    #[serde(default)]
    pub left: Vec<String>,
    /// The first checkpoint is still to come: the records are read from the copy.
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

/// Where the notes are kept.
const NOTES: &str = ".teams_runtime/import.json";

/// The notes of a workspace that was taken over; `None` for any other.
pub(in crate::store) fn read_notes(
    disk: &dyn Disk,
    root: &Path,
) -> Result<Option<Notes>, StoreError> {
    match disk.read(&root.join(NOTES)) {
        // A file that does not parse was being written when the machine stopped: the next opening knows more.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Keeps the notes durably.
pub(in crate::store) fn keep_notes(
    disk: &dyn Disk,
    root: &Path,
    notes: &Notes,
) -> Result<(), StoreError> {
    replace_synced(disk, &root.join(NOTES), &layout::pretty(notes)?)?;
    disk.sync_dir(&root.join(RUNTIME))?;
    Ok(())
}
