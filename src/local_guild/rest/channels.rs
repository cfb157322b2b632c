//! Channels as such: reading, renaming, removing, making; direct conversations.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::EmptyReply;
use super::body::{At, Bot, Payload};
use super::threads::auto_archive;
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Draft, Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::model::{Channel, ChannelKind, Overwrite};
use crate::local_guild::permission::bits;
use crate::local_guild::right;
use crate::local_guild::state::{Change, State as World};

/// Channels in one guild.
const MOST: usize = 500;

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/channels/{channel}", get(one).patch(change).delete(remove))
        .route("/channels/{channel}/permissions/{overwrite}", put(allow).delete(disallow))
        .route("/guilds/{guild}/channels", get(list).post(create).patch(reorder))
        .route("/users/@me/channels", post(direct))
}

fn rendered(guild: &Guild, viewer: Id, id: Id) -> JsonReply {
    guild.render(Some(viewer), |render| {
        Ok(Json(render.channel(render.state.channel_for(id, viewer)?)))
    })
}

async fn one(State(guild): GuildState, Bot(bot): Bot, At(channel): At<Id>) -> JsonReply {
    rendered(&guild, bot, channel)
}

/// The overwrites that a client sent. Nobody gives or takes what they do not hold themselves.
fn overwrites(world: &World, bot: Id, sent: &Value, held: u64) -> Result<Vec<Overwrite>, Refusal> {
    let bad = |at: usize| {
        let path = format!("permission_overwrites.{at}");
        Refusal::invalid(path, "MODEL_TYPE_CONVERT", "An overwrite is expected.")
    };
    let mut all = Vec::new();
    for (at, one) in sent.as_array().into_iter().flatten().enumerate() {
        let id = serde_json::from_value(one["id"].clone()).map_err(|_| bad(at))?;
        let side = |name: &str| match one.get(name).filter(|it| !it.is_null()) {
            None => Ok(0),
            Some(value) => bits(value).ok_or_else(|| bad(at)),
        };
        let member = match &one["type"] {
            Value::Number(number) => number.as_u64() == Some(1),
            Value::String(text) => text == "1" || text == "member",
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                world.users.contains_key(&id)
            }
        };
        if member {
            world.user(id)?;
        } else {
            world.role(id)?;
        }
        let overwrite = Overwrite { id, member, allow: side("allow")?, deny: side("deny")? };
        let touched = overwrite.allow | overwrite.deny;
        // Who may manage roles in one channel is for administrators to say.
        let whole = world.rights(bot, None) & right::ADMINISTRATOR != 0;
        if touched & !held != 0 || (touched & right::MANAGE_ROLES != 0 && !whole) {
            return Err(Refusal::MissingPermissions);
        }
        all.push(overwrite);
    }
    Ok(all)
}

/// A category's id from `parent_id`; `None` where the channel is to stand alone.
fn parent(world: &World, sent: &Value) -> Result<Option<Id>, Refusal> {
    if sent.is_null() {
        return Ok(None);
    }
    let bad = |text: &str| Refusal::invalid("parent_id", "CHANNEL_PARENT_INVALID", text);
    let id: Id = serde_json::from_value(sent.clone()).map_err(|_| bad("Not a snowflake."))?;
    match world.channels.get(&id).map(|it| &it.kind) {
        Some(ChannelKind::Category { .. }) => Ok(Some(id)),
        Some(ChannelKind::Text { .. } | ChannelKind::Dm { .. } | ChannelKind::Thread(_)) => {
            Err(bad("Not a category"))
        }
        None => Err(bad("Category does not exist")),
    }
}

fn topic_of(payload: &Payload) -> Result<Option<String>, Refusal> {
    match payload.text("topic") {
        Some(text) if text.chars().count() > 1024 => Err(Refusal::too_long("topic", 1024)),
        Some(text) if !text.is_empty() => Ok(Some(text.to_owned())),
        Some(_) | None => Ok(None),
    }
}

/// The rights that changing a channel takes. A thread's owner renames and archives it by right.
fn needed(channel: &Channel, bot: Id, payload: &Payload) -> u64 {
    let Some(thread) = channel.thread() else {
        let overwrites = payload.get("permission_overwrites").is_some();
        return right::MANAGE_CHANNELS | if overwrites { right::MANAGE_ROLES } else { 0 };
    };
    let set = |name: &str| payload.get(name).is_some();
    let wakes = payload.get("archived").and_then(Value::as_bool) == Some(false)
        && !["name", "locked", "rate_limit_per_user", "auto_archive_duration"].into_iter().any(set);
    let own = thread.owner == bot && !set("locked") && !set("rate_limit_per_user");
    if own {
        0
    } else if wakes && !thread.locked {
        right::SEND_MESSAGES_IN_THREADS
    } else {
        right::MANAGE_THREADS
    }
}

async fn change(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    payload: Payload,
) -> JsonReply {
    guild.change(|draft| {
        let mut channel = draft.state.channel_for(id, bot)?.clone();
        if channel.recipients().is_none() {
            draft.state.may(bot, id, needed(&channel, bot, &payload))?;
        }
        let asleep = channel.thread().is_some_and(|thread| thread.archived);
        if payload.text("name").is_some() {
            channel.name = payload.name("name", 100)?;
        }
        channel.slowmode = slowmode(&payload)?.unwrap_or(channel.slowmode);
        if let Some(sent) = payload.get("permission_overwrites").filter(|it| it.is_array()) {
            let held = draft.state.rights(bot, Some(&channel));
            channel.overwrites = overwrites(draft.state, bot, sent, held)?;
        }
        let place = payload.get("position").and_then(Value::as_u64);
        let place = place.and_then(|it| u32::try_from(it).ok());
        let mut thread_changed = false;
        match &mut channel.kind {
            ChannelKind::Dm { .. } => return Err(Refusal::WrongChannelType),
            ChannelKind::Category { position } => {
                *position = place.unwrap_or(*position);
            }
            ChannelKind::Text { topic, position, parent: above } => {
                if payload.get("topic").is_some() {
                    *topic = topic_of(&payload)?;
                }
                if let Some(sent) = payload.get("parent_id") {
                    *above = parent(draft.state, sent)?;
                }
                *position = place.unwrap_or(*position);
            }
            ChannelKind::Thread(thread) => {
                let flag = |name: &str| payload.get(name).and_then(Value::as_bool);
                let archived = flag("archived").unwrap_or(thread.archived);
                // What is in the archive is changed by taking it out.
                if asleep && archived && flag("locked").is_none() {
                    return Err(Refusal::ThreadArchived);
                }
                if archived != thread.archived {
                    thread.archived = archived;
                    thread.archive_changed = draft.now;
                }
                thread.locked = flag("locked").unwrap_or(thread.locked);
                thread.auto_archive = auto_archive(&payload)?.unwrap_or(thread.auto_archive);
                thread_changed = true;
            }
        }
        if thread_changed {
            draft.put(Change::Channel(channel));
            draft.tell(Event::ThreadUpdate(id));
        } else {
            draft.put_channel(channel);
        }
        Ok(())
    })?;
    rendered(&guild, bot, id)
}

/// Removes a channel with its threads. Shared with the local side.
pub(crate) fn discard(draft: &mut Draft<'_>, id: Id, shown: Value) -> Result<(), Refusal> {
    let channel = draft.state.channel(id)?;
    match &channel.kind {
        // Closing a direct conversation hides it from the bot's list; nothing is lost.
        ChannelKind::Dm { .. } => return Ok(()),
        ChannelKind::Text { .. } | ChannelKind::Category { .. } => {
            let threads: Vec<Id> = draft.state.threads(Some(id)).map(|thread| thread.id).collect();
            for thread in threads {
                draft.put(Change::ChannelGone(thread));
                draft.tell(Event::ThreadDelete { id: thread, parent: id });
            }
            let listeners = draft.state.listeners(id);
            draft.tell(Event::ChannelDelete(shown, listeners));
        }
        ChannelKind::Thread(thread) => {
            draft.tell(Event::ThreadDelete { id, parent: thread.parent });
        }
    }
    let under = |it: &&Channel| match it.kind {
        ChannelKind::Text { parent, .. } => parent == Some(id),
        ChannelKind::Category { .. } | ChannelKind::Dm { .. } | ChannelKind::Thread(_) => false,
    };
    // The channels of a category stay, on their own from now on.
    let freed: Vec<Id> = draft.state.channels.values().filter(under).map(|it| it.id).collect();
    draft.put(Change::ChannelGone(id));
    for channel in freed {
        draft.tell(Event::ChannelUpdate(channel));
    }
    Ok(())
}

async fn remove(State(guild): GuildState, Bot(bot): Bot, At(id): At<Id>) -> JsonReply {
    let rendered = rendered(&guild, bot, id)?;
    guild.change(|draft| {
        let thread = draft.state.channel(id)?.thread().is_some();
        let right = if thread { right::MANAGE_THREADS } else { right::MANAGE_CHANNELS };
        draft.state.may(bot, id, right)?;
        discard(draft, id, rendered.0.clone())
    })?;
    Ok(rendered)
}

async fn list(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
) -> Result<Json<Vec<Value>>, Refusal> {
    guild.render(None, |render| {
        render.state.check_member(id, bot)?;
        let listed = render.state.channels.values().filter(|it| it.is_listed());
        // Also what the bot cannot open is listed, as on the platform.
        Ok(Json(listed.map(|it| render.channel(it)).collect()))
    })
}

/// A channel name as Discord makes it: lower case, hyphens for spaces.
fn channel_name(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-")
}

async fn create(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    payload: Payload,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let name = payload.name("name", 100)?;
    let category = match payload.get("type").and_then(Value::as_u64) {
        None | Some(0) => false,
        Some(4) => true,
        Some(_) => return Err(Refusal::WrongChannelType),
    };
    let topic = topic_of(&payload)?;
    let made = guild.change(|draft| {
        let world = draft.state;
        world.may_in_guild(bot, id, right::MANAGE_CHANNELS)?;
        let listed: Vec<&Channel> = world.channels.values().filter(|it| it.is_listed()).collect();
        if listed.len() >= MOST {
            return Err(Refusal::TooManyChannels);
        }
        let above = parent(world, payload.get("parent_id").unwrap_or(&Value::Null))?;
        let last = listed.iter().filter(|it| it.is_text() != category).count();
        let place = payload.get("position").and_then(Value::as_u64);
        let position = u32::try_from(place.unwrap_or(last as u64)).unwrap_or(u32::MAX);
        let overwrites = match payload.get("permission_overwrites").filter(|it| it.is_array()) {
            Some(sent) => {
                let list = overwrites(world, bot, sent, world.rights(bot, None))?;
                if !list.is_empty() {
                    world.may_in_guild(bot, id, right::MANAGE_ROLES)?;
                }
                list
            }
            // Without its own, a channel takes over what its category has.
            None => {
                let above = above.and_then(|id| world.channels.get(&id));
                above.map(|it| it.overwrites.clone()).unwrap_or_default()
            }
        };
        let (name, kind) = if category {
            (name, ChannelKind::Category { position })
        } else {
            (channel_name(&name), ChannelKind::Text { topic, position, parent: above })
        };
        let mut channel = Channel::new(draft.id(), name, kind);
        channel.overwrites = overwrites;
        channel.slowmode = slowmode(&payload)?.unwrap_or(0);
        let made = channel.id;
        draft.put(Change::Channel(channel));
        draft.tell(Event::ChannelCreate(made));
        Ok(made)
    })?;
    // Its maker sees what was made, also where the overwrites shut them out.
    let shown = guild.render(None, |render| Ok(render.channel(render.state.channel(made)?)))?;
    Ok((StatusCode::CREATED, Json(shown)))
}

#[derive(Deserialize)]
struct NewPosition {
    id: Id,
    position: Option<u32>,
    /// Told apart: absent stays, null frees.
    #[serde(default, with = "double")]
    parent_id: Option<Option<Id>>,
}

/// Reads absent and null as two things.
mod double {
    use super::{Deserialize as _, Id};

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Option<Id>>, D::Error> {
        Option::<Id>::deserialize(from).map(Some)
    }
}

async fn reorder(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    payload: Payload,
) -> EmptyReply {
    let moved: Vec<NewPosition> = payload.read()?;
    guild.change(|draft| {
        draft.state.may_in_guild(bot, id, right::MANAGE_CHANNELS)?;
        for one in moved {
            let mut channel = draft.state.channel(one.id)?.clone();
            match &mut channel.kind {
                ChannelKind::Text { position, parent: above, .. } => {
                    *position = one.position.unwrap_or(*position);
                    if let Some(sent) = one.parent_id {
                        *above = parent(draft.state, &json!(sent))?;
                    }
                }
                ChannelKind::Category { position } => {
                    *position = one.position.unwrap_or(*position);
                }
                ChannelKind::Dm { .. } | ChannelKind::Thread(_) => {
                    return Err(Refusal::WrongChannelType);
                }
            }
            draft.put(Change::Channel(channel));
            draft.tell(Event::ChannelUpdate(one.id));
        }
        Ok(StatusCode::NO_CONTENT)
    })
}

/// Sets one overwrite, or with no body takes it away.
fn set_overwrite(
    guild: &Guild,
    bot: Id,
    (channel, of): (Id, Id),
    payload: Option<&Payload>,
) -> EmptyReply {
    guild.change(|draft| {
        let mut place = draft.state.may(bot, channel, right::MANAGE_ROLES)?.clone();
        if !place.is_listed() {
            return Err(Refusal::WrongChannelType);
        }
        place.overwrites.retain(|it| it.id != of);
        if let Some(payload) = payload {
            let mut one = payload.json.clone();
            one.as_object_mut().ok_or(Refusal::BadJson)?.insert("id".to_owned(), json!(of));
            let held = draft.state.rights(bot, Some(&place));
            let sent = Value::Array(vec![one]);
            place.overwrites.extend(overwrites(draft.state, bot, &sent, held)?);
        }
        draft.put_channel(place);
        Ok(StatusCode::NO_CONTENT)
    })
}

async fn allow(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(at): At<(Id, Id)>,
    payload: Payload,
) -> EmptyReply {
    set_overwrite(&guild, bot, at, Some(&payload))
}

async fn disallow(State(guild): GuildState, Bot(bot): Bot, At(at): At<(Id, Id)>) -> EmptyReply {
    set_overwrite(&guild, bot, at, None)
}

/// The direct conversation of two users, made if there is none yet.
pub(crate) fn direct_between(guild: &Guild, one: Id, other: Id) -> Result<Id, Refusal> {
    guild.change(|draft| {
        draft.state.user(one)?;
        draft.state.user(other)?;
        if one == other {
            return Err(Refusal::invalid(
                "recipient_id",
                "BASE_TYPE_BAD",
                "Somebody else is expected.",
            ));
        }
        let pair = |channel: &&Channel| {
            channel.recipients().is_some_and(|ids| ids.contains(&one) && ids.contains(&other))
        };
        if let Some(found) = draft.state.channels.values().find(pair) {
            return Ok(found.id);
        }
        let id = draft.id();
        let kind = ChannelKind::Dm { recipients: vec![one, other] };
        draft.put(Change::Channel(Channel::new(id, "", kind)));
        draft.tell(Event::ChannelCreate(id));
        Ok(id)
    })
}

async fn direct(State(guild): GuildState, Bot(bot): Bot, payload: Payload) -> JsonReply {
    let other: Id = serde_json::from_value(
        payload.get("recipient_id").cloned().unwrap_or(json!(0)),
    )
    .map_err(|_| Refusal::invalid("recipient_id", "NUMBER_TYPE_COERCE", "Not a snowflake."))?;
    let id = direct_between(&guild, bot, other)?;
    rendered(&guild, bot, id)
}

/// Seconds between two messages of a person.
fn slowmode(payload: &Payload) -> Result<Option<u32>, Refusal> {
    let sent = payload.get("rate_limit_per_user").filter(|it| !it.is_null());
    let Some(sent) = sent else { return Ok(None) };
    let seconds = sent.as_u64().and_then(|it| u32::try_from(it).ok());
    seconds.filter(|it| *it <= 21_600).map(Some).ok_or_else(|| {
        let text = "int value should be between 0 and 21600.";
        Refusal::invalid("rate_limit_per_user", "NUMBER_TYPE_COERCE", text)
    })
}
