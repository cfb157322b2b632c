//! The guild in memory, and the changes it is made of.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};

use super::error::Refusal;
use super::ids::{Id, Snowflakes};
use super::model::{
    Author, Channel, ChannelKind, Command, Interaction, Message, Role, TOKEN_MINUTES, User, Webhook,
};

/// One after-image or removal. Applying one twice is the same as once, so that replay is simple.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "c", content = "v", rename_all = "snake_case")]
pub(crate) enum Change {
    Guild(Meta),
    User(User),
    Role(Role),
    RoleGone(Id),
    Channel(Channel),
    ChannelGone(Id),
    Message(Box<Message>),
    MessageGone { channel: Id, id: Id },
    Webhook(Webhook),
    WebhookGone(Id),
    Command(Command),
    CommandGone(Id),
    Interaction(Interaction),
    Creates(Creates),
}

/// How many commands an application has created on one day, in one guild or everywhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Creates {
    pub(crate) application: Id,
    pub(crate) guild: Option<Id>,
    /// When the day began.
    pub(crate) since: DateTime<Utc>,
    pub(crate) count: usize,
}

/// What the guild itself is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) id: Id,
    pub(crate) name: String,
    pub(crate) owner: Id,
}

/// Everything the guild knows.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) guild: Option<Meta>,
    pub(crate) users: BTreeMap<Id, User>,
    pub(crate) roles: BTreeMap<Id, Role>,
    pub(crate) channels: BTreeMap<Id, Channel>,
    /// By channel.
    pub(crate) messages: BTreeMap<Id, BTreeMap<Id, Message>>,
    pub(crate) webhooks: BTreeMap<Id, Webhook>,
    pub(crate) commands: BTreeMap<Id, Command>,
    pub(crate) interactions: BTreeMap<Id, Interaction>,
    /// By application, and the guild where it is one guild.
    pub(crate) creates: BTreeMap<(Id, Option<Id>), Creates>,
}

impl State {
    /// Puts a change in force and counts the identifiers it brings.
    pub(crate) fn apply(&mut self, change: Change, ids: &mut Snowflakes) {
        match change {
            Change::Guild(meta) => {
                ids.saw(meta.id);
                self.guild = Some(meta);
            }
            Change::User(user) => {
                ids.saw(user.id);
                self.users.insert(user.id, user);
            }
            Change::Role(role) => {
                ids.saw(role.id);
                self.roles.insert(role.id, role);
            }
            Change::RoleGone(id) => self.forget_role(id),
            Change::Channel(channel) => {
                ids.saw(channel.id);
                self.channels.insert(channel.id, channel);
            }
            Change::ChannelGone(id) => {
                for channel in self.channels.values_mut() {
                    match &mut channel.kind {
                        ChannelKind::Text { parent, .. } if *parent == Some(id) => *parent = None,
                        ChannelKind::Text { .. }
                        | ChannelKind::Category { .. }
                        | ChannelKind::Dm { .. }
                        | ChannelKind::Thread(_) => {}
                    }
                }
                self.channels.remove(&id);
                self.messages.remove(&id);
                self.webhooks.retain(|_, webhook| webhook.channel != id);
            }
            Change::Message(message) => {
                ids.saw(message.id);
                for file in &message.attachments {
                    ids.saw(file.id);
                }
                self.messages.entry(message.channel).or_default().insert(message.id, *message);
            }
            Change::MessageGone { channel, id } => {
                if let Some(messages) = self.messages.get_mut(&channel) {
                    messages.remove(&id);
                }
            }
            Change::Webhook(webhook) => {
                ids.saw(webhook.id);
                self.webhooks.insert(webhook.id, webhook);
            }
            Change::WebhookGone(id) => {
                self.webhooks.remove(&id);
            }
            Change::Command(command) => {
                ids.saw(command.version);
                self.commands.insert(command.id, command);
            }
            Change::CommandGone(id) => {
                self.commands.remove(&id);
            }
            Change::Interaction(interaction) => {
                ids.saw(interaction.id);
                self.interactions.insert(interaction.id, interaction);
            }
            Change::Creates(creates) => {
                self.creates.insert((creates.application, creates.guild), creates);
            }
        }
    }

    fn forget_role(&mut self, id: Id) {
        self.roles.remove(&id);
        for user in self.users.values_mut() {
            user.roles.retain(|role| *role != id);
        }
        for channel in self.channels.values_mut() {
            channel.overwrites.retain(|overwrite| overwrite.member || overwrite.id != id);
        }
    }

    /// Forgets interactions that nothing can be answered to any more and no message came of.
    pub(crate) fn forget_interactions(&mut self, now: DateTime<Utc>) {
        let mut named: BTreeSet<Id> = self
            .messages
            .values()
            .flat_map(BTreeMap::values)
            .filter_map(|it| it.interaction)
            .collect();
        let of_dialogs = self.interactions.values().filter(|it| named.contains(&it.id));
        let openers: Vec<Id> = of_dialogs.filter_map(|it| it.kind.opener()).collect();
        named.extend(openers);
        let oldest = Id::at(now - Duration::minutes(TOKEN_MINUTES));
        self.interactions.retain(|id, _| *id >= oldest || named.contains(id));
    }

    /// The keys of all bytes that something here shows.
    pub(crate) fn blobs(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        for message in self.messages.values().flat_map(BTreeMap::values) {
            keys.extend(message.attachments.iter().map(|file| file.id.to_string()));
            if let Author::Webhook { avatar, .. } = &message.author {
                keys.extend(avatar.clone());
            }
        }
        keys.extend(self.webhooks.values().filter_map(|it| it.avatar.clone()));
        let sent = self
            .interactions
            .values()
            .filter_map(|it| it.kind.data().pointer("/resolved/attachments"));
        keys.extend(sent.filter_map(|it| it.as_object()).flat_map(|all| all.keys().cloned()));
        keys
    }

    /// The changes that make this state from nothing.
    pub(crate) fn snapshot(&self) -> Vec<Change> {
        let mut all: Vec<Change> = self.guild.iter().cloned().map(Change::Guild).collect();
        all.extend(self.users.values().cloned().map(Change::User));
        all.extend(self.roles.values().cloned().map(Change::Role));
        all.extend(self.channels.values().cloned().map(Change::Channel));
        let messages = self.messages.values().flat_map(BTreeMap::values);
        all.extend(messages.map(|message| Change::Message(Box::new(message.clone()))));
        all.extend(self.webhooks.values().cloned().map(Change::Webhook));
        all.extend(self.commands.values().cloned().map(Change::Command));
        all.extend(self.interactions.values().cloned().map(Change::Interaction));
        all.extend(self.creates.values().cloned().map(Change::Creates));
        all
    }

    pub(crate) fn user(&self, id: Id) -> Result<&User, Refusal> {
        self.users.get(&id).ok_or(Refusal::UnknownUser)
    }

    pub(crate) fn user_by_token(&self, token: &str) -> Option<&User> {
        self.users.values().find(|user| user.token == token)
    }

    pub(crate) fn channel(&self, id: Id) -> Result<&Channel, Refusal> {
        self.channels.get(&id).ok_or(Refusal::UnknownChannel)
    }

    /// A channel as one member may see it: somebody else's direct conversation is out of reach, and
    /// so is what overwrites hide.
    pub(crate) fn channel_for(&self, id: Id, user: Id) -> Result<&Channel, Refusal> {
        let channel = self.channel(id)?;
        if self.sees(user, channel) { Ok(channel) } else { Err(Refusal::MissingAccess) }
    }

    pub(crate) fn message(&self, channel: Id, id: Id) -> Result<&Message, Refusal> {
        self.channel(channel)?;
        self.messages
            .get(&channel)
            .and_then(|messages| messages.get(&id))
            .ok_or(Refusal::UnknownMessage)
    }

    /// The messages of a channel, oldest first.
    pub(crate) fn messages_in(&self, channel: Id) -> impl DoubleEndedIterator<Item = &Message> {
        self.messages.get(&channel).into_iter().flat_map(BTreeMap::values)
    }

    pub(crate) fn webhook(&self, id: Id) -> Result<&Webhook, Refusal> {
        self.webhooks.get(&id).ok_or(Refusal::UnknownWebhook)
    }

    /// The guild's id and owner; seeding comes before the first request.
    pub(crate) fn meta(&self) -> Result<&Meta, Refusal> {
        self.guild.as_ref().ok_or(Refusal::UnknownGuild)
    }

    /// Refuses any guild id but the one that exists.
    pub(crate) fn check_guild(&self, id: Id) -> Result<&Meta, Refusal> {
        let meta = self.meta()?;
        if meta.id == id { Ok(meta) } else { Err(Refusal::UnknownGuild) }
    }

    /// Refuses what is not a guild that the user is in.
    pub(crate) fn check_member(&self, id: Id, user: Id) -> Result<&Meta, Refusal> {
        let meta = self.check_guild(id)?;
        if self.user(user)?.member { Ok(meta) } else { Err(Refusal::UnknownGuild) }
    }

    /// The role, if there is one of that id.
    pub(crate) fn role(&self, id: Id) -> Result<&Role, Refusal> {
        self.roles.get(&id).ok_or(Refusal::UnknownRole)
    }

    /// The people and bots in the guild.
    pub(crate) fn members(&self) -> impl Iterator<Item = &User> {
        self.users.values().filter(|user| user.member)
    }

    /// Open threads in which nothing was written for as long as their archive waits.
    pub(crate) fn silent_threads(&self, now: DateTime<Utc>) -> impl Iterator<Item = &Channel> {
        self.threads(None).filter(move |channel| {
            let last = self.messages_in(channel.id).next_back().map_or(channel.id, |it| it.id);
            channel.thread().is_some_and(|thread| {
                let since = last.time().max(thread.archive_changed);
                !thread.archived && now - since >= Duration::minutes(thread.auto_archive.into())
            })
        })
    }

    /// The threads under a channel, or all.
    pub(crate) fn threads(&self, parent: Option<Id>) -> impl Iterator<Item = &Channel> {
        self.channels.values().filter(move |channel| {
            channel.thread().is_some_and(|thread| parent.is_none_or(|id| thread.parent == id))
        })
    }
}
