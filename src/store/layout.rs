//! Which file a record lies in, and what its bytes are (`spec/teams.md` 3.2 and 4).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::change::Change;
use crate::domain::envelope::{Envelope, EnvelopeFolder};
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::record::{
    AnyRecord, INTERACTIONS, RUNTIME, RecordKind, SCHEDULER, SPENDING, inside, request_events_path,
    request_path,
};
use crate::domain::role::Role;

/// The journal's folder.
pub(super) const JOURNAL: &str = ".teams_runtime/journal";
/// The index of the last checkpoint.
pub(super) const INDEX: &str = ".teams_runtime/checkpoint";
/// How far each channel has been read.
pub(super) const CHANNELS: &str = ".teams_runtime/channels.json";
/// The lock of the workspace.
pub(super) const LOCK: &str = ".teams_runtime/lock";
/// The file queue.
pub const RELAY: &str = ".teams_runtime/internal_relay";

/// What one change does to one file; paths are relative to the workspace.
pub(super) enum Target {
    /// The file is now this.
    File(String, Vec<u8>),
    /// The file `from` is gone, and only then `to` is this. Between the two the journal alone has it.
    Moved {
        /// Where it was.
        from: String,
        /// Where it is.
        to: String,
        /// Its new bytes.
        bytes: Vec<u8>,
    },
    /// The file is gone.
    Gone(String),
    /// The file grows by this.
    Append(String, Vec<u8>),
}

/// The folders of records that another program may have written as well.
pub(super) const SHARED_FOLDERS: [(RecordKind, &str); 10] = [
    (RecordKind::Request, "requests"),
    (RecordKind::Backlog, "backlog"),
    (RecordKind::Plan, "plans"),
    (RecordKind::Sprint, "sprints"),
    (RecordKind::Operation, "operations"),
    (RecordKind::Run, "runs"),
    (RecordKind::Effect, "effects"),
    (RecordKind::Outgoing, "outbox"),
    (RecordKind::Gate, "gates"),
    (RecordKind::Verification, "verifications"),
];

/// Those that nobody else has.
pub(super) const OWN_FOLDERS: [(RecordKind, &str); 2] =
    [(RecordKind::Session, "role_sessions"), (RecordKind::Lifecycle, "lifecycles")];

/// Records of which there is one, but for the scheduler.
pub(super) const SINGLE: [(RecordKind, &str); 2] =
    [(RecordKind::Spending, SPENDING), (RecordKind::Interactions, INTERACTIONS)];

/// The kind of the record whose file this is; none of an envelope that was handled.
pub(super) fn kind_of(path: &str) -> Option<RecordKind> {
    if path.starts_with(&format!("{RELAY}/{}/", EnvelopeFolder::Inbox.as_str())) {
        return Some(RecordKind::Envelope);
    }
    let path = path.strip_prefix(RUNTIME)?.strip_prefix('/')?;
    let single = SINGLE.iter().chain(&[(RecordKind::Scheduler, SCHEDULER)]);
    let mut single = single.filter(|(_, file)| *file == path);
    let folder = path.split_once('/').map(|(folder, _)| folder);
    let mut folders = SHARED_FOLDERS.iter().chain(&OWN_FOLDERS);
    let found = single.next().or_else(|| folders.find(|(_, name)| folder == Some(*name)));
    found.map(|(kind, _)| *kind)
}

/// The path of a sprint's history.
pub(super) fn sprint_events(id: &SprintId) -> String {
    format!("{RUNTIME}/sprints/{id}.events.jsonl")
}

/// The path of a request's record.
pub(super) fn request(id: &RequestId) -> String {
    inside(&request_path(id))
}

/// The path of a request's history.
pub(super) fn events(id: &RequestId) -> String {
    inside(&request_events_path(id))
}

/// The folder of a role in one of the places of the queue.
#[must_use]
pub fn relay_folder(place: EnvelopeFolder, role: Role) -> String {
    format!("{RELAY}/{}/{role}", place.as_str())
}

/// The path of the record that a change sets or removes; none for changes of other kinds.
pub(super) fn path_of(change: &Change) -> Option<String> {
    match change {
        Change::Save(record) => Some(inside(&record.path())),
        Change::Remove(id) => id.path().map(|path| inside(&path)),
        Change::Event(..)
        | Change::SprintEvent(..)
        | Change::Channel(_)
        | Change::Append { .. } => None,
    }
}

/// Whether the file of a record stays when what it is about has ended.
pub(super) fn outlives_its_end(path: &str) -> bool {
    ["/requests/", "/gates/", "/operations/", "/archive/", "/dead/", "/backlog/", "/sprints/"]
        .iter()
        .any(|folder| path.contains(folder))
}

#[derive(Serialize)]
struct EventLine<'a, E> {
    seq: u64,
    #[serde(flatten)]
    event: &'a E,
}

/// One line of an append-only history.
fn line<E: Serialize>(seq: u64, event: &E) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&EventLine { seq, event })?;
    line.push(b'\n');
    Ok(line)
}

/// What a change does to the files.
pub(super) fn targets(seq: u64, change: &Change) -> serde_json::Result<Vec<Target>> {
    Ok(match change {
        Change::Save(AnyRecord::Envelope(record)) => moved(record)?,
        Change::Save(record) => vec![Target::File(inside(&record.path()), record.bytes()?)],
        Change::Remove(id) => {
            id.path().map(|path| Target::Gone(inside(&path))).into_iter().collect()
        }
        Change::Event(id, event) => vec![Target::Append(events(id), line(seq, event)?)],
        Change::SprintEvent(id, event) => {
            vec![Target::Append(sprint_events(id), line(seq, event)?)]
        }
        // The marks change with every message; their file is written at checkpoints.
        Change::Channel(_) => Vec::new(),
        Change::Append { file, text } => {
            vec![Target::Append(file.clone(), text.clone().into_bytes())]
        }
    })
}

/// An envelope lies in one place of the queue and in no other.
fn moved(record: &Arc<Envelope>) -> serde_json::Result<Vec<Target>> {
    let path = |place| inside(&record.path_in(place));
    let (to, content) = (path(record.place), AnyRecord::Envelope(Arc::clone(record)).bytes()?);
    // An operator may move a dead letter back as soon as it can be seen. A removal of the inbox's file that
    // came after that would take the letter that was put there.
    let moved = record.place == EnvelopeFolder::Dead;
    let mut targets = vec![match moved {
        true => Target::Moved { from: path(EnvelopeFolder::Inbox), to, bytes: content },
        false => Target::File(to, content),
    }];
    for place in [EnvelopeFolder::Inbox, EnvelopeFolder::Archive, EnvelopeFolder::Dead] {
        if place != record.place && !(moved && place == EnvelopeFolder::Inbox) {
            targets.push(Target::Gone(path(place)));
        }
    }
    Ok(targets)
}

/// The append-only file that a change adds to.
pub(super) fn appended_file(change: &Change) -> Option<String> {
    match change {
        Change::Event(id, _) => Some(events(id)),
        Change::SprintEvent(id, _) => Some(sprint_events(id)),
        Change::Append { file, .. } => Some(file.clone()),
        Change::Save(_) | Change::Remove(_) | Change::Channel(_) => None,
    }
}

/// Reads a record file; `Err` says why it is none.
pub(super) fn parse(kind: RecordKind, path: &str, bytes: &[u8]) -> Result<AnyRecord, String> {
    let value = if kind == RecordKind::Lifecycle {
        String::from_utf8(bytes.to_vec()).map(Value::String).map_err(explain)?
    } else {
        serde_json::from_slice(bytes).map_err(explain)?
    };
    let record = AnyRecord::decode(kind, value).map_err(explain)?;
    // An id or place that was edited would make the record another one.
    if inside(&record.path()) == path {
        Ok(record)
    } else {
        Err("its id does not match its file name".to_owned())
    }
}

fn explain(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The file of a record that was open and could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lost {
    pub(super) kind: RecordKind,
    pub(super) path: String,
}

impl Lost {
    /// As many are remembered, the latest.
    pub(super) const MOST: usize = 64;

    /// Whether a record of this kind is worked on by people, who may mend its file.
    pub(super) const fn is_kept(kind: RecordKind) -> bool {
        matches!(
            kind,
            RecordKind::Request
                | RecordKind::Backlog
                | RecordKind::Plan
                | RecordKind::Sprint
                | RecordKind::Gate
                | RecordKind::Verification
        )
    }
}

/// Whether a path of [`Change::Append`] stays inside the workspace and outside of the records.
pub(super) fn is_document(file: &str) -> bool {
    use std::path::{Component, Path};
    let inside = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
    inside && !file.is_empty() && !file.starts_with(RUNTIME) && !file.contains('\0')
}

/// The sequence in the name of a segment.
pub(super) fn first_seq(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}
