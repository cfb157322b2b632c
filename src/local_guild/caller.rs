//! Who speaks to the local side.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::error::Refusal;
use super::guild::Guild;
use super::ids::Id;
use super::state::State as World;
use crate::platform::transport::digest;

/// Who is let in: a person by token, or the page by its key, which speaks for everyone.
pub(crate) struct Caller(Option<Id>);

impl FromRequestParts<Arc<Guild>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, guild: &Arc<Guild>) -> Result<Caller, Refusal> {
        if let Some(token) = header(&parts.headers, "authorization") {
            return guild
                .read(|state| state.user_by_token(token).filter(|it| !it.bot).map(|it| it.id))
                .map(|id| Caller(Some(id)))
                .ok_or(Refusal::Unauthorized);
        }
        // The layer in front has let in loopback origins only; here it must be our own.
        let host = header(&parts.headers, "host").unwrap_or_default();
        let origin = header(&parts.headers, "origin");
        let own = origin.is_some_and(|it| it.strip_prefix("http://") == Some(host));
        let fetched = header(&parts.headers, "sec-fetch-site") == Some("same-origin");
        let has_key = || guild.read(|state| has_key(state, parts));
        if (own || origin.is_none() && fetched) && has_key() {
            Ok(Caller(None))
        } else {
            Err(Refusal::Unauthorized)
        }
    }
}

/// What the page is opened with. Programs of this machine reach the server as well as a browser does, and say of
/// themselves what they like; only whoever was told the address has the key. It stays as it is over restarts.
pub(crate) fn key(world: &World) -> Result<String, Refusal> {
    let owner = world.users.get(&world.meta()?.owner).ok_or(Refusal::UnknownUser)?;
    Ok(digest(format!("page {}", owner.token).as_bytes())[..32].to_owned())
}

/// The header by which the page shows its key. It keeps it where the browser keeps what is of its address and port alone:
/// cookies go to every program of this machine that a browser talks to.
pub const PAGE_KEY: &str = "x-page-key";

/// Where events are followed a browser sends no headers, and the key stands in the query.
fn has_key(world: &World, parts: &Parts) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    let in_query = query.split('&').find_map(|it| it.strip_prefix("key="));
    let said = header(&parts.headers, PAGE_KEY).or(in_query).unwrap_or_default();
    key(world).is_ok_and(|key| key == said)
}

pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

impl Caller {
    /// The person in whose name this is done, given by name or id.
    pub(crate) fn person(&self, world: &World, named: Option<&str>) -> Result<Id, Refusal> {
        let user = match (named, self.0) {
            (None, Some(id)) => return Ok(id),
            (None, None) => return Err(Refusal::UnknownUser),
            (Some(name), _) => world
                .users
                .values()
                .find(|user| user.name == name || user.id.to_string() == name)
                .ok_or(Refusal::UnknownUser)?,
        };
        // Bots speak over REST.
        if user.bot || self.0.is_some_and(|id| id != user.id) {
            return Err(Refusal::MissingAccess);
        }
        Ok(user.id)
    }
}
