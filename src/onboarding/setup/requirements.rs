//! What a workspace wants of its server, and how its configuration names what was made.

use std::collections::{BTreeMap, BTreeSet};

use crate::assets::catalog::Catalog;
use crate::discord::persona_names;
use crate::discord::setup::permissions::{self, MANAGE_CHANNELS, MANAGE_ROLES, Use};
use crate::discord::setup::{
    Journal, ServerObject, ServerRequirements, ServerSnapshot, Standing, TeamChannel,
};
use crate::domain::config::{DiscordConfig, PLACEHOLDER_IDS, RuntimeConfig, Voice};
use crate::domain::ids::{ChannelId, GuildId, ServerRoleId};
use crate::domain::language::Language;
use crate::domain::role::Role;
use crate::workspace::Workspace;
use crate::workspace::settings::{ConfigFile, Setting};

/// A real id: the scaffold's examples are none.
fn real(id: Option<ChannelId>) -> Option<ChannelId> {
    id.filter(|id| !PLACEHOLDER_IDS.contains(&id.0))
}

/// The server of the configuration.
pub(in crate::onboarding) fn guild(config: &DiscordConfig) -> Option<GuildId> {
    config.guild_id.filter(|id| !PLACEHOLDER_IDS.contains(&id.0))
}

/// The channel that the configuration gives a place, from the file or a variable.
fn configured(workspace: &Workspace, place: TeamChannel) -> Option<ChannelId> {
    let config = &workspace.discord;
    let (id, name) = match place {
        TeamChannel::General => return None,
        TeamChannel::Relay => (config.relay_channel_id, &config.relay_channel_env),
        TeamChannel::Startup => (config.startup_channel_id, &config.startup_channel_env),
        TeamChannel::Report => (config.report_channel_id, &config.report_channel_env),
    };
    let named = || {
        let name = name.as_ref()?;
        workspace.environment.get(name.as_str())?.trim().parse().ok()
    };
    real(id.or_else(named))
}

/// Whether the configuration names a place at all.
pub(in crate::onboarding) fn is_named(config: &DiscordConfig, place: TeamChannel) -> bool {
    match place {
        TeamChannel::General => false,
        TeamChannel::Relay => true,
        TeamChannel::Startup => {
            config.startup_channel_id.is_some() || config.startup_channel_env.is_some()
        }
        TeamChannel::Report => {
            config.report_channel_id.is_some() || config.report_channel_env.is_some()
        }
    }
}

/// Everything that setup makes.
pub(in crate::onboarding) fn everything(
    workspace: &Workspace,
    application: u64,
    seen: Option<&ServerSnapshot>,
    journal: &Journal,
) -> ServerRequirements {
    let discord = &workspace.discord;
    let approvers = workspace.runtime.people.approve.roles.clone();
    let ours = journal.made(ServerObject::Approver).map(ServerRoleId);
    ServerRequirements {
        application,
        places: TeamChannel::ALL.map(|place| (place, configured(workspace, place))).into(),
        topics: topics(workspace.runtime.language),
        names: names(discord, workspace.runtime.language),
        hooks: discord.voice() == Voice::Personas,
        // Who named roles knows whom to trust. One that is gone is nobody's.
        approver: approvers
            .iter()
            .all(|id| Some(*id) == ours || seen.is_some_and(|seen| !seen.roles.contains_key(id))),
        approvers,
    }
}

/// The names that roles speak under, as the team uses them when it runs.
fn names(config: &DiscordConfig, language: Language) -> BTreeMap<Role, String> {
    let named = config.agents.iter();
    let named: BTreeMap<Role, String> =
        named.filter_map(|(role, identity)| Some((*role, identity.name.clone()?))).collect();
    match Catalog::builtin() {
        Ok(catalog) => persona_names(named, &catalog, language),
        Err(_) => named,
    }
}

fn topics(language: Language) -> BTreeMap<TeamChannel, String> {
    let Ok(catalog) = Catalog::builtin() else {
        return BTreeMap::new();
    };
    let key = |place| match place {
        TeamChannel::General => "setup.topic.general",
        TeamChannel::Relay => "setup.topic.relay",
        TeamChannel::Startup => "setup.topic.startup",
        TeamChannel::Report => "setup.topic.report",
    };
    TeamChannel::ALL.map(|place| (place, catalog.label(key(place), language))).into()
}

/// The permissions that the bot needs for what is still to be made and for its work.
pub(in crate::onboarding) fn needed(
    wanted: &ServerRequirements,
    seen: &ServerSnapshot,
    journal: &Journal,
) -> u64 {
    let mut uses = vec![Use::Always];
    if wanted.hooks {
        uses.push(Use::Personas);
    }
    let mut bits = permissions::bits(&uses);
    for thing in ServerObject::all() {
        if wanted.standing(thing, seen, journal) != Standing::Missing {
            continue;
        }
        match thing {
            ServerObject::Category | ServerObject::Channel(_) => bits |= MANAGE_CHANNELS,
            ServerObject::Role(_) | ServerObject::Approver => bits |= MANAGE_ROLES,
            ServerObject::Hook(_) | ServerObject::SharedHook => {}
        }
    }
    bits
}

/// What an invite link asks for.
pub(in crate::onboarding) fn asked_for() -> u64 {
    permissions::bits(&[Use::Always, Use::Pin, Use::Personas, Use::Setup])
}

/// The values of the configuration that name what is there.
pub(in crate::onboarding) fn settings(
    runtime: &RuntimeConfig,
    wanted: &ServerRequirements,
    seen: &ServerSnapshot,
    journal: &Journal,
) -> Vec<(ConfigFile, &'static str, Setting)> {
    let word = |id: u64| Setting::Word(id.to_string());
    let mut all = vec![(ConfigFile::Discord, "guild_id", word(seen.guild.0))];
    for (place, configured) in &wanted.places {
        if let (Some(key), Standing::There(id)) =
            (place.key(), wanted.standing(ServerObject::Channel(*place), seen, journal))
            // What a variable names stays with the variable.
            && configured.map(|id| id.0) != Some(id)
        {
            all.push((ConfigFile::Discord, key, word(id)));
        }
    }
    if let (true, Some(id)) = (wanted.approver, journal.made(ServerObject::Approver)) {
        let there = |role: &&ServerRoleId| seen.roles.contains_key(*role);
        let roles: BTreeSet<ServerRoleId> = runtime
            .people
            .approve
            .roles
            .iter()
            .filter(there)
            .copied()
            .chain([ServerRoleId(id)])
            .collect();
        let words = roles.into_iter().map(|role| role.to_string()).collect();
        all.push((ConfigFile::Runtime, "people.approve.roles", Setting::List(words)));
    }
    all
}

/// What a workspace uses of what is there, and what setup made for it: nothing more is missed.
pub(in crate::onboarding) fn present(
    workspace: &Workspace,
    application: u64,
    seen: &ServerSnapshot,
    journal: &Journal,
) -> ServerRequirements {
    let mut wanted = everything(workspace, application, Some(seen), journal);
    wanted.places.retain(|place, _| is_named(&workspace.discord, *place));
    let asks =
        seen.channels.values().any(|it| it.is_text() && it.name == TeamChannel::General.as_str());
    if asks || journal.made(ServerObject::Channel(TeamChannel::General)).is_some() {
        wanted.places.insert(TeamChannel::General, None);
    }
    wanted.approver &= journal.made(ServerObject::Approver).is_some();
    wanted
}
