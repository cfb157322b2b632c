//! Messages: reading, writing, changing, removing; typing.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use chrono::Duration;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::EmptyReply;
use super::body::{At, Bot, Payload, QueryParameters};
use crate::local_guild::compose::ComposedMessage;
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Draft, Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::model::{Author, Channel, Message};
use crate::local_guild::payload::is_ephemeral;
use crate::local_guild::permission::speaking;
use crate::local_guild::right;
use crate::local_guild::state::{Change, State as World};

/// How long a nonce is remembered: "the past few minutes" in Discord's words.
const NONCE_MINUTES: i64 = 5;

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/channels/{channel}/messages", get(list).post(create))
        .route("/channels/{channel}/messages/bulk-delete", post(bulk_delete))
        .route("/channels/{channel}/messages/{message}", get(one).patch(edit).delete(delete))
        .route("/channels/{channel}/typing", post(typing))
}

/// Puts a new message: takes an archived thread out of its archive, and tells everyone.
pub(crate) fn put(
    draft: &mut Draft<'_>,
    channel: &Channel,
    message: Message,
) -> Result<Id, Refusal> {
    let id = message.id;
    let author = message.author.id();
    if let Some(thread) = channel.thread() {
        if thread.archived && thread.locked {
            return Err(Refusal::ThreadArchived);
        }
        let joins =
            matches!(message.author, Author::User { .. }) && !thread.members.contains(&author);
        if thread.archived || joins {
            let mut after = channel.clone();
            if let Some(thread) = after.thread_mut() {
                if thread.archived {
                    thread.archived = false;
                    thread.archive_changed = draft.now;
                    draft.tell(Event::ThreadUpdate(channel.id));
                }
                if joins {
                    thread.members.insert(author);
                    let (thread, added) = (channel.id, vec![author]);
                    draft.tell(Event::ThreadMembers { thread, added, removed: Vec::new() });
                }
            }
            draft.put(Change::Channel(after));
        }
    }
    draft.put(Change::Message(Box::new(message)));
    draft.tell(Event::MessageCreate { channel: channel.id, id });
    Ok(id)
}

/// The message that the same author sent with the same nonce a few minutes ago.
fn sent_before(
    world: &World,
    now: chrono::DateTime<chrono::Utc>,
    channel: Id,
    author: Id,
    nonce: &Value,
) -> Option<Id> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let wanted = text(nonce);
    let since = Id::at(now - Duration::minutes(NONCE_MINUTES));
    let messages = world.messages.get(&channel)?;
    let mut recent = messages.range(since..).rev().map(|(_, message)| message);
    recent
        .find(|it| {
            it.author.id() == author && it.nonce.as_ref().is_some_and(|nonce| text(nonce) == wanted)
        })
        .map(|message| message.id)
}

/// Makes a message of a user, or finds the one that its nonce names. Shared with the local side.
pub(crate) fn create_as(
    guild: &Guild,
    user: Id,
    channel: Id,
    composed: &ComposedMessage,
) -> Result<Id, Refusal> {
    guild.change(|draft| {
        let place = draft.state.may(user, channel, 0)?;
        composed.permitted(draft.state, user, place)?;
        if let (Some(true), Some(nonce)) = (composed.body.enforce_nonce, &composed.body.nonce)
            && let Some(id) = sent_before(draft.state, draft.now, channel, user, nonce)
        {
            return Ok(id);
        }
        let message = composed.message(draft, place, Author::User { id: user })?;
        put(draft, place, message)
    })
}

/// A message as one viewer gets it over REST.
pub(crate) fn rendered(guild: &Guild, viewer: Option<Id>, channel: Id, id: Id) -> JsonReply {
    guild.render(viewer, |render| Ok(Json(render.message(render.state.message(channel, id)?))))
}

async fn create(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
    payload: Payload,
) -> JsonReply {
    guild.read(|state| state.channel_for(channel, bot).map(|_| ()))?;
    let composed = ComposedMessage::new(&guild, &payload)?;
    let id = create_as(&guild, bot, channel, &composed)?;
    rendered(&guild, Some(bot), channel, id)
}

/// A page of a channel's messages, newest first, as `GET messages` answers it.
pub(crate) fn page(
    guild: &Guild,
    viewer: Id,
    channel: Id,
    asked: &QueryParameters,
) -> Result<Vec<Value>, Refusal> {
    let limit = asked.count("limit", 50, 100)?;
    let (before, after, around) = (asked.id("before")?, asked.id("after")?, asked.id("around")?);
    guild.render(Some(viewer), |render| {
        let place = render.state.channel_for(channel, viewer)?;
        let reads = render.state.may(viewer, channel, right::READ_MESSAGE_HISTORY).is_ok();
        if !place.is_text() {
            return Err(Refusal::NonText);
        }
        if !reads {
            // The platform shows nothing instead of refusing.
            return Ok(Vec::new());
        }
        let visible =
            |message: &&Message| !is_ephemeral(message) || message.only_for == Some(viewer);
        let all = || render.state.messages_in(channel).filter(visible);
        let mut found: Vec<&Message> = if let Some(middle) = around {
            let older = all().rev().filter(|it| it.id < middle).take(limit / 2);
            let newer = all().filter(|it| it.id >= middle).take(limit.div_ceil(2));
            older.chain(newer).collect()
        } else if let Some(after) = after {
            all().filter(|it| it.id > after).take(limit).collect()
        } else {
            all().rev().filter(|it| before.is_none_or(|id| it.id < id)).take(limit).collect()
        };
        found.sort_by_key(|message| std::cmp::Reverse(message.id));
        Ok(found.into_iter().map(|message| render.message(message)).collect())
    })
}

async fn list(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
    asked: QueryParameters,
) -> Result<Json<Vec<Value>>, Refusal> {
    page(&guild, bot, channel, &asked).map(Json)
}

async fn one(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message)): At<(Id, Id)>,
) -> JsonReply {
    guild.read(|state| {
        state.may(bot, channel, right::READ_MESSAGE_HISTORY)?;
        is_public(state.message(channel, message)?)
    })?;
    rendered(&guild, Some(bot), channel, message)
}

/// An answer for one person's eyes is reached by its interaction's token alone.
pub(crate) fn is_public(message: &Message) -> Result<(), Refusal> {
    if is_ephemeral(message) { Err(Refusal::UnknownMessage) } else { Ok(()) }
}

/// Changes a message that passes `may`.
pub(crate) fn edit_if(
    guild: &Guild,
    channel: Id,
    id: Id,
    composed: &ComposedMessage,
    may: impl FnOnce(&Message) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    guild.change(|draft| {
        let place = draft.state.channel(channel)?;
        let mut message = draft.state.message(channel, id)?.clone();
        may(&message)?;
        if place.thread().is_some_and(|thread| thread.archived) {
            return Err(Refusal::ThreadArchived);
        }
        composed.change(draft, &mut message)?;
        draft.put(Change::Message(Box::new(message)));
        draft.tell(Event::MessageUpdate { channel, id });
        Ok(())
    })
}

/// Grants a change to the author alone.
pub(crate) fn by_author(user: Id) -> impl FnOnce(&Message) -> Result<(), Refusal> {
    move |message| match &message.author {
        Author::User { id } if *id == user => Ok(()),
        Author::User { .. } | Author::Webhook { .. } => Err(Refusal::NotAuthor),
    }
}

async fn edit(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message)): At<(Id, Id)>,
    payload: Payload,
) -> JsonReply {
    let composed = ComposedMessage::new(&guild, &payload)?;
    edit_if(&guild, channel, message, &composed, |found| {
        is_public(found)?;
        by_author(bot)(found)
    })?;
    rendered(&guild, Some(bot), channel, message)
}

/// Removes a message, and its pin.
pub(crate) fn remove(draft: &mut Draft<'_>, channel: Id, id: Id) -> Result<(), Refusal> {
    let place = draft.state.channel(channel)?;
    draft.state.message(channel, id)?;
    if place.pins.iter().any(|pin| pin.message == id) {
        let mut after = place.clone();
        after.pins.retain(|pin| pin.message != id);
        draft.put(Change::Channel(after));
    }
    draft.put(Change::MessageGone { channel, id });
    Ok(())
}

async fn delete(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message)): At<(Id, Id)>,
) -> EmptyReply {
    guild.change(|draft| {
        // With the right, also what others wrote; never in direct conversations.
        let place = draft.state.channel_for(channel, bot)?;
        let found = draft.state.message(channel, message)?;
        is_public(found)?;
        let managed = draft.state.rights(bot, Some(place)) & right::MANAGE_MESSAGES != 0;
        if found.author.id() != bot && (place.recipients().is_some() || !managed) {
            return Err(Refusal::MissingPermissions);
        }
        remove(draft, channel, message)?;
        draft.tell(Event::MessageDelete { channel, id: message });
        Ok(StatusCode::NO_CONTENT)
    })
}

#[derive(Deserialize)]
struct Bulk {
    messages: Vec<Id>,
}

async fn bulk_delete(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
    payload: Payload,
) -> EmptyReply {
    let Bulk { messages } = payload.read()?;
    if !(2..=100).contains(&messages.len()) {
        return Err(Refusal::invalid(
            "messages",
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 2 and 100 in length.",
        ));
    }
    guild.change(|draft| {
        draft.state.may(bot, channel, right::MANAGE_MESSAGES)?;
        let fortnight = Id::at(draft.now - Duration::days(14));
        if messages.iter().any(|id| *id < fortnight) {
            return Err(Refusal::TooOld);
        }
        let mut gone = Vec::new();
        for id in messages {
            if draft.state.message(channel, id).is_ok() {
                remove(draft, channel, id)?;
                gone.push(id);
            }
        }
        draft.tell(Event::MessageDeleteBulk { channel, ids: gone });
        Ok(StatusCode::NO_CONTENT)
    })
}

/// Shows that a user is writing. Nothing is kept.
pub(crate) fn type_as(guild: &Guild, user: Id, channel: Id) -> Result<(), Refusal> {
    guild.change(|draft| {
        let place = draft.state.channel_for(channel, user)?;
        draft.state.may(user, channel, speaking(place))?;
        draft.tell(Event::Typing { channel, user, at: draft.now });
        Ok(())
    })
}

async fn typing(State(guild): GuildState, Bot(bot): Bot, At(channel): At<Id>) -> EmptyReply {
    type_as(&guild, bot, channel)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The object that lists of pins and threads share.
pub(super) fn listed(key: &str, items: Vec<Value>, more: bool) -> Value {
    json!({key: items, "has_more": more})
}
