//! A server as Discord shows it to the bot.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::discord::endpoints::Webhook;
use crate::discord::error::RestError;
use crate::discord::rest::Rest;
use crate::domain::ids::{ChannelId, GuildId, ServerRoleId, UserId};

/// Discord writes permissions as decimal text; what is none counts as no permission.
fn bits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Text {
        Text(String),
        Number(u64),
    }
    Ok(match Text::deserialize(deserializer)? {
        Text::Text(text) => text.trim().parse().unwrap_or(0),
        Text::Number(number) => number,
    })
}

fn id_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    bits(deserializer)
}

/// A role of the server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerRole {
    /// Its id; that of everyone has the server's.
    pub id: ServerRoleId,
    /// Its name.
    pub name: String,
    /// What its holders may do.
    #[serde(deserialize_with = "bits", default)]
    pub permissions: u64,
    /// Whether everybody may mention it.
    #[serde(default)]
    pub mentionable: bool,
    /// Whether it belongs to a bot.
    #[serde(default)]
    pub managed: bool,
}

/// Whom an exception of a channel is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u8")]
pub enum OverwriteKind {
    /// A role.
    Role,
    /// One member.
    Member,
}

impl TryFrom<u8> for OverwriteKind {
    type Error = String;
    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            0 => Ok(OverwriteKind::Role),
            1 => Ok(OverwriteKind::Member),
            other => Err(format!("no kind of overwrite: {other}")),
        }
    }
}

/// An exception of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Overwrite {
    /// The role's or the member's id.
    #[serde(deserialize_with = "id_text")]
    pub id: u64,
    /// Whom it is about.
    #[serde(rename = "type")]
    pub kind: OverwriteKind,
    /// Given.
    #[serde(deserialize_with = "bits", default)]
    pub allow: u64,
    /// Taken.
    #[serde(deserialize_with = "bits", default)]
    pub deny: u64,
}

/// A channel of the server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerChannel {
    /// Its id.
    pub id: ChannelId,
    /// 0 text, 4 category, 5 announcement.
    #[serde(rename = "type")]
    pub kind: u8,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The category that it stands in.
    #[serde(default)]
    pub parent_id: Option<ChannelId>,
    /// Its exceptions.
    #[serde(default)]
    pub permission_overwrites: Vec<Overwrite>,
}

impl ServerChannel {
    /// Whether people write there.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self.kind, 0 | 5)
    }

    /// Whether other channels stand in it.
    #[must_use]
    pub const fn is_category(&self) -> bool {
        self.kind == 4
    }
}

/// Everything about a server that setup and the checks look at.
#[derive(Debug, Clone)]
pub struct ServerSnapshot {
    /// The server.
    pub guild: GuildId,
    /// Its name.
    pub name: String,
    /// The bot.
    pub me: UserId,
    /// The bot's roles.
    pub my_roles: Vec<ServerRoleId>,
    /// Whether the server is the bot's own.
    pub mine: bool,
    /// The roles.
    pub roles: BTreeMap<ServerRoleId, ServerRole>,
    /// The channels and categories.
    pub channels: BTreeMap<ChannelId, ServerChannel>,
    /// The webhooks of the server; `None` where the bot may not see them.
    pub hooks: Option<Vec<Webhook>>,
}

impl ServerSnapshot {
    /// Looks at a server.
    pub async fn look(
        rest: &Rest,
        guild: GuildId,
        me: UserId,
    ) -> Result<ServerSnapshot, RestError> {
        let about = rest.guild(guild).await?;
        let my_roles = rest.member_roles(guild, me).await?;
        let roles = rest.all_roles(guild).await?;
        let channels = rest.all_channels(guild).await?;
        let hooks = match rest.guild_webhooks(guild).await {
            Ok(hooks) => Some(hooks),
            Err(RestError::Refused { .. } | RestError::Gone { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(ServerSnapshot {
            guild,
            name: about.name,
            me,
            my_roles,
            mine: about.owner_id == Some(me),
            roles: roles.into_iter().map(|role| (role.id, role)).collect(),
            channels: channels.into_iter().map(|channel| (channel.id, channel)).collect(),
            hooks,
        })
    }

    /// The webhooks of a channel that an application made.
    pub fn hooks_of(&self, channel: ChannelId, application: u64) -> impl Iterator<Item = &Webhook> {
        let owner = application.to_string();
        self.hooks.iter().flatten().filter(move |hook| {
            hook.channel_id == Some(channel) && hook.application_id.as_deref() == Some(&owner)
        })
    }
}
