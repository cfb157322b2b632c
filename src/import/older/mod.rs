//! Workspaces of the older Python runtime (`spec/teams.md` 4).
//!
//! What it wrote is read, brought into our shape, made to agree with itself and written back, once and before
//! the store opens. Before that the whole state folder is copied, and until everything is written and durable the
//! copy is what counts: a crash may have left any of the records half written. What could not be carried over is
//! named, and left where it lies.

mod error;
mod notes;
mod record;
mod records;
mod repair;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use error::ImportError;
pub use notes::Notes;

use crate::domain::ids::ItemId;
use crate::domain::item::Item;
use crate::domain::operation::{Operation, OperationStatus};
use crate::domain::record::{AnyRecord, RUNTIME, SCHEDULER, decode, inside, request_events_path};
use crate::domain::request::Request;
use crate::domain::schedule::Scheduler;
use crate::domain::sprint::Sprint;
use crate::platform::backup;
use crate::platform::disk::{Disk, Node, RealDisk, replace};
use record::Record;
use records::Records;

/// The folders of its records.
const RECORDS: [&str; 5] = ["requests", "backlog", "sprints", "operations", "role_sessions"];

/// What the records of the older runtime become.
pub struct ConvertedWorkspace {
    /// What was changed, and what cannot be carried over.
    pub notes: Notes,
    /// Every record.
    pub records: Vec<AnyRecord>,
    /// The files that taking over writes.
    files: Files,
}

/// What taking over would do; `None` where there is nothing to take over. Changes nothing.
///
/// # Errors
/// What the disk reports.
pub fn preview(root: &Path) -> Result<Option<ConvertedWorkspace>, ImportError> {
    let kept = notes::read(&RealDisk, root)?;
    if !is_older(&RealDisk, root, kept.as_ref())? {
        return Ok(None);
    }
    convert(&RealDisk, root, kept.unwrap_or_default()).map(Some)
}

/// The notes of a workspace that was taken over; `None` for any other.
///
/// # Errors
/// What the disk reports.
pub fn notes(root: &Path) -> Result<Option<Notes>, ImportError> {
    notes::read(&RealDisk, root)
}

/// Takes over what the older runtime left, where that was not done yet. The caller holds the workspace, and opens
/// the store only afterwards. A crash at any instant loses nothing: the next call goes on.
///
/// # Errors
/// What the disk reports.
pub fn take_over(disk: &dyn Disk, root: &Path) -> Result<Option<Notes>, ImportError> {
    let kept = notes::read(disk, root)?;
    if !is_older(disk, root, kept.as_ref())? {
        if let Some(notes) = kept.filter(|it| it.version < notes::VERSION || it.unfinished) {
            write(disk, root, &ended_requests(disk, root)?)?;
            let done = Notes { version: notes::VERSION, unfinished: false, ..notes };
            notes::keep(disk, root, &done)?;
        }
        return Ok(None);
    }
    let kept = match kept.filter(|it| !it.backup.is_empty()) {
        Some(kept) => kept,
        None => back_up(disk, root)?,
    };
    let ConvertedWorkspace { files, mut notes, .. } = convert(disk, root, kept)?;
    write(disk, root, &files)?;
    (notes.version, notes.unfinished) = (notes::VERSION, false);
    notes::keep(disk, root, &notes)?;
    Ok(Some(notes))
}

/// Whether the records are those of the older runtime, or half taken over: there is no checkpoint and no journal
/// of ours.
fn is_older(disk: &dyn Disk, root: &Path, kept: Option<&Notes>) -> Result<bool, ImportError> {
    let here = Source { disk, folder: root.join(RUNTIME) };
    if disk.len(&here.folder.join("checkpoint"))?.is_some() {
        return Ok(false);
    }
    if let Some(kept) = kept {
        return Ok(kept.unfinished);
    }
    if !disk.list(&here.folder.join("journal"))?.is_empty() {
        return Ok(false);
    }
    if disk.len(&here.folder.join(SCHEDULER))?.is_some() {
        return Ok(true);
    }
    for folder in RECORDS {
        if !here.records(folder)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Copies the state folder before anything is written, once.
fn back_up(disk: &dyn Disk, root: &Path) -> Result<Notes, ImportError> {
    // What opening itself made before is not of the older runtime.
    let theirs = |path: &Path| {
        !["lock", "born", notes::FILE, ".import.json.tmp"].iter().any(|it| path == Path::new(it))
    };
    for folder in RECORDS {
        let path = inside(folder);
        if disk.node(&root.join(&path))? == Some(Node::Other) {
            return Err(ImportError::Link(path));
        }
    }
    let mut notes = Notes { unfinished: true, ..Notes::default() };
    let made = backup::make(disk, root, RUNTIME, theirs)?;
    for path in made.left {
        notes.left(&path, "it is no file, and not in the backup");
    }
    notes.backup = made.name;
    notes::keep(disk, root, &notes)?;
    Ok(notes)
}

/// Files by their path in the workspace.
type Files = BTreeMap<String, Vec<u8>>;

/// Writes files durably.
fn write(disk: &dyn Disk, root: &Path, files: &Files) -> Result<(), ImportError> {
    let mut folders = BTreeSet::from([root.join(RUNTIME)]);
    let mut written = Vec::new();
    for (path, bytes) in files {
        let path = root.join(path);
        if let Some(folder) = path.parent()
            && folders.insert(folder.to_owned())
        {
            disk.create_dir(folder)?;
        }
        replace(disk, &path, bytes)?;
        written.push(path);
    }
    disk.sync_many(root, &written, &folders.into_iter().collect::<Vec<_>>())?;
    Ok(())
}

/// Where the records of the older runtime are read.
struct Source<'a> {
    disk: &'a dyn Disk,
    /// The state folder, or its copy.
    folder: PathBuf,
}

impl Source<'_> {
    /// The bytes of a record, by its path in the workspace; `None` where there is none.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, ImportError> {
        let inside = path.strip_prefix(RUNTIME).unwrap_or(path).trim_start_matches('/');
        match self.disk.read(&self.folder.join(inside)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The paths of the records of a kind, as they are in the workspace.
    fn records(&self, folder: &str) -> Result<Vec<String>, ImportError> {
        let names = self.disk.list(&self.folder.join(folder))?.into_iter();
        let names = names.filter(|name| !name.starts_with('.') && name.ends_with(".json"));
        Ok(names.map(|name| inside(&format!("{folder}/{name}"))).collect())
    }
}

/// What was read of one record.
struct Read<T> {
    path: String,
    /// In our shape, before it was made to agree with others.
    record: T,
    /// Whether the file says the same in our own shape.
    exact: bool,
    bytes: Vec<u8>,
}

struct Reader<'a> {
    source: Source<'a>,
    became: ConvertedWorkspace,
}

impl Reader<'_> {
    /// Reads every record of a folder.
    fn all<T: DeserializeOwned + PartialEq>(
        &mut self,
        folder: &str,
        id: &str,
        shape: impl Fn(&mut Record<'_>),
    ) -> Result<Vec<Read<T>>, ImportError> {
        let mut all = Vec::new();
        for path in self.source.records(folder)? {
            all.extend(self.one(&path, id, &shape)?);
        }
        Ok(all)
    }

    fn one<T: DeserializeOwned + PartialEq>(
        &mut self,
        path: &str,
        id: &str,
        shape: &impl Fn(&mut Record<'_>),
    ) -> Result<Option<Read<T>>, ImportError> {
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
                self.became.notes.repaired.append(&mut notes.repaired);
                let exact = serde_json::from_slice::<T>(&bytes).is_ok_and(|same| same == record);
                Ok(Some(Read { path: path.to_owned(), record, exact, bytes }))
            }
            Err(reason) => {
                self.became.notes.left(path, &reason);
                Ok(None)
            }
        }
    }

    /// A record as it became, which is written anew unless its file says the same.
    fn keep<T: PartialEq>(&mut self, read: &Read<T>, now: T) -> Result<(), ImportError>
    where
        AnyRecord: From<T>,
    {
        let written = !read.exact || read.record != now;
        let record = AnyRecord::from(now);
        if written {
            self.became.files.insert(read.path.clone(), record.bytes()?);
        }
        self.became.records.push(record);
        Ok(())
    }

    /// A record that had no file.
    fn add(&mut self, record: AnyRecord) -> Result<(), ImportError> {
        self.became.files.insert(inside(&record.path()), record.bytes()?);
        self.became.records.push(record);
        Ok(())
    }

    /// The older runtime kept a request's history inside its record; it gets a file of its own. Where taking it
    /// over changed the request, a line says so.
    fn keep_history(&mut self, read: &Read<Request>, now: &Request) -> Result<(), ImportError> {
        let path = inside(&request_events_path(&now.request_id));
        let there = self.source.read(&path)?;
        let mut lines = there.clone().map_or_else(|| embedded_events(&read.bytes), Ok)?;
        if read.record != *now {
            let line = json!({
                "timestamp": now.updated_at, "type": "taken_over", "actor": "runtime",
                "summary": format!("from an older workspace: {}", now.status.as_str()),
            });
            serde_json::to_writer(&mut lines, &line)?;
            lines.push(b'\n');
        }
        if lines != there.unwrap_or_default() {
            self.became.files.insert(path, lines);
        }
        Ok(())
    }
}

/// The items that sprints hold whole beside their records.
fn copies(sprints: &[Read<Sprint>]) -> BTreeMap<ItemId, Item> {
    let mut found = BTreeMap::new();
    for read in sprints {
        let sprint: Value = serde_json::from_slice(&read.bytes).unwrap_or_default();
        for copy in sprint["selected_items"].as_array().into_iter().flatten() {
            let mut notes = Notes::default();
            let item = Record::read(&read.path, copy.to_string().as_bytes(), &mut notes);
            let item = item.ok().and_then(|mut record| {
                shape::backlog(&mut record);
                serde_json::from_value::<Item>(Value::Object(record.map)).ok()
            });
            found.extend(item.map(|item| (item.backlog_id.clone(), item)));
        }
    }
    found
}

/// Reads every record, from the copy where there is one.
fn convert(disk: &dyn Disk, root: &Path, kept: Notes) -> Result<ConvertedWorkspace, ImportError> {
    let folder = root.join(if kept.backup.is_empty() { RUNTIME } else { &kept.backup });
    if disk.node(&folder)?.is_none() {
        return Err(ImportError::NoCopy(kept.backup));
    }
    let notes = Notes { repaired: Vec::new(), left: Vec::new(), ..kept.clone() };
    let became = ConvertedWorkspace { notes, records: Vec::new(), files: Files::new() };
    let mut reader = Reader { source: Source { disk, folder }, became };
    let mut found = Records::default();
    let requests: Vec<Read<Request>> = reader.all("requests", "request_id", shape::request)?;
    let items: Vec<Read<Item>> = reader.all("backlog", "backlog_id", shape::backlog)?;
    let sprints: Vec<Read<Sprint>> =
        reader.all("sprints", "sprint_id", |record| shape::sprint(record, root))?;
    let scheduler = reader.one::<Scheduler>(&inside(SCHEDULER), "", &shape::scheduler)?;
    if let Some(read) = &scheduler {
        found.scheduler = read.record.clone();
    }
    let of_requests = requests.iter().map(|it| (it.record.request_id.clone(), it.record.clone()));
    found.requests.extend(of_requests);
    let of_items = items.iter().map(|it| (it.record.backlog_id.clone(), it.record.clone()));
    found.items.extend(of_items);
    let of_sprints = sprints.iter().map(|it| (it.record.sprint_id.clone(), it.record.clone()));
    found.sprints.extend(of_sprints);
    found.copies = copies(&sprints);
    repair::repair(&mut found, &mut reader.became.notes);
    for read in requests {
        let Some(now) = found.requests.remove(&read.record.request_id) else { continue };
        reader.keep_history(&read, &now)?;
        reader.keep(&read, now)?;
    }
    for read in items {
        let Some(now) = found.items.remove(&read.record.backlog_id) else { continue };
        reader.keep(&read, now)?;
    }
    // What came back from a todo has no record of its own yet.
    for item in found.items.into_values() {
        reader.add(AnyRecord::from(item))?;
    }
    for read in sprints {
        let Some(now) = found.sprints.remove(&read.record.sprint_id) else { continue };
        reader.keep(&read, now)?;
    }
    match scheduler {
        Some(read) => reader.keep(&read, found.scheduler)?,
        None if found.scheduler == Scheduler::default() => {}
        None => reader.add(AnyRecord::from(found.scheduler))?,
    }
    operations(&mut reader)?;
    let sessions = reader.source.records("role_sessions")?.len();
    if sessions > 0 {
        let line = format!("{sessions} conversations of agents begin anew");
        reader.became.notes.left(&inside("role_sessions"), &line);
    }
    // What the backup could not copy.
    let left = &mut reader.became.notes.left;
    let more: Vec<String> = kept.left.into_iter().filter(|it| !left.contains(it)).collect();
    left.extend(more);
    Ok(reader.became)
}

/// Nobody watches an action that the older runtime began: it counts as failed.
fn operations(reader: &mut Reader<'_>) -> Result<(), ImportError> {
    let all: Vec<Read<Operation>> = reader.all("operations", "operation_id", |record| {
        if record.text("foreground").is_empty() {
            record.put("foreground", json!(false));
        }
    })?;
    for read in all {
        let mut operation = read.record.clone();
        if operation.status == OperationStatus::Running {
            operation.status = OperationStatus::Failed;
            reader
                .became
                .notes
                .repaired(&read.path, "it was running and nobody watches it any more");
        }
        reader.keep(&read, operation)?;
    }
    Ok(())
}

/// The ended requests that an earlier build left as the older runtime wrote them, and their histories.
fn ended_requests(disk: &dyn Disk, root: &Path) -> Result<Files, ImportError> {
    let mut files = Files::new();
    let here = Source { disk, folder: root.join(RUNTIME) };
    for path in here.records("requests")? {
        let Some(bytes) = here.read(&path)? else { continue };
        let Ok(value) = serde_json::from_slice::<Value>(&bytes) else { continue };
        let lines = embedded_events(&bytes)?;
        let ours = decode::<Request>(value);
        let request = match &ours {
            Ok(request) => Arc::clone(request),
            Err(_) => {
                let mut notes = Notes::default();
                let shaped = Record::read(&path, &bytes, &mut notes).and_then(|mut record| {
                    shape::request(&mut record);
                    serde_json::from_value::<Request>(Value::Object(record.map))
                        .map_err(|error| error.to_string())
                });
                // What is nothing that can be read stays as it is.
                let Ok(request) = shaped else { continue };
                Arc::new(request)
            }
        };
        let history = inside(&request_events_path(&request.request_id));
        if !lines.is_empty() && here.read(&history)?.is_none() {
            files.insert(history, lines);
        }
        if ours.is_err() {
            files.insert(path, AnyRecord::from(request).bytes()?);
        }
    }
    Ok(files)
}

/// The history inside a record of the older runtime (`spec/teams.md` 4.2), a line each; empty for our own.
fn embedded_events(record: &[u8]) -> Result<Vec<u8>, ImportError> {
    #[derive(Deserialize)]
    struct Record {
        #[serde(default)]
        events: Vec<Value>,
    }
    let mut lines = Vec::new();
    for event in serde_json::from_slice::<Record>(record).map_or(Vec::new(), |it| it.events) {
        serde_json::to_writer(&mut lines, &event)?;
        lines.push(b'\n');
    }
    Ok(lines)
}
