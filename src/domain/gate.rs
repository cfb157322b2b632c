//! A point where a person decides.

use serde::{Deserialize, Serialize};

use crate::domain::actor::Actor;
use crate::domain::check_proposal::CheckProposal;
use crate::domain::guard::GuardFinding;
use crate::domain::ids::{ChannelId, GateId, MessageId, RequestId, UserId};
use crate::domain::time::Timestamp;
use crate::domain::word::words;

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// May this commit, which no check has proven, go to the branch?
    #[serde(rename = "commit_without_checks")]
    UnprovenCommit,
    /// May this commit go to the branch, which changes what agents or checks run by?
    GuardedCommit,
    /// May this commit go to the branch, where checks fail that fail at its base as well?
    RedBase,
    /// May the dependencies be prepared that this commit asks for?
    Prepare,
    /// May this commit go to the branch? Every one is asked about.
    Commit,
    /// May this plan be built?
    Plan,
    /// May this registered action run?
    Action,
    /// May as much again be spent?
    Budget,
}

impl GateKind {
    /// Whether it is about a commit that is to go to the branch.
    #[must_use]
    pub const fn is_about_commit(self) -> bool {
        match self {
            Self::UnprovenCommit | Self::GuardedCommit | Self::RedBase | Self::Commit => true,
            Self::Prepare | Self::Plan | Self::Action | Self::Budget => false,
        }
    }

    /// The word in values of the catalog.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnprovenCommit => "unproven",
            Self::GuardedCommit => "guarded",
            Self::RedBase => "red_base",
            Self::Prepare => "prepare",
            Self::Commit => "commit",
            Self::Plan => "plan",
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

impl Stance {
    /// Lower is stricter.
    #[must_use]
    pub const fn strictness(self) -> u8 {
        match self {
            Self::Refuse => 0,
            Self::Ask => 1,
            Self::Allow => 2,
        }
    }
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "DeciderText", into = "DeciderText")]
pub enum Decider {
    /// Somebody in Discord.
    Person(UserId),
    /// The operator at the machine, who has no Discord identity.
    Operator,
}

impl Decider {
    /// Whoever acts, where they can decide at all.
    #[must_use]
    pub const fn of(actor: &Actor) -> Option<Self> {
        match actor {
            Actor::Person { author, .. } => Some(Self::Person(author.id)),
            Actor::Operator => Some(Self::Operator),
            Actor::Deleter | Actor::Agent { .. } => None,
        }
    }
}

/// A decider as records have it: a user's id, or `operator`. Older records have the id 0 for the operator.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum DeciderText {
    Operator(OperatorWord),
    Person(UserId),
}

#[derive(Serialize, Deserialize)]
enum OperatorWord {
    #[serde(rename = "operator")]
    Operator,
}

impl From<DeciderText> for Decider {
    fn from(text: DeciderText) -> Self {
        match text {
            DeciderText::Operator(_) | DeciderText::Person(UserId(0)) => Self::Operator,
            DeciderText::Person(id) => Self::Person(id),
        }
    }
}

impl From<Decider> for DeciderText {
    fn from(decider: Decider) -> Self {
        match decider {
            Decider::Person(id) => Self::Person(id),
            Decider::Operator => Self::Operator(OperatorWord::Operator),
        }
    }
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
        by: Decider,
        /// When.
        at: Timestamp,
    },
    /// No.
    Rejected {
        /// By.
        by: Decider,
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
    /// The digest of the artifact: a commit's tree, a plan, an action's command line, or a budget as often as it was
    /// granted.
    #[serde(default)]
    pub artifact: String,
    /// What guards found in the commit, as the card shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<GuardFinding>,
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
    /// The checks that the project shows and that may be used from now on; none where some are configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_checks: Option<CheckProposal>,
    /// What follows if the plan is built; none where no plan is decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<WayAhead>,
}

/// What a plan takes to be built, estimated by what was seen so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayAhead {
    /// Turns of roles.
    pub turns: usize,
    /// US dollars, with two decimals; none where no cost was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<String>,
}

words! {
    /// Why something is not approved.
    pub enum NoApproval {
        /// A person said no.
        Rejected = "rejected",
        /// Nobody decided in time.
        Expired = "expired",
        /// The configuration does not allow it.
        Refused = "refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decider_reads_what_older_records_say_and_writes_a_name() {
        let read = |text: &str| serde_json::from_str::<Decider>(text).unwrap();
        assert_eq!(read("\"0\""), Decider::Operator);
        assert_eq!(read("\"operator\""), Decider::Operator);
        assert_eq!(read("\"42\""), Decider::Person(UserId(42)));
        assert_eq!(serde_json::to_string(&Decider::Operator).unwrap(), "\"operator\"");
        assert_eq!(serde_json::to_string(&Decider::Person(UserId(42))).unwrap(), "\"42\"");
        assert!(serde_json::from_str::<Decider>("\"somebody\"").is_err());
    }
}
