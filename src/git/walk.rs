//! The files below a folder that count for git, as they lie there.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use git2::{Odb, Oid, Repository};

use super::submodules::Submodules;
use super::tracked::{MODE_GITLINK, Tracked, holds};
use super::{GitError, Result};
use crate::platform::files;

pub(super) const ATTRIBUTES: &str = ".gitattributes";
const IGNORE: &str = ".gitignore";
/// Folders in each other at most: what goes over a tree, here and in others' programs, keeps its place on a stack.
const MAX_DEPTH: usize = 128;
/// Bytes of a path in the project at most: with the folder of the project before it, it has to have fewer than 4,096.
const MAX_PATH: usize = 3_000;
/// Files that git reads as they lie in a folder, wherever a link there leads.
pub(super) const READ_BY_GIT: [&str; 2] = [ATTRIBUTES, IGNORE];
/// Bytes of one of them at most, where the project has none that is larger.
const MAX_READ_BY_GIT: u64 = 1 << 20;

/// The files that count below the root of a view.
pub(super) struct Walk<'a> {
    pub(super) view: &'a Repository,
    pub(super) tracked: &'a Tracked,
    pub(super) submodules: &'a Submodules,
    pub(super) files: BTreeMap<Vec<u8>, Metadata>,
    pub(super) attributes: BTreeMap<Vec<u8>, Oid>,
    /// What nobody could read to its end, with the reasons; the walk passes it over.
    pub(super) refused: Vec<(PathBuf, String)>,
}

impl<'a> Walk<'a> {
    /// What the project, or the submodule around it, has at a path.
    fn tracked_at(&self, path: &[u8]) -> Option<&'a (Oid, u32)> {
        let of_submodule = self.submodules.around(path).map(|_| &self.submodules.tracked);
        of_submodule.unwrap_or(self.tracked).get(path)
    }

    /// # Errors
    /// [`GitError::NestedRepository`] for a repository in a folder that is not ignored,
    /// [`GitError::InsideSubmodule`] for files where the project has a submodule.
    pub(super) fn folder(&mut self, folder: &Path, at: &Path) -> Result<()> {
        if at.components().count() > MAX_DEPTH {
            let reason = format!("more than {MAX_DEPTH} folders lie in each other");
            self.refused.push((at.to_owned(), reason));
            return Ok(());
        }
        make_readable(folder, &files::symlink_metadata(folder)?);
        if let Some(name) = READ_BY_GIT.into_iter().find(|name| is_endless(&folder.join(name))) {
            self.refused.push((at.join(name), "it is no file, and git would read it".to_owned()));
            return Ok(());
        }
        let ignore = at.join(IGNORE);
        let tracked = self.tracked_at(ignore.as_os_str().as_bytes());
        if let Ok(meta) = files::metadata(&folder.join(IGNORE))
            && grew_beyond(MAX_READ_BY_GIT, &meta, &self.view.odb()?, tracked)
        {
            return Err(GitError::FileTooLarge { path: ignore, bytes: meta.len() });
        }
        for full in files::list(folder)? {
            let Some(name) = full.file_name() else { continue };
            let path = at.join(name);
            if path.as_os_str().len() > MAX_PATH {
                self.refused
                    .push((at.to_owned(), "the path of what lies in it is too long".to_owned()));
                return Ok(());
            }
            if name == ".git" {
                if at != Path::new("") && !self.view.is_path_ignored(at)? {
                    return Err(GitError::NestedRepository { path: at.to_owned() });
                }
                continue;
            }
            let meta = match files::symlink_metadata(&full) {
                Ok(meta) => meta,
                Err(error) if error.is_missing() => continue,
                Err(error) => return Err(error.into()),
            };
            let bytes = path.as_os_str().as_bytes().to_vec();
            let inside = &self.submodules.tracked;
            let is_inside = self.submodules.around(&bytes).is_some();
            let tracked = self.tracked_at(&bytes);
            if tracked.is_some_and(|(_, mode)| *mode == MODE_GITLINK) {
                if meta.is_dir() && self.submodules.at(&bytes).is_some() {
                    self.folder(&full, &path)?;
                } else if !meta.is_dir() {
                    return Err(GitError::InsideSubmodule { file: path.clone(), path });
                } else if let Some(file) = files::list(&full)?.first().and_then(|it| it.file_name())
                {
                    return Err(GitError::InsideSubmodule { file: path.join(file), path });
                }
            } else if meta.is_dir() {
                let is_needed = holds(if is_inside { inside } else { self.tracked }, &bytes);
                if is_needed || !self.view.is_path_ignored(&path)? {
                    self.folder(&full, &path)?;
                }
            } else if meta.is_file() || meta.is_symlink() {
                if name == ATTRIBUTES
                    && grew_beyond(MAX_READ_BY_GIT, &meta, &self.view.odb()?, tracked)
                {
                    return Err(GitError::FileTooLarge { path, bytes: meta.len() });
                }
                if name == ATTRIBUTES && !is_inside {
                    let id = if meta.is_file() {
                        Oid::hash_object(git2::ObjectType::Blob, &files::read(&full)?)?
                    } else {
                        Oid::ZERO_SHA1
                    };
                    self.attributes.insert(bytes.clone(), id);
                }
                if tracked.is_some() || !self.view.is_path_ignored(&path)? {
                    self.files.insert(bytes, make_readable(&full, &meta).unwrap_or(meta));
                }
            }
        }
        Ok(())
    }
}

/// Whether a pipe, a socket or a device stands there, or a link to one: reading it may never end. `/dev/null` has an
/// end.
pub(super) fn is_endless(path: &Path) -> bool {
    const NULL: u64 = 0x103;
    files::metadata(path)
        .is_ok_and(|found| !found.is_file() && !found.is_dir() && found.rdev() != NULL)
}

/// Gives a file or folder back what an agent took from itself: the right to read it. Where that fails, so does the
/// reading. The new marks of it, where it has some.
fn make_readable(full: &Path, meta: &Metadata) -> Option<Metadata> {
    let wanted = if meta.is_dir() { 0o500 } else { 0o400 };
    let mode = meta.permissions().mode();
    if meta.is_symlink() || mode & wanted == wanted {
        return None;
    }
    files::set_mode(full, mode & 0o7777 | wanted).ok()?;
    files::symlink_metadata(full).ok()
}

/// Whether a file is larger than what is read into memory, and was not so before: a project may have such files itself.
pub(super) fn grew_beyond(
    most: u64,
    meta: &Metadata,
    objects: &Odb<'_>,
    before: Option<&(Oid, u32)>,
) -> bool {
    let stored = || objects.read_header(before?.0).ok();
    meta.is_file() && meta.len() > most && stored().is_none_or(|(size, _)| size as u64 <= most)
}
