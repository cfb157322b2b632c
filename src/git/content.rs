//! Working files as git trees and back.
//!
//! A *view* is the repository opened with another folder as its working files and an empty index in
//! memory. It never trusts the `.git` file in that folder (an agent may have rewritten it) and never reads
//! or writes anybody's index, so what counts is content alone: no flag can hide a change, nor a time stamp
//! that a program can set. What an earlier look found is kept in an index of our own (`stat_index`), out of
//! agents' and checks' reach.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::build::CheckoutBuilder;
use git2::{Config, ErrorClass, Index, IndexEntry, IndexTime, Oid, Repository, Tree};
use sha2::{Digest as _, Sha256};

use super::filter::Filters;
use super::path_name::name_of;
use super::stat_index::{Entry, Stat, StatIndex};
use super::submodules::{self, Submodule, Submodules};
use super::tracked::{
    Changes, MODE_GITLINK, Tracked, as_path, below, changed_tree, holds, of_tree, read_tree,
};
use super::walk::{ATTRIBUTES, READ_BY_GIT, Walk, grew_beyond, is_endless};
use super::{GitError, Result, tree_diff};
use crate::platform::disk::is_full;
use crate::platform::files;

/// Bytes of a new or changed file at most: what agents leave is read into memory.
const MAX_FILE: u64 = 1 << 30;

/// The repository with `dir` as its working files and an index of its own.
pub(super) fn view(repository: Repository, dir: &Path) -> Result<Repository> {
    repository.set_workdir(dir, false)?;
    repository.set_index(&mut Index::new()?)?;
    Ok(repository)
}

/// Writes the view's working files as a tree: what `base` tracks, and what no ignore rule hides. `seen` is
/// where the look is noted, on the same file system; only what was touched since the last one is read.
pub(super) fn write_tree(
    view: &Repository,
    filters: &Filters,
    base: &Tree<'_>,
    seen: &Path,
) -> Result<Oid> {
    changed_tree(view, base, &look(view, filters, base, seen)?.changes)
}

/// What a look at working files found.
pub(super) struct Look {
    /// What differs from the base.
    pub(super) changes: Changes,
    submodules: Submodules,
}

/// How the view's working files differ from `base`. The objects of what is new are there afterwards.
pub(super) fn look(
    view: &Repository,
    filters: &Filters,
    base: &Tree<'_>,
    seen: &Path,
) -> Result<Look> {
    let tracked = of_tree(base)?;
    // What git makes of a file may depend on what stood there before, and on attributes.
    let mut index = view.index()?;
    index.clear()?;
    let objects = view.odb()?;
    for (path, (id, mode)) in tracked.iter().filter(|(path, _)| is_attributes(path)) {
        if objects.exists(*id) {
            index.add(&plain_entry(path.clone(), *id, *mode))?;
        }
    }
    let submodules = Submodules::of(view, &tracked);
    let old = StatIndex::read(seen);
    // Without a moment no file is known again by its times.
    let before = unless_full(moment(seen))?.unwrap_or_default();
    let mut walk = Walk {
        view,
        tracked: &tracked,
        submodules: &submodules,
        files: BTreeMap::new(),
        attributes: attributes(&tracked),
        refused: Vec::new(),
    };
    if let Some(root) = view.workdir() {
        walk.folder(root, Path::new(""))?;
    }
    let Walk { files, attributes, refused, .. } = walk;
    let mut refused = refused.into_iter();
    if let Some((path, reason)) = refused.next() {
        let others = refused.map(|(path, _)| path).collect();
        return Err(GitError::NotTaken { path, reason, others });
    }
    let (inside, found): (BTreeMap<_, _>, BTreeMap<_, _>) = if submodules.is_empty() {
        (BTreeMap::new(), files)
    } else {
        files.into_iter().partition(|(path, _)| submodules.around(path).is_some())
    };
    let rests_on = rests_on(view, filters, base, &attributes, &submodules)?;
    let is_valid = old.rests_on == rests_on;
    let known = |path: &Vec<u8>, meta: &Metadata| {
        let known = old.entries.get(path);
        known.filter(|it| is_valid && it.stat.is_still(&Stat::of(meta)))
    };
    refuse_inside(view, &submodules, &inside, known)?;
    let gone = tracked
        .iter()
        .filter(|(path, (_, mode))| *mode != MODE_GITLINK && !found.contains_key(*path));
    let mut changes = Changes::new();
    for (path, _) in gone {
        if is_attributes(path) {
            index.remove_path(as_path(path))?;
        }
        changes.insert(path.clone(), None);
    }
    let unknown = found.iter().filter(|(path, meta)| meta.is_file() && known(path, meta).is_none());
    let by_git = filters.chosen(view, unknown.map(|(path, _)| as_path(path)))?;
    let mut as_stored = BTreeSet::new();
    let by_git = match view.workdir().filter(|_| !by_git.is_empty()) {
        Some(dir) => {
            let mut others = Vec::new();
            for path in by_git {
                let bytes = path.as_os_str().as_bytes();
                let (tracked, meta) = (tracked.get(bytes), found.get(bytes));
                match tracked.zip(meta) {
                    // Its filter could not write it otherwise.
                    Some(((id, mode), meta))
                        if is_same_kind(*mode, meta) && lies_as_stored(view, bytes, meta, *id)? =>
                    {
                        as_stored.insert(bytes.to_owned());
                    }
                    Some(_) | None => others.push(path),
                }
            }
            // Git knows a file again by whole seconds: told nothing of these, it reads each.
            let index = index_for_git(base)?;
            filters.clean(view, dir, index, &others)?
        }
        None => BTreeMap::new(),
    };
    let mut new = StatIndex { rests_on, entries: BTreeMap::new() };
    let stat = |meta: &Metadata| {
        if is_before(meta, before) { Stat::of(meta) } else { Stat::default() }
    };
    for (path, meta) in inside {
        if let Some((id, mode)) = submodules.tracked.get(&path).copied() {
            new.entries.insert(path, Entry { id, mode, stat: stat(&meta) });
        }
    }
    for (path, meta) in found {
        let in_base = |it: &&Entry| tracked.get(&path) == Some(&(it.id, it.mode));
        let (id, mode) = match known(&path, &meta) {
            Some(it) if in_base(&it) => (it.id, it.mode),
            // Nothing may hold on to the object but the index of an earlier look.
            Some(it) if objects.exists(it.id) => (it.id, it.mode),
            // Looked at each time: what its filter lacked may be there by then.
            Some(_) | None if as_stored.contains(&path) => continue,
            Some(_) | None if by_git.contains_key(as_path(&path)) => by_git[as_path(&path)],
            Some(_) | None => {
                if grew_beyond(MAX_FILE, &meta, &objects, tracked.get(&path)) {
                    let path = as_path(&path).to_owned();
                    return Err(GitError::FileTooLarge { path, bytes: meta.len() });
                }
                if let Some((id, mode)) = tracked.get(&path).filter(|it| objects.exists(it.0)) {
                    index.add(&plain_entry(path.clone(), *id, *mode))?;
                }
                index.add_path(as_path(&path)).map_err(|error| not_taken(&path, error))?;
                let added = index.get_path(as_path(&path), 0);
                added.map(|it| (it.id, it.mode)).ok_or_else(|| git2::Error::from_str("no entry"))?
            }
        };
        if tracked.get(&path) != Some(&(id, mode)) {
            if is_attributes(&path) {
                index.add(&plain_entry(path.clone(), id, mode))?;
            }
            changes.insert(path.clone(), Some((id, mode)));
        }
        new.entries.insert(path, Entry { id, mode, stat: stat(&meta) });
    }
    if let Some(list) = changes.get(submodules::LIST.as_bytes()) {
        let read = |entry: Option<&(Oid, u32)>| {
            let blob = entry.and_then(|(id, _)| view.find_blob(*id).ok());
            blob.map_or_else(Vec::new, |blob| blob.content().to_vec())
        };
        let before = read(tracked.get(submodules::LIST.as_bytes()));
        let lists = [&before[..], &read(list.as_ref())];
        if let Some(path) = submodules::listed_otherwise(&tracked, &changes, lists) {
            return Err(GitError::SubmoduleList { path });
        }
    }
    if new.rests_on != old.rests_on || new.entries != old.entries {
        unless_full(new.write(seen, before))?;
    }
    Ok(Look { changes, submodules })
}

/// Why a file could not be added, where that is for what it is and not for what happened meanwhile.
fn not_taken(path: &[u8], error: git2::Error) -> GitError {
    if matches!(error.class(), ErrorClass::Index | ErrorClass::Filter) {
        let (path, reason) = (as_path(path).to_owned(), error.message().to_owned());
        GitError::NotTaken { path, reason, others: Vec::new() }
    } else {
        error.into()
    }
}

/// Refuses files in submodules that are not those of their commits. One without any files is one that was not
/// there when its folder was made. `known` tells of a file that was not touched since the last look.
///
/// # Errors
/// [`GitError::InsideSubmodule`].
fn refuse_inside<'k>(
    view: &Repository,
    submodules: &Submodules,
    inside: &BTreeMap<Vec<u8>, Metadata>,
    known: impl Fn(&Vec<u8>, &Metadata) -> Option<&'k Entry>,
) -> Result<()> {
    let mut by_submodule: BTreeMap<&[u8], Vec<(&Vec<u8>, &Metadata)>> = BTreeMap::new();
    for entry in inside {
        if let Some(submodule) = submodules.around(entry.0) {
            by_submodule.entry(&submodule.path).or_default().push(entry);
        }
    }
    for (path, here) in by_submodule {
        let Some(submodule) = submodules.at(path) else { continue };
        let is_here = |path: &[u8]| {
            submodules.around(path).is_some_and(|around| around.path == submodule.path)
        };
        let refusal = |file: &[u8]| GitError::InsideSubmodule {
            path: as_path(&submodule.path).to_owned(),
            file: as_path(file).to_owned(),
        };
        let is_missing = |(path, (_, mode)): &(&Vec<u8>, &(Oid, u32))| {
            *mode != MODE_GITLINK && is_here(path) && !inside.contains_key(*path)
        };
        if let Some((path, _)) = below(&submodules.tracked, &submodule.path).find(is_missing) {
            return Err(refusal(path));
        }
        let unknown = here.iter().filter(|(path, meta)| known(path, meta).is_none());
        for (path, meta) in unknown.clone().filter(|(_, meta)| meta.len() > MAX_FILE) {
            let repository = submodule.repository()?;
            if grew_beyond(MAX_FILE, meta, &repository.odb()?, submodules.tracked.get(*path)) {
                return Err(refusal(path));
            }
        }
        let unknown: Vec<&[u8]> = unknown.filter_map(|(path, _)| submodule.within(path)).collect();
        let read = match view.workdir().filter(|_| !unknown.is_empty()) {
            Some(root) => submodules::ids(&inner(submodule, root)?, submodule.tree, &unknown)?,
            None => BTreeMap::new(),
        };
        for (path, meta) in here {
            let is = match known(path, meta) {
                Some(it) => Some((it.id, it.mode)),
                None => submodule.within(path).and_then(|path| read.get(path).copied()),
            };
            let is_same = match (submodules.tracked.get(path).copied(), is) {
                (Some(wanted), Some(is)) if wanted == is => true,
                (Some((id, mode)), Some((_, is))) if mode == is && meta.is_file() => {
                    lies_as_stored(view, path, meta, id)?
                }
                (Some(_) | None, _) => false,
            };
            if !is_same {
                return Err(refusal(path));
            }
        }
    }
    Ok(())
}

/// Whether a file lies there as git stores it, whatever the rules for its line ends would make of it now.
fn lies_as_stored(view: &Repository, path: &[u8], meta: &Metadata, id: Oid) -> Result<bool> {
    let Some(root) = view.workdir() else { return Ok(false) };
    // A large file is read where it has the size of what is stored; of a submodule's that is not known here.
    let stored = view.odb()?.read_header(id).map(|(size, _)| size);
    if stored.is_ok_and(|size| u64::try_from(size).ok() != Some(meta.size())) {
        return Ok(false);
    }
    let bytes = files::read(&root.join(as_path(path)))?;
    Ok(Oid::hash_object(git2::ObjectType::Blob, &bytes)? == id)
}

/// Whether a file may be executed as its mode in git says.
fn is_same_kind(mode: u32, meta: &Metadata) -> bool {
    meta.is_file() && (meta.permissions().mode() & 0o100 != 0) == (mode & 0o100 != 0)
}

/// A view of a submodule in the folder of a project's files.
fn inner(submodule: &Submodule, root: &Path) -> Result<Repository> {
    view(submodule.repository()?, &submodule.dir(root))
}

/// What the clock of the file system that holds `seen` says.
fn moment(seen: &Path) -> Result<(i64, i64)> {
    let probe = seen.with_extension("now");
    files::write(&probe, "now")?;
    let meta = files::metadata(&probe)?;
    Ok((meta.ctime(), meta.ctime_nsec()))
}

/// What a look notes only saves time: on a full disk it does without.
fn unless_full<T>(noted: Result<T>) -> Result<Option<T>> {
    match noted {
        Ok(noted) => Ok(Some(noted)),
        Err(GitError::File(error)) if is_full(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file was touched last before a moment, so that whatever happens to it later shows.
fn is_before(meta: &Metadata, moment: (i64, i64)) -> bool {
    (meta.ctime(), meta.ctime_nsec()) < moment
}

fn is_attributes(path: &[u8]) -> bool {
    as_path(path).file_name() == Some(OsStr::new(ATTRIBUTES))
}

fn attributes(tracked: &Tracked) -> BTreeMap<Vec<u8>, Oid> {
    let found = tracked.iter().filter(|(path, _)| is_attributes(path));
    found.map(|(path, (id, _))| (path.clone(), *id)).collect()
}

/// What the content of a file as git stores it follows from, beside the file: attributes, settings, and the
/// start of the machine, because after a power failure files need not be what they were.
fn rests_on(
    view: &Repository,
    filters: &Filters,
    base: &Tree<'_>,
    attributes: &BTreeMap<Vec<u8>, Oid>,
    submodules: &Submodules,
) -> Result<[u8; 32]> {
    let mut digest = Sha256::new();
    let mut add = |name: &[u8], value: &[u8]| {
        digest.update(name.len().to_be_bytes());
        digest.update(name);
        digest.update(value.len().to_be_bytes());
        digest.update(value);
    };
    for (path, id) in attributes {
        add(path, id.as_bytes());
    }
    let config = view.config()?.snapshot()?;
    for name in ["autocrlf", "eol", "safecrlf", "filemode", "symlinks"] {
        let value = config.get_string(&format!("core.{name}")).unwrap_or_default();
        if name == "filemode" && config.get_bool("core.filemode").is_ok_and(|set| !set) {
            // Then the kind of a file is the one that it had.
            add(b"base", base.id().as_bytes());
        }
        add(name.as_bytes(), value.as_bytes());
    }
    let named = config.get_path("core.attributesfile").ok();
    let global = Config::find_global()
        .ok()
        .and_then(|path| Some(path.parent()?.join(".config/git/attributes")));
    let xdg = Config::find_xdg().ok().map(|path| path.with_file_name("attributes"));
    let own = Some(view.commondir().join("info/attributes"));
    let system = Some(PathBuf::from("/etc/gitattributes"));
    for path in [named, global, xdg, own, system].into_iter().flatten() {
        if let Ok(bytes) = files::read(&path) {
            add(path.as_os_str().as_bytes(), &bytes);
        }
    }
    for setting in filters.settings(view)? {
        add(b"filter", setting.as_bytes());
    }
    for submodule in submodules.iter() {
        add(&submodule.path, &submodule.settings());
    }
    let boot = files::read(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default();
    add(b"boot", &boot);
    Ok(digest.finalize().into())
}

/// An entry without any marks.
fn plain_entry(path: Vec<u8>, id: Oid, mode: u32) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path,
    }
}

/// The paths of a tree.
pub(super) fn paths(tree: &Tree<'_>) -> Result<Vec<PathBuf>> {
    Ok(of_tree(tree)?.keys().map(|path| as_path(path).to_owned()).collect())
}

/// What lies in a folder beside the files of a tree: the outermost paths, relative to the folder.
pub(super) fn beside(tree: &Tree<'_>, dir: &Path) -> Result<Vec<PathBuf>> {
    let tracked = of_tree(tree)?;
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(at) = folders.pop() {
        for full in files::list(&dir.join(&at))? {
            let Some(name) = full.file_name() else { continue };
            let path = at.join(name);
            let bytes = path.as_os_str().as_bytes();
            if path == Path::new(".git") || tracked.contains_key(bytes) {
                continue;
            }
            let is_folder = files::symlink_metadata(&full)?.is_dir();
            if is_folder && holds(&tracked, bytes) { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// Makes a folder the files of a tree and nothing else, whatever somebody left there. What is known to be
/// untouched since `seen` stays, everything else is removed or written again.
pub(super) fn bring(
    view: &Repository,
    filters: &Filters,
    target: &Tree<'_>,
    dir: &Path,
    seen: &Path,
) -> Result<()> {
    let target = &view.find_tree(target.id())?;
    let mut wanted = of_tree(target)?;
    let submodules = Submodules::of(view, &wanted);
    let mut old = StatIndex::read(seen);
    let rests_on = rests_on(view, filters, target, &attributes(&wanted), &submodules)?;
    if !submodules.is_empty() {
        Arc::make_mut(&mut wanted).extend(submodules.tracked.clone());
    }
    if old.rests_on != rests_on {
        old.entries.clear();
    }
    // Whoever finds the folder half done trusts nothing in it.
    files::remove_file(seen)?;
    let mut kept = BTreeSet::new();
    open_up(dir, &files::symlink_metadata(dir)?)?;
    clear(dir, Path::new(""), &wanted, &old, &mut kept)?;
    know_attributes(view, target)?;
    let own = wanted.keys().filter(|path| submodules.around(path).is_none());
    let filtered = filters.chosen(view, own.map(|path| as_path(path)))?;
    let filtered: BTreeSet<&Path> = filtered.into_iter().collect();
    let objects = view.odb()?;
    for path in kept.clone().iter().filter(|path| !filtered.contains(as_path(path))) {
        let stored = wanted.get(path).and_then(|(id, _)| objects.read_header(*id).ok());
        let full = dir.join(as_path(path));
        let bytes = files::symlink_metadata(&full)?.len();
        // With other line ends git stores the same, though no checkout would write it so.
        if stored.is_some_and(|(size, _)| u64::try_from(size).ok() != Some(bytes)) {
            kept.remove(path);
            files::remove_file(&full)?;
        }
    }
    if kept.is_empty() {
        write_all(view, filters, target, dir)?;
    } else {
        let is_file = |entry: &(&Vec<u8>, &(Oid, u32))| entry.1.1 != MODE_GITLINK;
        let left = wanted.iter().filter(is_file).filter(|(path, _)| !kept.contains(*path));
        let mut write: Vec<&[u8]> = left.map(|(path, _)| &path[..]).collect();
        for submodule in submodules.iter().rev() {
            let (inside, others): (Vec<&[u8]>, Vec<&[u8]>) =
                write.into_iter().partition(|path| submodule.within(path).is_some());
            let inside = inside.iter().filter_map(|path| submodule.within(path));
            write_inside(submodule, dir, &inside.map(as_path).collect::<Vec<_>>())?;
            write = others;
        }
        let write: Vec<&Path> = write.into_iter().map(as_path).collect();
        write_some(view, filters, target, dir, &write)?;
    }
    let now = moment(seen)?;
    let mut new = StatIndex { rests_on, entries: BTreeMap::new() };
    for (path, (id, mode)) in &*wanted {
        // It is as it was.
        if let Some(known) = old.entries.get(path).filter(|_| kept.contains(path)) {
            new.entries.insert(path.clone(), *known);
            continue;
        }
        let full = dir.join(as_path(path));
        if *mode == MODE_GITLINK {
            files::create_dir_all(&full)?;
            continue;
        }
        let meta = files::symlink_metadata(&full)?;
        // What its filter lacked may be there the next time.
        if filtered.contains(as_path(path)) && lies_as_stored(view, path, &meta, *id)? {
            continue;
        }
        let stat = if is_before(&meta, now) { Stat::of(&meta) } else { Stat::default() };
        new.entries.insert(path.clone(), Entry { id: *id, mode: *mode, stat });
    }
    new.write(seen, now)
}

/// Gives a folder the rights back that somebody may have taken from it.
fn open_up(folder: &Path, meta: &Metadata) -> Result<()> {
    let is_usual = meta.permissions().mode() & 0o7700 == 0o700;
    if is_usual { Ok(()) } else { Ok(files::set_mode(folder, 0o755)?) }
}

/// Removes all of a folder that is not known to be as wanted.
fn clear(
    dir: &Path,
    at: &Path,
    wanted: &Tracked,
    old: &StatIndex,
    kept: &mut BTreeSet<Vec<u8>>,
) -> Result<()> {
    for full in files::list(dir)? {
        let Some(name) = full.file_name() else { continue };
        let path = at.join(name);
        let bytes = path.as_os_str().as_bytes();
        let meta = files::symlink_metadata(&full)?;
        if meta.is_dir() && holds(wanted, bytes) {
            open_up(&full, &meta)?;
            clear(&full, &path, wanted, old, kept)?;
            continue;
        }
        let known = old.entries.get(bytes).filter(|it| it.stat.is_still(&Stat::of(&meta)));
        let wanted = wanted.get(bytes);
        // What has another name somewhere may be written there at any time.
        let is_alone = !meta.is_dir() && meta.nlink() == 1;
        if is_alone && known.is_some_and(|it| wanted == Some(&(it.id, it.mode))) {
            kept.insert(bytes.to_vec());
        } else {
            files::remove_any(&full)?;
        }
    }
    Ok(())
}

/// An index for the git program of a folder that is to hold a tree; it has to read each file.
pub(super) fn index_for_git(tree: &Tree<'_>) -> Result<Vec<u8>> {
    known_to_git(tree, &StatIndex::default())
}

/// Writes an index for the git program of a folder that is to hold a tree, with what the last look found there, and
/// of the time of that look: what was written in the same second is read.
pub(super) fn write_index_for_git(tree: &Tree<'_>, seen: &Path, to: &Path) -> Result<()> {
    let index = known_to_git(tree, &StatIndex::read(seen))?;
    match files::metadata(seen) {
        Ok(looked) => {
            let looked = files::at("look at", seen, looked.modified())?;
            Ok(files::write_atomic_dated(to, index, looked)?)
        }
        // Then nothing is known.
        Err(error) if error.is_missing() => Ok(files::write_atomic(to, index)?),
        Err(error) => Err(error.into()),
    }
}

fn known_to_git(tree: &Tree<'_>, known: &StatIndex) -> Result<Vec<u8>> {
    let tracked = of_tree(tree)?;
    let files = tracked.iter().map(|(path, (id, mode))| (path.clone(), *id, *mode));
    Ok(known.for_git(files))
}

/// Writes all of a tree into an empty folder, and its submodules.
pub(super) fn write_all(
    view: &Repository,
    filters: &Filters,
    tree: &Tree<'_>,
    dir: &Path,
) -> Result<()> {
    let all = read_tree(&mut view.index()?, tree)?;
    check_out(view, tree, checkout(dir).recreate_missing(true))?;
    for submodule in Submodules::of(view, &all).iter() {
        write_whole(submodule, dir)?;
    }
    smudge(view, filters, tree, dir, all.keys().map(|path| as_path(path)))
}

/// Writes all of a submodule anew into the folder of a project's files.
fn write_whole(submodule: &Submodule, root: &Path) -> Result<()> {
    let dir = submodule.dir(root);
    make_way(root, as_path(&submodule.path))?;
    files::remove_any(&dir)?;
    files::create_dir_all(&dir)?;
    let view = inner(submodule, root)?;
    let tree = view.find_tree(submodule.tree)?;
    read_tree(&mut view.index()?, &tree)?;
    check_out(&view, &tree, checkout(&dir).recreate_missing(true))
}

/// Writes files of a tree. Where one of them cannot be read, its name is in the error.
fn check_out(view: &Repository, tree: &Tree<'_>, how: &mut CheckoutBuilder<'_>) -> Result<()> {
    let Err(error) = view.checkout_tree(tree.as_object(), Some(how)) else { return Ok(()) };
    let all = of_tree(tree)?;
    let mut files = all.iter().filter(|(_, (_, mode))| *mode != MODE_GITLINK);
    let damaged = files.find(|(_, (id, _))| view.find_blob(*id).is_err());
    let Some((path, (id, _))) = damaged else { return Err(error.into()) };
    Err(GitError::Damaged {
        commit: tree.id().to_string(),
        path: name_of(path),
        object: id.to_string(),
        reason: error.message().to_owned(),
    })
}

/// Writes the named paths of a submodule into the folder of a project's files. No filter is run for them.
fn write_inside(submodule: &Submodule, root: &Path, paths: &[&Path]) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let dir = submodule.dir(root);
    make_way(root, as_path(&submodule.path))?;
    files::create_dir_all(&dir)?;
    let view = inner(submodule, root)?;
    let tree = view.find_tree(submodule.tree)?;
    write_some(&view, &Filters::default(), &tree, &dir, paths)
}

/// Writes files again whose filter may be run.
fn smudge<'p>(
    view: &Repository,
    filters: &Filters,
    tree: &Tree<'_>,
    dir: &Path,
    paths: impl Iterator<Item = &'p Path>,
) -> Result<()> {
    let chosen = filters.chosen(view, paths)?;
    if chosen.is_empty() {
        return Ok(());
    }
    filters.smudge(view, dir, index_for_git(tree)?, &chosen)
}

/// Writes the named paths of a tree into a folder, replacing what is there.
pub(super) fn write_some(
    view: &Repository,
    filters: &Filters,
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
    // It looks below what all of them begin with alone, and takes a backslash in that for an escape: no path begins like
    // this one.
    if paths.iter().any(|path| path.as_os_str().as_bytes().contains(&b'\\')) {
        options.path(".git");
    }
    check_out(view, tree, &mut options)?;
    smudge(view, filters, tree, dir, paths.iter().copied())
}

/// Writes the files of a tree again that lie otherwise in a folder, or are gone from it; what is new there stays, and
/// what is a submodule's. Gives the paths of those that were not as they are now.
pub(super) fn put_back(
    view: &Repository,
    filters: &Filters,
    tree: &Tree<'_>,
    dir: &Path,
    seen: &Path,
) -> Result<Vec<PathBuf>> {
    let (wanted, known) = (of_tree(tree)?, StatIndex::read(seen));
    let above = |path| as_path(path).ancestors().skip(1);
    let folders: BTreeSet<&Path> = wanted.keys().flat_map(|path| above(path)).collect();
    // What lies behind a link lies elsewhere.
    let mut gone = BTreeSet::new();
    for folder in folders {
        if above(folder.as_os_str().as_bytes()).any(|folder| gone.contains(folder)) {
            gone.insert(folder);
            continue;
        }
        let here = dir.join(folder);
        match files::symlink_metadata(&here) {
            Ok(meta) if meta.is_dir() => open_up(&here, &meta)?,
            Ok(_) | Err(_) => {
                gone.insert(folder);
                continue;
            }
        }
        for path in READ_BY_GIT.map(|name| here.join(name)).iter().filter(|path| is_endless(path)) {
            files::remove_file(path)?;
        }
    }
    let mut others = BTreeMap::new();
    for (path, (id, mode)) in wanted.iter().filter(|(_, (_, mode))| *mode != MODE_GITLINK) {
        let full = dir.join(as_path(path));
        let is_here = above(path).all(|folder| !gone.contains(folder));
        let meta = files::symlink_metadata(&full).ok().filter(|_| is_here);
        let is_known = |meta: &Metadata| {
            known.entries.get(path).is_some_and(|it| {
                (it.id, it.mode) == (*id, *mode) && it.stat.is_still(&Stat::of(meta))
            })
        };
        let is_as_stored = |meta: &Metadata| {
            is_same_kind(*mode, meta) && lies_as_stored(view, path, meta, *id).unwrap_or(false)
        };
        match &meta {
            Some(meta) if is_known(meta) || is_as_stored(meta) => {}
            Some(_) | None => {
                let before = meta.filter(|it| is_same_kind(*mode, it) || it.is_symlink());
                let before = before.and_then(|it| digest_of(&full, &it).ok());
                others.insert(as_path(path), before);
            }
        }
    }
    for path in others.keys() {
        make_way(dir, path)?;
        files::remove_any(&dir.join(path))?;
    }
    let paths: Vec<&Path> = others.keys().copied().collect();
    write_some(view, filters, tree, dir, &paths)?;
    let mut changed = Vec::new();
    for (path, before) in others {
        let full = dir.join(path);
        let now = digest_of(&full, &files::symlink_metadata(&full)?)?;
        if before.is_none_or(|before| before != now) {
            changed.push(path.to_owned());
        }
    }
    Ok(changed)
}

/// The digest of what a file holds, or of where a link leads; the same for all files that are too large to be read.
fn digest_of(full: &Path, meta: &Metadata) -> Result<Oid> {
    let bytes = match meta.is_symlink() {
        true => files::read_link(full)?.into_os_string().into_encoded_bytes(),
        false if meta.len() > MAX_FILE => Vec::new(),
        false => files::read(full)?,
    };
    Ok(Oid::hash_object(git2::ObjectType::Blob, &bytes)?)
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
pub(super) fn reset(
    view: &Repository,
    filters: &Filters,
    base: &Tree<'_>,
    target: &Tree<'_>,
    seen: &Path,
) -> Result<()> {
    let Some(root) = view.workdir().map(Path::to_owned) else {
        return Ok(());
    };
    let mut known = base;
    // A changed ignore file hides or shows other files, so the second look may find more to do.
    for _ in 0..4 {
        let found = write_settled(view, filters, known, seen)?;
        if found == target.id() {
            return Ok(());
        }
        let wanted = of_tree(target)?;
        let found = view.find_tree(found)?;
        let (gone, write) = tree_diff::paths_between(view, &found, target)?;
        for path in &gone {
            // A folder can only be a submodule's.
            make_way(&root, path)?;
            if is_folder(&root.join(path)) {
                files::remove_any(&root.join(path))?;
            }
            remove(&root, path)?;
        }
        let is_link = |path: &&PathBuf| {
            let there = wanted.get(path.as_os_str().as_bytes());
            there.is_some_and(|(_, mode)| *mode == MODE_GITLINK)
        };
        let (links, write): (Vec<&PathBuf>, Vec<&PathBuf>) = write.iter().partition(is_link);
        for path in links {
            make_way(&root, path)?;
            files::remove_any(&root.join(path))?;
            files::create_dir_all(&root.join(path))?;
        }
        for path in &write {
            make_way(&root, path)?;
        }
        let write: Vec<&Path> = write.into_iter().map(PathBuf::as_path).collect();
        write_some(view, filters, target, &root, &write)?;
        known = target;
    }
    Err(GitError::Unsteady { path: root })
}

/// [`write_tree`] where nobody is at work: what was changed in submodules and their list is put back, of repositories that were made
/// inside goes what makes them some, and files go that are too large to be read or that git does not take.
pub(super) fn write_settled(
    view: &Repository,
    filters: &Filters,
    base: &Tree<'_>,
    seen: &Path,
) -> Result<Oid> {
    let mut is_filled = false;
    let mut put_back = BTreeSet::new();
    loop {
        match (look(view, filters, base, seen), view.workdir()) {
            (Err(GitError::InsideSubmodule { path, .. }), Some(root)) => {
                make_way(root, &path)?;
                files::remove_any(&root.join(path))?;
            }
            // The commit has it so, and git takes it from nobody.
            (Err(GitError::NotTaken { path, reason, others }), _) if put_back.contains(&path) => {
                return Err(GitError::NotTaken { path, reason, others });
            }
            (Err(GitError::FileTooLarge { path, .. }), Some(root)) => {
                write_anew(view, filters, base, root, &path)?;
                put_back.insert(path);
            }
            (Err(GitError::NotTaken { path, others, .. }), Some(root)) => {
                for path in others.into_iter().chain([path]) {
                    write_anew(view, filters, base, root, &path)?;
                    put_back.insert(path);
                }
            }
            (Err(GitError::SubmoduleList { .. }), Some(root)) => {
                let list = Path::new(submodules::LIST);
                files::remove_any(&root.join(list))?;
                if base.get_path(list).is_ok() {
                    write_some(view, filters, base, root, &[list])?;
                }
            }
            (Err(GitError::NestedRepository { path }), Some(root)) => {
                files::remove_any(&root.join(path).join(".git"))?;
            }
            (Ok(found), Some(root)) if !is_filled && fill(&found, root)? => {
                is_filled = true;
            }
            (found, _) => return changed_tree(view, base, &found?.changes),
        }
    }
}

/// Removes what stands at a path, and writes what the base has there.
fn write_anew(
    view: &Repository,
    filters: &Filters,
    base: &Tree<'_>,
    root: &Path,
    path: &Path,
) -> Result<()> {
    files::remove_any(&root.join(path))?;
    if base.get_path(path).is_ok() {
        write_some(view, filters, base, root, &[path])?;
    }
    Ok(())
}

/// Writes the submodules of which nothing is there, nor a file in the place of a folder that they need, and says whether
/// there were any.
fn fill(Look { changes, submodules }: &Look, root: &Path) -> Result<bool> {
    let mut is_written = false;
    let is_blocked = |submodule: &&Submodule| {
        let mut above = as_path(&submodule.path).ancestors().skip(1);
        above.any(|at| changes.get(at.as_os_str().as_bytes()).is_some_and(Option::is_some))
    };
    for submodule in submodules.iter().filter(|it| !is_blocked(it)) {
        make_way(root, as_path(&submodule.path))?;
        let is_there = |(path, (_, mode)): (&Vec<u8>, &(Oid, u32))| {
            *mode != MODE_GITLINK && files::symlink_metadata(&root.join(as_path(path))).is_ok()
        };
        if !below(&submodules.tracked, &submodule.path).any(is_there) {
            write_whole(submodule, root)?;
            is_written = true;
        }
    }
    Ok(is_written)
}

/// Whether a folder lies there, and no link.
fn is_folder(path: &Path) -> bool {
    files::symlink_metadata(path).is_ok_and(|found| found.is_dir())
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
