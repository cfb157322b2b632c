//! A role's conversation with its agent, kept over the runs of a request.

use serde::{Deserialize, Serialize};

use crate::domain::config::AgentKind;
use crate::domain::conversation::{ContextLevel, Fill};
use crate::domain::ids::RequestId;
use crate::domain::role::Role;
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
    /// The command of its agent, for one that speaks the protocol.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// How full it is, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
    /// What room it has: where there is too little, the next run begins a fresh one.
    #[serde(default)]
    pub room: ContextLevel,
    /// Whether what was changed in it was put back since, which it does not know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub put_back: bool,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it was last used.
    pub last_used_at: Timestamp,
}
