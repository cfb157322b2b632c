//! The endpoints that only setup and the checks use, as functions of [`Rest`].

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::snapshot::{ServerChannel, ServerRole};
use crate::discord::endpoints::{Webhook, read};
use crate::discord::error::RestError;
use crate::discord::rest::{Call, Rest};
use crate::domain::ids::{ChannelId, GuildId, MessageId, ServerRoleId, UserId};

/// The application of a bot.
#[derive(Debug, Clone, Deserialize)]
pub struct Application {
    /// Its id.
    pub id: MessageId,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// What it may and has, see [`super::intents`].
    #[serde(default)]
    pub flags: u64,
    /// Who made it.
    #[serde(default)]
    pub owner: Option<Maker>,
    /// The group of people that it belongs to, if it is not one person's.
    #[serde(default)]
    pub team: Option<TeamOwner>,
}

/// Who made an application.
#[derive(Debug, Clone, Deserialize)]
pub struct Maker {
    /// The person's id.
    pub id: UserId,
    /// The person's name.
    #[serde(default)]
    pub username: String,
}

/// A group of people that owns applications.
#[derive(Debug, Clone, Deserialize)]
pub struct TeamOwner {
    /// The one who answers for it.
    #[serde(default)]
    pub owner_user_id: Option<UserId>,
}

impl Application {
    /// The person that answers for it, with a name where Discord tells one.
    #[must_use]
    pub fn person(&self) -> Option<(UserId, String)> {
        match (&self.team, &self.owner) {
            (Some(team), _) => team.owner_user_id.map(|id| (id, id.to_string())),
            (None, Some(maker)) => Some((maker.id, maker.username.clone())),
            (None, None) => None,
        }
    }
}

/// A server that the bot is in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GuildName {
    /// Its id.
    pub id: GuildId,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// A server.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Guild {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) owner_id: Option<UserId>,
}

#[derive(Deserialize)]
struct MadeRole {
    id: ServerRoleId,
}

#[derive(Deserialize)]
struct MadeChannel {
    id: ChannelId,
}

impl Rest {
    /// Everything about our application.
    pub async fn whole_application(&self) -> Result<Application, RestError> {
        read("application", self.call(Call::new(Method::GET, "/applications/@me")).await?)
    }

    /// Sets the flags of our application: the limited intents are what a bot may change.
    pub async fn set_flags(&self, flags: u64) -> Result<(), RestError> {
        let call = Call::new(Method::PATCH, "/applications/@me").json(json!({"flags": flags}));
        self.call(call).await?;
        Ok(())
    }

    /// The servers that we are in, the first 200.
    pub async fn own_guilds(&self) -> Result<Vec<GuildName>, RestError> {
        read("own guilds", self.call(Call::new(Method::GET, "/users/@me/guilds")).await?)
    }

    pub(crate) async fn guild(&self, guild: GuildId) -> Result<Guild, RestError> {
        read("guild", self.call(Call::new(Method::GET, format!("/guilds/{guild}"))).await?)
    }

    pub(crate) async fn all_roles(&self, guild: GuildId) -> Result<Vec<ServerRole>, RestError> {
        let call = Call::new(Method::GET, format!("/guilds/{guild}/roles"));
        read("roles", self.call(call).await?)
    }

    pub(crate) async fn all_channels(
        &self,
        guild: GuildId,
    ) -> Result<Vec<ServerChannel>, RestError> {
        let call = Call::new(Method::GET, format!("/guilds/{guild}/channels"));
        read("channels", self.call(call).await?)
    }

    pub(crate) async fn guild_webhooks(&self, guild: GuildId) -> Result<Vec<Webhook>, RestError> {
        let call = Call::new(Method::GET, format!("/guilds/{guild}/webhooks"));
        read("webhooks", self.call(call).await?)
    }

    /// Makes a role. Not repeated on trouble: a second one would be made.
    pub(crate) async fn create_role(
        &self,
        guild: GuildId,
        body: Value,
    ) -> Result<ServerRoleId, RestError> {
        let call = Call::new(Method::POST, format!("/guilds/{guild}/roles")).json(body);
        Ok(read::<MadeRole>("role", self.call(call).await?)?.id)
    }

    /// Makes a channel or category. Not repeated on trouble.
    pub(crate) async fn create_channel(
        &self,
        guild: GuildId,
        body: Value,
    ) -> Result<ChannelId, RestError> {
        let call = Call::new(Method::POST, format!("/guilds/{guild}/channels")).json(body);
        Ok(read::<MadeChannel>("channel", self.call(call).await?)?.id)
    }

    pub(crate) async fn delete_role(
        &self,
        guild: GuildId,
        role: ServerRoleId,
    ) -> Result<(), RestError> {
        self.drop_it(format!("/guilds/{guild}/roles/{role}")).await
    }

    pub(crate) async fn delete_channel(&self, channel: ChannelId) -> Result<(), RestError> {
        self.drop_it(format!("/channels/{channel}")).await
    }

    pub(crate) async fn delete_webhook(&self, webhook: u64) -> Result<(), RestError> {
        self.drop_it(format!("/webhooks/{webhook}")).await
    }

    async fn drop_it(&self, path: String) -> Result<(), RestError> {
        self.call(Call::new(Method::DELETE, path)).await?;
        Ok(())
    }
}
