//! A relay message between roles, as it stands in the file queue (`spec/teams.md` 4.7).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::domain::ids::{EnvelopeId, RequestId};
use crate::domain::lifecycle::StepName;
use crate::domain::role::Role;
use crate::domain::run::RunReport;
use crate::domain::time::Timestamp;
use crate::domain::word::words;
use crate::domain::workflow::WorkflowState;

/// What a message means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeKind {
    /// Orchestrator → role: work on this step.
    Delegate,
    /// Role → orchestrator: what came of it.
    Report,
    /// Another program → orchestrator: a person's words (a foreign drop).
    Forward,
}

words! {
    /// The folder that an envelope lies in; it lies in exactly one.
    #[derive(Default)]
    pub enum EnvelopeFolder {
        /// Waits or is being worked on.
        #[default]
        Inbox = "inbox",
        /// Was consumed.
        Archive = "archive",
        /// Could not be consumed; `reason` says why. Moving it back to the inbox replays it.
        Dead = "dead",
    }
}

/// The part that the older runtime wrote as `envelope`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnvelopeBody {
    /// The request.
    pub request_id: RequestId,
    /// `plan`, `implement`, `review`, `qa`, `research`, `route`, …
    #[serde(default)]
    pub intent: String,
    /// `normal` unless said otherwise.
    #[serde(default)]
    pub urgency: String,
    /// What the request is about.
    #[serde(default)]
    pub scope: String,
    /// Workspace-relative hints.
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// What goes along.
    #[serde(default)]
    pub params: EnvelopeParams,
    /// Words for the receiver.
    #[serde(default)]
    pub body: String,
    /// Sender; must equal `sender_role`.
    pub from: Role,
    /// Receiver; must equal `target_role`.
    pub to: Role,
}

/// What goes along with an envelope. Keys that other programs add mean nothing and are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvelopeParams {
    /// The kind in the words of the older runtime, for those who read the files.
    #[serde(rename = "_teams_kind", skip_serializing_if = "String::is_empty")]
    pub teams_kind: String,
    /// Of a delegation: where the request stood, for those who read the files.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "workflow_of_any_build")]
    pub workflow: Option<WorkflowState>,
    /// Of a report: why the step was asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Of a report that another program dropped: what the role answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Of words that another program dropped: whose they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

fn workflow_of_any_build<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<WorkflowState>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    Ok(value.as_ref().map(WorkflowState::normalize))
}

/// One relay message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// A uuid v7: file names sort by arrival.
    pub relay_id: EnvelopeId,
    /// Always `internal`.
    #[serde(default = "internal")]
    pub transport: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// Who sent it.
    pub sender_role: Role,
    /// Whose inbox it is in.
    pub target_role: Role,
    /// What it means.
    pub kind: EnvelopeKind,
    /// The content.
    pub envelope: EnvelopeBody,
    /// Where it lies.
    #[serde(default)]
    pub place: EnvelopeFolder,
    /// Times that somebody began to handle it; survives kill -9 because it is journaled first.
    #[serde(default)]
    pub attempts: u32,
    /// Not to be handled before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The workflow step that it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepName>,
    /// The outcome that a report carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<RunReport>>,
    /// Why it is dead, or how it was consumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Envelope {
    /// Where its file lies in a place of the queue, below the folder of the runtime. The archive has a folder a
    /// day, by the day on which the envelope was written, so that no folder grows without end.
    #[must_use]
    pub fn path_in(&self, place: EnvelopeFolder) -> String {
        let (role, id, folder) = (self.target_role, &self.relay_id, place.as_str());
        match place {
            EnvelopeFolder::Inbox | EnvelopeFolder::Dead => {
                format!("internal_relay/{folder}/{role}/{id}.json")
            }
            EnvelopeFolder::Archive => {
                let day = self.created_at.archive_date();
                format!("internal_relay/{folder}/{role}/{day}/{id}.json")
            }
        }
    }
}

fn internal() -> String {
    "internal".to_owned()
}

/// How often an envelope may be begun before it is dead.
pub const MAX_ENVELOPE_ATTEMPTS: u32 = 5;
