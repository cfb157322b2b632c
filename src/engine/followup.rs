//! Further words to a request that is open: an answer where it waits for one, else something for the next run
//! to read.

use serde_json::{Value, json};

use super::authorize::{Granted, act, note_asker};
use super::decision::Answer;
use super::end_question::{EndAnswer, ends_rather, names_option};
use super::message::{reply, reply_about, saved, tell_of_missing_files};
use super::progress::{goes_back_for_words, resume};
use super::say::CatalogText;
use super::turn::Turn;
use super::{end_question, lanes, questions, runs, say, train, words};
use crate::domain::block::BlockCode;
use crate::domain::ids::{MessageId, RequestId};
use crate::domain::incoming::Message;
use crate::domain::operation::OperationStatus;
use crate::domain::outgoing::{Act, Priority, Target, Voice};
use crate::domain::plan_decision::DecidedBy;
use crate::domain::request::{EventKind, Followup, Request, RequestStatus, SelectionSource};

/// Takes in a message to an open request.
pub(super) fn said(
    turn: &mut Turn<'_>,
    asked: &Granted<act::Ask>,
    id: &RequestId,
    message: &Message,
) -> Answer {
    if end_question::answered(turn, asked.actor(), id, message) {
        return Answer::Accepted;
    }
    if turn.request(id).is_some_and(|it| it.work.gate_id.is_some())
        && words::only_approves(&message.content)
        && message.attachments.is_empty()
    {
        reply(turn, message, "gate.by_button", json!({}));
        return Answer::Accepted;
    }
    let ends = turn.request(id).is_some_and(|it| ends_rather(it, &message.content));
    // Whoever works on it has nothing to read in words that only want it to end.
    let says_more = !words::only_asks_to_end(&message.content) || !message.attachments.is_empty();
    let is_read = !ends || says_more || is_blocked(turn, id) || too_late(turn, id).is_some();
    if is_read && !take_followup(turn, id, message) {
        return Answer::Ignored(FULL);
    }
    if is_read && !ends {
        reaches_somebody(turn, id, message.message_id);
    }
    if ends {
        // Nothing goes on by words that want it to end, and nothing ends by words that may be misread.
        turn.record(id, EventKind::Followup, &message.author.name, "asked to end it", Value::Null);
        end_question::asked(turn, id, message);
        return Answer::Accepted;
    }
    if !is_to_others(message) && end_question::hears_more(turn, id, Some(message.author.id)) {
        note(turn, id, message);
        return Answer::Accepted;
    }
    let blocked = turn
        .request(id)
        .is_some_and(|it| it.status == RequestStatus::Blocked && goes_on_with(it, message));
    if blocked {
        turn.record(id, EventKind::Resumed, &message.author.name, "answered", Value::Null);
        let values = json!({ "request_id": id.as_str() });
        reply_about(turn, message, "resumed", values, Some(id));
        let (name, message_id) = (message.author.name.clone(), Some(message.message_id));
        let by = DecidedBy::Person { name, message_id };
        questions::answered_in_words(turn, id, &by, &message.content);
        resume(turn, id, SelectionSource::PlanningResume);
    } else {
        note(turn, id, message);
        let target = Target::Channel(message.channel_id);
        let act = Act::React { message_id: message.message_id, emoji: "👀".to_owned() };
        let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
        outgoing.request_id = Some(id.clone());
        turn.send(outgoing);
    }
    Answer::Accepted
}

fn note(turn: &mut Turn<'_>, id: &RequestId, message: &Message) {
    let words = say::title(&message.content);
    turn.record(id, EventKind::Followup, &message.author.name, &words, Value::Null);
}

fn is_blocked(turn: &Turn<'_>, id: &RequestId) -> bool {
    turn.request(id).is_some_and(|it| it.status == RequestStatus::Blocked)
}

/// Whether a message to a blocked request is what it waits for: not one to somebody else, not a file alone where the
/// planner has questions, no thanks, and no promise to answer.
pub(super) fn goes_on_with(request: &Request, message: &Message) -> bool {
    let words = message.content.trim();
    if questions::is_asked(request) && words.is_empty() || is_to_others(message) {
        return false;
    }
    let mut taken = request.params.followups.iter();
    let taken = taken.rfind(|it| it.message_id == Some(message.message_id));
    if names_option(request, words) {
        return true;
    }
    let code = request.blocked.as_ref().map(|blocked| blocked.code);
    if code == Some(BlockCode::EndQuestion) {
        return false;
    }
    let is_none = |words: &Followup| {
        words.is_thanks() || code == Some(BlockCode::Questions) && words.puts_off()
    };
    !ends_rather(request, words)
        && (code == Some(BlockCode::RoleBlocked) || !taken.is_some_and(is_none))
}

/// Whether a message is written to somebody else, by how it begins.
pub(super) fn is_to_others(message: &Message) -> bool {
    message.content.trim_start().starts_with("<@") && !message.addressed
}

/// Words for a request from a command: what is said, and whether it is answered to.
pub(super) fn steer(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Say>,
    id: &RequestId,
    text: &str,
) -> Result<CatalogText, CatalogText> {
    let (now, limit) = (turn.now, turn.policy.limits.followups);
    let name = granted.name();
    let Some(request) = turn.request(id) else {
        return Err(("unknown_request", json!({ "request_id": id.as_str() })));
    };
    if let Some(late) = too_late(turn, id) {
        return Err(late);
    }
    let blocked = request.status == RequestStatus::Blocked;
    if ends_rather(request, text) && (blocked || words::only_asks_to_end(text)) {
        return Err(("end_by_command", json!({ "request_id": id.as_str() })));
    }
    let about = json!({ "request_id": id.as_str() });
    match end_question::answer(turn, granted.actor(), id, text) {
        EndAnswer::None => {}
        EndAnswer::Yes => return Err(("end_by_command", about)),
        EndAnswer::NotTheirs => return Err(("cancel.not_yours", about)),
        EndAnswer::GoesOn => return Ok(("resumed", about)),
    }
    let Some(request) = turn.edit(id) else {
        return Err(("unknown_request", json!({ "request_id": id.as_str() })));
    };
    if taken(&request.params.followups) >= limit {
        return Err(("too_many_followups", json!({ "request_id": id.as_str(), "limit": limit })));
    }
    let is_others = request.conversation.reply_route.is_other(granted.actor());
    let author_id = granted.actor().person_id();
    let words = Followup { is_others, author_id, ..Followup::command(&name, text.to_owned(), now) };
    let key = words.key();
    note_asker(request, &words);
    request.params.take_in(words);
    lanes::follow_new_signals(turn, id);
    let kind = if blocked { EventKind::Resumed } else { EventKind::Followup };
    turn.record(id, kind, &name, &say::title(text), Value::Null);
    if end_question::hears_more(turn, id, granted.actor().person_id()) {
        return Ok(("followup_taken", json!({})));
    }
    if blocked {
        let by = DecidedBy::Person { name, message_id: None };
        questions::answered_in_words(turn, id, &by, text);
        resume(turn, id, SelectionSource::PlanningResume);
        return Ok(("resumed", json!({ "request_id": id.as_str() })));
    }
    reaches_somebody(turn, id, key);
    Ok(("followup_taken", json!({})))
}

/// New words go to the agent at work, where there is one; what waits for nothing but the branch goes back for them.
pub(super) fn reaches_somebody(turn: &mut Turn<'_>, id: &RequestId, key: MessageId) {
    runs::steer(turn, id, key);
    if turn.request(id).is_some_and(|it| it.params.has_unread()) && train::leave(turn, id) {
        goes_back_for_words(turn, id);
    }
}

/// What is told to whoever writes to a request for which nobody reads any more: its commit is on the way to the branch,
/// it ends with an action that runs already, or it is the card of a sprint's plan.
pub(super) fn too_late(turn: &Turn<'_>, id: &RequestId) -> Option<CatalogText> {
    if train::is_merging(turn, id) {
        return Some(("words_too_late", json!({ "request_id": id.as_str() })));
    }
    let request = turn.request(id)?;
    if request.duty().is_some() && request.work.planned.is_some() {
        // Nobody works on it any more: what is decided at its card ends it.
        return Some(("words_at_plan", json!({})));
    }
    let operation = request.work.operation_id.as_ref()?;
    let runs = turn.before().operations.get(operation);
    let action = &runs.filter(|it| it.status == OperationStatus::Running)?.action;
    Some(("words_beside_action", json!({ "request_id": id.as_str(), "action": action })))
}

/// Places taken of those that a request has.
fn taken(followups: &[Followup]) -> usize {
    followups.iter().filter(|followup| !followup.at_gate).count()
}

/// Why a follow-up changed nothing.
pub(super) const FULL: &str = "the request takes no more words";

/// Adds a message to what the roles read, or tells its author that the request can take no more.
pub(super) fn add_followup(turn: &mut Turn<'_>, id: &RequestId, message: &Message) -> bool {
    let is_taken = take_followup(turn, id, message);
    if is_taken {
        reaches_somebody(turn, id, message.message_id);
    }
    is_taken
}

/// The same, for nobody to begin with yet.
fn take_followup(turn: &mut Turn<'_>, id: &RequestId, message: &Message) -> bool {
    let (now, limit) = (turn.now, turn.policy.limits.followups);
    if let Some((key, values)) = too_late(turn, id) {
        reply(turn, message, key, values);
        return false;
    }
    let Some(request) = turn.edit(id) else { return false };
    if taken(&request.params.followups) >= limit {
        let author = &message.author.name;
        turn.record(
            id,
            EventKind::FollowupRefused,
            author,
            &say::title(&message.content),
            Value::Null,
        );
        let values = json!({ "request_id": id.as_str(), "limit": limit });
        reply(turn, message, "too_many_followups", values);
        return false;
    }
    let artifacts = saved(message);
    for file in &artifacts {
        if !request.artifacts.contains(file) {
            request.artifacts.push(file.clone());
        }
    }
    let is_others = request.conversation.reply_route.is_other(&message.actor(true));
    let words = Followup {
        is_others,
        message_id: Some(message.message_id),
        channel_id: Some(message.channel_id),
        author_name: message.author.name.clone(),
        author_id: Some(message.author.id),
        body: message.content.clone(),
        artifacts,
        at: now,
        heard_by: Vec::new(),
        at_gate: false,
        guides: false,
    };
    note_asker(request, &words);
    request.params.take_in(words);
    lanes::follow_new_signals(turn, id);
    tell_of_missing_files(turn, message, id);
    true
}
