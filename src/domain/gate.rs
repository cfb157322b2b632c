//! A point where a person decides.

use serde::{Deserialize, Serialize};

use crate::domain::ids::{ChannelId, GateId, MessageId, RequestId, UserId};
use crate::domain::time::Timestamp;

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// May this commit, which no check has proven, go to the branch?
    #[serde(rename = "commit_without_checks")]
    UnprovenCommit,
    /// May this commit go to the branch, which changes what agents or checks run by?
    GuardedCommit,
    /// May this commit go to the branch? Every one is asked about.
    Commit,
    /// May this registered action run?
    Action,
    /// May as much again be spent?
    Budget,
}

impl GateKind {
    /// The word in values of the catalog.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnprovenCommit => "unproven",
            Self::GuardedCommit => "guarded",
            Self::Commit => "commit",
            Self::Action => "action",
            Self::Budget => "budget",
        }
    }
}

/// What the operator has settled for one kind of gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// A person decides each time.
    #[default]
    Ask,
    /// It needs no person.
    Allow,
    /// It is never done.
    Refuse,
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
    /// Nobody decided in time, which means no.
    Expired {
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
    /// The commit that is decided on: it names the whole content. Blank where it is about none.
    pub commit: String,
    /// The digest of the artifact: a commit's tree, an action's command line, or a budget as often as it was
    /// granted.
    #[serde(default)]
    pub artifact: String,
    /// Bumped when the card changes; a button of an older version does nothing.
    pub version: u32,
    /// Whether and how it was decided.
    pub state: GateState,
    /// The card. A button of another message does nothing.
    pub card: Option<(ChannelId, MessageId)>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When no decision becomes a no.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}
