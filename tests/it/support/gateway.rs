//! Two gateway clients: twilight's, which keeps its session, and a bare socket that does only what it is
//! told.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
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
        let next = timeout(Duration::from_secs(120), self.0.next()).await;
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

/// A bare connection: every frame is the test's own.
pub(crate) struct Socket(
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
);

/// What a bare connection hears.
#[derive(Debug)]
pub(crate) enum Heard {
    Frame(Value),
    /// Closed, with a code if there was a closing frame.
    Closed(Option<u16>),
}

impl Socket {
    /// Connects, and hears nothing yet.
    pub(crate) async fn connect(info: &GuildInfo, query: &str) -> Socket {
        let address = format!("{}/?{query}", info.gateway_url);
        Socket(tokio_tungstenite::connect_async(address).await.unwrap().0)
    }

    /// Connects and logs in, up to the guild.
    pub(crate) async fn login(info: &GuildInfo, bot: &str) -> (Socket, Value) {
        let mut socket = Socket::connect(info, "v=10&encoding=json").await;
        socket.send(&identify(&info.bots[bot].token, ALL)).await;
        let ready = socket.event("READY").await;
        socket.event("GUILD_CREATE").await;
        (socket, ready)
    }

    pub(crate) async fn send(&mut self, frame: &Value) {
        let text = tokio_tungstenite::tungstenite::Message::text(frame.to_string());
        self.0.send(text).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Heard {
        use tokio_tungstenite::tungstenite::Message as Ws;
        loop {
            let next = timeout(Duration::from_secs(120), self.0.next()).await;
            match next.expect("something comes") {
                Some(Ok(Ws::Text(text))) => {
                    return Heard::Frame(serde_json::from_str(&text).unwrap());
                }
                Some(Ok(Ws::Close(frame))) => {
                    return Heard::Closed(frame.map(|frame| frame.code.into()));
                }
                None | Some(Err(_)) => return Heard::Closed(None),
                Some(Ok(Ws::Binary(_) | Ws::Ping(_) | Ws::Pong(_) | Ws::Frame(_))) => {}
            }
        }
    }

    /// The data of the next frame with that operation.
    pub(crate) async fn op(&mut self, op: u64) -> Value {
        loop {
            match self.hear().await {
                Heard::Frame(frame) if frame["op"] == op => return frame["d"].clone(),
                Heard::Frame(_) => {}
                closed @ Heard::Closed(_) => panic!("{closed:?} before op {op}"),
            }
        }
    }

    /// The data of the next event of that name.
    pub(crate) async fn event(&mut self, name: &str) -> Value {
        loop {
            match self.hear().await {
                Heard::Frame(frame) if frame["t"] == name => return frame["d"].clone(),
                Heard::Frame(_) => {}
                closed @ Heard::Closed(_) => panic!("{closed:?} before {name}"),
            }
        }
    }

    /// The code with which the connection ends.
    pub(crate) async fn ended(&mut self) -> Option<u16> {
        loop {
            if let Heard::Closed(code) = self.hear().await {
                return code;
            }
        }
    }
}

/// The frame that logs in.
pub(crate) fn identify(token: &str, intents: u64) -> Value {
    json!({"op": 2, "d": {
        "token": token, "intents": intents,
        "properties": {"os": "linux", "browser": "test", "device": "test"},
    }})
}

/// The frame that goes on with a session.
pub(crate) fn resume(token: &str, session: &Value, number: u64) -> Value {
    json!({"op": 6, "d": {"token": token, "session_id": session, "seq": number}})
}
