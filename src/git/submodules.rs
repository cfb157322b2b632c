//! Submodules. A tree names their commits; their files come from the repositories that git keeps of them beside
//! the project's own. Nothing is fetched here: one whose commit is not there stays an empty folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use git2::{Index, Oid, Repository};

use super::Result;
use super::tracked::{Changes, MODE_GITLINK, Tracked, as_path, read_tree};
use crate::platform::files;

/// Where git keeps the repositories of submodules, in that of the project.
const MODULES: &str = "modules";
/// The file that lists them.
pub(super) const LIST: &str = ".gitmodules";
/// Folders that the name of a submodule has at most, and submodules that lie in each other.
const DEPTH: usize = 8;
/// The priority of objects in memory: above those on disk.
const PRIORITY: i32 = 1_000;

/// A submodule whose files are to be had.
#[derive(Debug)]
pub(super) struct Submodule {
    /// Where it lies in the project.
    pub(super) path: Vec<u8>,
    /// The tree of its commit.
    pub(super) tree: Oid,
    repository: PathBuf,
}

/// The submodules of a tree whose files are to be had.
#[derive(Debug, Default)]
pub(super) struct Submodules {
    all: BTreeMap<Vec<u8>, Submodule>,
    /// Where the others are.
    pub(super) missing: Vec<Vec<u8>>,
    /// What they hold, by its path in the project.
    pub(super) tracked: Tracked,
}

impl Submodules {
    /// Those that a tree names. What cannot be read of one makes it one that is not to be had.
    pub(super) fn of(project: &Repository, tracked: &Tracked) -> Submodules {
        let mut found = Submodules::default();
        if links(tracked).next().is_none() {
            return found;
        }
        let mut repositories = Vec::new();
        for folder in BTreeSet::from([project.commondir(), project.path()]) {
            find(&folder.join(MODULES), DEPTH, &mut repositories);
        }
        // Before git kept them there, each lay in its own folder of the checkout.
        if let Some(checkout) = project.commondir().parent() {
            let own = links(tracked).map(|(path, _)| checkout.join(as_path(path)).join(".git"));
            repositories.extend(own.filter(|path| path.is_absolute() && is_repository(path)));
        }
        found.add(&repositories, tracked, b"", DEPTH);
        found
    }

    fn add(&mut self, folders: &[PathBuf], tracked: &Tracked, at: &[u8], depth: usize) {
        let open = |folder: &PathBuf| Some((folder.clone(), Repository::open_bare(folder).ok()?));
        let repositories: Vec<_> = folders.iter().filter_map(open).collect();
        for (path, commit) in links(tracked) {
            let path = [at, path].concat();
            // The id of a commit says all of its content: whatever name the repository has, it is this one.
            let found = repositories
                .iter()
                .find_map(|(folder, repository)| Some((folder, whole_tree(repository, commit)?)));
            let Some((folder, (tree, inside))) = found else {
                self.missing.push(path);
                continue;
            };
            let start = [&path[..], b"/"].concat();
            let whole = |name: &[u8]| [&start[..], name].concat();
            self.tracked.extend(inside.iter().map(|(name, what)| (whole(name), *what)));
            let submodule = Submodule { path: path.clone(), tree, repository: folder.clone() };
            self.all.insert(path, submodule);
            if depth > 0 && links(&inside).next().is_some() {
                let mut inner = Vec::new();
                find(&folder.join(MODULES), DEPTH, &mut inner);
                self.add(&inner, &inside, &start, depth - 1);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them, each before those that lie in it.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Submodule> {
        self.all.values()
    }

    /// The one at a path.
    pub(super) fn at(&self, path: &[u8]) -> Option<&Submodule> {
        self.all.get(path)
    }

    /// The innermost one that a path lies in.
    pub(super) fn around(&self, path: &[u8]) -> Option<&Submodule> {
        let ends = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        ends.map(|(end, _)| &path[..end]).find_map(|above| self.all.get(above))
    }
}

/// The tree of a commit with what it holds, where all of it is there.
fn whole_tree(repository: &Repository, commit: Oid) -> Option<(Oid, Tracked)> {
    let tree = repository.find_commit(commit).ok()?.tree().ok()?;
    let inside = read_tree(&mut Index::new().ok()?, &tree).ok()?;
    let is_partial =
        repository.config().and_then(|config| config.get_string("extensions.partialclone")).is_ok();
    if is_partial {
        let objects = repository.odb().ok()?;
        let is_there = |(id, mode): &(Oid, u32)| *mode == MODE_GITLINK || objects.exists(*id);
        inside.values().all(is_there).then_some(())?;
    }
    Some((tree.id(), inside))
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

    /// What its repository says of how its files are written out.
    pub(super) fn settings(&self) -> Vec<u8> {
        let read = |name: &str| files::read(&self.repository.join(name)).unwrap_or_default();
        [read("config"), read("info/attributes")].concat()
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
    let _in_memory = objects.add_new_mempack_backend(PRIORITY)?;
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

/// The first submodule that is on one list and not on the other, where its commit in the tree does not go along.
pub(super) fn listed_otherwise(
    tracked: &Tracked,
    changes: &Changes,
    lists: [&[u8]; 2],
) -> Option<String> {
    let [before, now] = lists.map(listed);
    let is_link = |path: &str| {
        let is_tracked =
            tracked.get(path.as_bytes()).is_some_and(|(_, mode)| *mode == MODE_GITLINK);
        is_tracked && changes.get(path.as_bytes()).is_none()
    };
    let gone = before.difference(&now).filter(|path| is_link(path));
    let come = now.difference(&before).filter(|path| !is_link(path));
    gone.chain(come).next().cloned()
}

/// The paths that a list of submodules names.
fn listed(list: &[u8]) -> BTreeSet<String> {
    let path = |line: &str| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "path").then(|| value.trim().trim_matches('"').to_owned())
    };
    String::from_utf8_lossy(list).lines().filter_map(path).collect()
}

fn links(tracked: &Tracked) -> impl Iterator<Item = (&[u8], Oid)> {
    let links = tracked.iter().filter(|(_, (_, mode))| *mode == MODE_GITLINK);
    links.map(|(path, (id, _))| (&path[..], *id))
}

/// The repositories below a folder; the name of a submodule may hold slashes. What cannot be read is none.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for path in files::folders(folder).unwrap_or_default() {
        if is_repository(&path) {
            found.push(path);
        } else if depth > 0 {
            find(&path, depth - 1, found);
        }
    }
}

fn is_repository(folder: &Path) -> bool {
    files::exists(&folder.join("HEAD")) && files::exists(&folder.join("objects"))
}
