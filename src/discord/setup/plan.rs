//! What should be in a server, and whether it is: pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::discord::endpoints::Webhook;
use crate::discord::identity::stands_for;
use crate::discord::personas;
use crate::discord::setup::journal::Journal;
use crate::discord::setup::object::{ServerObject, TeamChannel};
use crate::discord::setup::snapshot::ServerSnapshot;
use crate::domain::ids::{ChannelId, ServerRoleId};
use crate::domain::role::Role;

/// What is wanted.
#[derive(Debug, Clone, Default)]
pub struct ServerRequirements {
    /// Our application, which owns the webhooks.
    pub application: u64,
    /// The channels, with the ids that the configuration gives them.
    pub places: BTreeMap<TeamChannel, Option<ChannelId>>,
    /// What stands in the head line of a channel that is made.
    pub topics: BTreeMap<TeamChannel, String>,
    /// The names that roles speak under.
    pub names: BTreeMap<Role, String>,
    /// Whether roles speak through webhooks.
    pub hooks: bool,
    /// Whether a role for deciding is wanted.
    pub approver: bool,
    /// The roles that may decide so far.
    pub approvers: BTreeSet<ServerRoleId>,
}

/// Whether a thing is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is, with this id.
    There(u64),
    /// It has to be made.
    Missing,
    /// Nobody needs it.
    NotNeeded,
}

/// The name of the category.
const CATEGORY: &str = "Teams";
/// The name of the role whose holders decide.
const APPROVER: &str = "approver";

impl ServerRequirements {
    /// The name of a thing that is made.
    #[must_use]
    pub fn name(&self, thing: ServerObject) -> String {
        match thing {
            ServerObject::Category => CATEGORY.to_owned(),
            ServerObject::Channel(place) => place.as_str().to_owned(),
            ServerObject::Role(role) => role.as_str().to_owned(),
            ServerObject::Approver => APPROVER.to_owned(),
            ServerObject::Hook(role) => {
                let name = self.names.get(&role).map_or(role.as_str(), String::as_str);
                personas::allowed_name(name)
            }
            ServerObject::SharedHook => personas::SHARED.to_owned(),
        }
    }

    /// Whether a thing is there.
    #[must_use]
    pub fn standing(
        &self,
        thing: ServerObject,
        seen: &ServerSnapshot,
        journal: &Journal,
    ) -> Standing {
        let ours = journal.made(thing);
        let channel = |id: u64| seen.channels.get(&ChannelId(id)).map(|_| id);
        let role = |id: u64| seen.roles.get(&ServerRoleId(id)).map(|_| id);
        let found = match thing {
            ServerObject::Category => {
                let there = ours.and_then(channel);
                let needed = TeamChannel::ALL.into_iter().any(|place| {
                    self.standing(ServerObject::Channel(place), seen, journal) == Standing::Missing
                });
                if there.is_none() && !needed {
                    return Standing::NotNeeded;
                }
                there
            }
            ServerObject::Channel(place) => {
                let Some(configured) = self.places.get(&place) else {
                    return Standing::NotNeeded;
                };
                let named = || match place {
                    // Its name is all that a person knows it by; the others could be anybody's.
                    TeamChannel::General => seen
                        .channels
                        .values()
                        .find(|it| it.is_text() && it.name == place.as_str())
                        .map(|it| it.id.0),
                    TeamChannel::Relay | TeamChannel::Startup | TeamChannel::Report => None,
                };
                let configured = configured.and_then(|id| channel(id.0));
                configured.or_else(|| ours.and_then(channel)).or_else(named)
            }
            ServerObject::Role(team_role) => {
                let named = seen
                    .roles
                    .values()
                    .find(|it| stands_for(&it.name, &self.persona_names()) == Some(team_role));
                ours.and_then(role).or_else(|| named.map(|it| it.id.0))
            }
            ServerObject::Approver => {
                if !self.approver {
                    return Standing::NotNeeded;
                }
                let configured = self.approvers.iter().find_map(|id| role(id.0));
                ours.and_then(role).or(configured)
            }
            ServerObject::Hook(_) | ServerObject::SharedHook => {
                if !self.hooks {
                    return Standing::NotNeeded;
                }
                self.hook_channel(seen, journal)
                    .and_then(|channel| self.voice(thing, channel, seen))
                    .map(|hook| hook.id.0)
            }
        };
        found.map_or(Standing::Missing, Standing::There)
    }

    /// The webhook of a thing in a channel, found as the team finds it.
    #[must_use]
    pub fn voice<'a>(
        &self,
        thing: ServerObject,
        channel: ChannelId,
        seen: &'a ServerSnapshot,
    ) -> Option<&'a Webhook> {
        let name = self.name(thing);
        let role = match thing {
            ServerObject::Hook(role) => Some(role),
            ServerObject::Category
            | ServerObject::Channel(_)
            | ServerObject::Role(_)
            | ServerObject::Approver
            | ServerObject::SharedHook => None,
        };
        let named = |hook: &&Webhook| {
            hook.name.as_deref().is_some_and(|it| personas::is_voice(it, &name, role))
        };
        seen.hooks_of(channel, self.application).find(named)
    }

    /// The channel whose webhooks are prepared: where people ask. In others they are made when a role
    /// first speaks there.
    #[must_use]
    pub fn hook_channel(&self, seen: &ServerSnapshot, journal: &Journal) -> Option<ChannelId> {
        match self.standing(ServerObject::Channel(TeamChannel::General), seen, journal) {
            Standing::There(id) => Some(ChannelId(id)),
            Standing::Missing | Standing::NotNeeded => None,
        }
    }

    /// The names of personas as [`stands_for`] reads them.
    fn persona_names(&self) -> BTreeMap<String, Role> {
        self.names.iter().map(|(role, name)| (name.to_lowercase(), *role)).collect()
    }
}
