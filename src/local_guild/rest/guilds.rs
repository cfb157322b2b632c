//! The guild, its members and roles, users, applications, and where the gateway is.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::body::{Asked, At, Bot};
use crate::local_guild::error::Refusal;
use crate::local_guild::guild::Guild;
use crate::local_guild::ids::Id;
use crate::local_guild::payload;

/// The routes of this file.
pub(super) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/gateway", get(gateway))
        .route("/gateway/bot", get(gateway_bot))
        .route("/users/{user}", get(user))
        .route("/users/@me/guilds", get(own_guilds))
        .route("/oauth2/applications/@me", get(application))
        .route("/applications/@me", get(application))
        .route("/guilds/{guild}", get(guild))
        .route("/guilds/{guild}/roles", get(roles))
        .route("/guilds/{guild}/members", get(members))
        .route("/guilds/{guild}/members/search", get(search))
        .route("/guilds/{guild}/members/{user}", get(member))
        .route("/guilds/{guild}/emojis", get(|| async { Json(json!([])) }))
}

async fn gateway(State(guild): State<Arc<Guild>>) -> Json<Value> {
    Json(json!({"url": guild.gateway}))
}

async fn gateway_bot(State(guild): State<Arc<Guild>>, Bot(_): Bot) -> Json<Value> {
    Json(json!({
        "url": guild.gateway, "shards": 1,
        "session_start_limit":
            {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1},
    }))
}

async fn user(
    State(guild): State<Arc<Guild>>,
    Bot(bot): Bot,
    At(wanted): At<String>,
) -> Result<Json<Value>, Refusal> {
    guild.read(|state| {
        if wanted == "@me" {
            return Ok(Json(payload::own_user(state.user(bot)?)));
        }
        let id = wanted.parse().map_err(|_| Refusal::UnknownUser)?;
        Ok(Json(payload::user(state.user(id)?)))
    })
}

async fn own_guilds(State(guild): State<Arc<Guild>>, Bot(_): Bot) -> Result<Json<Value>, Refusal> {
    guild.read(|state| {
        let meta = state.meta()?;
        Ok(Json(json!([{
            "id": meta.id, "name": meta.name, "icon": null, "banner": null, "owner": false,
            "permissions": "2251799813685247", "features": [],
            "approximate_member_count": state.users.len(), "approximate_presence_count": 1,
        }])))
    })
}

async fn application(
    State(guild): State<Arc<Guild>>,
    Bot(bot): Bot,
) -> Result<Json<Value>, Refusal> {
    guild.read(|state| {
        let owner = state.meta().ok().and_then(|meta| state.users.get(&meta.owner));
        Ok(Json(payload::application(state.user(bot)?, owner)))
    })
}

async fn guild(
    State(guild): State<Arc<Guild>>,
    Bot(_): Bot,
    At(id): At<Id>,
    asked: Asked,
) -> Result<Json<Value>, Refusal> {
    guild.render(None, |render| {
        render.state.check_guild(id)?;
        let mut value = render.guild();
        if asked.yes("with_counts") {
            value["approximate_member_count"] = json!(render.state.users.len());
            value["approximate_presence_count"] = json!(1);
        }
        Ok(Json(value))
    })
}

async fn roles(
    State(guild): State<Arc<Guild>>,
    Bot(_): Bot,
    At(id): At<Id>,
) -> Result<Json<Vec<Value>>, Refusal> {
    guild.read(|state| {
        state.check_guild(id)?;
        Ok(Json(state.roles.values().map(payload::role).collect()))
    })
}

async fn members(
    State(guild): State<Arc<Guild>>,
    Bot(_): Bot,
    At(id): At<Id>,
    asked: Asked,
) -> Result<Json<Vec<Value>>, Refusal> {
    let limit = asked.count("limit", 1, 1000);
    let after = asked.id("after")?;
    guild.render(None, |render| {
        render.state.check_guild(id)?;
        let users = render.state.users.values().filter(|it| after.is_none_or(|id| it.id > id));
        Ok(Json(users.take(limit).map(|it| render.member(it, true)).collect()))
    })
}

async fn search(
    State(guild): State<Arc<Guild>>,
    Bot(_): Bot,
    At(id): At<Id>,
    asked: Asked,
) -> Result<Json<Vec<Value>>, Refusal> {
    let limit = asked.count("limit", 1, 1000);
    let query = asked.text("query").unwrap_or_default().to_lowercase();
    guild.render(None, |render| {
        render.state.check_guild(id)?;
        let users = render.state.users.values().filter(|it| it.name.starts_with(&query));
        Ok(Json(users.take(limit).map(|it| render.member(it, true)).collect()))
    })
}

async fn member(
    State(guild): State<Arc<Guild>>,
    Bot(bot): Bot,
    At((id, user)): At<(Id, String)>,
) -> Result<Json<Value>, Refusal> {
    let user =
        if user == "@me" { bot } else { user.parse().map_err(|_| Refusal::UnknownMember)? };
    guild.render(None, |render| {
        render.state.check_guild(id)?;
        let found = render.state.users.get(&user).ok_or(Refusal::UnknownMember)?;
        Ok(Json(render.member(found, true)))
    })
}
