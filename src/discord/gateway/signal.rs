//! What a connection reports.

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::discord::bot::Bot;
use crate::discord::error::RestError;
use crate::discord::sessions::EventPosition;
use crate::domain::ids::{GuildId, UserId};

/// What a connection reports.
#[derive(Debug)]
pub(crate) enum Signal {
    /// Events flow. `fresh` means that earlier ones may have been missed.
    Up { fresh: bool, user: UserId, application: u64, guilds: Vec<GuildId> },
    /// Events flow again and none was missed.
    Resumed,
    /// Who a bot of a role is; said before it is connected, so that it can be mentioned.
    Named { user: UserId },
    /// Events flow, and some were not to be had: what they said has to be looked for.
    Missed,
    /// The connection is gone; another is being made.
    Down { reason: String },
    /// Something works less well until it is set up differently.
    Degraded { reason: String },
    /// No further attempt is made.
    Fatal { reason: String },
    /// An event.
    Dispatch { kind: String, data: Value },
    /// An interaction; its acknowledgement is on its way already.
    Interaction { data: Value, acknowledged: JoinHandle<Result<(), RestError>> },
}

/// A signal, whose it is, and the event that it was.
#[derive(Debug)]
pub(crate) struct BotSignal {
    pub(crate) bot: Bot,
    pub(crate) mark: Option<EventPosition>,
    pub(crate) signal: Signal,
}
