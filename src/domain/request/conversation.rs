//! Where a request is talked about.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::domain::actor::{Actor, Author};
use crate::domain::ids::{ChannelId, GuildId, MessageId, ServerRoleId, UserId};
use crate::domain::ingress::Ingress;
use crate::domain::language::Language;
use crate::domain::refusal::Refusal;
use crate::domain::time::Timestamp;

/// Where the answer goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplyRoute {
    /// Who asked.
    pub author_id: Option<UserId>,
    /// The name of who asked, for people to read.
    pub author_name: String,
    /// The server roles of who asked, at that time: rights that what they asked for takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub author_roles: Vec<ServerRoleId>,
    /// Where it was asked; for a message in a room, the room.
    pub channel_id: Option<ChannelId>,
    /// The server; none for a direct message.
    pub guild_id: Option<GuildId>,
    /// Whether it was a direct message.
    pub is_dm: bool,
    /// The message that asked.
    pub message_id: Option<MessageId>,
}

impl ReplyRoute {
    /// To whoever acts; the place is still to be told.
    #[must_use]
    pub fn of(actor: &Actor) -> Self {
        let mut route = Self { author_name: actor.name(), ..Self::default() };
        if let Actor::Person { author, guild_id, .. } = actor {
            route.author_id = Some(author.id);
            route.author_roles.clone_from(&author.server_roles);
            route.guild_id = *guild_id;
            route.is_dm = guild_id.is_none();
        }
        route
    }

    /// Whoever asked, as they were when they asked: what is done in their name takes their rights.
    #[must_use]
    pub fn actor(&self) -> Actor {
        let Some(id) = self.author_id else { return Actor::Operator };
        let author = Author {
            id,
            name: self.author_name.clone(),
            is_bot: false,
            server_roles: self.author_roles.clone(),
        };
        let via = if self.is_dm { Ingress::DirectMessage } else { Ingress::Message };
        Actor::Person { author, guild_id: self.guild_id, via }
    }

    /// Whether somebody may not read it: what somebody said to the team alone stays there.
    #[must_use]
    pub fn is_hidden_from(&self, reader: &Actor) -> bool {
        self.is_dm && self.is_other(reader)
    }

    /// Whether somebody is another person than who asked; the operator may do all that is asked for.
    #[must_use]
    pub fn is_other(&self, actor: &Actor) -> bool {
        matches!(actor, Actor::Person { author, .. } if self.author_id != Some(author.id))
    }
}

/// The Discord thread in which a request happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// The thread once it exists; a direct message has none and stays in its channel.
    pub thread_id: Option<ChannelId>,
    /// The status card.
    pub card_id: Option<MessageId>,
    /// What the card said last (digest), so that equal cards are not edited.
    #[serde(default)]
    pub card_digest: String,
}

/// The conversation with people about a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestConversation {
    /// When the message was written.
    pub source_message_created_at: Option<Timestamp>,
    /// Where the answer goes.
    pub reply_route: ReplyRoute,
    /// The language of the request.
    pub language: Language,
    /// Its thread.
    pub room: Option<Room>,
    /// What the team said about it outside of its room, newest last: who answers one of these speaks to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said_outside: Vec<MessageId>,
    /// What its agents were refused and its room was told of.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub refusals: BTreeSet<Refusal>,
}

/// Messages that are remembered of those outside of a room.
const SAID_OUTSIDE: usize = 48;

impl RequestConversation {
    /// The thread in which its words are heard, whoever they address.
    #[must_use]
    pub fn thread(&self) -> Option<ChannelId> {
        self.room.as_ref().and_then(|room| room.thread_id)
    }

    /// The card that shows how it stands.
    #[must_use]
    pub fn status_card(&self) -> Option<MessageId> {
        self.room.as_ref().and_then(|room| room.card_id)
    }

    /// Notes what was said about it outside of its room.
    pub fn note_said_outside(&mut self, messages: &[MessageId]) {
        self.said_outside.extend(messages);
        let over = self.said_outside.len().saturating_sub(SAID_OUTSIDE);
        self.said_outside.drain(..over);
    }

    /// What an answer to it answers: the message that asked, or, of the operator's, what the team has posted of it, by
    /// whose id the thread on it goes. Whoever asked by a slash command is named instead, and so told of it.
    #[must_use]
    pub fn message_to_answer(&self) -> Option<MessageId> {
        let route = &self.reply_route;
        let is_operators = route.author_id.is_none() && route.channel_id.is_none();
        let post = self.thread().filter(|_| is_operators).map(|thread| MessageId(thread.0));
        route.message_id.or(post)
    }

    /// Where people talk about the request: its room, else the channel in which it was asked for.
    #[must_use]
    pub fn place(&self) -> Option<ChannelId> {
        self.thread().or(self.reply_route.channel_id)
    }
}
