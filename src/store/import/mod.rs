//! The first opening of a workspace that has no checkpoint: a new one, or one of the older runtime.
//!
//! What the older runtime wrote is read, brought into our shape, made to agree with itself and written back
//! at the first checkpoint. Before that the whole state folder is copied, and until that checkpoint is durable
//! the copy is what counts: a crash may have left any of the records half written, and there is no journal of
//! them yet. What could not be carried over is named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::backup;
use super::entry::Entry;
use super::error::StoreError;
use super::layout::{self, RUNTIME};
use super::loaded::{LoadedWorkspace, Unreadable};
use crate::domain::change::Change;
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::operation::OperationStatus;
use crate::domain::record::{RecordError, RecordId, RecordKind, decode};
use crate::domain::request::Request;
use crate::domain::schedule::Scheduler;
use crate::platform::disk::Disk;
use older::Older;
use record::Record;

mod notes;
mod older;
mod record;
mod repair;
mod shape;

pub use notes::Notes;
pub(super) use notes::{keep_notes, read_notes};

/// Whether the workspace has records and no checkpoint.
pub(super) fn is_older(disk: &dyn Disk, root: &Path) -> Result<bool, StoreError> {
    if disk.len(&root.join(layout::INDEX))?.is_some() {
        return Ok(false);
    }
    if disk.len(&root.join(layout::scheduler()))?.is_some() {
        return Ok(true);
    }
    let here = Source { disk, folder: root.join(RUNTIME) };
    for folder in ["requests", "backlog", "sprints", "operations", "role_sessions"] {
        if !here.records(folder)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Copies the state folder before the first opening writes anything, once; the copy's name.
pub(super) fn back_up(disk: &dyn Disk, root: &Path) -> Result<Option<String>, StoreError> {
    if !is_older(disk, root)? {
        return Ok(None);
    }
    if let Some(notes) = read_notes(disk, root)?
        && !notes.backup.is_empty()
    {
        return Ok(Some(notes.backup));
    }
    let mut notes = Notes { unfinished: true, ..Notes::default() };
    let made = backup::make(disk, root, |_| true)?;
    for path in made.left {
        notes.left(&path, "it is no file, and not in the backup");
    }
    notes.backup = made.name;
    keep_notes(disk, root, &notes)?;
    Ok(Some(notes.backup))
}

/// The first checkpoint is durable: from now on the records count and not their copy.
pub(super) fn finish(disk: &dyn Disk, root: &Path) -> Result<(), StoreError> {
    match read_notes(disk, root)? {
        Some(notes) if notes.unfinished => {
            keep_notes(disk, root, &Notes { unfinished: false, ..notes })
        }
        Some(_) | None => Ok(()),
    }
}

/// Where the records of the older runtime are read.
struct Source<'a> {
    disk: &'a dyn Disk,
    /// The state folder, or its copy.
    folder: PathBuf,
}

impl Source<'_> {
    fn of<'a>(disk: &'a dyn Disk, root: &Path, kept: &Notes) -> Source<'a> {
        let name = if kept.unfinished { &kept.backup } else { RUNTIME };
        Source { disk, folder: root.join(name) }
    }

    /// The bytes of a record, by its path in the workspace; `None` where there is none.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let inside = path.strip_prefix(RUNTIME).unwrap_or(path).trim_start_matches('/');
        match self.disk.read(&self.folder.join(inside)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The paths of the records of a kind, as they are in the workspace.
    fn records(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let names = self.disk.list(&self.folder.join(folder))?.into_iter();
        let names = names.filter(|name| !name.starts_with('.') && name.ends_with(".json"));
        Ok(names.map(|name| format!("{RUNTIME}/{folder}/{name}")).collect())
    }
}

/// A backlog item, of ours or of the older runtime; `None` where it is neither.
pub(super) fn item(bytes: &[u8]) -> Option<crate::domain::backlog::BacklogItem> {
    serde_json::from_slice(bytes).ok().or_else(|| shaped(bytes, shape::backlog).ok())
}

/// A request, of ours or of the older runtime.
///
/// # Errors
/// [`StoreError::Encode`] where it is neither.
pub(super) fn request(bytes: &[u8]) -> Result<Request, StoreError> {
    match decode(serde_json::from_slice(bytes)?) {
        Ok(request) => Ok(Arc::unwrap_or_clone(request)),
        Err(RecordError::Shape(error)) => {
            shaped(bytes, shape::request).map_err(|_| StoreError::from(error))
        }
        Err(newer @ RecordError::Newer { .. }) => {
            Err(StoreError::Encode { reason: newer.to_string() })
        }
    }
}

fn shaped<T: DeserializeOwned>(bytes: &[u8], shape: impl Fn(&mut Record<'_>)) -> Result<T, String> {
    let mut notes = Notes::default();
    let mut record = Record::read("", bytes, &mut notes)?;
    shape(&mut record);
    serde_json::from_value(Value::Object(record.map)).map_err(|error| error.to_string())
}

/// What was read of one kind of record.
struct Read<T> {
    record: T,
    /// Whether the file says the same in our own shape.
    exact: bool,
    /// The record before it was made to agree with others.
    bytes: Vec<u8>,
}

struct Reader<'a> {
    source: Source<'a>,
    covered: &'a BTreeSet<String>,
    notes: Notes,
    unreadable: Vec<Unreadable>,
}

impl Reader<'_> {
    /// Reads every record of a folder.
    fn all<T: DeserializeOwned + PartialEq>(
        &mut self,
        folder: &str,
        id: &str,
        shape: impl Fn(&mut Record<'_>),
    ) -> Result<Vec<(String, Read<T>)>, StoreError> {
        let mut all = Vec::new();
        for path in self.source.records(folder)? {
            if let Some(read) = self.one(&path, id, &shape)? {
                all.push((path, read));
            }
        }
        Ok(all)
    }

    fn one<T: DeserializeOwned + PartialEq>(
        &mut self,
        path: &str,
        id: &str,
        shape: &impl Fn(&mut Record<'_>),
    ) -> Result<Option<Read<T>>, StoreError> {
        if self.covered.contains(path) {
            return Ok(None);
        }
        let Some(bytes) = self.source.read(path)? else {
            return Ok(None);
        };
        let mut notes = Notes::default();
        let read = Record::read(path, &bytes, &mut notes).and_then(|mut record| {
            let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".json"));
            if !id.is_empty() {
                let (own, stem) = (record.text(id), stem.unwrap_or_default());
                if own.is_empty() {
                    record.put(id, json!(stem));
                } else if own != stem {
                    return Err("its id does not match its file name".to_owned());
                }
            }
            shape(&mut record);
            serde_json::from_value::<T>(Value::Object(record.map))
                .map_err(|error| error.to_string())
        });
        match read {
            Ok(record) => {
                self.notes.repaired.append(&mut notes.repaired);
                let exact = serde_json::from_slice::<T>(&bytes).is_ok_and(|same| same == record);
                Ok(Some(Read { record, exact, bytes }))
            }
            Err(reason) => {
                self.notes.left(path, &reason);
                self.unreadable.push(Unreadable { path: path.to_owned(), reason });
                Ok(None)
            }
        }
    }
}

/// Reads every record once. Envelopes are left to the watcher: what lies in an inbox is a drop.
pub(super) fn base(
    disk: &dyn Disk,
    root: &Path,
    covered: &BTreeSet<String>,
    loaded: &mut LoadedWorkspace,
) -> Result<(), StoreError> {
    let older = is_older(disk, root)?;
    let kept = read_notes(disk, root)?.unwrap_or_default();
    let source = Source::of(disk, root, &kept);
    let mut reader = Reader { source, covered, notes: Notes::default(), unreadable: Vec::new() };
    let mut found = Older::default();
    let requests = reader.all::<Request>("requests", "request_id", shape::request)?;
    let items = reader.all("backlog", "backlog_id", shape::backlog)?;
    let sprints = reader.all("sprints", "sprint_id", |record| shape::sprint(record, root))?;
    let scheduler = reader.one::<Scheduler>(&layout::scheduler(), "", &shape::scheduler)?;
    if let Some(read) = &scheduler {
        found.scheduler = read.record.clone();
    }
    for (_, read) in &requests {
        found.requests.insert(read.record.request_id.clone(), read.record.clone());
    }
    for (_, read) in &items {
        let item: &crate::domain::backlog::BacklogItem = &read.record;
        found.items.insert(item.backlog_id.clone(), item.clone());
    }
    for (_, read) in &sprints {
        let sprint: &crate::domain::sprint::Sprint = &read.record;
        found.sprints.insert(sprint.sprint_id.clone(), sprint.clone());
    }
    repair::repair(&mut found, &mut reader.notes);
    for (path, read) in requests {
        let Some(now) = found.requests.remove(&read.record.request_id) else { continue };
        take_request(&reader.source, loaded, &path, read, now)?;
    }
    for (path, read) in items {
        let Some(now) = found.items.remove(&read.record.backlog_id) else { continue };
        let exact = read.exact && read.record == now;
        take(loaded, &path, exact, &read.bytes, vec![Change::save(now)])?;
    }
    // What came back from a todo has no record of its own yet.
    for (id, item) in std::mem::take(&mut found.items) {
        take(loaded, &layout::item(&id), false, &[], vec![Change::save(item)])?;
    }
    let kept_sprint = kept_in_memory(&found);
    for (path, read) in sprints {
        let id = read.record.sprint_id.clone();
        let Some(now) = found.sprints.remove(&id) else { continue };
        let stays = kept_sprint.as_ref() == Some(&id);
        // Nobody reads the record of a sprint that is over: it stays as it was written.
        let exact = read.record == now && (read.exact || !stays);
        let mut changes = vec![Change::save(now)];
        if !stays {
            changes.push(Change::Remove(RecordId::Sprint(id)));
        }
        take(loaded, &path, exact, &read.bytes, changes)?;
    }
    let exact = scheduler.as_ref().is_some_and(|it| it.exact && it.record == found.scheduler);
    if scheduler.is_some() || found.scheduler != Scheduler::default() {
        let bytes = scheduler.map(|read| read.bytes).unwrap_or_default();
        let change = Change::save(found.scheduler);
        take(loaded, &layout::scheduler(), exact, &bytes, vec![change])?;
    }
    operations(&mut reader, loaded)?;
    ours(disk, root, covered, loaded)?;
    let sessions = reader.source.records("role_sessions")?.len();
    if sessions > 0 {
        let line = format!("{sessions} conversations of agents begin anew");
        reader.notes.left(&format!("{RUNTIME}/role_sessions"), &line);
    }
    loaded.unreadable.append(&mut reader.unreadable);
    if older {
        reader.notes.backup = kept.backup;
        reader.notes.unfinished = kept.unfinished;
        let mut left = kept.left;
        left.retain(|line| !reader.notes.left.contains(line));
        reader.notes.left.append(&mut left);
        loaded.older = Some(reader.notes);
    }
    Ok(())
}

/// The active sprint, else the last one, which a person can restart.
fn kept_in_memory(found: &Older) -> Option<SprintId> {
    found.scheduler.active_sprint_id.clone().or_else(|| {
        let last = found.sprints.values().max_by_key(|it| (it.started_at, it.sprint_id.clone()));
        last.map(|sprint| sprint.sprint_id.clone())
    })
}

/// Takes records over: as they lie there, or written anew.
fn take(
    loaded: &mut LoadedWorkspace,
    path: &str,
    exact: bool,
    bytes: &[u8],
    changes: Vec<Change>,
) -> Result<(), StoreError> {
    if exact {
        loaded.views.digests.insert(path.to_owned(), crc32fast::hash(bytes));
        for change in &changes {
            loaded.views.state.apply(change);
        }
        return Ok(());
    }
    loaded.views.apply(0, &Entry { base: BTreeMap::new(), changes })
}

fn take_request(
    source: &Source<'_>,
    loaded: &mut LoadedWorkspace,
    path: &str,
    read: Read<Request>,
    now: Request,
) -> Result<(), StoreError> {
    let id = now.request_id.clone();
    let over = now.status.is_terminal();
    let changed = read.record != now;
    let readable = read.exact || serde_json::from_slice::<Request>(&read.bytes).is_ok();
    if over && !changed && readable {
        loaded.views.state.ended_requests += 1;
        return Ok(());
    }
    keep_history(source, &id, &read.bytes, changed.then_some(&now), loaded)?;
    let mut changes = vec![Change::save(now)];
    if over {
        changes.push(Change::Remove(RecordId::Request(id)));
    }
    take(loaded, path, read.exact && !changed, &read.bytes, changes)
}

/// Nobody watches an action that the older runtime began: it counts as failed.
fn operations(reader: &mut Reader<'_>, loaded: &mut LoadedWorkspace) -> Result<(), StoreError> {
    let all = reader.all("operations", "operation_id", |record| {
        if record.text("foreground").is_empty() {
            record.put("foreground", json!(false));
        }
    })?;
    for (path, read) in all {
        let mut operation: crate::domain::operation::Operation = read.record;
        let begun = operation.status == OperationStatus::Running;
        if begun {
            operation.status = OperationStatus::Failed;
            reader.notes.repaired(&path, "it was running and nobody watches it any more");
        }
        if begun || !read.exact {
            take(loaded, &path, false, &read.bytes, vec![Change::save(operation)])?;
        }
    }
    Ok(())
}

/// The kinds of records that only we write: there are some where a crash came before the first checkpoint.
fn ours(
    disk: &dyn Disk,
    root: &Path,
    covered: &BTreeSet<String>,
    loaded: &mut LoadedWorkspace,
) -> Result<(), StoreError> {
    let here = Source { disk, folder: root.join(RUNTIME) };
    for (kind, folder) in [
        (RecordKind::Run, "runs"),
        (RecordKind::Effect, "effects"),
        (RecordKind::Outgoing, "outbox"),
        (RecordKind::Gate, "gates"),
    ] {
        for path in here.records(folder)? {
            if covered.contains(&path) {
                continue;
            }
            let bytes = disk.read(&root.join(&path))?;
            match layout::parse(kind, &path, &bytes) {
                Ok(record) => take(loaded, &path, true, &bytes, vec![Change::Save(record)])?,
                Err(reason) => loaded.unreadable.push(Unreadable { path, reason }),
            }
        }
    }
    Ok(())
}

/// The older runtime kept a request's history inside its record; it moves to a file of its own, because
/// the record is written anew without it. Where taking it over changed the request, a line says so.
fn keep_history(
    source: &Source<'_>,
    id: &RequestId,
    record: &[u8],
    became: Option<&Request>,
    loaded: &mut LoadedWorkspace,
) -> Result<(), StoreError> {
    let path = layout::events(id);
    let mut lines = Vec::new();
    for event in embedded_events(record) {
        serde_json::to_writer(&mut lines, &event)?;
        lines.push(b'\n');
    }
    if let Some(request) = became {
        let line = json!({
            "timestamp": request.updated_at, "type": "taken_over", "actor": "runtime",
            "summary": format!("from an older workspace: {}", request.status.as_str()),
        });
        serde_json::to_writer(&mut lines, &line)?;
        lines.push(b'\n');
    }
    // Whatever a crash left behind that is cut off again.
    let there = source.read(&path)?.unwrap_or_default();
    if lines.starts_with(&there) && !lines.is_empty() {
        let rest = lines[there.len()..].to_vec();
        loaded.views.resume(&path, there.len() as u64, rest);
    }
    Ok(())
}

/// The history inside a record of the older runtime (`spec/teams.md` 4.2); empty for our own.
pub(super) fn embedded_events(record: &[u8]) -> Vec<serde_json::Value> {
    #[derive(Deserialize)]
    struct Record {
        #[serde(default)]
        events: Vec<serde_json::Value>,
    }
    serde_json::from_slice::<Record>(record).map_or_else(|_| Vec::new(), |record| record.events)
}
