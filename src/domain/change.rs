//! What one decision changes: records as they are afterwards, so that replaying is setting, and lines that are
//! added.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::ids::{ChannelId, GuildId, MessageId, RequestId, SprintId, UserId};
use crate::domain::record::{AnyRecord, RecordId};
use crate::domain::request::{Request, RequestEvent};
use crate::domain::sprint::{Sprint, SprintEvent};
use crate::domain::time::Timestamp;

/// How far a channel has been read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelMark {
    /// The channel.
    pub channel_id: ChannelId,
    /// Its server, as far as is known; a direct channel has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guild_id: Option<GuildId>,
    /// Everything up to here was taken in.
    pub watermark: MessageId,
    /// The last few message ids taken in, for those that arrive doubled or out of order.
    pub recent: Vec<MessageId>,
    /// Those of them of which nothing came, with the digests of their words: another wording may ask for something.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub idle: BTreeMap<MessageId, String>,
    /// Who was told here, within the last hour, that they may not ask.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<UserId, Timestamp>,
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The record is now this; one that is no longer open leaves memory.
    Save(AnyRecord),
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
        /// What to add, ending in a newline.
        text: String,
    },
}

impl Change {
    /// The record is now this.
    pub fn save(record: impl Into<AnyRecord>) -> Self {
        Self::Save(record.into())
    }

    /// The record that it saves.
    #[must_use]
    pub const fn saved(&self) -> Option<&AnyRecord> {
        match self {
            Self::Save(record) => Some(record),
            Self::Remove(_)
            | Self::Event(..)
            | Self::SprintEvent(..)
            | Self::Channel(_)
            | Self::Append { .. } => None,
        }
    }

    /// The request that it saves.
    #[must_use]
    pub fn saved_request(&self) -> Option<&Arc<Request>> {
        if let Self::Save(AnyRecord::Request(request)) = self { Some(request) } else { None }
    }

    /// The sprint that it saves.
    #[must_use]
    pub fn saved_sprint(&self) -> Option<&Arc<Sprint>> {
        if let Self::Save(AnyRecord::Sprint(sprint)) = self { Some(sprint) } else { None }
    }
}
