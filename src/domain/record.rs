//! Records: what is stored, each as a file of its own that operators may read.
//!
//! A record says its kind, the version of its shape, its path and whether it is open. What is open is in
//! memory ([`crate::domain::state::State`]); the file of a record that has ended stays, unless it is removed.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::budget::Spending;
use crate::domain::effect::Effect;
use crate::domain::envelope::{Envelope, EnvelopeFolder};
use crate::domain::gate::{Gate, GateState};
use crate::domain::ids::{EffectId, ItemId, OutgoingId, RequestId, RunId, SprintId};
use crate::domain::interactions::Interactions;
use crate::domain::item::Item;
use crate::domain::lifecycle::Lifecycle;
use crate::domain::operation::{Operation, OperationStatus};
use crate::domain::outgoing::Outgoing;
use crate::domain::plan::StoredPlan;
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::domain::schedule::Scheduler;
use crate::domain::session::Session;
use crate::domain::sprint::Sprint;
use crate::domain::time::Timestamp;
use crate::domain::verification::Verification;

/// The folder of the runtime inside the workspace.
pub const RUNTIME: &str = ".teams_runtime";

/// The path in the workspace of what lies in the folder of the runtime.
#[must_use]
pub fn inside(path: &str) -> String {
    format!("{RUNTIME}/{path}")
}

/// The field of a record's JSON that says the version of its shape. A record without it is of version 1.
pub const VERSION_FIELD: &str = "record_version";

/// One kind of thing that is stored.
pub trait Record: Serialize + DeserializeOwned {
    /// The version of its shape that this build writes; it reads that and every older one.
    const VERSION: u32 = 2;

    /// Where its file lies, below the folder of the runtime.
    fn path(&self) -> String;

    /// What it is known by for as long as it lives, wherever its file lies.
    fn key(&self) -> String {
        self.path()
    }

    /// Whether it is in memory.
    fn is_open(&self) -> bool {
        true
    }
}

/// Why JSON is no record of a kind.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A newer build wrote it.
    #[error(
        "it is of version {version}, and this build of teams reads up to {known}: it needs the newer build"
    )]
    Newer {
        /// The version that it says.
        version: u64,
        /// The newest that is known.
        known: u32,
    },
    /// It has another shape.
    #[error(transparent)]
    Shape(#[from] serde_json::Error),
}

/// A record as JSON, with its version.
fn encode<R: Record>(record: &R) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(record)?;
    if let Value::Object(fields) = &mut value {
        fields.insert(VERSION_FIELD.to_owned(), R::VERSION.into());
    }
    Ok(value)
}

/// [`encode`] as text.
fn to_json<R: Record>(record: &R) -> serde_json::Result<String> {
    let mut json = serde_json::to_string(record)?;
    if json.ends_with('}') {
        json.pop();
        json.push_str(&format!(",\"{VERSION_FIELD}\":{}}}", R::VERSION));
    }
    Ok(json)
}

/// JSON for people: two blanks, a newline at the end.
///
/// # Errors
/// Where it has no JSON form.
pub fn pretty<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A record of one kind from its JSON, of this version or an older one.
///
/// # Errors
/// Where it has another shape, or a newer build wrote it.
pub fn decode<R: Record>(mut value: Value) -> Result<Arc<R>, RecordError> {
    if let Value::Object(fields) = &mut value {
        let version = fields.shift_remove(VERSION_FIELD).and_then(|version| version.as_u64());
        let version = version.unwrap_or(1);
        if version > u64::from(R::VERSION) {
            return Err(RecordError::Newer { version, known: R::VERSION });
        }
    }
    Ok(Arc::new(serde_json::from_value(value)?))
}

/// The kinds of records, their one list.
macro_rules! records {
    ($($(#[$about:meta])* $kind:ident($record:ty)),* $(,)?) => {
        /// The kinds of records.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum RecordKind { $($(#[$about])* $kind),* }

        /// A record of any kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyRecord { $($(#[$about])* $kind(Arc<$record>)),* }

        impl AnyRecord {
            /// What it is.
            #[must_use]
            pub const fn kind(&self) -> RecordKind {
                match self { $(Self::$kind(_) => RecordKind::$kind),* }
            }

            /// Where its file lies, below the folder of the runtime.
            #[must_use]
            pub fn path(&self) -> String {
                match self { $(Self::$kind(record) => record.path()),* }
            }

            /// What it is known by for as long as it lives.
            #[must_use]
            pub fn key(&self) -> String {
                match self { $(Self::$kind(record) => record.key()),* }
            }

            /// Whether it is in memory.
            #[must_use]
            pub fn is_open(&self) -> bool {
                match self { $(Self::$kind(record) => record.is_open()),* }
            }

            /// It as JSON, with its version.
            ///
            /// # Errors
            /// Where it has no JSON form, which a record of ours always has.
            pub fn encode(&self) -> serde_json::Result<Value> {
                match self { $(Self::$kind(record) => encode(&**record)),* }
            }

            /// [`Self::encode`] as text, without making the value.
            ///
            /// # Errors
            /// As there.
            pub fn to_json(&self) -> serde_json::Result<String> {
                match self { $(Self::$kind(record) => to_json(&**record)),* }
            }

            /// The bytes of its file: the text of a lifecycle, else JSON as the older runtime wrote it (two blanks, a
            /// newline at the end).
            ///
            /// # Errors
            /// As [`Self::encode`].
            pub fn bytes(&self) -> serde_json::Result<Vec<u8>> {
                match self.encode()? {
                    Value::String(text) => Ok(text.into_bytes()),
                    value => pretty(&value),
                }
            }

            /// A record of a kind from its JSON, of this version or an older one.
            ///
            /// # Errors
            /// Where it has another shape, or a newer build wrote it.
            pub fn decode(kind: RecordKind, value: Value) -> Result<Self, RecordError> {
                Ok(match kind { $(RecordKind::$kind => Self::$kind(decode(value)?)),* })
            }
        }

        $(impl From<$record> for AnyRecord {
            fn from(record: $record) -> Self {
                Self::$kind(Arc::new(record))
            }
        }

        impl From<Arc<$record>> for AnyRecord {
            fn from(record: Arc<$record>) -> Self {
                Self::$kind(record)
            }
        })*
    };
}

records! {
    /// A request.
    Request(Request),
    /// A relay message between roles.
    Envelope(Envelope),
    /// An attempt of a role under way.
    Run(Run),
    /// What is to be done outside of memory.
    Effect(Effect),
    /// A message on its way to Discord.
    Outgoing(Outgoing),
    /// A point where a person decides.
    Gate(Gate),
    /// A registered action.
    Operation(Operation),
    /// A role's conversation with its agent about a request.
    Session(Session),
    /// An item of the backlog.
    Backlog(Item),
    /// A plan that a person brought.
    Plan(StoredPlan),
    /// What people look at themselves.
    Verification(Verification),
    /// A sprint.
    Sprint(Sprint),
    /// When sprints begin.
    Scheduler(Scheduler),
    /// What was spent.
    Spending(Spending),
    /// The interactions that were dealt with.
    Interactions(Interactions),
    /// The steps that requests go by.
    Lifecycle(Lifecycle),
}

/// A record that leaves memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordId {
    /// Nothing refers to the ended request any more; its file stays.
    Request(RequestId),
    /// The run's outcome was applied.
    Run(RunId),
    /// The effect's outcome was applied.
    Effect(EffectId),
    /// Discord has it, or it was superseded or refused.
    Outgoing(OutgoingId),
    /// Its request has ended.
    Session(Role, RequestId),
    /// A newer sprint is the last one; its file stays.
    Sprint(SprintId),
    /// No request goes by it any more.
    Lifecycle(String),
}

impl RecordId {
    /// The file that goes with it, below the folder of the runtime; none where it stays.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        match self {
            Self::Request(_) | Self::Sprint(_) => None,
            Self::Run(id) => Some(run_path(id)),
            Self::Effect(id) => Some(effect_path(id)),
            Self::Outgoing(id) => Some(outgoing_path(id)),
            Self::Session(role, request) => Some(session_path(*role, request)),
            Self::Lifecycle(digest) => Some(lifecycle_path(digest)),
        }
    }
}

/// The path of a request's record, below the folder of the runtime.
#[must_use]
pub fn request_path(id: &RequestId) -> String {
    format!("requests/{id}.json")
}

/// The path of a request's history, below the folder of the runtime.
#[must_use]
pub fn request_events_path(id: &RequestId) -> String {
    format!("requests/{id}.events.jsonl")
}

/// The path of a backlog item's record, below the folder of the runtime.
#[must_use]
pub fn item_path(id: &ItemId) -> String {
    format!("backlog/{id}.json")
}

/// The path of a sprint's record, below the folder of the runtime.
#[must_use]
pub fn sprint_path(id: &SprintId) -> String {
    format!("sprints/{id}.json")
}

fn run_path(id: &RunId) -> String {
    format!("runs/{id}.json")
}

fn effect_path(id: &EffectId) -> String {
    format!("effects/{id}.json")
}

fn outgoing_path(id: &OutgoingId) -> String {
    format!("outbox/{id}.json")
}

fn session_path(role: Role, request: &RequestId) -> String {
    format!("role_sessions/{role}.{request}.json")
}

fn lifecycle_path(digest: &str) -> String {
    format!("lifecycles/{digest}.yaml")
}

impl AnyRecord {
    /// Whether something is still to be done about it, for those too that stay in memory when it is not.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        match self {
            Self::Request(request) => !request.status.is_terminal(),
            Self::Sprint(sprint) => !sprint.status.is_terminal(),
            Self::Envelope(_)
            | Self::Run(_)
            | Self::Effect(_)
            | Self::Outgoing(_)
            | Self::Gate(_)
            | Self::Operation(_)
            | Self::Session(_)
            | Self::Backlog(_)
            | Self::Plan(_)
            | Self::Verification(_)
            | Self::Scheduler(_)
            | Self::Spending(_)
            | Self::Interactions(_)
            | Self::Lifecycle(_) => self.is_open(),
        }
    }

    /// When it changed last, of those that say it.
    #[must_use]
    pub fn updated_at(&self) -> Option<Timestamp> {
        match self {
            Self::Request(request) => Some(request.updated_at),
            Self::Backlog(item) => Some(item.updated_at),
            Self::Operation(operation) => Some(operation.updated_at),
            Self::Sprint(sprint) => sprint.updated_at,
            Self::Envelope(_)
            | Self::Run(_)
            | Self::Effect(_)
            | Self::Outgoing(_)
            | Self::Gate(_)
            | Self::Session(_)
            | Self::Plan(_)
            | Self::Verification(_)
            | Self::Scheduler(_)
            | Self::Spending(_)
            | Self::Interactions(_)
            | Self::Lifecycle(_) => None,
        }
    }

    /// Of a record that keeps an ended request in memory while it is open: what it is known by, and the request.
    #[must_use]
    pub fn holds(&self) -> Option<(String, Option<&RequestId>)> {
        match self {
            Self::Outgoing(it) => Some((it.outgoing_id.to_string(), it.request_id.as_ref())),
            Self::Effect(it) => Some((it.effect_id.to_string(), it.kind.request_id())),
            Self::Envelope(it) => Some((it.relay_id.to_string(), Some(&it.envelope.request_id))),
            Self::Run(it) => Some((it.run_id.to_string(), Some(&it.request_id))),
            Self::Operation(it) => Some((it.operation_id.to_string(), Some(&it.request_id))),
            Self::Request(_)
            | Self::Gate(_)
            | Self::Verification(_)
            | Self::Session(_)
            | Self::Backlog(_)
            | Self::Plan(_)
            | Self::Sprint(_)
            | Self::Scheduler(_)
            | Self::Spending(_)
            | Self::Interactions(_)
            | Self::Lifecycle(_) => None,
        }
    }
}

impl Record for Request {
    fn path(&self) -> String {
        request_path(&self.request_id)
    }
}

impl Record for Envelope {
    fn path(&self) -> String {
        self.path_in(self.place)
    }

    fn key(&self) -> String {
        self.path_in(EnvelopeFolder::Inbox)
    }

    fn is_open(&self) -> bool {
        self.place == EnvelopeFolder::Inbox
    }
}

impl Record for Run {
    fn path(&self) -> String {
        run_path(&self.run_id)
    }
}

impl Record for Effect {
    fn path(&self) -> String {
        effect_path(&self.effect_id)
    }
}

impl Record for Outgoing {
    fn path(&self) -> String {
        outgoing_path(&self.outgoing_id)
    }
}

impl Record for Gate {
    fn path(&self) -> String {
        format!("gates/{}.json", self.gate_id)
    }

    fn is_open(&self) -> bool {
        self.state == GateState::Open
    }
}

impl Record for Operation {
    fn path(&self) -> String {
        format!("operations/{}.json", self.operation_id)
    }

    fn is_open(&self) -> bool {
        self.status == OperationStatus::Running
    }
}

impl Record for Session {
    fn path(&self) -> String {
        session_path(self.role, &self.request_id)
    }
}

impl Record for Item {
    /// From 3 on it holds its todo: an older build would change that in the sprint's record and not here.
    const VERSION: u32 = 3;

    fn path(&self) -> String {
        item_path(&self.backlog_id)
    }

    fn is_open(&self) -> bool {
        self.status.is_active()
    }
}

impl Record for StoredPlan {
    fn path(&self) -> String {
        format!("plans/{}.json", self.plan_id)
    }
}

impl Record for Verification {
    fn path(&self) -> String {
        format!("verifications/{}.json", self.request_id)
    }

    fn is_open(&self) -> bool {
        self.open().next().is_some()
    }
}

impl Record for Sprint {
    fn path(&self) -> String {
        sprint_path(&self.sprint_id)
    }
}

impl Record for Scheduler {
    fn path(&self) -> String {
        SCHEDULER.to_owned()
    }
}

/// The scheduler's record, below the folder of the runtime.
pub const SCHEDULER: &str = "sprint_scheduler.json";
/// The record of what was spent.
pub const SPENDING: &str = "spending.json";
/// The record of the interactions that were dealt with.
pub const INTERACTIONS: &str = "interactions.json";

impl Record for Spending {
    /// From 3 on it knows several sprints.
    const VERSION: u32 = 3;

    fn path(&self) -> String {
        SPENDING.to_owned()
    }
}

impl Record for Interactions {
    fn path(&self) -> String {
        INTERACTIONS.to_owned()
    }
}

impl Record for Lifecycle {
    fn path(&self) -> String {
        lifecycle_path(self.digest())
    }
}
