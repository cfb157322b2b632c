//! What Discord tells, and the ways to answer.

use serde_json::{Value, json};

use crate::assets::catalog::Catalog;
use crate::discord::identity::Identity;
use crate::discord::person_request::Typing;
use crate::discord::rest::Rest;
use crate::discord::split::{MESSAGE_LIMIT, shorten};
use crate::domain::actor::Actor;
use crate::domain::commands::Question;
use crate::domain::ids::{ChannelId, InteractionId, MessageId};
use crate::domain::incoming::{Command, Message};
use crate::domain::language::Language;
use crate::domain::outgoing::Content;
use crate::domain::role::Role;
use crate::platform::redact::redact;

/// A fact from Discord.
#[derive(Debug)]
pub enum Inbound {
    /// Events flow. After `fresh`, messages wait inside the link until [`crate::discord::Link::catch_up`] was called,
    /// so that what was missed comes before what is new.
    Connected {
        /// Whether earlier events may have been missed.
        fresh: bool,
        /// Who we are.
        identity: Identity,
    },
    /// The connection is gone; another is being made.
    Disconnected {
        /// Why.
        reason: String,
    },
    /// Something works less well until it is set up differently.
    Degraded {
        /// What, and how to change that.
        reason: String,
    },
    /// A bot will not connect again.
    Fatal {
        /// The role whose bot it is, if it is not the one that listens.
        role: Option<Role>,
        /// Why, and what to do.
        reason: String,
    },
    /// Channels, rights or roles have changed: what Discord refused may be taken now.
    ChannelsChanged,
    /// A channel or a thread was deleted.
    ChannelDeleted(ChannelId),
    /// Somebody wrote.
    Message(Message),
    /// Somebody changed what they wrote.
    Edited(Message),
    /// A message is gone.
    Deleted {
        /// From where.
        channel_id: ChannelId,
        /// Which.
        message_id: MessageId,
    },
    /// Every message that was missed has been told.
    Live,
    /// Everything in the channel up to here was told, whether it meant something or not.
    CaughtUp {
        /// The channel.
        channel_id: ChannelId,
        /// The newest message.
        message_id: MessageId,
    },
    /// Somebody pressed a button or used a slash command; Discord has been told that we heard.
    Command {
        /// Who.
        actor: Actor,
        /// What.
        command: Command,
        /// The way to answer.
        reply: InteractionReply,
    },
    /// Somebody dropped a plan; Discord has been told that we heard.
    Plan {
        /// Who.
        actor: Actor,
        /// What.
        dropped: DroppedPlan,
        /// The way to answer.
        reply: InteractionReply,
    },
    /// Somebody wants to see something, by a slash command; Discord has been told that we heard.
    Question {
        /// Who.
        actor: Actor,
        /// What.
        question: Question,
        /// The way to answer.
        reply: InteractionReply,
    },
    /// Somebody types into an option of a slash command.
    Typing {
        /// Who, into what.
        typing: Typing,
        /// The way to suggest something, within three seconds.
        suggest: Suggest,
    },
}

/// A plan file that somebody dropped with `/plan import`.
#[derive(Debug)]
pub struct DroppedPlan {
    /// What the file is called.
    pub name: String,
    /// Where it was saved, relative to the workspace.
    pub path: String,
    /// The approval that came with it.
    pub approve: Option<String>,
}

/// Something that could be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// What the person reads.
    pub name: String,
    /// What the command is given.
    pub value: String,
}

/// The way to suggest what could be typed.
#[derive(Debug)]
pub struct Suggest {
    pub(crate) rest: Rest,
    pub(crate) interaction: u64,
    pub(crate) token: String,
}

impl Suggest {
    /// Suggests. Trouble is logged: the person types on without.
    pub async fn say(self, suggestions: &[Suggestion]) {
        let cut = |text: &str| text.chars().take(100).collect::<String>();
        let choices: Vec<Value> = suggestions
            .iter()
            .map(|it| json!({"name": cut(&it.name), "value": it.value}))
            .collect();
        if let Err(error) = self.rest.suggest(self.interaction, &self.token, &choices).await {
            tracing::debug!(%error, "nothing was suggested");
        }
    }
}

/// The way to answer a command: one text that only the person sees, within 15 minutes.
#[derive(Debug)]
pub struct InteractionReply {
    pub(crate) interaction: InteractionId,
    pub(crate) rest: Rest,
    pub(crate) catalog: Catalog,
    pub(crate) application: u64,
    pub(crate) token: String,
    pub(crate) language: Language,
}

impl InteractionReply {
    /// What it answers.
    #[must_use]
    pub const fn interaction(&self) -> InteractionId {
        self.interaction
    }

    /// The language that Discord speaks to the person.
    #[must_use]
    pub const fn language(&self) -> Language {
        self.language
    }

    /// Has nothing to add: what waits for the answer goes away.
    pub async fn nothing(self) {
        if let Err(error) = self.rest.withdraw_answer(self.application, &self.token).await {
            tracing::debug!(%error, "a command without an answer still waits for one");
        }
    }

    /// It was dealt with before: says so where no answer had come.
    pub async fn told_again(self) {
        match self.rest.is_unanswered(self.application, &self.token).await {
            Ok(true) => {
                let (key, language) = ("done_before".to_owned(), self.language);
                self.say(&Content { key, values: serde_json::Map::new(), language }).await;
            }
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "the answer of a command is not known"),
        }
    }

    /// Tells whoever asked that it came to nothing: a disk is full, or the team stops just now.
    pub async fn not_carried_out(self) {
        let (key, language) = ("not_carried_out".to_owned(), self.language);
        self.say(&Content { key, values: serde_json::Map::new(), language }).await;
    }

    /// Answers in the language of whoever asked, who alone sees it. Trouble is logged: the person sees the effect in the
    /// channel anyway.
    pub async fn say(self, content: &Content) {
        let content = Content { language: self.language, ..content.clone() };
        let text = match self.catalog.render(&content) {
            Ok(rendered) => shorten(&redact(&rendered.text), MESSAGE_LIMIT),
            Err(error) => {
                tracing::error!(%error, "a command's answer cannot be said");
                return;
            }
        };
        if let Err(error) = self.rest.answer(self.application, &self.token, &text).await {
            tracing::warn!(%error, "a command's answer did not get through");
        }
    }
}
