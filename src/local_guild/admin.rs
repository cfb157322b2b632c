//! The operator's side: what a guild's owner does to a bot, and what the developer portal does for
//! one, so that every state that a bot can meet can be made. Under `/_local`, as the people's side.
//!
//! | path | JSON sent | answer |
//! |---|---|---|
//! | `GET info` | | where everything is and who is in it, tokens included: `GuildInfo` |
//! | `POST bot` | `name, [display]` | a new application outside the guild: `id, token, invite` |
//! | `POST person` | `name, [display]` | a new person in the guild: `id, token` |
//! | `POST invite` | `bot, [permissions]` | 204; the bot is in the guild |
//! | `POST kick` | `bot` | 204 |
//! | `POST rights` | `bot, [give, take, channel]`; rights by name or as bits | `permissions` there |
//! | `POST flags` | `bot, flags` | the application's flags |
//! | `POST remove` | one of `channel`, `role`, `webhook` | 204 |
//!
//! `bot` is a name or an id. A new application may not ask for privileged intents yet (`flags` 0).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::authorize::invite_link;
use super::caller::Caller;
use super::error::{JsonReply, Refusal};
use super::event::Event;
use super::guild::{Draft, Guild, GuildState};
use super::ids::Id;
use super::model::{Overwrite, User};
use super::people::channel;
use super::permission::{NAMES, bits};
use super::rest::body::Payload;
use super::rest::{applications, channels, roles};
use super::right;
use super::seed::{self, GuildInfo, token};
use super::state::{Change, State as World};

/// The routes of the operator, below `/_local`.
pub(crate) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/info", get(info))
        .route("/bot", post(create))
        .route("/person", post(person))
        .route("/invite", post(invite))
        .route("/kick", post(kick))
        .route("/rights", post(rights))
        .route("/flags", post(flags))
        .route("/remove", post(remove))
}

/// The bot of that name or id.
pub(crate) fn bot<'a>(world: &'a World, named: &str) -> Result<&'a User, Refusal> {
    let mut bots = world.users.values().filter(|user| user.bot);
    bots.find(|user| user.name == named || user.id.to_string() == named).ok_or(Refusal::UnknownUser)
}

fn meant(world: &World, payload: &Payload) -> Result<Id, Refusal> {
    bot(world, &payload.name("bot", 40)?).map(|user| user.id)
}

/// Rights as bits, or as a list of names.
fn rights_of(payload: &Payload, field: &str) -> Result<u64, Refusal> {
    let bad = || Refusal::invalid(field, "BASE_TYPE_BAD", "Bits or names of rights are expected.");
    match payload.get(field) {
        None | Some(Value::Null) => Ok(0),
        Some(Value::Array(names)) => names.iter().try_fold(0, |sum, name| {
            let found = NAMES.iter().find(|(known, _)| name == known);
            found.map(|(_, bit)| sum | bit).ok_or_else(bad)
        }),
        Some(value) => bits(value).ok_or_else(bad),
    }
}

/// For `teams setup --local`, which then needs no token from a person.
async fn info(State(guild): GuildState, _caller: Caller) -> Result<Json<GuildInfo>, Refusal> {
    seed::info(&guild).map(Json)
}

/// A new account, not yet put. Its name is its own; the one that people see may be anybody's.
fn account(draft: &mut Draft<'_>, payload: &Payload, bot: bool) -> Result<User, Refusal> {
    let name = payload.name("name", 32)?;
    if draft.state.users.values().any(|user| user.name == name) {
        return Err(Refusal::invalid("name", "USERNAME_ALREADY_TAKEN", "Take another name."));
    }
    let id = draft.id();
    Ok(User::new(id, &name, payload.text("display").unwrap_or(&name), bot, token(id)))
}

async fn person(State(guild): GuildState, _operator: Caller, payload: Payload) -> JsonReply {
    let user = guild.change(|draft| {
        let user = account(draft, &payload, false)?;
        draft.put(Change::User(user.clone()));
        draft.tell(Event::MemberAdd(user.id));
        Ok(user)
    })?;
    Ok(Json(json!({"id": user.id, "token": user.token})))
}

async fn create(State(guild): GuildState, _operator: Caller, payload: Payload) -> JsonReply {
    let user = guild.change(|draft| {
        let mut user = account(draft, &payload, true)?;
        user.member = false;
        user.application.flags = 0;
        draft.put(Change::User(user.clone()));
        Ok(user)
    })?;
    let invite = invite_link(&guild.base, user.id, None);
    Ok(Json(json!({"id": user.id, "token": user.token, "invite": invite})))
}

async fn invite(
    State(guild): GuildState,
    _operator: Caller,
    payload: Payload,
) -> Result<StatusCode, Refusal> {
    let permissions = rights_of(&payload, "permissions")?;
    guild.change(|draft| {
        let bot = meant(draft.state, &payload)?;
        applications::join(draft, bot, permissions)?;
        Ok(StatusCode::NO_CONTENT)
    })
}

async fn kick(
    State(guild): GuildState,
    _operator: Caller,
    payload: Payload,
) -> Result<StatusCode, Refusal> {
    guild.change(|draft| {
        let bot = meant(draft.state, &payload)?;
        applications::part(draft, bot)?;
        Ok(StatusCode::NO_CONTENT)
    })
}

/// Guild-wide: from the bot's roles, and from everyone where that is where the bot has it from.
fn change_roles(draft: &mut Draft<'_>, bot: Id, give: u64, take: u64) -> Result<(), Refusal> {
    let world = draft.state;
    let own = world.user(bot)?.roles.clone();
    let everyone = world.meta()?.id;
    for id in own.iter().chain([&everyone]) {
        let mut role = world.role(*id)?.clone();
        let before = role.permissions;
        role.permissions &= !take;
        if own.first() == Some(id) {
            role.permissions |= give;
        }
        if role.permissions != before {
            draft.put(Change::Role(role));
            draft.tell(Event::RoleUpdate(*id));
        }
    }
    Ok(())
}

/// In one channel: by an overwrite for the bot itself.
fn change_channel(
    draft: &mut Draft<'_>,
    bot: Id,
    place: Id,
    (give, take): (u64, u64),
) -> Result<(), Refusal> {
    let mut place = draft.state.channel(place)?.clone();
    if !place.is_listed() {
        return Err(Refusal::WrongChannelType);
    }
    let before = place.overwrites.iter().find(|it| it.id == bot).copied();
    let before = before.unwrap_or(Overwrite { id: bot, member: true, allow: 0, deny: 0 });
    place.overwrites.retain(|it| it.id != bot);
    place.overwrites.push(Overwrite {
        allow: before.allow & !take | give,
        deny: before.deny & !give | take,
        ..before
    });
    draft.put_channel(place);
    Ok(())
}

async fn rights(State(guild): GuildState, _operator: Caller, payload: Payload) -> JsonReply {
    let (give, take) = (rights_of(&payload, "give")?, rights_of(&payload, "take")?);
    let (bot, place) = guild.change(|draft| {
        let bot = meant(draft.state, &payload)?;
        let place = payload.text("channel").map(|named| channel(draft.state, named)).transpose()?;
        match place {
            Some(place) => change_channel(draft, bot, place, (give, take))?,
            None => change_roles(draft, bot, give, take)?,
        }
        Ok((bot, place))
    })?;
    guild.read(|state| {
        let place = place.map(|id| state.channel(id)).transpose()?;
        let held = state.rights(bot, place) & right::ALL;
        Ok(Json(json!({"permissions": held.to_string()})))
    })
}

async fn flags(State(guild): GuildState, _operator: Caller, payload: Payload) -> JsonReply {
    let flags = rights_of(&payload, "flags")?;
    guild.change(|draft| {
        let mut user = draft.state.user(meant(draft.state, &payload)?)?.clone();
        user.application.flags = flags;
        draft.put(Change::User(user));
        Ok(Json(json!({"flags": flags})))
    })
}

async fn remove(
    State(guild): GuildState,
    _operator: Caller,
    payload: Payload,
) -> Result<StatusCode, Refusal> {
    let id = |field: &str| payload.text(field).and_then(|text| text.parse::<Id>().ok());
    if let Some(named) = payload.text("channel") {
        let place = guild.read(|state| channel(state, named))?;
        let shown =
            guild.render(None, |render| Ok(render.channel(render.state.channel(place)?)))?;
        guild.change(|draft| channels::discard(draft, place, shown))?;
    } else if let Some(role) = id("role") {
        guild.change(|draft| {
            draft.state.role(role)?;
            roles::discard(draft, role);
            Ok(())
        })?;
    } else if let Some(hook) = id("webhook") {
        guild.change(|draft| {
            let place = draft.state.webhook(hook)?.channel;
            draft.put(Change::WebhookGone(hook));
            draft.tell(Event::Webhooks { channel: place });
            Ok(())
        })?;
    } else {
        let text = "A channel, role or webhook is expected.";
        return Err(Refusal::invalid("body", "BASE_TYPE_REQUIRED", text));
    }
    Ok(StatusCode::NO_CONTENT)
}
