//! What people write (`spec/teams.md` 5.9): new requests, duplicates, answers, and words for a
//! request under way.

use serde_json::{Value, json};

use super::authorize::{Denied, Granted, Resource, act, authorize};
use super::decision::Answer;
use super::message::{
    answer_to, open_with, origins, print, reply, reply_about, route, saved, scope,
    tell_of_missing_files,
};
use super::turn::{RECENT_MESSAGES, Turn};
use super::{followup, handoff, intent, lanes, parse, progress, retry, say, sprint, words};
use crate::domain::actor::Actor;
use crate::domain::block::BlockCode;
use crate::domain::change::ChannelMark;
use crate::domain::criterion::Criterion;
use crate::domain::ids::{ChannelId, RequestId, UserId};
use crate::domain::incoming::{ADDRESSED_BY_EDIT, Message};
use crate::domain::ingress::Ingress;
use crate::domain::intent::Intent;
use crate::domain::language::Language;
use crate::domain::outgoing::{Act, Priority, Target, Voice};
use crate::domain::policy::{Policy, RefusalForm, Right};
use crate::domain::request::{
    EventKind, Followup, Params, ReplyRoute, Request, RequestConversation, RequestStatus,
    RequestWork, Room, SelectionSource, fingerprint,
};
use crate::domain::role::Role;
use crate::domain::routes::Lane;
use crate::domain::state::State;
use crate::domain::time::Timestamp;

/// The reaction by which somebody is told that they may not ask.
const REFUSED: &str = "🚫";
/// Seconds that such an answer waits, so that those of whoever may ask go first.
const REFUSAL_DELAY: u64 = 10;

/// Takes in a message.
pub(super) fn message(turn: &mut Turn<'_>, message: Message) -> Answer {
    if was_taken_in(turn.before(), &message) {
        return Answer::Ignored("already taken in");
    }
    take_in(turn, message)
}

fn take_in(turn: &mut Turn<'_>, message: Message) -> Answer {
    let granted = match hears(turn.before(), turn.policy, &message) {
        Ok(granted) => granted,
        Err(IgnoreReason::Refused) => {
            refuse(turn, &message);
            return Answer::Ignored("may not ask");
        }
        Err(IgnoreReason::Silent(why)) => return Answer::Ignored(why),
    };
    turn.mark_taken(&message);
    let saved = message.attachments.iter().filter(|file| file.saved.is_some()).count();
    if message.content.trim().is_empty() && saved == 0 {
        mark_idle(turn, &message);
        let failed = message.attachments.len();
        if failed == 0 && !message.addressed && message.guild_id.is_some() {
            // A sticker, a poll or what only Discord may read, among people.
            return Answer::Ignored("nothing was said");
        }
        let key = if failed > 0 { "attachments_failed" } else { "empty" };
        reply(turn, &message, key, json!({ "count": failed }));
        return Answer::Ignored("nothing was said");
    }
    let limit = turn.policy.limits.message_chars;
    if message.content.chars().count() > limit {
        mark_idle(turn, &message);
        reply(turn, &message, "too_long", json!({ "limit": limit }));
        return Answer::Ignored("too long");
    }
    if let Some(word) = words::read(&message.content) {
        let (key, values) =
            words::obey(turn, granted.actor(), words::WrittenCommand::of(&message), word)
                .unwrap_or_else(|refused| refused);
        reply(turn, &message, key, values);
        return Answer::Accepted;
    }
    match resumed(turn, granted.actor(), &message) {
        // Nothing more is said: the same is tried again.
        Some(id) if words::only_resume(&message.content) => {
            return repeated(turn, &granted, &id, &message);
        }
        Some(id) => return followup::said(turn, &granted, &id, &message),
        None => {}
    }
    let about_its_end = about_their_end(turn, &message);
    if !about_its_end.is_empty() {
        for id in &about_its_end {
            followup::said(turn, &granted, id, &message);
        }
        return Answer::Accepted;
    }
    if let Some(id) = continues(turn, &message) {
        return followup::said(turn, &granted, &id, &message);
    }
    if let Some((key, title)) = answers_put_aside(turn, &message) {
        reply(turn, &message, key, json!({ "title": title }));
        return Answer::Accepted;
    }
    if asks_for_nothing(turn, &message) {
        mark_idle(turn, &message);
        return Answer::Ignored("it asks for nothing");
    }
    if let Some(id) = duplicate_of(turn, &message) {
        return repeated(turn, &granted, &id, &message);
    }
    if let Some(limit) = too_many(turn, Some(message.author.id), 1) {
        reply(turn, &message, "too_many", json!({ "limit": limit }));
        return Answer::Ignored("too many open requests");
    }
    create(turn, &granted, &message);
    Answer::Accepted
}

/// Notes that nothing came of a message.
fn mark_idle(turn: &mut Turn<'_>, message: &Message) {
    turn.mark_idle(message, say::digest(&message.content));
}

/// Whether a message in the room of a request that has ended is no more than thanks, or words to somebody else.
fn asks_for_nothing(turn: &Turn<'_>, message: &Message) -> bool {
    let words = Followup::command("", message.content.clone(), turn.now);
    let is_nothing =
        followup::is_to_others(message) || !(words.asks_for_something() || words.is_assent());
    // An answer to words of the team speaks to it, and may be thanks all the same.
    turn.before().rooms.contains_key(&message.channel_id)
        && saved(message).is_empty()
        && (words.is_thanks() || !message.addressed && is_nothing)
}

/// Why a message is not for the team.
enum IgnoreReason {
    /// Nobody is told.
    Silent(&'static str),
    /// Its author may not ask, and is told so.
    Refused,
}

/// Whether the team listens to a message, by where and by whom it was written.
fn hears(
    state: &State,
    policy: &Policy,
    message: &Message,
) -> Result<Granted<act::Ask>, IgnoreReason> {
    let in_room = state.is_room(message.channel_id);
    let is_dm = message.guild_id.is_none();
    // What a trusted bot writes where operators watch the hand-offs is meant for the team (I07).
    let relayed = Some(message.channel_id) == policy.relay_channel
        && message.author.is_bot
        && policy.trusted_bots.contains(&message.author.id);
    if !message.addressed && !in_room && !is_dm && !relayed {
        return Err(IgnoreReason::Silent("not addressed to the team"));
    }
    if relayed && !message.addressed && parse::is_hand_off(&message.content) {
        // Two teams that trust each other would hand each other's hand-offs on for ever (I10).
        return Err(IgnoreReason::Silent("a hand-off of another team"));
    }
    // Files of a command are no message, wherever those are off.
    let is_command = matches!(
        message.via,
        Ingress::Slash | Ingress::Modal | Ingress::Button | Ingress::Operator
    );
    if !is_command && is_dm && !policy.dm {
        return Err(IgnoreReason::Silent("direct messages are off"));
    }
    if !is_command && !is_dm && !in_room && !policy.mentions {
        return Err(IgnoreReason::Silent("mentions are off"));
    }
    authorize(policy, &message.actor(in_room), Resource::Team).map_err(|denied| match denied {
        Denied::MissingRight(_) if message.addressed || is_dm => IgnoreReason::Refused,
        Denied::MissingRight(_)
        | Denied::ForeignGuild
        | Denied::UntrustedBot
        | Denied::NotThisWay
        | Denied::OwnRequest
        | Denied::Private
        | Denied::OwnVoice => IgnoreReason::Silent("may not ask"),
    })
}

/// Whether the team would take a message in: before that, nothing of it is fetched or kept.
#[must_use]
pub fn would_take_in(state: &State, policy: &Policy, message: &Message) -> bool {
    hears(state, policy, message).is_ok()
}

/// Whether the server roles of its author decide what becomes of a message: then they have to be known before it
/// is taken in.
#[must_use]
pub fn depends_on_roles(state: &State, policy: &Policy, message: &Message) -> bool {
    let Some(guild) = message.guild_id else { return false };
    let mut most = message.clone();
    let roles = policy.rights.values().flat_map(|holders| &holders.roles);
    most.author.server_roles =
        roles.filter(|(of, _)| *of == guild).map(|(_, role)| *role).collect();
    let gains = !most.author.server_roles.is_empty()
        && !policy
            .rights
            .get(&Right::Administer)
            .is_some_and(|holders| holders.users.contains(&message.author.id));
    gains && hears(state, policy, &most).is_ok()
}

/// Tells somebody that they may not ask, in the form that the configuration wants, after everything else that
/// the team has to say.
fn refuse(turn: &mut Turn<'_>, message: &Message) {
    let tell = turn.mark_refused(message);
    let act = match turn.policy.refusals {
        RefusalForm::Reply if tell => answer_to(turn, message, "not_allowed", json!({})),
        RefusalForm::Reaction if tell => {
            Act::React { message_id: message.message_id, emoji: REFUSED.to_owned() }
        }
        RefusalForm::Reply | RefusalForm::Reaction | RefusalForm::Silent => return,
    };
    let target = Target::Channel(message.channel_id);
    let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Refusal, act);
    outgoing.not_before = Some(turn.now.plus_seconds(REFUSAL_DELAY));
    turn.send(outgoing);
}

/// Whether somebody has addressed the team by editing a message that was not for it, or of which nothing came: it is
/// taken in like a new one. One of long ago may have been taken in and forgotten since.
#[must_use]
pub fn is_addressed_by_edit(state: &State, now: Timestamp, message: &Message) -> bool {
    // What is older than all that are remembered may be one of those before them.
    let is_forgotten = |mark: &ChannelMark| {
        mark.recent.len() >= RECENT_MESSAGES
            && mark.recent.iter().min().is_some_and(|oldest| message.message_id < *oldest)
    };
    let mark = state.channels.get(&message.channel_id);
    // Discord tells of an edit also where only a preview came, and a look back tells it again.
    let words = mark.and_then(|mark| mark.idle.get(&message.message_id));
    let is_idle = words.is_some_and(|words| *words != say::digest(&message.content));
    let is_new = || {
        message.addressed
            && message.guild_id.is_some()
            && !mark.is_some_and(is_forgotten)
            && !was_taken_in(state, message)
    };
    now.seconds_since(message.created_at) < ADDRESSED_BY_EDIT && (is_idle || is_new())
}

/// Takes it in. Its channel is read no further by that: what was written before it may still wait.
pub(super) fn addressed_by_edit(turn: &mut Turn<'_>, told: Message) -> Answer {
    let mark = turn.before().channels.get(&told.channel_id);
    let read_up_to = mark.map_or(told.message_id, |mark| mark.watermark);
    take_in(turn, Message { read_up_to: Some(read_up_to), ..told })
}

/// By name, never by order: a message that was missed may be told after newer ones.
fn was_taken_in(state: &State, message: &Message) -> bool {
    let mark = state.channels.get(&message.channel_id);
    let its = Some(message.message_id);
    mark.is_some_and(|mark| mark.recent.contains(&message.message_id))
        || !origins(state, message.message_id).is_empty()
        // Of what is over the request may be known still, or the thread that hangs on the message.
        || state.requests.values().any(|it| it.conversation.reply_route.message_id == its)
        || state.rooms.contains_key(&ChannelId(message.message_id.0))
}

/// The limit of open requests, for a person who has reached it. The operator has none.
pub(super) fn too_many(turn: &Turn<'_>, author: Option<UserId>, new: usize) -> Option<usize> {
    let author = author?;
    let mine = turn.before().requests.values().filter(|request| {
        let is_theirs = request.conversation.reply_route.author_id == Some(author);
        // What a sprint does for whoever began it is nothing that they asked for one by one.
        let is_of_sprint = request.todo_id.is_some() || request.duty().is_some();
        !request.status.is_terminal() && is_theirs && !is_of_sprint
    });
    let limit = turn.policy.limits.open_requests_per_person;
    (mine.count() + new > limit).then_some(limit)
}

/// The open request that a message belongs to: the one whose room it was written in or that it answers words about,
/// or, in a direct message and wherever a request has no room, the one that waits for an answer there.
fn continues(turn: &Turn<'_>, message: &Message) -> Option<RequestId> {
    let state = turn.before();
    if let Some(request) = state.request_in_room(message.channel_id) {
        return (!request.status.is_terminal()).then(|| request.request_id.clone());
    }
    if let Some(ended) = state.rooms.get(&message.channel_id) {
        // What ended there is done again elsewhere.
        let again = |it: &&Request| it.params.retry_of_request_id.as_ref() == Some(ended);
        let mut open = turn.requests().filter(|it| !it.status.is_terminal());
        if let Some(request) = open.find(again) {
            return Some(request.request_id.clone());
        }
    }
    if let Some(answered) = message.reply_to {
        let actor = message.actor(false);
        let is_about = |it: &&Request| {
            let (conversation, route) = (&it.conversation, &it.conversation.reply_route);
            let questions = it.work.questions_card.map(|(_, message)| message);
            let gate = it.work.gate_id.as_ref().and_then(|id| state.gates.get(id)?.card);
            let cards = conversation.status_card().into_iter().chain(questions);
            let cards = cards.chain(gate.map(|(_, message)| message)).chain(route.message_id);
            let mut known = conversation.said_outside.iter().copied().chain(cards);
            known.any(|message| message == answered) && !route.is_hidden_from(&actor)
        };
        let mut open = turn.requests().filter(|it| !it.status.is_terminal());
        if let Some(request) = open.find(is_about) {
            return Some(request.request_id.clone());
        }
    }
    // What reads as work or as a question may be about anything.
    let intent = intent::read(&message.content).intent;
    let is_new = intent.is_some();
    let is_other_work = !matches!(intent, None | Some(Intent::Control | Intent::Resume));
    let words = Followup::command("", message.content.clone(), turn.now);
    let says_so = words.is_assent() || words.says_done();
    let is_about_it = says_so && !is_other_work
        || words::asks_to_end(&message.content)
        || words::only_resume(&message.content);
    let mut waiting = state.requests.values().filter(|request| {
        let (route, room) = (&request.conversation.reply_route, &request.conversation.room);
        let is_reply = message.reply_to.is_some();
        let is_here = request.blocked.as_ref().is_some_and(|it| match message.guild_id {
            // Between the two of them nearly everything is about it, but for new work.
            None => {
                let asks = matches!(
                    it.code,
                    BlockCode::Questions | BlockCode::RoleBlocked | BlockCode::Parts
                ) || it.code.asks_for_words() && !is_other_work;
                route.is_dm && (is_reply || it.paused_by.is_none() && (asks || is_about_it))
            }
            Some(_) => {
                room.as_ref().is_some_and(|room| room.thread_id.is_none())
                    && route.channel_id == Some(message.channel_id)
                    && it.paused_by.is_none()
                    && (is_reply || it.code.asks_for_words() && !is_new)
            }
        });
        // What answers other words than those about it is about something else. An earlier build noted none.
        let is_elsewhere =
            message.reply_to.is_some() && !request.conversation.said_outside.is_empty();
        request.status == RequestStatus::Blocked
            && is_here
            && !is_elsewhere
            && route.author_id == Some(message.author.id)
            && request.fingerprint != print(message)
    });
    match (waiting.next(), waiting.next()) {
        (Some(one), None) => Some(one.request_id.clone()),
        (Some(_) | None, _) => None,
    }
}

/// The open requests without a room that somebody means who writes no more than that it is to end, or answers whether it is,
/// in a direct message or where they asked.
fn about_their_end(turn: &Turn<'_>, message: &Message) -> Vec<RequestId> {
    let is_room = turn.before().rooms.contains_key(&message.channel_id)
        || turn.before().request_in_room(message.channel_id).is_some();
    let ends = words::only_asks_to_end(&message.content);
    let answers = words::lets_go_on(&message.content) || words::says_yes(&message.content);
    if is_room || message.reply_to.is_some() || !(ends || answers) {
        return Vec::new();
    }
    let is_theirs = |request: &&Request| {
        let (route, room) = (&request.conversation.reply_route, &request.conversation.room);
        let is_here = match message.guild_id {
            None => route.is_dm,
            Some(_) => {
                room.as_ref().is_some_and(|room| room.thread_id.is_none())
                    && route.channel_id == Some(message.channel_id)
            }
        };
        !request.status.is_terminal()
            && is_here
            && route.author_id == Some(message.author.id)
            && (ends || request.params.open_end().is_some())
    };
    turn.requests().filter(is_theirs).map(|request| request.request_id.clone()).collect()
}

/// The open request that a message from anywhere wants to go on, where its author may speak to it.
fn resumed(turn: &Turn<'_>, actor: &Actor, message: &Message) -> Option<RequestId> {
    let id = words::resumed_request(&message.content)?;
    let request = turn.request(&id).filter(|request| !request.status.is_terminal())?;
    let said: Result<Granted<act::Say>, _> =
        authorize(turn.policy, actor, Resource::Request(request));
    said.is_ok().then_some(id)
}

/// The request that has ended and that words want to go on.
fn followed(turn: &Turn<'_>, text: &str) -> Option<RequestId> {
    words::resumed_request(text)
        .filter(|id| turn.request(id).is_none_or(|it| it.status.is_terminal()))
}

/// The title of the backlog item that a message is about, in the room of an ended todo or by asking for it, and what is
/// said to that.
fn answers_put_aside(turn: &mut Turn<'_>, message: &Message) -> Option<(&'static str, String)> {
    let room_of = turn.before().rooms.get(&message.channel_id).cloned();
    let words = Followup::command("", message.content.clone(), turn.now);
    let is_thanks = saved(message).is_empty() && words.is_thanks();
    // Who asks why it failed, or has no more use for it, lets nothing begin.
    let asks = saved(message).is_empty()
        && match intent::read(&message.content).intent {
            Some(Intent::Question | Intent::Incident) => true,
            None => asks_why(&message.content) || words::asks_to_end(&message.content),
            Some(_) => words::asks_to_end(&message.content),
        };
    if room_of.is_some() && (is_thanks || followup::is_to_others(message)) {
        return None;
    }
    if let Some(item) =
        room_of.as_ref().filter(|_| asks).and_then(|id| sprint::put_aside_with(turn, id))
    {
        return Some(("backlog.waits", item.title.clone()));
    }
    sprint::answered(turn, room_of.as_ref(), message)
}

/// Whether words that nobody can sort ask for a reason.
fn asks_why(text: &str) -> bool {
    let text = text.to_lowercase();
    let asks = |word: &str| {
        ["why", "what", "how"].contains(&word)
            || ["왜", "무엇", "어떻게"].iter().any(|it| word.starts_with(it))
    };
    text.trim_end().ends_with('?') && text.split(|c: char| !c.is_alphanumeric()).any(asks)
}

fn duplicate_of(turn: &Turn<'_>, message: &Message) -> Option<RequestId> {
    open_with(turn, &print(message))
}

/// The same words again while the request is open.
fn repeated(
    turn: &mut Turn<'_>,
    asked: &Granted<act::Ask>,
    id: &RequestId,
    message: &Message,
) -> Answer {
    let Some(request) = turn.request(id) else {
        return Answer::Ignored("gone");
    };
    let Ok(granted) = authorize(turn.policy, asked.actor(), Resource::Request(request)) else {
        reply(turn, message, "cancel.not_yours", json!({ "request_id": id.as_str() }));
        return Answer::Ignored("not theirs");
    };
    let is_the_same = request.fingerprint == print(message);
    let new_files = saved(message).iter().any(|file| !request.artifacts.contains(file));
    // Who asks once more has perhaps not seen what was asked back: that answers nothing.
    if let Some((key, values)) = asks_back(request).filter(|_| is_the_same && !new_files) {
        turn.record(id, EventKind::Reused, &message.author.name, "asked again", Value::Null);
        reply_about(turn, message, key, values, Some(id));
        return Answer::Accepted;
    }
    if request.status == RequestStatus::Blocked {
        if new_files {
            if !followup::add_followup(turn, id, message) {
                return Answer::Ignored(followup::FULL);
            }
            turn.record(id, EventKind::Resumed, &message.author.name, "more input", Value::Null);
            reply_about(turn, message, "augmented", json!({ "request_id": id.as_str() }), Some(id));
            progress::resume(turn, id, SelectionSource::PlanningResume);
        } else {
            // Whoever else lets it go on has not asked for it.
            if let Some(request) = turn.edit(id).filter(|_| is_the_same) {
                request.conversation.reply_route = route(message);
            }
            turn.record(id, EventKind::Retried, &message.author.name, "asked again", Value::Null);
            reply_about(turn, message, "retried", json!({ "request_id": id.as_str() }), Some(id));
            retry::retry(turn, &granted, id);
        }
        return Answer::Accepted;
    }
    if new_files {
        if !followup::add_followup(turn, id, message) {
            return Answer::Ignored(followup::FULL);
        }
        turn.record(id, EventKind::Followup, &message.author.name, "more files", Value::Null);
        reply_about(turn, message, "augmented", json!({ "request_id": id.as_str() }), Some(id));
        return Answer::Accepted;
    }
    let Some(request) = turn.request(id) else {
        return Answer::Ignored("gone");
    };
    let values = json!({
        "request_id": id.as_str(),
        "status": request.status,
        "role": request.route.current_role.map_or("", Role::as_str),
    });
    turn.record(id, EventKind::Reused, &message.author.name, "asked again", Value::Null);
    reply_about(turn, message, "reused", values, Some(id));
    Answer::Accepted
}

/// What is said to somebody who asks for the same again, where the request waits for an answer of theirs.
pub(super) fn asks_back(request: &Request) -> Option<say::CatalogText> {
    let code = request.blocked.as_ref()?.code;
    let room = request.conversation.thread();
    let values = json!({ "request_id": request.request_id.as_str(), "room": room });
    matches!(code, BlockCode::Questions | BlockCode::Parts).then_some(("reused_asked", values))
}

fn create(turn: &mut Turn<'_>, _granted: &Granted<act::Ask>, message: &Message) {
    let id = turn.ids.request(&turn.today());
    let language = Language::of(&message.content).unwrap_or(turn.policy.language);
    // A message in the room of an ended request goes on in that room.
    let old_room = turn.before().rooms.get(&message.channel_id).cloned();
    let params = Params {
        user_requested_role: message.role,
        follows_request_id: followed(turn, &message.content).or_else(|| old_room.clone()),
        ..Params::default()
    };
    let now = turn.now;
    let scope = scope(message);
    let request = Request {
        request_id: id.clone(),
        scope: scope.clone(),
        body: message.content.clone(),
        artifacts: saved(message),
        params,
        created_at: now,
        updated_at: now,
        fingerprint: print(message),
        conversation: RequestConversation {
            source_message_created_at: Some(message.created_at),
            reply_route: route(message),
            language,
            room: Some(Room {
                thread_id: old_room.is_some().then_some(message.channel_id),
                ..Room::default()
            }),
            ..RequestConversation::default()
        },
        work: left_to_people(&message.content),
        ..Request::default()
    };
    // One that waits for a person holds nobody up.
    let ahead = turn
        .before()
        .requests
        .values()
        .filter(|r| !r.status.is_terminal() && r.status != RequestStatus::Blocked)
        .count();
    turn.create(request);
    turn.record(&id, EventKind::Created, &message.author.name, &say::title(&scope), Value::Null);
    let (key, values) = if ahead == 0 {
        ("receipt", json!({ "request_id": id.as_str() }))
    } else {
        ("receipt.queued", json!({ "request_id": id.as_str(), "ahead": ahead }))
    };
    reply_about(turn, message, key, values, Some(&id));
    if message.guild_id.is_some() && old_room.is_none() {
        open_room(turn, &id, message, &scope);
    }
    tell_of_missing_files(turn, message, &id);
    let served = |role: &Role| Role::ADDRESSED.contains(role) && turn.policy.serves.contains(role);
    let first = message.role.filter(served).unwrap_or(Role::Orchestrator);
    handoff::delegate(turn, &id, first, None, &scope, None);
}

/// Work in which the lines of a person's words that leave something to people are criteria.
fn left_to_people(words: &str) -> RequestWork {
    RequestWork { persons_criteria: Criterion::manual_lines(words), ..RequestWork::default() }
}

fn open_room(turn: &mut Turn<'_>, id: &RequestId, message: &Message, scope: &str) {
    let act = Act::OpenRoom {
        channel_id: message.channel_id,
        message_id: message.message_id,
        name: say::cut(&say::title(scope), 90),
    };
    let target = Target::Room(id.clone());
    let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Progress, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// Who and where of a command, as fingerprints name it.
fn command_print(route: &ReplyRoute, text: &str) -> String {
    let author = route.author_id.map_or_else(|| route.author_name.clone(), |id| id.to_string());
    let place = route.channel_id.map_or_else(|| "cli".to_owned(), |id| id.to_string());
    fingerprint(&author, &place, "route", text.trim())
}

/// The open request that was commanded in the same words from the same place.
pub(super) fn open_of(turn: &Turn<'_>, route: &ReplyRoute, text: &str) -> Option<RequestId> {
    open_with(turn, &command_print(route, text))
}

/// A request from a command, with a room on what is posted of it: where it was asked, or, of the operator's, in the
/// report channel.
pub(super) fn ask(
    turn: &mut Turn<'_>,
    _granted: &Granted<act::Ask>,
    text: &str,
    route: ReplyRoute,
    language: Language,
    lane: Option<Lane>,
) -> RequestId {
    let target = say::room_channel(&route);
    let author = route.author_name.clone();
    let id = begin(turn, text, route, language, lane);
    if let Some(target) = target {
        let values = json!({ "author": author, "text": text, "request_id": id.as_str() });
        say::post_for_room(turn, &id, target, ("ask.begun", values));
    }
    id
}

/// A request without a message of its own, for whoever may ask.
pub(super) fn begin(
    turn: &mut Turn<'_>,
    text: &str,
    route: ReplyRoute,
    language: Language,
    lane: Option<Lane>,
) -> RequestId {
    let id = turn.ids.request(&turn.today());
    let now = turn.now;
    let request = Request {
        request_id: id.clone(),
        scope: text.trim().to_owned(),
        body: text.to_owned(),
        created_at: now,
        updated_at: now,
        fingerprint: command_print(&route, text),
        conversation: RequestConversation {
            reply_route: route,
            language: Language::of(text).unwrap_or(language),
            ..RequestConversation::default()
        },
        work: left_to_people(text),
        params: Params { follows_request_id: followed(turn, text), ..Params::default() },
        ..Request::default()
    };
    let author = request.conversation.reply_route.author_name.clone();
    turn.create(request);
    turn.record(&id, EventKind::Created, &author, &say::title(text), Value::Null);
    let Some(lane) = lane else {
        handoff::delegate(turn, &id, Role::Orchestrator, None, text, None);
        return id;
    };
    lanes::name(turn, &id, lane);
    match lane {
        Lane::Answer => handoff::delegate(turn, &id, Role::Orchestrator, None, text, None),
        // Nobody has to be asked what it is.
        Lane::Fast | Lane::Quick | Lane::Standard | Lane::Full => {
            let decision = lanes::begin(turn, &id, None);
            progress::start(turn, &id, decision);
        }
    }
    id
}
