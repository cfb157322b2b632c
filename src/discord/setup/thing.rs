//! What setup can make.

use std::fmt;

use crate::domain::role::Role;
use crate::domain::word::words;

words! {
    /// A channel with a purpose.
    pub enum Place {
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

impl Place {
    /// The key of the configuration that names it.
    #[must_use]
    pub const fn key(self) -> Option<&'static str> {
        match self {
            Place::General => None,
            Place::Relay => Some("relay_channel_id"),
            Place::Startup => Some("startup_channel_id"),
            Place::Report => Some("report_channel_id"),
        }
    }
}

/// Something in a server that the team uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Thing {
    /// What the channels stand in.
    Category,
    /// A channel.
    Channel(Place),
    /// The server role that addresses a role of the team.
    Role(Role),
    /// The server role whose holders decide.
    Approver,
    /// The webhook that a public role speaks through.
    Hook(Role),
    /// The webhook that the internal roles share.
    SharedHook,
}

impl Thing {
    /// Everything, in the order in which it is made.
    pub fn all() -> impl DoubleEndedIterator<Item = Thing> {
        let channels = Place::ALL.into_iter().map(Thing::Channel);
        let roles = Role::PUBLIC.into_iter().map(Thing::Role);
        let hooks = Role::PUBLIC.into_iter().map(Thing::Hook);
        std::iter::once(Thing::Category)
            .chain(channels)
            .chain(roles)
            .chain([Thing::Approver])
            .chain(hooks)
            .chain([Thing::SharedHook])
    }

    /// The kind, for people and programs.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Thing::Category => "category",
            Thing::Channel(_) => "channel",
            Thing::Role(_) | Thing::Approver => "role",
            Thing::Hook(_) | Thing::SharedHook => "webhook",
        }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Thing::Category => f.write_str("category"),
            Thing::Channel(place) => write!(f, "channel.{}", place.as_str()),
            Thing::Role(role) => write!(f, "role.{role}"),
            Thing::Approver => f.write_str("role.approver"),
            Thing::Hook(role) => write!(f, "webhook.{role}"),
            Thing::SharedHook => f.write_str("webhook.team"),
        }
    }
}
