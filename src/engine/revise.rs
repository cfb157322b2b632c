//! Messages that people edit or delete after they were taken in.

use serde_json::{Value, json};

use super::authorize::{Granted, Resource, act, authorize, note_asker};
use super::decision::Answer;
use super::end_question::{self, ends_rather};
use super::followup::{FULL, add_followup, goes_on_with, reaches_somebody, too_late};
use super::message::{origins, print, reply, saved, scope};
use super::progress::{goes_by_the_new_words, resume};
use super::turn::Turn;
use super::{ending, gates, lanes, questions, runs, say, train, words};
use crate::domain::actor::Actor;
use crate::domain::block::BlockCode;
use crate::domain::criterion::Criterion;
use crate::domain::ids::{MessageId, RequestId};
use crate::domain::incoming::Message;
use crate::domain::ingress::Ingress;
use crate::domain::outgoing::{Button, ButtonAct, Priority, Voice};
use crate::domain::plan_decision::DecidedBy;
use crate::domain::request::{EventKind, Followup, Request, RequestStatus, SelectionSource};

/// An edited message: where its words are not read yet, they are replaced.
pub(super) fn edited(turn: &mut Turn<'_>, message: Message) -> Answer {
    let origins = origins(turn.before(), message.message_id);
    if origins.is_empty() {
        return Answer::Ignored(UNKNOWN);
    }
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
    let each = origins.iter().map(|(id, _)| reword(turn, &granted, id, &message));
    first_accepted(each)
}

const UNKNOWN: &str = "nothing waits on that message";

/// What is said of several requests: that it counted, where it did for one.
fn first_accepted(answers: impl Iterator<Item = Answer>) -> Answer {
    let mut said = Answer::Ignored(UNKNOWN);
    for answer in answers {
        if said != Answer::Accepted {
            said = answer;
        }
    }
    said
}

/// The new wording takes the place of the old one.
fn reword(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Revise>,
    id: &RequestId,
    message: &Message,
) -> Answer {
    let (same, at) = (Some(message.message_id), turn.now);
    if let Some(answer) = goes_back_on_its_end(turn, granted, id, message) {
        return answer;
    }
    let late = too_late(turn, id);
    let Some(request) = turn.edit(id) else {
        return Answer::Ignored("gone");
    };
    let has_begun = has_begun(request);
    let is_held = request.blocked.as_ref().is_some_and(|it| it.code == BlockCode::EndQuestion);
    let began_by_it = request.conversation.reply_route.message_id == same;
    // What the sprint or the backlog made of somebody's words has words of its own.
    let has_own_words = request.duty().is_some() || request.todo_id.is_some();
    let words = request.params.followups.iter_mut().find(|followup| followup.message_id == same);
    if let Some(followup) = words {
        if followup.body == message.content {
            return Answer::Ignored(SAME);
        }
        if let Some((key, values)) = late {
            reply(turn, message, key, values);
            return Answer::Ignored(LATE);
        }
        followup.body = message.content.clone();
        // Whoever took the earlier wording has not heard this one.
        followup.heard_by.clear();
        followup.at = at;
        let now = followup.clone();
        note_asker(request, &now);
        request.params.unread(&now);
        let has_answered = questions::reworded(request, message.message_id, &message.content);
        let is_blocked = request.status == RequestStatus::Blocked;
        let goes_on = is_blocked && !questions::is_asked(request) && goes_on_with(request, message);
        // What put an answer off before may be one now.
        let since = request.work.questions_card.is_some_and(|(_, card)| card < message.message_id);
        let answers_now = is_blocked
            && questions::is_asked(request)
            && !has_answered
            && since
            && goes_on_with(request, message);
        reaches_somebody(turn, id, message.message_id);
        if has_answered {
            questions::decided(turn, id, &granted.name());
        }
        if answers_now {
            let (name, message_id) = (granted.name(), Some(message.message_id));
            let by = DecidedBy::Person { name, message_id };
            questions::answered_in_words(turn, id, &by, &message.content);
        }
        if turn.request(id).is_some_and(|it| ends_rather(it, &message.content)) {
            end_question::asked(turn, id, message);
        } else if goes_on || answers_now {
            resume(turn, id, SelectionSource::Edited);
        } else if has_answered {
            plans_by_other_answers(turn, id);
        }
    } else if (request.body == message.content || request.fingerprint == print(message))
        && saved(message).is_empty()
    {
        return Answer::Ignored(SAME);
    } else if words::only_asks_to_end(&message.content) && saved(message).is_empty() {
        // What was asked stays known: nothing ends by words that may be misread.
        if let Some((key, values)) = late {
            reply(turn, message, key, values);
            return Answer::Ignored(LATE);
        }
        end_question::asked(turn, id, message);
    } else if began_by_it && request.params.parts.len() == 1 {
        reply(turn, message, "edited_after_split", json!({ "request_id": id.as_str() }));
        return Answer::Ignored("its message is several requests now");
    } else if !began_by_it || has_own_words {
        if !add_followup(turn, id, message) {
            return Answer::Ignored(FULL);
        }
        if turn.request(id).is_some_and(|it| ends_rather(it, &message.content)) {
            end_question::asked(turn, id, message);
        } else if is_held {
            resume(turn, id, SelectionSource::Edited);
        }
    } else if has_begun {
        return ask_anew(turn, granted, id, message);
    } else {
        request.scope = scope(message);
        request.body = message.content.clone();
        request.fingerprint = print(message);
        request.work.persons_criteria = Criterion::manual_lines(&message.content);
    }
    turn.record(
        id,
        EventKind::Edited,
        &message.author.name,
        &say::title(&message.content),
        Value::Null,
    );
    Answer::Accepted
}

/// What comes of a message that asked for the end of the request, and says something else now: that is taken back, and
/// where nothing but what was asked before is left of it, nothing more is to be done.
fn goes_back_on_its_end(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Revise>,
    id: &RequestId,
    message: &Message,
) -> Option<Answer> {
    let request = turn.request(id)?;
    let asked = request.params.end_question.as_ref();
    let asked = asked.filter(|it| it.message_id == message.message_id)?;
    if asked.digest == say::digest(&message.content) {
        return Some(Answer::Ignored(SAME));
    }
    if ends_rather(request, &message.content) || asked.is_answered {
        return None;
    }
    let is_as_before = request.body == message.content || request.fingerprint == print(message);
    end_question::go_on(turn, id, &granted.name(), is_as_before);
    if let Some(request) = turn.edit(id) {
        // Where it says so once more, that is new.
        request.params.end_question = None;
    }
    is_as_before.then_some(Answer::Accepted)
}

const LATE: &str = "nobody reads words to it any more";

/// Discord edits messages by itself, to show what their links lead to.
const SAME: &str = "the words are the same";

/// Earlier wordings that roles are told of; the request's history has all.
const EARLIER: usize = 5;

/// Whether a role has read what was asked.
const fn has_begun(request: &Request) -> bool {
    request.work.spent.turns > 0 || request.work.active_run.is_some()
}

/// Roles have begun on what was asked, and now it is something else: the new words take the place of the old
/// ones, whoever works hears them at once, and nothing that was made by the old words alone goes to the branch.
fn ask_anew(
    turn: &mut Turn<'_>,
    granted: &Granted<act::Revise>,
    id: &RequestId,
    message: &Message,
) -> Answer {
    if let Some((key, values)) = too_late(turn, id) {
        reply(turn, message, key, values);
        return Answer::Ignored(LATE);
    }
    let Some(request) = turn.edit(id) else {
        return Answer::Ignored("gone");
    };
    let old = std::mem::replace(&mut request.body, message.content.clone());
    request.scope = scope(message);
    request.fingerprint = print(message);
    request.work.persons_criteria = Criterion::manual_lines(&message.content);
    for file in saved(message) {
        if !request.artifacts.contains(&file) {
            request.artifacts.push(file);
        }
    }
    let earlier = &mut request.params.earlier_bodies;
    earlier.push(old.clone());
    let over = earlier.len().saturating_sub(EARLIER);
    earlier.drain(..over);
    request.params.unread_edit = true;
    let (blocked, waits) =
        (request.status == RequestStatus::Blocked, request.work.gate_id.is_some());
    lanes::follow_new_signals(turn, id);
    turn.record(
        id,
        EventKind::Edited,
        &granted.name(),
        &say::title(&message.content),
        json!({ "was": old }),
    );
    say::in_room(turn, id, Voice::Team, Priority::Progress, "room.edited", json!({}));
    if blocked || waits || train::leave(turn, id) {
        // What somebody would decide on is not what is wanted any more.
        gates::card::void(turn, id);
        goes_by_the_new_words(turn, id);
    } else {
        runs::tell_of_edit(turn, id);
    }
    Answer::Accepted
}

/// A deleted message: words not read yet are withdrawn, a request that nobody began is cancelled, and about one
/// under way somebody is asked.
pub(super) fn deleted(turn: &mut Turn<'_>, message_id: MessageId) -> Answer {
    let origins = origins(turn.before(), message_id);
    match authorize(turn.policy, &Actor::Deleter, Resource::Team) {
        Ok(granted) => {
            let each = origins.iter();
            let each =
                each.map(|(id, is_first)| withdraw(turn, &granted, id, message_id, *is_first));
            first_accepted(each)
        }
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
        return take_back(turn, id, message_id);
    }
    let started = turn.request(id).is_some_and(has_begun);
    if started {
        return ask_whether_to_withdraw(turn, id);
    }
    if let Some(request) = turn.edit(id) {
        request.conversation.reply_route.message_id = None;
    }
    let by = turn
        .request(id)
        .map(|r| r.conversation.reply_route.author_name.clone())
        .unwrap_or_default();
    let values = json!({ "request_id": id.as_str(), "by": by });
    ending::end(turn, id, RequestStatus::Cancelled, "final.cancelled", values);
    Answer::Accepted
}

/// Further words are gone: who has read them is told, and what they had answered is open again to the planner.
fn take_back(turn: &mut Turn<'_>, id: &RequestId, message_id: MessageId) -> Answer {
    let (was_told, late) = (runs::has_told(turn, id, message_id), too_late(turn, id));
    let Some(request) = turn.edit(id) else { return Answer::Ignored("gone") };
    let params = &mut request.params;
    let was_read = was_told || !params.unread_words.contains(&message_id);
    let at = params.followups.iter().position(|it| it.message_id == Some(message_id));
    let words = at.map(|at| params.followups.remove(at));
    params.unread_words.retain(|key| *key != message_id);
    let had_answered = questions::taken_back(request, message_id);
    turn.record(id, EventKind::Withdrawn, "person", "a message was deleted", Value::Null);
    match (words.filter(|it| was_read && it.asks_for_something()), late) {
        (Some(_), Some((key, values))) => {
            say::in_room(turn, id, Voice::Team, Priority::Progress, key, values);
        }
        (Some(words), None) => tell_of_taking_back(turn, id, &words),
        (None, _) => {}
    }
    if had_answered {
        questions::decided(turn, id, "person");
        questions::tell(turn, id, 0);
        plans_by_other_answers(turn, id);
    }
    Answer::Accepted
}

/// A plan that somebody would decide on was made by earlier answers: it is made anew.
fn plans_by_other_answers(turn: &mut Turn<'_>, id: &RequestId) {
    if gates::plan::is_open(turn, id) {
        gates::card::void(turn, id);
        resume(turn, id, SelectionSource::Edited);
    }
}

/// Roles have read what somebody takes back: whoever works hears that, and nothing ends before it is heeded.
fn tell_of_taking_back(turn: &mut Turn<'_>, id: &RequestId, words: &Followup) {
    let said = say::cut(&words.body, TAKEN_BACK);
    let body = format!("I took back what I wrote before; do not go by it: “{said}”");
    let command = Followup::command(&words.author_name, body, turn.now);
    let Followup { is_others, author_id, .. } = *words;
    let taking_back = Followup { is_others, author_id, ..command };
    let key = taking_back.key();
    let Some(request) = turn.edit(id) else { return };
    request.params.take_in(taking_back);
    let values = json!({ "title": say::title(&words.body) });
    say::in_room(turn, id, Voice::Team, Priority::Progress, "room.taken_back", values);
    reaches_somebody(turn, id, key);
}

/// Characters of what was taken back that roles are told.
const TAKEN_BACK: usize = 2_000;

/// Work has begun, and whoever deleted the message may have meant no more than to tidy up: it goes on, and a
/// button is there for the other answer.
fn ask_whether_to_withdraw(turn: &mut Turn<'_>, id: &RequestId) -> Answer {
    turn.record(id, EventKind::MessageDeleted, "person", "asked whether to withdraw", Value::Null);
    let Some(request) = turn.edit(id) else {
        return Answer::Ignored("gone");
    };
    // What is gone cannot be answered to.
    request.conversation.reply_route.message_id = None;
    let button = Button { act: ButtonAct::Cancel, subject: id.to_string(), version: 0 };
    let values = json!({ "request_id": id.as_str(), "title": say::title(&request.scope) });
    say::answer(turn, id, Priority::Approval, "message_deleted", values, vec![button]);
    Answer::Accepted
}
