//! Gateway v10: one task a connection, following its session's ring.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message as Ws, Utf8Bytes, WebSocket};
use flate2::{Compress, Compression, FlushCompress};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::event::intent;
use super::faults::{GatewayTrouble, Moment};
use super::gateway_requests::{gone, members, presence};
use super::guild::Guild;
use super::ids::Id;
use super::model::{CONTENT_LIMITED, MEMBERS_LIMITED, PRESENCE_LIMITED};
use super::payload;
use super::rest::threads::archive_silent;
use super::session::Session;

/// Milliseconds between heartbeats, as announced.
const HEARTBEAT_MS: u64 = 41_250;

/// The largest frame that a client may send, in bytes.
const LARGEST_FRAME: usize = 4096;

/// Why a connection ends.
enum End {
    /// Closed by us with one of Discord's codes.
    Close(u16, &'static str),
    /// The client went away, or is to believe that we did.
    Gone,
    /// The client closed with the code, if it gave one.
    Client(Option<u16>),
}

/// The way out, compressed or not.
struct Out {
    socket: WebSocket,
    /// For `compress=zlib-stream`: one stream over the whole connection.
    zlib: Option<Compress>,
}

impl Out {
    async fn send(&mut self, text: &str) -> Result<(), End> {
        let frame = match &mut self.zlib {
            None => Ws::Text(Utf8Bytes::from(text)),
            Some(zlib) => Ws::Binary(deflate(zlib, text.as_bytes()).into()),
        };
        self.socket.send(frame).await.map_err(|_| End::Gone)
    }

    async fn send_op(&mut self, op: u8, data: Value) -> Result<(), End> {
        self.send(&json!({"op": op, "d": data, "s": null, "t": null}).to_string()).await
    }
}

/// Compresses one message and flushes, so that it ends with the four bytes clients wait for.
fn deflate(zlib: &mut Compress, mut input: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len() / 2 + 64);
    loop {
        out.reserve(256 + input.len() / 2);
        let before = zlib.total_in();
        // The only error is misuse of `Finish`, which never occurs here.
        if zlib.compress_vec(input, &mut out, FlushCompress::Sync).is_err() {
            return out;
        }
        let taken = usize::try_from(zlib.total_in() - before).unwrap_or(0);
        input = input.get(taken..).unwrap_or_default();
        if input.is_empty() && out.len() < out.capacity() {
            return out;
        }
    }
}

/// Frames that a client may send in a minute.
const FRAMES: u32 = 120;

/// Counts what a client sends, a minute at a time.
struct Pace {
    ends: Instant,
    sent: u32,
}

impl Pace {
    fn count(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if now >= self.ends {
            *self = Pace { ends: now + Duration::from_secs(60), sent: 0 };
        }
        self.sent += 1;
        let kept = self.sent <= FRAMES;
        if kept { Ok(()) } else { Err(End::Close(4008, "You are being rate limited.")) }
    }
}

/// What a client asks for in the address that it connects to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectOptions {
    /// One compressed stream over the whole connection.
    pub(crate) zlib: bool,
    /// Whether the version is one that is spoken here; none is the newest.
    pub(crate) version: bool,
}

impl ConnectOptions {
    /// Reads the query.
    pub(crate) fn new(query: &str) -> ConnectOptions {
        let has = |wanted: &str| query.split('&').any(|pair| pair == wanted);
        let version = query.split('&').find_map(|pair| pair.strip_prefix("v="));
        ConnectOptions {
            zlib: has("compress=zlib-stream"),
            version: version.is_none_or(|it| matches!(it, "9" | "10")),
        }
    }
}

/// Serves one connection to its end.
pub(crate) async fn serve(guild: Arc<Guild>, socket: WebSocket, wanted: ConnectOptions) {
    let zlib = wanted.zlib.then(|| Compress::new(Compression::fast(), true));
    let mut out = Out { socket, zlib };
    let mut session = None;
    let end = if wanted.version {
        match run(&guild, &mut out, &mut session).await {
            Ok(()) => End::Gone,
            Err(end) => end,
        }
    } else {
        End::Close(4012, "Invalid API version.")
    };
    match end {
        End::Close(code, reason) => {
            tracing::debug!(code, reason, "closed a gateway connection");
            let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
            // The client may be gone already.
            let _ = out.socket.send(Ws::Close(Some(frame))).await;
        }
        End::Client(code) => {
            // A normal close ends the session; everything else leaves it open to a resume.
            if let (Some(1000 | 1001), Some(session)) = (code, &session) {
                let session: &Arc<Session> = session;
                guild.sessions.close(&session.id);
            }
        }
        End::Gone => {}
    }
    if let Some(session) = &session {
        gone(&guild, session);
    }
}

async fn run(
    guild: &Arc<Guild>,
    out: &mut Out,
    held: &mut Option<Arc<Session>>,
) -> Result<(), End> {
    let mut trouble = guild.faults.gateway();
    let interval = guild.faults.heartbeat_ms().unwrap_or(HEARTBEAT_MS);
    out.send_op(10, json!({"heartbeat_interval": interval, "_trace": ["local"]})).await?;
    let patience = Duration::from_millis(interval.saturating_mul(3) / 2);
    let mut pace = Pace { ends: Instant::now() + Duration::from_secs(60), sent: 0 };
    let mut deadline = Instant::now() + patience;
    // Before a session exists there is nothing to follow; the receiver stays quiet.
    let (idle, _) = tokio::sync::watch::channel(0_u64);
    let mut news = idle.subscribe();
    let mut taken_over = idle.subscribe();
    let mut sent = 0;
    let mut dead = false;
    loop {
        tokio::select! {
            frame = out.socket.recv() => {
                let text = match frame {
                    None | Some(Err(_)) => return Err(End::Gone),
                    Some(Ok(Ws::Close(frame))) => {
                        return Err(End::Client(frame.map(|frame| frame.code)));
                    }
                    Some(Ok(Ws::Ping(_) | Ws::Pong(_))) => continue,
                    Some(Ok(Ws::Text(text))) => text.as_bytes().to_vec(),
                    Some(Ok(Ws::Binary(bytes))) => bytes.to_vec(),
                };
                pace.count()?;
                if text.len() > LARGEST_FRAME {
                    return Err(End::Close(4002, "Error while decoding payload."));
                }
                let Ok(payload) = serde_json::from_slice::<Value>(&text) else {
                    return Err(End::Close(4002, "Error while decoding payload."));
                };
                let data = &payload["d"];
                match payload["op"].as_u64() {
                    Some(1) => {
                        deadline = Instant::now() + patience;
                        if !dead && !guild.faults.mute_acks() {
                            out.send_op(11, Value::Null).await?;
                        }
                    }
                    Some(2) => {
                        if held.is_some() {
                            return Err(End::Close(4005, "Already authenticated."));
                        }
                        if met(guild, out, Moment::Identify, data).await? {
                            continue;
                        }
                        let Some(session) = identify(guild, data)? else {
                            out.send_op(9, json!(false)).await?;
                            continue;
                        };
                        presence(guild, &session, data["presence"].clone());
                        (news, taken_over) = attach(&session);
                        sent = 0;
                        *held = Some(session);
                    }
                    Some(6) => {
                        if held.is_some() {
                            return Err(End::Close(4005, "Already authenticated."));
                        }
                        if met(guild, out, Moment::Resume, data).await? {
                            continue;
                        }
                        match resume(guild, data)? {
                            Some((session, from)) => {
                                sent = replay(guild, out, &session, from).await?;
                                (news, taken_over) = attach(&session);
                                // Whatever came between replay and attach is found at once.
                                news.mark_changed();
                                let shown = session.shown.lock();
                                let shown = shown.unwrap_or_else(PoisonError::into_inner).clone();
                                presence(guild, &session, shown);
                                *held = Some(session);
                            }
                            None => out.send_op(9, json!(false)).await?,
                        }
                    }
                    Some(3) if held.is_some() => {
                        if let Some(session) = &held {
                            presence(guild, session, data.clone());
                        }
                    }
                    Some(4 | 31) if held.is_some() => {}
                    Some(8) if held.is_some() => {
                        if let Some(session) = &held {
                            members(guild, session, data);
                        }
                    }
                    Some(3 | 4 | 8 | 31) => {
                        return Err(End::Close(4003, "Not authenticated."));
                    }
                    Some(_) | None => return Err(End::Close(4001, "Unknown opcode.")),
                }
            }
            changed = news.changed() => {
                if changed.is_err() {
                    return Err(End::Gone);
                }
                if let Some(session) = held.as_ref().filter(|_| !dead) {
                    sent = forward(guild, out, session, sent).await?;
                }
            }
            changed = taken_over.changed() => {
                if changed.is_err() || held.is_some() {
                    return Err(End::Close(4000, "Session resumed elsewhere."));
                }
            }
            ordered = trouble.recv() => match meant(ordered, held.as_deref()) {
                Some(GatewayTrouble::Close { code }) => {
                    return Err(End::Close(code, "Ordered by a fault."));
                }
                Some(GatewayTrouble::Drop) => return Err(End::Gone),
                Some(GatewayTrouble::Zombie) => dead = true,
                Some(GatewayTrouble::Reconnect) => out.send_op(7, Value::Null).await?,
                Some(GatewayTrouble::InvalidSession { resumable }) => {
                    if !resumable && let Some(session) = held.take() {
                        guild.sessions.close(&session.id);
                        gone(guild, &session);
                        (news, taken_over) = (idle.subscribe(), idle.subscribe());
                    }
                    out.send_op(9, json!(resumable)).await?;
                }
                None => {}
            },
            () = sleep_until(deadline) => return Err(End::Close(4009, "Session timed out.")),
            () = guild.closing.cancelled() => return Err(End::Close(1001, "Shutting down.")),
        }
    }
}

/// Whether a login met trouble that leaves the connection open; other trouble ends it.
async fn met(guild: &Guild, out: &mut Out, at: Moment, data: &Value) -> Result<bool, End> {
    let bot = bot(guild, data)?;
    match guild.faults.login(at, bot) {
        None => Ok(false),
        Some(GatewayTrouble::Close { code }) => Err(End::Close(code, "Ordered by a fault.")),
        Some(GatewayTrouble::Drop) => Err(End::Gone),
        // Never answered.
        Some(GatewayTrouble::Zombie) => Ok(true),
        Some(GatewayTrouble::Reconnect) => {
            out.send_op(7, Value::Null).await?;
            Ok(true)
        }
        Some(GatewayTrouble::InvalidSession { resumable }) => {
            out.send_op(9, json!(resumable)).await?;
            Ok(true)
        }
    }
}

/// The trouble, if it is for this connection.
fn meant<E>(
    ordered: Result<(Option<Id>, GatewayTrouble), E>,
    session: Option<&Session>,
) -> Option<GatewayTrouble> {
    let (bot, trouble) = ordered.ok()?;
    let here = session.map(|session| session.user);
    (bot.is_none() || bot == here).then_some(trouble)
}

type SessionWatches = (tokio::sync::watch::Receiver<u64>, tokio::sync::watch::Receiver<u64>);

/// Takes a session over from whichever connection had it, and follows its events.
fn attach(session: &Session) -> SessionWatches {
    session.generation.send_modify(|count| *count += 1);
    session.connected.fetch_add(1, Ordering::SeqCst);
    let mut news = session.ring.watch();
    news.mark_changed();
    (news, session.generation.subscribe())
}

fn bot(guild: &Guild, data: &Value) -> Result<Id, End> {
    let token = data["token"].as_str().unwrap_or_default();
    let token = token.strip_prefix("Bot ").unwrap_or(token);
    guild
        .read(|state| state.user_by_token(token).filter(|user| user.bot).map(|user| user.id))
        .ok_or(End::Close(4004, "Authentication failed."))
}

/// The session that a login opens; `None` if it comes too soon after the last one.
fn identify(guild: &Guild, data: &Value) -> Result<Option<Arc<Session>>, End> {
    let user = bot(guild, data)?;
    let shard = (data["shard"][0].as_u64(), data["shard"][1].as_u64());
    if !data["shard"].is_null() && !matches!(shard, (Some(id), Some(count)) if id < count) {
        return Err(End::Close(4010, "Invalid shard."));
    }
    let intents = data["intents"].as_u64().filter(|bits| bits & !intent::KNOWN == 0);
    let intents = intents.ok_or(End::Close(4013, "Invalid intent(s)."))?;
    let flags = guild.read(|state| state.user(user).map_or(0, |it| it.application.flags));
    let content = intents & intent::MESSAGE_CONTENT != 0;
    if !allowed(intents, flags) || (content && guild.faults.deny_message_content()) {
        return Err(End::Close(4014, "Disallowed intent(s)."));
    }
    let apart = guild.faults.login_spacing();
    if !guild.sessions.take_turn(user, std::time::Instant::now(), apart) {
        return Ok(None);
    }
    if guild.faults.logins_left(guild.sessions.starts_left(user).0) == 0
        || !guild.faults.take_login()
    {
        // The platform takes the token away from who logs in too often; here it stays good.
        return Err(End::Close(4004, "Authentication failed."));
    }
    archive_silent(guild);
    // READY and the guild come first in the ring. Opening under the state's lock keeps any other
    // event from slipping in between.
    let session = guild.render(Some(user), |render| {
        let session = guild.sessions.open(user, intents);
        let found = render.state.users.get(&user);
        let inside = found.is_some_and(|it| it.member);
        let own = render.state.guild.as_ref().filter(|_| inside);
        let guilds: Vec<Value> =
            own.iter().map(|meta| json!({"id": meta.id, "unavailable": true})).collect();
        let ready = json!({
            "v": 10, "user": found.map(payload::own_user),
            "guilds": guilds, "session_id": session.id,
            "session_type": "normal", "resume_gateway_url": guild.gateway,
            "shard": data.get("shard").filter(|shard| shard.is_array()).cloned()
                .unwrap_or_else(|| json!([0, 1])),
            "application": {"id": user, "flags": flags},
            "private_channels": [], "relationships": [], "presences": [], "guild_join_requests": [],
            "geo_ordered_rtc_regions": [], "user_settings": {}, "auth": {}, "_trace": ["local"],
        });
        session.send("READY", &ready);
        if inside && intents & intent::GUILDS != 0 {
            session.send("GUILD_CREATE", &render.guild_create());
        }
        session
    });
    Ok(Some(session))
}

/// Whether the application may ask for these intents: three of them need a switch of its own, each
/// known by a flag for large and one for small applications.
fn allowed(intents: u64, flags: u64) -> bool {
    let needs = [
        (intent::GUILD_PRESENCES, PRESENCE_LIMITED),
        (intent::GUILD_MEMBERS, MEMBERS_LIMITED),
        (intent::MESSAGE_CONTENT, CONTENT_LIMITED),
    ];
    needs
        .into_iter()
        .all(|(intent, limited)| intents & intent == 0 || flags & (limited | limited >> 1) != 0)
}

/// The session to go on with and the number to go on from; `None` asks for a new session.
fn resume(guild: &Guild, data: &Value) -> Result<Option<(Arc<Session>, u64)>, End> {
    let user = bot(guild, data)?;
    let id = data["session_id"].as_str().unwrap_or_default();
    let Some(from) = data["seq"].as_u64() else {
        return Ok(None);
    };
    let Some(session) = guild.sessions.find(id, user) else {
        return Ok(None);
    };
    if from > session.ring.last() {
        return Err(End::Close(4007, "Invalid seq."));
    }
    Ok(session.ring.after(from).is_ok().then_some((session, from)))
}

async fn replay(guild: &Guild, out: &mut Out, session: &Session, from: u64) -> Result<u64, End> {
    // RESUMED takes its place at the end of the ring; what is pushed meanwhile comes after it.
    session.send("RESUMED", &json!({"_trace": ["local"]}));
    forward(guild, out, session, from).await
}

/// Sends what came after a number; returns the number sent last.
async fn forward(guild: &Guild, out: &mut Out, session: &Session, from: u64) -> Result<u64, End> {
    let Ok(events) = session.ring.after(from) else {
        // The client reads too slowly for what is kept.
        return Err(End::Close(4008, "You are being rate limited."));
    };
    let mut last = from;
    for (number, text) in events {
        if let Some(text) = guild.faults.carry(&text, greets) {
            out.send(text).await?;
        }
        last = number;
    }
    Ok(last)
}

/// Whether a frame belongs to the greeting of a session.
fn greets(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct EventName {
        t: String,
    }
    let named = serde_json::from_str::<EventName>(text);
    named.is_ok_and(|it| matches!(it.t.as_str(), "READY" | "RESUMED" | "GUILD_CREATE"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Decompress, FlushDecompress};

    #[test]
    fn every_compressed_message_ends_in_the_sync_marker_and_reads_back() {
        let mut zlib = Compress::new(Compression::fast(), true);
        let mut reader = Decompress::new(true);
        for length in [0, 1, 100, 5_000, 100_000] {
            let text: Vec<u8> = (0..length).map(|i: u32| (i % 997 * 31 % 251) as u8).collect();
            let packed = deflate(&mut zlib, &text);
            assert!(packed.ends_with(&[0, 0, 0xff, 0xff]));
            let mut back = Vec::with_capacity(200_000);
            reader.decompress_vec(&packed, &mut back, FlushDecompress::Sync).unwrap();
            assert_eq!(back, text);
        }
    }
}
