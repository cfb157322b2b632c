//! The record files as a view of the journal: brought up to date after each commit, synced at checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::Entry;
use super::error::StoreError;
use super::layout::{self, Lost, Target};
use crate::domain::envelope::EnvelopeFolder;
use crate::domain::state::State;
use crate::platform::disk::{Disk, Node, replace};
use crate::platform::files::{FileError, Result as FileResult};

/// What became of a file since the last checkpoint.
enum View {
    /// It is this; `None` once the bytes are in the file.
    File(Option<Vec<u8>>),
    /// The same, once this other file is gone.
    Moved(String, Option<Vec<u8>>),
    /// It is gone.
    Gone,
    /// Up to `good` it is in the file, the rest is still to be added.
    Appended { good: u64, pending: Vec<u8> },
}

/// The state and the files that follow from it.
pub(super) struct Views {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    /// The state after the last entry that was applied.
    pub(super) state: State,
    touched: BTreeMap<String, View>,
    dirty: BTreeSet<String>,
    /// Folders that are known to exist.
    folders: BTreeSet<PathBuf>,
    /// Until what replay found is written once: an operator may have moved files while nobody was there.
    is_first: bool,
    /// Digests of the files of open records, as they were written.
    pub(super) digests: BTreeMap<String, u32>,
    /// Records that were open and whose files could not be read, or were gone: where one is mended, it is taken in again.
    pub(super) lost: Vec<Lost>,
}

impl Views {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        root: PathBuf,
        state: State,
        digests: BTreeMap<String, u32>,
    ) -> Self {
        Self {
            disk,
            root,
            state,
            touched: BTreeMap::new(),
            dirty: BTreeSet::new(),
            folders: BTreeSet::new(),
            is_first: true,
            digests,
            lost: Vec::new(),
        }
    }

    /// Remembers where the file of a record belongs that is not there, or cannot be read.
    pub(super) fn lose(&mut self, lost: Lost) {
        if Lost::is_kept(lost.kind) && !self.lost.contains(&lost) {
            self.lost.push(lost);
            let over = self.lost.len().saturating_sub(Lost::MOST);
            self.lost.drain(..over);
        }
    }

    /// Applies one entry to the state and notes what it means for the files.
    pub(super) fn apply(&mut self, seq: u64, entry: &Entry) -> Result<(), StoreError> {
        for change in &entry.changes {
            for target in layout::targets(seq, change)? {
                match target {
                    Target::File(path, bytes) => {
                        self.digests.insert(path.clone(), crc32fast::hash(&bytes));
                        self.dirty.insert(path.clone());
                        self.touched.insert(path, View::File(Some(bytes)));
                    }
                    Target::Moved { from, to, bytes } => {
                        self.digests.remove(&from);
                        self.dirty.remove(&from);
                        self.touched.insert(from.clone(), View::Gone);
                        self.digests.insert(to.clone(), crc32fast::hash(&bytes));
                        self.dirty.insert(to.clone());
                        self.touched.insert(to, View::Moved(from, Some(bytes)));
                    }
                    Target::Gone(path) => {
                        self.digests.remove(&path);
                        self.dirty.insert(path.clone());
                        self.touched.insert(path, View::Gone);
                    }
                    Target::Append(path, text) => {
                        self.dirty.insert(path.clone());
                        let base = entry.base.get(&path).copied().unwrap_or(0);
                        let view = self
                            .touched
                            .entry(path)
                            .or_insert(View::Appended { good: base, pending: Vec::new() });
                        if let View::Appended { pending, .. } = view {
                            pending.extend_from_slice(&text);
                        }
                    }
                }
            }
            self.state.apply(change);
        }
        Ok(())
    }

    /// Replaces what replay assumed about an append-only file by what was found in it.
    pub(super) fn resume(&mut self, path: &str, good_now: u64, rest: Vec<u8>) {
        self.dirty.insert(path.to_owned());
        self.touched.insert(path.to_owned(), View::Appended { good: good_now, pending: rest });
    }

    /// The append-only files that grew, with the length before and what they grew by.
    pub(super) fn appended(&self) -> Vec<(String, u64, Vec<u8>)> {
        self.touched
            .iter()
            .filter_map(|(path, view)| match view {
                View::Appended { good, pending } => Some((path.clone(), *good, pending.clone())),
                View::File(_) | View::Moved(..) | View::Gone => None,
            })
            .collect()
    }

    /// The paths of records that were set or removed.
    pub(super) fn records(&self) -> Vec<String> {
        self.touched
            .iter()
            .filter(|(_, view)| !matches!(view, View::Appended { .. }))
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// Writes what is dirty. What fails stays dirty; the first error is returned after the others were
    /// tried. No sync.
    pub(super) fn materialise(&mut self) -> FileResult<()> {
        let mut outcome = Ok(());
        // New names first, removals last: an envelope on its way is in two places rather than in none;
        // but a dead letter, which an operator may move back at once, comes only after its removal.
        let (gone, kept): (Vec<String>, Vec<String>) = std::mem::take(&mut self.dirty)
            .into_iter()
            .partition(|path| matches!(self.touched.get(path), Some(View::Gone)));
        for path in kept.into_iter().chain(gone) {
            if let Err(error) = self.write(&path) {
                self.dirty.insert(path);
                if outcome.is_ok() {
                    outcome = Err(error);
                }
            }
        }
        self.is_first &= outcome.is_err();
        outcome
    }

    fn write(&mut self, path: &str) -> FileResult<()> {
        let full = self.root.join(path);
        match self.touched.get_mut(path) {
            Some(View::File(bytes)) => {
                if let Some(content) = bytes {
                    make_folder(&*self.disk, &mut self.folders, &full)?;
                    replace(&*self.disk, &full, content)?;
                    *bytes = None;
                }
            }
            Some(View::Moved(from, bytes)) => {
                if let Some(content) = bytes {
                    let from = self.root.join(from);
                    if self.is_first && is_dead_letter(&*self.disk, &from) {
                        tracing::info!(path, "a dead letter was put back into its inbox meanwhile");
                        *bytes = None;
                        return Ok(());
                    }
                    self.disk.remove(&from)?;
                    make_folder(&*self.disk, &mut self.folders, &full)?;
                    replace(&*self.disk, &full, content)?;
                    *bytes = None;
                }
            }
            Some(View::Gone) => self.disk.remove(&full)?,
            Some(View::Appended { good, pending }) => {
                if pending.is_empty() {
                    return Ok(());
                }
                let (disk, is_document) = (&*self.disk, layout::is_document(path));
                let appended = append(disk, &mut self.folders, &full, is_document, (good, pending));
                match appended {
                    Err(error) if is_document && cannot_be_opened(&error) => {
                        *good = begin_again(disk, &self.root, path, error)?;
                        append(disk, &mut self.folders, &full, is_document, (good, pending))?;
                    }
                    appended => appended?,
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Makes every touched file durable and forgets about them; all must be materialised.
    pub(super) fn sync(&mut self) -> FileResult<()> {
        let mut files = Vec::new();
        let mut folders = BTreeSet::new();
        for (path, view) in &self.touched {
            let full = self.root.join(path);
            if let Some(folder) = full.parent() {
                folders.insert(folder.to_owned());
                // A folder may be new itself.
                folders.extend(folder.parent().map(Path::to_owned));
            }
            match view {
                View::File(_) | View::Moved(..) | View::Appended { .. } => files.push(full),
                View::Gone => {}
            }
        }
        let folders: Vec<PathBuf> = folders.into_iter().collect();
        self.disk.sync_many(&self.root, &files, &folders)?;
        self.touched.clear();
        self.folders.clear();
        Ok(())
    }
}

/// Adds what is pending to a file that is good up to a length.
fn append(
    disk: &dyn Disk,
    folders: &mut BTreeSet<PathBuf>,
    file: &Path,
    is_document: bool,
    (good, pending): (&mut u64, &mut Vec<u8>),
) -> FileResult<()> {
    make_folder(disk, folders, file)?;
    let length = disk.len(file)?.unwrap_or(0);
    if length != *good {
        *good = settle(disk, file, (length, *good), is_document, pending)?;
    }
    if let Err(error) = disk.append(file, pending) {
        if !error.is_missing() {
            return Err(error);
        }
        // Somebody removed the folder.
        folders.clear();
        make_folder(disk, folders, file)?;
        disk.append(file, pending)?;
    }
    *good += pending.len() as u64;
    pending.clear();
    Ok(())
}

/// Whether what lies in an inbox was a dead letter before: only an operator puts such a one there.
fn is_dead_letter(disk: &dyn Disk, file: &Path) -> bool {
    let letter = disk.read(file).ok();
    let letter = letter.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    letter.is_some_and(|letter| letter["place"] == EnvelopeFolder::Dead.as_str())
}

/// Whether a file cannot be opened for what it is, such as another user's, or for where a link leads, such as to a disk
/// that is away, rather than for what the workspace's own disk did.
pub(super) fn cannot_be_opened(error: &FileError) -> bool {
    use std::io::ErrorKind as Kind;
    matches!(
        error.source.kind(),
        Kind::PermissionDenied
            | Kind::IsADirectory
            | Kind::NotADirectory
            | Kind::NotFound
            | Kind::AlreadyExists
            | Kind::ReadOnlyFilesystem
            | Kind::NotConnected
            | Kind::StaleNetworkFileHandle
            | Kind::TimedOut
    )
}

/// Puts a document aside that cannot be written, or the folder that it cannot be reached by, and goes on with a copy of
/// it as far as it can be read: no document stops the team. Returns the copy's length.
fn begin_again(disk: &dyn Disk, root: &Path, path: &str, error: FileError) -> FileResult<u64> {
    let full = root.join(path);
    let content = disk.read(&full).unwrap_or_default();
    let parts = path.match_indices('/').map(|(at, _)| &path[..at]);
    let outwards = parts.chain([path]).collect::<Vec<_>>().into_iter().rev();
    for part in outwards {
        // What is a folder as it should be holds others, which stay where they are.
        if part != path && matches!(disk.node(&root.join(part)), Ok(Some(Node::Folder))) {
            continue;
        }
        let Ok(aside) = free_name(disk, root, part) else { continue };
        if disk.rename(&root.join(part), &root.join(&aside)).is_ok() {
            tracing::warn!(%error, aside, "a document cannot be written; what is in its way lies aside, and a copy goes on");
            make_folder(disk, &mut BTreeSet::new(), &full)?;
            disk.write(&full, &content)?;
            return Ok(content.len() as u64);
        }
    }
    Err(error)
}

/// A name beside a file for putting it aside.
pub(super) fn free_name(disk: &dyn Disk, root: &Path, path: &str) -> FileResult<String> {
    let aside = free_path(disk, &root.join(path))?;
    let name = aside.file_name().unwrap_or_default().to_string_lossy();
    Ok(match path.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{name}"),
        None => name.into_owned(),
    })
}

fn free_path(disk: &dyn Disk, file: &Path) -> FileResult<PathBuf> {
    let mut number = 1;
    loop {
        let mut aside = file.as_os_str().to_owned();
        aside.push(format!(".bad-{number}"));
        let aside = PathBuf::from(aside);
        if disk.node(&aside)?.is_none() {
            return Ok(aside);
        }
        number += 1;
    }
}

/// Cuts half of an earlier attempt off an append-only file. What somebody wrote into a document stays, and what is to be
/// added begins a line of its own. Returns the file's length.
fn settle(
    disk: &dyn Disk,
    file: &Path,
    (length, good): (u64, u64),
    is_document: bool,
    pending: &mut Vec<u8>,
) -> FileResult<u64> {
    if length < good {
        return Ok(length);
    }
    let content = disk.read(file)?;
    let behind = usize::try_from(good).ok().and_then(|good| content.get(good..)).unwrap_or(&[]);
    if pending.starts_with(behind) || !is_document || !is_text(behind) {
        // It may be what a power failure left, and as well somebody's words in another encoding.
        if is_document && !pending.starts_with(behind) && behind.iter().any(|byte| *byte != 0) {
            let aside = free_path(disk, file)?;
            tracing::warn!(aside = %aside.display(), "what was written into a document is no UTF-8; a copy of it lies aside");
            disk.write(&aside, &content)?;
        }
        disk.truncate(file, good)?;
        return Ok(good);
    }
    if !content.ends_with(b"\n") {
        pending.insert(0, b'\n');
    }
    Ok(content.len() as u64)
}

/// Whether these are words, and not what a power failure leaves. They may begin and end within a character.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    let within = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    let is_whole = match std::str::from_utf8(&bytes[within..]) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    !bytes.is_empty() && is_whole && !bytes.contains(&0)
}

fn make_folder(disk: &dyn Disk, known: &mut BTreeSet<PathBuf>, file: &Path) -> FileResult<()> {
    if let Some(folder) = file.parent()
        && !known.contains(folder)
    {
        disk.create_dir(folder)?;
        known.insert(folder.to_owned());
    }
    Ok(())
}
