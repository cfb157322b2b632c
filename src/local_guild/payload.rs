//! The JSON shapes that clients read: a superset of what Discord's OpenAPI document requires and of
//! what serenity, discord.js and discord.py each break without (`spec/discord.md` 3 and 4).

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::ids::Id;
use super::model::{
    Attachment, Author, Channel, ChannelKind, Command, EPHEMERAL, HAS_THREAD, Interaction,
    InteractionKind, Message, Role, Thread, User, Webhook,
};
use super::right;
use super::state::State;

/// Bytes of the largest file a message can carry, as interactions announce it.
pub(crate) const ATTACHMENT_LIMIT: u64 = 20 * 1024 * 1024;

/// What rendering needs: the state, and where the server can be reached.
#[derive(Clone, Copy)]
pub(crate) struct Render<'a> {
    pub(crate) state: &'a State,
    pub(crate) base: &'a str,
    /// Whose view it is, for the `me` of reactions.
    pub(crate) viewer: Option<Id>,
}

/// ISO 8601 with microseconds and offset, as Discord writes it.
pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, false)
}

/// A user object.
pub(crate) fn user(user: &User) -> Value {
    json!({
        "id": user.id, "username": user.name, "discriminator": "0", "global_name": user.display,
        "avatar": null, "bot": user.bot, "system": false, "public_flags": 0, "flags": 0,
        "primary_guild": null, "banner": null, "accent_color": null,
        "avatar_decoration_data": null, "collectibles": null, "clan": null,
    })
}

/// A user object as its owner sees it.
pub(crate) fn own_user(of: &User) -> Value {
    let mut value = user(of);
    value["mfa_enabled"] = json!(false);
    value["verified"] = json!(true);
    value["email"] = Value::Null;
    value["locale"] = json!("en-US");
    value
}

/// A role object.
pub(crate) fn role(role: &Role) -> Value {
    let mut value = json!({
        "id": role.id, "name": role.name, "description": null, "color": role.color,
        "colors": {"primary_color": role.color, "secondary_color": null, "tertiary_color": null},
        "hoist": role.hoist, "icon": null, "unicode_emoji": null, "position": role.position,
        "permissions": role.permissions.to_string(), "managed": role.managed.is_some(),
        "mentionable": role.mentionable, "flags": 0,
    });
    if let Some(bot) = role.managed {
        value["tags"] = json!({"bot_id": bot});
    }
    value
}

/// A webhook object. The token is left out where only its holder may see it.
pub(crate) fn webhook(hook: &Webhook, state: &State, with_token: bool) -> Value {
    let mut value = json!({
        "id": hook.id, "type": 1, "guild_id": state.guild.as_ref().map(|meta| meta.id),
        "channel_id": hook.channel, "name": hook.name, "avatar": hook.avatar,
        "application_id": hook.application, "user": state.users.get(&hook.creator).map(user),
    });
    if with_token {
        value["token"] = json!(hook.token);
    }
    value
}

/// An application command. Keys that the client left null do not occur.
pub(crate) fn command(command: &Command) -> Value {
    let mut value = Map::new();
    value.insert("id".to_owned(), json!(command.id));
    value.insert("application_id".to_owned(), json!(command.application));
    if let Some(guild) = command.guild {
        value.insert("guild_id".to_owned(), json!(guild));
    }
    value.insert("version".to_owned(), json!(command.version));
    value.insert("default_member_permissions".to_owned(), Value::Null);
    value.insert("type".to_owned(), json!(1));
    value.insert("description".to_owned(), json!(""));
    value.extend(command.body.clone());
    Value::Object(value)
}

/// An application object.
pub(crate) fn application(bot: &User, owner: Option<&User>) -> Value {
    json!({
        "id": bot.id, "name": bot.display, "icon": bot.application.icon,
        "description": bot.application.description, "summary": "",
        "type": null, "bot": user(bot), "bot_public": false, "bot_require_code_grant": false,
        "verify_key": "0".repeat(64), "owner": owner.map(user), "team": null,
        "flags": bot.application.flags, "hook": true, "is_monetized": false,
        "integration_types_config": {"0": {}}, "redirect_uris": [],
        "interactions_endpoint_url": null, "approximate_guild_count": u8::from(bot.member),
        "approximate_user_install_count": 0, "approximate_user_authorization_count": 0,
        "flags_new": bot.application.flags.to_string(),
        "role_connections_verification_url": null, "explicit_content_filter": 0,
        "eligible_oauth2_scopes": [], "rpc_origins": [], "tags": bot.application.tags,
    })
}

/// The emoji of a reaction: a plain character, or `name:id`.
pub(crate) fn emoji(text: &str) -> Value {
    match text.split_once(':') {
        Some((name, id)) if id.parse::<Id>().is_ok() => {
            json!({"id": id, "name": name, "animated": false})
        }
        Some(_) | None => json!({"id": null, "name": text}),
    }
}

fn overwrites(channel: &Channel) -> Vec<Value> {
    let shown = channel.overwrites.iter().map(|it| {
        json!({
            "id": it.id, "type": u8::from(it.member), "allow": it.allow.to_string(),
            "deny": it.deny.to_string(),
        })
    });
    shown.collect()
}

impl Render<'_> {
    /// A member object; inside messages it carries no user.
    pub(crate) fn member(&self, of: &User, with_user: bool) -> Value {
        let joined = self.state.guild.as_ref().map(|meta| time(meta.id.time()));
        let mut value = json!({
            "nick": of.nick, "avatar": null, "banner": null, "roles": of.roles, "joined_at": joined,
            "premium_since": null, "deaf": false, "mute": false, "pending": false, "flags": 0,
            "communication_disabled_until": null,
        });
        if with_user {
            value["user"] = user(of);
        }
        value
    }

    /// A channel, thread or direct conversation.
    pub(crate) fn channel(&self, channel: &Channel) -> Value {
        let last = self.state.messages_in(channel.id).next_back().map(|message| message.id);
        let guild = self.state.guild.as_ref().map(|meta| meta.id);
        let mut value = match &channel.kind {
            ChannelKind::Text { topic, position, parent } => json!({
                "id": channel.id, "type": 0, "guild_id": guild, "name": channel.name,
                "position": position, "permission_overwrites": overwrites(channel), "topic": topic,
                "nsfw": false, "rate_limit_per_user": channel.slowmode, "parent_id": parent,
                "default_auto_archive_duration": 1440,
            }),
            ChannelKind::Category { position } => {
                return json!({
                    "id": channel.id, "type": 4, "guild_id": guild, "name": channel.name,
                    "position": position, "permission_overwrites": overwrites(channel),
                    "nsfw": false, "parent_id": null, "flags": 0,
                });
            }
            ChannelKind::Dm { recipients } => {
                let others = recipients.iter().filter(|id| Some(**id) != self.viewer);
                let users = others.filter_map(|id| self.state.users.get(id)).map(user);
                json!({
                    "id": channel.id, "type": 1, "recipients": users.collect::<Vec<_>>(),
                })
            }
            ChannelKind::Thread(thread) => self.thread(channel, thread, guild),
        };
        value["flags"] = json!(0);
        value["last_message_id"] = json!(last);
        value["last_pin_timestamp"] = json!(channel.pins.first().map(|pin| time(pin.at)));
        value
    }

    fn thread(&self, channel: &Channel, thread: &Thread, guild: Option<Id>) -> Value {
        let count = self.state.messages_in(channel.id).count();
        json!({
            "id": channel.id, "type": if thread.private { 12 } else { 11 }, "guild_id": guild,
            "parent_id": thread.parent, "owner_id": thread.owner, "name": channel.name,
            "message_count": count, "total_message_sent": count,
            "member_count": thread.members.len().min(50),
            "rate_limit_per_user": channel.slowmode,
            "thread_metadata": {
                "archived": thread.archived, "auto_archive_duration": thread.auto_archive,
                "archive_timestamp": time(thread.archive_changed), "locked": thread.locked,
                "create_timestamp": time(channel.id.time()), "invitable": true,
            },
        })
    }

    /// One person's membership of a thread.
    pub(crate) fn thread_member(&self, thread: Id, id: Id) -> Value {
        json!({
            "id": thread, "user_id": id, "join_timestamp": time(thread.time()), "flags": 0,
        })
    }

    pub(crate) fn attachment(&self, channel: Id, file: &Attachment) -> Value {
        let url = format!("{}/attachments/{channel}/{}/{}", self.base, file.id, file.filename);
        let mut value = json!({
            "id": file.id, "filename": file.filename, "size": file.size, "url": url,
            "proxy_url": url, "content_type": file.content_type,
        });
        if let Some(title) = &file.title {
            value["title"] = json!(title);
        }
        if let Some(description) = &file.description {
            value["description"] = json!(description);
        }
        if let Some((width, height)) = file.pixels {
            value["width"] = json!(width);
            value["height"] = json!(height);
        }
        value
    }

    /// A message with the message it answers.
    pub(crate) fn message(&self, message: &Message) -> Value {
        let mut value = self.plain_message(message);
        if let Some(reference) = message.reference {
            let guild = self.state.guild.as_ref().map(|meta| meta.id);
            let mut object = json!({
                "type": 0, "channel_id": reference.channel, "guild_id": guild,
            });
            if let Some(id) = reference.message {
                object["message_id"] = json!(id);
                let target = self.state.message(reference.channel, id).ok();
                value["referenced_message"] = json!(target.map(|it| self.plain_message(it)));
            }
            value["message_reference"] = object;
        }
        value
    }

    fn plain_message(&self, message: &Message) -> Value {
        let users = |ids: &[Id]| -> Vec<Value> {
            ids.iter().filter_map(|id| self.state.users.get(id)).map(user).collect()
        };
        let files = message.attachments.iter().map(|file| self.attachment(message.channel, file));
        let channel = self.state.channels.get(&message.channel);
        let pinned = channel.is_some_and(|it| it.pins.iter().any(|pin| pin.message == message.id));
        let thread = self
            .state
            .channels
            .get(&message.id)
            .filter(|it| it.thread().is_some_and(|thread| thread.parent == message.channel));
        let flags = message.flags | if thread.is_some() { HAS_THREAD } else { 0 };
        let mut value = json!({
            "id": message.id, "channel_id": message.channel, "author": self.author(&message.author),
            "content": message.content, "timestamp": time(message.id.time()),
            "edited_timestamp": message.edited.map(time), "tts": message.tts,
            "mention_everyone": message.mention_everyone, "mentions": users(&message.mentions),
            "mention_roles": message.mention_roles, "attachments": files.collect::<Vec<_>>(),
            "embeds": message.embeds, "components": message.components, "pinned": pinned,
            "type": message.kind.number(), "flags": flags,
        });
        if let Author::Webhook { id, .. } = &message.author {
            value["webhook_id"] = json!(id);
        }
        // Of a webhook that is an application's, and of an answer to an interaction.
        if let Some(application) = message.author.application() {
            value["application_id"] = json!(application);
        }
        if !message.reactions.is_empty() {
            value["reactions"] = self.reactions(message);
        }
        if let Some(nonce) = &message.nonce {
            value["nonce"] = nonce.clone();
        }
        if let Some(thread) = thread {
            value["thread"] = self.channel(thread);
        }
        if let Some(from) = message.interaction.and_then(|id| self.state.interactions.get(&id)) {
            value["interaction_metadata"] = self.metadata(from, message.id);
        }
        value
    }

    /// How a message came of an interaction. What does not apply is left out: null breaks clients.
    fn metadata(&self, from: &Interaction, message: Id) -> Value {
        let mut value = json!({
            "id": from.id, "type": from.kind.number(),
            "user": self.state.users.get(&from.user).map(user),
            "authorizing_integration_owners": {"0": self.state.guild.as_ref().map(|it| it.id)},
        });
        if let Some(original) = from.original.filter(|id| *id != message) {
            value["original_response_message_id"] = json!(original);
        }
        match &from.kind {
            InteractionKind::Component { message, .. } => {
                value["interacted_message_id"] = json!(message);
            }
            InteractionKind::Modal { from, .. } => {
                let trigger = from.and_then(|id| self.state.interactions.get(&id));
                if let Some(trigger) = trigger {
                    value["triggering_interaction_metadata"] = self.metadata(trigger, message);
                }
            }
            InteractionKind::Command { .. } => {
                value["name"] = from.kind.data()["name"].clone();
                let data = from.kind.data();
                value["command_type"] = data["type"].clone();
                match data["type"].as_u64() {
                    Some(2) => {
                        let id = serde_json::from_value::<Id>(data["target_id"].clone()).ok();
                        let target = id.and_then(|id| self.state.users.get(&id));
                        if let Some(target) = target {
                            value["target_user"] = user(target);
                        }
                    }
                    Some(3) => value["target_message_id"] = data["target_id"].clone(),
                    Some(_) | None => {}
                }
            }
            InteractionKind::Autocomplete { .. } => {}
        }
        value
    }

    fn author(&self, author: &Author) -> Value {
        match author {
            Author::User { id } => match self.state.users.get(id) {
                Some(found) => user(found),
                None => json!({
                    "id": id, "username": "deleted", "discriminator": "0", "avatar": null,
                    "global_name": null, "public_flags": 0, "flags": 0, "primary_guild": null,
                }),
            },
            Author::Webhook { id, name, avatar, .. } => json!({
                "id": id, "username": name, "discriminator": "0000", "avatar": avatar, "bot": true,
                "global_name": null, "public_flags": 0, "flags": 0, "primary_guild": null,
            }),
        }
    }

    fn reactions(&self, message: &Message) -> Value {
        let all = message.reactions.iter().map(|reaction| {
            let count = reaction.users.len();
            json!({
                "emoji": emoji(&reaction.emoji), "count": count,
                "count_details": {"burst": 0, "normal": count}, "burst_colors": [],
                "me": self.viewer.is_some_and(|id| reaction.users.contains(&id)),
                "me_burst": false, "burst_me": false, "burst_count": 0,
            })
        });
        Value::Array(all.collect())
    }

    /// A message as the gateway sends it: with its guild and the author's membership.
    pub(crate) fn message_event(&self, message: &Message) -> Value {
        let mut value = self.message(message);
        let channel = self.state.channels.get(&message.channel);
        if channel.is_some_and(|channel| channel.recipients().is_none()) {
            value["guild_id"] = json!(self.state.guild.as_ref().map(|meta| meta.id));
            if let Author::User { id } = &message.author
                && let Some(user) = self.state.users.get(id)
            {
                value["member"] = self.member(user, false);
            }
        }
        value
    }

    /// An interaction as its application gets it.
    pub(crate) fn interaction(&self, interaction: &Interaction) -> Value {
        let guild = self.state.guild.as_ref().map(|meta| meta.id);
        let channel = self.state.channels.get(&interaction.channel);
        let direct = channel.is_some_and(|channel| channel.recipients().is_some());
        let mut value = json!({
            "id": interaction.id, "application_id": interaction.application,
            "type": interaction.kind.number(), "token": interaction.token, "version": 1,
            "data": interaction.kind.data(), "channel_id": interaction.channel,
            "channel": channel.map(|channel| self.channel(channel)),
            "locale": interaction.locale, "entitlements": [],
            "app_permissions": rights(self.state, interaction.application, channel),
            "authorizing_integration_owners": {"0": guild}, "context": if direct { 1 } else { 0 },
            "attachment_size_limit": ATTACHMENT_LIMIT,
        });
        if let Some(person) = self.state.users.get(&interaction.user) {
            if direct {
                value["user"] = user(person);
            } else {
                let mut member = self.member(person, true);
                member["permissions"] = json!(rights(self.state, person.id, channel));
                value["member"] = member;
            }
        }
        if !direct {
            value["guild_id"] = json!(guild);
            value["guild_locale"] = json!("en-US");
            value["guild"] = json!({"id": guild, "locale": "en-US", "features": []});
        }
        match &interaction.kind {
            InteractionKind::Component { message, .. }
            | InteractionKind::Modal { message: Some(message), .. } => {
                let found = self.state.message(interaction.channel, *message).ok();
                value["message"] = json!(found.map(|message| self.message(message)));
            }
            InteractionKind::Modal { message: None, .. }
            | InteractionKind::Autocomplete { .. }
            | InteractionKind::Command { .. } => {}
        }
        value
    }

    /// The guild without what only the gateway tells.
    pub(crate) fn guild(&self) -> Value {
        let Some(meta) = self.state.guild.as_ref() else {
            return Value::Null;
        };
        let roles: Vec<Value> = self.state.roles.values().map(role).collect();
        json!({
            "id": meta.id, "name": meta.name, "icon": null, "splash": null,
            "discovery_splash": null, "banner": null, "description": null, "owner_id": meta.owner,
            "region": "deprecated", "afk_channel_id": null, "afk_timeout": 300,
            "widget_enabled": false, "widget_channel_id": null, "verification_level": 0,
            "default_message_notifications": 0, "explicit_content_filter": 0, "roles": roles,
            "emojis": [], "stickers": [], "features": [], "mfa_level": 0, "application_id": null,
            "system_channel_id": null, "system_channel_flags": 0, "rules_channel_id": null,
            "max_presences": null, "max_members": 500_000, "vanity_url_code": null,
            "premium_tier": 0, "premium_subscription_count": 0, "preferred_locale": "en-US",
            "public_updates_channel_id": null, "max_video_channel_users": 25,
            "max_stage_video_channel_users": 50, "nsfw": false, "nsfw_level": 0,
            "premium_progress_bar_enabled": false, "safety_alerts_channel_id": null,
            "home_header": null, "hub_type": null, "incidents_data": null,
        })
    }

    /// The guild as `GUILD_CREATE` sends it.
    pub(crate) fn guild_create(&self) -> Value {
        let mut value = self.guild();
        let state = self.state;
        let members: Vec<Value> = state.members().map(|it| self.member(it, true)).collect();
        let seen = |it: &&Channel| self.viewer.is_none_or(|id| state.sees(id, it));
        let listed = state.channels.values().filter(|it| it.is_listed()).filter(seen);
        let channels: Vec<Value> = listed.map(|it| self.channel(it)).collect();
        let active = state
            .threads(None)
            .filter(seen)
            .filter(|it| it.thread().is_some_and(|it| !it.archived));
        let threads: Vec<Value> = active.map(|it| self.channel(it)).collect();
        value["joined_at"] = json!(state.guild.as_ref().map(|meta| time(meta.id.time())));
        value["large"] = json!(false);
        value["unavailable"] = json!(false);
        value["member_count"] = json!(members.len());
        value["members"] = json!(members);
        value["channels"] = json!(channels);
        value["threads"] = json!(threads);
        for empty in [
            "voice_states",
            "presences",
            "stage_instances",
            "guild_scheduled_events",
            "soundboard_sounds",
        ] {
            value[empty] = json!([]);
        }
        value
    }
}

/// What someone may do in a channel, as interactions tell it. Direct conversations have no rights of
/// their own; there the platform tells what an application usually may.
fn rights(state: &State, user: Id, channel: Option<&Channel>) -> String {
    let direct = channel.is_some_and(|it| it.recipients().is_some());
    let rights = if direct { right::EVERYONE } else { state.rights(user, channel) };
    rights.to_string()
}

/// Whether a message is for one person's eyes only.
pub(crate) fn is_ephemeral(message: &Message) -> bool {
    message.flags & EPHEMERAL != 0
}
