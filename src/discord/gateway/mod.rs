//! One bot's connection to the gateway.
//!
//! [`protocol`] says what goes over one connection, [`socket`] is the connection, and [`follow`] reads it to
//! its end. Whether and when to connect again is decided here alone: no connection is made that
//! [`connections`] does not count, whatever ended the one before (`spec/discord.md` 0.4 and 5). All connections
//! of a team share one thread and one runtime that do nothing else, so that whatever happens there takes no time
//! from the team.

use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::discord::error::RestError;
use crate::discord::rest::is_loopback;
use crate::discord::token_lock;
use crate::domain::time::Timestamp;
use crate::platform::disk::FileLock;
use crate::platform::{clock, ids, tasks};

mod bot;
mod connections;
mod ending;
mod follow;
mod protocol;
mod signal;
mod socket;

pub(crate) use bot::Gateway;
use bot::{GOOD, Live};
use connections::ConnectionDelay;
pub(crate) use connections::ConnectionLog;
use ending::{End, after_close, wait_before};
use follow::LiveConnection;
use protocol::{Begin, Memory, Protocol};
pub(crate) use signal::{BotSignal, Signal};
use socket::Socket;

/// What a bot asks to hear (`spec/discord.md` 2).
mod intents {
    const GUILDS: u64 = 1 << 0;
    const GUILD_MESSAGES: u64 = 1 << 9;
    const DIRECT_MESSAGES: u64 = 1 << 12;
    pub(super) const MESSAGE_CONTENT: u64 = 1 << 15;
    pub(super) const ALL: u64 = GUILDS | GUILD_MESSAGES | DIRECT_MESSAGES | MESSAGE_CONTENT;
}

/// Whoever waits for the next connection looks again after this long at the latest.
const LOOK_AGAIN: Duration = Duration::from_secs(3_600);
/// Resumes in a row that came to nothing, after which the session is given up.
const RESUMES: u32 = 3;

/// Keeps every connection on a thread of its own until `closing`, or until nobody listens.
pub(crate) fn keep_all(
    gateways: Vec<Gateway>,
    out: &mpsc::Sender<BotSignal>,
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
enum ConnectDelay {
    End(End),
    Hold(ConnectionDelay),
}

impl Gateway {
    /// Runs, and runs again where a connection broke off in a way that nobody thought of.
    async fn keep(self, out: mpsc::Sender<BotSignal>) {
        let mut failures = 0;
        loop {
            let run = tasks::spawn("discord-connection", self.clone().run(out.clone()));
            let Err(error) = run.await else { return };
            failures += 1;
            tracing::error!(%error, bot = ?self.bot, "a gateway connection broke off; it is made again");
            let reason = "the connection broke off, see the log".to_owned();
            let wait = wait_before(failures);
            self.board.failed(self.bot, &reason, after(wait));
            let sent = out.send(self.say(Signal::Down { reason })).await;
            if sent.is_err() || !rest_for(wait, &out).await {
                return;
            }
        }
    }

    const fn say(&self, signal: Signal) -> BotSignal {
        BotSignal { bot: self.bot, mark: None, signal }
    }

    /// Stays connected until nobody listens or Discord says never.
    async fn run(self, out: mpsc::Sender<BotSignal>) {
        let Some(_alone) = self.alone(&out).await else { return };
        let began = Instant::now();
        let mut attempts = Attempts {
            live: self.taken_up(intents::ALL),
            intents: intents::ALL,
            failures: 0,
            wait: Duration::ZERO,
        };
        let mut memory = Memory::default();
        let (mut first, mut resumes) = (true, 0);
        self.board.connecting(self.bot);
        if !self.named(attempts.live.as_ref(), &out).await {
            return;
        }
        loop {
            if !rest_for(attempts.wait, &out).await {
                return;
            }
            let url = match self.address(attempts.live.as_ref(), first).await {
                Ok(url) => url,
                Err(ConnectDelay::Hold(hold)) => {
                    attempts.wait = connections::until(&hold).min(LOOK_AGAIN);
                    tracing::warn!(bot = ?self.bot, until = %hold.timestamp().utc(), reason = hold.reason, "not connecting yet");
                    self.board.waiting(self.bot, hold.timestamp(), &hold.reason);
                    continue;
                }
                Err(ConnectDelay::End(end)) => {
                    attempts.failed();
                    if !self.ended(end, &mut attempts, &out).await {
                        return;
                    }
                    continue;
                }
            };
            let resuming = attempts.live.is_some();
            let connected = Instant::now();
            let (end, useful) = match Socket::connect(&url).await {
                Err(reason) => (End::Unreached(reason), false),
                Ok(mut socket) => {
                    let begin = self.begin(&attempts);
                    let since = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    let mut protocol = Protocol::new(begin, &mut memory, since, jitter());
                    let mut following = LiveConnection {
                        gateway: &self,
                        out: &out,
                        intents: attempts.intents,
                        live: &mut attempts.live,
                        first: &mut first,
                        greeted: false,
                        useful: false,
                    };
                    let end = following.follow(&mut socket, &mut protocol).await;
                    let good = connected.elapsed() >= GOOD && following.greeted;
                    let useful = following.useful || good;
                    if end != End::Unheard {
                        socket.leave().await;
                    }
                    (end, useful)
                }
            };
            if connected.elapsed() >= GOOD {
                attempts.failures = 0;
                attempts.wait = Duration::ZERO;
            } else if useful && matches!(end, End::Again(_)) {
                // It worked for a while. A new session costs, and is waited for longer each time.
                attempts.failures = 0;
                attempts.failed();
            } else {
                attempts.failed();
            }
            // A session that is closed time after time before it brings anything is none to hold on to.
            resumes = if resuming && !useful { resumes + 1 } else { 0 };
            let end = match end {
                End::Again(reason) if resumes >= RESUMES => End::Anew(reason),
                End::Unreached(reason) => {
                    if let Some(live) = &mut attempts.live {
                        live.kept.resume_url = None;
                    }
                    End::Again(reason)
                }
                End::WithoutContent => {
                    attempts.failures = 0;
                    attempts.wait = Duration::ZERO;
                    End::WithoutContent
                }
                End::Overflow => {
                    // The wait for room is what holds us back.
                    attempts.failures = 0;
                    attempts.failed();
                    resumes = 0;
                    End::Overflow
                }
                end @ (End::Again(_) | End::Anew(_) | End::Never(_) | End::Unheard) => end,
            };
            if attempts.live.is_none() || matches!(end, End::Anew(_)) {
                resumes = 0;
            }
            if !self.ended(end, &mut attempts, &out).await {
                return;
            }
        }
    }

    /// Tells who a role's bot is; whether anybody listens. It may have to wait for its connection, and is
    /// mentioned meanwhile.
    async fn named(&self, live: Option<&Live>, out: &mpsc::Sender<BotSignal>) -> bool {
        if self.bot.is_none() {
            return true;
        }
        let user = match live {
            Some(live) => live.kept.user,
            None => match self.rest.me().await {
                Ok(user) => user.id,
                Err(error) => {
                    tracing::debug!(%error, bot = ?self.bot, "who the bot is shows when it is connected");
                    return true;
                }
            },
        };
        out.send(self.say(Signal::Named { user })).await.is_ok()
    }

    fn begin(&self, attempts: &Attempts) -> Begin {
        let token = self.rest.token().expose_secret();
        match &attempts.live {
            Some(Live { kept, .. }) => Begin::resume(token, &kept.session_id, kept.sequence),
            None => Begin::identify(token, attempts.intents),
        }
    }

    /// Says what an end means; whether to go on.
    async fn ended(
        &self,
        end: End,
        attempts: &mut Attempts,
        out: &mpsc::Sender<BotSignal>,
    ) -> bool {
        let mut anew = || {
            attempts.live = None;
            self.sessions.ended(self.bot);
        };
        let signal = match end {
            End::Again(reason) | End::Unreached(reason) => Signal::Down { reason },
            End::Anew(reason) => {
                anew();
                Signal::Down { reason }
            }
            End::WithoutContent if attempts.intents & intents::MESSAGE_CONTENT != 0 => {
                anew();
                attempts.intents &= !intents::MESSAGE_CONTENT;
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
                tracing::warn!(bot = ?self.bot, "events come faster than they are taken; going on behind the last");
                let half = out.max_capacity() / 2;
                // Discord keeps the rest until there is room.
                return out.reserve_many(half).await.is_ok();
            }
        };
        let last = match &signal {
            Signal::Down { reason } => {
                self.board.failed(self.bot, reason, after(attempts.wait));
                false
            }
            Signal::Degraded { reason } => {
                self.board.lessen(self.bot, reason);
                false
            }
            Signal::Fatal { reason } => {
                self.sessions.ended(self.bot);
                self.board.needs_you(self.bot, reason);
                true
            }
            Signal::Up { .. }
            | Signal::Resumed
            | Signal::Named { .. }
            | Signal::Missed
            | Signal::Dispatch { .. }
            | Signal::Interaction { .. } => false,
        };
        out.send(self.say(signal)).await.is_ok() && !last
    }

    /// Waits until no other team of this machine is connected with the token; `None` where nobody listens
    /// any more. Two sessions of one bot would hear and answer everything twice.
    async fn alone(&self, out: &mpsc::Sender<BotSignal>) -> Option<Option<Box<dyn FileLock>>> {
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
                self.board.needs_you(self.bot, &reason);
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
    fn taken_up(&self, intents: u64) -> Option<Live> {
        let (kept, life) = self.sessions.load(self.bot)?;
        let fits = kept.of == self.fingerprint() && kept.intents == intents;
        if !fits {
            self.sessions.ended(self.bot);
        }
        fits.then_some(Live { kept, life })
    }

    /// Where to connect, which is counted then; or why not yet. A new session is begun only while enough are
    /// left.
    async fn address(
        &self,
        live: Option<&Live>,
        is_first: bool,
    ) -> Result<reqwest::Url, ConnectDelay> {
        let held = |hold| Err(ConnectDelay::Hold(hold));
        if let Some(hold) = self.connections.hold(self.bot) {
            return held(hold);
        }
        let resume = live.and_then(|live| live.kept.resume_url.as_deref());
        let resume = resume.filter(|url| self.is_trusted(url));
        let url = match resume.or(self.url.as_deref().filter(|_| live.is_some())) {
            Some(url) => url.to_owned(),
            None => {
                let gateway = match self.rest.gateway().await {
                    Ok(gateway) => gateway,
                    // A token that was good may be refused by mistake; its next session shows it.
                    Err(RestError::Unauthorized) if is_first => {
                        return Err(ConnectDelay::End(after_close(4004, "")));
                    }
                    Err(error) => return Err(ConnectDelay::End(End::Again(error.to_string()))),
                };
                let starts = &gateway.session_start_limit;
                let apart = self.limits.between_sessions;
                if live.is_none()
                    && let Some(hold) =
                        self.connections.hold_identify(&self.fingerprint(), starts, apart)
                {
                    return held(hold);
                }
                self.url.clone().unwrap_or(gateway.url)
            }
        };
        let url = socket_address(&url).map_err(ConnectDelay::End)?;
        self.connections.take(self.bot).map_err(ConnectDelay::Hold)?;
        Ok(url)
    }

    /// Whether the token may be shown at an address that a greeting named: encrypted, or where the server
    /// itself is reached without encryption.
    fn is_trusted(&self, resume: &str) -> bool {
        let base = self.url.as_deref().unwrap_or(self.rest.pool().base_url());
        let trusted = may_resume_at(resume, base);
        if !trusted {
            tracing::warn!(bot = ?self.bot, resume, "no address to resume at; the usual one is taken");
        }
        trusted
    }
}

/// What is known from one connection to the next.
struct Attempts {
    live: Option<Live>,
    intents: u64,
    failures: u32,
    /// Before the next one.
    wait: Duration,
}

impl Attempts {
    fn failed(&mut self) {
        self.failures += 1;
        self.wait = wait_before(self.failures);
    }
}

fn after(wait: Duration) -> Timestamp {
    Timestamp::new(clock::now()).plus_seconds(wait.as_secs())
}

/// Below 1,000.
fn jitter() -> u64 {
    u64::from_str_radix(&ids::random_hex(4), 16).unwrap_or(0) % 1_000
}

/// Rests; `false` where nobody listens any more.
async fn rest_for(wait: Duration, out: &mpsc::Sender<BotSignal>) -> bool {
    tokio::select! {
        () = tokio::time::sleep(wait) => !out.is_closed(),
        () = out.closed() => false,
    }
}

/// The address to connect to, with what we speak.
fn socket_address(url: &str) -> Result<reqwest::Url, End> {
    match reqwest::Url::parse(url) {
        Ok(mut parsed) if matches!(parsed.scheme(), "ws" | "wss") && parsed.has_host() => {
            let folder = format!("{}/", parsed.path().trim_end_matches('/'));
            parsed.set_path(&folder);
            parsed.set_query(Some("v=10&encoding=json"));
            parsed.set_fragment(None);
            Ok(parsed)
        }
        Ok(_) | Err(_) => Err(End::Unreached(format!(
            "{url:?} is not a gateway address such as wss://gateway.discord.gg"
        ))),
    }
}

/// Whether a session may be gone on with at `resume`, where the server is reached at `base`.
fn may_resume_at(resume: &str, base: &str) -> bool {
    let (Ok(resume), Ok(base)) = (reqwest::Url::parse(resume), reqwest::Url::parse(base)) else {
        return false;
    };
    let plain = matches!(base.scheme(), "ws" | "http");
    let same = resume.host_str() == base.host_str();
    let here = is_loopback(resume.as_str()) && is_loopback(base.as_str());
    match resume.scheme() {
        "wss" => resume.has_host(),
        "ws" => plain && (same || here),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_socket_addresses_are_tried() {
        for (given, taken) in [
            ("ws://127.0.0.1:1/", "ws://127.0.0.1:1/?v=10&encoding=json"),
            ("wss://gateway.discord.gg", "wss://gateway.discord.gg/?v=10&encoding=json"),
            ("ws://[::1]:1/again?v=6#x", "ws://[::1]:1/again/?v=10&encoding=json"),
        ] {
            assert_eq!(socket_address(given).unwrap().as_str(), taken);
        }
        for bad in ["", "http://x", "ws://", "gateway.discord.gg"] {
            assert!(socket_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_is_shown_to_no_plain_stranger() {
        let discord = "https://discord.com";
        let here = "http://127.0.0.1:3000";
        for (resume, base, may) in [
            ("wss://gateway-us-east1-b.discord.gg", discord, true),
            ("wss://gateway-us-east1-b.discord.gg", here, true),
            ("ws://gateway-us-east1-b.discord.gg", discord, false),
            ("ws://discord.com", discord, false),
            ("ws://127.0.0.1:4000", here, true),
            ("ws://localhost:4000", here, true),
            ("ws://guild.lan:4000", "http://guild.lan:3000", true),
            ("ws://guild.lan:4000", "ws://guild.lan:3000", true),
            ("ws://elsewhere.lan:4000", "http://guild.lan:3000", false),
            ("ws://elsewhere.lan:4000", here, false),
            ("http://127.0.0.1:4000", here, false),
            ("", here, false),
        ] {
            assert_eq!(may_resume_at(resume, base), may, "{resume} of {base}");
        }
    }
}
