//! Roles: making, changing, removing, ordering; and who has them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::EmptyReply;
use super::body::{At, Bot, Payload};
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Draft, Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::model::Role;
use crate::local_guild::payload;
use crate::local_guild::permission::bits;
use crate::local_guild::right;
use crate::local_guild::state::{Change, State as World};

/// Roles in one guild.
const MOST: usize = 250;

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/guilds/{guild}/roles", get(list).post(create).patch(reorder))
        .route("/guilds/{guild}/roles/member-counts", get(counts))
        .route("/guilds/{guild}/roles/{role}", get(one).patch(change).delete(remove))
        .route("/guilds/{guild}/members/{user}/roles/{role}", put(give).delete(take))
}

async fn list(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
) -> Result<Json<Vec<Value>>, Refusal> {
    guild.read(|state| {
        state.check_member(id, bot)?;
        Ok(Json(state.roles.values().map(payload::role).collect()))
    })
}

async fn counts(State(guild): GuildState, Bot(bot): Bot, At(id): At<Id>) -> JsonReply {
    guild.read(|state| {
        state.check_member(id, bot)?;
        let held = |role: Id| state.members().filter(|it| it.roles.contains(&role)).count();
        let counted = state.roles.keys().filter(|role| **role != id);
        let counted = counted.map(|role| (role.to_string(), json!(held(*role))));
        Ok(Json(Value::Object(counted.collect())))
    })
}

async fn one(State(guild): GuildState, Bot(bot): Bot, At((id, role)): At<(Id, Id)>) -> JsonReply {
    guild.read(|state| {
        state.check_member(id, bot)?;
        Ok(Json(payload::role(state.role(role)?)))
    })
}

/// Reads what a client sent into a role. Nobody gives rights they do not hold.
fn fill(role: &mut Role, payload: &Payload, held: u64) -> Result<(), Refusal> {
    if payload.text("name").is_some() {
        role.name = payload.name("name", 100)?;
    }
    let main = payload.get("colors").map(|it| &it["primary_color"]);
    let color = main.and_then(Value::as_u64).or(payload.get("color").and_then(Value::as_u64));
    if let Some(color) = color {
        let bad = || Refusal::invalid("color", "NUMBER_TYPE_MAX", "Must be at most 16777215.");
        role.color = u32::try_from(color).ok().filter(|it| *it <= 0xFF_FFFF).ok_or_else(bad)?;
    }
    role.hoist = payload.get("hoist").and_then(Value::as_bool).unwrap_or(role.hoist);
    let mentionable = payload.get("mentionable").and_then(Value::as_bool);
    role.mentionable = mentionable.unwrap_or(role.mentionable);
    if let Some(sent) = payload.get("permissions").filter(|it| !it.is_null()) {
        let bad = || Refusal::invalid("permissions", "NUMBER_TYPE_COERCE", "Not a number.");
        let wanted = bits(sent).ok_or_else(bad)?;
        if wanted & !role.permissions & !held != 0 {
            return Err(Refusal::MissingPermissions);
        }
        role.permissions = wanted;
    }
    Ok(())
}

/// A new role stands lowest, so that whoever makes it stands above; the others move up. Shared with
/// the local side.
pub(crate) fn insert(draft: &mut Draft<'_>, role: Role) {
    let mut raised: Vec<Role> =
        draft.state.roles.values().filter(|it| it.position >= role.position).cloned().collect();
    for other in &mut raised {
        other.position += 1;
    }
    let id = role.id;
    draft.put(Change::Role(role));
    draft.tell(Event::RoleCreate(id));
    for other in raised {
        let id = other.id;
        draft.put(Change::Role(other));
        draft.tell(Event::RoleUpdate(id));
    }
}

async fn create(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    payload: Payload,
) -> JsonReply {
    let made = guild.change(|draft| {
        draft.state.may_in_guild(bot, id, right::MANAGE_ROLES)?;
        if draft.state.roles.len() >= MOST {
            return Err(Refusal::TooManyRoles);
        }
        let everyone = draft.state.roles.get(&id).map_or(0, |role| role.permissions);
        let held = draft.state.rights(bot, None);
        let mut role = Role {
            id: draft.id(),
            name: "new role".to_owned(),
            color: 0,
            position: 1,
            mentionable: false,
            hoist: false,
            permissions: everyone,
            managed: None,
        };
        fill(&mut role, &payload, held)?;
        let made = role.id;
        insert(draft, role);
        Ok(made)
    })?;
    guild.read(|state| Ok(Json(payload::role(state.role(made)?))))
}

/// A role below the bot's own highest.
fn below(world: &World, bot: Id, role: Id) -> Result<Role, Refusal> {
    let found = world.role(role)?;
    if found.position < world.rank(bot) {
        Ok(found.clone())
    } else {
        Err(Refusal::MissingPermissions)
    }
}

async fn change(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((id, role)): At<(Id, Id)>,
    payload: Payload,
) -> JsonReply {
    guild.change(|draft| {
        draft.state.may_in_guild(bot, id, right::MANAGE_ROLES)?;
        let mut found = below(draft.state, bot, role)?;
        fill(&mut found, &payload, draft.state.rights(bot, None))?;
        draft.put(Change::Role(found));
        draft.tell(Event::RoleUpdate(role));
        Ok(())
    })?;
    guild.read(|state| Ok(Json(payload::role(state.role(role)?))))
}

#[derive(Deserialize)]
struct NewPosition {
    id: Id,
    position: Option<u32>,
}

async fn reorder(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    payload: Payload,
) -> Result<Json<Vec<Value>>, Refusal> {
    let moved: Vec<NewPosition> = payload.read()?;
    guild.change(|draft| {
        draft.state.may_in_guild(bot, id, right::MANAGE_ROLES)?;
        for one in moved {
            let mut role = below(draft.state, bot, one.id)?;
            let wanted = one.position.unwrap_or(role.position);
            // Below everyone's role and above one's own there is no place.
            if one.id == id || wanted == 0 || wanted >= draft.state.rank(bot) {
                return Err(Refusal::MissingPermissions);
            }
            role.position = wanted;
            draft.put(Change::Role(role));
            draft.tell(Event::RoleUpdate(one.id));
        }
        Ok(())
    })?;
    guild.read(|state| Ok(Json(state.roles.values().map(payload::role).collect())))
}

/// Removes a role from the guild and from whoever has it. Shared with the local side.
pub(crate) fn discard(draft: &mut Draft<'_>, role: Id) {
    let holders: Vec<Id> = draft
        .state
        .members()
        .filter(|user| user.roles.contains(&role))
        .map(|user| user.id)
        .collect();
    draft.put(Change::RoleGone(role));
    draft.tell(Event::RoleDelete(role));
    for holder in holders {
        draft.tell(Event::MemberUpdate(holder));
    }
}

async fn remove(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((id, role)): At<(Id, Id)>,
) -> EmptyReply {
    guild.change(|draft| {
        draft.state.may_in_guild(bot, id, right::MANAGE_ROLES)?;
        let found = below(draft.state, bot, role)?;
        if found.managed.is_some() || role == id {
            return Err(Refusal::InvalidRole);
        }
        discard(draft, role);
        Ok(StatusCode::NO_CONTENT)
    })
}

/// Gives a member a role, or takes it.
fn set(guild: &Guild, bot: Id, (id, user, role): (Id, Id, Id), given: bool) -> EmptyReply {
    guild.change(|draft| {
        draft.state.may_in_guild(bot, id, right::MANAGE_ROLES)?;
        let found = below(draft.state, bot, role)?;
        if found.managed.is_some() || role == id {
            return Err(Refusal::InvalidRole);
        }
        let member = draft.state.members().find(|it| it.id == user);
        let mut member = member.ok_or(Refusal::UnknownMember)?.clone();
        if member.roles.contains(&role) != given {
            member.roles.retain(|it| *it != role);
            if given {
                member.roles.push(role);
            }
            draft.put(Change::User(member));
            draft.tell(Event::MemberUpdate(user));
        }
        Ok(StatusCode::NO_CONTENT)
    })
}

async fn give(State(guild): GuildState, Bot(bot): Bot, At(at): At<(Id, Id, Id)>) -> EmptyReply {
    set(&guild, bot, at, true)
}

async fn take(State(guild): GuildState, Bot(bot): Bot, At(at): At<(Id, Id, Id)>) -> EmptyReply {
    set(&guild, bot, at, false)
}
