//! From gateway signals to facts, in order: what was missed before what is new, each message once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::discord::bot::Bot as From;
use crate::discord::commands;
use crate::discord::endpoints::{SeenServerRole, message_id};
use crate::discord::gateway::{BotSignal, Signal};
use crate::discord::identity::Identity;
use crate::discord::inbound::Inbound;
use crate::discord::problems::LinkProblem;
use crate::discord::sessions::{EventPosition, Sessions};
use crate::domain::ids::{ChannelId, GuildId, MessageId, UserId};
use crate::domain::role::Role;
use crate::platform::tasks;

mod catch_up;
mod interaction;
mod queues;
mod reader;
mod reading;

pub(crate) use catch_up::CatchUpRequest;
pub use catch_up::TakenMessage;
use catch_up::{Gone, LookBack, MessageChange, Page};
use queues::{FinishedJob, Job, Queue, Queues};
pub(crate) use reader::Reader;
use reading::{read_message, unreadable};

/// Message ids remembered for finding doubles; a resume repeats at most what one session held.
const REMEMBERED: usize = 4_096;

/// Events that may wait for [`CatchUpRequest`]; the rest waits where it comes from.
const HELD: usize = 2_048;

#[derive(Debug)]
enum QueuedMessage {
    Created(From, Value),
    Edited(From, Value),
    Deleted(ChannelId, MessageId),
}

impl QueuedMessage {
    fn channel(&self) -> ChannelId {
        match self {
            QueuedMessage::Created(_, data) | QueuedMessage::Edited(_, data) => {
                let id = data["channel_id"].as_str().and_then(|id| id.parse().ok());
                ChannelId(id.unwrap_or_default())
            }
            QueuedMessage::Deleted(channel, _) => *channel,
        }
    }

    fn message(&self) -> MessageId {
        match self {
            QueuedMessage::Created(_, data) | QueuedMessage::Edited(_, data) => {
                MessageId(message_id(data))
            }
            QueuedMessage::Deleted(_, message) => *message,
        }
    }
}

/// The way out for facts, which are counted.
pub(crate) struct InboundSender {
    inbound: mpsc::Sender<Inbound>,
    told: AtomicU64,
    sessions: Arc<Sessions>,
}

impl InboundSender {
    pub(crate) fn new(inbound: mpsc::Sender<Inbound>, sessions: Arc<Sessions>) -> InboundSender {
        InboundSender { inbound, told: AtomicU64::new(0), sessions }
    }
}

/// The state of the intake. It waits for nobody but the team: whatever takes time is a [`Job`].
pub(crate) struct Intake {
    reader: Arc<Reader>,
    team_role: Option<Role>,
    out: InboundSender,
    signals: mpsc::Receiver<BotSignal>,
    asks: mpsc::UnboundedReceiver<CatchUpRequest>,
    /// The newest event of each bot.
    newest: BTreeMap<From, EventPosition>,
    /// Something may have been missed since the last [`CatchUpRequest`].
    missed: bool,
    /// Present while messages wait for [`CatchUpRequest`].
    held: Option<Vec<QueuedMessage>>,
    /// The channels whose messages alone wait, where it is not all: Discord does not let them be read.
    unread: BTreeSet<ChannelId>,
    /// What was missed, while it is being read.
    pages: Option<mpsc::Receiver<LookBack>>,
    /// What became of messages that were taken in before, which nobody waits for.
    missed_changes: (mpsc::Sender<MessageChange>, mpsc::Receiver<MessageChange>),
    /// A role's bot has begun a new session since the look back under way was asked for: what was written to it alone
    /// may have been missed.
    role_came: bool,
    /// Whether everything waits that is held, or only what is in [`Self::unread`].
    holds_all: bool,
    /// The listener has lost its connection, and roles' bots go on hearing.
    is_listener_down: bool,
    /// What was held meanwhile became too much, and has to be read again.
    is_dropped: bool,
    queues: Queues,
    /// What was missed is read, and not all of it is told yet.
    catching_up: bool,
    seen: BTreeSet<MessageId>,
    /// The servers that the team lives in; empty means any.
    home: BTreeSet<GuildId>,
}

#[derive(Debug, Deserialize)]
struct Deletion {
    channel_id: ChannelId,
    #[serde(default)]
    id: Option<MessageId>,
    #[serde(default)]
    ids: Vec<MessageId>,
}

impl Intake {
    pub(crate) fn new(
        reader: Arc<Reader>,
        (team_role, home): (Option<Role>, BTreeSet<GuildId>),
        (out, signals, asks): (
            InboundSender,
            mpsc::Receiver<BotSignal>,
            mpsc::UnboundedReceiver<CatchUpRequest>,
        ),
    ) -> Intake {
        Intake {
            reader,
            team_role,
            out,
            signals,
            asks,
            newest: BTreeMap::new(),
            missed: false,
            held: Some(Vec::new()),
            unread: BTreeSet::new(),
            pages: None,
            role_came: false,
            holds_all: true,
            // Roles' bots may come before it.
            is_listener_down: team_role.is_some(),
            is_dropped: false,
            missed_changes: mpsc::channel(1),
            queues: Queues::default(),
            catching_up: false,
            seen: BTreeSet::new(),
            home,
        }
    }

    pub(crate) async fn run(mut self) {
        loop {
            let room = self.has_room();
            let reads = self.pages.is_some();
            let taken = tokio::select! {
                heard = self.signals.recv(), if room => match heard {
                    Some(heard) => self.heard(heard).await,
                    None => return,
                },
                ask = self.asks.recv(), if !reads || !self.unread.is_empty() => match ask {
                    Some(ask) => {
                        self.missed = false;
                        self.role_came = false;
                        self.is_dropped = false;
                        self.unread.clear();
                        self.holds_all = self.held.is_some();
                        self.pages = Some(self.look_back(ask));
                        Ok(())
                    }
                    None => return,
                },
                // What is held goes on only when this is read, so that it must not keep it from being read.
                page = catch_up::next(&mut self.pages), if reads && self.queues.len() < HELD => match page {
                    Some(LookBack::Page(page)) => self.page(page).await,
                    Some(LookBack::Left(channels)) => {
                        tracing::warn!(channels = channels.len(), "channels cannot be read; the others do not wait for them");
                        self.unread = channels;
                        self.settle().await
                    }
                    None => self.caught_up().await,
                },
                Some(change) = self.missed_changes.1.recv(), if room => match change {
                    MessageChange::Edited(data) => self.hold_or(QueuedMessage::Edited(None, data)).await,
                    MessageChange::Deleted(channel, message) => {
                        self.hold_or(QueuedMessage::Deleted(channel, message)).await
                    }
                },
                Some(done) = self.queues.under_way.next() => self.done(done).await,
            };
            if taken.is_err() {
                return;
            }
        }
    }

    fn look_back(&self, ask: CatchUpRequest) -> mpsc::Receiver<LookBack> {
        let (facts, changes) = (self.out.inbound.clone(), self.missed_changes.0.clone());
        self.reader.look_back(ask, facts, changes)
    }

    fn has_room(&self) -> bool {
        self.held.as_ref().map_or(0, Vec::len) + self.queues.len() < HELD
    }

    async fn heard(&mut self, BotSignal { bot, mark, signal }: BotSignal) -> Result<(), Gone> {
        self.signal(bot, signal).await?;
        if let Some(mark) = mark {
            self.newest.insert(bot, mark);
            self.note_through();
        }
        Ok(())
    }

    /// Work is done, and what it yields is told, unless its message was deleted meanwhile.
    async fn done(&mut self, mut done: FinishedJob) -> Result<(), Gone> {
        self.queues.done(&mut done);
        match (done.message, done.fact) {
            (Some((channel, message)), Some(fact)) if self.queues.waits(channel, message) => {
                self.tell_message(fact).await?;
            }
            (Some((channel, message)), _) => self.queues.forget(channel, message),
            (None, Some(fact)) => self.tell(fact).await?,
            (None, None) => {}
        }
        if let Some((channel_id, _)) = done.message
            && let Some(message_id) = self.queues.settle(channel_id)
        {
            self.tell(Inbound::CaughtUp { channel_id, message_id }).await?;
        }
        self.note_through();
        self.tell_live().await
    }

    /// Tells that nothing of what was missed is left to tell, where that is so.
    async fn tell_live(&mut self) -> Result<(), Gone> {
        if !self.catching_up || self.queues.len() > 0 {
            return Ok(());
        }
        self.catching_up = false;
        self.tell(Inbound::Live).await
    }

    /// Tells a new message, and how far its channel is read with it.
    async fn tell_message(&mut self, mut fact: Inbound) -> Result<(), Gone> {
        if let Inbound::Message(message) = &mut fact {
            message.read_up_to = self.queues.told(message.channel_id, message.message_id);
        }
        self.tell(fact).await
    }

    /// Notes how far each session is through; not while events are held, or edits and commands worked on, which would be
    /// lost with us.
    fn note_through(&mut self) {
        if self.held.is_some() || self.queues.has_unrepeatable() {
            return;
        }
        let told = self.out.told.load(Ordering::Relaxed);
        for (bot, mark) in std::mem::take(&mut self.newest) {
            self.out.sessions.through(told, bot, mark);
        }
    }

    async fn tell(&mut self, fact: Inbound) -> Result<(), Gone> {
        self.out.told.fetch_add(1, Ordering::Relaxed);
        self.out.inbound.send(fact).await.map_err(|_| Gone)
    }

    async fn signal(&mut self, from: From, signal: Signal) -> Result<(), Gone> {
        match signal {
            Signal::Up { fresh, user, application, guilds } => {
                self.up(from, fresh, user, application, guilds).await
            }
            Signal::Resumed if from.is_none() => {
                // What the session repeats was told before this.
                self.is_listener_down = false;
                if self.held.is_some() {
                    self.settle().await?;
                }
                let identity = self.reader.us(Clone::clone);
                self.tell(Inbound::Connected { fresh: false, identity }).await
            }
            Signal::Resumed => Ok(()),
            Signal::Named { user } => {
                let role = from.or(self.team_role);
                self.reader.change(|us| {
                    us.bots.insert(user, role);
                });
                Ok(())
            }
            // A look back is asked for already, and finds this as well.
            Signal::Missed if self.missed => Ok(()),
            Signal::Missed => self.ask().await,
            Signal::Down { reason } => {
                tracing::warn!(bot = ?from, reason, "gateway connection lost");
                match from {
                    None => {
                        self.listener_is_away();
                        self.tell(Inbound::Disconnected { reason }).await
                    }
                    Some(_) => Ok(()),
                }
            }
            Signal::Degraded { reason } => match from {
                None => {
                    self.listener_is_away();
                    self.tell(Inbound::Degraded { reason }).await
                }
                Some(_) => Ok(()),
            },
            Signal::Fatal { reason } => {
                if from.is_none() && std::mem::take(&mut self.is_listener_down) {
                    self.settle().await?;
                }
                self.tell(Inbound::Fatal { role: from, reason }).await
            }
            Signal::Interaction { data, acknowledged } => {
                if self.out.sessions.is_new(from, message_id(&data)) {
                    let queue = match data["type"].as_u64() {
                        Some(4) => Queue::Typing(message_id(&data)),
                        Some(_) | None => Queue::Person(interaction::who(&data)),
                    };
                    let reader = Arc::clone(&self.reader);
                    let work =
                        Box::pin(async move { reader.interaction(from, data, acknowledged).await });
                    self.queues.add(queue, Job { message: None, edit_of: None, work });
                }
                Ok(())
            }
            Signal::Dispatch { kind, data } => self.dispatch(from, &kind, data).await,
        }
    }

    async fn up(
        &mut self,
        from: From,
        fresh: bool,
        user: UserId,
        application: u64,
        guilds: Vec<GuildId>,
    ) -> Result<(), Gone> {
        let role = from.or(self.team_role);
        self.reader.change(|us| {
            us.bots.insert(user, role);
            us.applications.insert(application);
            us.guilds.extend(guilds.iter().copied());
        });
        if from.is_some() {
            return match fresh {
                true if self.missed => Ok(()),
                true if self.pages.is_none() || !self.unread.is_empty() => self.ask().await,
                true => {
                    self.role_came = true;
                    Ok(())
                }
                false => Ok(()),
            };
        }
        self.is_listener_down = false;
        for guild in guilds {
            match self.reader.rest(None).server_roles(guild).await {
                Ok(roles) => self.reader.change(|us| note_roles(us, &roles)),
                // The server's own greeting brings them as well.
                Err(error) => tracing::warn!(%error, %guild, "server roles not read"),
            }
            let reader = Arc::clone(&self.reader);
            tasks::spawn("discord-commands", async move {
                let refused = commands::register(reader.rest(None), application, guild).await;
                for (name, error) in &refused {
                    tracing::warn!(%error, %guild, name, "a slash command is not registered");
                }
                let problem = LinkProblem::Commands(guild);
                reader.problems().set(problem, commands::refusal(&refused));
            });
        }
        if fresh {
            return self.ask().await;
        }
        let identity = self.reader.us(Clone::clone);
        self.tell(Inbound::Connected { fresh, identity }).await
    }

    /// Something may have been missed: the team is to ask for it, and what comes waits until that is told.
    async fn ask(&mut self) -> Result<(), Gone> {
        self.missed = true;
        self.hold();
        let identity = self.reader.us(Clone::clone);
        self.tell(Inbound::Connected { fresh: true, identity }).await
    }

    fn is_foreign(&self, guild: GuildId) -> bool {
        !self.home.is_empty() && !self.home.contains(&guild)
    }

    /// Somebody invited a bot into a server that the team does not live in: nothing there is for it.
    async fn leave(&mut self, from: From, guild: GuildId) {
        match self.reader.rest(from).leave(guild).await {
            Ok(()) => {
                tracing::warn!(bot = ?from, %guild, "left a server where the team does not live")
            }
            Err(error) => {
                tracing::warn!(bot = ?from, %guild, %error, "in a server where the team does not live");
            }
        }
    }

    async fn dispatch(&mut self, from: From, kind: &str, data: Value) -> Result<(), Gone> {
        match kind {
            "MESSAGE_CREATE" => self.hold_or(QueuedMessage::Created(from, data)).await,
            "MESSAGE_UPDATE" => self.hold_or(QueuedMessage::Edited(from, data)).await,
            // What is in a direct message only its own bot hears of.
            "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK"
                if from.is_none() || data.get("guild_id").is_none() =>
            {
                let Ok(deletion) = serde_json::from_value::<Deletion>(data) else {
                    unreadable(kind);
                    return Ok(());
                };
                for id in deletion.id.into_iter().chain(deletion.ids) {
                    self.hold_or(QueuedMessage::Deleted(deletion.channel_id, id)).await?;
                }
                Ok(())
            }
            "GUILD_CREATE" => {
                let guild = data["id"].as_str().and_then(|id| id.parse().ok()).map(GuildId);
                if let Some(guild) = guild.filter(|guild| self.is_foreign(*guild)) {
                    self.leave(from, guild).await;
                    return Ok(());
                }
                let roles = data.get("roles").cloned().unwrap_or_default();
                let roles: Vec<SeenServerRole> = serde_json::from_value(roles).unwrap_or_default();
                self.reader.change(|us| note_roles(us, &roles));
                self.channels_changed().await
            }
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => {
                let role = data.get("role").cloned().unwrap_or_default();
                if let Ok(role) = serde_json::from_value::<SeenServerRole>(role) {
                    self.reader.change(|us| note_roles(us, &[role]));
                }
                self.channels_changed().await
            }
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE"
            | "GUILD_ROLE_DELETE" => self.channels_changed().await,
            "THREAD_DELETE" | "CHANNEL_DELETE" if from.is_none() => {
                match data["id"].as_str().and_then(|id| id.parse().ok()).map(ChannelId) {
                    Some(channel) => self.tell(Inbound::ChannelDeleted(channel)).await,
                    None => Ok(()),
                }
            }
            "GUILD_MEMBER_UPDATE" => {
                let member = data.pointer("/user/id").and_then(Value::as_str);
                let member = member.and_then(|id| id.parse::<UserId>().ok());
                if member.is_some_and(|id| self.reader.us(|us| us.bots.contains_key(&id))) {
                    return self.channels_changed().await;
                }
                Ok(())
            }
            _ => {
                tracing::trace!(kind, "event of no interest");
                Ok(())
            }
        }
    }

    /// What a role's bot hears meanwhile comes after what only the listener would have heard.
    fn listener_is_away(&mut self) {
        if self.team_role.is_some() {
            self.is_listener_down = true;
            self.hold();
        }
    }

    /// From now on everything waits.
    fn hold(&mut self) {
        self.held.get_or_insert_default();
        self.holds_all = true;
    }

    async fn hold_or(&mut self, event: QueuedMessage) -> Result<(), Gone> {
        match &mut self.held {
            Some(held) if self.holds_all || self.unread.contains(&event.channel()) => {
                if self.is_listener_down && (self.is_dropped || held.len() >= HELD / 2) {
                    self.is_dropped = true;
                    held.clear();
                } else {
                    held.push(event);
                }
                Ok(())
            }
            Some(_) | None => self.event(event).await,
        }
    }

    /// What Discord refused may be taken now.
    async fn channels_changed(&mut self) -> Result<(), Gone> {
        self.reader.places_changed();
        self.tell(Inbound::ChannelsChanged).await
    }

    async fn event(&mut self, event: QueuedMessage) -> Result<(), Gone> {
        match event {
            QueuedMessage::Created(from, data) => self.created(from, &data, None).await,
            QueuedMessage::Edited(from, data) => self.edited(from, data).await,
            QueuedMessage::Deleted(channel_id, message_id) => {
                self.queues.deleted(channel_id, message_id);
                self.tell(Inbound::Deleted { channel_id, message_id }).await
            }
        }
    }

    /// A message, new or missed; `guild` as far as its payload does not say.
    async fn created(
        &mut self,
        from: From,
        data: &Value,
        guild: Option<GuildId>,
    ) -> Result<(), Gone> {
        let id = MessageId(message_id(data));
        if self.seen.contains(&id) {
            return Ok(());
        }
        let Some(payload) = read_message(data) else {
            return Ok(());
        };
        if !self.reader.is_for(from, &payload) {
            return Ok(());
        }
        if let Some(role) = from.filter(|_| payload.guild_id.is_none()) {
            self.reader.note_dm_of(ChannelId(payload.channel_id.get()), role);
        }
        let Some((heard, needs)) = self.reader.look(&payload, guild) else { return Ok(()) };
        self.seen.insert(id);
        if self.seen.len() > REMEMBERED {
            self.seen.pop_first();
        }
        let (channel, author) = (heard.message.channel_id, heard.message.author.id);
        let together = heard.message.guild_id.is_none() || self.reader.is_room(channel);
        let queue = if together { Queue::Channel(channel) } else { Queue::Author(channel, author) };
        if !needs.questions() && !needs.files && !self.queues.is_busy(queue, channel) {
            return self.tell_message(Inbound::Message(heard.message)).await;
        }
        let reader = Arc::clone(&self.reader);
        let work = async move { reader.message(payload, guild).await.map(Inbound::Message) };
        let job = Job { message: Some((channel, id)), edit_of: None, work: Box::pin(work) };
        self.queues.add(queue, job);
        Ok(())
    }

    async fn edited(&mut self, from: From, data: Value) -> Result<(), Gone> {
        if !catch_up::is_edited(&data) {
            return Ok(());
        }
        let id = MessageId(message_id(&data));
        let channel = data.get("channel_id").and_then(Value::as_str);
        let Some(channel) = channel.and_then(|id| id.parse().ok()) else { return Ok(()) };
        // Behind the message itself, where that still waits.
        let waits = self.queues.waits(channel, id);
        if !waits
            && reader::is_whole(&data)
            && let Some(payload) = read_message(&data)
        {
            if !self.reader.is_edit_for(from, &payload) {
                return Ok(());
            }
            match self.reader.look(&payload, None) {
                None => return Ok(()),
                // An earlier wording that is still being looked at comes first.
                Some((heard, needs))
                    if !needs.questions()
                        && heard.files.is_empty()
                        && !self.queues.is_busy(Queue::Edits(id), channel) =>
                {
                    return self.tell(Inbound::Edited(heard.message)).await;
                }
                Some(_) => {}
            }
        }
        let reader = Arc::clone(&self.reader);
        let author = data.pointer("/author/id").and_then(Value::as_str);
        let queue = match author.and_then(|id| id.parse().ok()) {
            Some(author) if waits && !self.reader.is_room(channel) => {
                let dm = data.get("guild_id").is_none();
                if dm { Queue::Channel(channel) } else { Queue::Author(channel, author) }
            }
            Some(_) if waits => Queue::Channel(channel),
            Some(_) | None => Queue::Edits(id),
        };
        let work = async move { reader.edit(from, data).await.map(Inbound::Edited) };
        self.queues.add(queue, Job { message: None, edit_of: Some(id), work: Box::pin(work) });
        Ok(())
    }

    /// Tells a page of what was missed.
    async fn page(&mut self, page: Page) -> Result<(), Gone> {
        let Page { channel, guild, messages, edited } = page;
        for data in edited {
            if self.reader.is_addressed_by_edit(&data) {
                self.edited(None, data).await?;
            }
        }
        for data in &messages {
            self.created(None, data, guild).await?;
        }
        let Some(newest) = messages.last().map(message_id) else { return Ok(()) };
        let message_id = self.queues.looked_at(channel, MessageId(newest));
        self.tell(Inbound::CaughtUp { channel_id: channel, message_id }).await
    }

    /// Tells what waited, but for that of channels that cannot be read.
    async fn release(&mut self) -> Result<(), Gone> {
        self.holds_all = false;
        let Some(mut events) = self.held.take() else { return Ok(()) };
        // One bot may have heard of something before the other was told of what comes before it.
        events.sort_by_key(QueuedMessage::message);
        let waits = |event: &QueuedMessage| self.unread.contains(&event.channel());
        let (kept, events): (Vec<_>, Vec<_>) = events.into_iter().partition(waits);
        self.held = (!self.unread.is_empty()).then_some(kept);
        for event in events {
            self.event(event).await?;
        }
        Ok(())
    }

    /// Everything that was missed is told, and now what waited.
    async fn caught_up(&mut self) -> Result<(), Gone> {
        self.pages = None;
        self.unread.clear();
        self.settle().await
    }

    /// Tells what waited, where nothing that comes before it is still to come.
    async fn settle(&mut self) -> Result<(), Gone> {
        let reads = self.pages.is_some() && self.unread.is_empty();
        // Where the session was lost again meanwhile, the team asks again.
        if self.missed || self.is_listener_down || reads {
            return Ok(());
        }
        if self.role_came || self.is_dropped {
            return self.ask().await;
        }
        self.release().await?;
        if self.pages.is_some() {
            return Ok(());
        }
        self.note_through();
        self.catching_up = true;
        self.tell_live().await
    }
}

fn note_roles(us: &mut Identity, roles: &[SeenServerRole]) {
    for role in roles {
        us.note_server_role(role.id, &role.name, role.tags.bot_id);
    }
}
