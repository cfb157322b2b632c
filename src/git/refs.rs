//! Moving refs by compare-and-set with git's own lock files, so that a crash never leaves a branch locked.
//!
//! libgit2 follows the same protocol, but what it leaves behind when it is killed cannot be told from the
//! lock of a living git process. Here the lock is a second name of a file of ours, whose identity says so.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Oid, Repository};

use super::{GitError, Project, Result};
use crate::platform::{clock, files};

/// Under which what was not used is kept.
pub(super) const LOST: &str = "refs/teams/lost/";

/// How an update ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    /// The ref names the new commit, and that is durable.
    Done,
    /// Untouched: the ref names something else than expected.
    Elsewhere(Option<Oid>),
}

/// Points `name` at `new` where it is at `expected` (`None`: does not exist) or at `new` already.
pub(super) fn set(
    project: &Project,
    repository: &Repository,
    name: &str,
    expected: Option<Oid>,
    new: Oid,
    reason: &str,
) -> Result<Update> {
    refuse_taken(repository, name)?;
    let lock = RefLock::take(project, name, &format!("{new}\n"))?;
    let now = target(repository, name)?;
    if now == Some(new) {
        // Perhaps a crash came between the rename and its sync.
        lock.sync()?;
        return Ok(Update::Done);
    }
    if now != expected {
        return Ok(Update::Elsewhere(now));
    }
    files::remove_dir_if_empty(&lock.path)?;
    let log = project.common_dir().join("logs").join(name);
    if let Some(folder) = log.parent().filter(|_| name.starts_with(LOST)) {
        // Since when it is kept says nothing else: git packs refs.
        files::create_dir_all(folder)?;
        files::append(&log, "")?;
    }
    files::rename(&lock.lock, &lock.path)?;
    lock.sync()?;
    append_log(&log, now, new, reason)?;
    Ok(Update::Done)
}

/// Removes a ref and its log; an absent one is fine.
pub(super) fn delete(project: &Project, repository: &Repository, name: &str) -> Result<()> {
    let lock = RefLock::take(project, name, "")?;
    // Names of others may be no text.
    let packed = files::read_if_present(&project.common_dir().join("packed-refs"))?;
    let packed = packed.unwrap_or_default();
    let line = format!(" {name}");
    let is_packed = packed.split(|byte| *byte == b'\n').any(|it| it.ends_with(line.as_bytes()));
    if is_packed {
        // Only libgit2 rewrites the packed file; it takes the ref's lock itself.
        drop(lock);
        let deleted = repository.find_reference(name)?.delete();
        if deleted.as_ref().is_err_and(|error| error.code() == ErrorCode::Locked) {
            let path = project.common_dir().join("packed-refs.lock");
            return Err(GitError::RefLocked { path });
        }
        deleted?;
    } else {
        files::remove_file(&lock.path)?;
        lock.sync()?;
    }
    Ok(files::remove_file(&project.common_dir().join("logs").join(name))?)
}

/// Adds a line to a reflog that exists; where there is none, none is wanted.
pub(super) fn append_log(log: &Path, old: Option<Oid>, new: Oid, reason: &str) -> Result<()> {
    if !files::exists(log) {
        return Ok(());
    }
    let old = old.unwrap_or(Oid::ZERO_SHA1);
    let seconds = clock::now().timestamp();
    let line = format!("{old} {new} teams <teams@localhost> {seconds} +0000\t{reason}\n");
    Ok(files::append(log, line)?)
}

fn target(repository: &Repository, name: &str) -> Result<Option<Oid>> {
    match repository.find_reference(name) {
        Ok(found) => match found.target() {
            Some(target) => Ok(Some(target)),
            None => Err(GitError::SymbolicRef { name: name.to_owned() }),
        },
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn refuse_taken(repository: &Repository, name: &str) -> Result<()> {
    if name.starts_with("refs/heads/teams/")
        && repository.find_reference("refs/heads/teams").is_ok()
    {
        return Err(GitError::NameTaken);
    }
    Ok(())
}

/// `<ref>.lock`, held until dropped or renamed to the ref.
struct RefLock {
    path: PathBuf,
    lock: PathBuf,
    own: PathBuf,
    _guard: std::fs::File,
}

impl RefLock {
    fn take(project: &Project, name: &str, content: &str) -> Result<Self> {
        let private = project.private_dir()?;
        // One update at a time among teams and threads; released by the kernel at death.
        let guard = files::open_append(&private.join("refs.guard"))?;
        guard.lock().map_err(|source| files::FileError {
            action: "lock",
            path: private.join("refs.guard"),
            source,
        })?;
        let path = project.common_dir().join(name);
        // One file a ref, so that updating another one meanwhile does not lose this one's twin. A ref's name
        // has no `~`.
        let own = private.join(name.replace('/', "~"));
        let lock = with_suffix(&path, ".lock");
        if let (Ok(ours), Ok(theirs)) = (files::metadata(&own), files::symlink_metadata(&lock))
            && (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
        {
            files::remove_file(&lock)?;
        }
        files::remove_file(&own)?;
        files::write(&own, content)?;
        files::sync_file(&own)?;
        if let Some(folder) = path.parent() {
            files::create_dir_all(folder)?;
        }
        if let Err(error) = files::hard_link(&own, &lock) {
            if error.source.kind() == std::io::ErrorKind::AlreadyExists {
                return Err(GitError::RefLocked { path: lock });
            }
            return Err(error.into());
        }
        Ok(Self { path, lock, own, _guard: guard })
    }

    /// Makes the ref's name durable, and its folder's.
    fn sync(&self) -> Result<()> {
        for folder in self.path.ancestors().skip(1).take(2) {
            files::sync_dir(folder)?;
        }
        Ok(())
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        // It has become the ref, and another may have the lock by now.
        let is_ours =
            match (files::symlink_metadata(&self.lock), files::symlink_metadata(&self.own)) {
                (Ok(lock), Ok(own)) => (lock.dev(), lock.ino()) == (own.dev(), own.ino()),
                (Ok(_) | Err(_), _) => false,
            };
        for path in is_ours.then_some(&self.lock).into_iter().chain([&self.own]) {
            if let Err(error) = files::remove_file(path) {
                tracing::warn!(%error, "a ref's lock of ours stays behind; the next update removes it");
            }
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
