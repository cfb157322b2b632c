//! One bot's connection to the gateway.
//!
//! twilight speaks the protocol for the life of one connection: heartbeats, identify, resume. Whether and
//! when to connect again is decided here, because no library backs off when every resume is closed at once
//! (`spec/discord.md` 0.4 and 5).

use std::time::Duration;

use futures_util::StreamExt as _;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use twilight_gateway::{ConfigBuilder, Intents, Message, Session, Shard, ShardId};

use crate::discord::error::RestError;
use crate::discord::forms;
use crate::discord::rest::Rest;
use crate::domain::ids::{GuildId, UserId};
use crate::platform::{ids, tasks};

/// A connection that lived this long was a good one: the next wait starts from the beginning.
const GOOD: Duration = Duration::from_secs(60);
/// Waiting for READY or RESUMED.
const GREETING: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// New sessions that are left to a human in trouble; Discord resets the token at none.
const SESSIONS_KEPT: u32 = 50;

/// What a connection reports.
#[derive(Debug)]
pub(crate) enum Signal {
    /// Events flow. `fresh` means that earlier ones may have been missed.
    Up { fresh: bool, user: UserId, application: u64, guilds: Vec<GuildId> },
    /// Events flow again and none was missed.
    Resumed,
    /// The connection is gone; another is being made.
    Down { reason: String },
    /// Something works less well until it is set up differently.
    Degraded { reason: String },
    /// No further attempt is made.
    Fatal { reason: String },
    /// An event.
    Dispatch { kind: String, data: Value },
    /// An interaction; its acknowledgement is on its way already.
    Interaction { data: Value, acknowledged: JoinHandle<Result<(), RestError>> },
}

/// One bot's connection.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) rest: Rest,
    /// Instead of asking Discord for the address.
    pub(crate) url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Frame {
    op: u8,
    #[serde(default)]
    t: Option<String>,
    #[serde(default)]
    d: Value,
}

#[derive(Debug, Deserialize)]
struct ReadyData {
    user: Named,
    application: Application,
    guilds: Vec<GuildRef>,
}

#[derive(Debug, Deserialize)]
struct Named {
    id: UserId,
}

#[derive(Debug, Deserialize)]
struct Application {
    id: UserId,
}

#[derive(Debug, Deserialize)]
struct GuildRef {
    id: GuildId,
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// Connect again; the reason is for people.
    Again(String),
    /// Connect again without the session.
    Anew(String),
    /// The message-content intent is not granted.
    WithoutContent,
    /// Never again.
    Never(String),
    /// Nobody listens any more.
    Unheard,
    /// The listener is too slow: events were dropped.
    Overflow,
}

/// What a close code asks for (`spec/discord.md` 5).
fn after_close(code: u16, reason: &str) -> End {
    match code {
        4004 => End::Never(
            "the bot token is not valid (4004); put a current one into its variable and start again"
                .to_owned(),
        ),
        4010 | 4011 => End::Never(format!(
            "discord wants the bot to be sharded ({code}); teams serves one server, use a bot of its own"
        )),
        4012 => End::Never("discord no longer speaks gateway version 10 (4012); update teams".to_owned()),
        4013 => End::Never("discord does not know the requested intents (4013); update teams".to_owned()),
        4014 => End::WithoutContent,
        4003 | 4007 | 4009 => End::Anew(format!("the session ended ({code})")),
        _ => End::Again(format!("closed by discord ({code}) {reason}").trim_end().to_owned()),
    }
}

/// The wait before attempt number `failures` + 1; the first is immediate.
fn wait_before(failures: u32) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let seconds = 1u64 << (failures - 1).min(6);
    // Up to a quarter more, so that several bots do not knock together.
    let jitter = u64::from_str_radix(&ids::random_hex(2), 16).unwrap_or(0);
    Duration::from_millis(seconds * 1_000 + seconds * jitter).min(LONGEST_WAIT)
}

impl Gateway {
    /// Stays connected until nobody listens or Discord says never.
    pub(crate) async fn run(self, signals: mpsc::Sender<Signal>) {
        let mut intents = Intents::GUILDS
            | Intents::GUILD_MESSAGES
            | Intents::DIRECT_MESSAGES
            | Intents::MESSAGE_CONTENT;
        let mut session: Option<(Session, Option<String>)> = None;
        let mut failures = 0;
        loop {
            tokio::time::sleep(wait_before(failures)).await;
            let began = Instant::now();
            let end = match self.address(session.is_some()).await {
                Ok(url) => {
                    let mut shard = self.shard(&url, intents, session.take());
                    let end = follow(&mut shard, &self.rest, &signals).await;
                    session = shard
                        .session()
                        .cloned()
                        .map(|it| (it, shard.resume_url().map(str::to_owned)));
                    end
                }
                Err(end) => end,
            };
            failures = if began.elapsed() >= GOOD { 0 } else { failures + 1 };
            let signal = match end {
                End::Again(reason) => Signal::Down { reason },
                End::Anew(reason) => {
                    session = None;
                    Signal::Down { reason }
                }
                End::WithoutContent if intents.contains(Intents::MESSAGE_CONTENT) => {
                    intents.remove(Intents::MESSAGE_CONTENT);
                    session = None;
                    failures = 0;
                    Signal::Degraded {
                        reason: "discord did not grant the message content intent (4014): messages in \
                                 rooms reach the team only when they mention its bot; switch the intent \
                                 on in the developer portal and start again"
                            .to_owned(),
                    }
                }
                End::WithoutContent => Signal::Fatal {
                    reason: "discord refuses intents that every bot has (4014)".to_owned(),
                },
                End::Never(reason) => Signal::Fatal { reason },
                End::Unheard => return,
                End::Overflow => {
                    session = None;
                    Signal::Down {
                        reason: "events came faster than they could be taken".to_owned(),
                    }
                }
            };
            let last = matches!(signal, Signal::Fatal { .. });
            if signals.send(signal).await.is_err() || last {
                return;
            }
        }
    }

    /// Where to connect. Counts the sessions that are left, because a new one may be needed.
    async fn address(&self, resuming: bool) -> Result<String, End> {
        if let Some(url) = &self.url {
            return checked(url);
        }
        let gateway = match self.rest.gateway().await {
            Ok(gateway) => gateway,
            Err(RestError::Unauthorized) => return Err(after_close(4004, "")),
            Err(error) => return Err(End::Again(error.to_string())),
        };
        let starts = gateway.session_start_limit;
        if !resuming && starts.remaining < SESSIONS_KEPT {
            let wait = Duration::from_millis(starts.reset_after).min(Duration::from_secs(3_600));
            tracing::error!(
                remaining = starts.remaining,
                wait_seconds = wait.as_secs(),
                "few new sessions are left; waiting, because discord resets the token at none"
            );
            tokio::time::sleep(wait).await;
            return Err(End::Again("few new sessions are left for today".to_owned()));
        }
        checked(&gateway.url)
    }

    fn shard(
        &self,
        url: &str,
        intents: Intents,
        session: Option<(Session, Option<String>)>,
    ) -> Shard {
        let token = self.rest.token().expose_secret().to_owned();
        let mut config = ConfigBuilder::new(token, intents).proxy_url(url.to_owned());
        if let Some((session, resume_url)) = session {
            config = config.session(session);
            if let Some(url) = resume_url.and_then(|url| checked(&url).ok()) {
                config = config.resume_url(url);
            }
        }
        Shard::with_config(ShardId::ONE, config.build())
    }
}

/// An address that the socket library takes; it panics on others.
fn checked(url: &str) -> Result<String, End> {
    let url = url.trim_end_matches('/');
    match reqwest::Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "ws" | "wss") && parsed.has_host() => {
            Ok(url.to_owned())
        }
        Ok(_) | Err(_) => Err(End::Again(format!(
            "{url:?} is not a gateway address such as wss://gateway.discord.gg"
        ))),
    }
}

/// Reads one connection to its end. Never waits for the listener: a slow one loses the session instead of
/// the heartbeats, and what it missed is read again afterwards.
async fn follow(shard: &mut Shard, rest: &Rest, signals: &mpsc::Sender<Signal>) -> End {
    let mut greeted = false;
    let greeting = Instant::now() + GREETING;
    loop {
        let next = if greeted {
            tokio::select! {
                next = shard.next() => next,
                () = signals.closed() => return End::Unheard,
            }
        } else {
            match tokio::time::timeout_at(greeting, shard.next()).await {
                Ok(next) => next,
                Err(_) => return End::Again("discord did not greet within a minute".to_owned()),
            }
        };
        let text = match next {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(Some(frame)))) => return after_close(frame.code, &frame.reason),
            Some(Ok(Message::Close(None))) | None => {
                return End::Again("the connection was closed".to_owned());
            }
            Some(Err(error)) => {
                use twilight_gateway::error::ReceiveMessageErrorType as Kind;
                if matches!(error.kind(), Kind::Deserializing { .. }) {
                    metrics::counter!("discord_gateway_unreadable").increment(1);
                    tracing::warn!(%error, "gateway sent something unreadable");
                    continue;
                }
                return End::Again(with_source(&error));
            }
        };
        let Ok(frame) = serde_json::from_str::<Frame>(&text) else {
            metrics::counter!("discord_gateway_unreadable").increment(1);
            tracing::warn!(bytes = text.len(), "gateway frame does not parse");
            continue;
        };
        match frame.op {
            0 => {}
            7 => return End::Again("discord asked to reconnect".to_owned()),
            9 => return End::Again("discord ended the session".to_owned()),
            _ => continue,
        }
        let Some(kind) = frame.t else { continue };
        let signal = match kind.as_str() {
            "READY" => {
                let ready: ReadyData = match serde_json::from_value(frame.d) {
                    Ok(ready) => ready,
                    Err(error) => return End::Anew(format!("unreadable greeting: {error}")),
                };
                greeted = true;
                Signal::Up {
                    fresh: true,
                    user: ready.user.id,
                    application: ready.application.id.0,
                    guilds: ready.guilds.into_iter().map(|it| it.id).collect(),
                }
            }
            "RESUMED" => {
                greeted = true;
                Signal::Resumed
            }
            "INTERACTION_CREATE" => {
                Signal::Interaction { acknowledged: acknowledge(rest, &frame.d), data: frame.d }
            }
            _ => Signal::Dispatch { kind, data: frame.d },
        };
        match signals.try_send(signal) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Closed(_)) => return End::Unheard,
            Err(mpsc::error::TrySendError::Full(_)) => return End::Overflow,
        }
    }
}

/// Tells Discord within its three seconds that we heard, and the answer follows; or shows the form that
/// was asked for, which is the answer.
fn acknowledge(rest: &Rest, data: &Value) -> JoinHandle<Result<(), RestError>> {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let id = text("id").parse().unwrap_or(0);
    let token = text("token").to_owned();
    let rest = rest.clone();
    let form = forms::asked_for(data);
    tasks::spawn("discord-acknowledge", async move {
        match form {
            Some(form) => rest.open_form(id, &token, form).await,
            None => rest.defer(id, &token).await,
        }
    })
}

fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_codes_end_as_documented() {
        for code in [4004, 4010, 4011, 4012, 4013] {
            assert!(matches!(after_close(code, ""), End::Never(_)), "{code}");
        }
        for code in [4007, 4009] {
            assert!(matches!(after_close(code, ""), End::Anew(_)), "{code}");
        }
        for code in [1000, 1006, 4000, 4001, 4002, 4005, 4008] {
            assert!(matches!(after_close(code, ""), End::Again(_)), "{code}");
        }
        assert_eq!(after_close(4014, ""), End::WithoutContent);
    }

    #[test]
    fn waits_grow_and_stay_bounded() {
        assert_eq!(wait_before(0), Duration::ZERO);
        for failures in 1..100 {
            let wait = wait_before(failures);
            assert!(wait >= Duration::from_secs(1) && wait <= LONGEST_WAIT);
        }
        assert!(wait_before(4) >= Duration::from_secs(8));
    }

    #[test]
    fn only_socket_addresses_are_tried() {
        assert_eq!(checked("ws://127.0.0.1:1/"), Ok("ws://127.0.0.1:1".to_owned()));
        for bad in ["", "http://x", "ws://", "gateway.discord.gg"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
