//! What people do, as facts: no text here was trusted or changed on the way.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::actor::{Actor, Author};
use crate::domain::attachment::Attachment;
use crate::domain::ids::{ChannelId, GateId, GuildId, MessageId, PlanId, RequestId};
use crate::domain::ingress::Ingress;
use crate::domain::item::ItemSource;
use crate::domain::language::Language;
use crate::domain::outgoing::Button;
use crate::domain::plan::Plan;
use crate::domain::plan_decision::NumberedAnswer;
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::routes::Lane;
use crate::domain::sprint::Kickoff;
use crate::domain::time::Timestamp;
use crate::domain::verification::{CriterionRef, ManualVerdict};

/// Seconds for which an edit can address the team in a message that was not for it.
pub const ADDRESSED_BY_EDIT: u64 = 3_600;

/// A message that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its id.
    pub message_id: MessageId,
    /// The channel or thread.
    pub channel_id: ChannelId,
    /// The server; none for a direct message.
    pub guild_id: Option<GuildId>,
    /// Who wrote it.
    pub author: Author,
    /// The text, verbatim, without the mentions that addressed the team.
    pub content: String,
    /// Whether it mentions the bot user or one of the team's roles, or answers one of its messages.
    pub addressed: bool,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// The role addressed: by its bot, its server role or by an answer to it.
    pub role: Option<Role>,
    /// Files.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// When it was written.
    pub created_at: Timestamp,
    /// The way it came, as far as the message itself tells: in a channel, as an answer, directly, by a webhook.
    #[serde(default)]
    pub via: Ingress,
    /// How far its channel is read once it is taken in, where that is not up to this message: an earlier one
    /// may still wait for its files or for its author's rights, or newer ones may have overtaken this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_up_to: Option<MessageId>,
}

impl Message {
    /// Who does what the message says, by the way it came or, in the room of a request, from there.
    #[must_use]
    pub fn actor(&self, in_room: bool) -> Actor {
        let via = if in_room && self.via != Ingress::Webhook { Ingress::Thread } else { self.via };
        Actor::Person { author: self.author.clone(), guild_id: self.guild_id, via }
    }
}

/// What somebody wants changed about the way of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteChange {
    /// Another lane; the answer lane means that nothing is built.
    Lane(Lane),
    /// A step more: its name, or a part of only one name.
    Add(String),
}

/// A command of a person, from a button, a slash command or the CLI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
pub enum Command {
    /// A button.
    Press {
        /// What its id said.
        button: Button,
        /// On which message.
        message_id: MessageId,
        /// In which channel.
        channel_id: ChannelId,
    },
    /// Ask for something.
    Ask {
        /// The words.
        text: String,
        /// Where the answer goes, for a person; the operator's go to the report channel.
        channel_id: Option<ChannelId>,
        /// The channel that the thread belongs to, where it was asked in a thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<ChannelId>,
        /// The language to answer in.
        language: Language,
        /// The lane that the person names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<Lane>,
    },
    /// Change the way of a request.
    Route {
        /// Which.
        request_id: RequestId,
        /// How.
        change: RouteChange,
    },
    /// Withdraw a request.
    Cancel {
        /// Which.
        request_id: RequestId,
    },
    /// Tell a request something while it is under way.
    Steer {
        /// Which.
        request_id: RequestId,
        /// The words.
        text: String,
    },
    /// Say what should be different about what a request delivered.
    RequestChanges {
        /// Which.
        request_id: RequestId,
        /// One thing a line.
        text: String,
        /// The request, where it has left memory.
        #[serde(skip)]
        ended: Option<Box<Request>>,
    },
    /// Try a blocked or failed request again.
    Retry {
        /// Which.
        request_id: RequestId,
    },
    /// Have the planner divide what the team could not do as one piece.
    Split {
        /// Which.
        request_id: RequestId,
    },
    /// Pause what the team could not do.
    Pause {
        /// Which.
        request_id: RequestId,
    },
    /// End what the team could not do: nobody does it.
    Skip {
        /// Which.
        request_id: RequestId,
        /// Why.
        reason: String,
    },
    /// Decide what waits for a person.
    Decide {
        /// The request that waits.
        request_id: RequestId,
        /// At least seven letters of what names the content: the commit, or the digest of the command.
        content: String,
        /// Whether it may be done.
        yes: bool,
        /// Why all the same, where something was found that speaks against it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Where a person typed it; nothing of the operator's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel_id: Option<ChannelId>,
    },
    /// Decide that it may be done, whatever was found: by the form that a card opened.
    ApproveAnyway {
        /// The gate.
        gate_id: GateId,
        /// The version of the card that opened it.
        version: u32,
        /// Why.
        reason: String,
    },
    /// Answer what the planner asks.
    AnswerQuestions {
        /// The request.
        request_id: RequestId,
        /// Answers to some of the questions.
        answers: Vec<NumberedAnswer>,
        /// Whether the others are left to the planner.
        rest: bool,
        /// The card, where they were given there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        card: Option<(ChannelId, MessageId)>,
    },
    /// Judge a criterion that is left to people.
    Verify {
        /// Which.
        criterion: CriterionRef,
        /// How it is.
        verdict: ManualVerdict,
        /// What there is to say about it.
        #[serde(default)]
        words: String,
    },
    /// Ask something before deciding, by the form that a card opened.
    AskBack {
        /// The gate.
        gate_id: GateId,
        /// The version of the card.
        version: u32,
        /// The question.
        question: String,
    },
    /// Try again what Discord refused.
    OutboxRetry,
    /// Give up a message that Discord refused.
    OutboxDismiss {
        /// The end of its id, at least six characters, or `all`.
        message: String,
    },
    /// Begin a sprint.
    SprintStart {
        /// With what.
        kickoff: Box<Kickoff>,
    },
    /// End the active sprint.
    SprintStop {
        /// Whether running todos are released instead of waited for.
        now: bool,
    },
    /// Go on with the last sprint from where it stopped.
    SprintRestart,
    /// Take in a plan that a person wrote, or a newer version of it.
    PlanImport {
        /// Which.
        plan_id: PlanId,
        /// What it says.
        plan: Box<Plan>,
        /// The first letters, at least seven, of the digest of the difference that the person has seen.
        approve: Option<String>,
    },
    /// Add, change or drop backlog items (`spec/teams.md` 4.3: a list, `{backlog_items: […]}`,
    /// `{backlog_item: …}` or one item).
    BacklogMerge {
        /// The items; keys that are absent stay as they are.
        payload: Value,
        /// Who found them, where an item does not say.
        source: ItemSource,
    },
}
