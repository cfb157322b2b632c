//! Records in the journal: whole when they are saved for the first time since the checkpoint, and after that
//! what changed (RFC 6902). Whoever writes and whoever reads keep the same images of them.

use std::collections::BTreeMap;

use json_patch::Patch;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::change::{Change, ChannelMark};
use crate::domain::ids::{RequestId, SprintId};
use crate::domain::record::{AnyRecord, RecordId, RecordKind};
use crate::domain::request::RequestEvent;
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
    /// A record: what it is known by, whether it stays open, and its JSON.
    Record { kind: RecordKind, key: String, open: bool, value: Value },
    /// Anything else, as it is written.
    Ready(JournalChange),
}

impl ChangeDraft {
    /// What a change is as JSON.
    pub(super) fn of(change: &Change) -> serde_json::Result<Self> {
        Ok(Self::Ready(match change {
            Change::Save(record) => {
                return Ok(Self::Record {
                    kind: record.kind(),
                    key: record.key(),
                    open: record.is_open(),
                    value: record.encode()?,
                });
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
            Self::Record { value, .. } => weight(value),
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

/// The records as the journal has them since the checkpoint, by [`crate::domain::record::Record::key`].
#[derive(Default)]
pub(super) struct Images(BTreeMap<String, Value>);

impl Images {
    /// Forgets all of them: what comes next is whole.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// How a change is written behind those before it.
    pub(super) fn write(&mut self, draft: ChangeDraft) -> JournalChange {
        let (kind, key, open, value) = match draft {
            ChangeDraft::Record { kind, key, open, value } => (kind, key, open, value),
            ChangeDraft::Ready(written) => {
                if let JournalChange::Remove(id) = &written
                    && let Some(path) = id.path()
                {
                    self.0.remove(&path);
                }
                return written;
            }
        };
        let edit = self.0.get(&key).map(|old| json_patch::diff(old, &value)).filter(|patch| {
            let size: usize = patch.0.iter().map(operation_weight).sum();
            size < WORTH_COMPARING || size < weight(&value)
        });
        let written = match edit {
            Some(patch) => JournalChange::Edit(kind, key.clone(), patch),
            None => JournalChange::Save(kind, value.clone()),
        };
        if open {
            self.0.insert(key, value);
        } else {
            self.0.remove(&key);
        }
        written
    }

    /// The change that was written.
    ///
    /// # Errors
    /// Where a record does not read, or an edit does not fit what was said before.
    pub(super) fn read(&mut self, written: JournalChange) -> Result<Change, String> {
        let record = |kind, value| {
            AnyRecord::decode(kind, value).map(Change::Save).map_err(|error| error.to_string())
        };
        match written {
            JournalChange::Save(kind, value) => {
                let change = record(kind, value.clone())?;
                if let Change::Save(saved) = &change {
                    self.0.insert(saved.key(), value);
                }
                Ok(change)
            }
            JournalChange::Edit(kind, key, patch) => {
                let value = self
                    .0
                    .get_mut(&key)
                    .ok_or_else(|| format!("it changes {key}, of which nothing was said before"))?;
                json_patch::patch(value, &patch).map_err(|error| format!("{key}: {error}"))?;
                record(kind, value.clone())
            }
            JournalChange::Remove(id) => Ok(Change::Remove(id)),
            JournalChange::Event(id, event) => Ok(Change::Event(id, event)),
            JournalChange::SprintEvent(id, event) => Ok(Change::SprintEvent(id, event)),
            JournalChange::Channel(mark) => Ok(Change::Channel(mark)),
            JournalChange::Append { file, text } => Ok(Change::Append { file, text }),
        }
    }
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
