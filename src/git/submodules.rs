//! Submodules. A tree names their commits; their files come from the repositories that git keeps of them beside
//! the project's own. Nothing is fetched here: one whose commit is not there stays an empty folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::{Index, Oid, Repository};

use super::Result;
use super::tracked::{MODE_GITLINK, Tracked, as_path, read_tree};
use crate::platform::files;

/// Where git keeps the repositories of submodules, in that of the project.
const MODULES: &str = "modules";
/// Folders that the name of a submodule has at most, and submodules that lie in each other.
const DEPTH: usize = 8;
/// Before what else is asked about an object.
const FIRST: i32 = 1_000;

/// A submodule whose files are to be had.
#[derive(Debug)]
pub(super) struct Submodule {
    /// Where it lies in the project.
    pub(super) path: Vec<u8>,
    /// The tree of its commit.
    pub(super) tree: Oid,
    repository: PathBuf,
}

/// The submodules of a tree whose files are to be had, those that lie in others after these.
#[derive(Debug, Default)]
pub(super) struct Submodules {
    all: Vec<Submodule>,
    /// Where the others are.
    pub(super) missing: Vec<Vec<u8>>,
    /// What they hold, by its path in the project.
    pub(super) tracked: Tracked,
}

impl Submodules {
    /// Those that a tree names.
    ///
    /// # Errors
    /// Where the repositories cannot be read.
    pub(super) fn of(project: &Repository, tracked: &Tracked) -> Result<Submodules> {
        let mut found = Submodules::default();
        if links(tracked).next().is_some() {
            let mut folders = vec![project.commondir().to_owned()];
            if project.path() != project.commondir() {
                folders.push(project.path().to_owned());
            }
            found.add(&folders, tracked, b"", DEPTH)?;
        }
        Ok(found)
    }

    fn add(
        &mut self,
        folders: &[PathBuf],
        tracked: &Tracked,
        at: &[u8],
        depth: usize,
    ) -> Result<()> {
        let mut repositories = Vec::new();
        for folder in folders {
            find(&folder.join(MODULES), DEPTH, &mut repositories)?;
        }
        for (path, commit) in links(tracked) {
            // The id of a commit says all of its content: whatever name the repository has, it is this one.
            let found = repositories.iter().find_map(|it| {
                let repository = Repository::open_bare(it).ok()?;
                let tree = repository.find_commit(commit).ok()?.tree_id();
                Some((it, repository, tree))
            });
            let path = [at, path].concat();
            let Some((folder, repository, tree)) = found else {
                self.missing.push(path);
                continue;
            };
            let inside = read_tree(&mut Index::new()?, &repository.find_tree(tree)?)?;
            let start = [&path[..], b"/"].concat();
            let whole = |name: &[u8]| [&start[..], name].concat();
            self.tracked.extend(inside.iter().map(|(name, what)| (whole(name), *what)));
            self.all.push(Submodule { path, tree, repository: folder.clone() });
            if depth > 0 {
                self.add(std::slice::from_ref(folder), &inside, &start, depth - 1)?;
            }
        }
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Submodule> {
        self.all.iter()
    }

    /// The one that a path lies in.
    pub(super) fn around(&self, path: &[u8]) -> Option<&Submodule> {
        self.all.iter().rev().find(|it| it.within(path).is_some())
    }
}

impl Submodule {
    /// A path of the project, from this submodule on; none where it does not lie in it.
    pub(super) fn within<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        path.strip_prefix(&self.path[..])?.strip_prefix(b"/")
    }

    /// Where it lies in a folder of the project's files.
    pub(super) fn dir(&self, root: &Path) -> PathBuf {
        root.join(as_path(&self.path))
    }

    /// Its repository, which has a view of its own made of it.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub(super) fn repository(&self) -> Result<Repository> {
        Ok(Repository::open_bare(&self.repository)?)
    }

    /// The settings that its repository has of its own.
    pub(super) fn settings(&self) -> Vec<u8> {
        files::read(&self.repository.join("config")).unwrap_or_default()
    }
}

/// What git would store of files in a submodule. Nothing is stored.
///
/// # Errors
/// Where a file cannot be read.
pub(super) fn ids(
    view: &Repository,
    tree: Oid,
    paths: &[&[u8]],
) -> Result<BTreeMap<Vec<u8>, (Oid, u32)>> {
    let objects = view.odb()?;
    let _in_memory = objects.add_new_mempack_backend(FIRST)?;
    let mut index = view.index()?;
    read_tree(&mut index, &view.find_tree(tree)?)?;
    let mut found = BTreeMap::new();
    for path in paths {
        index.add_path(as_path(path))?;
        if let Some(entry) = index.get_path(as_path(path), 0) {
            found.insert(path.to_vec(), (entry.id, entry.mode));
        }
    }
    Ok(found)
}

fn links(tracked: &Tracked) -> impl Iterator<Item = (&[u8], Oid)> {
    let links = tracked.iter().filter(|(_, (_, mode))| *mode == MODE_GITLINK);
    links.map(|(path, (id, _))| (&path[..], *id))
}

/// The repositories below a folder; the name of a submodule may hold slashes.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    if !files::exists(folder) {
        return Ok(());
    }
    for path in files::folders(folder)? {
        if files::exists(&path.join("HEAD")) && files::exists(&path.join("objects")) {
            found.push(path);
        } else if depth > 0 {
            find(&path, depth - 1, found)?;
        }
    }
    Ok(())
}
