//! Who does something.

use serde::{Deserialize, Serialize};

use crate::domain::ids::{CallId, GuildId, RequestId, RunId, ServerRoleId, UserId};
use crate::domain::ingress::Ingress;
use crate::domain::role::Role;

/// Who did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The id.
    pub id: UserId,
    /// The display name.
    pub name: String,
    /// Whether it is a bot or webhook.
    pub is_bot: bool,
    /// The server roles that the person has; empty in direct messages.
    #[serde(default)]
    pub server_roles: Vec<ServerRoleId>,
}

/// Where a command came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// Somebody in Discord.
    Person {
        /// Who.
        author: Author,
        /// The server; none for a direct message.
        guild_id: Option<GuildId>,
        /// The way in.
        #[serde(default)]
        via: Ingress,
    },
    /// Whoever deleted a message: Discord let them, and does not tell who it was. The words that the message
    /// brought can be withdrawn by it, and nothing else.
    Deleter,
    /// The operator at the machine: whoever can open the control socket with the secret of this start.
    Operator,
    /// An agent, over the socket of its own run. It holds no right of a person.
    Agent {
        /// The role that it works as.
        role: Role,
        /// The request that it works on.
        request_id: RequestId,
        /// Its run.
        run_id: RunId,
        /// The call, which is done once.
        call: CallId,
    },
}

impl Actor {
    /// The way in.
    #[must_use]
    pub const fn ingress(&self) -> Ingress {
        match self {
            Self::Person { via, .. } => *via,
            Self::Deleter => Ingress::Delete,
            Self::Operator => Ingress::Operator,
            Self::Agent { .. } => Ingress::AgentTool,
        }
    }

    /// The id of somebody in Discord.
    #[must_use]
    pub const fn person_id(&self) -> Option<UserId> {
        match self {
            Self::Person { author, .. } => Some(author.id),
            Self::Deleter | Self::Operator | Self::Agent { .. } => None,
        }
    }

    /// Their name, for people.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Person { author, .. } => author.name.clone(),
            Self::Deleter => "person".to_owned(),
            Self::Operator => "operator".to_owned(),
            Self::Agent { role, .. } => role.to_string(),
        }
    }
}
