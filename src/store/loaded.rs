//! A workspace as it was found.

use super::views::Views;

/// A record that could not be read and that the tail does not cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) path: String,
    pub(super) reason: String,
}

/// A workspace as it was found.
pub(super) struct LoadedWorkspace {
    /// The state after the tail, and the files that the tail changes.
    pub(super) views: Views,
    /// The last entry; 0 before the first.
    pub(super) seq: u64,
    /// Entries since the checkpoint.
    pub(super) tail: usize,
    /// Whether there was a checkpoint.
    pub(super) indexed: bool,
    /// The version of the build that made the checkpoint.
    pub(super) version: u32,
    pub(super) unreadable: Vec<Unreadable>,
    /// Open records whose files are gone.
    pub(super) missing: Vec<String>,
    /// Records and documents whose edits the tail overrides.
    pub(super) overridden: Vec<String>,
    /// Records that were edited from outside, which counts.
    pub(super) edited: Vec<String>,
    /// The last frame was torn and is left out.
    pub(super) torn: bool,
}
