//! Status cards: edited in place, and posted anew before editing stops being cheap.
//!
//! Discord takes only so many edits of a message that is older than an hour (30046). How many is not
//! documented, so a card that has grown old is posted anew after a few; its new copy is young again.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;

use super::posting::{Mouth, nonce_of};
use super::{Delivery, Place, SendError, lock};
use crate::discord::compose::{Parts, components};
use crate::discord::error::code;
use crate::discord::history::{History, Marker};
use crate::domain::ids::MessageId;
use crate::domain::outgoing::{Button, Content, Outgoing, OutgoingOutcome};
use crate::domain::time::Timestamp;
use crate::platform::clock;

/// From this age on edits are counted, in seconds; Discord counts from an hour on.
const OLD: u64 = 55 * 60;
/// Edits of an old message that are made within [`WINDOW`].
const EDITS: usize = 5;
/// Seconds.
const WINDOW: u64 = 60 * 60;
/// Messages whose edits are remembered.
const REMEMBERED: usize = 500;

/// Edits of messages that are old.
#[derive(Debug, Default)]
pub(super) struct Edits(BTreeMap<MessageId, VecDeque<Timestamp>>);

impl Edits {
    /// Whether one more edit is still cheap; counts it.
    fn one_more(&mut self, message: MessageId, now: Timestamp) -> bool {
        if !is_old(message, now) {
            return true;
        }
        let times = self.0.entry(message).or_default();
        while times.front().is_some_and(|at| now.seconds_since(*at) > WINDOW) {
            times.pop_front();
        }
        if times.len() >= EDITS {
            return false;
        }
        times.push_back(now);
        if self.0.len() > REMEMBERED {
            self.0.pop_first();
        }
        true
    }
}

fn is_old(message: MessageId, now: Timestamp) -> bool {
    now.seconds_since(message.written_at()) > OLD
}

impl Delivery {
    pub(super) async fn card<F, Fut>(
        &self,
        outgoing: &Outgoing,
        place: &Place,
        content: &Content,
        buttons: &[Button],
        progress: F,
    ) -> Result<OutgoingOutcome, SendError>
    where
        F: FnMut(u32) -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        let mut parts = Parts::new(&self.render(content)?, None, None);
        parts.components = components(buttons, &self.catalog, content.language);
        let team = &self.speakers.team;
        let mut old = None;
        if let Some(card) = place.card {
            let now = Timestamp::new(clock::now());
            let anew = is_old(card, now) && self.stands_anew(outgoing, place, card, &parts).await?;
            if anew || !lock(&self.edits).one_more(card, now) {
                old = Some(card);
            } else {
                let body = parts.edit();
                let edit = || team.rest.edit_message(place.channel, card, body.clone());
                match self.in_open(place.channel, edit).await {
                    Ok(()) => {
                        return Ok(OutgoingOutcome::Posted {
                            channel_id: place.channel,
                            message_ids: vec![card],
                        });
                    }
                    Err(error) if error.code() == Some(code::UNKNOWN_MESSAGE) => {}
                    Err(error) if error.code() == Some(code::EDITS_LIMITED) => old = Some(card),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let outcome = self.send(outgoing, place, &Mouth::Bot(team), &parts, progress).await?;
        if let Some(card) = old
            && let Err(error) = team.rest.delete_message(place.channel, card).await
        {
            tracing::warn!(%error, %card, "the old card stays");
        }
        Ok(outcome)
    }

    /// Whether an earlier try has posted the card anew, and its new id was lost with the process.
    async fn stands_anew(
        &self,
        outgoing: &Outgoing,
        place: &Place,
        card: MessageId,
        parts: &Parts,
    ) -> Result<bool, SendError> {
        if !self.was_begun(outgoing) {
            return Ok(false);
        }
        let team = &self.speakers.team;
        let mut history = History::read(&team.rest, place.channel, outgoing.created_at).await?;
        let marker = Marker {
            nonce: &nonce_of(outgoing, 0),
            text: parts.texts.first().map(String::as_str).unwrap_or_default(),
            embed: parts.embed.as_ref(),
        };
        let found = history.by_user(team.me().await?, &marker);
        Ok(found.is_some_and(|found| found != card))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_card_is_edited_a_few_times_an_hour() {
        let written = Timestamp::from_millis(1_800_000_000_000);
        let card = MessageId::at(written);
        let mut edits = Edits::default();
        let at = |minutes: u64| written.plus_seconds(minutes * 60);
        for minute in 0..50 {
            assert!(edits.one_more(card, at(minute)), "young at {minute}");
        }
        for minute in 60..65 {
            assert!(edits.one_more(card, at(minute)));
        }
        assert!(!edits.one_more(card, at(70)));
        assert!(edits.one_more(card, at(121)), "the first of them is more than an hour ago");
        assert!(edits.one_more(MessageId::at(at(70)), at(70)), "its new copy is young");
    }
}
