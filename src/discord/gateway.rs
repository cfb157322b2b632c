//! One bot's connection to the gateway.
//!
//! twilight speaks the protocol for the life of one connection: heartbeats, identify, resume. Whether and
//! when to connect again is decided here, because no library backs off when every resume is closed at once
//! (`spec/discord.md` 0.4 and 5). All connections of a team share one thread and one runtime that do nothing
//! else, so that whatever happens there takes no time from the team.

use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use twilight_gateway::{ConfigBuilder, Intents, Session, Shard, ShardId};

use crate::assets::catalog::Catalog;
use crate::discord::error::RestError;
use crate::discord::governor::Limits;
use crate::discord::presence::Presence;
use crate::discord::rest::Rest;
use crate::discord::sessions::{Bot, Kept, Mark, Sessions, fingerprint};
use crate::discord::standing::{Board, Standing};
use crate::discord::token_lock;
use crate::domain::ids::{GuildId, UserId};
use crate::domain::time::Timestamp;
use crate::platform::disk::Held;
use crate::platform::{clock, tasks};

mod ending;
mod follow;

use ending::{End, after_close, wait_before};
use follow::Following;

/// A connection that lived this long was a good one: the next wait starts from the beginning.
const GOOD: Duration = Duration::from_secs(60);
/// New sessions that are left to a human in trouble; Discord resets the token at none.
const SESSIONS_KEPT: u32 = 50;
/// The budget of new sessions is asked for again after this long at the latest.
const LONGEST_SAVING: Duration = Duration::from_secs(3_600);
/// Resumes in a row that came to nothing, after which the session is given up.
const RESUMES: u32 = 3;

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

/// A signal, whose it is, and the event that it was.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) bot: Bot,
    pub(crate) mark: Option<Mark>,
    pub(crate) signal: Signal,
}

/// The session that a connection goes on with.
#[derive(Debug, Clone)]
struct Live {
    kept: Kept,
    life: u64,
}

/// One bot's connection.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    pub(crate) bot: Bot,
    pub(crate) rest: Rest,
    /// Instead of asking Discord for the address.
    pub(crate) url: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) board: Arc<Board>,
    /// The words of forms.
    pub(crate) catalog: Catalog,
    /// What the bot shows beside its name.
    pub(crate) shows: watch::Receiver<Presence>,
    /// Where calls of ours run: not beside the connections.
    pub(crate) calls: tokio::runtime::Handle,
}

/// Keeps every connection on a thread of its own until `closing`, or until nobody listens.
pub(crate) fn keep_all(
    gateways: Vec<Gateway>,
    out: &mpsc::Sender<Heard>,
    closing: CancellationToken,
) -> std::io::Result<()> {
    let out = out.clone();
    tasks::apart("discord-gateway", async move {
        let kept: Vec<_> = gateways
            .into_iter()
            .map(|gateway| tasks::spawn("discord-bot", gateway.keep(out.clone())))
            .collect();
        drop(out);
        tokio::select! {
            _ = futures_util::future::join_all(kept) => {}
            () = closing.cancelled() => {}
        }
    })
}

/// Why a connection is not made for now.
enum Hold {
    End(End),
    /// Until then, for a reason that people should know.
    Until(Duration, String),
}

impl Gateway {
    /// Runs, and runs again where a connection broke off in a way that nobody thought of.
    async fn keep(self, out: mpsc::Sender<Heard>) {
        let mut failures = 0;
        loop {
            let run = tasks::spawn("discord-connection", self.clone().run(out.clone()));
            let Err(error) = run.await else { return };
            failures += 1;
            tracing::error!(%error, bot = ?self.bot, "a gateway connection broke off; it is made again");
            let reason = "the connection broke off, see the log".to_owned();
            self.board.set(self.bot, Standing::Away { reason: reason.clone() });
            let sent = out.send(self.say(Signal::Down { reason })).await;
            if sent.is_err() || !rest_for(wait_before(failures), &out).await {
                return;
            }
        }
    }

    const fn say(&self, signal: Signal) -> Heard {
        Heard { bot: self.bot, mark: None, signal }
    }

    fn fingerprint(&self) -> String {
        fingerprint(self.rest.pool().base_url(), self.rest.token().expose_secret())
    }

    /// Stays connected until nobody listens or Discord says never.
    async fn run(self, out: mpsc::Sender<Heard>) {
        let Some(_alone) = self.alone(&out).await else { return };
        let mut intents = Intents::GUILDS
            | Intents::GUILD_MESSAGES
            | Intents::DIRECT_MESSAGES
            | Intents::MESSAGE_CONTENT;
        let mut live = self.taken_up(intents);
        let (mut first, mut failures, mut resumes) = (true, 0, 0);
        let mut identified: Option<Instant> = None;
        loop {
            if !rest_for(wait_before(failures), &out).await {
                return;
            }
            let url = match self.address(live.as_ref(), identified).await {
                Ok(url) => url,
                Err(Hold::Until(wait, reason)) => {
                    let until = Timestamp::new(clock::now()).plus_seconds(wait.as_secs());
                    tracing::warn!(bot = ?self.bot, wait_seconds = wait.as_secs(), reason, "not connecting yet");
                    self.board.set(self.bot, Standing::Waiting { until, reason });
                    if !rest_for(wait, &out).await {
                        return;
                    }
                    continue;
                }
                Err(Hold::End(end)) => {
                    failures += 1;
                    if !self.ended(end, &mut live, &mut intents, &out).await {
                        return;
                    }
                    continue;
                }
            };
            let resuming = live.is_some();
            if !resuming {
                identified = Some(Instant::now());
            }
            let began = Instant::now();
            let mut shard = self.shard(&url, intents, live.as_ref());
            let mut following = Following {
                gateway: &self,
                out: &out,
                intents: intents.bits(),
                live: &mut live,
                first: &mut first,
                greeted: false,
                useful: false,
            };
            let end = following.follow(&mut shard).await;
            let good = began.elapsed() >= GOOD;
            let useful = following.useful || (good && following.greeted);
            drop(shard);
            failures = if good {
                0
            } else if useful && matches!(end, End::Again(_)) {
                // It worked for a while. A new session costs, and is waited for longer each time.
                1
            } else {
                failures + 1
            };
            // A session that is closed time after time before it brings anything is none to hold on to.
            resumes = if resuming && !useful { resumes + 1 } else { 0 };
            let end = match end {
                End::Again(reason) if resumes >= RESUMES => End::Anew(reason),
                End::Unreached(reason) => {
                    if let Some(live) = &mut live {
                        live.kept.resume_url = None;
                    }
                    End::Again(reason)
                }
                End::WithoutContent => {
                    failures = 0;
                    End::WithoutContent
                }
                End::Overflow => {
                    // The wait for room is what holds us back.
                    failures = 1;
                    resumes = 0;
                    End::Overflow
                }
                end @ (End::Again(_) | End::Anew(_) | End::Never(_) | End::Unheard) => end,
            };
            if live.is_none() || matches!(end, End::Anew(_)) {
                resumes = 0;
            }
            if !self.ended(end, &mut live, &mut intents, &out).await {
                return;
            }
        }
    }

    /// Says what an end means; whether to go on.
    async fn ended(
        &self,
        end: End,
        live: &mut Option<Live>,
        intents: &mut Intents,
        out: &mpsc::Sender<Heard>,
    ) -> bool {
        let mut anew = || {
            *live = None;
            self.sessions.ended(self.bot);
        };
        let signal = match end {
            End::Again(reason) | End::Unreached(reason) => Signal::Down { reason },
            End::Anew(reason) => {
                anew();
                Signal::Down { reason }
            }
            End::WithoutContent if intents.contains(Intents::MESSAGE_CONTENT) => {
                intents.remove(Intents::MESSAGE_CONTENT);
                anew();
                Signal::Degraded {
                    reason: "discord did not grant the message content intent (4014): messages in \
                             rooms reach the team only when they mention its bot; switch the intent \
                             on in the developer portal and start again"
                        .to_owned(),
                }
            }
            End::WithoutContent => Signal::Fatal {
                reason:
                    "discord refuses intents that every bot has (4014); give the bot of another \
                         application to the team and start again"
                        .to_owned(),
            },
            End::Never(reason) => Signal::Fatal { reason },
            End::Unheard => return false,
            End::Overflow => {
                metrics::counter!("discord_gateway_overflows").increment(1);
                tracing::warn!(bot = ?self.bot, "events come faster than they are taken; going on behind the last");
                let half = out.max_capacity() / 2;
                // Discord keeps the rest until there is room.
                return out.reserve_many(half).await.is_ok();
            }
        };
        let last = match &signal {
            Signal::Down { reason } => {
                self.board.set(self.bot, Standing::Away { reason: reason.clone() });
                false
            }
            Signal::Degraded { reason } => {
                self.board.lessen(self.bot, reason);
                false
            }
            Signal::Fatal { reason } => {
                self.sessions.ended(self.bot);
                self.board.set(self.bot, Standing::NeedsYou { reason: reason.clone() });
                true
            }
            Signal::Up { .. }
            | Signal::Resumed
            | Signal::Dispatch { .. }
            | Signal::Interaction { .. } => false,
        };
        out.send(self.say(signal)).await.is_ok() && !last
    }

    /// Waits until no other team of this machine is connected with the token; `None` where nobody listens
    /// any more. Two sessions of one bot would hear and answer everything twice.
    async fn alone(&self, out: &mpsc::Sender<Heard>) -> Option<Option<Box<dyn Held>>> {
        let mut failures = 0;
        loop {
            match token_lock::take(&self.fingerprint()) {
                Ok(Some(held)) => return Some(Some(held)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "whether another team uses this bot is not known");
                    return Some(None);
                }
            }
            let reason =
                "another team on this machine is connected with this bot's token; stop it, or \
                          give this team a bot of its own"
                    .to_owned();
            if failures == 0 {
                tracing::error!(bot = ?self.bot, reason);
                self.board.set(self.bot, Standing::NeedsYou { reason: reason.clone() });
                if out.send(self.say(Signal::Down { reason })).await.is_err() {
                    return None;
                }
            }
            failures += 1;
            if !rest_for(wait_before(failures), out).await {
                return None;
            }
        }
    }

    /// The session of an earlier process, if it is of this bot and hears what we want to hear.
    fn taken_up(&self, intents: Intents) -> Option<Live> {
        let (kept, life) = self.sessions.load(self.bot)?;
        let fits = kept.of == self.fingerprint() && kept.intents == intents.bits();
        if !fits {
            self.sessions.ended(self.bot);
        }
        fits.then_some(Live { kept, life })
    }

    /// Where to connect, or why not yet. A new session is begun only while enough are left.
    async fn address(
        &self,
        live: Option<&Live>,
        identified: Option<Instant>,
    ) -> Result<String, Hold> {
        let resume = live.and_then(|live| live.kept.resume_url.as_deref());
        if let Some(url) = resume.or(self.url.as_deref().filter(|_| live.is_some())) {
            return checked(url).map_err(Hold::End);
        }
        let gateway = match self.rest.gateway().await {
            Ok(gateway) => gateway,
            Err(RestError::Unauthorized) => return Err(Hold::End(after_close(4004, ""))),
            Err(error) => return Err(Hold::End(End::Again(error.to_string()))),
        };
        if live.is_none() {
            let starts = gateway.session_start_limit;
            if starts.remaining < SESSIONS_KEPT {
                let wait = Duration::from_millis(starts.reset_after.max(1_000)).min(LONGEST_SAVING);
                let reason = format!(
                    "only {} new sessions are left to this bot for now, and discord resets the token \
                     at none; the team connects when there are more",
                    starts.remaining
                );
                return Err(Hold::Until(wait, reason));
            }
            if let Some(before) = identified {
                tokio::time::sleep_until(before + self.limits.between_sessions).await;
            }
        }
        checked(self.url.as_deref().unwrap_or(&gateway.url)).map_err(Hold::End)
    }

    fn shard(&self, url: &str, intents: Intents, live: Option<&Live>) -> Shard {
        let token = self.rest.token().expose_secret().to_owned();
        let mut config = ConfigBuilder::new(token, intents).proxy_url(url.to_owned());
        if let Some(Live { kept, .. }) = live {
            config = config.session(Session::new(kept.sequence, kept.session_id.clone()));
        }
        Shard::with_config(ShardId::ONE, config.build())
    }
}

/// Rests; `false` where nobody listens any more.
async fn rest_for(wait: Duration, out: &mpsc::Sender<Heard>) -> bool {
    tokio::select! {
        () = tokio::time::sleep(wait) => !out.is_closed(),
        () = out.closed() => false,
    }
}

/// An address that the socket library takes; it panics on others.
fn checked(url: &str) -> Result<String, End> {
    let url = url.trim_end_matches('/');
    match reqwest::Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "ws" | "wss") && parsed.has_host() => {
            Ok(url.to_owned())
        }
        Ok(_) | Err(_) => Err(End::Unreached(format!(
            "{url:?} is not a gateway address such as wss://gateway.discord.gg"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_socket_addresses_are_tried() {
        assert_eq!(checked("ws://127.0.0.1:1/"), Ok("ws://127.0.0.1:1".to_owned()));
        for bad in ["", "http://x", "ws://", "gateway.discord.gg"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
