//! Things to do in Discord. They wait in the outbox until Discord has them, so that a dead Discord
//! never stops the team.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::ids::{
    ChannelId, EnvelopeId, GateId, MessageId, OutgoingId, RequestId, SprintId, UserId,
};
use crate::domain::language::Language;
use crate::domain::role::Role;
use crate::domain::routes::Lane;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

/// Messages that Discord failed again and again while it took others: one JSON object a line, with the
/// words and the reason. Workspace-relative.
pub const SET_ASIDE: &str = "logs/set_aside.jsonl";

/// Messages that Discord refused and that are kept to be tried again. Beyond, the oldest one goes to
/// [`SET_ASIDE`] with its words, its reason and a line in the history of its request.
pub const REFUSED_KEPT: usize = 200;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    /// The bot user: receipts, cards, final answers, everything that must not be doubled.
    Team,
    /// A role: its webhook persona, its own bot, or a plain message with a header.
    Role(Role),
}

/// Across rooms the earlier one goes first; within a room the order of writing holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// The outcome.
    Final,
    /// A question to a person.
    Approval,
    /// Something went wrong.
    Error,
    /// Everything else.
    Progress,
    /// To somebody who may not ask: after everything else, and never in anybody's way.
    #[serde(alias = "courtesy")]
    Refusal,
}

impl Priority {
    /// Failures of a message's own after which it is set aside. With the growing waits between tries that
    /// is a minute for progress and a quarter of an hour and more for what a person waits for.
    #[must_use]
    pub const fn patience(self) -> u32 {
        match self {
            Self::Progress | Self::Refusal => 5,
            Self::Error => 10,
            Self::Approval | Self::Final => 14,
        }
    }
}

/// The channels that the configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedChannel {
    /// Hand-offs between roles, for operators.
    Relay,
    /// That the team is up.
    Startup,
    /// Reports.
    Report,
}

/// Where it goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A channel or thread.
    Channel(ChannelId),
    /// A configured channel.
    Named(NamedChannel),
    /// A direct message.
    Dm(UserId),
    /// The room of a request; where it has none (a direct message), where it was asked.
    Room(RequestId),
}

/// What to say: a catalog key and its values; rendered at delivery, in the language of the reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// A key of `assets/catalog/*.yaml`.
    pub key: String,
    /// The values that its template uses.
    #[serde(default)]
    pub values: Map<String, Value>,
    /// The language.
    #[serde(default)]
    pub language: Language,
}

words! {
    /// What a button does when pressed.
    pub enum ButtonAct {
        /// Decide a gate: yes.
        Approve = "approve",
        /// Decide a gate: no.
        Reject = "reject",
        /// Ask something before deciding a gate: opens a form.
        Question = "question",
        /// Decide a gate: yes, whatever was found; opens a form for the reason.
        ApproveAnyway = "anyway",
        /// Say how a plan is to be different: opens a form.
        Guide = "guide",
        /// Use the checks that the project shows, and prove the commit of a gate by them.
        UseChecks = "use_checks",
        /// A person's criterion: it holds.
        Pass = "pass",
        /// It does not: opens a form for what is wrong.
        Issue = "issue",
        /// Nobody looks at it.
        Skip = "skip",
        /// It cannot be looked at now.
        Blocked = "blocked",
        /// Say what should be different about what was delivered: opens a form.
        RequestChanges = "revise",
        /// Withdraw the request.
        Cancel = "cancel",
        /// Try a blocked request again.
        Retry = "retry",
        /// Try it again with a word: opens a form.
        TryWithWords = "words",
        /// Nobody does it: opens a form for the reason.
        SkipRequest = "skip_request",
        /// Nobody decides about it now.
        Pause = "pause",
        /// Leave the planner's questions to the planner.
        YouDecide = "you_decide",
        /// Answer a question of the planner: a list of choices.
        Choose = "choose",
        /// Several pieces of work are as many requests.
        Split = "split",
        /// What the team could not do is planned as smaller items.
        SplitWork = "split_work",
        /// They are a sprint.
        AsSprint = "as_sprint",
        /// They are one.
        Together = "together",
        /// Answer, and build nothing.
        Answer = "answer",
        /// Choose another lane: a list of choices.
        Lane = "lane",
    }
}

/// A button. Its id on the wire is `t:<act>:<subject>:<version>` (at most 100 characters).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// What it does.
    pub act: ButtonAct,
    /// The gate or request that it is about.
    pub subject: String,
    /// The version of the subject that the person saw.
    pub version: u32,
}

impl Button {
    /// The id on the wire.
    #[must_use]
    pub fn custom_id(&self) -> String {
        format!("t:{}:{}:{}", self.act.as_str(), self.subject, self.version)
    }

    /// Reads an id from the wire; `None` for anything that is not ours.
    #[must_use]
    pub fn parse(custom_id: &str) -> Option<Button> {
        let rest = custom_id.strip_prefix("t:")?;
        let (act, rest) = rest.split_once(':')?;
        let (subject, version) = rest.rsplit_once(':')?;
        Some(Button {
            act: act.parse().ok()?,
            subject: subject.to_owned(),
            version: version.parse().ok()?,
        })
    }
}

/// A list of lanes to choose from; its id on the wire is that of a button with [`ButtonAct::Lane`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneMenu {
    /// The request.
    pub request_id: RequestId,
    /// The lane that it takes.
    pub chosen: Lane,
}

/// A list to choose from, below a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Menu {
    /// The options of a question.
    Choice(ChoiceMenu),
    /// The lanes of a request.
    Lane(LaneMenu),
}

/// The options of a question; its id on the wire is that of a button with [`ButtonAct::Choose`]. What is chosen is the
/// place of the option, from 1, or 0 for what is assumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChoiceMenu {
    /// The request and the number of the question: `20260324-1a2b3c4d.2`.
    pub subject: String,
    /// What it is called.
    pub label: String,
    /// What there is to choose from.
    pub options: Vec<String>,
    /// The one that is taken where it is left to the planner.
    pub assumption: String,
}

/// A message to post.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// The words.
    pub content: Content,
    /// As an answer to this message.
    #[serde(default)]
    pub reply_to: Option<MessageId>,
    /// The one person who may be notified.
    #[serde(default)]
    pub mention: Option<UserId>,
    /// Buttons below the last part.
    #[serde(default)]
    pub buttons: Vec<Button>,
    /// A gate whose card this is: its message id is kept with the gate.
    #[serde(default)]
    pub gate_id: Option<GateId>,
    /// Workspace-relative files to attach.
    #[serde(default)]
    pub files: Vec<String>,
    /// A request whose room hangs on this message once it is posted.
    #[serde(default)]
    pub room_of: Option<RequestId>,
    /// Lists to choose from, above the buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub menus: Vec<Menu>,
}

impl Post {
    /// Words alone.
    #[must_use]
    pub const fn new(content: Content) -> Self {
        Self {
            content,
            reply_to: None,
            mention: None,
            buttons: Vec::new(),
            gate_id: None,
            files: Vec::new(),
            room_of: None,
            menus: Vec::new(),
        }
    }
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Act {
    /// Post a message (split where it is too long).
    Post(Post),
    /// Create the status card of a request, or edit it in place.
    Card {
        /// The words (a template that yields an embed).
        content: Content,
        /// Buttons below it.
        #[serde(default)]
        buttons: Vec<Button>,
        /// The lanes to choose from, below the buttons.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        menu: Option<LaneMenu>,
    },
    /// Post the board of a sprint, or edit it in place.
    Board {
        /// The words.
        content: Content,
        /// Whose.
        sprint_id: SprintId,
        /// The message that shows it; none where it is not posted yet.
        #[serde(default)]
        message_id: Option<MessageId>,
    },
    /// Pin one of our messages, or take its pin away.
    Pin {
        /// The message.
        message_id: MessageId,
        /// Whether it is to be pinned.
        pinned: bool,
    },
    /// Open the room of a request as a thread on the message that asked.
    OpenRoom {
        /// The parent channel.
        channel_id: ChannelId,
        /// The message that asked.
        message_id: MessageId,
        /// The thread's name, at most 100 characters.
        name: String,
    },
    /// Add a reaction.
    React {
        /// The message.
        message_id: MessageId,
        /// A unicode emoji.
        emoji: String,
    },
    /// Take the buttons off one of our messages: what they were for is over.
    Unbutton {
        /// The message.
        message_id: MessageId,
    },
    /// Post a whole relay envelope for debugging (`--relay-transport discord`).
    Envelope {
        /// The envelope.
        relay_id: EnvelopeId,
        /// Its JSON text.
        json: String,
    },
}

impl Act {
    /// Whether it opens a room on this message.
    #[must_use]
    pub fn opens_room_on(&self, message: MessageId) -> bool {
        matches!(self, Self::OpenRoom { message_id, .. } if *message_id == message)
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutgoingState {
    /// Not sent.
    Queued,
    /// Being sent since; after a crash the channel is read from the watermark before it is sent again.
    Sending {
        /// Since when: the nonce window counts from here.
        since: Timestamp,
        /// Parts that Discord has confirmed.
        parts_done: u32,
    },
}

/// That Discord said no to a message. It is kept, holds nobody up, and is tried again when channels or rights
/// have changed, at a start, when a person asks for it, and else after waits that grow to an hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRefusal {
    /// What Discord said, the last time.
    pub reason: String,
    /// Whether the place refuses, so that it would refuse any other message as well.
    pub place: bool,
    /// When it said so first.
    pub since: Timestamp,
    /// When it said so last.
    pub last_at: Timestamp,
    /// How often it said so.
    pub times: u32,
}

impl DeliveryRefusal {
    /// Seconds between tries that nobody asked for.
    #[must_use]
    pub fn pause(&self) -> u64 {
        (60u64 << self.times.saturating_sub(1).min(6)).min(3_600)
    }

    /// Seconds between tries while rights or channels change.
    #[must_use]
    pub fn pause_after_changes(&self) -> u64 {
        (1u64 << self.times.saturating_sub(1).min(8)).min(300)
    }
}

/// One thing to do in Discord.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// A uuid v7; also the source of the nonces, so the order of ids is the order of writing.
    pub outgoing_id: OutgoingId,
    /// Where.
    pub target: Target,
    /// Who speaks.
    pub voice: Voice,
    /// How urgent across rooms.
    pub priority: Priority,
    /// What.
    pub act: Act,
    /// The request that it is about.
    #[serde(default)]
    pub request_id: Option<RequestId>,
    /// A newer queued one with the same slot replaces an older queued one.
    #[serde(default)]
    pub slot: Option<String>,
    /// How far it is.
    pub state: OutgoingState,
    /// Times tried.
    pub attempts: u32,
    /// Tries that Discord failed while it took others: what [`Priority::patience`] limits. A Discord that
    /// is away does not count.
    #[serde(default)]
    pub own_failures: u32,
    /// Not before.
    #[serde(default)]
    pub not_before: Option<Timestamp>,
    /// Discord refused it; until it takes it or a person dismisses it, it stays here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<DeliveryRefusal>,
    /// When it was written.
    pub created_at: Timestamp,
}

impl Outgoing {
    /// A name that people can type: the last eight digits of the id, which are random.
    #[must_use]
    pub fn short_id(&self) -> String {
        let id = self.outgoing_id.as_str();
        let at = id.char_indices().rev().nth(7).map_or(0, |(at, _)| at);
        id.get(at..).unwrap_or(id).to_owned()
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutgoingOutcome {
    /// These messages exist now, in this channel.
    Posted {
        /// The channel or thread.
        channel_id: ChannelId,
        /// One for each part.
        message_ids: Vec<MessageId>,
    },
    /// The thread exists now.
    RoomOpened {
        /// Its id.
        thread_id: ChannelId,
    },
    /// Done, nothing to remember.
    Done,
    /// Try again then; Discord is away or asks to wait.
    Later {
        /// When.
        at: Timestamp,
        /// Why, for `status`.
        reason: String,
        /// Whether it is about this message alone: Discord answered, and took another of its kind since
        /// the last try.
        #[serde(default)]
        own: bool,
    },
    /// Discord refused it: forbidden, gone, or wrong in itself.
    Refused {
        /// Why.
        reason: String,
        /// Whether the place refuses, so that it would refuse any other message as well.
        #[serde(default)]
        place: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_button_id_survives_the_wire() {
        let button = Button {
            act: ButtonAct::Approve,
            subject: "019a3b7e-0000-7000-8000-000000000001".to_owned(),
            version: 3,
        };
        assert_eq!(Button::parse(&button.custom_id()), Some(button.clone()));
        assert!(button.custom_id().len() <= 100);
        for foreign in ["", "t:", "t:approve:x", "x:approve:y:1", "t:explode:y:1", "t:approve:y:z"]
        {
            assert_eq!(Button::parse(foreign), None, "{foreign}");
        }
    }
}
