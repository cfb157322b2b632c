//! What a tree holds, as one list of paths.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{Index, Oid, Tree};

use super::Result;

/// The mode of a submodule's commit in a tree.
pub(super) const MODE_GITLINK: u32 = 0o160_000;

/// Paths of a tree with what stands there.
pub(super) type Tracked = BTreeMap<Vec<u8>, (Oid, u32)>;

/// Makes an index that of a tree, for line endings as well, and tells what the tree holds.
pub(super) fn read_tree(index: &mut Index, tree: &Tree<'_>) -> Result<Tracked> {
    index.clear()?;
    index.read_tree(tree)?;
    Ok(index.iter().map(|entry| (entry.path, (entry.id, entry.mode))).collect())
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
