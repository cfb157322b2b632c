//! Reactions and pins.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::body::EmptyReply;
use super::body::{At, Bot, QueryParameters};
use super::messages::{is_public, listed};
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::model::{Author, Channel, Message, MessageKind, Pin, Reaction, Reference};
use crate::local_guild::payload;
use crate::local_guild::right;
use crate::local_guild::state::{Change, State as World};

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route(
            "/channels/{channel}/messages/{message}/reactions/{emoji}",
            get(who).delete(clear_one),
        )
        .route("/channels/{channel}/messages/{message}/reactions", axum::routing::delete(clear))
        .route(
            "/channels/{channel}/messages/{message}/reactions/{emoji}/{user}",
            put(add).delete(take_back),
        )
        .route("/channels/{channel}/pins", get(old_pins))
        .route("/channels/{channel}/messages/pins", get(pins))
        .route("/channels/{channel}/pins/{message}", put(pin).delete(unpin))
        .route("/channels/{channel}/messages/pins/{message}", put(pin).delete(unpin))
}

/// `@me` or an id.
fn person(text: &str, me: Id) -> Result<Id, Refusal> {
    if text == "@me" { Ok(me) } else { text.parse().map_err(|_| Refusal::UnknownUser) }
}

/// Adds or takes back a user's reaction. Doing it twice changes nothing and tells nobody.
pub(crate) fn react(
    guild: &Guild,
    user: Id,
    (channel, message): (Id, Id),
    emoji: &str,
    added: bool,
) -> Result<(), Refusal> {
    if emoji.is_empty() || emoji.chars().count() > 64 {
        return Err(Refusal::invalid("emoji", "BASE_TYPE_BAD", "Unknown Emoji"));
    }
    guild.change(|draft| {
        let place = draft.state.channel_for(channel, user)?;
        if place.thread().is_some_and(|thread| thread.archived) {
            return Err(Refusal::ThreadArchived);
        }
        let mut after = draft.state.message(channel, message)?.clone();
        is_public(&after)?;
        let at = after.reactions.iter().position(|reaction| reaction.emoji == emoji);
        // Where nobody has chosen the emoji yet, it takes a right of its own.
        let needed = if added && at.is_none() { right::ADD_REACTIONS } else { 0 };
        draft.state.may(user, channel, needed | right::READ_MESSAGE_HISTORY)?;
        let changed = match (at.and_then(|at| after.reactions.get_mut(at)), added) {
            (Some(reaction), true) => reaction.users.insert(user),
            (Some(reaction), false) => reaction.users.remove(&user),
            (None, true) => {
                let users = BTreeSet::from([user]);
                after.reactions.push(Reaction { emoji: emoji.to_owned(), users });
                true
            }
            (None, false) => false,
        };
        if changed {
            after.reactions.retain(|reaction| !reaction.users.is_empty());
            draft.put(Change::Message(Box::new(after)));
            let emoji = emoji.to_owned();
            draft.tell(Event::Reaction { channel, message, user, emoji, added });
        }
        Ok(())
    })
}

async fn add(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message, emoji, user)): At<(Id, Id, String, String)>,
) -> EmptyReply {
    if user != "@me" {
        return Err(Refusal::MethodNotAllowed);
    }
    react(&guild, bot, (channel, message), &emoji, true)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn take_back(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message, emoji, user)): At<(Id, Id, String, String)>,
) -> EmptyReply {
    let user = person(&user, bot)?;
    let needed = if user == bot { 0 } else { right::MANAGE_MESSAGES };
    guild.read(|state| state.may(bot, channel, needed).map(|_| ()))?;
    react(&guild, user, (channel, message), &emoji, false)?;
    Ok(StatusCode::NO_CONTENT)
}

fn wipe(guild: &Guild, bot: Id, (channel, message): (Id, Id), emoji: Option<&str>) -> EmptyReply {
    guild.change(|draft| {
        let place = draft.state.may(bot, channel, right::MANAGE_MESSAGES)?;
        if place.recipients().is_some() {
            return Err(Refusal::WrongChannelType);
        }
        let mut after = draft.state.message(channel, message)?.clone();
        after.reactions.retain(|it| emoji.is_some_and(|emoji| it.emoji != emoji));
        draft.put(Change::Message(Box::new(after)));
        draft.tell(Event::ReactionsGone { channel, message, emoji: emoji.map(str::to_owned) });
        Ok(StatusCode::NO_CONTENT)
    })
}

async fn clear(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message)): At<(Id, Id)>,
) -> EmptyReply {
    wipe(&guild, bot, (channel, message), None)
}

async fn clear_one(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message, emoji)): At<(Id, Id, String)>,
) -> EmptyReply {
    wipe(&guild, bot, (channel, message), Some(&emoji))
}

async fn who(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message, emoji)): At<(Id, Id, String)>,
    asked: QueryParameters,
) -> Result<Json<Vec<Value>>, Refusal> {
    let limit = asked.count("limit", 25, 100)?;
    let after = asked.id("after")?;
    guild.read(|state| {
        state.may(bot, channel, right::READ_MESSAGE_HISTORY)?;
        let found = state.message(channel, message)?;
        let users = found.reactions.iter().filter(|it| it.emoji == emoji).flat_map(|it| &it.users);
        Ok(Json(
            users
                .filter(|id| after.is_none_or(|after| **id > after))
                .filter_map(|id| state.users.get(id))
                .take(limit)
                .map(payload::user)
                .collect(),
        ))
    })
}

async fn pins(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
    asked: QueryParameters,
) -> JsonReply {
    let limit = asked.count("limit", 50, 50)?;
    let before = asked.time("before")?;
    guild.render(Some(bot), |render| {
        let place = render.state.channel_for(channel, bot)?;
        let mut items =
            place.pins.iter().filter(|pin| before.is_none_or(|it| pin.at < it)).filter_map(|pin| {
                let message = render.state.message(channel, pin.message).ok()?;
                Some(
                    json!({"pinned_at": payload::time(pin.at), "message": render.message(message)}),
                )
            });
        let found: Vec<Value> = items.by_ref().take(limit).collect();
        Ok(Json(listed("items", found, items.next().is_some())))
    })
}

async fn old_pins(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(channel): At<Id>,
) -> Result<Json<Vec<Value>>, Refusal> {
    guild.render(Some(bot), |render| {
        let place = render.state.channel_for(channel, bot)?;
        let found =
            place.pins.iter().filter_map(|pin| render.state.message(channel, pin.message).ok());
        Ok(Json(found.map(|message| render.message(message)).collect()))
    })
}

/// The channel, where a bot may pin: either right will do, as the newer took over from the older.
fn pinning(world: &World, channel: Id, bot: Id) -> Result<&Channel, Refusal> {
    world
        .may(bot, channel, right::PIN_MESSAGES)
        .or_else(|_| world.may(bot, channel, right::MANAGE_MESSAGES))
}

async fn pin(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message)): At<(Id, Id)>,
) -> EmptyReply {
    guild.change(|draft| {
        let mut place = pinning(draft.state, channel, bot)?.clone();
        is_public(draft.state.message(channel, message)?)?;
        if place.pins.iter().any(|pin| pin.message == message) {
            return Ok(());
        }
        if place.pins.len() >= 50 {
            return Err(Refusal::TooManyPins);
        }
        place.pins.insert(0, Pin { message, at: draft.now });
        draft.put(Change::Channel(place));
        draft.tell(Event::Pins { channel });
        // The platform says in the channel who pinned what.
        let author = Author::User { id: bot };
        let mut note = Message::blank(draft.id(), channel, author, MessageKind::PinAdded);
        note.reference = Some(Reference { channel, message: Some(message) });
        let id = note.id;
        draft.put(Change::Message(Box::new(note)));
        draft.tell(Event::MessageCreate { channel, id });
        Ok(())
    })?;
    Ok(StatusCode::NO_CONTENT)
}

async fn unpin(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((channel, message)): At<(Id, Id)>,
) -> EmptyReply {
    guild.change(|draft| {
        let mut place = pinning(draft.state, channel, bot)?.clone();
        let before = place.pins.len();
        place.pins.retain(|pin| pin.message != message);
        if place.pins.len() == before {
            return Err(Refusal::UnknownMessage);
        }
        draft.put(Change::Channel(place));
        draft.tell(Event::Pins { channel });
        Ok(StatusCode::NO_CONTENT)
    })
}
