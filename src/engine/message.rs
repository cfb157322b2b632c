//! What a message is to requests, and the answer to it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::say;
use super::turn::Turn;
use crate::domain::ids::{MessageId, RequestId};
use crate::domain::incoming::Message;
use crate::domain::language::Language;
use crate::domain::outgoing::{Act, Post, Priority, Target, Voice};
use crate::domain::request::{ReplyRoute, Request, fingerprint};
use crate::domain::state::State;

pub(super) fn print(message: &Message) -> String {
    fingerprint(
        &message.author.id.to_string(),
        &message.channel_id.to_string(),
        "route",
        &match message.content.trim() {
            // Every pasted picture has the same name, and where it was saved is its own.
            "" => saved(message).join(", "),
            words => words.to_owned(),
        },
    )
}

pub(super) fn scope(message: &Message) -> String {
    if message.content.trim().is_empty() {
        // A message of files alone is about the files.
        let names: Vec<_> = message.attachments.iter().map(|f| f.filename.as_str()).collect();
        return format!("{} file(s): {}", names.len(), names.join(", "));
    }
    message.content.trim().to_owned()
}

pub(super) fn saved(message: &Message) -> Vec<String> {
    message.attachments.iter().filter_map(|file| file.saved.clone()).collect()
}

/// How many of its files could not be kept.
pub(super) fn missing_files(message: &Message) -> u32 {
    let missing = message.attachments.iter().filter(|file| file.saved.is_none());
    u32::try_from(missing.count()).unwrap_or(u32::MAX)
}

/// Its author is told where the team goes on without a file that came with it.
pub(super) fn tell_of_missing_files(turn: &mut Turn<'_>, message: &Message, id: &RequestId) {
    let count = missing_files(message);
    if count > 0 {
        reply_about(turn, message, "attachments_left_out", json!({ "count": count }), Some(id));
    }
}

pub(super) fn route(message: &Message) -> ReplyRoute {
    ReplyRoute {
        channel_id: Some(message.channel_id),
        message_id: Some(message.message_id),
        ..ReplyRoute::of(&message.actor(false))
    }
}

pub(super) fn reply(turn: &mut Turn<'_>, message: &Message, key: &str, values: Value) {
    reply_about(turn, message, key, values, None);
}

pub(super) fn reply_about(
    turn: &mut Turn<'_>,
    message: &Message,
    key: &str,
    values: Value,
    request: Option<&RequestId>,
) {
    let act = answer_to(turn, message, key, values);
    let target = Target::Channel(message.channel_id);
    let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Final, act);
    outgoing.request_id = request.cloned();
    turn.send(outgoing);
}

pub(super) fn answer_to(turn: &Turn<'_>, message: &Message, key: &str, values: Value) -> Act {
    let language = Language::of(&message.content).unwrap_or(turn.policy.language);
    Act::Post(Post {
        reply_to: Some(message.message_id),
        ..Post::new(say::content(key, language, values))
    })
}

/// The open requests that a message began or belongs to, each with whether it began it. Words to one that was split
/// belong to each of its parts.
pub(super) fn origins(state: &State, message_id: MessageId) -> Vec<(RequestId, bool)> {
    let (its, open) = (Some(message_id), |it: &&Arc<Request>| !it.status.is_terminal());
    let origin = |request: &Arc<Request>| {
        let began = request.conversation.reply_route.message_id == its;
        let asks = request.params.end_question.as_ref().map(|it| it.message_id);
        let belongs =
            began || asks == its || request.params.followups.iter().any(|it| it.message_id == its);
        belongs.then(|| (request.request_id.clone(), began))
    };
    state.requests.values().filter(open).filter_map(origin).collect()
}

pub(super) fn open_with(turn: &Turn<'_>, print: &str) -> Option<RequestId> {
    let open = turn
        .before()
        .requests
        .values()
        .find(|request| !request.status.is_terminal() && request.fingerprint == print);
    open.map(|request| request.request_id.clone())
}
