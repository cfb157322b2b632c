//! A point where a person decides.

use serde::{Deserialize, Serialize};

use crate::domain::ids::{ChannelId, GateId, MessageId, RequestId, UserId};
use crate::domain::time::Timestamp;

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// No checks are configured: may this commit go to the branch?
    CommitWithoutChecks,
}

/// Whether and how it was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// Waits.
    Open,
    /// Yes.
    Approved {
        /// By.
        by: UserId,
        /// When.
        at: Timestamp,
    },
    /// No.
    Rejected {
        /// By.
        by: UserId,
        /// When.
        at: Timestamp,
    },
    /// What it was about has changed or is gone.
    Void,
}

/// One gate. Persisted before its card is posted, bound to the content, used once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Its id.
    pub gate_id: GateId,
    /// The request.
    pub request_id: RequestId,
    /// What is decided.
    pub kind: GateKind,
    /// The commit that is decided on: it names the whole content.
    pub commit: String,
    /// Bumped when the card changes; a button of an older version does nothing.
    pub version: u32,
    /// Whether and how it was decided.
    pub state: GateState,
    /// The card.
    pub card: Option<(ChannelId, MessageId)>,
    /// When it was opened.
    pub created_at: Timestamp,
}
