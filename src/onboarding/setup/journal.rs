//! What setup made, kept in a journal, and that one setup works at a time.

use std::path::{Path, PathBuf};

use super::error::SetupError;
use crate::discord::setup::{Journal, JournalError};
use crate::platform::disk::{Disk as _, FileLock, RealDisk};
use crate::workspace::secrets;

/// Where the journal of a workspace lies.
#[must_use]
pub(in crate::onboarding) fn journal_file(root: &Path) -> PathBuf {
    root.join(secrets::FOLDER).join("made.json")
}

/// Opens the journal of a workspace.
pub(in crate::onboarding) fn journal(root: &Path) -> Result<Journal, JournalError> {
    Journal::open(&journal_file(root))
}

/// Keeps a second setup out while this lives.
pub(in crate::onboarding) fn lock(root: &Path) -> Result<Box<dyn FileLock>, SetupError> {
    let folder = secrets::prepare(root)?;
    RealDisk.lock(&folder.join("lock"))?.ok_or_else(|| SetupError::Busy(root.to_owned()))
}
