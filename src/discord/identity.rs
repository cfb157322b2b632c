//! What the link knows about itself: its bot users, its applications and the server roles that stand for
//! the team's roles.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::{GuildId, ServerRoleId, UserId};
use crate::domain::role::Role;

/// Our side of Discord. Grows while bots log in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Our bot users; the one bot of `voice: personas` speaks for nobody in particular.
    pub bots: BTreeMap<UserId, Option<Role>>,
    /// Our applications: webhooks of theirs are ours.
    pub applications: BTreeSet<u64>,
    /// Webhooks of ours, as far as met: their messages need not name the application.
    pub webhooks: BTreeSet<u64>,
    /// Server roles that address a role of the team.
    pub server_roles: BTreeMap<ServerRoleId, Role>,
    /// Server roles that Discord made for bots.
    pub roles_of_bots: BTreeMap<ServerRoleId, UserId>,
    /// Servers that we are in.
    pub guilds: BTreeSet<GuildId>,
    /// Names that personas speak under, lowercase.
    pub persona_names: BTreeMap<String, Role>,
}

impl Identity {
    /// Our own user ids, for the engine's policy.
    #[must_use]
    pub fn own_ids(&self) -> BTreeSet<UserId> {
        self.bots.keys().copied().collect()
    }

    /// Notes a server role if its name is that of a public role of the team, under the name of the role
    /// or of its persona, or if it is that of a bot.
    pub fn note_server_role(&mut self, id: ServerRoleId, name: &str, bot: Option<UserId>) {
        match bot {
            Some(bot) => self.roles_of_bots.insert(id, bot),
            None => self.roles_of_bots.remove(&id),
        };
        match stands_for(name, &self.persona_names) {
            Some(role) => self.server_roles.insert(id, role),
            None => self.server_roles.remove(&id),
        };
    }

    /// Whom a mention of a server role addresses: a role of the team, the team, or, with `None`, somebody else.
    #[must_use]
    pub fn addressed_by(&self, id: ServerRoleId) -> Option<Option<Role>> {
        let of_bot = || self.bots.get(self.roles_of_bots.get(&id)?).copied();
        self.server_roles.get(&id).map(|role| Some(*role)).or_else(of_bot)
    }
}

/// The public role of the team that a server role of that name addresses. `persona_names` are lowercase.
#[must_use]
pub fn stands_for(name: &str, persona_names: &BTreeMap<String, Role>) -> Option<Role> {
    let name = name.trim().to_lowercase();
    Role::parse(&name.replace(' ', "_"))
        .or_else(|| persona_names.get(&name).copied())
        .filter(|role| role.is_public())
}
