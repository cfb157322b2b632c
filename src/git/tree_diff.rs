//! What differs between two trees. Folders that are the same in both are not read: a change costs what it is, not what
//! the project is.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Diff, DiffOptions, ObjectType, Oid, Repository, Tree};

use super::Result;
use super::path_name::name_of;
use crate::domain::evidence::{ChangeKind, ChangedPath};

/// What stands at a name in a folder: its object, its mode, and whether it is a folder.
type Entry = (Oid, i32, bool);

/// What differs between two trees, in path order. A rename is one path gone and one path new, so that
/// both names are known.
pub(super) fn changes(
    repository: &Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
) -> Result<Vec<ChangedPath>> {
    let mut changes = Vec::new();
    for (path, kind) in raw_changes(repository, old, new)? {
        changes.push(ChangedPath { path: name_of(path.as_os_str().as_bytes()), kind });
    }
    changes.sort();
    Ok(changes)
}

/// The paths that a tree has not any more, and those that it has anew or otherwise.
pub(super) fn paths_between(
    repository: &Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (gone, put): (Vec<_>, Vec<_>) = raw_changes(repository, old, new)?
        .into_iter()
        .partition(|(_, kind)| *kind == ChangeKind::Deleted);
    let paths = |list: Vec<(PathBuf, ChangeKind)>| list.into_iter().map(|(path, _)| path).collect();
    Ok((paths(gone), paths(put)))
}

fn raw_changes(
    repository: &Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
) -> Result<Vec<(PathBuf, ChangeKind)>> {
    let mut changes = Vec::new();
    compare(repository, (Some(old.id()), Some(new.id())), Path::new(""), &mut changes)?;
    Ok(changes)
}

/// Adds what differs between two folders, of which one may not be there.
fn compare(
    repository: &Repository,
    (old, new): (Option<Oid>, Option<Oid>),
    at: &Path,
    changes: &mut Vec<(PathBuf, ChangeKind)>,
) -> Result<()> {
    if old == new {
        return Ok(());
    }
    let (old, new) = (entries(repository, old)?, entries(repository, new)?);
    let folder = |entry: Option<&Entry>| entry.filter(|it| it.2).map(|it| it.0);
    let names: BTreeSet<&Vec<u8>> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (was, is) = (old.get(name), new.get(name));
        if was == is {
            continue;
        }
        let path = at.join(OsStr::from_bytes(name));
        compare(repository, (folder(was), folder(is)), &path, changes)?;
        let is_file = |entry: Option<&Entry>| entry.is_some_and(|it| !it.2);
        match (is_file(was), is_file(is)) {
            (true, true) => changes.push((path, ChangeKind::Modified)),
            (true, false) => changes.push((path, ChangeKind::Deleted)),
            (false, true) => changes.push((path, ChangeKind::Added)),
            (false, false) => {}
        }
    }
    Ok(())
}

fn entries(repository: &Repository, tree: Option<Oid>) -> Result<BTreeMap<Vec<u8>, Entry>> {
    let Some(tree) = tree else { return Ok(BTreeMap::new()) };
    let tree = repository.find_tree(tree)?;
    let entry = |it: git2::TreeEntry<'_>| {
        let is_folder = it.kind() == Some(ObjectType::Tree);
        (it.name_bytes().to_vec(), (it.id(), it.filemode(), is_folder))
    };
    Ok(tree.iter().map(entry).collect())
}

/// The difference of two trees in these paths alone, as they are written; none of it where there are no paths.
pub(super) fn diff_of<'r>(
    repository: &'r Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
    paths: &[PathBuf],
) -> Result<Diff<'r>> {
    let mut options = DiffOptions::new();
    options.include_typechange(true).disable_pathspec_match(true);
    // No paths at all would mean "all" to libgit2; a slash is no path.
    if paths.is_empty() {
        options.pathspec("/");
    }
    for path in paths {
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
    let changed = raw_changes(repository, old, new)?;
    let paths: Vec<PathBuf> = changed.into_iter().map(|(path, _)| path).collect();
    diff_of(repository, old, new, &paths)
}

#[cfg(test)]
mod tests {
    use git2::FileMode;
    use git2::build::TreeUpdateBuilder;

    use super::*;

    /// A tree with these paths.
    fn tree<'r>(repository: &'r Repository, files: &[(&str, &str, FileMode)]) -> Tree<'r> {
        let empty = repository.treebuilder(None).unwrap().write().unwrap();
        let mut update = TreeUpdateBuilder::new();
        for (path, text, mode) in files {
            update.upsert(*path, repository.blob(text.as_bytes()).unwrap(), *mode);
        }
        let empty = repository.find_tree(empty).unwrap();
        repository.find_tree(update.create_updated(repository, &empty).unwrap()).unwrap()
    }

    /// The same by a comparison that reads both trees whole.
    fn whole(
        repository: &Repository,
        old: &Tree<'_>,
        new: &Tree<'_>,
    ) -> Vec<(PathBuf, ChangeKind)> {
        let mut options = DiffOptions::new();
        options.include_typechange(true);
        let diff = repository.diff_tree_to_tree(Some(old), Some(new), Some(&mut options)).unwrap();
        #[expect(clippy::wildcard_enum_match_arm, reason = "all else is a change")]
        let mut all: Vec<_> = diff
            .deltas()
            .map(|delta| match delta.status() {
                git2::Delta::Added => {
                    (delta.new_file().path().unwrap().to_owned(), ChangeKind::Added)
                }
                git2::Delta::Deleted => {
                    (delta.old_file().path().unwrap().to_owned(), ChangeKind::Deleted)
                }
                _ => (delta.new_file().path().unwrap().to_owned(), ChangeKind::Modified),
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn trees_differ_as_a_comparison_of_all_their_files_says() {
        use FileMode::{Blob, BlobExecutable, Commit, Link};
        let place = tempfile::tempdir().unwrap();
        let repository = Repository::init(place.path()).unwrap();
        let trees = [
            tree(&repository, &[]),
            tree(
                &repository,
                &[("a", "1", Blob), ("d/e/f", "2", Blob), ("d/g", "3", Blob), ("s/t", "4", Blob)],
            ),
            // Changed, a mode, a link for a file, a new folder, one whole folder gone.
            tree(
                &repository,
                &[
                    ("a", "1", BlobExecutable),
                    ("d/e/f", "9", Blob),
                    ("d/g", "3", Link),
                    ("n/m/o", "5", Blob),
                ],
            ),
            // A folder for a file, a file for a folder, and names that sort otherwise as folders.
            tree(
                &repository,
                &[
                    ("a/b", "1", Blob),
                    ("d", "2", Blob),
                    ("s/t", "4", Blob),
                    ("s.x", "6", Blob),
                    ("s-x", "7", Blob),
                ],
            ),
            tree(&repository, &[("a", "1", Commit), ("한 글\n", "8", Blob)]),
        ];
        for old in &trees {
            for new in &trees {
                let mut found = raw_changes(&repository, old, new).unwrap();
                found.sort();
                assert_eq!(found, whole(&repository, old, new));
                let of_them = diff(&repository, old, new).unwrap();
                assert_eq!(of_them.deltas().len(), found.len());
            }
        }
    }
}
