//! From gateway signals to facts, in order: what was missed before what is new, each message once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serenity::model::application::Interaction;
use serenity::model::channel::Message as Payload;
use tokio::sync::{mpsc, oneshot};

use crate::assets::catalog::Catalog;
use crate::discord::attachments::Shelf;
use crate::discord::commands;
use crate::discord::delivery::Delivery;
use crate::discord::endpoints::{SeenServerRole, message_id};
use crate::discord::error::RestError;
use crate::discord::gateway::Signal;
use crate::discord::identity::Identity;
use crate::discord::ingress::{self, Commanded, Origin};
use crate::discord::link::{Inbound, InteractionReply};
use crate::discord::rest::Rest;
use crate::domain::ids::{ChannelId, GuildId, MessageId, ServerRoleId, UserId};
use crate::domain::outgoing::Content;
use crate::domain::role::Role;
use crate::platform::tasks;

/// Message ids remembered for finding doubles; a resume repeats at most what one session held.
const REMEMBERED: usize = 4_096;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A wish to be told what was missed.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) watermarks: BTreeMap<ChannelId, MessageId>,
    pub(crate) done: oneshot::Sender<()>,
}

/// Whose signal it is; `None` is the bot that listens for the team.
type From = Option<Role>;

#[derive(Debug)]
enum Held {
    Created(From, Value),
    Edited(From, Value),
    Deleted(ChannelId, MessageId),
}

/// Nobody takes facts any more.
struct Gone;

/// The state of the intake.
pub(crate) struct Intake {
    delivery: Arc<Delivery>,
    identity: Arc<RwLock<Identity>>,
    catalog: Catalog,
    shelf: Shelf,
    team_role: Option<Role>,
    inbound: mpsc::Sender<Inbound>,
    /// Present while messages wait for [`Ask`].
    held: Option<Vec<Held>>,
    seen: BTreeSet<MessageId>,
    /// Webhooks whose owner was looked up.
    met: BTreeSet<u64>,
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
        team_role: Option<Role>,
        inbound: mpsc::Sender<Inbound>,
    ) -> Intake {
        Intake {
            delivery,
            identity,
            catalog,
            shelf,
            team_role,
            inbound,
            held: Some(Vec::new()),
            seen: BTreeSet::new(),
            met: BTreeSet::new(),
        }
    }

    pub(crate) async fn run(
        mut self,
        mut signals: mpsc::Receiver<(From, Signal)>,
        mut asks: mpsc::UnboundedReceiver<Ask>,
    ) {
        loop {
            let taken = tokio::select! {
                signal = signals.recv() => match signal {
                    Some((from, signal)) => self.signal(from, signal).await,
                    None => return,
                },
                ask = asks.recv() => match ask {
                    Some(ask) => self.catch_up(ask).await,
                    None => return,
                },
            };
            if taken.is_err() {
                return;
            }
        }
    }

    fn us<T>(&self, read: impl FnOnce(&Identity) -> T) -> T {
        read(&self.identity.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, change: impl FnOnce(&mut Identity)) {
        change(
            &mut self
                .identity
                .write()
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    fn rest(&self, from: From) -> &Rest {
        let speakers = &self.delivery.speakers;
        match from.and_then(|role| speakers.of(role)) {
            Some(speaker) => &speaker.rest,
            None => &speakers.team.rest,
        }
    }

    async fn tell(&self, fact: Inbound) -> Result<(), Gone> {
        self.inbound.send(fact).await.map_err(|_| Gone)
    }

    async fn signal(&mut self, from: From, signal: Signal) -> Result<(), Gone> {
        match signal {
            Signal::Up {
                fresh,
                user,
                application,
                guilds,
            } => self.up(from, fresh, user, application, guilds).await,
            Signal::Resumed if from.is_none() => {
                let identity = self.us(Clone::clone);
                self.tell(Inbound::Connected {
                    fresh: false,
                    identity,
                })
                .await
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
        if fresh && self.held.is_none() {
            self.held = Some(Vec::new());
        }
        let identity = self.us(Clone::clone);
        self.tell(Inbound::Connected { fresh, identity }).await
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
                self.tell(Inbound::Deleted {
                    channel_id,
                    message_id,
                })
                .await
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
        if !heard.files.is_empty() {
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
                !(blank
                    && self
                        .delivery
                        .speakers
                        .roles
                        .keys()
                        .any(|role| mentioned(*role)))
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

    async fn interaction(
        &self,
        from: From,
        data: Value,
        acknowledged: tokio::task::JoinHandle<Result<(), RestError>>,
    ) -> Result<(), Gone> {
        let Ok(interaction) = serde_json::from_value::<Interaction>(data) else {
            unreadable("INTERACTION_CREATE");
            return Ok(());
        };
        let (commanded, application, token) = match &interaction {
            Interaction::Component(it) => (ingress::press(it), it.application_id, &it.token),
            Interaction::Command(it) => (ingress::slash(it), it.application_id, &it.token),
            Interaction::Ping(_) | Interaction::Autocomplete(_) | Interaction::Modal(_) | _ => {
                return Ok(());
            }
        };
        match acknowledged.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a command was not acknowledged"),
            Err(error) => tracing::warn!(%error, "a command was not acknowledged"),
        }
        let Some(Commanded {
            actor,
            language,
            command,
        }) = commanded
        else {
            return Ok(());
        };
        let reply = InteractionReply {
            rest: self.rest(from).clone(),
            catalog: self.catalog.clone(),
            application: application.get(),
            token: token.clone(),
            language,
        };
        match command {
            Ok(command) => {
                self.tell(Inbound::Command {
                    actor,
                    command,
                    reply,
                })
                .await
            }
            Err(typed) => {
                let values = [("request_id".to_owned(), Value::String(typed))];
                let content = Content {
                    key: "unknown_request".to_owned(),
                    values: values.into_iter().collect(),
                    language,
                };
                tasks::spawn("discord-answer", async move { reply.say(&content).await });
                Ok(())
            }
        }
    }

    /// Tells what was missed, then what waited.
    async fn catch_up(&mut self, ask: Ask) -> Result<(), Gone> {
        for (channel, after) in ask.watermarks {
            self.catch_up_channel(channel, after).await?;
        }
        while let Some(held) = self.held.take() {
            for event in held {
                self.event(event).await?;
            }
        }
        // Nobody waiting for the answer is fine.
        let _ = ask.done.send(());
        Ok(())
    }

    async fn catch_up_channel(&mut self, channel: ChannelId, after: MessageId) -> Result<(), Gone> {
        let guild_id = match self
            .patiently(channel, |rest| async move { rest.channel(channel).await })
            .await?
        {
            Some(seen) => seen.guild_id,
            None => return Ok(()),
        };
        let mut roles: BTreeMap<UserId, Vec<ServerRoleId>> = BTreeMap::new();
        let mut after = after;
        loop {
            let page = self
                .patiently(channel, |rest| async move {
                    rest.messages_after(channel, after).await
                })
                .await?
                .unwrap_or_default();
            let Some(newest) = page.last().map(message_id) else {
                return Ok(());
            };
            for data in &page {
                let author = data
                    .pointer("/author/id")
                    .and_then(Value::as_str)
                    .and_then(|id| id.parse().ok());
                let own = author.is_none_or(|id| self.us(|us| us.bots.contains_key(&id)));
                let mut origin = Origin {
                    guild_id,
                    server_roles: Vec::new(),
                };
                if let (Some(guild), Some(user), false) = (guild_id, author, own) {
                    if let std::collections::btree_map::Entry::Vacant(slot) = roles.entry(user) {
                        // Somebody who left has no roles; that is also the answer to trouble: rights
                        // that cannot be shown are not given.
                        let found = self.rest(None).member_roles(guild, user).await;
                        slot.insert(found.unwrap_or_default());
                    }
                    origin.server_roles = roles.get(&user).cloned().unwrap_or_default();
                }
                self.created(None, data, &origin).await?;
            }
            if newest <= after.0 {
                return Ok(());
            }
            after = MessageId(newest);
            self.tell(Inbound::CaughtUp {
                channel_id: channel,
                message_id: after,
            })
            .await?;
        }
    }

    /// Repeats a read until it works or cannot work; `None` where the channel is not ours to read.
    async fn patiently<T, Fut>(
        &self,
        channel: ChannelId,
        read: impl Fn(Rest) -> Fut,
    ) -> Result<Option<T>, Gone>
    where
        Fut: Future<Output = Result<T, RestError>>,
    {
        let mut pause = Duration::from_secs(1);
        loop {
            match read(self.rest(None).clone()).await {
                Ok(value) => return Ok(Some(value)),
                Err(error) if error.is_retryable() => {
                    tracing::warn!(%error, %channel, "catching up waits");
                    tokio::select! {
                        () = tokio::time::sleep(error.retry_after().unwrap_or(pause)) => {}
                        () = self.inbound.closed() => return Err(Gone),
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    tracing::warn!(%error, %channel, "channel left out of catching up");
                    return Ok(None);
                }
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

/// Reads a message. What people write must not be lost because of a decoration that the model does not
/// know, so a second look leaves decorations out.
fn read_message(data: &Value) -> Option<Payload> {
    if let Ok(message) = serde_json::from_value(data.clone()) {
        return Some(message);
    }
    let mut plain = data.clone();
    if let Some(fields) = plain.as_object_mut() {
        for decoration in [
            "components",
            "embeds",
            "poll",
            "reactions",
            "sticker_items",
            "message_snapshots",
            "interaction",
            "interaction_metadata",
            "thread",
            "activity",
            "application",
            "role_subscription_data",
        ] {
            fields.remove(decoration);
        }
        fields.insert("embeds".to_owned(), Value::Array(Vec::new()));
    }
    match serde_json::from_value(plain) {
        Ok(message) => Some(message),
        Err(error) => {
            metrics::counter!("discord_gateway_unreadable").increment(1);
            tracing::warn!(%error, message = message_id(data), "message does not parse");
            None
        }
    }
}
