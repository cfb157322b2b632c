//! The team's end of Discord: what comes in as a stream of facts, what goes out as outcomes.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::assets::catalog::Catalog;
use crate::discord::access::Access;
use crate::discord::attachments::AttachmentFolder;
use crate::discord::delivery::{Delivery, Destination};
use crate::discord::error::{RestError, code};
use crate::discord::gateway::{self, ConnectionLog, Gateway};
use crate::discord::governor::Limits;
use crate::discord::identity::Identity;
use crate::discord::intake::{CatchUpRequest, InboundSender, Intake, Reader, TakenMessage};
use crate::discord::personas::persona_names;
use crate::discord::presence::Presence;
use crate::discord::problems::LinkProblems;
use crate::discord::repeat::patiently;
use crate::discord::rest::Pool;
use crate::discord::sessions::{Facts, Sessions};
use crate::discord::speakers::{Speakers, VoiceMode};
use crate::discord::standing::{Board, Report};
use crate::domain::config::Zone;
use crate::domain::ids::{ChannelId, GuildId, MessageId, UserId};
use crate::domain::language::Language;
use crate::domain::outgoing::{Outgoing, OutgoingOutcome};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::platform::tasks;

/// Facts that may wait for the team before Discord is told to wait.
const INBOUND: usize = 256;
/// Pages of a channel's archive that are read after an absence, a hundred threads each.
const ARCHIVE_PAGES: usize = 3;
/// People whose direct messages are looked for after an absence.
const PEOPLE: usize = 50;
/// Events that may wait for the intake; beyond, the session is given up and read again.
const SIGNALS: usize = 1_024;

/// How to reach Discord.
#[derive(Debug)]
pub struct LinkConfig {
    /// One bot or a bot a role, with tokens.
    pub voice: VoiceMode,
    /// Such as `https://discord.com`, without `/api`.
    pub base_url: String,
    /// Such as `wss://gateway.discord.gg`; without it, Discord is asked.
    pub gateway_url: Option<String>,
    /// Names that the roles speak under; others speak under the catalog's.
    pub names: BTreeMap<Role, String>,
    /// The language of the names that are not configured.
    pub language: Language,
    /// The zone in which times are told.
    pub zone: Zone,
    /// The workspace: files that go out come from here.
    pub workspace: PathBuf,
    /// Where people's files are kept, relative to the workspace, such as
    /// `shared_workspace/attachments`.
    pub attachments: PathBuf,
    /// The servers that the team lives in; a bot that was invited into another one leaves it. Where it is
    /// empty, none is left.
    pub guilds: BTreeSet<GuildId>,
    /// How fast to go; without them, as the server's place suggests.
    pub limits: Option<Limits>,
    /// The rules: a stranger's file never reaches the disk, and no form opens for one.
    pub access: Arc<dyn Access>,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// `voice: bots` without the bot that listens.
    #[error("voice `bots` needs a token for the orchestrator: its bot listens for the team")]
    NoOrchestrator,
    /// The TLS library did not start.
    #[error(transparent)]
    Client(#[from] RestError),
    /// The thread of the connections did not start.
    #[error("the connections to discord have no thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The link. Cheap to clone; everything ends when [`Link::close`] is called.
#[derive(Debug, Clone)]
pub struct Link {
    delivery: Arc<Delivery>,
    identity: Arc<RwLock<Identity>>,
    asks: mpsc::UnboundedSender<CatchUpRequest>,
    closing: CancellationToken,
    sessions: Arc<Sessions>,
    board: Arc<Board>,
    shows: watch::Sender<Presence>,
}

/// Channels in which something may have been missed.
#[derive(Debug)]
pub struct FoundChannels {
    /// The channels.
    pub channels: Vec<ChannelId>,
    /// Whether these are all in which somebody can write.
    pub is_all: bool,
    /// Whether Discord told what it was asked for, or never will.
    pub is_whole: bool,
}

/// Whether it is no matter of one channel: the next one would be told the same.
fn is_everywhere(error: &RestError) -> bool {
    matches!(error, RestError::Network(_) | RestError::Limited { .. } | RestError::Breaker { .. })
}

/// Whether Discord would say the same again.
fn is_for_good(error: &RestError) -> bool {
    matches!(error, RestError::Gone { .. } | RestError::Refused { .. } | RestError::Unauthorized)
}

impl Link {
    /// Starts connecting. Returns at once, also where Discord cannot be reached: trying goes on.
    pub fn start(config: LinkConfig, catalog: Catalog) -> Result<(Link, Facts), LinkError> {
        let pool = match config.limits {
            Some(limits) => Pool::with(&config.base_url, limits)?,
            None => Pool::new(&config.base_url)?,
        };
        let speakers = Speakers::new(&pool, config.voice).ok_or(LinkError::NoOrchestrator)?;
        let names = persona_names(config.names, &catalog, config.language);
        let mut identity = Identity::default();
        for (role, name) in &names {
            identity.persona_names.insert(name.to_lowercase(), *role);
        }
        for role in Role::ALL {
            let key = format!("role.{role}");
            for language in [Language::En, Language::Ko] {
                let name = catalog.label(&key, language).to_lowercase();
                identity.persona_names.entry(name).or_insert(role);
            }
        }
        let (signals, heard) = mpsc::channel(SIGNALS);
        let closing = CancellationToken::new();
        let sessions = Arc::new(Sessions::of(&config.workspace));
        let board = Arc::new(Board::of(&config.workspace, config.zone));
        let connections = ConnectionLog::of(&config.workspace, pool.limits().connections);
        let connections = Arc::new(connections);
        let (shows, _) = watch::channel(Presence::default());
        let listener = (None, &speakers.team);
        let others = speakers.roles.iter().map(|(role, speaker)| (Some(*role), speaker));
        let gateways = std::iter::once(listener).chain(others).map(|(bot, speaker)| Gateway {
            bot,
            rest: speaker.rest.clone(),
            url: config.gateway_url.clone(),
            limits: pool.limits(),
            sessions: Arc::clone(&sessions),
            board: Arc::clone(&board),
            connections: Arc::clone(&connections),
            catalog: catalog.clone(),
            access: Arc::clone(&config.access),
            shows: shows.subscribe(),
            calls: tokio::runtime::Handle::current(),
        });
        gateway::keep_all(gateways.collect(), &signals, closing.clone())?;
        let (keeper, closed) = (Arc::clone(&sessions), closing.clone());
        tasks::spawn("discord-sessions", async move {
            tokio::select! {
                () = keeper.keep() => {}
                () = closed.cancelled() => {}
            }
        });
        let team_role = speakers.team.role;
        let identity = Arc::new(RwLock::new(identity));
        let delivery = Arc::new(Delivery::new(
            speakers,
            &names,
            catalog.clone(),
            config.workspace.clone(),
            Arc::clone(&board),
        ));
        drop(signals);
        let (asks, asked) = mpsc::unbounded_channel();
        let (inbound, facts) = mpsc::channel(INBOUND);
        let reader = Reader::new(
            Arc::clone(&delivery),
            Arc::clone(&identity),
            catalog,
            AttachmentFolder { root: config.workspace, folder: config.attachments },
            config.access,
        );
        let intake = Intake::new(
            Arc::new(reader),
            (team_role, config.guilds),
            (InboundSender::new(inbound, Arc::clone(&sessions)), heard, asked),
        );
        let closed = closing.clone();
        tasks::spawn("discord-intake", async move {
            tokio::select! {
                () = intake.run() => {}
                () = closed.cancelled() => {}
            }
        });
        let facts = Facts::new(facts, Arc::clone(&sessions));
        let link = Link { delivery, identity, asks, closing, sessions, board, shows };
        Ok((link, facts))
    }

    /// Shows beside the bots' names what the team is doing. Does not wait: it goes out at Discord's pace, and
    /// what is outdated by then never does.
    pub fn show(&self, presence: Presence) {
        self.shows.send_if_modified(|shown| {
            let news = *shown != presence;
            *shown = presence;
            news
        });
    }

    /// Asks for every message after these, oldest first, then for what waited meanwhile, then
    /// [`Inbound::Live`]. To be called after every [`Inbound::Connected`] with `fresh`, also with an empty
    /// map. Of those that were `taken` in before it is told what people have changed about them. Does not wait: the facts come through the receiver.
    pub fn catch_up(
        &self,
        watermarks: &BTreeMap<ChannelId, MessageId>,
        taken: &BTreeMap<MessageId, TakenMessage>,
    ) {
        let ask = CatchUpRequest { watermarks: watermarks.clone(), taken: taken.clone() };
        if self.asks.send(ask).is_err() {
            tracing::debug!("nothing to catch up with: the link is closed");
        }
    }

    /// Where people can write in a server: its text channels, the threads that are open, our rooms among
    /// them, and those that were put into the archive since `away`. What Discord does not tell is left out: then only channels that are known are
    /// caught up with.
    pub async fn text_channels(&self, guild: GuildId, away: Timestamp) -> FoundChannels {
        let rest = &self.delivery.speakers.team.rest;
        let mut found: Vec<ChannelId> = Vec::new();
        let (mut all, mut is_whole) = (true, true);
        let mut parents: Vec<ChannelId> = Vec::new();
        match patiently(|| rest.channels(guild)).await {
            Ok(channels) => {
                found.extend(
                    channels.iter().filter(|it| it.is_text() || it.is_voice()).map(|it| it.id),
                );
                parents.extend(channels.iter().filter(|it| it.has_threads()).map(|it| it.id));
            }
            Err(error) => {
                all = false;
                is_whole &= is_for_good(&error);
                tracing::warn!(%error, "the server's channels are not known");
            }
        }
        for channel in parents {
            match rest.threads_archived_since(channel, away, ARCHIVE_PAGES).await {
                Ok(threads) => {
                    all &= threads.len() < ARCHIVE_PAGES * 100;
                    found.extend(threads.iter().map(|it| it.id));
                }
                Err(error) => {
                    all &= is_for_good(&error);
                    is_whole &= is_for_good(&error);
                    tracing::debug!(%error, %channel, "the archive was not read");
                    // The next look back asks for it again.
                    if is_everywhere(&error) {
                        break;
                    }
                    // A channel that is not ours to read has nothing for us: asking again counts against the address.
                    if error.code() == Some(code::NO_ACCESS) {
                        found.retain(|it| *it != channel);
                    }
                }
            }
        }
        match patiently(|| rest.active_threads(guild)).await {
            Ok(threads) => found.extend(threads.iter().map(|it| it.id)),
            Err(error) => {
                all = false;
                is_whole &= is_for_good(&error);
                tracing::warn!(%error, "the server's threads are not known");
            }
        }
        FoundChannels { channels: found, is_all: all, is_whole }
    }

    /// The direct-message channels of our bots with these people. Discord lists none to a bot, but tells the
    /// one with a person who is asked for, also where that person wrote first, and while we were away.
    pub async fn direct_channels(&self, people: &BTreeSet<UserId>) -> FoundChannels {
        let speakers = &self.delivery.speakers;
        let (mut found, mut is_whole) = (Vec::new(), true);
        for speaker in std::iter::once(&speakers.team).chain(speakers.roles.values()) {
            for user in people.iter().take(PEOPLE) {
                match speaker.rest.dm_channel(*user).await {
                    Ok(channel) => {
                        if let Some(role) =
                            speaker.role.filter(|role| speakers.roles.contains_key(role))
                        {
                            self.delivery.note_dm_of(channel, role);
                        }
                        found.push(channel);
                    }
                    Err(error) => {
                        is_whole &= is_for_good(&error);
                        tracing::debug!(%error, %user, "no direct messages with a person");
                        if is_everywhere(&error) || matches!(error, RestError::Unauthorized) {
                            break;
                        }
                    }
                }
            }
        }
        FoundChannels { channels: found, is_all: false, is_whole }
    }

    /// Tries once to do what `outgoing` says; see [`Delivery::deliver`].
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
        self.delivery.deliver(outgoing, place, progress).await
    }

    /// The place of a direct message to a person; the error is the outcome to note.
    pub async fn dm_place(
        &self,
        user: UserId,
        outgoing: &Outgoing,
    ) -> Result<Destination, OutgoingOutcome> {
        self.delivery.dm_place(user, outgoing).await
    }

    /// Shows that the team is typing, for about ten seconds. Trouble does not matter.
    pub async fn typing(&self, channel: ChannelId) {
        if let Err(error) = self.delivery.bot_in(channel).rest.typing(channel).await {
            tracing::debug!(%error, "typing not shown");
        }
    }

    /// Who we are, as far as known.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let identity = self.identity.read().unwrap_or_else(PoisonError::into_inner);
        identity.clone()
    }

    /// What does not work although the rest does.
    #[must_use]
    pub fn problems(&self) -> &LinkProblems {
        self.delivery.problems()
    }

    /// How the connections stand.
    #[must_use]
    pub fn standing(&self) -> Report {
        self.board.report()
    }

    /// Ends the connections. Their sessions stay open for a while, for the next start to take up.
    pub fn close(&self) {
        self.closing.cancel();
        self.sessions.flush();
    }
}
