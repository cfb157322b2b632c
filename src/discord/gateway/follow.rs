//! Reads one connection to its end.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::bot::{GOOD, Gateway, Live};
use super::ending::{End, after_close};
use super::protocol::{Dispatch, Output, Protocol, SILENT};
use super::signal::{BotSignal, Signal};
use super::socket::{Frame, Socket};
use crate::discord::presence::PresenceSender;
use crate::discord::sessions::{EventPosition, SavedSession};
use crate::discord::{forms, person_request};
use crate::domain::ids::{GuildId, UserId};
use crate::platform::tasks;

/// Waiting for the team to take a greeting.
const GREETING: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize)]
struct ReadyData {
    session_id: String,
    #[serde(default)]
    resume_gateway_url: Option<String>,
    user: UserObject,
    application: Application,
    guilds: Vec<GuildRef>,
}

#[derive(Debug, Deserialize)]
struct UserObject {
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
pub(super) struct LiveConnection<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) out: &'a mpsc::Sender<BotSignal>,
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

impl LiveConnection<'_> {
    /// Never waits for the listener: a slow one gets the events that it did not take again, by resuming
    /// behind the last one that it took. Heartbeats go on meanwhile.
    pub(super) async fn follow(&mut self, socket: &mut Socket, protocol: &mut Protocol<'_>) -> End {
        let began = Instant::now();
        let now = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut shower = None;
        let mut steady = false;
        loop {
            if self.greeted && shower.is_none() {
                shower = Some(PresenceSender::new(&self.gateway.shows));
            }
            let may_show = protocol.may_send(now());
            let shown = async {
                match &mut shower {
                    Some(shower) if may_show => shower.next().await,
                    Some(_) | None => std::future::pending().await,
                }
            };
            let due = began + Duration::from_millis(protocol.due());
            let outputs = tokio::select! {
                received = socket.next() => match received {
                    Ok(Frame::Text(text)) => protocol.received(&text, now()),
                    Ok(Frame::Binary) => protocol.received_binary(now()),
                    Ok(Frame::Close(Some((code, reason)))) => return after_close(code, &reason),
                    Ok(Frame::Close(None)) => {
                        return End::Again("the connection was closed".to_owned());
                    }
                    Err(reason) => return End::Again(reason),
                },
                frame = shown => {
                    protocol.sends(now());
                    vec![Output::Send(frame)]
                }
                () = tokio::time::sleep_until(due) => protocol.timer(now()),
                () = tokio::time::sleep_until(began + GOOD), if !steady => {
                    steady = true;
                    if self.greeted {
                        self.gateway.board.steady(self.gateway.bot);
                    }
                    continue;
                }
                () = self.out.closed() => return End::Unheard,
            };
            for output in outputs {
                if let Some(end) = self.does(output, socket, protocol).await {
                    return end;
                }
            }
        }
    }

    async fn does(
        &mut self,
        output: Output,
        socket: &mut Socket,
        protocol: &mut Protocol<'_>,
    ) -> Option<End> {
        match output {
            Output::Send(frame) => socket.send(frame).await.err().map(End::Again),
            Output::Identify(frame) => {
                self.gateway.connections.identified(&self.gateway.fingerprint());
                socket.send(frame).await.err().map(End::Again)
            }
            Output::Dispatch(event) => self.dispatch(event, protocol).await,
            Output::Missed { through, what } => self.missed(through, &what).await,
            Output::Silent => {
                self.gateway.board.silent(self.gateway.bot, SILENT);
                tracing::warn!(bot = ?self.gateway.bot, "{SILENT}; the channels are read instead");
                self.look_back(None).await
            }
            Output::Audible => {
                self.gateway.board.connected(self.gateway.bot);
                None
            }
            Output::End(end) => Some(end),
        }
    }

    /// Something was said that is not to be had from the gateway.
    async fn missed(&mut self, through: u64, what: &str) -> Option<End> {
        tracing::warn!(
            bot = ?self.gateway.bot,
            event = what,
            number = through,
            "not to be had from the gateway, also not by resuming: skipped, and the channels are read"
        );
        self.gateway.board.missed(self.gateway.bot, what);
        let end = self.look_back(Some(through)).await;
        if end.is_none() {
            // Else it is met again when the session is resumed.
            self.took(through);
        }
        end
    }

    /// Lets the listener read what was written lately.
    async fn look_back(&mut self, through: Option<u64>) -> Option<End> {
        let place = match self.out.try_reserve() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Closed(())) => return Some(End::Unheard),
            Err(mpsc::error::TrySendError::Full(())) => return Some(End::Overflow),
        };
        let mark = through.and_then(|through| self.heard(through, Signal::Missed).mark);
        place.send(BotSignal { bot: self.gateway.bot, mark, signal: Signal::Missed });
        None
    }

    async fn dispatch(&mut self, event: Dispatch, protocol: &mut Protocol<'_>) -> Option<End> {
        let Dispatch { kind, sequence, data } = event;
        let greeting = match kind.as_str() {
            "READY" => match self.ready(&data, sequence) {
                Ok(up) => Some(up),
                Err(end) => return Some(end),
            },
            "RESUMED" => Some(self.resumed()),
            _ => None,
        };
        if let Some(signal) = greeting {
            self.greeted = true;
            if let Some(live) = self.live.as_ref() {
                protocol.greeted(live.kept.user, live.kept.guilds.first().copied());
            }
            if protocol.is_silent() {
                self.gateway.board.silent(self.gateway.bot, SILENT);
            } else {
                self.gateway.board.connected(self.gateway.bot);
            }
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
                Signal::Interaction { acknowledged: self.acknowledge(&data), data }
            }
            _ => Signal::Dispatch { kind, data },
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

    fn heard(&self, sequence: u64, signal: Signal) -> BotSignal {
        let mark = self.live.as_ref().map(|live| EventPosition { life: live.life, sequence });
        BotSignal { bot: self.gateway.bot, mark, signal }
    }

    fn ready(&mut self, data: &Value, sequence: u64) -> Result<Signal, End> {
        let ready: ReadyData = ReadyData::deserialize(data)
            .map_err(|error| End::Anew(format!("unreadable greeting: {error}")))?;
        let kept = SavedSession {
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
        // Rights are looked at first: whoever may not have the form is told so instead.
        let opens = || {
            let seeker = person_request::form_seeker(data);
            seeker.is_some_and(|(actor, form)| self.gateway.access.opens(&actor, form))
        };
        let form = forms::asked_for(data, &self.gateway.catalog).filter(|_| opens());
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

fn up(kept: &SavedSession) -> Signal {
    Signal::Up {
        fresh: true,
        user: kept.user,
        application: kept.application,
        guilds: kept.guilds.clone(),
    }
}
