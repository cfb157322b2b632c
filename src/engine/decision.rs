//! What the engine decided.

use crate::domain::change::Change;
use crate::domain::ids::{EffectId, RunId};
use crate::domain::outgoing::Content;
use crate::domain::role::Role;

/// What may begin once the changes are durable. Only a hint to look: what there is to do stands in
/// the changed records, so that a restart finds it there as well.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// A role's inbox has a delegate envelope.
    Role(Role),
    /// The orchestrator's inbox has a report.
    Reports,
    /// An effect is planned.
    Effect(EffectId),
    /// The outbox has something.
    Outbox,
    /// The agent of this run has to end.
    StopRun(RunId),
    /// There are words for the agent of this run.
    SteerRun(RunId),
    /// The processes of this effect have to end.
    StopEffect(EffectId),
}

/// What whoever submitted the event is told.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Answer {
    /// It was taken in.
    #[default]
    Accepted,
    /// It means nothing (any more) and changed nothing.
    Ignored(&'static str),
    /// Words for the person who commanded it: it is done, or what comes of it.
    Say(Content),
    /// Words for the person who commanded it: it is not done, and why.
    Refused(Content),
}

impl Answer {
    /// The words for the person who commanded it.
    #[must_use]
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::Say(content) | Self::Refused(content) => Some(content),
            Self::Accepted | Self::Ignored(_) => None,
        }
    }
}

/// What is to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// One batch for the store: all of it or none.
    pub changes: Vec<Change>,
    /// What may begin afterwards.
    pub effects: Vec<Wake>,
    /// What the submitter is told afterwards.
    pub answer: Answer,
}
