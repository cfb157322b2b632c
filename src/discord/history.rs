//! What was said in a channel since a time, to find out whether a message of ours is there already.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::discord::endpoints::{SeenMessage, message_id};
use crate::discord::error::RestError;
use crate::discord::rest::Rest;
use crate::domain::ids::{ChannelId, MessageId, UserId};
use crate::domain::time::Timestamp;
use crate::platform::clock;

/// Clocks of Discord and of this machine differ by less than this from what was seen of them last.
const CLOCK_MARGIN_MS: u64 = 120_000;
/// Pages of 100 that are looked at: more is not said in one channel while a message waits.
const PAGES: usize = 100;
/// The first millisecond that Discord's ids count from.
const EPOCH_MS: u64 = 1_420_070_400_000;

/// Messages, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    messages: Vec<SeenMessage>,
}

/// What identifies one part of a message.
#[derive(Debug)]
pub(crate) struct Marker<'a> {
    pub(crate) nonce: &'a str,
    pub(crate) text: &'a str,
    pub(crate) embed: Option<&'a Value>,
}

/// The lowest id that a message written at `time` can have, where Discord's clock is so many seconds ahead of ours.
fn watermark(time: Timestamp, skew_seconds: i64) -> MessageId {
    // A clock that is behind makes ids larger, and what is read from too early on is only more.
    let ms = time.millis().saturating_add(skew_seconds.min(0).saturating_mul(1_000));
    let ms = u64::try_from(ms).unwrap_or(EPOCH_MS);
    MessageId(ms.saturating_sub(EPOCH_MS + CLOCK_MARGIN_MS) << 22)
}

impl History {
    /// Reads a channel from the time on.
    pub(crate) async fn read(
        rest: &Rest,
        channel: ChannelId,
        since: Timestamp,
    ) -> Result<History, RestError> {
        // Whoever has set the clock back meanwhile has put `since` into the future: how far is not known.
        let now = Timestamp::new(clock::now());
        let since = if since > now { now.day_before() } else { since };
        let mut after = watermark(since, rest.pool().skew_seconds().unwrap_or(0));
        let mut messages = Vec::new();
        for _ in 0..PAGES {
            let page = rest.messages_after(channel, after).await?;
            let Some(newest) = page.last().map(message_id) else {
                break;
            };
            after = MessageId(newest.max(after.0));
            let full = page.len() >= 100;
            // What does not parse is not ours.
            messages.extend(page.into_iter().filter_map(|it| serde_json::from_value(it).ok()));
            if !full {
                break;
            }
        }
        Ok(History { messages })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Takes out messages that are accounted for.
    pub(crate) fn leave_out(&mut self, known: &BTreeSet<MessageId>) {
        self.messages.retain(|message| !known.contains(&message.id));
    }

    /// Finds a part that a bot user of ours posted, and takes it out.
    pub(crate) fn by_user(&mut self, me: UserId, marker: &Marker<'_>) -> Option<MessageId> {
        self.take(|message| {
            message.author.id == me
                && message.webhook_id.is_none()
                && match message.nonce.as_ref().and_then(Value::as_str) {
                    Some(nonce) => nonce == marker.nonce,
                    None => says(message, marker),
                }
        })
    }

    /// Finds a part that a persona of ours posted, and takes it out.
    pub(crate) fn by_webhook(
        &mut self,
        webhook: UserId,
        application: u64,
        name: &str,
        marker: &Marker<'_>,
    ) -> Option<MessageId> {
        let (webhook, application) = (webhook.to_string(), application.to_string());
        self.take(|message| {
            // A webhook that was removed and made again has another id, its application has not.
            message.webhook_id.is_some()
                && (message.webhook_id.as_ref() == Some(&webhook)
                    || message.application_id.as_ref() == Some(&application))
                && message.author.username == name
                && says(message, marker)
        })
    }

    fn take(&mut self, matches: impl Fn(&SeenMessage) -> bool) -> Option<MessageId> {
        let at = self.messages.iter().position(matches)?;
        Some(self.messages.remove(at).id)
    }
}

fn says(message: &SeenMessage, marker: &Marker<'_>) -> bool {
    let card = |embed: Option<&Value>| {
        embed.map(|it| (it.get("title").cloned(), it.get("description").cloned()))
    };
    // Discord shows what a link leads to as an embed of its own.
    message.content.trim() == marker.text.trim()
        && (marker.embed.is_none() || card(message.embeds.first()) == card(marker.embed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn history(list: Value) -> History {
        History { messages: serde_json::from_value(list).unwrap() }
    }

    fn marker(text: &'static str) -> Marker<'static> {
        Marker { nonce: "n1", text, embed: None }
    }

    #[test]
    fn a_nonce_decides_and_words_decide_without_one() {
        let mut history = history(json!([
            {"id": "1", "content": "hi", "author": {"id": "7"}, "nonce": "other"},
            {"id": "2", "content": "hi", "author": {"id": "8"}},
            {"id": "3", "content": "hi ", "author": {"id": "7"}},
            {"id": "4", "content": "changed", "author": {"id": "7"}, "nonce": "n1"},
        ]));
        assert_eq!(history.by_user(UserId(7), &marker("hi")), Some(MessageId(3)));
        assert_eq!(history.by_user(UserId(7), &marker("hi")), Some(MessageId(4)));
        assert_eq!(history.by_user(UserId(7), &marker("hi")), None);
    }

    #[test]
    fn a_persona_is_known_by_application_name_and_words() {
        let mut history = history(json!([
            {"id": "1", "content": "x", "author": {"id": "5", "username": "QA"}, "webhook_id": "5", "application_id": "90"},
            {"id": "2", "content": "x", "author": {"id": "5", "username": "QA"}, "webhook_id": "5", "application_id": "91"},
            {"id": "3", "content": "x", "author": {"id": "6", "username": "Planner"}, "webhook_id": "6", "application_id": "91"},
        ]));
        assert_eq!(history.by_webhook(UserId(9), 91, "Planner", &marker("x")), Some(MessageId(3)));
        assert_eq!(history.by_webhook(UserId(9), 91, "QA", &marker("x")), Some(MessageId(2)));
        assert_eq!(history.by_webhook(UserId(9), 91, "QA", &marker("x")), None);
    }

    #[test]
    fn a_watermark_lies_before_its_time() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let id = (1_700_000_000_000 - EPOCH_MS) << 22;
        assert!(watermark(at, 0).0 < id);
        assert_eq!(watermark(at, 40), watermark(at, 0));
        let ahead = at.plus_seconds(600);
        assert!(watermark(ahead, 0).0 > id && watermark(ahead, -600).0 < id);
        assert_eq!(watermark(Timestamp::from_millis(0), 0), MessageId(0));
    }
}
