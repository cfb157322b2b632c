//! Old history: what ended long ago leaves the folders of the runtime for packs, `history/<time>-<n>.tar.gz`, whose
//! entries have their paths in the workspace. A pack is durable before the first of its files is removed, so a crash
//! in between leaves both, and the next packing takes what was left.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::error::StoreError;
use super::layout::{self, RELAY};
use crate::domain::envelope::{Envelope, EnvelopeFolder};
use crate::domain::gate::Gate;
use crate::domain::ids::RequestId;
use crate::domain::operation::Operation;
use crate::domain::record::{self, RUNTIME, Record, inside};
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::domain::verification::Verification;
use crate::platform::disk::{Disk, Node, replace_synced};
use crate::platform::files;

/// The folder of the packs.
const HISTORY: &str = ".teams_runtime/history";
/// What goes into one pack, in bytes before it is compressed.
const PACK_BYTES: usize = 32 << 20;

/// What is old, and what is kept all the same.
#[derive(Debug, Clone)]
pub struct Retention {
    /// What ended before this is packed.
    pub ended_before: Timestamp,
    /// Packs that were written before this go.
    pub packs_before: Timestamp,
    /// The packs that are kept have at most so many bytes together; the newest is kept in any case.
    pub packs_bytes: u64,
    /// Requests that are kept as they are, besides those in memory: work of theirs is not on the branch.
    pub unmerged: BTreeSet<RequestId>,
}

/// What a packing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackReport {
    /// Requests that were packed.
    pub requests: usize,
    /// Files that were packed, those of requests among them.
    pub files: usize,
    /// Packs that went.
    pub packs_removed: usize,
}

/// Packs what is old, and removes packs that are older still. `state` is that of a checkpoint: no entry of the journal
/// speaks of what is packed, so that no replay brings it back.
pub(super) fn pack(
    disk: &dyn Disk,
    root: &Path,
    state: &State,
    now: Timestamp,
    rules: &Retention,
    goes_on: &dyn Fn() -> bool,
) -> Result<PackReport, StoreError> {
    // The papers of a sprint are made of the histories of its requests.
    let todos = state.sprints.values().flat_map(|sprint| &sprint.work.todos);
    let of_sprints = todos.filter_map(|todo| todo.progress.request_id.as_ref());
    let looked_at = state.verifications.keys();
    let kept = state.requests.keys().chain(&rules.unmerged).chain(of_sprints).chain(looked_at);
    let kept = kept.collect();
    let packing = HistoryPacker { disk, root, kept, rules, now };
    let requests = packing.requests()?;
    let mut old: Vec<String> = requests.values().flatten().cloned().collect();
    old.extend(packing.about_requests("gates", |it: &Gate| &it.request_id, &requests)?);
    let verified =
        packing.about_requests("verifications", |it: &Verification| &it.request_id, &requests)?;
    old.extend(verified);
    old.extend(packing.about_requests("operations", |it: &Operation| &it.request_id, &requests)?);
    old.extend(packing.archive()?);
    packing.write(&old, goes_on)?;
    let packs_removed = packing.remove_old_packs()?;
    Ok(PackReport { requests: requests.len(), files: old.len(), packs_removed })
}

/// Whether there is anything to look at: a file that nobody wrote to lately, or a pack.
pub(super) fn is_anything_old(
    disk: &dyn Disk,
    root: &Path,
    rules: &Retention,
) -> Result<bool, StoreError> {
    let mut folders = vec![HISTORY.to_owned()];
    folders.extend(["requests", "gates", "operations", "verifications"].map(inside));
    for role in Role::ALL {
        folders.extend(archive_folders(disk, root, role)?);
    }
    for folder in folders {
        for name in disk.list(&root.join(&folder))? {
            let path = root.join(&folder).join(&name);
            if name.contains('.')
                && (folder == HISTORY || !is_written_since(disk, &path, rules.ended_before)?)
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The folders of the messages that a role has read: one a day, and in older workspaces one for all.
fn archive_folders(disk: &dyn Disk, root: &Path, role: Role) -> Result<Vec<String>, StoreError> {
    let folder = layout::relay_folder(EnvelopeFolder::Archive, role);
    let mut days = disk.list(&root.join(&folder))?;
    days.retain(|name| !name.contains('.'));
    let days = days.iter().map(|day| format!("{folder}/{day}")).collect::<Vec<_>>();
    Ok(std::iter::once(folder).chain(days).collect())
}

struct HistoryPacker<'a> {
    disk: &'a dyn Disk,
    root: &'a Path,
    /// Requests of which nothing is packed.
    kept: BTreeSet<&'a RequestId>,
    rules: &'a Retention,
    now: Timestamp,
}

impl HistoryPacker<'_> {
    /// The files of a folder of the runtime that nobody wrote to lately, by what their names begin with.
    fn old_files(&self, folder: &str) -> Result<BTreeMap<String, Vec<String>>, StoreError> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut young = BTreeSet::new();
        for name in self.disk.list(&self.root.join(folder))? {
            let Some((stem, _)) = name.split_once('.').filter(|(stem, _)| !stem.is_empty()) else {
                continue;
            };
            let path = format!("{folder}/{name}");
            // What an action left that was cut off is a folder.
            if self.disk.node(&self.root.join(&path))? != Some(Node::File) {
                continue;
            }
            match is_written_since(self.disk, &self.root.join(&path), self.rules.ended_before)? {
                true => drop(young.insert(stem.to_owned())),
                false => found.entry(stem.to_owned()).or_default().push(path),
            }
        }
        found.retain(|stem, _| !young.contains(stem));
        // The record goes last: as long as it is there, the rest of it is looked for.
        found.values_mut().for_each(|paths| paths.sort_by_key(|path| path.ends_with(".json")));
        Ok(found)
    }

    /// The files of the requests that ended long ago.
    fn requests(&self) -> Result<BTreeMap<RequestId, Vec<String>>, StoreError> {
        let mut requests = BTreeMap::new();
        for (stem, paths) in self.old_files(&format!("{RUNTIME}/requests"))? {
            let Ok(id) = RequestId::parse(&stem) else { continue };
            if self.kept.contains(&id) {
                continue;
            }
            if paths == [layout::events(&id)] {
                // Its record went before the power did.
                requests.insert(id, paths);
                continue;
            }
            let Some(record) = paths.last().filter(|path| **path == layout::request(&id)) else {
                continue;
            };
            let request: Option<Arc<Request>> = self.read(std::slice::from_ref(record))?;
            let over = request.is_some_and(|request| {
                request.status.is_terminal() && request.ended() < self.rules.ended_before
            });
            if over {
                requests.insert(id, paths);
            }
        }
        Ok(requests)
    }

    /// The files of a folder whose records are over and belong to requests that are packed as well or were before.
    fn about_requests<R: Record>(
        &self,
        folder: &str,
        request: impl Fn(&R) -> &RequestId,
        packed: &BTreeMap<RequestId, Vec<String>>,
    ) -> Result<Vec<String>, StoreError> {
        let mut old = Vec::new();
        for paths in self.old_files(&format!("{RUNTIME}/{folder}"))?.into_values() {
            let Some(record) = self.read::<R>(&paths)? else { continue };
            let id = request(&record);
            let gone = packed.contains_key(id)
                || self.disk.len(&self.root.join(layout::request(id)))?.is_none();
            if !record.is_open() && gone && !self.kept.contains(id) {
                old.extend(paths);
            }
        }
        Ok(old)
    }

    /// The record among the files of one; `None` where it does not read, and then it stays where it is.
    fn read<R: Record>(&self, paths: &[String]) -> Result<Option<Arc<R>>, StoreError> {
        match paths.last().filter(|path| path.ends_with(".json")) {
            Some(path) => {
                let value = serde_json::from_slice(&self.disk.read(&self.root.join(path))?).ok();
                Ok(value.and_then(|value| record::decode(value).ok()))
            }
            None => Ok(None),
        }
    }

    /// Relayed messages that were consumed long ago.
    fn archive(&self) -> Result<Vec<String>, StoreError> {
        let mut old = Vec::new();
        for role in Role::ALL {
            for folder in archive_folders(self.disk, self.root, role)? {
                for paths in self.old_files(&folder)?.into_values() {
                    let envelope = self.read::<Envelope>(&paths)?;
                    if envelope.is_some_and(|it| !self.kept.contains(&it.envelope.request_id)) {
                        old.extend(paths);
                    }
                }
            }
        }
        Ok(old)
    }

    /// Writes packs, each durable before its files are removed.
    fn write(&self, old: &[String], goes_on: &dyn Fn() -> bool) -> Result<(), StoreError> {
        let folder = self.root.join(HISTORY);
        let mut rest = old.iter().peekable();
        let mut number = 0;
        while rest.peek().is_some() && goes_on() {
            let (mut packed, mut bytes) = (Vec::new(), 0);
            let mut pack = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
            while let Some(path) = rest.next_if(|_| bytes < PACK_BYTES) {
                let content = self.disk.read(&self.root.join(path))?;
                let mut header = tar::Header::new_gnu();
                header.set_size(content.len() as u64);
                header.set_mode(0o644);
                header.set_mtime(
                    self.disk.written(&self.root.join(path))?.unwrap_or_default() / 1_000,
                );
                in_memory(pack.append_data(&mut header, path, content.as_slice()))?;
                bytes += content.len();
                packed.push(path);
            }
            let mut stream = in_memory(pack.into_inner())?;
            in_memory(stream.flush())?;
            self.disk.create_dir(&folder)?;
            let path = loop {
                let time = self.now.utc().format("%Y%m%dT%H%M%S%3fZ");
                let path = folder.join(format!("{time}-{number}.tar.gz"));
                number += 1;
                // A clock that was set back gives the same time twice.
                if self.disk.len(&path)?.is_none() {
                    break path;
                }
            };
            replace_synced(self.disk, &path, &in_memory(stream.finish())?)?;
            self.disk.sync_dir(&folder)?;
            self.disk.sync_dir(&self.root.join(RUNTIME))?;
            for path in packed {
                self.disk.remove(&self.root.join(path))?;
            }
        }
        let days = old.iter().filter(|path| path.starts_with(RELAY));
        let days: BTreeSet<&Path> = days.filter_map(|path| Path::new(path).parent()).collect();
        for day in days {
            files::remove_dir_if_empty(&self.root.join(day))?;
        }
        Ok(())
    }

    /// Removes the packs that are too old, and the oldest of too many.
    fn remove_old_packs(&self) -> Result<usize, StoreError> {
        let mut bytes = 0;
        let mut removed = 0;
        for (nth, pack) in packs(self.disk, self.root)?.into_iter().enumerate() {
            bytes += self.disk.len(&pack)?.unwrap_or(0);
            let many = nth > 0 && bytes > self.rules.packs_bytes;
            if many || !is_written_since(self.disk, &pack, self.rules.packs_before)? {
                self.disk.remove(&pack)?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// What goes wrong while bytes in memory are packed is a path that no archive can name.
fn in_memory<T>(outcome: std::io::Result<T>) -> Result<T, StoreError> {
    outcome.map_err(|error| StoreError::Encode { reason: error.to_string() })
}

/// The packs, newest first: their names begin with the time.
fn packs(disk: &dyn Disk, root: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folder = root.join(HISTORY);
    let mut names = disk.list(&folder)?;
    names.retain(|name| name.ends_with(".tar.gz") && !name.starts_with('.'));
    names.sort();
    Ok(names.into_iter().rev().map(|name| folder.join(name)).collect())
}

/// The content of a file that was packed; `path` is that in the workspace. Reads packs, newest first: for people who ask.
/// One that does not read is passed over.
///
/// # Errors
/// What the disk reports.
pub(super) fn packed(
    disk: &dyn Disk,
    root: &Path,
    path: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    find(disk, &packs(disk, root)?, |found| found == Path::new(path))
}

/// Whether a relayed message that was consumed by a role was packed. It was not before it was written.
pub(super) fn was_consumed(
    disk: &dyn Disk,
    root: &Path,
    folder: &str,
    name: &str,
    written: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let mut packs = packs(disk, root)?;
    if let Some(written) = written {
        let later = |pack: &PathBuf| is_written_since(disk, pack, written).unwrap_or(true);
        packs.retain(later);
    }
    let is_it =
        |path: &Path| path.starts_with(folder) && path.file_name().is_some_and(|it| it == name);
    Ok(find(disk, &packs, is_it)?.is_some())
}

fn find(
    disk: &dyn Disk,
    packs: &[PathBuf],
    is_it: impl Fn(&Path) -> bool,
) -> Result<Option<Vec<u8>>, StoreError> {
    for pack in packs {
        let bytes = match disk.read(pack) {
            Ok(bytes) => bytes,
            // It went meanwhile.
            Err(error) if error.is_missing() => continue,
            Err(error) => return Err(error.into()),
        };
        match entry(&bytes, &is_it) {
            Ok(None) => {}
            Ok(found) => return Ok(found),
            Err(error) => {
                tracing::warn!(pack = %pack.display(), %error, "a pack of old history does not read");
            }
        }
    }
    Ok(None)
}

fn entry(pack: &[u8], is_it: impl Fn(&Path) -> bool) -> std::io::Result<Option<Vec<u8>>> {
    for entry in tar::Archive::new(GzDecoder::new(pack)).entries()? {
        let mut entry = entry?;
        if is_it(&entry.path()?) {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            return Ok(Some(content));
        }
    }
    Ok(None)
}

/// Whether a file was written at `since` or later.
pub(super) fn is_written_since(
    disk: &dyn Disk,
    path: &Path,
    since: Timestamp,
) -> Result<bool, StoreError> {
    let written = disk.written(path)?;
    Ok(written.is_some_and(|at| i64::try_from(at).unwrap_or(i64::MAX) >= since.millis()))
}
