//! A gateway client that keeps its session: twilight's.

use futures_util::StreamExt as _;
use serde_json::Value;
use teams::local_guild::GuildInfo;
use tokio::time::{Duration, timeout};
use twilight_gateway::{ConfigBuilder, Intents, Message, Session, Shard, ShardId};

/// Everything that is not about voice, automation or polls.
pub(crate) const ALL: u64 = 0xFE23;

pub(crate) struct Connection(Shard);

impl Connection {
    pub(crate) async fn open(info: &GuildInfo, bot: &str, intents: u64) -> Connection {
        Connection(Shard::with_config(ShardId::ONE, config(info, bot, intents).build()))
    }

    /// Logs in with a token that the guild's summary does not know.
    pub(crate) async fn login(info: &GuildInfo, token: &str, intents: u64) -> Connection {
        let config = ConfigBuilder::new(token.to_owned(), Intents::from_bits_truncate(intents));
        let config = config.proxy_url(info.gateway_url.clone());
        Connection(Shard::with_config(ShardId::ONE, config.build()))
    }

    /// The code with which the other side ends the connection.
    pub(crate) async fn closed(mut self) -> Option<u16> {
        loop {
            if let Message::Close(frame) = self.next().await {
                return frame.map(|frame| frame.code);
            }
        }
    }

    pub(crate) async fn resume(
        info: &GuildInfo,
        bot: &str,
        intents: u64,
        session: Session,
    ) -> Connection {
        let config = config(info, bot, intents).session(session);
        Connection(Shard::with_config(ShardId::ONE, config.build()))
    }

    async fn next(&mut self) -> Message {
        let next = timeout(Duration::from_secs(30), self.0.next()).await;
        next.expect("an event comes").expect("the connection goes on").expect("it is readable")
    }

    /// The data of the next event, whatever its name.
    pub(crate) async fn next_dispatch(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.next().await {
                let event: Value = serde_json::from_str(&text).unwrap();
                if event["op"] == 0 {
                    return event["d"].clone();
                }
            }
        }
    }

    /// The data of the next event of that name.
    pub(crate) async fn until(&mut self, name: &str) -> Value {
        loop {
            if let Message::Text(text) = self.next().await {
                let event: Value = serde_json::from_str(&text).unwrap();
                if event["t"] == name {
                    return event["d"].clone();
                }
            }
        }
    }

    /// Waits for the end of the connection; what is left is the session.
    pub(crate) async fn lost(mut self) -> Session {
        while !matches!(self.next().await, Message::Close(_)) {}
        self.0.session().expect("a session is open").clone()
    }
}

fn config(info: &GuildInfo, bot: &str, intents: u64) -> ConfigBuilder {
    let intents = Intents::from_bits_truncate(intents);
    ConfigBuilder::new(info.bots[bot].token.clone(), intents).proxy_url(info.gateway_url.clone())
}
