//! The guild, its members, and where the gateway is.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::body::{At, Bot, Payload, QueryParameters};
use crate::local_guild::error::{JsonReply, Refusal};
use crate::local_guild::event::Event;
use crate::local_guild::guild::{Guild, GuildState};
use crate::local_guild::ids::Id;
use crate::local_guild::model::MEMBERS_LIMITED;
use crate::local_guild::right;
use crate::local_guild::session::{MAX_CONCURRENCY, STARTS};
use crate::local_guild::state::{Change, State as World};

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/gateway", get(gateway))
        .route("/gateway/bot", get(gateway_bot))
        .route("/guilds/{guild}", get(guild))
        .route("/guilds/{guild}/members", get(members))
        .route("/guilds/{guild}/members/search", get(search))
        .route("/guilds/{guild}/members/{user}", get(member).patch(change))
        .route("/guilds/{guild}/emojis", get(nothing))
        .route("/guilds/{guild}/stickers", get(nothing))
}

async fn gateway(State(guild): GuildState) -> Json<Value> {
    Json(json!({"url": guild.gateway}))
}

async fn gateway_bot(State(guild): GuildState, Bot(bot): Bot) -> Json<Value> {
    let (left, day) = guild.sessions.starts_left(bot);
    let left = guild.faults.logins_left(left);
    // Milliseconds until the count starts anew; before it has begun there is nothing to wait for.
    let reset_after = if left == STARTS { 0 } else { day.as_millis() };
    Json(json!({
        "url": guild.gateway, "shards": 1,
        "session_start_limit":
            {"total": STARTS, "remaining": left, "reset_after": reset_after, "max_concurrency": MAX_CONCURRENCY},
    }))
}

async fn guild(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    asked: QueryParameters,
) -> JsonReply {
    guild.render(None, |render| {
        render.state.check_member(id, bot)?;
        let mut value = render.guild();
        if asked.yes("with_counts") {
            value["approximate_member_count"] = json!(render.state.members().count());
            value["approximate_presence_count"] = json!(1);
        }
        Ok(Json(value))
    })
}

/// The list of members is for applications with the members intent.
fn may_list(state: &World, guild: Id, bot: Id) -> Result<(), Refusal> {
    state.check_member(guild, bot)?;
    let flags = state.user(bot)?.application.flags;
    if flags & (MEMBERS_LIMITED | MEMBERS_LIMITED >> 1) == 0 {
        return Err(Refusal::MissingAccess);
    }
    Ok(())
}

async fn members(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    asked: QueryParameters,
) -> Result<Json<Vec<Value>>, Refusal> {
    let limit = asked.count("limit", 1, 1000)?;
    let after = asked.id("after")?;
    guild.render(None, |render| {
        may_list(render.state, id, bot)?;
        let users = render.state.members().filter(|it| after.is_none_or(|id| it.id > id));
        Ok(Json(users.take(limit).map(|it| render.member(it, true)).collect()))
    })
}

async fn search(
    State(guild): GuildState,
    Bot(bot): Bot,
    At(id): At<Id>,
    asked: QueryParameters,
) -> Result<Json<Vec<Value>>, Refusal> {
    let limit = asked.count("limit", 1, 1000)?;
    let query = asked.text("query").unwrap_or_default().to_lowercase();
    guild.render(None, |render| {
        render.state.check_member(id, bot)?;
        let users = render.state.members().filter(|it| it.name.starts_with(&query));
        Ok(Json(users.take(limit).map(|it| render.member(it, true)).collect()))
    })
}

async fn member(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((id, user)): At<(Id, String)>,
) -> JsonReply {
    let user =
        if user == "@me" { bot } else { user.parse().map_err(|_| Refusal::UnknownMember)? };
    guild.render(None, |render| {
        render.state.check_member(id, bot)?;
        let found = render.state.members().find(|it| it.id == user);
        Ok(Json(render.member(found.ok_or(Refusal::UnknownMember)?, true)))
    })
}

/// Changes a member: a bot's own nickname here, or with the right to manage roles anybody's roles.
async fn change(
    State(guild): GuildState,
    Bot(bot): Bot,
    At((id, user)): At<(Id, String)>,
    payload: Payload,
) -> JsonReply {
    let user =
        if user == "@me" { bot } else { user.parse().map_err(|_| Refusal::UnknownMember)? };
    guild.change(|draft| {
        draft.state.check_member(id, bot)?;
        let found = draft.state.members().find(|it| it.id == user);
        let mut member = found.ok_or(Refusal::UnknownMember)?.clone();
        if let Some(sent) = payload.get("nick") {
            let needed = if user == bot { right::CHANGE_NICKNAME } else { right::MANAGE_NICKNAMES };
            draft.state.may_in_guild(bot, id, needed)?;
            let nick = sent.as_str().filter(|text| !text.is_empty());
            if nick.is_some_and(|text| text.chars().count() > 32) {
                return Err(Refusal::too_long("nick", 32));
            }
            member.nick = nick.map(str::to_owned);
        }
        if let Some(sent) = payload.get("roles").filter(|it| it.is_array()) {
            draft.state.may_in_guild(bot, id, right::MANAGE_ROLES)?;
            let bad = |_| Refusal::invalid("roles", "NUMBER_TYPE_COERCE", "Ids are expected.");
            let wanted: Vec<Id> = serde_json::from_value(sent.clone()).map_err(bad)?;
            let changed = wanted.iter().filter(|it| !member.roles.contains(it));
            let changed = changed.chain(member.roles.iter().filter(|it| !wanted.contains(it)));
            for role in changed {
                let role = draft.state.role(*role)?;
                if role.managed.is_some() || role.position >= draft.state.rank(bot) {
                    return Err(Refusal::MissingPermissions);
                }
            }
            member.roles = wanted;
        }
        draft.put(Change::User(member));
        draft.tell(Event::MemberUpdate(user));
        Ok(())
    })?;
    guild.render(None, |render| Ok(Json(render.member(render.state.user(user)?, true))))
}

/// Emojis and stickers: this guild has none.
async fn nothing(State(guild): GuildState, Bot(bot): Bot, At(id): At<Id>) -> JsonReply {
    guild.read(|state| state.check_member(id, bot).map(|_| Json(json!([]))))
}
