//! Posting: through which poster, and each part once.

use std::future::Future;

use serde_json::{Value, json};

use super::poster::Poster;
use super::{ACCOUNTED, Delivery, Destination, NONCE_TRUST_SECONDS, SendError, lock};
use crate::discord::compose::{Parts, nonce};
use crate::discord::endpoints::SeenChannel;
use crate::discord::error::{RestError, code};
use crate::discord::history::{History, Marker};
use crate::discord::personas::hook_is_gone;
use crate::discord::rest::Upload;
use crate::discord::split::{MESSAGE_LIMIT, shorten};
use crate::domain::ids::{ChannelId, MessageId};
use crate::domain::language::Language;
use crate::domain::outgoing::{
    Act, Content, Outgoing, OutgoingOutcome, OutgoingState, Post, Voice,
};
use crate::domain::time::Timestamp;
use crate::platform::clock;

impl Delivery {
    /// What kind of channel it is; asked once for each.
    pub(super) async fn channel(&self, place: &Destination) -> Result<SeenChannel, RestError> {
        if let Some(parent_id) = place.parent {
            return Ok(SeenChannel {
                id: place.channel,
                kind: 11,
                parent_id: Some(parent_id),
                guild_id: None,
            });
        }
        if let Some(known) = lock(&self.channels).get(&place.channel) {
            return Ok(known.clone());
        }
        let seen = self.bot_in(place.channel).rest.channel(place.channel).await?;
        lock(&self.channels).insert(place.channel, seen.clone());
        Ok(seen)
    }

    pub(super) async fn poster<'a>(
        &'a self,
        voice: Voice,
        place: &Destination,
        channel: &SeenChannel,
    ) -> Result<Poster<'a>, RestError> {
        let team = &self.speakers.team;
        let role = match voice {
            Voice::Team => return Ok(Poster::Bot(self.bot_in(place.channel))),
            Voice::Role(_) if channel.is_dm() => {
                return Ok(Poster::Bot(self.bot_in(place.channel)));
            }
            Voice::Role(role) => role,
        };
        // One whose token counts no more is spoken for by the team's bot.
        if let Some(speaker) = self.speakers.of(role).filter(|it| !it.rest.is_refused()) {
            return Ok(Poster::Bot(speaker));
        }
        if !self.speakers.personas {
            return Ok(Poster::Bot(team));
        }
        let thread = channel.is_thread().then_some(place.channel);
        let parent = match thread {
            Some(_) => channel.parent_id.unwrap_or(place.channel),
            None => place.channel,
        };
        let hook = self.personas.hook(team, parent, role, &self.problems).await?;
        Ok(match hook {
            Some(hook) => {
                Poster::Hook { speaker: team, hook, name: self.personas.name(role), parent, thread }
            }
            None => Poster::Bot(team),
        })
    }

    /// Sends the parts that are not there yet.
    pub(super) async fn send<F, Fut>(
        &self,
        outgoing: &Outgoing,
        place: &Destination,
        poster: &Poster<'_>,
        parts: &Parts,
        mut progress: F,
    ) -> Result<OutgoingOutcome, SendError>
    where
        F: FnMut(u32) -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        if parts.is_empty() {
            return Err(SendError::Unsayable("there is nothing to say".to_owned()));
        }
        let done = match outgoing.state {
            OutgoingState::Queued => 0,
            OutgoingState::Sending { parts_done, .. } => parts_done as usize,
        };
        // Where every part is confirmed, the last one is looked at once more, in the way that doubles
        // nothing: its id was lost with the process, and cards and gates are known by it.
        let done = done.min(parts.texts.len().saturating_sub(1));
        let mut history = match self.may_exist(outgoing, poster) {
            false => History::default(),
            true => {
                let rest = &self.bot_in(place.channel).rest;
                let mut history = History::read(rest, place.channel, outgoing.created_at).await?;
                history.leave_out(&lock(&self.delivered));
                history
            }
        };
        let mut message_ids = Vec::new();
        for at in done..parts.texts.len() {
            let last = at + 1 == parts.texts.len();
            let nonce = nonce_of(outgoing, at);
            let marker = Marker {
                nonce: &nonce,
                text: parts.texts.get(at).map(String::as_str).unwrap_or_default(),
                embed: parts.embed.as_ref().filter(|_| last),
            };
            let found = if history.is_empty() {
                None
            } else {
                match poster {
                    Poster::Bot(speaker) => history.by_user(speaker.me().await?, &marker),
                    Poster::Hook { speaker, hook, name, .. } => {
                        let application = speaker.application().await?;
                        history.by_webhook(hook.id, application, name, &marker)
                    }
                }
            };
            let id = match found {
                Some(id) => id,
                None => self.part(outgoing, place, poster, parts, at).await?,
            };
            self.account_for(id);
            message_ids.push(id);
            // The last part is not noted: the outcome follows, and with its id, which would be lost where
            // a restart took the part for done.
            if !last {
                progress(u32::try_from(at + 1).unwrap_or(u32::MAX)).await;
            }
        }
        Ok(OutgoingOutcome::Posted { channel_id: place.channel, message_ids })
    }

    /// Sends one part. Files that Discord does not take after all, or not here, are left out and named.
    async fn part(
        &self,
        outgoing: &Outgoing,
        place: &Destination,
        poster: &Poster<'_>,
        parts: &Parts,
        at: usize,
    ) -> Result<MessageId, SendError> {
        let nonce = nonce_of(outgoing, at);
        let files = parts.files.get(&at).cloned().unwrap_or_default();
        let names: Vec<String> = files.iter().map(|file| file.filename.clone()).collect();
        let body = parts.body(at);
        match self.speak(poster, place.channel, body.clone(), &nonce, files).await {
            Err(error) if !names.is_empty() && is_about_files(&error) => {
                tracing::warn!(%error, ?names, "Discord does not take the files here");
                let language = match &outgoing.act {
                    Act::Post(Post { content, .. })
                    | Act::Card { content, .. }
                    | Act::Board { content, .. } => content.language,
                    Act::Pin { .. }
                    | Act::OpenRoom { .. }
                    | Act::React { .. }
                    | Act::Unbutton { .. }
                    | Act::Envelope { .. } => Language::default(),
                };
                let mut body = body;
                let words = body.get("content").and_then(Value::as_str).unwrap_or_default();
                let values = json!({ "files": names }).as_object().cloned().unwrap_or_default();
                let note = Content { key: "files.refused".to_owned(), values, language };
                let note = shorten(&self.render(&note)?.text, 500);
                let words = shorten(words, MESSAGE_LIMIT - 501);
                body.insert("content".to_owned(), json!(format!("{words}\n{note}")));
                Ok(self.speak(poster, place.channel, body, &nonce, Vec::new()).await?)
            }
            Err(RestError::Gone { code: code::UNKNOWN_CHANNEL, .. })
                if matches!(poster, Poster::Hook { .. }) && outgoing.attempts == 0 =>
            {
                // The room may be there, and the webhook somewhere else: it was forgotten.
                let again =
                    "the room or the persona's webhook is gone; the webhook is looked for anew";
                Err(RestError::Network(again.to_owned()).into())
            }
            sent => Ok(sent?),
        }
    }

    fn account_for(&self, id: MessageId) {
        let mut delivered = lock(&self.delivered);
        delivered.insert(id);
        // Ids grow with time, so the lowest is the oldest.
        if delivered.len() > ACCOUNTED {
            delivered.pop_first();
        }
    }

    async fn speak(
        &self,
        poster: &Poster<'_>,
        channel: ChannelId,
        mut body: serde_json::Map<String, Value>,
        nonce: &str,
        files: Vec<Upload>,
    ) -> Result<MessageId, RestError> {
        match poster {
            Poster::Bot(speaker) => {
                body.insert("nonce".to_owned(), json!(nonce));
                body.insert("enforce_nonce".to_owned(), json!(true));
                let body = Value::Object(body);
                speaker.rest.create_message(channel, body, files).await
            }
            Poster::Hook { speaker, hook, name, parent, thread } => {
                body.insert("username".to_owned(), json!(name));
                let body = Value::Object(body);
                let sent =
                    speaker.rest.execute_webhook(hook.id, &hook.token, *thread, body, files).await;
                match sent {
                    Err(error) if hook_is_gone(&error) => {
                        self.personas.forget(*parent);
                        let again = "the persona's webhook was removed; it is made again";
                        Err(RestError::Network(again.to_owned()))
                    }
                    Err(error) if error.code() == Some(code::UNKNOWN_CHANNEL) => {
                        // The room is gone, or somebody has moved the webhook: the next try looks for it anew.
                        self.personas.forget(*parent);
                        Err(error)
                    }
                    sent => sent,
                }
            }
        }
    }

    /// Whether there was an earlier try, in this process or another.
    pub(super) fn was_begun(&self, outgoing: &Outgoing) -> bool {
        let before = match outgoing.state {
            OutgoingState::Sending { since, .. } => since < self.started_at,
            OutgoingState::Queued => false,
        };
        before || outgoing.attempts > 0 || lock(&self.tried).contains_key(&outgoing.outgoing_id)
    }

    /// Whether an earlier try may have come through in a way that its nonce does not cover.
    fn may_exist(&self, outgoing: &Outgoing, poster: &Poster<'_>) -> bool {
        let again = outgoing.attempts > 0 || lock(&self.tried).contains_key(&outgoing.outgoing_id);
        let first = match outgoing.state {
            OutgoingState::Sending { since, .. } if !again => Some(since),
            OutgoingState::Sending { .. } | OutgoingState::Queued if again => {
                Some(outgoing.created_at)
            }
            OutgoingState::Sending { .. } | OutgoingState::Queued => None,
        };
        match poster {
            Poster::Bot(_) => {
                let now = Timestamp::new(clock::now());
                let is_old = |first| first > now || now.seconds_since(first) > NONCE_TRUST_SECONDS;
                first.is_some_and(is_old)
            }
            Poster::Hook { .. } => again || first.is_some_and(|first| first < self.started_at),
        }
    }
}

/// The nonce of a part of an outgoing.
pub(super) fn nonce_of(outgoing: &Outgoing, part: usize) -> String {
    nonce(&outgoing.outgoing_id, part)
}

/// Whether it may be taken without its files: they are too large, or nobody may attach any there.
fn is_about_files(error: &RestError) -> bool {
    match error {
        RestError::Refused { status, code, .. } => {
            *status == 413 || [code::TOO_LARGE, code::NO_PERMISSION].contains(code)
        }
        RestError::Network(_)
        | RestError::Server { .. }
        | RestError::Limited { .. }
        | RestError::Breaker { .. }
        | RestError::Unauthorized
        | RestError::Gone { .. }
        | RestError::Unreadable(_) => false,
    }
}
