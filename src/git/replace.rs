//! Moving a checked-out branch's files and index from one commit to another without touching anything that
//! a person has changed.
//!
//! Every path that differs is either still at the old content, already at the new one (after a crash), or
//! somebody's. Files are staged and synced beside the objects and then renamed into place, so a crash leaves
//! whole files only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Delta, DiffOptions, Index, IndexEntry, IndexTime, Repository, Tree};

use super::path_name::{name_of, path_of};
use super::tracked::open_index;
use super::{GitError, Project, Result, content, filter, tree_diff};
use crate::domain::evidence::{ChangeKind, ChangedPath};
use crate::platform::disk::{Disk as _, RealDisk};
use crate::platform::files;

/// The working files of a branch and how far they are on the way to the new commit.
pub(super) struct Move<'p> {
    project: &'p Project,
    git_dir: PathBuf,
    root: PathBuf,
    view: Repository,
    old: git2::Oid,
    new: git2::Oid,
    changes: Vec<ChangedPath>,
}

/// What stands in the way, and what is still at the old content.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Paths that hold something of a person's.
    pub(super) edited: BTreeSet<String>,
    /// With the marks of what lay there before it was read.
    old: BTreeMap<String, Mark>,
    staged: BTreeSet<String>,
}

/// Device, inode, time of modification and size of a file; nothing where none lies.
type Mark = Option<(u64, u64, (i64, i64), u64)>;

impl<'p> Move<'p> {
    /// A move of the checkout at `root` (git folder `git_dir`) between two trees.
    pub(super) fn new(
        project: &'p Project,
        git_dir: PathBuf,
        root: PathBuf,
        old: &Tree<'_>,
        new: &Tree<'_>,
    ) -> Result<Self> {
        let view = content::view(project.repository()?, &root)?;
        let changes = tree_diff::changes(&view, &view.find_tree(old.id())?, new)?;
        Ok(Self { project, git_dir, root, old: old.id(), new: new.id(), view, changes })
    }

    /// Looks at every path that differs, in the working files and in the index.
    pub(super) fn survey(&self) -> Result<Survey> {
        let mut survey = Survey::default();
        if self.changes.is_empty() {
            return Ok(survey);
        }
        let marks: BTreeMap<&str, Mark> =
            self.changes.iter().map(|changed| (&*changed.path, self.mark(&changed.path))).collect();
        let from_old = self.differing(self.old)?;
        let from_new = self.differing(self.new)?;
        let left_out = self.left_out()?;
        let old = self.view.find_tree(self.old)?;
        // What lies in a repository of the person's own is not told of where the tree has nothing there.
        let is_theirs =
            |path: &str| old.get_path(&path_of(path)).is_err() && self.mark(path).is_some();
        for changed in &self.changes {
            let path = changed.path.as_str();
            if !from_new.contains_key(path) || left_out.contains(path) {
                continue;
            }
            if !from_old.contains_key(path) && !is_theirs(path) {
                survey.old.insert(path.to_owned(), marks[path]);
            } else {
                survey.edited.insert(path.to_owned());
            }
        }
        let written: BTreeSet<&str> = self.written().map(|changed| &*changed.path).collect();
        for (found, on_disk) in &from_new {
            if *on_disk && !self.is_changed(found) && folders(found).any(|at| written.contains(at))
            {
                survey.edited.insert(found.clone());
            }
        }
        for path in written {
            self.look_at_folders(path, &mut survey);
        }
        self.look_at_index(&mut survey)?;
        Ok(survey)
    }

    /// Writes the new content aside and syncs it.
    pub(super) fn stage(&self) -> Result<()> {
        let stage = self.stage_dir()?;
        files::remove_dir_all(&stage)?;
        files::create_dir_all(&stage)?;
        let write: Vec<PathBuf> = self.written().map(|changed| path_of(&changed.path)).collect();
        let write: Vec<&Path> = write.iter().map(PathBuf::as_path).collect();
        let new = self.view.find_tree(self.new)?;
        content::write_some(&self.view, &self.project.filters().strict(), &new, &stage, &write)?;
        let written = self.written().map(|changed| changed.path.as_str());
        sync_below(&stage, written.collect())?;
        Ok(files::sync_dir(&self.project.private_dir()?)?)
    }

    fn mark(&self, path: &str) -> Mark {
        use std::os::unix::fs::MetadataExt as _;
        let lies = |at: &str| files::symlink_metadata(&self.root.join(path_of(at))).ok();
        // Nothing lies below what is a link.
        folders(path).all(|at| lies(at).is_some_and(|it| it.is_dir())).then_some(())?;
        let found = lies(path)?;
        let modified = (found.mtime(), found.mtime_nsec());
        (!found.is_dir()).then(|| (found.dev(), found.ino(), modified, found.size()))
    }

    /// Refuses to begin where a folder that files have to be put into or taken out of cannot be written.
    ///
    /// # Errors
    /// [`GitError::ReadOnly`].
    pub(super) fn refuse_read_only(&self, survey: &Survey) -> Result<()> {
        use rustix::fs::Access;
        for path in survey.old.keys() {
            let there = folders(path).map(|at| self.root.join(path_of(at)));
            let is_folder = |at: &PathBuf| files::symlink_metadata(at).is_ok_and(|it| it.is_dir());
            let there = there.take_while(is_folder).last();
            let folder = there.unwrap_or_else(|| self.root.clone());
            let access = rustix::fs::access(&folder, Access::WRITE_OK | Access::EXEC_OK);
            access.map_err(|error| GitError::ReadOnly {
                path: folder,
                reason: std::io::Error::from(error).to_string(),
            })?;
        }
        Ok(())
    }

    /// Moves what is still old to the new content, then the index, and makes both durable. What somebody saved since
    /// the survey counts as edited.
    pub(super) fn finish(&self, survey: &mut Survey) -> Result<()> {
        let stage = self.stage_dir()?;
        let is_still = |survey: &mut Survey, path: &String| match survey.old.get(path) {
            Some(mark) if *mark == self.mark(path) => true,
            Some(_) => {
                survey.edited.insert(path.clone());
                false
            }
            None => false,
        };
        for changed in &self.changes {
            if changed.kind == ChangeKind::Deleted && is_still(survey, &changed.path) {
                content::remove(&self.root, &path_of(&changed.path))?;
            }
        }
        let mut placed = BTreeMap::new();
        for changed in self.written() {
            if is_still(survey, &changed.path) {
                let path = path_of(&changed.path);
                let target = self.root.join(&path);
                if let Some(folder) = target.parent() {
                    files::create_dir_all(folder)?;
                }
                files::remove_dir_if_empty(&target)?;
                place(&stage.join(&path), &target)?;
                // Whoever saves the file from here on has changed it.
                placed.insert(changed.path.as_str(), files::symlink_metadata(&target)?);
            }
        }
        sync_below(&self.root, self.changes.iter().map(|changed| changed.path.as_str()).collect())?;
        self.move_index(survey, &placed)?;
        Ok(files::remove_dir_all(&stage)?)
    }

    /// The paths that a move which was cut off has left as they were, where somebody has gone on from its commit since:
    /// nobody else knows of them. Forgets the move.
    pub(super) fn abandon(&self) -> Result<Vec<String>> {
        if !files::exists(&self.stage_dir()?) {
            return Ok(Vec::new());
        }
        let survey = self.survey()?;
        self.unstage()?;
        Ok(survey.old.into_keys().collect())
    }

    /// Removes what [`Move::stage`] wrote.
    pub(super) fn unstage(&self) -> Result<()> {
        Ok(files::remove_dir_all(&self.stage_dir()?)?)
    }

    fn stage_dir(&self) -> Result<PathBuf> {
        Ok(self.project.private_dir()?.join(format!("stage-{}", self.new)))
    }

    fn written(&self) -> impl Iterator<Item = &ChangedPath> {
        self.changes.iter().filter(|changed| changed.kind != ChangeKind::Deleted)
    }

    fn is_changed(&self, path: &str) -> bool {
        self.changes.binary_search_by(|changed| changed.path.as_str().cmp(path)).is_ok()
    }

    /// The paths at or below ours whose working content is not the tree's, and whether something is there.
    fn differing(&self, tree: git2::Oid) -> Result<BTreeMap<String, bool>> {
        let mut options = DiffOptions::new();
        options
            .disable_pathspec_match(true)
            .include_typechange(true)
            .include_untracked(true)
            .recurse_untracked_dirs(true)
            .include_ignored(true)
            .recurse_ignored_dirs(true);
        for changed in &self.changes {
            options.pathspec(path_of(&changed.path));
        }
        let tree = self.view.find_tree(tree)?;
        content::know_attributes(&self.view, &tree)?;
        let diff = self.view.diff_tree_to_workdir(Some(&tree), Some(&mut options))?;
        let mut found = BTreeMap::new();
        for delta in diff.deltas() {
            let gone = delta.status() == Delta::Deleted;
            let file = if gone { delta.old_file() } else { delta.new_file() };
            let path = name_of(file.path_bytes().unwrap_or_default());
            found.insert(path.trim_end_matches('/').to_owned(), !gone);
        }
        self.look_through_filters(&tree, &mut found)?;
        Ok(found)
    }

    /// Judges files that lie there otherwise than git stores them: by their filter where it may be run, else by
    /// what the person's own index says.
    fn look_through_filters(
        &self,
        tree: &Tree<'_>,
        found: &mut BTreeMap<String, bool>,
    ) -> Result<()> {
        let filters = self.project.filters();
        let index = open_index(&self.git_dir.join("index"))?;
        for changed in &self.changes {
            let path = &path_of(&changed.path);
            let Some(name) = filter::of(&self.view, path)? else { continue };
            let meta = files::symlink_metadata(&self.root.join(path)).ok();
            let Some(meta) = meta.filter(|meta| meta.is_file()) else { continue };
            let now = if filters.allow(&name) {
                let of_tree = content::index_for_git(tree)?;
                filters.clean(&self.view, &self.root, of_tree, &[path])?.remove(path)
            } else {
                filter::untouched(&index, path, &meta)
            };
            let stored = tree.get_path(path).ok().map(|entry| (entry.id(), mode_of(&entry)));
            if now.is_some() && now == stored {
                found.remove(&changed.path);
            } else {
                found.insert(changed.path.clone(), true);
            }
        }
        Ok(())
    }

    /// The paths that a sparse checkout leaves out: the index has them, or leaves out all that lies beside them, and nothing
    /// lies there.
    fn left_out(&self) -> Result<BTreeSet<String>> {
        let index = open_index(&self.git_dir.join("index"))?;
        let paths = self.changes.iter().map(|changed| &changed.path);
        let left_out = paths.filter(|path| {
            let path = path_of(path);
            left_out_as(&index, &path).is_some() && !files::exists(&self.root.join(path))
        });
        Ok(left_out.cloned().collect())
    }

    /// A file or link where a folder is needed is somebody's, unless it is ours to delete.
    fn look_at_folders(&self, path: &str, survey: &mut Survey) {
        for folder in folders(path) {
            let Ok(found) = files::symlink_metadata(&self.root.join(path_of(folder))) else {
                continue;
            };
            if !found.is_dir() && !survey.old.contains_key(folder) {
                survey.edited.insert(folder.to_owned());
            }
        }
    }

    fn look_at_index(&self, survey: &mut Survey) -> Result<()> {
        let index = open_index(&self.git_dir.join("index"))?;
        let (old, new) = (self.view.find_tree(self.old)?, self.view.find_tree(self.new)?);
        for changed in &self.changes {
            let path = &path_of(&changed.path);
            let staged = index.get_path(path, 0).map(|entry| (entry.id, entry.mode));
            let unmerged = (1..=3).any(|stage| index.get_path(path, stage).is_some());
            let ours = [&old, &new].into_iter().any(|tree| {
                let entry = tree.get_path(path).ok();
                // A folder at that path is no index entry.
                let entry = entry.filter(|entry| entry.kind() == Some(git2::ObjectType::Blob));
                entry.map(|entry| (entry.id(), u32::try_from(entry.filemode()).unwrap_or(0)))
                    == staged
            });
            if unmerged || !ours {
                survey.staged.insert(changed.path.clone());
            }
        }
        let written: BTreeSet<&str> = self.written().map(|changed| &*changed.path).collect();
        for entry in index.iter() {
            let path = name_of(&entry.path);
            if !self.is_changed(&path) && folders(&path).any(|at| written.contains(at)) {
                survey.staged.insert(path);
            }
        }
        survey.edited.extend(survey.staged.iter().cloned());
        Ok(())
    }

    /// Replaces the index by a copy in which our paths are at the new content, with the times and sizes of what was
    /// placed: git reads the others. The copy keeps the time of the index, so that git reads also what was saved in
    /// the second of its entry. The caller holds its lock.
    fn move_index(&self, survey: &Survey, placed: &BTreeMap<&str, Metadata>) -> Result<()> {
        let (current, next) = (self.git_dir.join("index"), self.git_dir.join("index.teams"));
        // A crash while libgit2 wrote the copy leaves its lock; the real index's lock is ours by now.
        files::remove_file(&self.git_dir.join("index.teams.lock"))?;
        files::copy(&current, &next)?;
        let looked = files::at("look at", &current, files::metadata(&current)?.modified())?;
        let mut index = open_index(&next)?;
        let new = self.view.find_tree(self.new)?;
        for changed in &self.changes {
            if survey.staged.contains(&changed.path) {
                continue;
            }
            let path = &path_of(&changed.path);
            match changed.kind {
                ChangeKind::Deleted => {
                    if index.get_path(path, 0).is_some() {
                        index.remove(path, 0)?;
                    }
                }
                ChangeKind::Added | ChangeKind::Modified => {
                    let entry = new.get_path(path)?;
                    let on_disk = placed.get(changed.path.as_str());
                    let old = left_out_as(&index, path).filter(|_| on_disk.is_none());
                    let mut entry = index_entry(path, &entry, on_disk);
                    if let Some(old) = old {
                        (entry.flags, entry.flags_extended) = (old.flags, old.flags_extended);
                    }
                    index.add(&entry)?;
                }
            }
        }
        index.write()?;
        drop(index);
        files::set_modified(&next, looked)?;
        files::sync_file(&next)?;
        files::rename(&next, &current)?;
        Ok(files::sync_dir(&self.git_dir)?)
    }
}

/// Makes these paths below a folder durable: what lies there, and that others are gone. Nothing is opened through a
/// link, and what is no folder any more is a name in the one above it.
fn sync_below(root: &Path, paths: Vec<&str>) -> Result<()> {
    let meta = |path: &str| files::symlink_metadata(&root.join(path_of(path))).ok();
    let mut above: BTreeSet<&str> = BTreeSet::new();
    let mut lie = Vec::new();
    for path in paths {
        let is_folder = |folder: &&str| meta(folder).is_some_and(|meta| meta.is_dir());
        let real: Vec<&str> = folders(path).take_while(is_folder).collect();
        // A link has no bytes: it is there with its name.
        if real.len() == folders(path).count() && meta(path).is_some_and(|meta| meta.is_file()) {
            lie.push(root.join(path_of(path)));
        }
        above.extend(real);
    }
    let above: Vec<PathBuf> =
        above.into_iter().chain([""]).map(|it| root.join(path_of(it))).collect();
    Ok(RealDisk.sync_many(root, &lie, &above)?)
}

fn mode_of(entry: &git2::TreeEntry<'_>) -> u32 {
    u32::try_from(entry.filemode()).unwrap_or(0)
}

/// The folders that a path lies in.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// An index entry; with the times and sizes of a file that holds that content, so that git need not read it.
fn index_entry(path: &Path, entry: &git2::TreeEntry<'_>, found: Option<&Metadata>) -> IndexEntry {
    use std::os::unix::fs::MetadataExt as _;
    // Git keeps the low 32 bits of each of these.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the index format cuts them"
    )]
    let low = |value: i64| value as u32;
    let time = |seconds: i64, nanos: i64| {
        IndexTime::new(i32::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0))
    };
    let stat = |pick: fn(&Metadata) -> u64| found.map_or(0, |found| low(pick(found).cast_signed()));
    IndexEntry {
        ctime: found.map_or(IndexTime::new(0, 0), |f| time(f.ctime(), f.ctime_nsec())),
        mtime: found.map_or(IndexTime::new(0, 0), |f| time(f.mtime(), f.mtime_nsec())),
        dev: stat(|f| f.dev()),
        ino: stat(|f| f.ino()),
        mode: u32::try_from(entry.filemode()).unwrap_or(0o100_644),
        uid: stat(|f| f.uid().into()),
        gid: stat(|f| f.gid().into()),
        file_size: stat(|f| f.size()),
        id: entry.id(),
        flags: 0,
        flags_extended: 0,
        path: path.as_os_str().as_bytes().to_vec(),
    }
}

/// Renames a staged file into place; across file systems by a copy beside the target.
fn place(staged: &Path, target: &Path) -> Result<()> {
    match files::rename(staged, target) {
        Err(error) if error.source.kind() == std::io::ErrorKind::CrossesDevices => {
            let mut name = std::ffi::OsString::from(".");
            name.push(target.file_name().unwrap_or_default());
            name.push(".teams-new");
            let beside = target.with_file_name(name);
            files::remove_any(&beside)?;
            files::copy_any(staged, &beside)?;
            Ok(files::rename(&beside, target)?)
        }
        result => result.map_err(GitError::File),
    }
}

/// The entry of a path that a sparse checkout leaves out; of a new one an entry beside it, where all that lies in its folder
/// is left out.
fn left_out_as(index: &Index, path: &Path) -> Option<IndexEntry> {
    if let Some(entry) = index.get_path(path, 0) {
        return filter::is_left_out(&entry).then_some(entry);
    }
    for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        let start = [folder.as_os_str().as_bytes(), b"/"].concat();
        let mut beside = index.iter().filter(|entry| entry.path.starts_with(&start));
        if let Some(first) = beside.next() {
            let all =
                filter::is_left_out(&first) && beside.all(|entry| filter::is_left_out(&entry));
            return all.then_some(first);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::create;

    #[test]
    fn what_is_saved_after_the_survey_is_somebodys() {
        let home = tempfile::tempdir().unwrap();
        let root = files::canonicalize(home.path()).unwrap();
        let put = |name: &str, text: &str| files::write(&root.join(name), text).unwrap();
        for name in ["changed", "gone", "saved", "saved-gone"] {
            put(name, "old");
        }
        create::create(&root, "main", "first").unwrap();
        let project = Project::open(&root, "main").unwrap();
        let repository = project.repository().unwrap();
        let old = repository.find_commit(project.head().unwrap().0).unwrap().tree().unwrap();
        let mut new = repository.treebuilder(Some(&old)).unwrap();
        let blob = repository.blob(b"new").unwrap();
        for name in ["changed", "saved", "come", "saved-new"] {
            new.insert(name, blob, 0o100_644).unwrap();
        }
        new.remove("gone").unwrap();
        new.remove("saved-gone").unwrap();
        let new = repository.find_tree(new.write().unwrap()).unwrap();
        let change = Move::new(&project, root.join(".git"), root.clone(), &old, &new).unwrap();
        change.stage().unwrap();
        let mut survey = change.survey().unwrap();
        assert_eq!(survey.edited, BTreeSet::new());
        let theirs = ["saved", "saved-gone", "saved-new"];
        for name in theirs {
            put(name, "somebody's");
        }
        change.finish(&mut survey).unwrap();
        let lie = |name: &str| files::read_text_if_present(&root.join(name)).unwrap();
        for (name, text) in [("changed", Some("new")), ("come", Some("new")), ("gone", None)] {
            assert_eq!(lie(name).as_deref(), text, "{name}");
        }
        for name in theirs {
            assert_eq!(lie(name).as_deref(), Some("somebody's"), "{name}");
            assert!(survey.edited.contains(name), "{name}");
        }
        assert_eq!(survey.edited.len(), theirs.len());
        // The index is at the new commit, so what somebody saved shows as a change of theirs.
        let index = open_index(&root.join(".git/index")).unwrap();
        let staged = |name: &str| index.get_path(Path::new(name), 0).map(|entry| entry.id);
        assert_eq!((staged("saved"), staged("saved-gone")), (Some(blob), None));
    }
}
