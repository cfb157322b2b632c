//! REST v10, one file a kind of thing.

pub(crate) mod applications;
pub(crate) mod body;
pub(crate) mod channels;
mod commands;
mod guilds;
pub(crate) mod interactions;
pub(crate) mod messages;
pub(crate) mod reactions;
pub(crate) mod roles;
pub(crate) mod threads;
mod webhooks;

use std::sync::Arc;

use axum::Router;

use super::error::Refusal;
use super::guild::Guild;

/// Every route, to be mounted under each version of the base path.
pub(crate) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .merge(guilds::routes())
        .merge(applications::routes())
        .merge(roles::routes())
        .merge(channels::routes())
        .merge(messages::routes())
        .merge(reactions::routes())
        .merge(threads::routes())
        .merge(webhooks::routes())
        .merge(commands::routes())
        .merge(interactions::routes())
        .fallback(|| async { Refusal::NotFound })
        .method_not_allowed_fallback(|| async { Refusal::MethodNotAllowed })
}
