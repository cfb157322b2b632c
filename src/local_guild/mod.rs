//! A Discord-protocol server on loopback (REST v10 and Gateway v10, `spec/discord.md` 6), with a web
//! page where a person chats with the team. It is the default home of the team and the test bed.
//!
//! The way of a request: `page::guard` → `faults::layer` → a handler in `rest` or `local` →
//! `Guild::change` (durable in `log`, then in force in `state`, then told) → `session` → `gateway`
//! for bots and `feed` for the page.

mod admin;
mod authorize;
mod caller;
mod compose;
mod error;
mod event;
mod faults;
mod feed;
mod gateway;
mod gateway_requests;
mod guild;
mod ids;
mod limits;
mod log;
mod model;
mod page;
mod payload;
mod people;
mod permission;
mod person_interactions;
mod rest;
mod right;
mod seed;
mod session;
mod state;
mod upload;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use caller::PAGE_KEY;
pub use error::GuildError;
pub use seed::{Account, GuildInfo};

use crate::platform::tasks;
use guild::Guild;

/// Bytes of the largest request.
const LARGEST_REQUEST: usize = 26 * 1024 * 1024;

/// How long requests may take to finish once the end has come.
const PATIENCE: Duration = Duration::from_secs(3);

/// How a guild is to be served.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The port on 127.0.0.1; zero takes a free one.
    pub port: u16,
    /// Where to keep everything; without it, nothing outlives the process.
    pub dir: Option<PathBuf>,
    /// The address of the gateway that clients are told, where they reach it through something in between;
    /// such as `ws://127.0.0.1:3000`.
    pub gateway_url: Option<String>,
}

/// A guild that is being served.
#[derive(Debug)]
pub struct Running {
    /// Where it is and who is in it.
    pub info: GuildInfo,
    guild: Arc<Guild>,
    server: JoinHandle<()>,
}

impl Running {
    /// Ends every connection and the server. What was answered is durable already.
    pub async fn shutdown(self) {
        self.guild.closing.cancel();
        if let Err(error) = self.server.await {
            tracing::warn!(%error, "the local guild's server did not end well");
        }
        self.guild.close();
    }
}

/// Opens the guild and serves it in the background.
///
/// # Errors
///
/// When the port is taken, or the folder is damaged, in use or not writable.
pub async fn serve(config: Config) -> Result<Running, GuildError> {
    let listen = |source| GuildError::Listen { port: config.port, source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, config.port)).await.map_err(listen)?;
    let port = listener.local_addr().map_err(listen)?.port();
    let guild = Arc::new(Guild::open(config.dir.as_deref(), port, config.gateway_url)?);
    let refused = |error: error::Refusal| GuildError::Log(std::io::Error::other(error));
    seed::fill(&guild).map_err(refused)?;
    let info = seed::info(&guild).map_err(refused)?;
    let router = router(&guild);
    let closing = guild.closing.clone();
    let server = tasks::spawn("local-guild", async move {
        // Small frames and answers go at once; otherwise each may wait 40 ms for the last one's receipt.
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection answers in larger pieces");
            }
        });
        let ended = closing.clone().cancelled_owned();
        let serving = axum::serve(listener, router).with_graceful_shutdown(ended);
        let serving = async { serving.await };
        // Requests under way are finished, but a client that stalls cannot hold the end up.
        let patience = async {
            closing.cancelled().await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            result = serving => {
                if let Err(error) = result {
                    tracing::error!(%error, "the local guild's server ended");
                }
            }
            () = patience => tracing::warn!("a client kept its request open at the end"),
        }
    });
    Ok(Running { info, guild, server })
}

fn router(guild: &Arc<Guild>) -> Router {
    let api = rest::routes();
    Router::new()
        .nest("/api/v10", api.clone())
        .nest("/api/v9", api.clone())
        .nest("/api", api)
        .nest(
            "/_local",
            people::routes().merge(person_interactions::routes()).merge(admin::routes()),
        )
        .merge(authorize::routes())
        .merge(page::routes())
        .layer(from_fn_with_state(Arc::clone(guild), faults::layer))
        .layer(from_fn(page::guard))
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .with_state(Arc::clone(guild))
}
