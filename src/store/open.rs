//! Opening: take the locks, read the checkpoint and the tail, bring the files up to date, start afresh.

use std::path::Path;
use std::sync::Arc;

use super::error::StoreError;
use super::index::checkpoint;
use super::journal::Journal;
use super::layout::{self, LOCK};
use super::load;
use super::loaded::{LoadedWorkspace, Unreadable};
use super::migrate;
use super::views::{Views, free_name};
use crate::domain::envelope::EnvelopeFolder;
use crate::domain::record::RUNTIME;
use crate::domain::role::Role;
use crate::platform::disk::{Disk, FileLock, temp};
use crate::platform::machine;

/// What opening found, for the log and for `teams doctor`. Paths are relative to the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// The last durable entry; 0 in a new workspace.
    pub seq: u64,
    /// Entries that were replayed: 0 after a clean stop.
    pub replayed: usize,
    /// There was no checkpoint yet: this is the first opening.
    pub first: bool,
    /// The copy that was made because the build before this one wrote the workspace, where this opening
    /// brought it up to date.
    pub migrated: Option<String>,
    /// The last entry was only written in part; nobody had been told that it was saved.
    pub torn: bool,
    /// Records that do not parse: where they were, where they were put, why.
    pub set_aside: Vec<SetAside>,
    /// Open records whose files are gone.
    pub missing: Vec<String>,
    /// Edits from outside that count.
    pub edited: Vec<String>,
    /// Edits from outside that were lost, because the journal is newer than the files after a crash.
    pub overridden: Vec<String>,
}

/// A record that does not parse and was moved out of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Where it was.
    pub path: String,
    /// Where it is now.
    pub now: String,
    /// Why it does not parse.
    pub reason: String,
}

/// The locks of the workspace, held as long as this lives.
pub(super) struct Locks(#[expect(dead_code, reason = "held, not used")] Vec<Box<dyn FileLock>>);

/// Takes the workspace's lock and those of the older runtime's services (`spec/teams.md` 1.4), so that
/// neither a second team nor an older one works on the same files.
pub(super) fn take_locks(disk: &dyn Disk, root: &Path) -> Result<Locks, StoreError> {
    disk.create_dir(&root.join(RUNTIME))?;
    let mut paths = vec![root.join(LOCK)];
    for role in Role::ALL {
        let folder = root.join(RUNTIME).join("agents").join(role.as_str());
        disk.create_dir(&folder)?;
        paths.push(folder.join("service.lock"));
    }
    let mut held = Vec::with_capacity(paths.len());
    for path in paths {
        match disk.lock(&path)? {
            Some(lock) => held.push(lock),
            None => {
                let by = machine::lock_holders(&path);
                return Err(StoreError::Locked { path, by });
            }
        }
    }
    Ok(Locks(held))
}

/// Replays the tail into the files and begins an empty one.
pub(super) fn recover(
    disk: &Arc<dyn Disk>,
    root: &Path,
) -> Result<(Journal, Views, OpenReport), StoreError> {
    disk.create_dir(&root.join(layout::JOURNAL))?;
    for folder in folders() {
        disk.create_dir(&root.join(folder))?;
    }
    let mut loaded = load::load(disk, root)?;
    let mut report = OpenReport {
        seq: loaded.seq,
        replayed: loaded.tail,
        first: !loaded.indexed,
        torn: loaded.torn,
        missing: std::mem::take(&mut loaded.missing),
        edited: std::mem::take(&mut loaded.edited),
        overridden: std::mem::take(&mut loaded.overridden),
        set_aside: Vec::new(),
        migrated: migrate::migrate(&**disk, root, &mut loaded)?,
    };
    report.set_aside = set_aside(&**disk, root, &loaded.unreadable)?;
    let LoadedWorkspace { mut views, seq, .. } = loaded;
    // After a crash nothing that was written since the checkpoint is sure to be on the disk, the journal
    // included: everything is written again to new files, and the old tail is not added to.
    let fresh = report.replayed == 0 && !report.first && !report.torn && report.migrated.is_none();
    if !fresh || !report.set_aside.is_empty() || !report.missing.is_empty() {
        for path in views.records() {
            // Where the crash came between writing aside and the rename, and the record is gone by now.
            disk.remove(&temp(&root.join(path)))?;
        }
        checkpoint(&**disk, root, &mut views, seq)?;
        disk.sync_dir(&root.join(layout::JOURNAL))?;
    }
    let journal = Journal::new(disk.clone(), root.to_owned(), seq + 1);
    Ok((journal, views, report))
}

/// The folders that watchers and operators expect to be there.
fn folders() -> Vec<String> {
    let mut folders: Vec<String> =
        [EnvelopeFolder::Inbox, EnvelopeFolder::Archive, EnvelopeFolder::Dead]
            .into_iter()
            .flat_map(|place| Role::ALL.map(|role| layout::relay_folder(place, role)))
            .collect();
    folders.push(format!("{}/tmp", layout::RELAY));
    folders.push(format!("{RUNTIME}/requests"));
    folders
}

/// Puts record files that do not parse aside.
pub(super) fn set_aside(
    disk: &dyn Disk,
    root: &Path,
    unreadable: &[Unreadable],
) -> Result<Vec<SetAside>, StoreError> {
    let mut aside = Vec::new();
    for bad in unreadable {
        let from = root.join(&bad.path);
        if disk.len(&from)?.is_none() {
            // Set aside before the crash that this opening goes on from.
            continue;
        }
        let now = free_name(disk, root, &bad.path)?;
        disk.rename(&from, &root.join(&now))?;
        if let Some(folder) = from.parent() {
            disk.sync_dir(folder)?;
        }
        aside.push(SetAside { path: bad.path.clone(), now, reason: bad.reason.clone() });
    }
    Ok(aside)
}
