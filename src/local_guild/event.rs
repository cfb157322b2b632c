//! What happened, and who may hear of it.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::ids::Id;
use super::model::{Author, Message};
use super::payload::{self, Render, is_ephemeral};
use super::state::State;

/// Gateway intents: the groups of events that a bot asks for.
pub(crate) mod intent {
    pub(crate) const GUILDS: u64 = 1 << 0;
    pub(crate) const GUILD_MEMBERS: u64 = 1 << 1;
    pub(crate) const GUILD_WEBHOOKS: u64 = 1 << 5;
    pub(crate) const GUILD_PRESENCES: u64 = 1 << 8;
    pub(crate) const GUILD_MESSAGES: u64 = 1 << 9;
    pub(crate) const GUILD_REACTIONS: u64 = 1 << 10;
    pub(crate) const GUILD_TYPING: u64 = 1 << 11;
    pub(crate) const DIRECT_MESSAGES: u64 = 1 << 12;
    pub(crate) const DIRECT_REACTIONS: u64 = 1 << 13;
    pub(crate) const DIRECT_TYPING: u64 = 1 << 14;
    pub(crate) const MESSAGE_CONTENT: u64 = 1 << 15;
    /// Every bit that Discord has given a meaning.
    pub(crate) const KNOWN: u64 = 0x1FFFF | (0b11 << 20) | (0b11 << 24);
}

/// Something that clients may want to know. Objects that still exist are named and rendered after
/// the change is in force; what is gone travels along.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    ChannelCreate(Id),
    ChannelUpdate(Id),
    /// Rendered before it went, with those who saw it.
    ChannelDelete(Value, Vec<Id>),
    RoleCreate(Id),
    RoleUpdate(Id),
    RoleDelete(Id),
    MemberAdd(Id),
    MemberUpdate(Id),
    MemberRemove(Id),
    /// For one bot: it is in the guild now.
    Joined(Id),
    /// For one bot: it is not in the guild any more.
    Left(Id),
    ThreadCreate(Id),
    ThreadUpdate(Id),
    ThreadDelete {
        id: Id,
        parent: Id,
    },
    ThreadMembers {
        thread: Id,
        added: Vec<Id>,
        removed: Vec<Id>,
    },
    MessageCreate {
        channel: Id,
        id: Id,
    },
    MessageUpdate {
        channel: Id,
        id: Id,
    },
    MessageDelete {
        channel: Id,
        id: Id,
    },
    MessageDeleteBulk {
        channel: Id,
        ids: Vec<Id>,
    },
    Reaction {
        channel: Id,
        message: Id,
        user: Id,
        emoji: String,
        added: bool,
    },
    Typing {
        channel: Id,
        user: Id,
        at: DateTime<Utc>,
    },
    Pins {
        channel: Id,
    },
    Webhooks {
        channel: Id,
    },
    Interaction(Id),
    /// For the page alone: an application has answered.
    InteractionDone(Id),
    /// For the page alone: an application let its three seconds pass.
    InteractionFailed(Id),
    /// For the page alone: an application asks for a dialog.
    Dialog {
        interaction: Id,
        data: Value,
    },
    /// For the page alone: an application suggests values.
    Suggested {
        interaction: Id,
        data: Value,
    },
    /// For these bots: a channel has opened to them, and so have its threads.
    ThreadSync {
        channel: Id,
        bots: Vec<Id>,
    },
    /// Every reaction under a message has gone, or every one of an emoji.
    ReactionsGone {
        channel: Id,
        message: Id,
        emoji: Option<String>,
    },
    /// What a bot shows beside its name.
    Presence {
        user: Id,
        shown: Value,
    },
    /// For the page alone: other commands are registered now.
    Commands,
}

/// Who may hear of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Audience {
    /// These bots, as far as they have the intent.
    Bots(Vec<Id>),
    /// No bot; on the page only this person, or everyone.
    Page(Option<Id>),
}

/// An event in its wire form.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) name: &'static str,
    pub(crate) data: Value,
    pub(crate) audience: Audience,
    /// The intents of which one is needed; zero needs none.
    pub(crate) intents: u64,
    /// The bot that hears it whatever its intents: it is about that bot.
    pub(crate) always: Option<Id>,
    /// Those who see the content of a message without the content intent.
    pub(crate) readers: Option<Vec<Id>>,
}

impl Frame {
    /// What the audience hears by its intents alone, without the content of a message.
    const fn new(name: &'static str, data: Value, audience: Audience, intents: u64) -> Frame {
        Frame { name, data, audience, intents, always: None, readers: None }
    }
}

impl Event {
    /// The wire form; `None` if what it names has gone meanwhile.
    pub(crate) fn render(&self, render: Render<'_>) -> Option<Frame> {
        let state = render.state;
        let guild = state.guild.as_ref().map(|meta| meta.id);
        let scope = |channel: Id, in_guild: u64, direct: u64| match state
            .channels
            .get(&channel)
            .and_then(|channel| channel.recipients())
        {
            Some(recipients) => (Audience::Bots(recipients.to_vec()), direct),
            None => (Audience::Bots(state.listeners(channel)), in_guild),
        };
        let told =
            |name, data, bots, intents| Frame::new(name, data, Audience::Bots(bots), intents);
        let everyone = |name, data, intents| told(name, data, state.member_bots(), intents);
        let here =
            |name, data, channel, intents| told(name, data, state.listeners(channel), intents);
        // The guild's id belongs to everything but direct conversations.
        let guild_of = |channel: Id| match state.channels.get(&channel) {
            Some(channel) if channel.recipients().is_some() => None,
            Some(_) | None => guild,
        };
        let frame = match self {
            Event::ChannelCreate(id) | Event::ChannelUpdate(id) => {
                let created = matches!(self, Event::ChannelCreate(_));
                let name = if created { "CHANNEL_CREATE" } else { "CHANNEL_UPDATE" };
                let channel = state.channels.get(id)?;
                // Bots hear of a direct conversation by its first message only.
                let audience = match channel.recipients() {
                    Some(_) => Audience::Page(None),
                    None => Audience::Bots(state.listeners(*id)),
                };
                let (data, intents) = (render.channel(channel), intent::GUILDS);
                Frame::new(name, data, audience, intents)
            }
            Event::ChannelDelete(data, listeners) => {
                told("CHANNEL_DELETE", data.clone(), listeners.clone(), intent::GUILDS)
            }
            Event::RoleCreate(id) | Event::RoleUpdate(id) => {
                let created = matches!(self, Event::RoleCreate(_));
                let name = if created { "GUILD_ROLE_CREATE" } else { "GUILD_ROLE_UPDATE" };
                let data = json!({"guild_id": guild, "role": payload::role(state.roles.get(id)?)});
                everyone(name, data, intent::GUILDS)
            }
            Event::RoleDelete(id) => {
                let data = json!({"guild_id": guild, "role_id": id});
                everyone("GUILD_ROLE_DELETE", data, intent::GUILDS)
            }
            Event::MemberAdd(id) | Event::MemberUpdate(id) => {
                let added = matches!(self, Event::MemberAdd(_));
                let name = if added { "GUILD_MEMBER_ADD" } else { "GUILD_MEMBER_UPDATE" };
                let mut data = render.member(state.users.get(id)?, true);
                data["guild_id"] = json!(guild);
                let mut frame = everyone(name, data, intent::GUILD_MEMBERS);
                frame.always = (!added).then_some(*id);
                frame
            }
            Event::MemberRemove(id) => {
                let user = payload::user(state.users.get(id)?);
                let data = json!({"guild_id": guild, "user": user});
                everyone("GUILD_MEMBER_REMOVE", data, intent::GUILD_MEMBERS)
            }
            Event::Joined(id) => {
                let data = Render { viewer: Some(*id), ..render }.guild_create();
                told("GUILD_CREATE", data, vec![*id], intent::GUILDS)
            }
            Event::Left(id) => {
                told("GUILD_DELETE", json!({"id": guild}), vec![*id], intent::GUILDS)
            }
            Event::ThreadCreate(id) => {
                let mut data = render.channel(state.channels.get(id)?);
                data["newly_created"] = json!(true);
                here("THREAD_CREATE", data, *id, intent::GUILDS)
            }
            Event::ThreadUpdate(id) => {
                let data = render.channel(state.channels.get(id)?);
                here("THREAD_UPDATE", data, *id, intent::GUILDS)
            }
            Event::ThreadDelete { id, parent } => {
                let data = json!({"id": id, "guild_id": guild, "parent_id": parent, "type": 11});
                here("THREAD_DELETE", data, *parent, intent::GUILDS)
            }
            Event::ThreadMembers { thread, added, removed } => {
                let members = state.channels.get(thread)?.thread()?.members.len();
                let added: Vec<Value> = added
                    .iter()
                    .map(|id| {
                        let mut value = render.thread_member(*thread, *id);
                        value["member"] =
                            json!(state.users.get(id).map(|user| render.member(user, true)));
                        value["presence"] = Value::Null;
                        value
                    })
                    .collect();
                let data = json!({
                    "id": thread, "guild_id": guild, "member_count": members.min(50),
                    "added_members": added, "removed_member_ids": removed,
                });
                here("THREAD_MEMBERS_UPDATE", data, *thread, intent::GUILDS)
            }
            Event::MessageCreate { channel, id } | Event::MessageUpdate { channel, id } => {
                let created = matches!(self, Event::MessageCreate { .. });
                let message = state.message(*channel, *id).ok()?;
                let direct = intent::DIRECT_MESSAGES;
                let (audience, intents) = match (is_ephemeral(message), message.only_for) {
                    (true, only_for) => (Audience::Page(only_for), 0),
                    (false, _) => scope(*channel, intent::GUILD_MESSAGES, direct),
                };
                let name = if created { "MESSAGE_CREATE" } else { "MESSAGE_UPDATE" };
                let readers = Some(readers(state, message));
                let data = render.message_event(message);
                Frame { readers, ..Frame::new(name, data, audience, intents) }
            }
            Event::MessageDelete { channel, id } => {
                let (audience, intents) =
                    scope(*channel, intent::GUILD_MESSAGES, intent::DIRECT_MESSAGES);
                let mut data = json!({"id": id, "channel_id": channel});
                add_guild(&mut data, guild_of(*channel));
                Frame::new("MESSAGE_DELETE", data, audience, intents)
            }
            Event::MessageDeleteBulk { channel, ids } => {
                let data = json!({"ids": ids, "channel_id": channel, "guild_id": guild});
                here("MESSAGE_DELETE_BULK", data, *channel, intent::GUILD_MESSAGES)
            }
            Event::Reaction { channel, message, user, emoji, added } => {
                let (audience, intents) =
                    scope(*channel, intent::GUILD_REACTIONS, intent::DIRECT_REACTIONS);
                let mut data = json!({
                    "user_id": user, "channel_id": channel, "message_id": message,
                    "emoji": payload::emoji(emoji), "type": 0, "burst": false,
                });
                add_guild(&mut data, guild_of(*channel));
                if let Some(target) = state.messages.get(channel).and_then(|all| all.get(message)) {
                    data["message_author_id"] = json!(target.author.id());
                }
                if *added && guild_of(*channel).is_some() {
                    let member = state.users.get(user).map(|user| render.member(user, true));
                    data["member"] = json!(member);
                }
                let name = if *added { "MESSAGE_REACTION_ADD" } else { "MESSAGE_REACTION_REMOVE" };
                Frame::new(name, data, audience, intents)
            }
            Event::Typing { channel, user, at } => {
                let (audience, intents) =
                    scope(*channel, intent::GUILD_TYPING, intent::DIRECT_TYPING);
                let mut data = json!({
                    "channel_id": channel, "user_id": user, "timestamp": at.timestamp(),
                });
                if let Some(guild) = guild_of(*channel) {
                    data["guild_id"] = json!(guild);
                    let member = state.users.get(user).map(|user| render.member(user, true));
                    data["member"] = json!(member);
                }
                Frame::new("TYPING_START", data, audience, intents)
            }
            Event::Pins { channel } => {
                let (audience, intents) = scope(*channel, intent::GUILDS, intent::DIRECT_MESSAGES);
                let last =
                    state.channels.get(channel)?.pins.first().map(|pin| payload::time(pin.at));
                let mut data = json!({"channel_id": channel, "last_pin_timestamp": last});
                add_guild(&mut data, guild_of(*channel));
                Frame::new("CHANNEL_PINS_UPDATE", data, audience, intents)
            }
            Event::Webhooks { channel } => {
                let data = json!({"guild_id": guild, "channel_id": channel});
                here("WEBHOOKS_UPDATE", data, *channel, intent::GUILD_WEBHOOKS)
            }
            Event::Interaction(id) => {
                let interaction = state.interactions.get(id)?;
                let data = render.interaction(interaction);
                told("INTERACTION_CREATE", data, vec![interaction.application], 0)
            }
            Event::InteractionDone(id) => self.page(state, *id, "INTERACTION_DONE", Value::Null)?,
            Event::InteractionFailed(id) => {
                self.page(state, *id, "INTERACTION_FAILED", Value::Null)?
            }
            Event::Dialog { interaction, data } => {
                self.page(state, *interaction, "DIALOG", data.clone())?
            }
            Event::Suggested { interaction, data } => {
                self.page(state, *interaction, "CHOICES", data.clone())?
            }
            Event::ThreadSync { channel, bots } => {
                let threads: Vec<Value> = state
                    .threads(Some(*channel))
                    .filter(|it| it.thread().is_some_and(|it| !it.archived && !it.private))
                    .map(|it| render.channel(it))
                    .collect();
                let data = json!({
                    "guild_id": guild, "channel_ids": [channel], "threads": threads, "members": [],
                });
                told("THREAD_LIST_SYNC", data, bots.clone(), intent::GUILDS)
            }
            Event::ReactionsGone { channel, message, emoji } => {
                let (audience, intents) =
                    scope(*channel, intent::GUILD_REACTIONS, intent::DIRECT_REACTIONS);
                let mut data = json!({"channel_id": channel, "message_id": message});
                add_guild(&mut data, guild_of(*channel));
                let name = match emoji {
                    None => "MESSAGE_REACTION_REMOVE_ALL",
                    Some(emoji) => {
                        data["emoji"] = payload::emoji(emoji);
                        "MESSAGE_REACTION_REMOVE_EMOJI"
                    }
                };
                Frame::new(name, data, audience, intents)
            }
            Event::Presence { user, shown } => {
                let mut data = shown.clone();
                data["user"] = json!({"id": user});
                data["guild_id"] = json!(guild);
                everyone("PRESENCE_UPDATE", data, intent::GUILD_PRESENCES)
            }
            Event::Commands => {
                let all: Vec<Value> = state.commands.values().map(payload::command).collect();
                Frame::new("COMMANDS", json!({ "commands": all }), Audience::Page(None), 0)
            }
        };
        Some(frame)
    }

    fn page(&self, state: &State, id: Id, name: &'static str, extra: Value) -> Option<Frame> {
        let interaction = state.interactions.get(&id)?;
        let data = json!({
            "id": id, "channel_id": interaction.channel, "data": extra,
            "message_id": interaction.kind.message(), "session": interaction.session,
        });
        Some(Frame::new(name, data, Audience::Page(Some(interaction.user)), 0))
    }
}

fn add_guild(data: &mut Value, guild: Option<Id>) {
    if let Some(guild) = guild {
        data["guild_id"] = json!(guild);
    }
}

/// Those who read a message without the content intent: its author, those it mentions, and both
/// sides of a direct conversation.
fn readers(state: &State, message: &Message) -> Vec<Id> {
    let mut readers = message.mentions.clone();
    readers.extend(match &message.author {
        Author::User { id } => Some(*id),
        Author::Webhook { application, .. } => *application,
    });
    let channel = state.channels.get(&message.channel);
    readers.extend(channel.and_then(|it| it.recipients()).unwrap_or_default());
    readers
}

/// Empties what the content intent protects.
pub(crate) fn without_content(mut data: Value) -> Value {
    if let Some(message) = data.as_object_mut() {
        message.insert("content".to_owned(), json!(""));
        for list in ["embeds", "attachments", "components"] {
            message.insert(list.to_owned(), json!([]));
        }
        message.remove("poll");
    }
    if data.get("referenced_message").is_some_and(Value::is_object) {
        let inner = data["referenced_message"].take();
        data["referenced_message"] = without_content(inner);
    }
    data
}
