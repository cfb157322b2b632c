//! What the guild holds. Each type is stored whole in the log, and rendered for clients by `payload`.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ids::Id;
use super::right;

/// A person or a bot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct User {
    pub(crate) id: Id,
    pub(crate) name: String,
    pub(crate) display: String,
    /// For a bot, its user id is its application id as well.
    pub(crate) bot: bool,
    pub(crate) token: String,
    pub(crate) roles: Vec<Id>,
    /// Whether it is in the guild: a bot is not until a person opens its invite link.
    #[serde(default = "yes")]
    pub(crate) member: bool,
    /// The name that this guild knows it by, if another.
    #[serde(default)]
    pub(crate) nick: Option<String>,
    /// Of a bot: what its application may ask for, and how it describes itself.
    #[serde(default)]
    pub(crate) application: Application,
}

fn yes() -> bool {
    true
}

impl User {
    /// A member of the guild without roles.
    pub(crate) fn new(id: Id, name: &str, display: &str, bot: bool, token: String) -> User {
        User {
            id,
            name: name.to_owned(),
            display: display.to_owned(),
            bot,
            token,
            roles: Vec::new(),
            member: true,
            nick: None,
            application: Application::default(),
        }
    }
}

/// What a bot's application has beyond the bot.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Application {
    pub(crate) flags: u64,
    pub(crate) description: String,
    /// The digest of its picture.
    pub(crate) icon: Option<String>,
    pub(crate) tags: Vec<String>,
}

/// The flag by which a small application may read the member list.
pub(crate) const MEMBERS_LIMITED: u64 = 1 << 15;
/// The flag by which a small application may read what messages say.
pub(crate) const CONTENT_LIMITED: u64 = 1 << 19;
/// The flag by which a small application may see who is online.
pub(crate) const PRESENCE_LIMITED: u64 = 1 << 13;

impl Default for Application {
    fn default() -> Application {
        Application {
            flags: MEMBERS_LIMITED | CONTENT_LIMITED,
            description: String::new(),
            icon: None,
            tags: Vec::new(),
        }
    }
}

/// A server role.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(crate) id: Id,
    pub(crate) name: String,
    /// 0xRRGGBB; zero is "no colour".
    pub(crate) color: u32,
    pub(crate) position: u32,
    pub(crate) mentionable: bool,
    #[serde(default)]
    pub(crate) hoist: bool,
    /// See `permission::right`.
    #[serde(default = "every_right")]
    pub(crate) permissions: u64,
    /// The bot whose role it is: made when it was invited, gone when it leaves.
    #[serde(default)]
    pub(crate) managed: Option<Id>,
}

/// Older logs know no rights: everyone in them may do everything.
fn every_right() -> u64 {
    right::ALL
}

/// What a channel gives or takes beyond the roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Overwrite {
    /// A role, or a member.
    pub(crate) id: Id,
    pub(crate) member: bool,
    pub(crate) allow: u64,
    pub(crate) deny: u64,
}

/// What sort of channel it is, with what only that sort has.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ChannelKind {
    /// A text channel of the guild, on its own or in a category.
    Text {
        topic: Option<String>,
        position: u32,
        #[serde(default)]
        parent: Option<Id>,
    },
    /// A heading over text channels.
    Category { position: u32 },
    /// A direct conversation.
    Dm { recipients: Vec<Id> },
    /// A thread under a text channel.
    Thread(Thread),
}

/// What a thread has beyond a channel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Thread {
    pub(crate) parent: Id,
    pub(crate) owner: Id,
    pub(crate) private: bool,
    pub(crate) archived: bool,
    pub(crate) locked: bool,
    /// Minutes of silence after which it goes into the archive: when somebody logs in, or begins another one.
    pub(crate) auto_archive: u32,
    pub(crate) archive_changed: DateTime<Utc>,
    pub(crate) members: BTreeSet<Id>,
}

/// A place where messages stand.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Channel {
    pub(crate) id: Id,
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) kind: ChannelKind,
    /// Seconds a member waits between messages; kept, never acted on.
    pub(crate) slowmode: u32,
    /// Newest first.
    pub(crate) pins: Vec<Pin>,
    #[serde(default)]
    pub(crate) overwrites: Vec<Overwrite>,
}

impl Channel {
    pub(crate) fn thread(&self) -> Option<&Thread> {
        match &self.kind {
            ChannelKind::Thread(thread) => Some(thread),
            ChannelKind::Text { .. } | ChannelKind::Category { .. } | ChannelKind::Dm { .. } => {
                None
            }
        }
    }

    pub(crate) fn thread_mut(&mut self) -> Option<&mut Thread> {
        match &mut self.kind {
            ChannelKind::Thread(thread) => Some(thread),
            ChannelKind::Text { .. } | ChannelKind::Category { .. } | ChannelKind::Dm { .. } => {
                None
            }
        }
    }

    /// Those who talk in a direct conversation; `None` for a channel of the guild.
    pub(crate) fn recipients(&self) -> Option<&[Id]> {
        match &self.kind {
            ChannelKind::Dm { recipients } => Some(recipients),
            ChannelKind::Text { .. } | ChannelKind::Category { .. } | ChannelKind::Thread(_) => {
                None
            }
        }
    }

    /// A channel with nothing in it.
    pub(crate) fn new(id: Id, name: impl Into<String>, kind: ChannelKind) -> Channel {
        Channel {
            id,
            name: name.into(),
            kind,
            slowmode: 0,
            pins: Vec::new(),
            overwrites: Vec::new(),
        }
    }

    /// Whether messages stand in it.
    pub(crate) fn is_text(&self) -> bool {
        match self.kind {
            ChannelKind::Text { .. } | ChannelKind::Dm { .. } | ChannelKind::Thread(_) => true,
            ChannelKind::Category { .. } => false,
        }
    }

    /// Whether it is listed as a channel of the guild, as threads are not.
    pub(crate) fn is_listed(&self) -> bool {
        match self.kind {
            ChannelKind::Text { .. } | ChannelKind::Category { .. } => true,
            ChannelKind::Dm { .. } | ChannelKind::Thread(_) => false,
        }
    }
}

/// A pinned message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pin {
    pub(crate) message: Id,
    pub(crate) at: DateTime<Utc>,
}

/// Who wrote a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub(crate) enum Author {
    /// A person or bot.
    User { id: Id },
    /// A webhook, under the name it chose for this message.
    Webhook { id: Id, name: String, avatar: Option<String>, application: Option<Id> },
}

impl Author {
    /// The id that clients see as the author's.
    pub(crate) fn id(&self) -> Id {
        match self {
            Author::User { id } | Author::Webhook { id, .. } => *id,
        }
    }

    /// The application that answers for buttons under the message.
    pub(crate) fn application(&self) -> Option<Id> {
        match self {
            Author::User { id } => Some(*id),
            Author::Webhook { application, .. } => *application,
        }
    }
}

/// Discord's message types that occur here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageKind {
    Default,
    PinAdded,
    ThreadCreated,
    Reply,
    Command,
}

impl MessageKind {
    /// The number on the wire.
    pub(crate) fn number(self) -> u8 {
        match self {
            MessageKind::Default => 0,
            MessageKind::PinAdded => 6,
            MessageKind::ThreadCreated => 18,
            MessageKind::Reply => 19,
            MessageKind::Command => 20,
        }
    }
}

/// A file on a message; its bytes lie in the blobs under its id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Attachment {
    pub(crate) id: Id,
    pub(crate) filename: String,
    /// The name that it came with, without its ending, where the file name lacks some of its letters.
    #[serde(default)]
    pub(crate) title: Option<String>,
    pub(crate) content_type: String,
    pub(crate) description: Option<String>,
    /// Bytes.
    pub(crate) size: u64,
    /// Width and height in pixels, where the file says so.
    pub(crate) pixels: Option<(u32, u32)>,
}

/// One emoji under a message and those who chose it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Reaction {
    pub(crate) emoji: String,
    pub(crate) users: BTreeSet<Id>,
}

/// The message that another one points at.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) channel: Id,
    pub(crate) message: Option<Id>,
}

/// A message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) id: Id,
    pub(crate) channel: Id,
    pub(crate) author: Author,
    pub(crate) kind: MessageKind,
    pub(crate) content: String,
    pub(crate) edited: Option<DateTime<Utc>>,
    pub(crate) embeds: Vec<Value>,
    pub(crate) components: Vec<Value>,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) reactions: Vec<Reaction>,
    pub(crate) reference: Option<Reference>,
    pub(crate) nonce: Option<Value>,
    pub(crate) flags: u64,
    pub(crate) tts: bool,
    pub(crate) mentions: Vec<Id>,
    pub(crate) mention_roles: Vec<Id>,
    pub(crate) mention_everyone: bool,
    /// The interaction it answers.
    pub(crate) interaction: Option<Id>,
    /// Set for an answer that only one person sees.
    pub(crate) only_for: Option<Id>,
}

impl Message {
    /// A message with nothing in it.
    pub(crate) fn blank(id: Id, channel: Id, author: Author, kind: MessageKind) -> Message {
        Message {
            id,
            channel,
            author,
            kind,
            content: String::new(),
            edited: None,
            embeds: Vec::new(),
            components: Vec::new(),
            attachments: Vec::new(),
            reactions: Vec::new(),
            reference: None,
            nonce: None,
            flags: 0,
            tts: false,
            mentions: Vec::new(),
            mention_roles: Vec::new(),
            mention_everyone: false,
            interaction: None,
            only_for: None,
        }
    }
}

/// The flag of an answer that only the asking person sees.
pub(crate) const EPHEMERAL: u64 = 1 << 6;
/// The flag of an answer that is still being worked on.
pub(crate) const LOADING: u64 = 1 << 7;
/// The flag of a message from which a thread was started.
pub(crate) const HAS_THREAD: u64 = 1 << 5;

/// A webhook of a channel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Webhook {
    pub(crate) id: Id,
    pub(crate) channel: Id,
    pub(crate) name: String,
    pub(crate) avatar: Option<String>,
    pub(crate) token: String,
    /// The application that made it.
    pub(crate) application: Option<Id>,
    pub(crate) creator: Id,
}

/// A registered application command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) id: Id,
    pub(crate) application: Id,
    pub(crate) guild: Option<Id>,
    pub(crate) version: Id,
    /// As sent, without nulls.
    pub(crate) body: Map<String, Value>,
}

/// What a person did to start an interaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum InteractionKind {
    /// A slash command, or one from a menu; `data` as clients get it.
    Command { data: Value },
    /// A button or a menu under a message.
    Component { data: Value, message: Id },
    /// A slash command being typed: its application suggests values.
    Autocomplete { data: Value },
    /// A filled-in dialog.
    Modal {
        data: Value,
        message: Option<Id>,
        /// The interaction that opened the dialog.
        #[serde(default)]
        from: Option<Id>,
    },
}

impl InteractionKind {
    /// The number on the wire.
    pub(crate) fn number(&self) -> u8 {
        match self {
            InteractionKind::Command { .. } => 2,
            InteractionKind::Component { .. } => 3,
            InteractionKind::Autocomplete { .. } => 4,
            InteractionKind::Modal { .. } => 5,
        }
    }

    /// The `data` that clients get.
    pub(crate) fn data(&self) -> &Value {
        match self {
            InteractionKind::Command { data }
            | InteractionKind::Autocomplete { data }
            | InteractionKind::Component { data, .. }
            | InteractionKind::Modal { data, .. } => data,
        }
    }

    /// A file that came with it.
    pub(crate) fn file(&self, id: Id) -> Option<Attachment> {
        let found = self.data().get("resolved")?.get("attachments")?.get(id.to_string())?;
        Some(Attachment {
            id,
            filename: found["filename"].as_str()?.to_owned(),
            content_type: found["content_type"].as_str()?.to_owned(),
            title: found["title"].as_str().map(str::to_owned),
            description: None,
            size: found["size"].as_u64()?,
            pixels: None,
        })
    }

    /// The interaction that opened the dialog.
    pub(crate) fn opener(&self) -> Option<Id> {
        match self {
            InteractionKind::Modal { from, .. } => *from,
            InteractionKind::Command { .. }
            | InteractionKind::Component { .. }
            | InteractionKind::Autocomplete { .. } => None,
        }
    }

    /// The message it started from.
    pub(crate) fn message(&self) -> Option<Id> {
        match self {
            InteractionKind::Command { .. } | InteractionKind::Autocomplete { .. } => None,
            InteractionKind::Component { message, .. } => Some(*message),
            InteractionKind::Modal { message, .. } => *message,
        }
    }
}

/// How far the application has come with an interaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Nothing yet.
    None,
    /// Acknowledged; a message shows that work is going on.
    Deferred,
    /// Answered.
    Given,
}

fn english() -> String {
    "en-US".to_owned()
}

/// How long the token of an interaction is good for.
pub(crate) const TOKEN_MINUTES: i64 = 15;

/// A person's click, command or dialog, waiting for its application.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Interaction {
    pub(crate) id: Id,
    pub(crate) application: Id,
    pub(crate) token: String,
    pub(crate) channel: Id,
    pub(crate) user: Id,
    #[serde(flatten)]
    pub(crate) kind: InteractionKind,
    pub(crate) answer: Answer,
    /// The message that `@original` names.
    pub(crate) original: Option<Id>,
    /// The language of the person's client.
    #[serde(default = "english")]
    pub(crate) locale: String,
    /// Which of the person's clients it came from: a dialog opens there and nowhere else.
    #[serde(default)]
    pub(crate) session: Option<String>,
    /// What the client knows it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nonce: Option<String>,
    /// The dialog that its application opened.
    #[serde(default)]
    pub(crate) dialog: Option<Value>,
}
