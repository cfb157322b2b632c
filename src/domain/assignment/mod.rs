//! How a run reaches the worker that carries it out, and how its report comes back.
//!
//! The hub sends an assignment until the worker claims it, and the worker sends what came of it until the hub has
//! settled it. In between the worker holds a lease: a duration that each side counts on its own clock, the worker
//! from its asking and the hub from its answering, so that the worker has ended its agent before the hub takes the
//! run away. The generation fences: what comes from an older one changes nothing. Messages may be lost, doubled,
//! late or out of order; each side repeats itself until it is answered.
//!
//! [`HubSide`] and [`WorkerSide`] are what each side does about one run, without input, output or a clock.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::domain::ids::{BootId, CallId, MessageId, RunId};
use crate::domain::refusal::Refusal;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

mod hub_side;
#[cfg(test)]
mod tests;
mod worker_side;

pub use hub_side::{Decision, HubSide, HubStep, RunFacts};
pub use worker_side::{WorkerSide, WorkerStep};

/// The version of the messages.
pub const PROTOCOL: u32 = 1;

/// Milliseconds of a clock that runs through suspend and means nothing to anybody else.
pub type Millis = u64;

/// Milliseconds after which something that was not answered is said again.
pub const RESEND_MS: Millis = 2_000;

/// Milliseconds by which the worker gives up before the end of its lease, and the hub takes away after it.
pub const MARGIN_MS: Millis = 10_000;

/// How long a worker may go on without having heard from the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Milliseconds from one contact.
    pub lasts_ms: Millis,
    /// Milliseconds after which it asks again.
    pub renew_ms: Millis,
}

impl Default for Lease {
    fn default() -> Lease {
        Lease { lasts_ms: 120_000, renew_ms: 15_000 }
    }
}

/// A message about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message<B> {
    /// [`PROTOCOL`].
    pub v: u32,
    /// The run.
    pub run_id: RunId,
    /// Its generation.
    pub generation: u32,
    /// The start of the worker that says it, or that it is meant for; none in an assignment.
    pub boot: Option<BootId>,
    /// What it says.
    pub body: B,
}

/// What the hub says to a worker.
pub type HubMessage = Message<HubBody>;

/// What a worker says to the hub.
pub type WorkerMessage = Message<WorkerBody>;

/// What the hub says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum HubBody {
    /// Carry this out.
    Assignment(Assignment),
    /// Begin.
    Grant {
        /// When the worker asked, by its clock.
        asked_ms: Millis,
        /// The lease.
        lease: Lease,
    },
    /// Go on.
    Renewed {
        /// When the worker asked, by its clock; nought where it did not.
        asked_ms: Millis,
        /// Whether nobody wants its result any more: its agent is to be ended, and what it used is reported.
        cancel: bool,
        /// The lease.
        lease: Lease,
    },
    /// What somebody wrote, in its order.
    Control(Control),
    /// The answer to a call.
    Answer {
        /// The call.
        call: CallId,
        /// What it is.
        answer: CallAnswer,
    },
    /// End the agent; this generation is over.
    Ended {
        /// Why.
        reason: EndReason,
    },
    /// What came of it is known, and may be forgotten.
    Settled {
        /// Whether that was [`Over::Unable`]: the same generation may be carried out again, and then what came of it
        /// is not settled by this.
        unable: bool,
        /// Why it was refused, where it was.
        refused: Option<EndReason>,
    },
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum WorkerBody {
    /// It has the assignment and can begin.
    Claim {
        /// Its clock.
        asked_ms: Millis,
    },
    /// It is at work.
    Renew {
        /// Its clock.
        asked_ms: Millis,
        /// The last control that its agent was given.
        applied: u32,
    },
    /// Its agent, or what is around it, says something to which the hub has an answer.
    Call {
        /// Its name; the same each time that it is said.
        call: CallId,
        /// What it is about.
        what: RunCall,
    },
    /// It is over.
    Over(RunEnd),
}

impl WorkerBody {
    /// The answer where it comes too late, or is about nothing that is known.
    #[must_use]
    pub const fn refused(&self, reason: EndReason) -> HubBody {
        match self {
            WorkerBody::Over(over) => HubBody::Settled {
                unable: matches!(over, RunEnd::Unable(_)),
                refused: Some(reason),
            },
            WorkerBody::Claim { .. } | WorkerBody::Renew { .. } | WorkerBody::Call { .. } => {
                HubBody::Ended { reason }
            }
        }
    }

    /// The worker's clock when it asked, for the answer; nought where it asks nothing.
    #[must_use]
    pub const fn asked_ms(&self) -> Millis {
        match self {
            WorkerBody::Claim { asked_ms } | WorkerBody::Renew { asked_ms, .. } => *asked_ms,
            WorkerBody::Call { .. } | WorkerBody::Over(_) => 0,
        }
    }
}

/// What is to be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The folder of the generation at the worker.
    pub folder: PathBuf,
    /// What is to be done, in JSON; none where whatever agent is there is only to be ended.
    pub job: Option<Payload>,
    /// The number of the last control that stands in its prompt already.
    pub given: u32,
}

/// Something of any size: what is large goes beside the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// The text itself.
    Text(String),
    /// A blob.
    Blob {
        /// The SHA-256 of its bytes, hexadecimal.
        digest: String,
        /// Bytes.
        size: u64,
    },
}

/// Something that somebody wrote to the request of a run while it was under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// From 1 in each generation, without a gap.
    pub number: u32,
    /// The message.
    pub message_id: MessageId,
    /// Who wrote it.
    pub author: String,
    /// What.
    pub text: String,
    /// Whether it takes the place of what the request asked for.
    #[serde(default)]
    pub replaces: bool,
}

/// What a run says to the hub while it is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunCall {
    /// Its agent uses a tool of the team: the call in JSON.
    Tool(Payload),
    /// Its agent tried what it may not.
    Refused {
        /// The kind of it.
        refusal: Refusal,
        /// What it was, in a few words.
        what: String,
    },
    /// The model's server makes its agent wait.
    RateLimited {
        /// Until when, where the server says so.
        until: Option<Timestamp>,
    },
    /// What its agent did cannot be put in order before there is room on a disk.
    DiskFull {
        /// A path on that disk.
        path: String,
    },
}

/// What the hub answers to a call of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallAnswer {
    /// Its words, in JSON; blank where nobody waits for words.
    pub text: String,
    /// A result that the worker keeps before the agent has its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<KeptResult>,
}

/// A result that an agent hands in by its tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResult {
    /// The result, in JSON.
    pub result: Payload,
    /// The answer where it cannot be kept.
    pub or_else: String,
}

/// How a generation of a run came to its end at the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// The report, in JSON.
    Report(Payload),
    /// There is no outcome to be had: the agent was cut off, or the lease was lost. What it left in the
    /// worktree is kept aside, and no attempt is counted.
    Lost,
    /// The worker could not carry it out, for a reason in one line; an agent may still be at work.
    Unable(String),
    /// As the hub has said, it is over.
    Ended {
        /// Whether its agent may still be at work, because that cannot be found out.
        agent_lives: bool,
    },
}

words! {
    /// Why a generation of a run is over for the hub.
    pub enum EndReason {
        /// There is a newer one.
        Stale = "stale",
        /// There is no such run.
        Unknown = "unknown",
        /// Its request has moved on.
        MovedOn = "moved_on",
        /// The worker could not carry it out, too often.
        Unable = "unable",
        /// What it sent cannot be read.
        Invalid = "invalid",
    }
}
