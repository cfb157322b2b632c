//! What setup can make.

use std::fmt;

use crate::domain::role::Role;
use crate::domain::word::words;

words! {
    /// A channel with a purpose.
    pub enum TeamChannel {
        /// Where people ask. No configuration names it: the team hears in every channel.
        General = "general",
        /// Where operators see hand-offs.
        Relay = "relay",
        /// Where a start is announced.
        Startup = "startup",
        /// Where reports go.
        Report = "report",
    }
}

impl TeamChannel {
    /// The key of the configuration that names it.
    #[must_use]
    pub const fn key(self) -> Option<&'static str> {
        match self {
            TeamChannel::General => None,
            TeamChannel::Relay => Some("relay_channel_id"),
            TeamChannel::Startup => Some("startup_channel_id"),
            TeamChannel::Report => Some("report_channel_id"),
        }
    }
}

/// Something in a server that the team uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerObject {
    /// What the channels stand in.
    Category,
    /// A channel.
    Channel(TeamChannel),
    /// The server role that addresses a role of the team.
    Role(Role),
    /// The server role whose holders decide.
    Approver,
    /// The webhook that a public role speaks through.
    Hook(Role),
    /// The webhook that the internal roles share.
    SharedHook,
}

impl ServerObject {
    /// Everything, in the order in which it is made.
    pub fn all() -> impl DoubleEndedIterator<Item = ServerObject> {
        let channels = TeamChannel::ALL.into_iter().map(ServerObject::Channel);
        let roles = Role::PUBLIC.into_iter().map(ServerObject::Role);
        let hooks = Role::PUBLIC.into_iter().map(ServerObject::Hook);
        std::iter::once(ServerObject::Category)
            .chain(channels)
            .chain(roles)
            .chain([ServerObject::Approver])
            .chain(hooks)
            .chain([ServerObject::SharedHook])
    }

    /// The kind, for people and programs.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            ServerObject::Category => "category",
            ServerObject::Channel(_) => "channel",
            ServerObject::Role(_) | ServerObject::Approver => "role",
            ServerObject::Hook(_) | ServerObject::SharedHook => "webhook",
        }
    }
}

impl fmt::Display for ServerObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerObject::Category => f.write_str("category"),
            ServerObject::Channel(place) => write!(f, "channel.{}", place.as_str()),
            ServerObject::Role(role) => write!(f, "role.{role}"),
            ServerObject::Approver => f.write_str("role.approver"),
            ServerObject::Hook(role) => write!(f, "webhook.{role}"),
            ServerObject::SharedHook => f.write_str("webhook.team"),
        }
    }
}
