//! Webhooks, and the messages sent through them. Interaction answers share the message routes: there
//! the id is the application's and the token the interaction's.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::body::EmptyReply;
use super::body::{At, Bot, Payload, QueryParameters};
use super::interactions;
use super::messages::{edit_if, put, remove, rendered};
use crate::local_guild::compose::ComposedMessage;
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::model::{Author, ChannelKind, Message, Webhook};
use crate::local_guild::payload;
use crate::local_guild::right;
use crate::local_guild::state::Change;
use crate::platform::ids;

/// Webhooks in one channel.
const MOST: usize = 15;

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/channels/{channel}/webhooks", post(create).get(of_channel))
        .route("/guilds/{guild}/webhooks", get(of_guild))
        .route("/webhooks/{webhook}", get(one).patch(change).delete(drop_one))
        .route(
            "/webhooks/{webhook}/{token}",
            get(by_token).patch(change_by_token).delete(drop_by_token).post(execute),
        )
        .route(
            "/webhooks/{webhook}/{token}/messages/{message}",
            get(message).patch(edit).delete(delete),
        )
}

/// A name that Discord accepts for a webhook.
fn check_name(field: &str, name: &str) -> Result<(), Refusal> {
    let length = name.trim().chars().count();
    if !(1..=80).contains(&length) {
        return Err(Refusal::invalid(
            field,
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 1 and 80 in length.",
        ));
    }
    let lower = name.to_lowercase();
    for word in ["discord", "clyde"] {
        if lower.contains(word) {
            let text = format!("Username cannot contain \"{word}\"");
            return Err(Refusal::invalid(field, "USERNAME_INVALID_CONTAINS", text));
        }
    }
    Ok(())
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Keeps a picture sent as a data URI; returns the digest that names it.
pub(super) fn keep_picture(
    guild: &Guild,
    field: &str,
    sent: Option<&Value>,
) -> Result<Option<String>, Refusal> {
    let Some(uri) = sent.and_then(Value::as_str) else {
        return Ok(None);
    };
    let bad = || Refusal::invalid(field, "IMAGE_INVALID", "A base64 data URI is expected.");
    let (head, data) = uri.split_once(",").ok_or_else(bad)?;
    if !head.starts_with("data:image/") || !head.ends_with(";base64") {
        return Err(bad());
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).map_err(|_| bad())?;
    let key = digest(&bytes);
    guild.blobs.put(&key, Bytes::from(bytes)).map_err(Refusal::unkept)?;
    Ok(Some(key))
}

fn show(guild: &Guild, id: Id, with_token: bool) -> JsonReply {
    guild.read(|state| Ok(Json(payload::webhook(state.webhook(id)?, state, with_token))))
}

async fn create(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
    payload: Payload,
) -> JsonReply {
    let name = payload.name("name", 80)?;
    check_name("name", &name)?;
    let avatar = keep_picture(&guild, "avatar", payload.get("avatar"))?;
    let id = guild.change(|draft| {
        match draft.state.may(bot, channel, right::MANAGE_WEBHOOKS)?.kind {
            ChannelKind::Text { .. } => {}
            ChannelKind::Category { .. } | ChannelKind::Dm { .. } | ChannelKind::Thread(_) => {
                return Err(Refusal::WrongChannelType);
            }
        }
        let here = draft.state.webhooks.values().filter(|it| it.channel == channel).count();
        if here >= MOST {
            return Err(Refusal::TooManyWebhooks);
        }
        let id = draft.id();
        draft.put(Change::Webhook(Webhook {
            id,
            channel,
            name,
            avatar,
            token: ids::secret(),
            application: Some(bot),
            creator: bot,
        }));
        draft.tell(Event::Webhooks { channel });
        Ok(id)
    })?;
    show(&guild, id, true)
}

fn listed(guild: &Guild, bot: Id, wanted: impl Fn(&Webhook) -> bool) -> Json<Vec<Value>> {
    guild.read(|state| {
        let found = state.webhooks.values().filter(|it| wanted(it));
        // Other applications' tokens are not theirs to give.
        Json(found.map(|it| payload::webhook(it, state, it.application == Some(bot))).collect())
    })
}

async fn of_channel(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
) -> Result<Json<Vec<Value>>, Refusal> {
    guild.read(|state| state.may(bot, channel, right::MANAGE_WEBHOOKS).map(|_| ()))?;
    Ok(listed(&guild, bot, |it| it.channel == channel))
}

async fn of_guild(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
) -> Result<Json<Vec<Value>>, Refusal> {
    guild.read(|state| state.may_in_guild(bot, id, right::MANAGE_WEBHOOKS))?;
    Ok(listed(&guild, bot, |_| true))
}

/// The webhook, if the token is its own.
fn check_token(guild: &Guild, id: Id, token: &str) -> Result<Webhook, Refusal> {
    guild.read(|state| {
        let hook = state.webhook(id)?;
        if hook.token == token { Ok(hook.clone()) } else { Err(Refusal::WebhookToken) }
    })
}

fn update(guild: &Guild, id: Id, payload: &Payload) -> JsonReply {
    if let Some(name) = payload.text("name") {
        check_name("name", name)?;
    }
    let avatar = keep_picture(guild, "avatar", payload.get("avatar"))?;
    let channel: Option<Id> =
        payload.get("channel_id").and_then(|id| serde_json::from_value(id.clone()).ok());
    guild.change(|draft| {
        let mut hook = draft.state.webhook(id)?.clone();
        if let Some(name) = payload.text("name") {
            name.clone_into(&mut hook.name);
        }
        if payload.get("avatar").is_some() {
            hook.avatar = avatar;
        }
        if let Some(channel) = channel {
            draft.state.channel(channel)?;
            hook.channel = channel;
        }
        draft.tell(Event::Webhooks { channel: hook.channel });
        draft.put(Change::Webhook(hook));
        Ok(())
    })?;
    show(guild, id, true)
}

fn discard(guild: &Guild, id: Id) -> EmptyReply {
    guild.change(|draft| {
        let channel = draft.state.webhook(id)?.channel;
        draft.put(Change::WebhookGone(id));
        draft.tell(Event::Webhooks { channel });
        Ok(StatusCode::NO_CONTENT)
    })
}

/// The webhook, if the bot may manage those of its channel.
fn managed(guild: &Guild, bot: Id, id: Id) -> Result<Webhook, Refusal> {
    guild.read(|state| {
        let hook = state.webhook(id)?;
        state.may(bot, hook.channel, right::MANAGE_WEBHOOKS)?;
        Ok(hook.clone())
    })
}

async fn one(State(guild): GuildState, Bot(bot): Bot, At(id): At<Id>) -> JsonReply {
    let hook = managed(&guild, bot, id)?;
    show(&guild, id, hook.application == Some(bot))
}

async fn by_token(State(guild): GuildState, At((id, token)): At<(Id, String)>) -> JsonReply {
    check_token(&guild, id, &token)?;
    show(&guild, id, true)
}

async fn change(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    payload: Payload,
) -> JsonReply {
    managed(&guild, bot, id)?;
    update(&guild, id, &payload)
}

async fn change_by_token(
    State(guild): GuildState,
    At((id, token)): At<(Id, String)>,
    payload: Payload,
) -> JsonReply {
    check_token(&guild, id, &token)?;
    update(&guild, id, &payload)
}

async fn drop_one(State(guild): GuildState, Bot(bot): Bot, At(id): At<Id>) -> EmptyReply {
    managed(&guild, bot, id)?;
    discard(&guild, id)
}

async fn drop_by_token(State(guild): GuildState, At((id, token)): At<(Id, String)>) -> EmptyReply {
    check_token(&guild, id, &token)?;
    discard(&guild, id)
}

/// The channel a webhook speaks in: its own, or a thread under it.
fn place(guild: &Guild, hook: &Webhook, asked: &QueryParameters) -> Result<Id, Refusal> {
    let Some(thread) = asked.id("thread_id")? else {
        return Ok(hook.channel);
    };
    guild.read(|state| match state.channel(thread)?.thread() {
        Some(found) if found.parent == hook.channel => Ok(thread),
        Some(_) | None => Err(Refusal::UnknownChannel),
    })
}

async fn execute(
    State(guild): GuildState,
    At((id, token)): At<(Id, String)>,
    asked: QueryParameters,
    payload: Payload,
) -> Result<Response, Refusal> {
    if guild.read(|state| state.users.contains_key(&id)) {
        return interactions::follow_up(&guild, id, &token, &payload).map(|it| it.into_response());
    }
    let hook = check_token(&guild, id, &token)?;
    let channel = place(&guild, &hook, &asked)?;
    let mut composed = ComposedMessage::new(&guild, &payload)?;
    // It answers no message.
    composed.body.message_reference = None;
    let body = &composed.body;
    if let Some(name) = &body.username {
        check_name("username", name)?;
    }
    if body.thread_name.is_some() {
        // Only forums take it, and there are none here.
        return Err(Refusal::WrongChannelType);
    }
    let avatar = body.avatar_url.as_ref().map(|url| digest(url.as_bytes()));
    let author = Author::Webhook {
        id,
        name: body.username.clone().unwrap_or_else(|| hook.name.clone()),
        avatar: avatar.or_else(|| hook.avatar.clone()),
        application: hook.application,
    };
    let made = guild.change(|draft| {
        let place = draft.state.channel(channel)?;
        let mut message = composed.message(draft, place, author)?;
        // The platform takes neither from a webhook.
        message.nonce = None;
        message.flags &= !crate::local_guild::model::EPHEMERAL;
        put(draft, place, message)
    })?;
    if asked.yes("wait") {
        Ok(rendered(&guild, None, channel, made)?.into_response())
    } else {
        Ok(StatusCode::NO_CONTENT.into_response())
    }
}

/// Where a message of a webhook or an interaction stands.
fn find(
    guild: &Guild,
    id: Id,
    token: &str,
    message: &str,
    asked: &QueryParameters,
) -> Result<(Id, Id), Refusal> {
    if guild.read(|state| state.users.contains_key(&id)) {
        return interactions::find_message(guild, id, token, message);
    }
    let hook = check_token(guild, id, token)?;
    let channel = place(guild, &hook, asked)?;
    let message: Id = message.parse().map_err(|_| Refusal::UnknownMessage)?;
    guild.read(|state| {
        let found = state.message(channel, message)?;
        if found.author.id() == id { Ok((channel, message)) } else { Err(Refusal::UnknownMessage) }
    })
}

async fn message(
    State(guild): GuildState,
    At((id, token, message)): At<(Id, String, String)>,
    asked: QueryParameters,
) -> JsonReply {
    let (channel, message) = find(&guild, id, &token, &message, &asked)?;
    rendered(&guild, None, channel, message)
}

async fn edit(
    State(guild): GuildState,
    At((id, token, message)): At<(Id, String, String)>,
    asked: QueryParameters,
    payload: Payload,
) -> JsonReply {
    let (channel, message) = find(&guild, id, &token, &message, &asked)?;
    let composed = ComposedMessage::new(&guild, &payload)?;
    edit_if(&guild, channel, message, &composed, |_: &Message| Ok(()))?;
    interactions::settled(&guild, id, &token, message)?;
    rendered(&guild, None, channel, message)
}

async fn delete(
    State(guild): GuildState,
    At((id, token, message)): At<(Id, String, String)>,
    asked: QueryParameters,
) -> EmptyReply {
    let (channel, message) = find(&guild, id, &token, &message, &asked)?;
    guild.change(|draft| {
        remove(draft, channel, message)?;
        draft.tell(Event::MessageDelete { channel, id: message });
        Ok(StatusCode::NO_CONTENT)
    })
}
