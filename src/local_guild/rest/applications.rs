//! Applications and the users behind them: who a token is, what it may ask for.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{delete, get};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::body::EmptyReply;
use super::body::{At, Bot, Payload};
use super::roles;
use super::webhooks::keep_picture;
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Draft, Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::model::{CONTENT_LIMITED, MEMBERS_LIMITED, PRESENCE_LIMITED, Role};
use crate::local_guild::payload;
use crate::local_guild::state::Change;

/// The flags that an application sets for itself; all others are Discord's to give.
const SETTABLE: u64 = PRESENCE_LIMITED | MEMBERS_LIMITED | CONTENT_LIMITED;

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/oauth2/applications/@me", get(oauth))
        .route("/applications/@me", get(own).patch(change_own))
        .route("/applications/{application}", get(by_id).patch(change_by_id))
        .route("/users/{user}", get(user).patch(rename))
        .route("/users/@me/guilds", get(own_guilds))
        .route("/users/@me/guilds/{guild}", delete(leave))
}

fn shown(guild: &Guild, bot: Id) -> JsonReply {
    guild.read(|state| {
        let owner = state.meta().ok().and_then(|meta| state.users.get(&meta.owner));
        Ok(Json(payload::application(state.user(bot)?, owner)))
    })
}

async fn own(State(guild): GuildState, Bot(bot): Bot) -> JsonReply {
    shown(&guild, bot)
}

/// The older address: what it tells has no guild counts.
async fn oauth(State(guild): GuildState, Bot(bot): Bot) -> JsonReply {
    shown(&guild, bot)
}

fn same(bot: Id, application: Id) -> Result<(), Refusal> {
    if bot == application { Ok(()) } else { Err(Refusal::UnknownApplication) }
}

async fn by_id(State(guild): GuildState, Bot(bot): Bot, At(id): At<Id>) -> JsonReply {
    same(bot, id)?;
    shown(&guild, bot)
}

async fn change_own(State(guild): GuildState, Bot(bot): Bot, payload: Payload) -> JsonReply {
    change(&guild, bot, &payload)
}

async fn change_by_id(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    payload: Payload,
) -> JsonReply {
    same(bot, id)?;
    change(&guild, bot, &payload)
}

fn change(guild: &Guild, bot: Id, payload: &Payload) -> JsonReply {
    let icon = keep_picture(guild, "icon", payload.get("icon"))?;
    guild.change(|draft| {
        let mut user = draft.state.user(bot)?.clone();
        if let Some(sent) = payload.get("flags").filter(|it| !it.is_null()) {
            let bad = |text: &str| {
                Refusal::invalid("flags", "APPLICATION_FLAGS_INVALID", text.to_owned())
            };
            let flags = sent.as_u64().ok_or_else(|| bad("A number is expected."))?;
            let kept = user.application.flags & !SETTABLE;
            if flags & !SETTABLE & !kept != 0 {
                return Err(bad("Only the flags of limited intents can be set."));
            }
            user.application.flags = kept | flags & SETTABLE;
        }
        if payload.get("description").is_some() {
            let text = payload.text("description").unwrap_or_default();
            if text.chars().count() > 400 {
                return Err(Refusal::too_long("description", 400));
            }
            text.clone_into(&mut user.application.description);
        }
        if let Some(tags) = payload.get("tags").and_then(Value::as_array) {
            let words = tags.iter().filter_map(Value::as_str).map(str::to_owned);
            user.application.tags = words.take(5).collect();
        }
        if payload.get("icon").is_some() {
            user.application.icon = icon;
        }
        draft.put(Change::User(user));
        Ok(())
    })?;
    shown(guild, bot)
}

async fn user(State(guild): GuildState, Bot(bot): Bot, At(wanted): At<String>) -> JsonReply {
    guild.read(|state| {
        if wanted == "@me" {
            return Ok(Json(payload::own_user(state.user(bot)?)));
        }
        let id = wanted.parse().map_err(|_| Refusal::UnknownUser)?;
        Ok(Json(payload::user(state.user(id)?)))
    })
}

async fn rename(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(wanted): At<String>,
    payload: Payload,
) -> JsonReply {
    if wanted != "@me" {
        return Err(Refusal::MethodNotAllowed);
    }
    guild.change(|draft| {
        let mut user = draft.state.user(bot)?.clone();
        if payload.text("username").is_some() {
            let name = payload.name("username", 32)?;
            if draft.state.users.values().any(|it| it.id != bot && it.name == name) {
                let text = "Username is already taken.";
                return Err(Refusal::invalid("username", "USERNAME_ALREADY_TAKEN", text));
            }
            user.name = name;
            draft.put(Change::User(user));
        }
        Ok(())
    })?;
    guild.read(|state| Ok(Json(payload::own_user(state.user(bot)?))))
}

async fn own_guilds(State(guild): GuildState, Bot(bot): Bot) -> JsonReply {
    guild.read(|state| {
        if !state.user(bot)?.member {
            return Ok(Json(json!([])));
        }
        let meta = state.meta()?;
        Ok(Json(json!([{
            "id": meta.id, "name": meta.name, "icon": null, "banner": null, "owner": false,
            "permissions": state.rights(bot, None).to_string(), "features": [],
            "approximate_member_count": state.members().count(), "approximate_presence_count": 1,
        }])))
    })
}

/// Takes a bot into the guild with a role of its own that carries these rights; one that is inside
/// gets the rights. Shared with the local side, where people open invite links.
pub(crate) fn join(draft: &mut Draft<'_>, bot: Id, permissions: u64) -> Result<(), Refusal> {
    let mut user = draft.state.user(bot)?.clone();
    if !user.bot {
        return Err(Refusal::UnknownApplication);
    }
    let own = draft.state.roles.values().find(|role| role.managed == Some(bot));
    if let Some(own) = own.cloned() {
        let id = own.id;
        draft.put(Change::Role(Role { permissions, ..own }));
        draft.tell(Event::RoleUpdate(id));
        return Ok(());
    }
    let role = Role {
        id: draft.id(),
        name: user.display.clone(),
        color: 0,
        position: 1,
        mentionable: false,
        hoist: false,
        permissions,
        managed: Some(bot),
    };
    let new = !user.member;
    user.member = true;
    user.roles.push(role.id);
    roles::insert(draft, role);
    draft.put(Change::User(user));
    draft.tell(if new { Event::MemberAdd(bot) } else { Event::MemberUpdate(bot) });
    if new {
        draft.tell(Event::Joined(bot));
    }
    Ok(())
}

/// Takes a bot out of the guild, with the role that came with it. Shared with the local side.
pub(crate) fn part(draft: &mut Draft<'_>, bot: Id) -> Result<(), Refusal> {
    let mut user = draft.state.user(bot)?.clone();
    let own = draft.state.roles.values().find(|role| role.managed == Some(bot)).map(|it| it.id);
    user.member = false;
    user.nick = None;
    user.roles.clear();
    draft.put(Change::User(user));
    draft.tell(Event::Left(bot));
    draft.tell(Event::MemberRemove(bot));
    if let Some(role) = own {
        draft.put(Change::RoleGone(role));
        draft.tell(Event::RoleDelete(role));
    }
    Ok(())
}

async fn leave(State(guild): GuildState, Bot(bot): Bot, At(id): At<Id>) -> EmptyReply {
    guild.change(|draft| {
        draft.state.check_member(id, bot)?;
        part(draft, bot)?;
        Ok(StatusCode::NO_CONTENT)
    })
}
