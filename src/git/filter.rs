//! Files that git stores otherwise than they lie in a folder: those with a filter in git's attributes. A filter is a
//! program that the person's git settings name. It is run by git itself, and only where the configuration allows
//! its name; other files lie in our folders as git stores them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::{AttrCheckFlags, AttrValue, Index, IndexEntry, IndexEntryExtendedFlag, Oid, Repository};

use super::path_name::path_of;
use super::{GitError, Result, program};
use crate::platform::files;

/// The attribute with which git converts without any program, and the name by which it is allowed.
const ENCODING: &str = "working-tree-encoding";

/// The filters that may be run.
#[derive(Debug, Clone, Default)]
pub(super) struct Filters {
    allowed: BTreeSet<String>,
    common: PathBuf,
    /// Whether what a filter cannot write is an error where the person's settings say so.
    is_strict: bool,
}

/// The filter of a path by the attributes of a view.
pub(super) fn of(view: &Repository, path: &Path) -> Result<Option<String>> {
    for name in ["filter", ENCODING] {
        let value = view.get_attr(path, name, AttrCheckFlags::FILE_THEN_INDEX)?;
        match AttrValue::from_string(value) {
            AttrValue::String(value) => {
                return Ok(Some(if name == ENCODING { name } else { value }.to_owned()));
            }
            AttrValue::True | AttrValue::False | AttrValue::Bytes(_) | AttrValue::Unspecified => {}
        }
    }
    Ok(None)
}

impl Filters {
    /// What they are called.
    pub(super) const fn names(&self) -> &BTreeSet<String> {
        &self.allowed
    }

    pub(super) fn new(common: &Path, allowed: BTreeSet<String>) -> Filters {
        Filters { allowed, common: common.to_owned(), is_strict: false }
    }

    /// The same for a person's checkout, where nothing takes the place of a file but the file.
    pub(super) fn strict(&self) -> Filters {
        Filters { is_strict: true, ..self.clone() }
    }

    /// Whether a filter may be run.
    pub(super) fn allow(&self, name: &str) -> bool {
        self.allowed.contains(name)
    }

    /// What of the settings the content of files follows from.
    pub(super) fn settings(&self, view: &Repository) -> Result<Vec<String>> {
        let config = view.config()?.snapshot()?;
        let mut found: Vec<String> = self.allowed.iter().cloned().collect();
        for name in &self.allowed {
            for key in ["clean", "smudge", "process"] {
                found.extend(config.get_string(&format!("filter.{name}.{key}")));
            }
        }
        Ok(found)
    }

    /// Those of some paths whose filter may be run.
    pub(super) fn chosen<'p>(
        &self,
        view: &Repository,
        paths: impl Iterator<Item = &'p Path>,
    ) -> Result<Vec<&'p Path>> {
        let mut chosen = Vec::new();
        if self.allowed.is_empty() {
            return Ok(chosen);
        }
        for path in paths {
            if of(view, path)?.is_some_and(|name| self.allow(&name)) {
                chosen.push(path);
            }
        }
        Ok(chosen)
    }

    /// The ids and modes of files as git would store them. `index` is one of git's for the folder.
    pub(super) fn clean(
        &self,
        view: &Repository,
        dir: &Path,
        index: Vec<u8>,
        paths: &[&Path],
    ) -> Result<BTreeMap<PathBuf, (Oid, u32)>> {
        let mut found = BTreeMap::new();
        if paths.is_empty() {
            return Ok(found);
        }
        let add = ["update-index", "--add", "--replace", "-z", "--stdin"];
        let scratch = self.run(view, dir, index, (&add, &[]), paths)?;
        let index = Index::open(scratch.path())?;
        for path in paths {
            if let Some(entry) = index.get_path(path, 0) {
                found.insert(path.to_path_buf(), (entry.id, entry.mode));
            }
        }
        Ok(found)
    }

    /// Writes files as they are to lie in a folder. `index` is one of git's for the folder. What a filter cannot write,
    /// such as a large file that was not fetched, lies there as git stores it, unless the filters are strict.
    pub(super) fn smudge(
        &self,
        view: &Repository,
        dir: &Path,
        index: Vec<u8>,
        paths: &[&Path],
    ) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let write = ["checkout-index", "-f", "-z", "--stdin"];
        let lenient = self.allowed.iter().filter(|_| !self.is_strict);
        let lenient: Vec<String> =
            lenient.map(|name| format!("filter.{name}.required=false")).collect();
        self.run(view, dir, index, (&write, &lenient), paths).map(|_| ())
    }

    fn run(
        &self,
        view: &Repository,
        dir: &Path,
        index: Vec<u8>,
        (arguments, more_settings): (&[&str], &[String]),
        paths: &[&Path],
    ) -> Result<Scratch> {
        let scratch = Scratch::new(&self.common)?;
        files::write(scratch.path(), index)?;
        // No other filter is run, whatever the attributes say to git.
        let mut settings = more_settings.to_vec();
        let config = view.config()?.snapshot()?;
        let mut entries = config.entries(Some("^filter[.].*[.](clean|smudge|process)$"))?;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Ok(key) = entry.name() else { continue };
            let name = key.strip_prefix("filter.").and_then(|rest| Some(rest.rsplit_once('.')?.0));
            if !name.is_some_and(|name| self.allow(name)) {
                settings.push(format!("{key}="));
            }
        }
        let list = paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat());
        let more = [
            ("GIT_WORK_TREE", dir.as_os_str().to_owned()),
            ("GIT_INDEX_FILE", scratch.path().as_os_str().to_owned()),
        ];
        program::git(&self.common, dir, &settings, arguments, &more, list.collect())?;
        Ok(scratch)
    }
}

/// A file of an index that git works with for a moment.
struct Scratch(PathBuf);

impl Scratch {
    fn new(common: &Path) -> Result<Scratch> {
        let folder = common.join("teams");
        files::create_dir_all(&folder)?;
        Ok(Scratch(folder.join(format!("index-{}", crate::platform::ids::uuid_v7()))))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut lock = self.0.clone().into_os_string();
        lock.push(".lock");
        for path in [self.0.as_path(), Path::new(&lock)] {
            if let Err(error) = files::remove_file(path) {
                tracing::warn!(%error, "an index of ours stays behind");
            }
        }
    }
}

/// Refuses a changed path whose filter may not be run: what was written there is not what git would store.
pub(super) fn refuse(view: &Repository, filters: &Filters, path: &str) -> Result<()> {
    match of(view, &path_of(path))? {
        Some(filter) if !filters.allow(&filter) => {
            Err(GitError::Filtered { path: path.to_owned(), filter })
        }
        Some(_) | None => Ok(()),
    }
}

/// The content of a file as a person's index has it, where the file was not touched since. What git itself goes by.
pub(super) fn untouched(index: &Index, path: &Path, meta: &Metadata) -> Option<(Oid, u32)> {
    let entry = index.get_path(path, 0)?;
    let written = (i64::from(entry.mtime.seconds()), i64::from(entry.mtime.nanoseconds()));
    let is_same = written == (meta.mtime(), meta.mtime_nsec())
        && u64::from(entry.file_size) == meta.size() & 0xffff_ffff;
    is_same.then_some((entry.id, entry.mode))
}

/// Whether a sparse checkout leaves a path out.
pub(super) fn is_left_out(entry: &IndexEntry) -> bool {
    IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended)
        .contains(IndexEntryExtendedFlag::SKIP_WORKTREE)
}
