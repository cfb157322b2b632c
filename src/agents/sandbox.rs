//! What confines an agent, what it may write, and its way out.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use crate::domain::config::Sandbox;

/// The port of a sandbox's own loopback on which the team's proxy is.
pub(super) const PROXY_PORT: u16 = 7_414;
/// The environment variable that tells an agent's tools where the team listens for its run.
pub const RUN_SOCKET: &str = "TEAMS_RUN_SOCKET";

/// What the agent may write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteAccess {
    /// Nothing.
    ReadOnly,
    /// The worktree.
    Worktree,
    /// A folder of documents; the worktree is for reading.
    Documents(PathBuf),
}

/// The team's proxy for one run: where it is, and the word that opens it. Models are reached through it, and of
/// the rest of the network what the role's policy opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyAddress {
    /// Its socket.
    pub socket: PathBuf,
    /// Its port on the loopback of this machine, for an agent without a network of its own.
    pub port: Option<u16>,
    /// The run's own token; worth nothing elsewhere, and nothing later.
    pub token: String,
    /// Whether more than models can be reached through it.
    pub leads_out: bool,
    /// The file whose time changes when something comes through it to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<PathBuf>,
}

impl ProxyAddress {
    /// The address of a model server behind it, for an agent within or without a network of its own.
    #[must_use]
    pub fn url(&self, server: &str) -> String {
        format!("http://127.0.0.1:{}/{server}", self.port_within())
    }

    /// The proxy that leads out, with the word that opens it.
    #[must_use]
    pub fn proxy_url(&self) -> String {
        format!("http://run:{}@127.0.0.1:{}", self.token, self.port_within())
    }

    fn port_within(&self) -> u16 {
        self.port.unwrap_or(PROXY_PORT)
    }
}
