//! Words that a request is to end. They are asked about with a button, since words may be misread. Before somebody has
//! answered, no role begins, no action runs, and nothing goes to the branch.

use serde_json::{Value, json};

use super::authorize::{Granted, Resource, act, authorize};
use super::message::reply;
use super::turn::Turn;
use super::{questions, retry, runs, say, train, words};
use crate::domain::actor::Actor;
use crate::domain::block::BlockCode;
use crate::domain::ids::{RequestId, UserId};
use crate::domain::incoming::Message;
use crate::domain::outgoing::{ButtonAct, Priority, Voice};
use crate::domain::request::{EndQuestion, EventKind, Request, RequestStatus};

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
    let held = request.params.end_question.take().and_then(|asked| asked.held);
    request.params.end_question = Some(EndQuestion {
        author_id: message.author.id,
        author_name: message.author.name.clone(),
        channel_id: message.channel_id,
        message_id: key,
        words: say::title(&message.content),
        digest: say::digest(&message.content),
        is_answered: false,
        held,
    });
    request.params.unread_words.retain(|unread| *unread != key);
    train::leave(turn, id);
    runs::steer(turn, id, key);
    ask(turn, id);
}

fn ask(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.request(id) else { return };
    let code = request.blocked.as_ref().map(|it| it.code);
    let values = json!({
        "request_id": id.as_str(),
        "title": say::title(&request.scope),
        "goes_on": request.status != RequestStatus::Blocked,
        "held": code == Some(BlockCode::EndQuestion),
    });
    say::ask(turn, id, ("end_asked", values), (&[ButtonAct::Cancel], 0, Vec::new()), None);
}

/// What words say to the question whether a request is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndAnswer {
    /// Nothing, or more than an answer.
    None,
    /// Yes, which takes the button.
    Yes,
    /// That it goes on, by somebody who may not say so.
    NotTheirs,
    /// That it goes on.
    GoesOn,
}

/// Takes what does no more than answer whether the request is to end. That it goes on may say whoever wanted it to end, and
/// whoever may let it try again.
pub(super) fn answer(turn: &mut Turn<'_>, actor: &Actor, id: &RequestId, text: &str) -> EndAnswer {
    let Some(request) = turn.request(id) else { return EndAnswer::None };
    let Some(asked) = request.params.open_end() else { return EndAnswer::None };
    let (is_yes, goes_on) = (words::says_yes(text), words::lets_go_on(text));
    let retry: Result<Granted<act::Retry>, _> =
        authorize(turn.policy, actor, Resource::Request(request));
    let may = actor.person_id() == Some(asked.author_id) || retry.is_ok();
    match (is_yes, goes_on, may) {
        // A yes may be said to anybody.
        (false, false, _) | (true, _, false) => EndAnswer::None,
        (false, true, false) => EndAnswer::NotTheirs,
        (true, _, true) => {
            ask(turn, id);
            EndAnswer::Yes
        }
        (false, true, true) => {
            // What waits for something else hears these words as well.
            let waits =
                request.blocked.as_ref().is_some_and(|it| it.code != BlockCode::EndQuestion);
            go_on(turn, id, &actor.name(), !waits);
            if waits { EndAnswer::None } else { EndAnswer::GoesOn }
        }
    }
}

/// The same of a message; whether it is one.
pub(super) fn answered(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    message: &Message,
) -> bool {
    if !message.attachments.is_empty() {
        return false;
    }
    let answer = answer(turn, actor, id, &message.content);
    if answer == EndAnswer::NotTheirs {
        reply(turn, message, "cancel.not_yours", json!({ "request_id": id.as_str() }));
    }
    answer != EndAnswer::None
}

/// Further words where somebody wanted it to end: where it waits for that answer they are kept, and the question is said
/// once more; where it waits for other words, those of whoever wanted it to end take that back. Whether nothing else is to
/// be done.
pub(super) fn hears_more(turn: &mut Turn<'_>, id: &RequestId, author: Option<UserId>) -> bool {
    let Some(request) = turn.edit(id) else { return false };
    let Some(asked) = request.params.open_end() else { return false };
    let is_theirs = Some(asked.author_id) == author;
    let code = request.blocked.as_ref().map(|it| it.code);
    match code {
        Some(BlockCode::EndQuestion) => ask(turn, id),
        Some(_) if is_theirs => request.params.end_is_answered(),
        Some(_) | None => {}
    }
    code == Some(BlockCode::EndQuestion)
}

/// It does not end. Where it was held for that, it goes on where it stood, unless something else is to be done.
pub(super) fn go_on(turn: &mut Turn<'_>, id: &RequestId, by: &str, says_no_more: bool) {
    let Some(request) = turn.edit(id) else { return };
    request.params.end_is_answered();
    let is_held = request.blocked.as_ref().is_some_and(|it| it.code == BlockCode::EndQuestion);
    turn.record(id, EventKind::Resumed, by, "it is not to end", Value::Null);
    if says_no_more {
        let values = json!({ "request_id": id.as_str() });
        say::in_room(turn, id, Voice::Team, Priority::Progress, "resumed", values);
        if is_held {
            retry::try_again(turn, id);
        }
    }
}
