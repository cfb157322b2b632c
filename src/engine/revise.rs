//! Messages that people edit or delete after they were taken in.

use serde_json::{Value, json};

use super::authorize::{Granted, Resource, act, authorize};
use super::decide::Answer;
use super::followup::{FULL, add_followup};
use super::intake::{origin, print, reply, saved, scope};
use super::turn::Turn;
use super::{handoff, runs, say};
use crate::domain::ids::{ChannelId, MessageId, RequestId};
use crate::domain::incoming::{Actor, Message};
use crate::domain::ingress::Ingress;
use crate::domain::request::RequestStatus;

/// An edited message: where its words are not read yet, they are replaced.
pub(super) fn edited(turn: &mut Turn<'_>, message: Message) -> Answer {
    let Some((id, _)) = origin(turn, message.message_id) else {
        return Answer::Ignored("nothing waits on that message");
    };
    let actor = Actor::Person {
        author: message.author.clone(),
        guild_id: message.guild_id,
        via: Ingress::Edit,
    };
    let Ok(granted) = authorize(turn.policy, &actor, Resource::Team) else {
        return Answer::Ignored("may not ask");
    };
    if message.content.trim().is_empty() && saved(&message).is_empty() {
        return Answer::Ignored("nothing was said");
    }
    let limit = turn.policy.limits.message_chars;
    if message.content.chars().count() > limit {
        reply(turn, &message, "too_long", json!({ "limit": limit }));
        return Answer::Ignored("too long");
    }
    reword(turn, &granted, &id, &message)
}

/// The new wording takes the place of the old one.
fn reword(
    turn: &mut Turn<'_>,
    _granted: &Granted<act::Revise>,
    id: &RequestId,
    message: &Message,
) -> Answer {
    let same = Some(message.message_id);
    let Some(request) = turn.edit(id) else {
        return Answer::Ignored("gone");
    };
    let began = request.spent.turns > 0 || request.active_run.is_some();
    let words = request.params.followups.iter_mut().find(|followup| followup.message_id == same);
    if let Some(followup) = words {
        followup.body = message.content.clone();
        // Whoever took the earlier wording has not heard this one.
        followup.heard_by.clear();
        runs::steer(turn, id, message.message_id);
    } else if began {
        // What the roles already read cannot be unread; the new wording joins as a follow-up.
        if !add_followup(turn, id, message) {
            return Answer::Ignored(FULL);
        }
    } else {
        request.scope = scope(message);
        request.body = message.content.clone();
        request.fingerprint = print(message);
    }
    turn.record(id, "edited", &message.author.name, &say::title(&message.content), Value::Null);
    Answer::Accepted
}

/// A deleted message: words not read yet are withdrawn; a request that nobody began is cancelled.
pub(super) fn deleted(
    turn: &mut Turn<'_>,
    _channel_id: ChannelId,
    message_id: MessageId,
) -> Answer {
    let Some((id, is_first)) = origin(turn, message_id) else {
        return Answer::Ignored("nothing waits on that message");
    };
    match authorize(turn.policy, &Actor::Deleter, Resource::Team) {
        Ok(granted) => withdraw(turn, &granted, &id, message_id, is_first),
        Err(_) => Answer::Ignored("deleting withdraws nothing"),
    }
}

/// What a message brought is taken back, as far as nobody has begun on it.
fn withdraw(
    turn: &mut Turn<'_>,
    _granted: &Granted<act::Revise>,
    id: &RequestId,
    message_id: MessageId,
    is_first: bool,
) -> Answer {
    if !is_first {
        if let Some(request) = turn.edit(id) {
            request.params.followups.retain(|followup| followup.message_id != Some(message_id));
        }
        turn.record(id, "withdrawn", "person", "a message was deleted", Value::Null);
        return Answer::Accepted;
    }
    let started = turn.request(id).is_some_and(|r| r.spent.turns > 0 || r.active_run.is_some());
    if started {
        return Answer::Ignored("work has begun");
    }
    if let Some(request) = turn.edit(id) {
        request.reply_route.message_id = None;
    }
    let by = turn.request(id).map(|r| r.reply_route.author_name.clone()).unwrap_or_default();
    let values = json!({ "request_id": id.as_str(), "by": by });
    handoff::end(turn, id, RequestStatus::Cancelled, "final.cancelled", values);
    Answer::Accepted
}
