//! `discord_agents_config.yaml` (`spec/teams.md` 2.1), in its two forms: one bot for the whole team,
//! or a bot for each role.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Problem;
use super::values::EnvName;
use crate::domain::ids::{ChannelId, GuildId, UserId};
use crate::domain::role::Role;

/// The ids that the scaffold writes; they open, and they do not run (`spec/teams.md` 2.1).
pub const PLACEHOLDER_IDS: std::ops::RangeInclusive<u64> =
    111_111_111_111_111_111..=111_111_111_111_111_119;

/// How the team speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    /// One bot; each role writes through a webhook under its own name.
    Personas,
    /// Each role is a bot of its own.
    Bots,
}

/// One bot: `agents.<role>` and `internal_agents.<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The variable that holds its token.
    pub token_env: EnvName,
    /// Its user id; an example where absent, until `teams setup` has asked the bot itself.
    #[serde(default = "example_bot")]
    pub bot_id: UserId,
    /// Its name, for people; the role's where absent.
    #[serde(default)]
    pub name: Option<String>,
    /// About it, for people.
    #[serde(default)]
    pub description: String,
    /// Older files repeat the key here; the key counts.
    #[serde(default)]
    pub role: Option<String>,
}

const fn example_bot() -> UserId {
    UserId(*PLACEHOLDER_IDS.start())
}

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscordConfig {
    /// Absent: `bots` where `agents` is there, else `personas`.
    pub voice: Option<Voice>,
    /// The server that the team lives in.
    pub guild_id: Option<GuildId>,
    /// `personas`: the variable that holds the one bot's token.
    pub token_env: Option<EnvName>,
    /// `bots`: the seven roles.
    pub agents: BTreeMap<Role, Identity>,
    /// `bots`: roles without channel presence of their own, by any name.
    pub internal_agents: BTreeMap<String, Identity>,
    /// Where hand-offs are shown to operators.
    pub relay_channel_id: Option<ChannelId>,
    /// Or the variable that names it.
    pub relay_channel_env: Option<EnvName>,
    /// Where a start is announced.
    pub startup_channel_id: Option<ChannelId>,
    /// Or the variable that names it.
    pub startup_channel_env: Option<EnvName>,
    /// Where reports go.
    pub report_channel_id: Option<ChannelId>,
    /// Or the variable that names it.
    pub report_channel_env: Option<EnvName>,
    /// Other people's bots that are heard.
    pub trusted_bot_ids: BTreeSet<UserId>,
    /// Another REST server than Discord's, such as a local guild.
    pub base_url: Option<String>,
    /// Another gateway than the one that the REST server names.
    pub gateway_url: Option<String>,
}

/// The channels with their fall-backs applied (`spec/teams.md` C15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// Hand-offs.
    pub relay: ChannelId,
    /// Starts; the relay channel where not given.
    pub startup: ChannelId,
    /// Reports; the startup channel where not given.
    pub report: ChannelId,
}

/// The variables that tokens are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenNames {
    /// The bot that listens, and speaks for everybody in `personas`.
    pub main: EnvName,
    /// `bots`: one for each role that has its own.
    pub roles: BTreeMap<Role, EnvName>,
}

impl DiscordConfig {
    /// How the team speaks.
    #[must_use]
    pub fn voice(&self) -> Voice {
        self.voice.unwrap_or(if self.agents.is_empty() { Voice::Personas } else { Voice::Bots })
    }

    /// What is wrong only beside other values.
    pub fn check(&self) -> Result<(), Problem> {
        match self.voice() {
            Voice::Personas => {
                if self.token_env.is_none() && !self.agents.contains_key(&Role::Orchestrator) {
                    return Err(Problem::at("token_env", "is missing").hint(
                        "name the variable that holds the bot's token, such as \
                         `token_env: TEAMS_DISCORD_TOKEN`",
                    ));
                }
            }
            Voice::Bots => {
                for role in Role::PUBLIC {
                    if !self.agents.contains_key(&role) {
                        return Err(Problem::at(&format!("agents.{role}"), "is missing").hint(
                            "with `voice: bots` each of the seven roles needs `token_env` and `bot_id`",
                        ));
                    }
                }
            }
        }
        if self.relay_channel_id.is_none() && self.relay_channel_env.is_none() {
            return Err(Problem::at("relay_channel_id", "is missing")
                .hint("the channel where hand-offs are shown to operators"));
        }
        Ok(())
    }

    /// The variables that tokens are read from.
    pub fn token_names(&self) -> Result<TokenNames, Problem> {
        let orchestrator = self.agents.get(&Role::Orchestrator);
        let main = match (self.voice(), &self.token_env, orchestrator) {
            (Voice::Personas, Some(name), _) => name.clone(),
            (Voice::Personas | Voice::Bots, _, Some(identity)) => identity.token_env.clone(),
            (Voice::Bots, Some(name), None) => name.clone(),
            (Voice::Personas | Voice::Bots, None, None) => {
                return Err(Problem::at("token_env", "is missing"));
            }
        };
        let mut roles = BTreeMap::new();
        if self.voice() == Voice::Bots {
            for (role, identity) in &self.agents {
                roles.insert(*role, identity.token_env.clone());
            }
            for (name, identity) in &self.internal_agents {
                if let Some(role) = internal_role(name) {
                    roles.insert(role, identity.token_env.clone());
                }
            }
        }
        Ok(TokenNames { main, roles })
    }

    /// The channels, with the values of variables from `env`.
    pub fn channels(&self, env: impl Fn(&str) -> Option<String>) -> Result<Channels, Problem> {
        let pick = |key: &str, id: Option<ChannelId>, name: &Option<EnvName>| {
            if id.is_some() {
                return Ok(id);
            }
            let Some(name) = name else { return Ok(None) };
            match env(name.as_str()) {
                None => Err(Problem::at(key, format!("the variable {name} is not set"))
                    .hint(format!("export {name}=<channel id>"))),
                Some(text) => text.trim().parse().map(Some).map_err(|error| {
                    Problem::at(key, format!("the variable {name} holds no channel id: {error}"))
                }),
            }
        };
        let relay = pick("relay_channel_env", self.relay_channel_id, &self.relay_channel_env)?
            .ok_or_else(|| Problem::at("relay_channel_id", "is missing"))?;
        let startup =
            pick("startup_channel_env", self.startup_channel_id, &self.startup_channel_env)?
                .unwrap_or(relay);
        let report = pick("report_channel_env", self.report_channel_id, &self.report_channel_env)?
            .unwrap_or(startup);
        Ok(Channels { relay, startup, report })
    }

    /// The user ids of the team's own bots, as far as the file names them.
    #[must_use]
    pub fn own_ids(&self) -> BTreeSet<UserId> {
        self.agents
            .values()
            .chain(self.internal_agents.values())
            .map(|identity| identity.bot_id)
            .collect()
    }

    /// Refuses the ids that the scaffold wrote (`spec/teams.md` C16).
    pub fn refuse_placeholders(&self) -> Result<(), Problem> {
        let agents = self
            .agents
            .iter()
            .map(|(role, identity)| (format!("agents.{role}.bot_id"), identity.bot_id.0));
        let internal = self
            .internal_agents
            .iter()
            .map(|(name, identity)| (format!("internal_agents.{name}.bot_id"), identity.bot_id.0));
        let single = [
            ("guild_id", self.guild_id.map(|id| id.0)),
            ("relay_channel_id", self.relay_channel_id.map(|id| id.0)),
            ("startup_channel_id", self.startup_channel_id.map(|id| id.0)),
            ("report_channel_id", self.report_channel_id.map(|id| id.0)),
        ]
        .into_iter()
        .filter_map(|(key, id)| id.map(|id| (key.to_owned(), id)));
        for (key, id) in single.chain(agents).chain(internal) {
            if PLACEHOLDER_IDS.contains(&id) {
                return Err(Problem::at(
                    &key,
                    format!("{id} is the example id that `teams init` wrote"),
                )
                .hint(
                    "`teams setup` puts in the right one; by hand: in Discord, Settings, \
                             Advanced, Developer Mode, then right-click and copy the id",
                ));
            }
        }
        Ok(())
    }
}

/// The internal role that a key of `internal_agents` means, if it is one of ours.
fn internal_role(name: &str) -> Option<Role> {
    Role::parse(name).filter(|role| !role.is_public())
}
