//! Channels as such: reading, renaming, removing, making; direct conversations.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::body::{At, Bot, Payload};
use crate::local_guild::error::Refusal;
use crate::local_guild::event::Event;
use crate::local_guild::guild::Guild;
use crate::local_guild::ids::Id;
use crate::local_guild::model::{Channel, ChannelKind};
use crate::local_guild::state::Change;

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/channels/{channel}", get(one).patch(change).delete(remove))
        .route("/guilds/{guild}/channels", get(list).post(create))
        .route("/users/@me/channels", post(direct))
}

fn rendered(guild: &Guild, viewer: Id, id: Id) -> Result<Json<Value>, Refusal> {
    guild.render(Some(viewer), |render| {
        Ok(Json(render.channel(render.state.channel_for(id, viewer)?)))
    })
}

async fn one(
    State(guild): State<Arc<Guild>>,
    Bot(bot): Bot,
    At(channel): At<Id>,
) -> Result<Json<Value>, Refusal> {
    rendered(&guild, bot, channel)
}

async fn change(
    State(guild): State<Arc<Guild>>,
    Bot(bot): Bot,
    At(id): At<Id>,
    payload: Payload,
) -> Result<Json<Value>, Refusal> {
    guild.change(|draft| {
        let mut channel = draft.state.channel_for(id, bot)?.clone();
        if payload.text("name").is_some() {
            channel.name = payload.name("name", 100)?;
        }
        if let Some(seconds) = payload.get("rate_limit_per_user").and_then(Value::as_u64) {
            channel.slowmode = u32::try_from(seconds.min(21_600)).unwrap_or(0);
        }
        let event = match &mut channel.kind {
            ChannelKind::Dm { .. } => return Err(Refusal::WrongChannelType),
            ChannelKind::Text { topic, position } => {
                if let Some(sent) = payload.get("topic") {
                    *topic = sent.as_str().map(str::to_owned);
                }
                if let Some(sent) = payload.get("position").and_then(Value::as_u64) {
                    *position = u32::try_from(sent).unwrap_or(*position);
                }
                Event::ChannelUpdate(id)
            }
            ChannelKind::Thread(thread) => {
                let flag = |name: &str| payload.get(name).and_then(Value::as_bool);
                let archived = flag("archived").unwrap_or(thread.archived);
                if archived != thread.archived {
                    thread.archived = archived;
                    thread.archive_changed = draft.now;
                }
                thread.locked = flag("locked").unwrap_or(thread.locked);
                if let Some(minutes) = payload.get("auto_archive_duration").and_then(Value::as_u64)
                {
                    thread.auto_archive = u32::try_from(minutes).unwrap_or(thread.auto_archive);
                }
                Event::ThreadUpdate(id)
            }
        };
        draft.put(Change::Channel(channel));
        draft.tell(event);
        Ok(())
    })?;
    rendered(&guild, bot, id)
}

async fn remove(
    State(guild): State<Arc<Guild>>,
    Bot(bot): Bot,
    At(id): At<Id>,
) -> Result<Json<Value>, Refusal> {
    let rendered = rendered(&guild, bot, id)?;
    guild.change(|draft| {
        let channel = draft.state.channel(id)?;
        match &channel.kind {
            // Closing a direct conversation hides it from the bot's list; nothing is lost.
            ChannelKind::Dm { .. } => return Ok(()),
            ChannelKind::Text { .. } => {
                let threads: Vec<Id> =
                    draft.state.threads(Some(id)).map(|thread| thread.id).collect();
                for thread in threads {
                    draft.put(Change::ChannelGone(thread));
                    draft.tell(Event::ThreadDelete { id: thread, parent: id });
                }
                draft.tell(Event::ChannelDelete(rendered.0.clone()));
            }
            ChannelKind::Thread(thread) => {
                draft.tell(Event::ThreadDelete { id, parent: thread.parent });
            }
        }
        draft.put(Change::ChannelGone(id));
        Ok(())
    })?;
    Ok(rendered)
}

async fn list(
    State(guild): State<Arc<Guild>>,
    Bot(_): Bot,
    At(id): At<Id>,
) -> Result<Json<Vec<Value>>, Refusal> {
    guild.render(None, |render| {
        render.state.check_guild(id)?;
        let text = |it: &&Channel| matches!(it.kind, ChannelKind::Text { .. });
        Ok(Json(render.state.channels.values().filter(text).map(|it| render.channel(it)).collect()))
    })
}

/// A channel name as Discord makes it: lower case, hyphens for spaces.
fn channel_name(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-")
}

async fn create(
    State(guild): State<Arc<Guild>>,
    Bot(bot): Bot,
    At(id): At<Id>,
    payload: Payload,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let name = channel_name(&payload.name("name", 100)?);
    match payload.get("type").and_then(Value::as_u64) {
        None | Some(0) => {}
        Some(_) => return Err(Refusal::WrongChannelType),
    }
    let made = guild.change(|draft| {
        draft.state.check_guild(id)?;
        let texts = draft.state.channels.values();
        let position = texts.filter(|it| matches!(it.kind, ChannelKind::Text { .. })).count();
        let channel = Channel {
            id: draft.id(),
            name,
            kind: ChannelKind::Text {
                topic: payload.text("topic").map(str::to_owned),
                position: u32::try_from(position).unwrap_or(u32::MAX),
            },
            slowmode: 0,
            pins: Vec::new(),
        };
        let made = channel.id;
        draft.put(Change::Channel(channel));
        draft.tell(Event::ChannelCreate(made));
        Ok(made)
    })?;
    Ok((StatusCode::CREATED, rendered(&guild, bot, made)?))
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
        draft.put(Change::Channel(Channel {
            id,
            name: String::new(),
            kind: ChannelKind::Dm { recipients: vec![one, other] },
            slowmode: 0,
            pins: Vec::new(),
        }));
        draft.tell(Event::ChannelCreate(id));
        Ok(id)
    })
}

async fn direct(
    State(guild): State<Arc<Guild>>,
    Bot(bot): Bot,
    payload: Payload,
) -> Result<Json<Value>, Refusal> {
    let other: Id = serde_json::from_value(
        payload.get("recipient_id").cloned().unwrap_or(json!(0)),
    )
    .map_err(|_| Refusal::invalid("recipient_id", "NUMBER_TYPE_COERCE", "Not a snowflake."))?;
    let id = direct_between(&guild, bot, other)?;
    rendered(&guild, bot, id)
}
