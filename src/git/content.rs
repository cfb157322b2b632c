//! Working files as git trees and back.
//!
//! A *view* is the repository opened with another folder as its working files and an empty index in
//! memory. It never trusts the `.git` file in that folder (an agent may have rewritten it) and never reads
//! or writes anybody's index, so what counts is content alone: no time stamp or flag can hide a change.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use git2::build::CheckoutBuilder;
use git2::{Delta, Diff, DiffOptions, Index, IndexAddOption, Oid, Repository, Tree};

use super::{GitError, Result};
use crate::domain::evidence::{ChangeKind, ChangedPath};
use crate::platform::files;

const MODE_GITLINK: u32 = 0o160_000;

/// The repository with `dir` as its working files and an index of its own.
pub(super) fn view(repository: Repository, dir: &Path) -> Result<Repository> {
    repository.set_workdir(dir, false)?;
    repository.set_index(&mut Index::new()?)?;
    Ok(repository)
}

/// Writes the view's working files as a tree: what `base` tracks, and what no ignore rule hides.
pub(super) fn write_tree(view: &Repository, base: &Tree<'_>) -> Result<Oid> {
    let mut index = view.index()?;
    index.clear()?;
    index.read_tree(base)?;
    let refused = index.add_all(["*"], IndexAddOption::DEFAULT, None).err().map(GitError::Git);
    if let Some(path) = nested_repository(view, &index)? {
        return Err(GitError::NestedRepository { path });
    }
    match refused {
        Some(error) => Err(error),
        None => Ok(index.write_tree_to(view)?),
    }
}

/// The first folder below the view that is a repository itself and not ignored.
fn nested_repository(view: &Repository, index: &Index) -> Result<Option<PathBuf>> {
    if let Some(link) = index.iter().find(|entry| entry.mode == MODE_GITLINK) {
        return Ok(Some(PathBuf::from(OsString::from_vec(link.path))));
    }
    let Some(root) = view.workdir() else {
        return Ok(None);
    };
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in files::list(&folder)? {
            let Ok(relative) = path.strip_prefix(root) else {
                continue;
            };
            let is_folder = files::symlink_metadata(&path)?.is_dir();
            if relative.parent() != Some(Path::new("")) && relative.ends_with(".git") {
                return Ok(relative.parent().map(Path::to_owned));
            }
            if is_folder && !relative.ends_with(".git") && !view.is_path_ignored(relative)? {
                folders.push(path);
            }
        }
    }
    Ok(None)
}

/// Writes all of a tree into an empty folder.
pub(super) fn write_all(view: &Repository, tree: &Tree<'_>, dir: &Path) -> Result<()> {
    know_attributes(view, tree)?;
    view.checkout_tree(tree.as_object(), Some(checkout(dir).recreate_missing(true)))?;
    Ok(())
}

/// Writes the named paths of a tree into a folder, replacing what is there.
pub(super) fn write_some(
    view: &Repository,
    tree: &Tree<'_>,
    dir: &Path,
    paths: &[&Path],
) -> Result<()> {
    // An empty list would mean "all" to libgit2.
    if paths.is_empty() {
        return Ok(());
    }
    know_attributes(view, tree)?;
    let mut options = checkout(dir);
    options.disable_pathspec_match(true);
    for path in paths {
        options.path(*path);
    }
    view.checkout_tree(tree.as_object(), Some(&mut options))?;
    Ok(())
}

/// Lets line endings follow the `.gitattributes` and the stored line endings of `tree`: libgit2 looks both up
/// in the index.
pub(super) fn know_attributes(view: &Repository, tree: &Tree<'_>) -> Result<()> {
    Ok(view.index()?.read_tree(tree)?)
}

fn checkout(dir: &Path) -> CheckoutBuilder<'static> {
    let mut options = CheckoutBuilder::new();
    // The view's index lives in memory and cannot be re-read, hence no refresh.
    options.target_dir(dir).force().update_index(false).refresh(false);
    options
}

/// Makes the view's working files equal `target`, also removing what git would call untracked. What both
/// the old and the new ignore rules hide (build output, caches) stays.
pub(super) fn reset(view: &Repository, base: &Tree<'_>, target: &Tree<'_>) -> Result<()> {
    let Some(root) = view.workdir().map(Path::to_owned) else {
        return Ok(());
    };
    // A changed ignore file hides or shows other files, so the second look may find more to do.
    for _ in 0..4 {
        let found = loop {
            match write_tree(view, base) {
                Err(GitError::NestedRepository { path }) => {
                    files::remove_dir_all_forced(&root.join(path))?;
                }
                found => break found?,
            }
        };
        if found == target.id() {
            return Ok(());
        }
        let found = view.find_tree(found)?;
        let (gone, write): (Vec<_>, Vec<_>) = raw_changes(view, &found, target)?
            .into_iter()
            .partition(|(_, kind)| *kind == ChangeKind::Deleted);
        for (path, _) in &gone {
            remove(&root, path)?;
        }
        let write: Vec<&Path> = write.iter().map(|(path, _)| path.as_path()).collect();
        for path in &write {
            make_way(&root, path)?;
        }
        write_some(view, target, &root, &write)?;
    }
    Err(GitError::Unsteady { path: root })
}

/// Removes what stands in the place of a folder that a path needs: an ignored link or file, which git would
/// leave there.
fn make_way(root: &Path, path: &Path) -> Result<()> {
    let folders: Vec<&Path> = path.ancestors().skip(1).collect();
    for folder in folders.into_iter().rev() {
        let here = root.join(folder);
        if files::symlink_metadata(&here).is_ok_and(|found| !found.is_dir()) {
            return Ok(files::remove_file(&here)?);
        }
    }
    Ok(())
}

/// Removes a file and the folders that become empty by it, up to `root`.
pub(super) fn remove(root: &Path, path: &Path) -> Result<()> {
    let full = root.join(path);
    files::remove_file(&full)?;
    let mut folder = full.parent();
    while let Some(here) = folder.filter(|here| *here != root && here.starts_with(root)) {
        if !files::remove_dir_if_empty(here)? {
            break;
        }
        folder = here.parent();
    }
    Ok(())
}

/// What differs between two trees, in path order. A rename is one path gone and one path new, so that
/// both names are known.
///
/// # Errors
/// [`GitError::ForbiddenPath`] for a name that is not UTF-8: it cannot stand in a record or a message.
pub(super) fn changes(
    repository: &Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
) -> Result<Vec<ChangedPath>> {
    let mut changes = Vec::new();
    for (path, kind) in raw_changes(repository, old, new)? {
        match path.into_os_string().into_string() {
            Ok(path) => changes.push(ChangedPath { path, kind }),
            Err(path) => {
                return Err(GitError::ForbiddenPath {
                    path: path.to_string_lossy().into_owned(),
                    reason: "its name is not UTF-8",
                });
            }
        }
    }
    changes.sort();
    Ok(changes)
}

fn raw_changes(
    repository: &Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
) -> Result<Vec<(PathBuf, ChangeKind)>> {
    let diff = diff(repository, old, new)?;
    let changed = diff.deltas().filter_map(|delta| {
        let kind = match delta.status() {
            Delta::Added => ChangeKind::Added,
            Delta::Deleted => ChangeKind::Deleted,
            Delta::Unmodified
            | Delta::Modified
            | Delta::Renamed
            | Delta::Copied
            | Delta::Ignored
            | Delta::Untracked
            | Delta::Typechange
            | Delta::Unreadable
            | Delta::Conflicted => ChangeKind::Modified,
        };
        let file = match kind {
            ChangeKind::Deleted => delta.old_file(),
            ChangeKind::Added | ChangeKind::Modified => delta.new_file(),
        };
        Some((file.path()?.to_owned(), kind))
    });
    Ok(changed.collect())
}

/// The difference of two trees in these paths alone, as they are written; none of it where there are no paths.
pub(super) fn diff_of<'r>(
    repository: &'r Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
    paths: &[String],
) -> Result<Diff<'r>> {
    let mut options = DiffOptions::new();
    options.include_typechange(true).disable_pathspec_match(true);
    // No paths at all would mean "all" to libgit2; a slash is no path.
    for path in paths.iter().map(String::as_str).chain(paths.is_empty().then_some("/")) {
        options.pathspec(path);
    }
    Ok(repository.diff_tree_to_tree(Some(old), Some(new), Some(&mut options))?)
}

/// The difference of two trees, typechanges as one entry.
pub(super) fn diff<'r>(
    repository: &'r Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
) -> Result<Diff<'r>> {
    let mut options = DiffOptions::new();
    options.include_typechange(true);
    Ok(repository.diff_tree_to_tree(Some(old), Some(new), Some(&mut options))?)
}
