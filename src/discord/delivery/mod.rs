//! Delivers one [`Outgoing`]: as a message of the bot user, of a persona, as a card, a thread or a
//! reaction.
//!
//! **Not twice.** A message of a bot user carries a nonce made from the outgoing's id, and Discord answers a
//! repeated nonce with the message that exists. It remembers for "a few minutes" only, and webhooks have no
//! nonce at all. So whenever an earlier try may have come through (beyond [`NONCE_TRUST_SECONDS`], or by
//! webhook at any repeated try) the channel is read from the time at which the outgoing was written, and a
//! message counts as this one if its nonce is ours, or if it has no nonce any more but the same author and
//! the same words and was not accounted for by another delivery of this process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::mem::{Discriminant, discriminant};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::assets::catalog::{Catalog, Rendered};
use crate::discord::compose::{Parts, components, menu};
use crate::discord::endpoints::SeenChannel;
use crate::discord::error::{RestError, code};
use crate::discord::outbound_files;
use crate::discord::personas::Personas;
use crate::discord::problems::LinkProblems;
use crate::discord::rest::Upload;
use crate::discord::speakers::{Speaker, Speakers};
use crate::discord::standing::Board;
use crate::domain::ids::{ChannelId, MessageId, OutgoingId, UserId};
use crate::domain::outgoing::{Act, Content, Outgoing, OutgoingOutcome, Post, Voice};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::platform::clock;
use crate::platform::redact::{self, redact};

mod cards;
mod edits;
mod poster;
mod posting;

use edits::Edits;
use poster::Poster;

/// How long a nonce is relied on. Discord says "a few minutes".
pub const NONCE_TRUST_SECONDS: u64 = 180;
/// The longest wait between tries while Discord is away, in seconds.
const LONGEST_WAIT: u64 = 120;

/// Messages of this process that are remembered as accounted for.
const ACCOUNTED: usize = 10_000;

/// Where a message goes, resolved by the caller from its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The channel, thread or direct-message channel.
    pub channel: ChannelId,
    /// The status card of the request, if there is one already.
    pub card: Option<MessageId>,
    /// The parent, if `channel` is a thread and the caller knows it; else Discord is asked once.
    pub parent: Option<ChannelId>,
}

/// Sends what the outbox holds.
#[derive(Debug)]
pub struct Delivery {
    pub(crate) speakers: Speakers,
    personas: Personas,
    catalog: Catalog,
    workspace: PathBuf,
    /// Tries before this instant were made by an earlier process.
    started_at: Timestamp,
    /// Failed tries of this process.
    tried: Mutex<BTreeMap<OutgoingId, SendAttempts>>,
    /// How many of each kind Discord took.
    taken: Mutex<HashMap<Discriminant<Act>, u64>>,
    /// Messages that are accounted for.
    delivered: Mutex<BTreeSet<MessageId>>,
    channels: Mutex<BTreeMap<ChannelId, SeenChannel>>,
    /// The direct-message channels of people, as far as met.
    dms: Mutex<BTreeMap<UserId, ChannelId>>,
    /// Direct messages with a role's own bot, which nobody else can read or write.
    dms_of_roles: Mutex<BTreeMap<ChannelId, Role>>,
    edits: Mutex<Edits>,
    board: Arc<Board>,
    problems: LinkProblems,
}

/// Failed tries of one outgoing.
#[derive(Debug, Default)]
struct SendAttempts {
    /// How many, for the length of the next wait.
    times: u32,
    /// What `taken` said of its kind at the last of them.
    taken: u64,
}

/// Why a try gave nothing.
#[derive(Debug)]
enum SendError {
    Rest(RestError),
    /// It cannot be said at all.
    Unsayable(String),
}

impl SendError {
    /// Whether this very call failed, and not because it has to wait. A connection that breaks counts, as
    /// it does for a file that this line never gets through in time.
    const fn is_its_own(&self) -> bool {
        match self {
            Self::Rest(
                RestError::Server { .. } | RestError::Unreadable(_) | RestError::Network(_),
            )
            | Self::Unsayable(_) => true,
            Self::Rest(
                RestError::Limited { .. }
                | RestError::Breaker { .. }
                | RestError::Unauthorized
                | RestError::Gone { .. }
                | RestError::Refused { .. },
            ) => false,
        }
    }
}

impl From<RestError> for SendError {
    fn from(error: RestError) -> SendError {
        SendError::Rest(error)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Delivery {
    pub(crate) fn new(
        speakers: Speakers,
        names: &BTreeMap<Role, String>,
        catalog: Catalog,
        workspace: PathBuf,
        board: Arc<Board>,
    ) -> Delivery {
        Delivery {
            speakers,
            personas: Personas::new(names),
            catalog,
            workspace,
            started_at: Timestamp::new(clock::now()),
            tried: Mutex::default(),
            taken: Mutex::default(),
            delivered: Mutex::default(),
            channels: Mutex::default(),
            dms: Mutex::default(),
            dms_of_roles: Mutex::default(),
            edits: Mutex::default(),
            board,
            problems: LinkProblems::default(),
        }
    }

    /// What does not work although the rest does.
    pub(crate) const fn problems(&self) -> &LinkProblems {
        &self.problems
    }

    /// Rights or channels are others than before: what was refused is asked for again.
    pub(crate) fn places_changed(&self) {
        self.personas.look_again();
    }

    /// Tries once to do what `outgoing` says. Never fails: trouble is an outcome. `progress` is awaited
    /// with the number of parts that Discord has confirmed, before the next part is sent; the last one is
    /// told by the outcome.
    ///
    /// `outgoing.attempts` counts the tries before this one.
    pub async fn deliver<F, Fut>(
        &self,
        outgoing: &Outgoing,
        place: &Destination,
        progress: F,
    ) -> OutgoingOutcome
    where
        F: FnMut(u32) -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        match self.attempt(outgoing, place, progress).await {
            Ok(outcome) => {
                lock(&self.tried).remove(&outgoing.outgoing_id);
                *lock(&self.taken).entry(discriminant(&outgoing.act)).or_default() += 1;
                outcome
            }
            Err(trouble) => self.failed(outgoing, self.bot_in(place.channel), &trouble),
        }
    }

    /// What a failed try means; notes it. `bot` is who writes there for the team.
    fn failed(&self, outgoing: &Outgoing, bot: &Speaker, trouble: &SendError) -> OutgoingOutcome {
        let taken = lock(&self.taken).get(&discriminant(&outgoing.act)).copied();
        let taken = taken.unwrap_or_default();
        let (tries, others_went) = {
            let mut tried = lock(&self.tried);
            let tried = tried.entry(outgoing.outgoing_id.clone()).or_default();
            // The first failure says nothing: it may be the first of a Discord that is away.
            let others_went = tried.times > 0 && taken > tried.taken;
            *tried = SendAttempts { times: tried.times + 1, taken };
            (tried.times, others_went)
        };
        tracing::warn!(outgoing = %outgoing.outgoing_id, ?trouble, "not delivered");
        let mut outcome = after_trouble(trouble, tries, Timestamp::new(clock::now()));
        if let OutgoingOutcome::Later { at, own, .. } = &mut outcome {
            *own = others_went && trouble.is_its_own();
            if matches!(trouble, SendError::Rest(RestError::Breaker { .. })) {
                self.board.no_calls_until(*at);
            }
            let is_refused = matches!(trouble, SendError::Rest(RestError::Unauthorized));
            if is_refused && !bot.rest.is_refused() {
                // That one says it for the role.
                *at = Timestamp::new(clock::now()).plus_seconds(1);
            }
        }
        if matches!(outcome, OutgoingOutcome::Refused { .. }) {
            lock(&self.tried).remove(&outgoing.outgoing_id);
        }
        outcome
    }

    /// Somebody writes to the own bot of a role there.
    pub(crate) fn note_dm_of(&self, channel: ChannelId, role: Role) {
        lock(&self.dms_of_roles).insert(channel, role);
    }

    /// The bot that reads and writes in a channel for the team: a direct message belongs to the one that was written to.
    pub(crate) fn bot_in(&self, channel: ChannelId) -> &Speaker {
        let role = lock(&self.dms_of_roles).get(&channel).copied();
        role.and_then(|role| self.speakers.of(role)).unwrap_or(&self.speakers.team)
    }

    /// The place of a direct message to a person. The error is the outcome of `outgoing`, which is as good
    /// as tried: a person whose channel cannot be opened holds nobody up for ever.
    pub async fn dm_place(
        &self,
        user: UserId,
        outgoing: &Outgoing,
    ) -> Result<Destination, OutgoingOutcome> {
        let plain = |channel| Destination { channel, card: None, parent: None };
        if let Some(channel) = lock(&self.dms).get(&user) {
            return Ok(plain(*channel));
        }
        match self.speakers.team.rest.dm_channel(user).await {
            Ok(channel) => {
                lock(&self.dms).insert(user, channel);
                Ok(plain(channel))
            }
            Err(error) => {
                let trouble = SendError::Rest(error);
                Err(self.failed(outgoing, &self.speakers.team, &trouble))
            }
        }
    }

    /// Does something in a channel; where it is a thread in the archive, takes it out first.
    async fn in_open<F>(&self, channel: ChannelId, act: impl Fn() -> F) -> Result<(), RestError>
    where
        F: Future<Output = Result<(), RestError>>,
    {
        match act().await {
            Err(error) if error.code() == Some(code::ARCHIVED) => {
                self.speakers.team.rest.reopen(channel).await?;
                act().await
            }
            done => done,
        }
    }

    async fn attempt<F, Fut>(
        &self,
        outgoing: &Outgoing,
        place: &Destination,
        progress: F,
    ) -> Result<OutgoingOutcome, SendError>
    where
        F: FnMut(u32) -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        match &outgoing.act {
            Act::Post(post) => self.post(outgoing, place, post, progress).await,
            Act::Card { content, buttons, menu } => {
                let below = (buttons.as_slice(), menu.as_ref());
                self.card(outgoing, place, content, below, progress).await
            }
            Act::Board { content, sprint_id: _, message_id } => {
                let place = Destination { card: *message_id, ..*place };
                self.card(outgoing, &place, content, (&[], None), progress).await
            }
            Act::Pin { message_id, pinned } => {
                let rest = &self.speakers.team.rest;
                match rest.pin(place.channel, *message_id, *pinned).await {
                    Ok(()) | Err(RestError::Gone { .. }) => Ok(OutgoingOutcome::Done),
                    // It is read without a pin as well.
                    Err(error @ RestError::Refused { .. }) => {
                        tracing::warn!(%error, "the board is not pinned");
                        Ok(OutgoingOutcome::Done)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            Act::OpenRoom { channel_id, message_id, name } => {
                if self.channel(place).await?.is_thread() {
                    // Threads do not nest: the request stays in the thread where it was asked.
                    return Ok(OutgoingOutcome::Done);
                }
                self.open_room(*channel_id, *message_id, name).await
            }
            Act::React { message_id, emoji } => {
                let rest = &self.bot_in(place.channel).rest;
                let react = || rest.react(place.channel, *message_id, emoji);
                match self.in_open(place.channel, react).await {
                    Ok(()) => Ok(OutgoingOutcome::Done),
                    // Nothing is left to react to.
                    Err(RestError::Gone { .. }) => Ok(OutgoingOutcome::Done),
                    Err(error) => Err(error.into()),
                }
            }
            Act::Unbutton { message_id } => {
                let rest = &self.bot_in(place.channel).rest;
                let bare = serde_json::json!({ "components": [] });
                let edit = || rest.edit_message(place.channel, *message_id, bare.clone());
                match self.in_open(place.channel, edit).await {
                    // What is gone has no buttons.
                    Ok(()) | Err(RestError::Gone { .. }) => Ok(OutgoingOutcome::Done),
                    Err(error) => Err(error.into()),
                }
            }
            Act::Envelope { relay_id, json } => {
                let rendered = Rendered { text: format!("`{relay_id}`"), ..Rendered::default() };
                let mut parts = Parts::new(&rendered, None, None);
                let filename = format!("{relay_id}.json");
                let bytes = without_secrets(json);
                parts.files.insert(0, vec![Upload { filename, bytes }]);
                let poster = Poster::Bot(&self.speakers.team);
                self.send(outgoing, place, &poster, &parts, progress).await
            }
        }
    }

    async fn open_room(
        &self,
        channel: ChannelId,
        message: MessageId,
        name: &str,
    ) -> Result<OutgoingOutcome, SendError> {
        let clean = redact(name);
        let flat = clean.split_whitespace().collect::<Vec<_>>().join(" ");
        let name: String = flat.chars().take(100).collect();
        let name = if name.is_empty() { "request" } else { name.as_str() };
        let opened = self.speakers.team.rest.open_thread(channel, message, name).await;
        match opened {
            Ok(thread_id) => Ok(OutgoingOutcome::RoomOpened { thread_id }),
            // A thread on a message has the message's id (`spec/discord.md` 5, row "threads").
            Err(error) if error.code() == Some(code::THREAD_EXISTS) => {
                Ok(OutgoingOutcome::RoomOpened { thread_id: ChannelId(message.0) })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The words, without secrets: what a role wrote, or a difference holds, is not for everybody in a room.
    fn render(&self, content: &Content) -> Result<Rendered, SendError> {
        let rendered = self.catalog.render(content);
        let rendered = rendered.map_err(|error| SendError::Unsayable(error.to_string()))?;
        Ok(rendered.map(|text| redact(text).into_owned()))
    }

    async fn post<F, Fut>(
        &self,
        outgoing: &Outgoing,
        place: &Destination,
        post: &Post,
        progress: F,
    ) -> Result<OutgoingOutcome, SendError>
    where
        F: FnMut(u32) -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        let files = outbound_files::read(&self.workspace, &post.files).await;
        let rendered = self.render(&post.content)?;
        let channel = self.channel(place).await?;
        let poster = self.poster(outgoing.voice, place, &channel).await?;
        let header = match (&poster, outgoing.voice) {
            (Poster::Bot(speaker), Voice::Role(role)) if speaker.role != Some(role) => {
                Some(self.personas.name(role))
            }
            (Poster::Bot(_) | Poster::Hook { .. }, Voice::Role(_) | Voice::Team) => None,
        };
        // Webhook messages cannot be answers; then the words carry the mention.
        let reply_to = post.reply_to.filter(|_| matches!(poster, Poster::Bot(_)));
        let mentioned = post.mention.filter(|_| reply_to.is_none() && !channel.is_dm());
        let language = post.content.language;
        let mut parts = Parts::new(&rendered, header, mentioned);
        let menus = post.menus.iter().map(|one| menu(one, &self.catalog, language));
        parts.components =
            menus.chain(components(&post.buttons, &self.catalog, language)).collect();
        parts
            .attach(files, &self.catalog, language)
            .map_err(|error| SendError::Unsayable(error.to_string()))?;
        parts.reply_to = reply_to;
        parts.mention = post.mention;
        self.send(outgoing, place, &poster, &parts, progress).await
    }
}

/// What a failed try means for the outbox.
fn after_trouble(trouble: &SendError, tries: u32, now: Timestamp) -> OutgoingOutcome {
    let error = match trouble {
        SendError::Unsayable(reason) => {
            return OutgoingOutcome::Refused { reason: reason.clone(), place: false };
        }
        SendError::Rest(error) => error,
    };
    let backoff = (1u64 << tries.min(7)).min(LONGEST_WAIT);
    let seconds = match error {
        RestError::Limited { retry_after, .. } | RestError::Breaker { retry_after } => {
            retry_after.as_secs() + 1
        }
        RestError::Network(_) | RestError::Server { .. } | RestError::Unreadable(_) => backoff,
        // A new token comes with a restart; until then nothing is thrown away.
        RestError::Unauthorized => LONGEST_WAIT,
        RestError::Gone { .. } | RestError::Refused { .. } => {
            let place = matches!(
                error,
                RestError::Gone { code: code::UNKNOWN_CHANNEL, .. }
                    | RestError::Refused { status: 403, .. }
            );
            return OutgoingOutcome::Refused { reason: error.to_string(), place };
        }
    };
    let at = now.plus_seconds(seconds);
    OutgoingOutcome::Later { at, reason: error.to_string(), own: false }
}

/// An envelope for everybody who sees the channel: still JSON, and without secrets.
fn without_secrets(json: &str) -> Vec<u8> {
    let clean = serde_json::from_str(json).map(redact::value);
    let pretty = clean.and_then(|value| serde_json::to_vec_pretty(&value));
    pretty.unwrap_or_else(|_| redact(json).into_owned().into_bytes())
}
