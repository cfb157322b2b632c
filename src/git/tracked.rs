//! What a tree holds, as one list of paths.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Index, ObjectType, Oid, Repository, Tree};

use super::{GitError, Result};

/// The mode of a submodule's commit in a tree.
pub(super) const MODE_GITLINK: u32 = 0o160_000;

/// Paths of a tree with what stands there.
pub(super) type Tracked = BTreeMap<Vec<u8>, (Oid, u32)>;

/// Paths that differ from a tree, with what stands there; nothing where one is gone.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<(Oid, u32)>>;

/// Trees whose paths are kept, and the most paths of one of them.
const KEPT: usize = 2;
const LARGEST: usize = 200_000;

/// Makes an index that of a tree, for line endings as well, and tells what the tree holds.
pub(super) fn read_tree(index: &mut Index, tree: &Tree<'_>) -> Result<Tracked> {
    index.clear()?;
    index.read_tree(tree)?;
    Ok(index.iter().map(|entry| (entry.path, (entry.id, mode_of_today(entry.mode)))).collect())
}

/// The mode that git writes today: early versions had one for files that others may write.
pub(super) const fn mode_of_today(mode: u32) -> u32 {
    if mode == 0o100_664 { 0o100_644 } else { mode }
}

/// What a tree holds, which is kept for a while: most looks at the files of a request begin with the same tree.
pub(super) fn of_tree(tree: &Tree<'_>) -> Result<Arc<Tracked>> {
    static LAST: Mutex<Vec<(Oid, Arc<Tracked>)>> = Mutex::new(Vec::new());
    let lock = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = lock().iter().find(|(id, _)| *id == tree.id()) {
        return Ok(Arc::clone(found));
    }
    let found = Arc::new(read_tree(&mut Index::new()?, tree)?);
    if found.len() <= LARGEST {
        let mut last = lock();
        last.truncate(KEPT - 1);
        last.insert(0, (tree.id(), Arc::clone(&found)));
    }
    Ok(found)
}

/// The tree that a base becomes by changes.
pub(super) fn changed_tree(
    repository: &Repository,
    base: &Tree<'_>,
    changes: &Changes,
) -> Result<Oid> {
    if changes.is_empty() {
        return Ok(base.id());
    }
    let remove = |from: &Tree<'_>, paths: &mut dyn Iterator<Item = &Vec<u8>>| {
        let mut update = TreeUpdateBuilder::new();
        for path in paths {
            update.remove(&path[..]);
        }
        repository.find_tree(update.create_updated(repository, from)?)
    };
    // First what goes: a file may stand where a folder was, with nothing left in it but submodules.
    let gone = changes.iter().filter(|(_, put)| put.is_none());
    let left = remove(base, &mut gone.map(|(path, _)| path))?;
    let is_folder = |path: &&Vec<u8>| {
        let there = left.get_path(as_path(path));
        there.is_ok_and(|entry| entry.kind() == Some(ObjectType::Tree))
    };
    let put = changes.iter().filter_map(|(path, put)| Some((path, (*put)?)));
    let cleared = remove(&left, &mut put.clone().map(|(path, _)| path).filter(is_folder))?;
    let mut update = TreeUpdateBuilder::new();
    for (path, (id, mode)) in put {
        let mode = match mode {
            0o100_755 => FileMode::BlobExecutable,
            0o120_000 => FileMode::Link,
            MODE_GITLINK => FileMode::Commit,
            _ => FileMode::Blob,
        };
        update.upsert(&path[..], id, mode);
    }
    Ok(update.create_updated(repository, &cleared)?)
}

/// A path as git has it, as one of the file system.
pub(super) fn as_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

/// Whether a tree has something below a path.
pub(super) fn holds(tracked: &Tracked, path: &[u8]) -> bool {
    below(tracked, path).next().is_some()
}

/// What a tree has below a path.
pub(super) fn below<'t>(
    tracked: &'t Tracked,
    path: &[u8],
) -> impl Iterator<Item = (&'t Vec<u8>, &'t (Oid, u32))> {
    let inside = [path, b"/"].concat();
    tracked.range(inside.clone()..).take_while(move |(found, _)| found.starts_with(&inside))
}

/// Opens an index that git has written.
///
/// # Errors
/// [`GitError::IndexForm`].
pub(super) fn open_index(path: &Path) -> Result<Index> {
    let form = |error: git2::Error| GitError::IndexForm {
        path: path.to_owned(),
        reason: error.message().to_owned(),
    };
    Index::open(path).map_err(form)
}
