//! From gateway signals to facts, in order: what was missed before what is new, each message once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde::Deserialize;
use serde_json::Value;
use serenity::model::channel::Message as Payload;
use tokio::sync::mpsc;

use crate::assets::catalog::Catalog;
use crate::discord::attachments::Shelf;
use crate::discord::commands;
use crate::discord::delivery::Delivery;
use crate::discord::endpoints::{SeenServerRole, message_id};
use crate::discord::error::code;
use crate::discord::gateway::{Heard, Signal};
use crate::discord::identity::Identity;
use crate::discord::ingress::{self, Origin};
use crate::discord::link::{Inbound, WantsFiles};
use crate::discord::rest::Rest;
use crate::discord::sessions::{Bot as From, Mark, Sessions};
use crate::domain::ids::{ChannelId, GuildId, MessageId, UserId};
use crate::domain::role::Role;
use crate::platform::tasks;

mod catch_up;
mod interaction;
mod reading;

pub(crate) use catch_up::Ask;
use reading::read_message;

/// Message ids remembered for finding doubles; a resume repeats at most what one session held.
const REMEMBERED: usize = 4_096;

/// Events that may wait for [`Ask`]; the rest waits where it comes from.
const HELD: usize = 2_048;

#[derive(Debug)]
enum Held {
    Created(From, Value),
    Edited(From, Value),
    Deleted(ChannelId, MessageId),
}

/// Nobody takes facts any more.
struct Gone;

/// The way out for facts, which are counted.
pub(crate) struct Outlet {
    inbound: mpsc::Sender<Inbound>,
    told: AtomicU64,
    sessions: Arc<Sessions>,
}

impl Outlet {
    pub(crate) fn new(inbound: mpsc::Sender<Inbound>, sessions: Arc<Sessions>) -> Outlet {
        Outlet { inbound, told: AtomicU64::new(0), sessions }
    }
}

/// The state of the intake.
pub(crate) struct Intake {
    delivery: Arc<Delivery>,
    identity: Arc<RwLock<Identity>>,
    catalog: Catalog,
    shelf: Shelf,
    wants_files: WantsFiles,
    team_role: Option<Role>,
    out: Outlet,
    signals: mpsc::Receiver<Heard>,
    asks: mpsc::UnboundedReceiver<Ask>,
    /// The newest event of each bot.
    newest: BTreeMap<From, Mark>,
    /// Something may have been missed since the last [`Ask`].
    missed: bool,
    /// Present while messages wait for [`Ask`].
    held: Option<Vec<Held>>,
    seen: BTreeSet<MessageId>,
    /// Webhooks whose owner was looked up.
    met: BTreeSet<u64>,
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
        delivery: Arc<Delivery>,
        identity: Arc<RwLock<Identity>>,
        catalog: Catalog,
        shelf: Shelf,
        wants_files: WantsFiles,
        (team_role, home): (Option<Role>, BTreeSet<GuildId>),
        (out, signals, asks): (Outlet, mpsc::Receiver<Heard>, mpsc::UnboundedReceiver<Ask>),
    ) -> Intake {
        Intake {
            delivery,
            identity,
            catalog,
            shelf,
            wants_files,
            team_role,
            out,
            signals,
            asks,
            newest: BTreeMap::new(),
            missed: false,
            held: Some(Vec::new()),
            seen: BTreeSet::new(),
            met: BTreeSet::new(),
            home,
        }
    }

    pub(crate) async fn run(mut self) {
        loop {
            let room = self.has_room();
            let taken = tokio::select! {
                heard = self.signals.recv(), if room => match heard {
                    Some(heard) => self.heard(heard).await,
                    None => return,
                },
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.catch_up(ask).await,
                    None => return,
                },
            };
            if taken.is_err() {
                return;
            }
        }
    }

    fn has_room(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.len() < HELD)
    }

    /// Takes what has come meanwhile, so that a long look back holds no button press up.
    async fn take_waiting(&mut self) -> Result<(), Gone> {
        while self.has_room()
            && let Ok(heard) = self.signals.try_recv()
        {
            self.heard(heard).await?;
        }
        Ok(())
    }

    async fn heard(&mut self, Heard { bot, mark, signal }: Heard) -> Result<(), Gone> {
        self.signal(bot, signal).await?;
        if let Some(mark) = mark {
            self.newest.insert(bot, mark);
            self.note_through();
        }
        Ok(())
    }

    /// Notes how far each session is through; not while events are held, which would be lost with us.
    fn note_through(&mut self) {
        if self.held.is_some() {
            return;
        }
        let told = self.out.told.load(Ordering::Relaxed);
        for (bot, mark) in std::mem::take(&mut self.newest) {
            self.out.sessions.through(told, bot, mark);
        }
    }

    fn us<T>(&self, read: impl FnOnce(&Identity) -> T) -> T {
        read(&self.identity.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, change: impl FnOnce(&mut Identity)) {
        change(&mut self.identity.write().unwrap_or_else(PoisonError::into_inner));
    }

    fn rest(&self, from: From) -> &Rest {
        let speakers = &self.delivery.speakers;
        match from.and_then(|role| speakers.of(role)) {
            Some(speaker) => &speaker.rest,
            None => &speakers.team.rest,
        }
    }

    async fn tell(&self, fact: Inbound) -> Result<(), Gone> {
        self.out.told.fetch_add(1, Ordering::Relaxed);
        self.out.inbound.send(fact).await.map_err(|_| Gone)
    }

    async fn signal(&mut self, from: From, signal: Signal) -> Result<(), Gone> {
        match signal {
            Signal::Up { fresh, user, application, guilds } => {
                self.up(from, fresh, user, application, guilds).await
            }
            Signal::Resumed if from.is_none() => {
                let identity = self.us(Clone::clone);
                self.tell(Inbound::Connected { fresh: false, identity }).await
            }
            Signal::Resumed => Ok(()),
            Signal::Down { reason } => {
                tracing::warn!(bot = ?from, reason, "gateway connection lost");
                match from {
                    None => self.tell(Inbound::Disconnected { reason }).await,
                    Some(_) => Ok(()),
                }
            }
            Signal::Degraded { reason } => match from {
                None => self.tell(Inbound::Degraded { reason }).await,
                Some(_) => Ok(()),
            },
            Signal::Fatal { reason } => self.tell(Inbound::Fatal { role: from, reason }).await,
            Signal::Interaction { data, acknowledged } => {
                if !self.out.sessions.is_new(from, message_id(&data)) {
                    return Ok(());
                }
                let acknowledged = acknowledged.await;
                if let Ok(Err(error)) = &acknowledged
                    && error.code() == Some(code::UNKNOWN_INTERACTION)
                {
                    // It came too late: the person was told that it failed.
                    tracing::warn!("a command came after its time and was not carried out");
                    return Ok(());
                }
                let acknowledged = async { acknowledged.unwrap_or(Ok(())) };
                let acknowledged = tasks::spawn("discord-acknowledged", acknowledged);
                self.interaction(from, data, acknowledged).await
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
        self.change(|us| {
            us.bots.insert(user, role);
            us.applications.insert(application);
            us.guilds.extend(guilds.iter().copied());
        });
        if from.is_some() {
            return Ok(());
        }
        for guild in guilds {
            match self.rest(None).server_roles(guild).await {
                Ok(roles) => self.change(|us| note_roles(us, &roles)),
                // The server's own greeting brings them as well.
                Err(error) => tracing::warn!(%error, %guild, "server roles not read"),
            }
            let rest = self.rest(None).clone();
            tasks::spawn("discord-commands", async move {
                if let Err(error) = commands::register(&rest, application, guild).await {
                    tracing::warn!(%error, %guild, "slash commands not registered");
                }
            });
        }
        if fresh {
            self.missed = true;
            self.held.get_or_insert_default();
        }
        let identity = self.us(Clone::clone);
        self.tell(Inbound::Connected { fresh, identity }).await
    }

    fn is_foreign(&self, guild: GuildId) -> bool {
        !self.home.is_empty() && !self.home.contains(&guild)
    }

    /// Somebody invited a bot into a server that the team does not live in: nothing there is for it.
    async fn leave(&self, from: From, guild: GuildId) {
        match self.rest(from).leave(guild).await {
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
            "MESSAGE_CREATE" => self.hold_or(Held::Created(from, data)).await,
            "MESSAGE_UPDATE" => self.hold_or(Held::Edited(from, data)).await,
            "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" if from.is_none() => {
                let Ok(deletion) = serde_json::from_value::<Deletion>(data) else {
                    unreadable(kind);
                    return Ok(());
                };
                for id in deletion.id.into_iter().chain(deletion.ids) {
                    self.hold_or(Held::Deleted(deletion.channel_id, id)).await?;
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
                self.change(|us| note_roles(us, &roles));
                Ok(())
            }
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => {
                let role = data.get("role").cloned().unwrap_or_default();
                if let Ok(role) = serde_json::from_value::<SeenServerRole>(role) {
                    self.change(|us| note_roles(us, &[role]));
                }
                Ok(())
            }
            _ => {
                metrics::counter!("discord_gateway_ignored", "event" => kind.to_owned())
                    .increment(1);
                tracing::trace!(kind, "event of no interest");
                Ok(())
            }
        }
    }

    async fn hold_or(&mut self, event: Held) -> Result<(), Gone> {
        match &mut self.held {
            Some(held) => {
                held.push(event);
                Ok(())
            }
            None => self.event(event).await,
        }
    }

    async fn event(&mut self, event: Held) -> Result<(), Gone> {
        match event {
            Held::Created(from, data) => self.created(from, &data, &Origin::default()).await,
            Held::Edited(from, data) => self.edited(from, data).await,
            Held::Deleted(channel_id, message_id) => {
                self.tell(Inbound::Deleted { channel_id, message_id }).await
            }
        }
    }

    async fn created(&mut self, from: From, data: &Value, origin: &Origin) -> Result<(), Gone> {
        if self.seen.contains(&MessageId(message_id(data))) {
            return Ok(());
        }
        let Some(payload) = read_message(data) else {
            return Ok(());
        };
        if !self.is_for(from, &payload) {
            return Ok(());
        }
        self.meet_webhooks(&payload).await;
        let Ok(mut heard) = self.us(|us| ingress::message(&payload, origin, us)) else {
            return Ok(());
        };
        if !heard.files.is_empty() && self.wants_files.of(&heard.message) {
            let http = self.rest(None).pool().http().clone();
            self.shelf.fill(&http, &mut heard).await;
        }
        self.seen.insert(heard.message.message_id);
        if self.seen.len() > REMEMBERED {
            self.seen.pop_first();
        }
        self.tell(Inbound::Message(heard.message)).await
    }

    /// Each bot of `voice: bots` receives every message. The listener tells them all, except those that
    /// only the mentioned bot can read; the others tell what was written to them.
    fn is_for(&self, from: From, payload: &Payload) -> bool {
        let mentioned = |role: Role| {
            self.us(|us| {
                payload
                    .mentions
                    .iter()
                    .any(|user| us.bots.get(&UserId(user.id.get())) == Some(&Some(role)))
            })
        };
        match from {
            Some(role) => mentioned(role) || payload.guild_id.is_none(),
            None => {
                let blank = payload.content.is_empty() && payload.attachments.is_empty();
                !(blank && self.delivery.speakers.roles.keys().any(|role| mentioned(*role)))
            }
        }
    }

    async fn edited(&mut self, from: From, data: Value) -> Result<(), Gone> {
        // An unfolding link preview is an update too; only people's edits carry the time of the edit.
        if data.get("edited_timestamp").is_none_or(Value::is_null) {
            return Ok(());
        }
        let full = if data.get("author").is_some() && data.get("content").is_some() {
            Some(data)
        } else {
            self.fetch(from, &data).await
        };
        let Some(payload) = full.as_ref().and_then(read_message) else {
            return Ok(());
        };
        if !self.is_for(from, &payload) || (from.is_some() && payload.guild_id.is_some()) {
            return Ok(());
        }
        self.meet_webhooks(&payload).await;
        match self.us(|us| ingress::message(&payload, &Origin::default(), us)) {
            Ok(heard) => self.tell(Inbound::Edited(heard.message)).await,
            Err(_) => Ok(()),
        }
    }

    /// Finds out whether the webhooks behind a message are ours, once for each.
    async fn meet_webhooks(&mut self, payload: &Payload) {
        let original = payload.referenced_message.as_deref();
        for message in std::iter::once(payload).chain(original) {
            let Some(id) = message.webhook_id.map(|id| id.get()) else {
                continue;
            };
            if message.application_id.is_some() || !self.met.insert(id) {
                continue;
            }
            match self.rest(None).webhook(id).await {
                Ok(webhook) => self.change(|us| {
                    let owner = webhook.application_id.and_then(|it| it.parse().ok());
                    if owner.is_some_and(|owner: u64| us.applications.contains(&owner)) {
                        us.webhooks.insert(id);
                    }
                }),
                Err(error) => {
                    tracing::warn!(%error, id, "a webhook's owner is unknown");
                    // A refusal is final, trouble on the way is not.
                    if error.is_retryable() {
                        self.met.remove(&id);
                    }
                }
            }
        }
    }

    async fn fetch(&self, from: From, data: &Value) -> Option<Value> {
        let channel = data.get("channel_id").and_then(Value::as_str)?;
        let channel: ChannelId = channel.parse().ok()?;
        let message = MessageId(message_id(data));
        match self.rest(from).message(channel, message).await {
            Ok(mut full) => {
                if let (Some(full), Some(guild)) = (full.as_object_mut(), data.get("guild_id")) {
                    full.insert("guild_id".to_owned(), guild.clone());
                }
                Some(full)
            }
            Err(error) => {
                tracing::warn!(%error, %message, "an edited message was not read");
                None
            }
        }
    }
}

fn note_roles(us: &mut Identity, roles: &[SeenServerRole]) {
    for role in roles {
        us.note_server_role(role.id, &role.name);
    }
}

fn unreadable(kind: &str) {
    metrics::counter!("discord_gateway_unreadable").increment(1);
    tracing::warn!(kind, "event does not parse");
}
