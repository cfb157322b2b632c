//! What the worktree of a request held that waits, under `refs/teams/kept/<request>`: byte by byte as it lay there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use git2::{Oid, Repository};

use super::project::tip;
use super::{CommitId, Project, Result, content, refs, tree_diff};
use crate::domain::ids::RequestId;
use crate::domain::time::Timestamp;
use crate::platform::files;

/// Under which worktrees are kept that were put away.
pub(super) const KEPT: &str = "refs/teams/kept/";
const MODE_LINK: u32 = 0o120_000;

/// What a worktree held when it was put away.
pub(super) struct SavedWorktree {
    /// What it grew from.
    pub(super) base: CommitId,
    /// When its roles ceased to read the files of its base.
    pub(super) own_since: Option<Timestamp>,
    tree: Oid,
}

/// In the message of what is kept, before `own_since`.
const SINCE: &str = "own since ";

/// The message of what is kept of a request.
pub(super) fn message(request: &RequestId, own_since: Option<Timestamp>) -> String {
    let since = own_since.map(|at| format!("\n{SINCE}{}\n", at.millis())).unwrap_or_default();
    format!("worktree of {request}\n{since}")
}

/// What is kept of a request.
pub(super) fn of(repository: &Repository, request: &RequestId) -> Result<Option<SavedWorktree>> {
    let Some(commit) = tip(repository, &format!("{KEPT}{request}"))? else { return Ok(None) };
    let commit = repository.find_commit(commit)?;
    let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
    let since = message.lines().find_map(|line| line.strip_prefix(SINCE)?.parse().ok());
    Ok(Some(SavedWorktree {
        base: CommitId(commit.parent_id(0)?),
        own_since: since.map(Timestamp::from_millis),
        tree: commit.tree_id(),
    }))
}

/// Lets go of what is kept of a request; nothing is fine.
pub(super) fn forget(
    project: &Project,
    repository: &Repository,
    request: &RequestId,
) -> Result<()> {
    let name = format!("{KEPT}{request}");
    if tip(repository, &name)?.is_some() {
        refs::delete(project, repository, &name)?;
    }
    Ok(())
}

impl SavedWorktree {
    /// Puts the files back, into a folder that holds those of the base.
    pub(super) fn restore(&self, repository: &Repository, dir: &Path) -> Result<()> {
        let base = repository.find_commit(self.base.0)?.tree()?;
        let tree = repository.find_tree(self.tree)?;
        let (gone, put) = tree_diff::paths_between(repository, &base, &tree)?;
        for path in &gone {
            // A folder can only be a submodule's.
            if files::symlink_metadata(&dir.join(path)).is_ok_and(|found| found.is_dir()) {
                files::remove_any(&dir.join(path))?;
            }
            content::remove(dir, path)?;
        }
        for path in &put {
            let entry = tree.get_path(path)?;
            let full = dir.join(path);
            files::remove_any(&full)?;
            if let Some(folder) = full.parent() {
                files::create_dir_all(folder)?;
            }
            let bytes = repository.find_blob(entry.id())?;
            let bytes = bytes.content();
            if entry.filemode().cast_unsigned() == MODE_LINK {
                files::symlink(Path::new(OsStr::from_bytes(bytes)), &full)?;
                continue;
            }
            files::write(&full, bytes)?;
            if entry.filemode() & 0o111 != 0 {
                let mode = files::metadata(&full)?.permissions().mode();
                files::set_mode(&full, mode | ((mode & 0o444) >> 2))?;
            }
        }
        Ok(())
    }
}
