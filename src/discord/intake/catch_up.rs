//! Reading what was missed, oldest first, beside what goes on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Reader;
use crate::discord::endpoints::message_id;
use crate::discord::error::{RestError, code};
use crate::discord::inbound::Inbound;
use crate::discord::repeat::patiently;
use crate::discord::rest::Rest;
use crate::domain::ids::{ChannelId, GuildId, MessageId};
use crate::domain::incoming::ADDRESSED_BY_EDIT;
use crate::domain::time::Timestamp;
use crate::platform::{clock, tasks};

/// Messages of a whole page.
const PAGE: usize = 100;
/// Rounds of such reads for what became of a message.
const ROUNDS: u32 = 10;
/// The pause after an answer that says nothing about the channel.
const PAUSE: Duration = Duration::from_secs(15);

/// Nobody takes facts any more.
pub(super) struct Gone;

/// A wish to be told what was missed.
#[derive(Debug)]
pub(crate) struct CatchUpRequest {
    pub(crate) watermarks: BTreeMap<ChannelId, MessageId>,
    pub(crate) taken: BTreeMap<MessageId, TakenMessage>,
}

/// A message that was taken in and that something open hangs on.
#[derive(Debug, Clone, Copy)]
pub struct TakenMessage {
    /// Where it was written, as far as is known.
    pub channel: ChannelId,
    /// Whether it was surely written there, so that where it is not, it was deleted.
    pub is_sure: bool,
}

/// What became of a message while nobody listened.
#[derive(Debug)]
pub(super) enum MessageChange {
    /// A message was edited: what it is known by.
    Edited(Value),
    /// A message was deleted.
    Deleted(ChannelId, MessageId),
}

/// What a look back has read.
#[derive(Debug)]
pub(super) enum LookBack {
    /// Messages.
    Page(Page),
    /// Only these channels are left, and Discord does not let them be read for now: nobody else is to wait for them.
    Left(BTreeSet<ChannelId>),
}

/// Messages of a channel that were missed, oldest first.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) channel: ChannelId,
    pub(super) guild: Option<GuildId>,
    pub(super) messages: Vec<Value>,
    /// Messages that were read before and are edited, with their server: an edit may have addressed the team.
    pub(super) edited: Vec<Value>,
}

/// What is read next; `None` at the end.
pub(super) async fn next(pages: &mut Option<mpsc::Receiver<LookBack>>) -> Option<LookBack> {
    match pages {
        Some(pages) => pages.recv().await,
        None => None,
    }
}

impl Reader {
    /// Reads what was missed, one page of 100 at a time, and as slowly as they are taken: however much was
    /// missed, no more than a few pages are in memory. Ends where nobody takes facts any more.
    pub(super) fn look_back(
        self: &Arc<Self>,
        ask: CatchUpRequest,
        facts: mpsc::Sender<Inbound>,
        late: mpsc::Sender<MessageChange>,
    ) -> mpsc::Receiver<LookBack> {
        let (out, pages) = mpsc::channel(1);
        let reader = Arc::clone(self);
        tasks::spawn("discord-look-back", async move {
            let read = async {
                let mut left: VecDeque<_> =
                    ask.watermarks.into_iter().map(|it| (it, 1, 0)).collect();
                let mut told = usize::MAX;
                while let Some(((channel, after), round, unreadable)) = left.pop_front() {
                    match channel_after(reader.rest_in(channel), channel, after, &out).await {
                        Ok(()) => {}
                        Err(Stop::Later(after, why)) => {
                            let unreadable = match why {
                                NotNow::Unreadable => unreadable + 1,
                                // A role may never be let in again. Without the listener nothing is heard anyway.
                                NotNow::Unauthorized if reader.is_of_role(channel) => {
                                    unreadable + 1
                                }
                                NotNow::Unauthorized | NotNow::Failed => 0,
                            };
                            // The others are not to wait for this one.
                            if unreadable > ROUNDS {
                                tracing::warn!(%channel, "left out of catching up");
                            } else {
                                left.push_back(((channel, after), round + 1, unreadable));
                            }
                        }
                        Err(Stop::Gone) => return,
                    }
                    // Another look back has taken its place.
                    if out.is_closed() {
                        return;
                    }
                    let is_less = !left.is_empty() && left.len() < told;
                    if is_less && left.iter().all(|(_, round, _)| *round > 1) {
                        told = left.len();
                        let left = left.iter().map(|((channel, _), ..)| *channel).collect();
                        if out.send(LookBack::Left(left)).await.is_err() {
                            return;
                        }
                    }
                }
                // Nobody waits for what became of what was taken in.
                drop(out);
                let mut left: VecDeque<_> = ask.taken.into_iter().map(|it| (it, 1)).collect();
                while let Some(((message, taken), round)) = left.pop_front() {
                    match reader.taken(message, taken, &late).await {
                        Ok(()) => {}
                        Err(Stop::Later(..)) if round < ROUNDS => {
                            left.push_back(((message, taken), round + 1));
                        }
                        Err(Stop::Later(..)) => {
                            tracing::warn!(%message, "what became of a message is not known");
                        }
                        Err(Stop::Gone) => return,
                    }
                }
            };
            tokio::select! {
                () = read => {}
                () = facts.closed() => {}
            }
        });
        pages
    }

    /// Tells what became of a message, where people have changed something about it.
    async fn taken(
        &self,
        message: MessageId,
        taken: TakenMessage,
        out: &mpsc::Sender<MessageChange>,
    ) -> Result<(), Stop> {
        let channel = taken.channel;
        let rest = self.rest_in(channel);
        let read = || async {
            match rest.message(channel, message).await {
                Err(error) if error.code() == Some(code::UNKNOWN_MESSAGE) => Ok(None),
                data => data.map(Some),
            }
        };
        let later = |why| Stop::Later(message, why);
        let missed = match from_channel(channel, read).await.map_err(later)? {
            Some(Some(data)) => {
                let Some(at) = data.get("edited_timestamp").filter(|at| !at.is_null()) else {
                    return Ok(());
                };
                let seen = from_channel(channel, || rest.channel(channel)).await.map_err(later)?;
                let Some(seen) = seen else { return Ok(()) };
                // It is read once more in its turn, after which no older wording can come.
                let mut edit =
                    json!({ "id": message, "channel_id": channel, "edited_timestamp": at });
                if let Some(guild) = seen.guild_id {
                    edit["guild_id"] = json!(guild);
                }
                MessageChange::Edited(edit)
            }
            Some(None) if taken.is_sure => MessageChange::Deleted(channel, message),
            Some(None) | None => return Ok(()),
        };
        out.send(missed).await.map_err(|_| Stop::Gone)
    }
}

/// Why the reading of a channel stops before its end.
enum Stop {
    /// Nobody takes facts any more.
    Gone,
    /// It cannot be read now; it is read behind this message later.
    Later(MessageId, NotNow),
}

async fn channel_after(
    rest: &Rest,
    channel: ChannelId,
    mut after: MessageId,
    out: &mpsc::Sender<LookBack>,
) -> Result<(), Stop> {
    let later = |why| Stop::Later(after, why);
    let seen = from_channel(channel, || rest.channel(channel)).await.map_err(later)?;
    let Some(seen) = seen else { return Ok(()) };
    if let Some(guild) = seen.guild_id {
        edited_up_to(rest, (guild, channel), after, out).await?;
    }
    loop {
        let later = |why| Stop::Later(after, why);
        let messages = from_channel(channel, || rest.messages_after(channel, after)).await;
        let messages = messages.map_err(later)?.unwrap_or_default();
        let Some(newest) = messages.last().map(message_id) else { return Ok(()) };
        let more = newest > after.0 && messages.len() >= PAGE;
        after = MessageId(newest.max(after.0));
        let page = Page { channel, guild: seen.guild_id, messages, edited: Vec::new() };
        out.send(LookBack::Page(page)).await.map_err(|_| Stop::Gone)?;
        if !more {
            return Ok(());
        }
    }
}

/// Tells which of the messages up to this one are edited, as far back as an edit can address the team.
async fn edited_up_to(
    rest: &Rest,
    (guild, channel): (GuildId, ChannelId),
    last: MessageId,
    out: &mpsc::Sender<LookBack>,
) -> Result<(), Stop> {
    let since = clock::now() - Duration::from_secs(ADDRESSED_BY_EDIT);
    let mut from = MessageId::at(Timestamp::new(since));
    while from < last {
        // What was written since then comes first: where this cannot be read, it is not tried again.
        let read = from_channel(channel, || rest.messages_after(channel, from)).await;
        let Ok(Some(mut edited)) = read else { break };
        let Some(newest) = edited.last().map(message_id) else { break };
        let is_last = edited.len() < PAGE || newest <= from.0;
        edited.retain(|it| message_id(it) <= last.0 && is_edited(it));
        for message in &mut edited {
            message["guild_id"] = json!(guild);
        }
        if !edited.is_empty() {
            let page = Page { channel, guild: Some(guild), messages: Vec::new(), edited };
            out.send(LookBack::Page(page)).await.map_err(|_| Stop::Gone)?;
        }
        if is_last {
            break;
        }
        from = MessageId(newest);
    }
    Ok(())
}

/// Whether a person has edited a message: an unfolding link preview is an update too, and has no time of an edit.
pub(super) fn is_edited(message: &Value) -> bool {
    message.get("edited_timestamp").is_some_and(|at| !at.is_null())
}

/// Why others come first.
enum NotNow {
    /// It did not work a few times.
    Failed,
    /// The token is not let in.
    Unauthorized,
    /// The answer is nothing that can be read, which may never be otherwise.
    Unreadable,
}

/// Repeats a read a few times; `None` where the channel is not ours to read.
async fn from_channel<T, Fut>(
    channel: ChannelId,
    read: impl Fn() -> Fut,
) -> Result<Option<T>, NotNow>
where
    Fut: Future<Output = Result<T, RestError>>,
{
    match patiently(read).await {
        Ok(value) => Ok(Some(value)),
        Err(error @ (RestError::Gone { .. } | RestError::Refused { .. })) => {
            tracing::warn!(%error, %channel, "not to be read, and left out of catching up");
            Ok(None)
        }
        // Neither a token that is not let in for a while nor a page of somebody between says anything about the channel.
        Err(error @ (RestError::Unauthorized | RestError::Unreadable(_))) => {
            tracing::warn!(%error, %channel, "catching up waits");
            tokio::time::sleep(PAUSE).await;
            let is_unreadable = matches!(error, RestError::Unreadable(_));
            Err(if is_unreadable { NotNow::Unreadable } else { NotNow::Unauthorized })
        }
        Err(
            RestError::Network(_)
            | RestError::Server { .. }
            | RestError::Limited { .. }
            | RestError::Breaker { .. },
        ) => Err(NotNow::Failed),
    }
}
