//! What can go wrong with the store, by name.

use std::path::PathBuf;
use std::sync::Arc;

use crate::platform::disk::is_full;
use crate::platform::files::FileError;

/// Why the store could not do something.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another process owns the workspace.
    #[error(
        "another process owns the workspace: {} is locked{} (stop the running team first)",
        path.display(),
        by_whom(by)
    )]
    Locked {
        /// The lock that is held.
        path: PathBuf,
        /// The processes that hold it, as far as they can be seen.
        by: Vec<String>,
    },
    /// A journal segment is damaged in the middle: what follows cannot be trusted.
    #[error(
        "the journal {} is damaged at byte {offset}: {reason} (`teams doctor --fix` puts it right)",
        path.display()
    )]
    Corrupt {
        /// The segment.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The checkpoint's index is damaged.
    #[error(
        "the index {} is damaged: {reason} (`teams doctor --fix` puts it right)",
        path.display()
    )]
    CorruptIndex {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer build of teams wrote it.
    #[error(
        "{} was written by a newer build of teams (version {version}; this one reads up to {known}): start that build",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version that it says.
        version: u32,
        /// The newest that this build reads.
        known: u32,
    },
    /// The disk is full. Nothing of the append was kept; after it every append is refused until
    /// [`Store::reload`](super::Store::reload) gave back the last durable state.
    #[error("the disk is full; nothing of this was saved (free some space)")]
    NoSpace,
    /// An earlier append or sync failed: only a restart finds out what is durable.
    #[error("the store stopped after a failed write: {cause} (restart to recover)")]
    Poisoned {
        /// The failure.
        cause: Arc<FileError>,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A document path that leaves the workspace or names a record.
    #[error("{file:?} is no document path inside the workspace")]
    BadPath {
        /// The path.
        file: String,
    },
    /// A record that has no JSON form or does not read back.
    #[error("a record has no JSON form: {reason}")]
    Encode {
        /// What serde says.
        reason: String,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(Arc<FileError>),
}

fn by_whom(by: &[String]) -> String {
    if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) }
}

impl From<FileError> for StoreError {
    fn from(error: FileError) -> Self {
        if is_full(&error) { StoreError::NoSpace } else { StoreError::File(Arc::new(error)) }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        StoreError::Encode { reason: error.to_string() }
    }
}
