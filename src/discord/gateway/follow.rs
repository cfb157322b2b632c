//! Reads one connection to its end.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use twilight_gateway::{Message, Shard};

use super::ending::{End, after_close};
use super::{Gateway, Heard, Live, Signal};
use crate::discord::forms;
use crate::discord::presence::Shower;
use crate::discord::sessions::{Kept, Mark};
use crate::discord::standing::Standing;
use crate::domain::ids::{GuildId, UserId};
use crate::platform::tasks;

/// Waiting for READY or RESUMED, and for the team to take a greeting.
const GREETING: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize)]
struct Frame {
    op: u8,
    #[serde(default)]
    s: Option<u64>,
    #[serde(default)]
    t: Option<String>,
    #[serde(default)]
    d: Value,
}

#[derive(Debug, Deserialize)]
struct ReadyData {
    session_id: String,
    #[serde(default)]
    resume_gateway_url: Option<String>,
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

/// What is known while one connection lives.
pub(super) struct Following<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) out: &'a mpsc::Sender<Heard>,
    pub(super) intents: u64,
    /// The session, once there is one; it moves on with every event that the team's side has taken.
    pub(super) live: &'a mut Option<Live>,
    /// Nobody was told yet that this process is connected.
    pub(super) first: &'a mut bool,
    /// Whether this connection was greeted.
    pub(super) greeted: bool,
    /// Whether it brought anything but the greeting.
    pub(super) useful: bool,
}

impl Following<'_> {
    /// Never waits for the listener: a slow one gets the events that it did not take again, by resuming
    /// behind the last one that it took. Heartbeats go on meanwhile.
    pub(super) async fn follow(&mut self, shard: &mut Shard) -> End {
        let greeting = Instant::now() + GREETING;
        let mut shower = None;
        loop {
            if self.greeted && shower.is_none() {
                shower = Some(Shower::new(&self.gateway.shows));
            }
            let shown = async {
                match &mut shower {
                    Some(shower) => shower.next().await,
                    None => std::future::pending().await,
                }
            };
            let next = tokio::select! {
                next = shard.next() => next,
                frame = shown => {
                    shard.send(frame);
                    continue;
                }
                () = self.out.closed() => return End::Unheard,
                () = tokio::time::sleep_until(greeting), if !self.greeted => {
                    return End::Again("discord did not greet within a minute".to_owned());
                }
            };
            let text = match next {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(Some(frame)))) => {
                    return after_close(frame.code, &frame.reason);
                }
                Some(Ok(Message::Close(None))) | None => {
                    return End::Again("the connection was closed".to_owned());
                }
                Some(Err(error)) => {
                    use twilight_gateway::error::ReceiveMessageErrorType as Kind;
                    match error.kind() {
                        Kind::Deserializing { .. } => {
                            unreadable(&error);
                            continue;
                        }
                        Kind::Reconnect => return End::Unreached(with_source(&error)),
                        _ => return End::Again(with_source(&error)),
                    }
                }
            };
            let frame = match serde_json::from_str::<Frame>(&text) {
                Ok(frame) => frame,
                Err(error) => {
                    unreadable(&error);
                    continue;
                }
            };
            match (frame.op, &frame.d) {
                (0, _) => {}
                (7, _) => return End::Again("discord asked to reconnect".to_owned()),
                (9, Value::Bool(true)) => {
                    return End::Again("discord interrupted the session".to_owned());
                }
                (9, _) => return End::Anew("discord ended the session".to_owned()),
                _ => continue,
            }
            if let Some(end) = self.dispatch(frame).await {
                return end;
            }
        }
    }

    async fn dispatch(&mut self, frame: Frame) -> Option<End> {
        let (Some(kind), Some(sequence)) = (frame.t, frame.s) else { return None };
        let greeting = match kind.as_str() {
            "READY" => match self.ready(&frame.d, sequence) {
                Ok(up) => Some(up),
                Err(end) => return Some(end),
            },
            "RESUMED" => Some(self.resumed()),
            _ => None,
        };
        if let Some(signal) = greeting {
            self.greeted = true;
            self.gateway.board.set(self.gateway.bot, Standing::Connected);
            let heard = self.heard(sequence, signal);
            return match tokio::time::timeout(GREETING, self.out.send(heard)).await {
                Ok(Ok(())) => {
                    self.took(sequence);
                    None
                }
                Ok(Err(_)) => Some(End::Unheard),
                Err(_) => Some(End::Anew("the team did not take the greeting".to_owned())),
            };
        }
        let place = match self.out.try_reserve() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Closed(())) => return Some(End::Unheard),
            Err(mpsc::error::TrySendError::Full(())) => return Some(End::Overflow),
        };
        let signal = match kind.as_str() {
            "INTERACTION_CREATE" => {
                Signal::Interaction { acknowledged: self.acknowledge(&frame.d), data: frame.d }
            }
            _ => Signal::Dispatch { kind, data: frame.d },
        };
        place.send(self.heard(sequence, signal));
        self.useful = true;
        self.took(sequence);
        None
    }

    fn took(&mut self, sequence: u64) {
        if let Some(live) = self.live.as_mut() {
            live.kept.sequence = live.kept.sequence.max(sequence);
        }
    }

    fn heard(&self, sequence: u64, signal: Signal) -> Heard {
        let mark = self.live.as_ref().map(|live| Mark { life: live.life, sequence });
        Heard { bot: self.gateway.bot, mark, signal }
    }

    fn ready(&mut self, data: &Value, sequence: u64) -> Result<Signal, End> {
        let ready: ReadyData = ReadyData::deserialize(data)
            .map_err(|error| End::Anew(format!("unreadable greeting: {error}")))?;
        let kept = Kept {
            of: self.gateway.fingerprint(),
            intents: self.intents,
            session_id: ready.session_id,
            sequence,
            resume_url: ready.resume_gateway_url,
            user: ready.user.id,
            application: ready.application.id.0,
            guilds: ready.guilds.into_iter().map(|it| it.id).collect(),
        };
        let life = self.gateway.sessions.began(self.gateway.bot, kept.clone());
        let signal = up(&kept);
        *self.live = Some(Live { kept, life });
        *self.first = false;
        Ok(signal)
    }

    /// The first connection of a process is told with everything, also where it goes on with the session
    /// of an earlier one: whoever listens knows nothing yet.
    fn resumed(&mut self) -> Signal {
        match self.live {
            Some(live) if *self.first => {
                *self.first = false;
                up(&live.kept)
            }
            Some(_) | None => Signal::Resumed,
        }
    }

    /// Tells Discord within its three seconds that we heard, and the answer follows; or shows the form that
    /// was asked for, which is the answer.
    fn acknowledge(
        &self,
        data: &Value,
    ) -> tokio::task::JoinHandle<Result<(), crate::discord::error::RestError>> {
        let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
        let id = text("id").parse().unwrap_or(0);
        let token = text("token").to_owned();
        let rest = self.gateway.rest.clone();
        let form = forms::asked_for(data, &self.gateway.catalog);
        // What is suggested while somebody types is the one answer to that.
        let suggests = data["type"] == 4;
        tasks::spawn_on(&self.gateway.calls, "discord-acknowledge", async move {
            match form {
                None if suggests => Ok(()),
                Some(form) => rest.open_form(id, &token, form).await,
                None => rest.defer(id, &token).await,
            }
        })
    }
}

fn up(kept: &Kept) -> Signal {
    Signal::Up {
        fresh: true,
        user: kept.user,
        application: kept.application,
        guilds: kept.guilds.clone(),
    }
}

fn unreadable(error: &dyn std::error::Error) {
    metrics::counter!("discord_gateway_unreadable").increment(1);
    tracing::warn!(%error, "gateway sent something unreadable");
}

fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
