//! Status cards: edited in place, and posted anew before editing stops being cheap.
//!
//! Discord takes only so many edits of a message that is older than an hour (30046). How many is not
//! documented, so a card that has grown old is posted anew after a few; its new copy is young again.

use std::future::Future;

use super::edits::is_old;
use super::poster::Poster;
use super::posting::nonce_of;
use super::{Delivery, Destination, SendError, lock};
use crate::discord::compose::{Parts, components, lane_menu};
use crate::discord::error::code;
use crate::discord::history::{History, Marker};
use crate::discord::split::{MESSAGE_LIMIT, shorten};
use crate::domain::ids::MessageId;
use crate::domain::outgoing::{Button, Content, LaneMenu, Outgoing, OutgoingOutcome};
use crate::domain::time::Timestamp;
use crate::platform::clock;

impl Delivery {
    pub(super) async fn card<F, Fut>(
        &self,
        outgoing: &Outgoing,
        place: &Destination,
        content: &Content,
        (buttons, menu): (&[Button], Option<&LaneMenu>),
        progress: F,
    ) -> Result<OutgoingOutcome, SendError>
    where
        F: FnMut(u32) -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        let mut rendered = self.render(content)?;
        // It is edited as one message.
        rendered.text = shorten(&rendered.text, MESSAGE_LIMIT);
        let mut parts = Parts::new(&rendered, None, None);
        parts.components = components(buttons, &self.catalog, content.language);
        parts.components.extend(menu.map(|menu| lane_menu(menu, &self.catalog, content.language)));
        let team = self.bot_in(place.channel);
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
                    // It is gone, or of the bot that the team had before.
                    Err(error)
                        if matches!(
                            error.code(),
                            Some(code::UNKNOWN_MESSAGE | code::NOT_AUTHOR)
                        ) => {}
                    Err(error) if error.code() == Some(code::EDITS_LIMITED) => old = Some(card),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let outcome = self.send(outgoing, place, &Poster::Bot(team), &parts, progress).await?;
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
        place: &Destination,
        card: MessageId,
        parts: &Parts,
    ) -> Result<bool, SendError> {
        if !self.was_begun(outgoing) {
            return Ok(false);
        }
        let team = self.bot_in(place.channel);
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
