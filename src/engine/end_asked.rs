//! Words that a request is to end. They are asked about with a button, since words may be misread; what was built does not
//! go to the branch, and no action runs, before somebody has answered.

use serde_json::{Value, json};

use super::authorize::{Granted, Resource, act, authorize};
use super::message::reply;
use super::turn::Turn;
use super::{questions, retry, runs, say, train, words};
use crate::domain::actor::Actor;
use crate::domain::block::BlockCode;
use crate::domain::ids::RequestId;
use crate::domain::incoming::Message;
use crate::domain::outgoing::{ButtonAct, Priority, Voice};
use crate::domain::request::{EndAsked, EventKind, Followup, Request, RequestStatus};

/// Whether words to a request ask that it ends.
pub(super) fn ends_rather(request: &Request, text: &str) -> bool {
    words::asks_to_end(text) && !names_option(request, text)
}

/// Whether words name one of the answers to what the planner asks.
pub(super) fn names_option(request: &Request, text: &str) -> bool {
    let open = request.work.decisions.iter().filter(|it| it.is_open());
    let mut options = open.flat_map(|it| &it.options);
    questions::is_asked(request) && options.any(|it| words::names(text, it))
}

/// Notes who wants it to end, and asks. What the message says besides is heard by whoever is at work; nobody begins to work
/// for it before there is an answer.
pub(super) fn asked(turn: &mut Turn<'_>, id: &RequestId, message: &Message) {
    let key = message.message_id;
    let Some(request) = turn.edit(id) else { return };
    request.params.end_asked = Some(EndAsked {
        author_id: message.author.id,
        author_name: message.author.name.clone(),
        channel_id: message.channel_id,
        message_id: key,
        words: say::title(&message.content),
        is_answered: false,
    });
    request.params.unread_words.retain(|unread| *unread != key);
    train::leave(turn, id);
    runs::steer(turn, id, key);
    ask(turn, id);
}

fn ask(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.request(id) else { return };
    let goes_on = request.status != RequestStatus::Blocked;
    let title = say::title(&request.scope);
    let values = json!({ "request_id": id.as_str(), "title": title, "goes_on": goes_on });
    say::ask(turn, id, ("end_asked", values), (&[ButtonAct::Cancel], 0, Vec::new()), None);
}

/// Takes a message that does no more than answer whether the request is to end; whether it is one. A yes is answered with
/// the button once more. That it goes on may say whoever wanted it to end, and whoever may let it try again.
pub(super) fn answered(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    message: &Message,
) -> bool {
    let Some(request) = turn.request(id) else { return false };
    let Some(asked) = request.params.open_end() else { return false };
    let words = Followup::command(&message.author.name, message.content.clone(), turn.now);
    let (is_yes, goes_on) = (words.is_assent(), words::lets_go_on(&message.content));
    if !is_yes && !goes_on || !message.attachments.is_empty() {
        return false;
    }
    let may = asked.author_id == message.author.id || may_retry(turn, actor, request).is_some();
    if !may && is_yes {
        // It may be said to anybody.
        return false;
    }
    if !may {
        reply(turn, message, "cancel.not_yours", json!({ "request_id": id.as_str() }));
    } else if is_yes {
        ask(turn, id);
    } else {
        // What waits for something else hears these words as well.
        let waits = request.blocked.as_ref().is_some_and(|it| it.code != BlockCode::EndAsked);
        go_on(turn, id, &message.author.name, !waits);
        return !waits;
    }
    true
}

/// The right to let a request try again, for whoever has it.
pub(super) fn may_retry(
    turn: &Turn<'_>,
    actor: &Actor,
    request: &Request,
) -> Option<Granted<act::Retry>> {
    authorize(turn.policy, actor, Resource::Request(request)).ok()
}

/// It does not end. Where it was held for that, it goes on where it stood, unless something else is to be done; whether it
/// does.
pub(super) fn go_on(turn: &mut Turn<'_>, id: &RequestId, by: &str, says_no_more: bool) -> bool {
    let Some(request) = turn.edit(id) else { return false };
    request.params.end_is_answered();
    turn.record(id, EventKind::Resumed, by, "it is not to end", Value::Null);
    let is_held = turn
        .request(id)
        .and_then(|it| it.blocked.as_ref())
        .is_some_and(|it| it.code == BlockCode::EndAsked);
    if says_no_more {
        let values = json!({ "request_id": id.as_str() });
        say::in_room(turn, id, Voice::Team, Priority::Progress, "resumed", values);
        if is_held {
            retry::try_again(turn, id);
        }
    }
    is_held && says_no_more
}
