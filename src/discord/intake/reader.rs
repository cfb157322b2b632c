//! What is found out about a message before it is told: whose webhook wrote it, which rights its author has,
//! what stands in its files. Shared by the jobs of the intake.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;
use serenity::model::channel::Message as Payload;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::read_message;
use crate::assets::catalog::Catalog;
use crate::discord::access::Access;
use crate::discord::attachments::AttachmentFolder;
use crate::discord::bot::Bot as From;
use crate::discord::delivery::Delivery;
use crate::discord::endpoints::message_id;
use crate::discord::error::RestError;
use crate::discord::identity::Identity;
use crate::discord::ingress::{self, InboundMessage, Origin};
use crate::discord::problems::{LinkProblem, LinkProblems};
use crate::discord::repeat::patiently;
use crate::discord::rest::Rest;
use crate::domain::ids::{ChannelId, GuildId, MessageId, ServerRoleId, UserId};
use crate::domain::incoming::Message;
use crate::domain::role::Role;

/// Members that are asked for at the same time.
const LOOKUPS: usize = 4;
/// How long the answer is relied on; what was missed is often by few people.
const ROLES_FOR: Duration = Duration::from_secs(60);
/// Members that are remembered.
const MEMBERS: usize = 1_000;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is still to be found out about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needs {
    webhooks: bool,
    roles: bool,
    pub(super) files: bool,
}

impl Needs {
    /// Whether anything has to be asked before the words can be told.
    pub(super) const fn questions(self) -> bool {
        self.webhooks || self.roles
    }
}

/// The server roles of members, and when they were asked for.
type Members = BTreeMap<(GuildId, UserId), (Instant, Vec<ServerRoleId>)>;

/// Whatever reading takes.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(super) delivery: Arc<Delivery>,
    identity: Arc<RwLock<Identity>>,
    pub(super) catalog: Catalog,
    pub(super) attachments: AttachmentFolder,
    pub(super) access: Arc<dyn Access>,
    /// Webhooks whose owner was looked up.
    met: Mutex<BTreeSet<u64>>,
    members: Mutex<Members>,
    lookups: Semaphore,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reader {
    pub(crate) fn new(
        delivery: Arc<Delivery>,
        identity: Arc<RwLock<Identity>>,
        catalog: Catalog,
        attachments: AttachmentFolder,
        access: Arc<dyn Access>,
    ) -> Reader {
        Reader {
            delivery,
            identity,
            catalog,
            attachments,
            access,
            met: Mutex::default(),
            members: Mutex::default(),
            lookups: Semaphore::new(LOOKUPS),
        }
    }

    pub(super) fn us<T>(&self, read: impl FnOnce(&Identity) -> T) -> T {
        read(&self.identity.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Identity)) {
        change(&mut self.identity.write().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn rest(&self, from: From) -> &Rest {
        let speakers = &self.delivery.speakers;
        match from.and_then(|role| speakers.of(role)) {
            Some(speaker) => &speaker.rest,
            None => &speakers.team.rest,
        }
    }

    /// By whom a channel is read.
    pub(super) fn rest_in(&self, channel: ChannelId) -> &Rest {
        &self.delivery.bot_in(channel).rest
    }

    /// Whether that is the own bot of a role.
    pub(super) fn is_of_role(&self, channel: ChannelId) -> bool {
        !std::ptr::eq(self.rest_in(channel), self.rest(None))
    }

    /// Somebody writes to the own bot of a role there.
    pub(super) fn note_dm_of(&self, channel: ChannelId, role: Role) {
        self.delivery.note_dm_of(channel, role);
    }

    pub(super) fn is_room(&self, channel: ChannelId) -> bool {
        self.access.is_room(channel)
    }

    pub(super) fn problems(&self) -> &LinkProblems {
        self.delivery.problems()
    }

    /// Rights or channels are others than before.
    pub(super) fn places_changed(&self) {
        lock(&self.members).clear();
        self.delivery.places_changed();
    }

    /// Each bot of `voice: bots` receives every message. The listener tells them all, except those that
    /// only the mentioned bot can read; the others tell what was written to them.
    pub(super) fn is_for(&self, from: From, payload: &Payload) -> bool {
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

    /// The message as far as it is known, and what is still to be found out; `None` where it is nothing to us.
    pub(super) fn look(
        &self,
        payload: &Payload,
        guild: Option<GuildId>,
    ) -> Option<(InboundMessage, Needs)> {
        let webhooks = webhooks_of(payload).any(|id| !lock(&self.met).contains(&id));
        let origin = Origin { guild_id: guild, server_roles: Vec::new() };
        let heard = self.us(|us| ingress::message(payload, &origin, us)).ok()?;
        let message = &heard.message;
        let untold = payload.member.is_none() && payload.webhook_id.is_none();
        let roles = untold && message.guild_id.is_some() && self.access.depends_on_roles(message);
        let files = !heard.files.is_empty();
        Some((heard, Needs { webhooks, roles, files }))
    }

    /// A whole message: with its author's roles and its files. `None` where it is nothing to us after all.
    pub(super) async fn message(
        &self,
        payload: Payload,
        guild: Option<GuildId>,
    ) -> Option<Message> {
        let heard = self.known(&payload, guild).await?;
        Some(self.with_files(heard).await)
    }

    async fn with_files(&self, mut heard: InboundMessage) -> Message {
        if !heard.files.is_empty() && self.access.takes_in(&heard.message) {
            let http = self.rest(None).pool().http().clone();
            self.attachments.fill(&http, &mut heard).await;
        }
        heard.message
    }

    /// An edited message. One that did not come whole is fetched.
    pub(super) async fn edit(&self, from: From, data: Value) -> Option<Message> {
        let whole = match is_whole(&data) {
            true => data,
            false => self.fetch(from, &data).await?,
        };
        let payload = read_message(&whole)?;
        if !self.is_edit_for(from, &payload) {
            return None;
        }
        let heard = self.known(&payload, None).await?;
        // The files of a message that is known are known.
        match self.access.is_addressed_by_edit(&heard.message) {
            true => Some(self.with_files(heard).await),
            false => Some(heard.message),
        }
    }

    /// Whether an edit that was found addresses the team in a message that was not for it. What became of messages that
    /// were taken in is asked for one by one.
    pub(super) fn is_addressed_by_edit(&self, data: &Value) -> bool {
        let heard = read_message(data).and_then(|payload| self.look(&payload, None));
        heard.is_some_and(|(heard, _)| self.access.is_addressed_by_edit(&heard.message))
    }

    /// Whether an edit is told by this bot.
    pub(super) fn is_edit_for(&self, from: From, payload: &Payload) -> bool {
        self.is_for(from, payload) && (from.is_none() || payload.guild_id.is_none())
    }

    /// A message with everything that its rights need, and without its files.
    async fn known(&self, payload: &Payload, guild: Option<GuildId>) -> Option<InboundMessage> {
        self.meet_webhooks(payload).await;
        let (mut heard, needs) = self.look(payload, guild)?;
        if needs.roles
            && let Some(guild) = heard.message.guild_id
        {
            let author = &mut heard.message.author;
            author.server_roles = self.roles(guild, author.id).await;
        }
        Some(heard)
    }

    /// The server roles of a member. Only a 404 means that there are none: whatever else comes back says
    /// nothing about anybody's rights, and is asked for again until there is an answer.
    async fn roles(&self, guild: GuildId, user: UserId) -> Vec<ServerRoleId> {
        let mut pause = Duration::from_secs(1);
        loop {
            if let Some((at, roles)) = lock(&self.members).get(&(guild, user))
                && at.elapsed() < ROLES_FOR
            {
                return roles.clone();
            }
            let found = {
                // Never closed.
                let _place = self.lookups.acquire().await;
                self.rest(None).member_roles(guild, user).await
            };
            let roles = match found {
                Ok(roles) => roles,
                Err(RestError::Gone { .. }) => Vec::new(),
                Err(error) => {
                    self.problems().set(LinkProblem::Rights(user), Some(error.to_string()));
                    tracing::warn!(%error, %user, "the rights of a message's author are not known yet");
                    tokio::time::sleep(error.retry_after().unwrap_or(pause).max(pause)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
            };
            self.problems().set(LinkProblem::Rights(user), None);
            let mut members = lock(&self.members);
            if members.len() >= MEMBERS {
                members.clear();
            }
            members.insert((guild, user), (Instant::now(), roles.clone()));
            return roles;
        }
    }

    /// Finds out whether the webhooks behind a message are ours. One counts as met when its owner is known, not
    /// while it is asked for: another message would take it for somebody else's.
    async fn meet_webhooks(&self, payload: &Payload) {
        for id in webhooks_of(payload) {
            if lock(&self.met).contains(&id) {
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
                        continue;
                    }
                }
            }
            lock(&self.met).insert(id);
        }
    }

    async fn fetch(&self, from: From, data: &Value) -> Option<Value> {
        let channel = data.get("channel_id").and_then(Value::as_str)?;
        let channel: ChannelId = channel.parse().ok()?;
        let message = MessageId(message_id(data));
        let rest = if from.is_some() { self.rest(from) } else { self.rest_in(channel) };
        match patiently(|| rest.message(channel, message)).await {
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

/// Whether the payload of an edit holds the whole message.
pub(super) fn is_whole(data: &Value) -> bool {
    data.get("author").is_some() && data.get("content").is_some()
}

/// The webhooks that wrote a message or the one that it answers, where the payload does not say whose they are.
fn webhooks_of(payload: &Payload) -> impl Iterator<Item = u64> {
    let original = payload.referenced_message.as_deref();
    std::iter::once(payload)
        .chain(original)
        .filter(|message| message.application_id.is_none())
        .filter_map(|message| message.webhook_id.map(|id| id.get()))
}
