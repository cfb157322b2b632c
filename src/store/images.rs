//! Records in the journal: whole when they are saved for the first time since the checkpoint, and after that
//! what changed (RFC 6902). Whoever writes and whoever reads keep the same images of them.
//!
//! A role's result comes in its report, stays in its request and stands in the history. The first entry that has
//! it holds it whole, and where the same follows it is a [`ResultReference`].

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use json_patch::Patch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::domain::change::{Change, ChannelMark};
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::record::{AnyRecord, RecordId, RecordKind};
use crate::domain::request::{EventKind, RequestEvent};
use crate::domain::sprint::SprintEvent;

/// A change as the journal has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalChange {
    /// The record is now this.
    Save(RecordKind, Value),
    /// What changed of the record that is known by this.
    Edit(RecordKind, String, Patch),
    /// The record leaves memory.
    Remove(RecordId),
    /// A line for a request's history.
    Event(RequestId, RequestEvent),
    /// A line for a sprint's history.
    SprintEvent(SprintId, SprintEvent),
    /// The channel was read up to here.
    Channel(ChannelMark),
    /// Text for an append-only document.
    Append {
        /// Workspace-relative path.
        file: String,
        /// What to add.
        text: String,
    },
}

/// A change that waits for its place in the journal.
pub(super) enum ChangeDraft {
    /// A record: what it is known by, whether it stays open, its JSON and where in it a role's result is.
    Record { kind: RecordKind, key: String, open: bool, json: String, result: Option<Range<usize>> },
    /// Anything else, as it is written.
    Ready(JournalChange),
}

impl ChangeDraft {
    /// What a change is as JSON.
    pub(super) fn of(change: &Change) -> serde_json::Result<Self> {
        Ok(Self::Ready(match change {
            Change::Save(record) => {
                let (kind, json) = (record.kind(), record.to_json()?);
                let result = result_in(&json, result_path(kind));
                let (key, open) = (record.key(), record.is_open());
                return Ok(Self::Record { kind, key, open, json, result });
            }
            Change::Remove(id) => JournalChange::Remove(id.clone()),
            Change::Event(id, event) => JournalChange::Event(id.clone(), event.clone()),
            Change::SprintEvent(id, event) => JournalChange::SprintEvent(id.clone(), event.clone()),
            Change::Channel(mark) => JournalChange::Channel(mark.clone()),
            Change::Append { file, text } => {
                JournalChange::Append { file: file.clone(), text: text.clone() }
            }
        }))
    }

    /// About how many bytes it is.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Record { json, .. } => json.len(),
            Self::Ready(JournalChange::Append { text, .. }) => text.len(),
            Self::Ready(JournalChange::Event(_, event)) => weight(&event.payload),
            Self::Ready(_) => 200,
        }
    }
}

fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 8,
        Value::Array(items) => items.iter().map(weight).sum::<usize>() + 8,
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() + weight(value) + 8).sum::<usize>() + 8
        }
    }
}

/// An edit that is not much smaller than this is written whole instead.
const WORTH_COMPARING: usize = 1_024;

/// In the place of a role's result: it is the one that the entry with this sequence has whole. An entry gives at
/// most one result, the first that it has whole.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultReference {
    result_of_entry: u64,
}

impl ResultReference {
    /// The reference that a value is, if it is one: a result has other fields.
    fn read(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }
}

impl From<ResultReference> for Value {
    fn from(reference: ResultReference) -> Self {
        serde_json::json!({ "result_of_entry": reference.result_of_entry })
    }
}

/// The first version of frames in which results are referred to.
const RESULTS_ONCE: u32 = 3;

/// The fields that lead to the role's result in a record of a kind; none where it has none.
const fn result_path(kind: RecordKind) -> &'static [&'static str] {
    match kind {
        RecordKind::Envelope => &["report", "outcome", RESULT],
        RecordKind::Request => &[RESULT],
        RecordKind::Run
        | RecordKind::Effect
        | RecordKind::Outgoing
        | RecordKind::Gate
        | RecordKind::Verification
        | RecordKind::Operation
        | RecordKind::Session
        | RecordKind::Backlog
        | RecordKind::Plan
        | RecordKind::Sprint
        | RecordKind::Scheduler
        | RecordKind::Spending
        | RecordKind::Interactions
        | RecordKind::Lifecycle => &[],
    }
}

/// The field of a role's result, also in what an event carries.
const RESULT: &str = "result";

/// Where in the JSON of a record its result is.
fn result_in(json: &str, path: &[&str]) -> Option<Range<usize>> {
    let (mut at, mut part) = (0, json);
    for name in path {
        let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(part).ok()?;
        let field = fields.get(name)?.get();
        at += field.as_ptr().addr() - part.as_ptr().addr();
        part = field;
    }
    (!path.is_empty() && part.starts_with('{')).then(|| at..at + part.len())
}

/// The records as the journal has them since the checkpoint, for whoever writes it.
#[derive(Default)]
pub(super) struct WrittenRecords {
    /// The JSON of the open ones by [`crate::domain::record::Record::key`], with a reference for each result that
    /// some entry gives.
    images: BTreeMap<String, String>,
    /// The entries that give results, by the JSON of these.
    results: BTreeMap<String, u64>,
    /// The last entry that gives one.
    newest_result: Option<u64>,
}

impl WrittenRecords {
    /// Forgets all of them: what comes next is whole.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The JSON of a record with the reference to its result where some entry gives that, else as it is. And the
    /// image, where that is another because this entry gives the result.
    fn share(&mut self, seq: u64, json: String, at: Range<usize>) -> (String, Option<String>) {
        if let Some(entry) = self.results.get(&json[at.clone()]) {
            return (with_reference(json, at, *entry), None);
        }
        if !self.give(seq, &json[at.clone()]) {
            return (json, None);
        }
        let image = with_reference(json.clone(), at, seq);
        (json, Some(image))
    }

    /// Notes that an entry gives a result, unless it gives another; whether it does.
    fn give(&mut self, seq: u64, result: &str) -> bool {
        let free = self.newest_result != Some(seq);
        if free {
            self.results.insert(result.to_owned(), seq);
            self.newest_result = Some(seq);
        }
        free
    }

    /// As [`Self::share`], for a line of a request's history.
    fn share_event(&mut self, seq: u64, event: &mut RequestEvent) -> serde_json::Result<()> {
        let Some(result) = result_of(event) else { return Ok(()) };
        let text = serde_json::to_string(result)?;
        match self.results.get(&text) {
            Some(entry) => *result = ResultReference { result_of_entry: *entry }.into(),
            None => {
                self.give(seq, &text);
            }
        }
        Ok(())
    }

    /// Writes a change of the entry `seq` behind those before it.
    pub(super) fn write(
        &mut self,
        seq: u64,
        draft: ChangeDraft,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let (kind, key, open, json, result) = match draft {
            ChangeDraft::Record { kind, key, open, json, result } => {
                (kind, key, open, json, result)
            }
            ChangeDraft::Ready(mut written) => {
                match &mut written {
                    JournalChange::Remove(id) => {
                        if let Some(path) = id.path() {
                            self.images.remove(&path);
                        }
                    }
                    JournalChange::Event(_, event) => self.share_event(seq, event)?,
                    JournalChange::Save(..)
                    | JournalChange::Edit(..)
                    | JournalChange::SprintEvent(..)
                    | JournalChange::Channel(_)
                    | JournalChange::Append { .. } => {}
                }
                return serde_json::to_writer(out, &written);
            }
        };
        let (json, image) = match result {
            Some(at) => self.share(seq, json, at),
            None => (json, None),
        };
        let edit = self.images.get(&key).map(|old| difference(old, &json)).transpose()?;
        let edit = edit.filter(|patch| {
            let size: usize = patch.0.iter().map(operation_weight).sum();
            size < WORTH_COMPARING || size < json.len()
        });
        if let Some(patch) = edit {
            serde_json::to_writer(out, &JournalChange::Edit(kind, key.clone(), patch))?;
        } else {
            // A [`JournalChange::Save`] whose second half is JSON already.
            out.extend_from_slice(b"{\"save\":[");
            serde_json::to_writer(&mut *out, &kind)?;
            out.push(b',');
            out.extend_from_slice(json.as_bytes());
            out.extend_from_slice(b"]}");
        }
        if open {
            self.images.insert(key, image.unwrap_or(json));
        } else {
            self.images.remove(&key);
        }
        Ok(())
    }
}

/// The JSON with a reference in the place of its result.
fn with_reference(mut json: String, at: Range<usize>, entry: u64) -> String {
    let reference = Value::from(ResultReference { result_of_entry: entry });
    json.replace_range(at, &reference.to_string());
    json
}

/// What makes the first record the second. Only fields whose text differs are looked into.
fn difference(old: &str, new: &str) -> serde_json::Result<Patch> {
    type Fields<'a> = BTreeMap<&'a str, &'a RawValue>;
    let only = |these: &Fields<'_>, those: &Fields<'_>| -> serde_json::Result<Value> {
        let differs = |name: &str, text: &RawValue| {
            those.get(name).is_none_or(|other| other.get() != text.get())
        };
        let left = these.iter().filter(|(name, text)| differs(name, text));
        left.map(|(name, text)| Ok((*name, serde_json::from_str::<Value>(text.get())?))).collect()
    };
    Ok(match (serde_json::from_str::<Fields<'_>>(old), serde_json::from_str::<Fields<'_>>(new)) {
        (Ok(old), Ok(new)) => json_patch::diff(&only(&old, &new)?, &only(&new, &old)?),
        // One that is a text, or has a field whose name is written with an escape.
        (Ok(_) | Err(_), _) => {
            json_patch::diff(&serde_json::from_str(old)?, &serde_json::from_str(new)?)
        }
    })
}

/// The records as the journal has them since the checkpoint, for whoever reads it.
#[derive(Default)]
pub(super) struct ReadRecords {
    /// The open ones, as [`WrittenRecords`] has them.
    images: BTreeMap<String, Value>,
    /// The results that entries give.
    results: BTreeMap<u64, Value>,
}

impl ReadRecords {
    /// The change that was written in the entry `seq`.
    ///
    /// # Errors
    /// Where a record does not read, or does not fit what was said before.
    pub(super) fn read(
        &mut self,
        version: u32,
        seq: u64,
        written: JournalChange,
    ) -> Result<Change, String> {
        let (kind, value, key) = match written {
            JournalChange::Save(kind, value) => (kind, value, None),
            JournalChange::Edit(kind, key, patch) => {
                let mut value = self
                    .images
                    .remove(&key)
                    .ok_or_else(|| format!("it changes {key}, of which nothing was said before"))?;
                json_patch::patch(&mut value, &patch).map_err(|error| format!("{key}: {error}"))?;
                (kind, value, Some(key))
            }
            JournalChange::Event(id, mut event) => {
                if let Some(result) = result_of(&mut event) {
                    self.give(version, seq, result);
                    self.complete(result)?;
                }
                return Ok(Change::Event(id, event));
            }
            JournalChange::Remove(id) => return Ok(Change::Remove(id)),
            JournalChange::SprintEvent(id, event) => return Ok(Change::SprintEvent(id, event)),
            JournalChange::Channel(mark) => return Ok(Change::Channel(mark)),
            JournalChange::Append { file, text } => return Ok(Change::Append { file, text }),
        };
        let mut image = value;
        if let Some(result) = result_at(&mut image, kind) {
            self.give(version, seq, result);
        }
        let mut value = image.clone();
        if let Some(result) = result_at(&mut value, kind) {
            self.complete(result)?;
        }
        let record = AnyRecord::decode(kind, value).map_err(|error| error.to_string())?;
        self.images.insert(key.unwrap_or_else(|| record.key()), image);
        Ok(Change::Save(record))
    }

    /// Keeps the first result that an entry has whole, and leaves a reference to it in its place.
    fn give(&mut self, version: u32, seq: u64, result: &mut Value) {
        if version >= RESULTS_ONCE
            && ResultReference::read(result).is_none()
            && let Entry::Vacant(place) = self.results.entry(seq)
        {
            place
                .insert(std::mem::replace(result, ResultReference { result_of_entry: seq }.into()));
        }
    }

    /// Puts a result into the place of the reference to it.
    fn complete(&self, result: &mut Value) -> Result<(), String> {
        if let Some(reference) = ResultReference::read(result) {
            let entry = reference.result_of_entry;
            let known = self
                .results
                .get(&entry)
                .ok_or_else(|| format!("it names the result of entry {entry}, which has none"))?;
            *result = known.clone();
        }
        Ok(())
    }
}

/// The result in a record of a kind.
fn result_at(record: &mut Value, kind: RecordKind) -> Option<&mut Value> {
    let path = result_path(kind);
    let found = path.iter().try_fold(record, |value, name| value.get_mut(*name))?;
    (!path.is_empty() && found.is_object()).then_some(found)
}

/// The result in a line of a request's history.
fn result_of(event: &mut RequestEvent) -> Option<&mut Value> {
    if event.kind != EventKind::RoleReport {
        return None;
    }
    event.payload.get_mut(RESULT).filter(|result| result.is_object())
}

fn operation_weight(operation: &json_patch::PatchOperation) -> usize {
    use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    let value = match operation {
        Add(it) => weight(&it.value),
        Replace(it) => weight(&it.value),
        Test(it) => weight(&it.value),
        Remove(_) | Move(_) | Copy(_) => 0,
    };
    operation.path().len() + value + 30
}
