//! Reading what was missed, oldest first.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::{Gone, Intake};
use crate::discord::endpoints::message_id;
use crate::discord::error::RestError;
use crate::discord::ingress::Origin;
use crate::discord::link::Inbound;
use crate::discord::rest::Rest;
use crate::domain::ids::{ChannelId, MessageId, ServerRoleId, UserId};

/// Messages of a whole page.
const PAGE: usize = 100;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A wish to be told what was missed.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) watermarks: BTreeMap<ChannelId, MessageId>,
}

impl Intake {
    /// Tells what was missed, then what waited.
    ///
    /// One page of 100 at a time, and as slowly as the team takes them: however much was missed, no more
    /// than that is in memory.
    pub(super) async fn catch_up(&mut self, ask: Ask) -> Result<(), Gone> {
        self.missed = false;
        for (channel, after) in ask.watermarks {
            self.catch_up_channel(channel, after).await?;
        }
        if self.missed {
            // The session was lost again meanwhile, and the team asks again.
            return Ok(());
        }
        while let Some(held) = self.held.take() {
            for event in held {
                self.event(event).await?;
            }
        }
        self.note_through();
        self.tell(Inbound::Live).await
    }

    async fn catch_up_channel(&mut self, channel: ChannelId, after: MessageId) -> Result<(), Gone> {
        let guild_id =
            match self.patiently(channel, |rest| async move { rest.channel(channel).await }).await?
            {
                Some(seen) => seen.guild_id,
                None => return Ok(()),
            };
        let mut roles: BTreeMap<UserId, Vec<ServerRoleId>> = BTreeMap::new();
        let mut after = after;
        loop {
            let page = self
                .patiently(channel, |rest| async move { rest.messages_after(channel, after).await })
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
                let mut origin = Origin { guild_id, server_roles: Vec::new() };
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
            self.tell(Inbound::CaughtUp { channel_id: channel, message_id: after }).await?;
            self.take_waiting().await?;
            if page.len() < PAGE {
                return Ok(());
            }
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
                        () = self.out.inbound.closed() => return Err(Gone),
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
