//! The endpoints that the team uses (`spec/discord.md` 6), as functions of [`Rest`].

use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::discord::error::RestError;
use crate::discord::rest::{Call, Rest, Upload};
use crate::domain::ids::{ChannelId, GuildId, MessageId, ServerRoleId, UserId};

/// A snowflake in JSON is a string.
#[derive(Debug, Clone, Deserialize)]
pub struct IdOnly {
    /// The id.
    pub id: MessageId,
}

/// A message as far as delivery looks at it.
#[derive(Debug, Clone, Deserialize)]
pub struct SeenMessage {
    /// Its id.
    pub id: MessageId,
    /// Its text.
    #[serde(default)]
    pub content: String,
    /// Who wrote it.
    pub author: SeenUser,
    /// Present where a webhook wrote it.
    #[serde(default)]
    pub webhook_id: Option<String>,
    /// The application that the webhook belongs to.
    #[serde(default)]
    pub application_id: Option<String>,
    /// The nonce, while Discord remembers it.
    #[serde(default)]
    pub nonce: Option<Value>,
    /// Embeds.
    #[serde(default)]
    pub embeds: Vec<Value>,
}

/// A user as far as delivery looks at it.
#[derive(Debug, Clone, Deserialize)]
pub struct SeenUser {
    /// Its id.
    pub id: UserId,
    /// Its name; for a webhook, the name it spoke under.
    #[serde(default)]
    pub username: String,
}

/// A channel as far as the team looks at it.
#[derive(Debug, Clone, Deserialize)]
pub struct SeenChannel {
    /// Its id.
    pub id: ChannelId,
    /// 0 text, 1 direct message, 5 announcement, 10 to 12 thread, …
    #[serde(rename = "type")]
    pub kind: u8,
    /// The channel that a thread belongs to.
    #[serde(default)]
    pub parent_id: Option<ChannelId>,
    /// The server; none for a direct message.
    #[serde(default)]
    pub guild_id: Option<GuildId>,
}

impl SeenChannel {
    /// Whether it is a direct message with one person or a few.
    #[must_use]
    pub const fn is_dm(&self) -> bool {
        matches!(self.kind, 1 | 3)
    }

    /// Whether people write there outside of threads.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self.kind, 0 | 5)
    }

    /// Whether it is one for speaking, in which people write as well.
    #[must_use]
    pub const fn is_voice(&self) -> bool {
        matches!(self.kind, 2 | 13)
    }

    /// Whether it has threads: beside text channels, forums have nothing else.
    #[must_use]
    pub const fn has_threads(&self) -> bool {
        self.is_text() || matches!(self.kind, 15 | 16)
    }

    /// Whether it is a thread.
    #[must_use]
    pub const fn is_thread(&self) -> bool {
        matches!(self.kind, 10..=12)
    }
}

/// A webhook.
#[derive(Debug, Clone, Deserialize)]
pub struct Webhook {
    /// Its id.
    pub id: UserId,
    /// The name it speaks under.
    #[serde(default)]
    pub name: Option<String>,
    /// Its secret; only the owning application sees it.
    #[serde(default)]
    pub token: Option<String>,
    /// The application that made it.
    #[serde(default)]
    pub application_id: Option<String>,
    /// The channel that it speaks in.
    #[serde(default)]
    pub channel_id: Option<ChannelId>,
    /// What names its picture, if it has one.
    #[serde(default)]
    pub avatar: Option<String>,
}

/// A role of the server.
#[derive(Debug, Clone, Deserialize)]
pub struct SeenServerRole {
    /// Its id.
    pub id: ServerRoleId,
    /// Its name.
    pub name: String,
    /// What it is for, where it is not people's own.
    #[serde(default)]
    pub tags: ServerRoleTags,
}

/// What a role of the server is for.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct ServerRoleTags {
    /// The bot that Discord made it for; it has the bot's name, and people choose it in place of the bot.
    #[serde(default)]
    pub bot_id: Option<UserId>,
}

/// What the gateway's address endpoint says.
#[derive(Debug, Clone, Deserialize)]
pub struct GatewayAddress {
    /// Where to connect.
    pub url: String,
    /// How many sessions may still be started.
    pub session_start_limit: SessionStarts,
}

/// The budget of new sessions; Discord resets the token when it is overdrawn.
#[derive(Debug, Clone, Deserialize)]
pub struct SessionStarts {
    /// All of a day.
    #[serde(default = "usual_starts")]
    pub total: u32,
    /// Left for now.
    pub remaining: u32,
    /// Milliseconds until it is full again.
    pub reset_after: u64,
}

/// What Discord gives a bot of one server.
const fn usual_starts() -> u32 {
    1_000
}

pub(crate) fn read<T: DeserializeOwned>(what: &str, value: Value) -> Result<T, RestError> {
    serde_json::from_value(value).map_err(|error| RestError::Unreadable(format!("{what}: {error}")))
}

impl Rest {
    /// Where the gateway is and how many sessions may be started.
    pub async fn gateway(&self) -> Result<GatewayAddress, RestError> {
        let call = Call::new(Method::GET, "/gateway/bot");
        read("gateway/bot", self.call(call).await?)
    }

    /// Who we are.
    pub async fn me(&self) -> Result<SeenUser, RestError> {
        read("users/@me", self.call(Call::new(Method::GET, "/users/@me")).await?)
    }

    /// Which application we are.
    pub async fn application(&self) -> Result<u64, RestError> {
        let call = Call::new(Method::GET, "/oauth2/applications/@me");
        Ok(read::<IdOnly>("application", self.call(call).await?)?.id.0)
    }

    /// The server roles of a member.
    pub async fn member_roles(
        &self,
        guild: GuildId,
        user: UserId,
    ) -> Result<Vec<ServerRoleId>, RestError> {
        #[derive(Deserialize)]
        struct Member {
            roles: Vec<ServerRoleId>,
        }
        let call = Call::new(Method::GET, format!("/guilds/{guild}/members/{user}"));
        Ok(read::<Member>("member", self.call(call).await?)?.roles)
    }

    /// Posts a message. With a `nonce` in the body the call is safe to repeat.
    pub async fn create_message(
        &self,
        channel: ChannelId,
        body: Value,
        files: Vec<Upload>,
    ) -> Result<MessageId, RestError> {
        let safe = body.get("nonce").is_some();
        let mut call = Call::new(Method::POST, format!("/channels/{channel}/messages"))
            .json(body)
            .files(files);
        if safe {
            call = call.repeatable();
        }
        Ok(read::<IdOnly>("message", self.call(call).await?)?.id)
    }

    /// Replaces the content of one of our messages.
    pub async fn edit_message(
        &self,
        channel: ChannelId,
        message: MessageId,
        body: Value,
    ) -> Result<(), RestError> {
        let path = format!("/channels/{channel}/messages/{message}");
        self.call(Call::new(Method::PATCH, path).json(body)).await?;
        Ok(())
    }

    /// Deletes one of our messages.
    pub async fn delete_message(
        &self,
        channel: ChannelId,
        message: MessageId,
    ) -> Result<(), RestError> {
        let path = format!("/channels/{channel}/messages/{message}");
        self.call(Call::new(Method::DELETE, path)).await?;
        Ok(())
    }

    /// One message, as raw JSON.
    pub async fn message(
        &self,
        channel: ChannelId,
        message: MessageId,
    ) -> Result<Value, RestError> {
        let path = format!("/channels/{channel}/messages/{message}");
        self.call(Call::new(Method::GET, path)).await
    }

    /// Up to 100 messages after an id, oldest first, as raw JSON.
    pub async fn messages_after(
        &self,
        channel: ChannelId,
        after: MessageId,
    ) -> Result<Vec<Value>, RestError> {
        let path = format!("/channels/{channel}/messages?after={after}&limit=100");
        let mut page: Vec<Value> =
            read("messages", self.call(Call::new(Method::GET, path)).await?)?;
        page.sort_by_key(message_id);
        Ok(page)
    }

    /// Opens a thread on a message; its id is the message's id.
    pub async fn open_thread(
        &self,
        channel: ChannelId,
        message: MessageId,
        name: &str,
    ) -> Result<ChannelId, RestError> {
        let path = format!("/channels/{channel}/messages/{message}/threads");
        let body = json!({"name": name, "auto_archive_duration": 10_080});
        // Repeating is safe: a message has at most one thread (160004).
        let call = Call::new(Method::POST, path).json(body).repeatable();
        Ok(read::<SeenThread>("thread", self.call(call).await?)?.id)
    }

    /// Adds our reaction.
    pub async fn react(
        &self,
        channel: ChannelId,
        message: MessageId,
        emoji: &str,
    ) -> Result<(), RestError> {
        let emoji = percent(emoji);
        let path = format!("/channels/{channel}/messages/{message}/reactions/{emoji}/@me");
        self.call(Call::new(Method::PUT, path)).await?;
        Ok(())
    }

    /// Pins a message, or takes its pin away; needs the right to pin messages.
    pub async fn pin(
        &self,
        channel: ChannelId,
        message: MessageId,
        pinned: bool,
    ) -> Result<(), RestError> {
        let path = format!("/channels/{channel}/messages/pins/{message}");
        let method = if pinned { Method::PUT } else { Method::DELETE };
        self.call(Call::new(method, path)).await?;
        Ok(())
    }

    /// Takes a thread out of its archive; needs no more than the right to write in it.
    pub async fn reopen(&self, thread: ChannelId) -> Result<(), RestError> {
        let body = json!({"archived": false});
        self.call(Call::new(Method::PATCH, format!("/channels/{thread}")).json(body)).await?;
        Ok(())
    }

    /// Shows that we are typing, for about ten seconds.
    pub async fn typing(&self, channel: ChannelId) -> Result<(), RestError> {
        let path = format!("/channels/{channel}/typing");
        self.call(Call::new(Method::POST, path)).await?;
        Ok(())
    }

    /// A channel or thread.
    pub async fn channel(&self, channel: ChannelId) -> Result<SeenChannel, RestError> {
        let call = Call::new(Method::GET, format!("/channels/{channel}"));
        read("channel", self.call(call).await?)
    }

    /// The direct-message channel with a person; made where there is none.
    pub async fn dm_channel(&self, user: UserId) -> Result<ChannelId, RestError> {
        let body = json!({"recipient_id": user.to_string()});
        let call = Call::new(Method::POST, "/users/@me/channels").json(body).repeatable();
        Ok(read::<SeenThread>("dm channel", self.call(call).await?)?.id)
    }

    /// The roles of a server.
    pub async fn server_roles(&self, guild: GuildId) -> Result<Vec<SeenServerRole>, RestError> {
        let call = Call::new(Method::GET, format!("/guilds/{guild}/roles"));
        read("roles", self.call(call).await?)
    }

    /// The channels of a server.
    pub async fn channels(&self, guild: GuildId) -> Result<Vec<SeenChannel>, RestError> {
        let call = Call::new(Method::GET, format!("/guilds/{guild}/channels"));
        read("channels", self.call(call).await?)
    }

    /// The threads of a server that are not archived.
    pub async fn active_threads(&self, guild: GuildId) -> Result<Vec<SeenChannel>, RestError> {
        #[derive(Deserialize)]
        struct Active {
            threads: Vec<SeenChannel>,
        }
        let call = Call::new(Method::GET, format!("/guilds/{guild}/threads/active"));
        let active: Active = read("active threads", self.call(call).await?)?;
        Ok(active.threads)
    }

    /// The webhooks of a channel.
    pub async fn webhooks(&self, channel: ChannelId) -> Result<Vec<Webhook>, RestError> {
        let call = Call::new(Method::GET, format!("/channels/{channel}/webhooks"));
        read("webhooks", self.call(call).await?)
    }

    /// One webhook; needs the right to manage webhooks.
    pub async fn webhook(&self, webhook: u64) -> Result<Webhook, RestError> {
        let call = Call::new(Method::GET, format!("/webhooks/{webhook}"));
        read("webhook", self.call(call).await?)
    }

    /// Makes a webhook; `avatar` is a `data:` URI.
    pub async fn create_webhook(
        &self,
        channel: ChannelId,
        name: &str,
        avatar: Option<&str>,
    ) -> Result<Webhook, RestError> {
        let path = format!("/channels/{channel}/webhooks");
        let body = match avatar {
            Some(avatar) => json!({"name": name, "avatar": avatar}),
            None => json!({"name": name}),
        };
        read("webhook", self.call(Call::new(Method::POST, path).json(body)).await?)
    }

    /// Speaks through a webhook, in `thread` where given.
    pub async fn execute_webhook(
        &self,
        webhook: UserId,
        token: &str,
        thread: Option<ChannelId>,
        body: Value,
        files: Vec<Upload>,
    ) -> Result<MessageId, RestError> {
        let mut path = format!("/webhooks/{webhook}/{token}?wait=true&with_components=true");
        if let Some(thread) = thread {
            path.push_str(&format!("&thread_id={thread}"));
        }
        let call = Call::new(Method::POST, path).json(body).files(files).bare();
        Ok(read::<IdOnly>("webhook message", self.call(call).await?)?.id)
    }

    /// Acknowledges an interaction: "working on it", seen only by the person.
    pub async fn defer(&self, interaction: u64, token: &str) -> Result<(), RestError> {
        let path = format!("/interactions/{interaction}/{token}/callback");
        let body = json!({"type": 5, "data": {"flags": 64}});
        self.call(Call::new(Method::POST, path).json(body).bare().urgent()).await?;
        Ok(())
    }

    /// Answers an interaction with a form. Nothing can be said after it: sending the form is an
    /// interaction of its own.
    pub async fn open_form(
        &self,
        interaction: u64,
        token: &str,
        form: Value,
    ) -> Result<(), RestError> {
        let path = format!("/interactions/{interaction}/{token}/callback");
        let body = json!({"type": 9, "data": form});
        self.call(Call::new(Method::POST, path).json(body).bare().urgent()).await?;
        Ok(())
    }

    /// Fills in the answer to an acknowledged interaction, within 15 minutes.
    pub async fn answer(
        &self,
        application: u64,
        token: &str,
        content: &str,
    ) -> Result<(), RestError> {
        let path = format!("/webhooks/{application}/{token}/messages/@original");
        let body = json!({"content": content, "allowed_mentions": {"parse": []}});
        self.call(Call::new(Method::PATCH, path).json(body).bare()).await?;
        Ok(())
    }

    /// Whether an acknowledged interaction still waits for its answer.
    pub async fn is_unanswered(&self, application: u64, token: &str) -> Result<bool, RestError> {
        #[derive(Deserialize)]
        struct Original {
            #[serde(default)]
            flags: u64,
        }
        const LOADING: u64 = 1 << 7;
        let path = format!("/webhooks/{application}/{token}/messages/@original");
        let data = self.call(Call::new(Method::GET, path).bare()).await?;
        let original: Original = read("the answer of an interaction", data)?;
        Ok(original.flags & LOADING != 0)
    }

    /// Takes the acknowledgement of an interaction back where there is nothing to say.
    pub async fn withdraw_answer(&self, application: u64, token: &str) -> Result<(), RestError> {
        let path = format!("/webhooks/{application}/{token}/messages/@original");
        self.call(Call::new(Method::DELETE, path).bare()).await?;
        Ok(())
    }

    /// The slash commands of the application in one server, as raw JSON.
    pub async fn commands(
        &self,
        application: u64,
        guild: GuildId,
    ) -> Result<Vec<Value>, RestError> {
        let path =
            format!("/applications/{application}/guilds/{guild}/commands?with_localizations=true");
        read("commands", self.call(Call::new(Method::GET, path)).await?)
    }

    /// Creates a slash command in one server, or changes the one of that name in place.
    pub async fn write_command(
        &self,
        application: u64,
        guild: GuildId,
        command: &Value,
    ) -> Result<(), RestError> {
        let path = format!("/applications/{application}/guilds/{guild}/commands");
        self.call(Call::new(Method::POST, path).json(command.clone())).await?;
        Ok(())
    }

    /// Takes a slash command away from one server.
    pub async fn remove_command(
        &self,
        application: u64,
        guild: GuildId,
        command: &str,
    ) -> Result<(), RestError> {
        let path = format!("/applications/{application}/guilds/{guild}/commands/{command}");
        self.call(Call::new(Method::DELETE, path)).await?;
        Ok(())
    }

    /// Leaves a server.
    pub async fn leave(&self, guild: GuildId) -> Result<(), RestError> {
        let path = format!("/users/@me/guilds/{guild}");
        self.call(Call::new(Method::DELETE, path)).await?;
        Ok(())
    }

    /// Suggests what could be typed into an option of a slash command.
    pub async fn suggest(
        &self,
        interaction: u64,
        token: &str,
        choices: &[Value],
    ) -> Result<(), RestError> {
        let path = format!("/interactions/{interaction}/{token}/callback");
        let body = json!({"type": 8, "data": {"choices": choices}});
        self.call(Call::new(Method::POST, path).json(body).bare().urgent()).await?;
        Ok(())
    }
}

#[derive(Deserialize)]
struct SeenThread {
    id: ChannelId,
}

/// The id in a raw message; 0 where there is none.
#[must_use]
pub fn message_id(message: &Value) -> u64 {
    message.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok()).unwrap_or(0)
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
