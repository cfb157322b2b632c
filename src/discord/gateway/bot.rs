//! One bot's connection, and the session that it goes on with.

use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::sync::watch;

use super::connections::ConnectionLog;
use crate::assets::catalog::Catalog;
use crate::discord::access::Access;
use crate::discord::bot::Bot;
use crate::discord::governor::Limits;
use crate::discord::presence::Presence;
use crate::discord::rest::Rest;
use crate::discord::sessions::{SavedSession, Sessions, fingerprint};
use crate::discord::standing::Board;

/// A connection that lived this long was a good one: the next wait starts from the beginning.
pub(super) const GOOD: Duration = Duration::from_secs(60);

/// The session that a connection goes on with.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) kept: SavedSession,
    pub(super) life: u64,
}

/// One bot's connection.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    pub(crate) bot: Bot,
    pub(crate) rest: Rest,
    /// Instead of asking Discord for the address.
    pub(crate) url: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) board: Arc<Board>,
    pub(crate) connections: Arc<ConnectionLog>,
    /// The words of forms.
    pub(crate) catalog: Catalog,
    /// Who may have a form.
    pub(crate) access: Arc<dyn Access>,
    /// What the bot shows beside its name.
    pub(crate) shows: watch::Receiver<Presence>,
    /// Where calls of ours run: not beside the connections.
    pub(crate) calls: tokio::runtime::Handle,
}

impl Gateway {
    pub(super) fn fingerprint(&self) -> String {
        fingerprint(self.rest.pool().base_url(), self.rest.token().expose_secret())
    }
}
