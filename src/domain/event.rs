//! Everything that can happen, as the engine hears it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::actor::Actor;
use crate::domain::effect::{EffectOutcome, GitObstacle};
use crate::domain::envelope::Envelope;
use crate::domain::ids::{
    BootId, CallId, ChannelId, EffectId, EnvelopeId, InteractionId, MessageId, OutgoingId,
    RequestId, RunId,
};
use crate::domain::incoming::{Command, Message};
use crate::domain::outgoing::OutgoingOutcome;
use crate::domain::refusal::Refusal;
use crate::domain::role::Role;
use crate::domain::run::{Run, RunReport};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// The process is up: what a crash left behind is looked at, and the startup channel is told.
    Started {
        /// Whether to announce it.
        announce: bool,
        /// The roles that this process serves.
        serves: Vec<Role>,
    },
    /// A message was written.
    Message(Message),
    /// A message was edited.
    MessageEdited(Message),
    /// A message was deleted.
    MessageDeleted {
        /// Where.
        channel_id: ChannelId,
        /// Which.
        message_id: MessageId,
    },
    /// A channel or a thread was deleted, with all that stood in it.
    ChannelDeleted {
        /// Which.
        channel_id: ChannelId,
    },
    /// An instant that the engine asked to be woken at has come (`engine::due`).
    Tick,
    /// Messages up to here were looked at, whether they meant something or not.
    Seen {
        /// The channel.
        channel_id: ChannelId,
        /// The newest one.
        message_id: MessageId,
    },
    /// Channels, rights or roles of a server have changed: what Discord refused may be taken now.
    ChannelsChanged,
    /// A person commanded something.
    Command {
        /// Who.
        actor: Actor,
        /// What.
        command: Command,
        /// The interaction by which it came, where it was one: it is carried out once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interaction: Option<InteractionId>,
    },
    /// A role worker takes a delegate envelope and is about to start an agent.
    RunStarting(Run),
    /// A worker has an assignment and can begin with it.
    RunClaimed {
        /// The run.
        run_id: RunId,
        /// Its generation.
        generation: u32,
        /// The start of the worker.
        boot: BootId,
    },
    /// A generation of a run is over without an outcome: its worker was not heard of for too long, or has lost
    /// what its agent did.
    RunTakenAway {
        /// The run.
        run_id: RunId,
        /// Its generation.
        generation: u32,
        /// What was counted of it at its models.
        usage: Usage,
    },
    /// The agent at work wants something remembered. Whose it is follows from the run.
    Noted {
        /// The run.
        run_id: RunId,
        /// The call, which is done once.
        call: CallId,
        /// A line.
        text: String,
    },
    /// The agent at work tried what it may not, at one of the team's sockets.
    Refused {
        /// The run.
        run_id: RunId,
        /// The kind of it.
        refusal: Refusal,
        /// What it was, in a few words.
        what: String,
    },
    /// The model's server answers the agent at work "too many requests", and the agent tries again by itself.
    RateLimited {
        /// The run.
        run_id: RunId,
        /// Until when the server asks to wait, where it says so.
        until: Option<Timestamp>,
    },
    /// The agent is done.
    RunFinished(Box<RunReport>),
    /// A report in the orchestrator's inbox is to be applied.
    ReportReady {
        /// The envelope.
        relay_id: EnvelopeId,
    },
    /// Somebody could not handle an envelope: it counts as an attempt, and after enough of them it is dead.
    EnvelopeFailed {
        /// The envelope.
        relay_id: EnvelopeId,
        /// One line.
        reason: String,
        /// Whether an agent that began on it may still be at work: then it cannot die.
        agent_lives: bool,
        /// What its run has used, of which nobody reports where the envelope dies.
        usage: Usage,
    },
    /// Another program dropped an envelope into an inbox.
    EnvelopeDropped(Box<Envelope>),
    /// An operator moved a dead letter back to its inbox.
    EnvelopeReplayed(Box<Envelope>),
    /// An effect is about to touch the world.
    EffectStarting {
        /// Which.
        effect_id: EffectId,
        /// What reconciling will need.
        pre_state: Value,
    },
    /// A person's git command is in the way of what the team does in the project.
    GitBusy {
        /// The request that waits for it.
        request_id: RequestId,
        /// What it waits for.
        obstacle: GitObstacle,
    },
    /// The work on a request cannot go on before there is room on a disk; whoever does it tries again by itself.
    DiskFull {
        /// The request.
        request_id: RequestId,
        /// A path on that disk.
        path: String,
    },
    /// An effect is done.
    EffectFinished {
        /// Which.
        effect_id: EffectId,
        /// What came of it.
        outcome: Box<EffectOutcome>,
    },
    /// An outgoing is about to be sent.
    OutgoingStarting {
        /// Which.
        outgoing_id: OutgoingId,
        /// Parts confirmed so far.
        parts_done: u32,
    },
    /// An outgoing was handled.
    OutgoingFinished {
        /// Which.
        outgoing_id: OutgoingId,
        /// What came of it.
        outcome: OutgoingOutcome,
    },
}
