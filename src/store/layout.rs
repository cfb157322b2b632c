//! Which file a record lies in, and what its bytes are (`spec/teams.md` 3.2 and 4).

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::budget::Spending;
use crate::domain::change::{Change, Session};
use crate::domain::envelope::{Envelope, Place};
use crate::domain::ids::{BacklogId, RequestId, SprintId};
use crate::domain::lifecycle::Lifecycle;
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::schedule::Scheduler;
use crate::domain::state::State;

/// The folder of the runtime inside the workspace.
pub const RUNTIME: &str = ".teams_runtime";
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

/// The kinds of records that have a file of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Request,
    Envelope,
    Run,
    Effect,
    Outgoing,
    Gate,
    Operation,
    Session,
    Backlog,
    Sprint,
    Scheduler,
    Spending,
    Lifecycle,
}

/// The scheduler's record.
pub(super) const SCHEDULER: &str = ".teams_runtime/sprint_scheduler.json";

/// The record of what was spent.
const SPENDING: &str = ".teams_runtime/spending.json";

/// The path of a sprint's record.
pub(super) fn sprint(id: &SprintId) -> String {
    format!("{RUNTIME}/sprints/{id}.json")
}

/// The path of a backlog item's record.
pub(super) fn item(id: &BacklogId) -> String {
    format!("{RUNTIME}/backlog/{id}.json")
}

/// The path of a sprint's history.
pub(super) fn sprint_events(id: &SprintId) -> String {
    format!("{RUNTIME}/sprints/{id}.events.jsonl")
}

/// The path of a lifecycle's definition.
fn lifecycle(digest: &str) -> String {
    format!("{RUNTIME}/lifecycles/{digest}.yaml")
}

/// The path of a request's record.
pub(super) fn request(id: &RequestId) -> String {
    format!("{RUNTIME}/requests/{id}.json")
}

/// The path of a request's history.
pub(super) fn events(id: &RequestId) -> String {
    format!("{RUNTIME}/requests/{id}.events.jsonl")
}

fn session(session: &Session) -> String {
    format!("{RUNTIME}/role_sessions/{}.{}.json", session.role, session.request_id)
}

/// The path of an envelope in one of its places. The archive has a folder a day, by the day on which
/// the envelope was written, so that no folder grows without end (`spec/rust.md` C4).
pub(super) fn envelope(envelope: &Envelope, place: Place) -> String {
    let (role, id) = (envelope.target_role, &envelope.relay_id);
    match place {
        Place::Inbox | Place::Dead => format!("{RELAY}/{}/{role}/{id}.json", place.as_str()),
        Place::Archive => {
            let day = envelope.created_at.archive_date();
            format!("{RELAY}/archive/{role}/{day}/{id}.json")
        }
    }
}

/// The folder of a role in one of the places of the queue.
#[must_use]
pub fn relay_folder(place: Place, role: Role) -> String {
    format!("{RELAY}/{}/{role}", place.as_str())
}

/// The record's JSON as the older runtime wrote it: two blanks, a newline at the end.
pub(super) fn pretty<T: Serialize>(record: &T) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(record)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The path of the record that a change sets; none for changes of other kinds.
pub(super) fn path_of(change: &Change) -> Option<String> {
    match change {
        Change::Request(record) => Some(request(&record.request_id)),
        Change::Envelope(record) => Some(envelope(record, record.place)),
        Change::Run(record) => Some(format!("{RUNTIME}/runs/{}.json", record.run_id)),
        Change::RunGone(id) => Some(format!("{RUNTIME}/runs/{id}.json")),
        Change::Effect(record) => Some(format!("{RUNTIME}/effects/{}.json", record.effect_id)),
        Change::EffectGone(id) => Some(format!("{RUNTIME}/effects/{id}.json")),
        Change::Outgoing(record) => Some(format!("{RUNTIME}/outbox/{}.json", record.outgoing_id)),
        Change::OutgoingGone(id) => Some(format!("{RUNTIME}/outbox/{id}.json")),
        Change::Gate(record) => Some(format!("{RUNTIME}/gates/{}.json", record.gate_id)),
        Change::Operation(record) => {
            Some(format!("{RUNTIME}/operations/{}.json", record.operation_id))
        }
        Change::Session(record) => Some(session(record)),
        Change::Backlog(record) => Some(item(&record.backlog_id)),
        Change::Sprint(record) => Some(sprint(&record.sprint_id)),
        Change::Scheduler(_) => Some(SCHEDULER.to_owned()),
        Change::Spending(_) => Some(SPENDING.to_owned()),
        Change::Lifecycle(record) => Some(lifecycle(record.digest())),
        Change::RetireRequest(_)
        | Change::RetireSprint(_)
        | Change::SprintEvent(..)
        | Change::Event(..)
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

/// What a change does to the files. `before` is the state that it is applied to.
pub(super) fn targets(
    seq: u64,
    change: &Change,
    before: &State,
) -> serde_json::Result<Vec<Target>> {
    let path = path_of(change);
    let set = |bytes: Vec<u8>| path.clone().map(|path| Target::File(path, bytes));
    let one = |target: Option<Target>| target.into_iter().collect();
    Ok(match change {
        Change::Request(record) => one(set(pretty(record)?)),
        Change::RetireRequest(id) => before
            .sessions
            .values()
            .filter(|record| record.request_id == *id)
            .map(|record| Target::Gone(session(record)))
            .collect(),
        Change::Event(id, event) => {
            vec![Target::Append(events(id), line(seq, event)?)]
        }
        Change::SprintEvent(id, event) => {
            vec![Target::Append(sprint_events(id), line(seq, event)?)]
        }
        Change::Backlog(record) => one(set(pretty(record)?)),
        Change::Sprint(record) => one(set(pretty(record)?)),
        Change::Scheduler(record) => one(set(pretty(record)?)),
        Change::Spending(record) => one(set(pretty(record)?)),
        Change::Lifecycle(record) => one(set(record.text().as_bytes().to_vec())),
        Change::RetireSprint(_) => Vec::new(),
        Change::Envelope(record) => {
            // An operator may move a dead letter back as soon as it can be seen. A removal of the inbox's
            // file that came after that would take the letter that was put there.
            let moved = record.place == Place::Dead;
            let mut targets: Vec<Target> = if moved {
                vec![Target::Moved {
                    from: envelope(record, Place::Inbox),
                    to: envelope(record, Place::Dead),
                    bytes: pretty(record)?,
                }]
            } else {
                one(set(pretty(record)?))
            };
            for place in [Place::Inbox, Place::Archive, Place::Dead] {
                if place != record.place && !(moved && place == Place::Inbox) {
                    targets.push(Target::Gone(envelope(record, place)));
                }
            }
            targets
        }
        Change::Run(record) => one(set(pretty(record)?)),
        Change::Effect(record) => one(set(pretty(record)?)),
        Change::Outgoing(record) => one(set(pretty(record)?)),
        Change::RunGone(_) | Change::EffectGone(_) | Change::OutgoingGone(_) => {
            one(path.clone().map(Target::Gone))
        }
        Change::Gate(record) => one(set(pretty(record)?)),
        Change::Operation(record) => one(set(pretty(record)?)),
        Change::Session(record) => one(set(pretty(record)?)),
        // The marks change with every message; their file is written at checkpoints.
        Change::Channel(_) => Vec::new(),
        Change::Append { file, text } => {
            vec![Target::Append(file.clone(), text.clone().into_bytes())]
        }
    })
}

/// The append-only file that a change adds to.
pub(super) fn appended_file(change: &Change) -> Option<String> {
    match change {
        Change::Event(id, _) => Some(events(id)),
        Change::SprintEvent(id, _) => Some(sprint_events(id)),
        Change::Append { file, .. } => Some(file.clone()),
        Change::Request(_)
        | Change::RetireRequest(_)
        | Change::Envelope(_)
        | Change::Run(_)
        | Change::RunGone(_)
        | Change::Effect(_)
        | Change::EffectGone(_)
        | Change::Outgoing(_)
        | Change::OutgoingGone(_)
        | Change::Gate(_)
        | Change::Operation(_)
        | Change::Session(_)
        | Change::Channel(_)
        | Change::Backlog(_)
        | Change::Sprint(_)
        | Change::RetireSprint(_)
        | Change::Scheduler(_)
        | Change::Lifecycle(_)
        | Change::Spending(_) => None,
    }
}

/// Reads a record file as the change that sets it; `Err` says why it is none.
pub(super) fn parse(kind: Kind, path: &str, bytes: &[u8]) -> Result<Change, String> {
    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
    let change = match kind {
        Kind::Request => Change::Request(read::<Box<Request>>(bytes)?),
        Kind::Envelope => Change::Envelope(read(bytes)?),
        Kind::Run => Change::Run(read(bytes)?),
        Kind::Effect => Change::Effect(read(bytes)?),
        Kind::Outgoing => Change::Outgoing(read(bytes)?),
        Kind::Gate => Change::Gate(read(bytes)?),
        Kind::Operation => Change::Operation(read(bytes)?),
        Kind::Session => Change::Session(read(bytes)?),
        Kind::Backlog => Change::Backlog(read(bytes)?),
        Kind::Sprint => Change::Sprint(read(bytes)?),
        Kind::Scheduler => Change::Scheduler(read(bytes)?),
        Kind::Spending => Change::Spending(read(bytes)?),
        Kind::Lifecycle => {
            let text = String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())?;
            Change::Lifecycle(Arc::new(Lifecycle::try_from(text)?))
        }
    };
    // An id or place that was edited would make the record another one.
    if path_of(&change).as_deref() == Some(path) {
        Ok(change)
    } else {
        Err("its id does not match its file name".to_owned())
    }
}

/// The files of everything that is open.
pub(super) fn open_records(state: &State) -> Vec<(Kind, String)> {
    let mut records = Vec::new();
    let of = |kind: Kind, change: Change| path_of(&change).map(|path| (kind, path));
    records.extend(state.requests.keys().map(|id| (Kind::Request, request(id))));
    records.extend(
        (state.envelopes.values()).map(|record| (Kind::Envelope, envelope(record, record.place))),
    );
    records.extend((state.runs.keys()).filter_map(|id| of(Kind::Run, Change::RunGone(id.clone()))));
    records.extend(
        (state.effects.keys()).filter_map(|id| of(Kind::Effect, Change::EffectGone(id.clone()))),
    );
    records.extend(
        (state.outgoing.keys())
            .filter_map(|id| of(Kind::Outgoing, Change::OutgoingGone(id.clone()))),
    );
    records.extend(
        (state.gates.values()).filter_map(|gate| of(Kind::Gate, Change::Gate(gate.clone()))),
    );
    records.extend(
        (state.operations.values())
            .filter_map(|record| of(Kind::Operation, Change::Operation(record.clone()))),
    );
    records.extend(state.sessions.values().map(|record| (Kind::Session, session(record))));
    records.extend((state.backlog.keys()).map(|id| (Kind::Backlog, item(id))));
    records.extend(state.sprints.keys().map(|id| (Kind::Sprint, sprint(id))));
    records.extend(state.lifecycles.keys().map(|digest| (Kind::Lifecycle, lifecycle(digest))));
    if state.scheduler != Scheduler::default() {
        records.push((Kind::Scheduler, SCHEDULER.to_owned()));
    }
    if state.spending != Spending::default() {
        records.push((Kind::Spending, SPENDING.to_owned()));
    }
    records
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
