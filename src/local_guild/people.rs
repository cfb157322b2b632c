//! The people's side: what Discord's own apps do over private interfaces, here under `/_local`.
//!
//! | path | JSON sent | answer |
//! |---|---|---|
//! | `POST say` | `channel, content, [reply_to, attachments: [upload id], nonce]`, or a form with files | message |
//! | `POST edit`, `delete`, `react` | `channel, message` and `content`, nothing, or `emoji, [on]` | message or 204 |
//! | `POST typing` | `channel` | 204 |
//! | `POST click`, `slash`, `complete`, `modal` | see `person_interactions` | `interaction` |
//! | `POST thread` | `channel, name, [message]` | thread |
//! | `POST dm` | `bot` | channel |
//! | `POST upload?filename=` | the bytes | `id, filename, size` |
//! | `GET messages?channel=` | also `limit, before, after, around` | messages, newest first |
//! | `GET state`, `GET events?after=` | | the whole picture; server-sent events |
//! | `POST faults` | see `faults::Order` | the faults in force |
//!
//! `channel` is an id or the name of a text channel. `user` (name or id) says in whose name; with a
//! person's token it may be left out. Queries take it as well.
//!
//! A request is let in with a person's token, or from the page itself: browsers say with `Origin` or
//! `Sec-Fetch-Site` where a request comes from, which no other page can forge, and the page shows its key, which is
//! told to whoever opens it.

use std::sync::{Arc, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use chrono::Duration;
use serde::Deserialize;
use serde_json::{Value, json};

use super::caller::{Caller, header};
use super::compose::ComposedMessage;
use super::error::{JsonReply, Refusal};
use super::event::Event;
use super::faults::Order;
use super::feed;
use super::guild::{Guild, GuildState};
use super::ids::Id;
use super::rest::body::{Payload, QueryParameters, Upload};
use super::rest::{channels, messages, reactions, threads};
use super::state::State as World;
use super::upload::store;
use crate::platform::clock;

/// How long a file waits for the message that it was uploaded for.
const UNSENT: Duration = Duration::hours(1);

/// The routes of the local side, below `/_local`.
pub(crate) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/say", post(say))
        .route("/edit", post(edit))
        .route("/delete", post(delete))
        .route("/react", post(react))
        .route("/typing", post(typing))
        .route("/thread", post(thread))
        .route("/dm", post(dm))
        .route("/upload", post(upload))
        .route("/messages", get(history))
        .route("/state", get(feed::state))
        .route("/events", get(feed::events))
        .route("/faults", post(faults))
}

/// A channel or thread by id, or a text channel by name.
pub(crate) fn channel(world: &World, named: &str) -> Result<Id, Refusal> {
    let by_name = |name: &str| {
        let name = name.trim_start_matches('#');
        world.channels.values().find(|it| it.name == name && it.thread().is_none()).map(|it| it.id)
    };
    let by_id = named.parse().ok().filter(|id| world.channels.contains_key(id));
    by_id.or_else(|| by_name(named)).ok_or(Refusal::UnknownChannel)
}

/// The fields that most local requests share.
#[derive(Deserialize)]
struct Where {
    user: Option<String>,
    channel: String,
    message: Option<Id>,
}

pub(crate) fn place(
    guild: &Guild,
    caller: &Caller,
    payload: &Payload,
) -> Result<(Id, Id, Option<Id>), Refusal> {
    let sent: Where = payload.read()?;
    guild.read(|state| {
        let user = caller.person(state, sent.user.as_deref())?;
        let channel = channel(state, &sent.channel)?;
        state.channel_for(channel, user)?;
        Ok((user, channel, sent.message))
    })
}

pub(crate) fn needed(message: Option<Id>) -> Result<Id, Refusal> {
    message
        .ok_or_else(|| Refusal::invalid("message", "BASE_TYPE_REQUIRED", "This field is required"))
}

async fn say(State(guild): GuildState, caller: Caller, payload: Payload) -> JsonReply {
    let (user, channel, _) = place(&guild, &caller, &payload)?;
    let mut body = json!({"content": payload.get("content").cloned().unwrap_or_default()});
    if let Some(nonce) = payload.text("nonce") {
        body["nonce"] = json!(nonce);
        body["enforce_nonce"] = json!(true);
    }
    if let Some(reply) = payload.get("reply_to").filter(|it| !it.is_null()) {
        body["message_reference"] = json!({"message_id": reply});
    }
    let inner = Payload { json: body, files: payload.files.clone() };
    let mut composed = ComposedMessage::new(&guild, &inner)?;
    let ids: Vec<Id> = match payload.get("attachments") {
        None | Some(Value::Null) => Vec::new(),
        Some(list) => serde_json::from_value(list.clone())
            .map_err(|_| Refusal::invalid("attachments", "BASE_TYPE_BAD", "Ids are expected."))?,
    };
    let uploads = || guild.uploads.lock().unwrap_or_else(PoisonError::into_inner);
    for id in &ids {
        let file = uploads().get(id).cloned();
        composed.attach(file.ok_or_else(|| {
            Refusal::invalid("attachments", "UNKNOWN_FILE", "Upload the file first.")
        })?);
    }
    let id = messages::create_as(&guild, user, channel, &composed)?;
    uploads().retain(|id, _| !ids.contains(id));
    messages::rendered(&guild, Some(user), channel, id)
}

async fn edit(State(guild): GuildState, caller: Caller, payload: Payload) -> JsonReply {
    let (user, channel, message) = place(&guild, &caller, &payload)?;
    let message = needed(message)?;
    let body = json!({"content": payload.text("content").unwrap_or_default()});
    let composed = ComposedMessage::new(&guild, &Payload { json: body, files: Vec::new() })?;
    messages::edit_if(&guild, channel, message, &composed, messages::by_author(user))?;
    messages::rendered(&guild, Some(user), channel, message)
}

async fn delete(
    State(guild): GuildState,
    caller: Caller,
    payload: Payload,
) -> Result<StatusCode, Refusal> {
    let (user, channel, message) = place(&guild, &caller, &payload)?;
    let message = needed(message)?;
    guild.change(|draft| {
        let found = draft.state.message(channel, message)?;
        let owner = draft.state.meta()?.owner == user;
        // The owner of the guild may remove anything; others only what they wrote.
        if !owner {
            messages::by_author(user)(found)?;
        }
        messages::remove(draft, channel, message)?;
        draft.tell(Event::MessageDelete { channel, id: message });
        Ok(StatusCode::NO_CONTENT)
    })
}

async fn react(
    State(guild): GuildState,
    caller: Caller,
    payload: Payload,
) -> Result<StatusCode, Refusal> {
    let (user, channel, message) = place(&guild, &caller, &payload)?;
    let emoji = payload.name("emoji", 64)?;
    let added = payload.get("on").and_then(Value::as_bool).unwrap_or(true);
    reactions::react(&guild, user, (channel, needed(message)?), &emoji, added)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn typing(
    State(guild): GuildState,
    caller: Caller,
    payload: Payload,
) -> Result<StatusCode, Refusal> {
    let (user, channel, _) = place(&guild, &caller, &payload)?;
    messages::type_as(&guild, user, channel)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn thread(State(guild): GuildState, caller: Caller, mut payload: Payload) -> JsonReply {
    let (user, parent, message) = place(&guild, &caller, &payload)?;
    // The client's menu makes public ones.
    if payload.get("type").is_none() {
        payload.json["type"] = json!(11);
    }
    let id = threads::start(&guild, user, parent, message, &payload)?;
    guild.render(None, |render| Ok(Json(render.channel(render.state.channel(id)?))))
}

async fn dm(State(guild): GuildState, caller: Caller, payload: Payload) -> JsonReply {
    let wanted = payload.name("bot", 40)?;
    let (user, bot) = guild.read(|state| {
        let user = caller.person(state, payload.text("user"))?;
        let bot = state
            .users
            .values()
            .find(|it| it.bot && (it.name == wanted || it.id.to_string() == wanted))
            .ok_or(Refusal::UnknownUser)?;
        Ok::<_, Refusal>((user, bot.id))
    })?;
    let id = channels::direct_between(&guild, user, bot)?;
    guild.render(Some(user), |render| Ok(Json(render.channel(render.state.channel(id)?))))
}

async fn upload(
    State(guild): GuildState,
    _caller: Caller,
    asked: QueryParameters,
    headers: HeaderMap,
    bytes: axum::body::Bytes,
) -> JsonReply {
    let upload = Upload {
        number: 0,
        filename: asked.text("filename").unwrap_or("file").to_owned(),
        content_type: header(&headers, "content-type").map(str::to_owned),
        bytes,
    };
    let file = store(&guild, &upload, None)?;
    let shown = json!({"id": file.id, "filename": file.filename, "size": file.size});
    let mut uploads = guild.uploads.lock().unwrap_or_else(PoisonError::into_inner);
    let oldest = Id::at(clock::now() - UNSENT);
    for (id, _) in uploads.extract_if(|id, _| *id < oldest) {
        guild.blobs.remove(&id.to_string());
    }
    uploads.insert(file.id, file);
    Ok(Json(shown))
}

async fn history(
    State(guild): GuildState,
    caller: Caller,
    asked: QueryParameters,
) -> Result<Json<Vec<Value>>, Refusal> {
    let (user, channel) = guild.read(|state| {
        let user = caller.person(state, asked.text("user"))?;
        Ok::<_, Refusal>((user, channel(state, asked.text("channel").unwrap_or_default())?))
    })?;
    messages::page(&guild, user, channel, &asked).map(Json)
}

async fn faults(State(guild): GuildState, _caller: Caller, payload: Payload) -> JsonReply {
    let order: Order = payload.read()?;
    let bot = order.bot.as_deref().map(|name| {
        guild.read(|state| {
            let found = state.users.values().find(|user| user.bot && user.name == name);
            found.map(|user| user.id).ok_or(Refusal::UnknownUser)
        })
    });
    let bot = bot.transpose()?;
    Ok(Json(guild.faults.order(order, bot)))
}
