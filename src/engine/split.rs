//! What somebody answers who was asked whether two pieces of work are one request.

use serde_json::{Value, json};

use super::authorize::{Granted, Resource, act, authorize};
use super::decision::Answer;
use super::turn::Turn;
use super::two_parts::pieces;
use super::{handoff, intake, say};
use crate::domain::actor::Actor;
use crate::domain::block::BlockCode;
use crate::domain::ids::{ChannelId, MessageId, RequestId};
use crate::domain::request::{EventKind, Request};
use crate::domain::role::Role;

/// The request that a button is about, as far as it still waits for that answer and the person may give it.
fn asked(
    turn: &Turn<'_>,
    actor: &Actor,
    id: &RequestId,
) -> Result<(Request, Granted<act::Retry>), Answer> {
    let values = json!({ "request_id": id });
    let refused =
        |key: &str, values| Err(Answer::Refused(say::content(key, turn.policy.language, values)));
    let Some(request) = turn.request(id) else { return refused("unknown_request", values) };
    let Ok(granted) = authorize(turn.policy, actor, Resource::Request(request)) else {
        return refused("cancel.not_yours", values);
    };
    let waits = request.blocked.as_ref().is_some_and(|it| it.code == BlockCode::TwoParts);
    if !waits {
        return refused("gate.stale", json!({}));
    }
    Ok((request.clone(), granted))
}

/// They are one request.
pub(super) fn together(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    card: (ChannelId, MessageId),
) -> Answer {
    match asked(turn, actor, id) {
        Ok((request, granted)) => {
            say::unbutton(turn, card);
            turn.record(id, EventKind::Retried, &granted.name(), "one request", Value::Null);
            handoff::delegate(turn, id, Role::Orchestrator, None, &request.scope, None);
            let values = json!({ "request_id": id });
            Answer::Say(say::content("retried", request.conversation.language, values))
        }
        Err(answer) => answer,
    }
}

/// They are two: the first piece stays with the request, and the other one becomes a request of its own.
pub(super) fn split(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    card: (ChannelId, MessageId),
) -> Answer {
    let (request, granted) = match asked(turn, actor, id) {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let mut pieces = pieces(&request).into_iter();
    let Some(first) = pieces.next() else { return Answer::Ignored("it is one piece of work") };
    let language = request.conversation.language;
    say::unbutton(turn, card);
    turn.record(id, EventKind::Retried, &granted.name(), "two requests", Value::Null);
    if let Some(request) = turn.edit(id) {
        request.scope.clone_from(&first);
        request.body.clone_from(&first);
    }
    handoff::delegate(turn, id, Role::Orchestrator, None, &first, None);
    let route = request.conversation.reply_route;
    let others: Vec<RequestId> =
        pieces.map(|piece| intake::begin(turn, &piece, route.clone(), language, None)).collect();
    let values = json!({ "request_id": id, "others": others });
    Answer::Say(say::content("two_parts.split", language, values))
}
