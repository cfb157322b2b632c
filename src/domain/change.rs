//! What one decision changes on disk: whole after-images, so that replaying is setting.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::backlog::BacklogItem;
use crate::domain::budget::Spending;
use crate::domain::config::AgentKind;
use crate::domain::conversation::{Fill, Room};
use crate::domain::effect::Effect;
use crate::domain::envelope::Envelope;
use crate::domain::gate::Gate;
use crate::domain::ids::{
    ChannelId, EffectId, MessageId, OutgoingId, RequestId, RunId, SprintId, UserId,
};
use crate::domain::lifecycle::Lifecycle;
use crate::domain::operation::Operation;
use crate::domain::outgoing::Outgoing;
use crate::domain::request::{Request, RequestEvent};
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::domain::schedule::Scheduler;
use crate::domain::sprint::{Sprint, SprintEvent};
use crate::domain::time::Timestamp;

/// A role's continuing conversation with its agent, kept per (role, request).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Whose.
    pub role: Role,
    /// For which request.
    pub request_id: RequestId,
    /// The agent's own id of it.
    pub session_id: String,
    /// The agent that it is held with; no other can go on with it.
    #[serde(default)]
    pub agent: AgentKind,
    /// The model that it was begun with.
    #[serde(default)]
    pub model: String,
    /// How full it is, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
    /// What room it has: where there is too little, the next run begins a fresh one.
    #[serde(default)]
    pub room: Room,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it was last used.
    pub last_used_at: Timestamp,
}

/// How far a channel has been read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelMark {
    /// The channel.
    pub channel_id: ChannelId,
    /// Everything up to here was taken in.
    pub watermark: MessageId,
    /// The last few message ids taken in, for those that arrive doubled or out of order.
    pub recent: Vec<MessageId>,
    /// Who was told here, within the last hour, that they may not ask.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<UserId, Timestamp>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The request is now this.
    Request(Box<Request>),
    /// Nothing refers to the ended request any more: it leaves memory, its file stays.
    RetireRequest(RequestId),
    /// A line for the request's history.
    Event(RequestId, RequestEvent),
    /// The envelope is now this, in the folder that its `place` names.
    Envelope(Box<Envelope>),
    /// The run is now this.
    Run(Run),
    /// The run's outcome was applied.
    RunGone(RunId),
    /// The effect is now this.
    Effect(Effect),
    /// The effect's outcome was applied.
    EffectGone(EffectId),
    /// The outgoing is now this.
    Outgoing(Box<Outgoing>),
    /// Discord has it, or it was superseded or refused.
    OutgoingGone(OutgoingId),
    /// The gate is now this.
    Gate(Gate),
    /// The operation is now this.
    Operation(Operation),
    /// The session is now this.
    Session(Session),
    /// The channel was read up to here.
    Channel(ChannelMark),
    /// The backlog item is now this. One that is no longer active leaves memory, its file stays.
    Backlog(Box<BacklogItem>),
    /// The sprint is now this.
    Sprint(Box<Sprint>),
    /// A newer sprint is the last one: the ended sprint leaves memory, its file stays.
    RetireSprint(SprintId),
    /// A line for the sprint's history.
    SprintEvent(SprintId, SprintEvent),
    /// The scheduler is now this.
    Scheduler(Box<Scheduler>),
    /// A lifecycle that requests go by from now on.
    Lifecycle(Arc<Lifecycle>),
    /// What was spent is now this.
    Spending(Box<Spending>),
    /// Text for an append-only document.
    Append {
        /// Workspace-relative path.
        file: String,
        /// What to add, ending in a newline.
        text: String,
    },
}
