//! The lock that the git program itself honours.
//!
//! While `index.lock` exists no `git commit` or `git add` can run in that checkout. It is a second name of a
//! file of ours, so that after a crash the same file at both names says "this lock is mine", and a person's
//! own lock is never taken for it. An advisory lock on that file keeps two teams apart.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{GitError, Result};
use crate::platform::files;

/// Held until it is dropped; left standing by a crash, and then taken over by the next [`IndexLock::take`].
#[derive(Debug)]
pub(super) struct IndexLock {
    lock: PathBuf,
    own: PathBuf,
    _held: File,
}

/// A lock that is older is what a command left that was killed.
const OLDEST: Duration = Duration::from_secs(10 * 60);

/// The error where somebody else has the lock of a checkout.
pub(super) fn held(git_dir: &Path) -> GitError {
    GitError::IndexLocked { path: git_dir.join("index.lock") }
}

/// Refuses where a command of somebody is at work in a checkout.
pub(super) fn refuse_held(git_dir: &Path) -> Result<()> {
    let lock = git_dir.join("index.lock");
    let began = files::symlink_metadata(&lock).ok().and_then(|found| found.modified().ok());
    let is_at_work = |began: SystemTime| began.elapsed().is_ok_and(|age| age < OLDEST);
    if began.is_some_and(is_at_work) { Err(held(git_dir)) } else { Ok(()) }
}

impl IndexLock {
    /// Whether one of ours stands, by somebody at work or by a crash.
    pub(super) fn is_left(git_dir: &Path) -> bool {
        let of = |name: &str| files::symlink_metadata(&git_dir.join(name)).ok();
        let ours = of("teams.lock").zip(of("index.lock"));
        ours.is_some_and(|(own, lock)| (own.dev(), own.ino()) == (lock.dev(), lock.ino()))
    }

    /// Takes the lock of the checkout whose git folder is `git_dir`.
    pub(super) fn take(git_dir: &Path) -> Result<Self> {
        let own = git_dir.join("teams.lock");
        let lock = git_dir.join("index.lock");
        let taken = || GitError::IndexLocked { path: lock.clone() };
        let held = files::open_append(&own)?;
        if held.try_lock().is_err() {
            return Err(taken());
        }
        if let Err(error) = files::hard_link(&own, &lock) {
            if error.source.kind() != std::io::ErrorKind::AlreadyExists {
                return Err(error.into());
            }
            let (ours, theirs) = (files::metadata(&own)?, files::symlink_metadata(&lock)?);
            if (ours.dev(), ours.ino()) != (theirs.dev(), theirs.ino()) {
                return Err(taken());
            }
        }
        Ok(Self { lock, own, _held: held })
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        for path in [&self.lock, &self.own] {
            if let Err(error) = files::remove_file(path) {
                tracing::warn!(%error, "a lock of ours stays behind; the next merge removes it");
            }
        }
    }
}
