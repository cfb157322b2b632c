//! What the team says: keys and values for the catalog, and where each message goes.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::turn::Turn;
use crate::domain::evidence::{Candidate, CheckRun, CheckVerdict, Evidence};
use crate::domain::ids::{ChannelId, MessageId, RequestId};
use crate::domain::language::Language;
use crate::domain::outgoing::{
    Act, Button, ButtonAct, Content, Menu, NamedChannel, Outgoing, OutgoingState, Post, Priority,
    Target, Voice,
};
use crate::domain::plan_decision::{DecidedBy, PlanDecision};
use crate::domain::request::{ReplyRoute, Request, Room};
use crate::domain::time::Timestamp;

/// A key of the catalog with its values.
pub(super) type CatalogText = (&'static str, Value);

/// A catalog key with its values, in a language.
pub(super) fn content(key: &str, language: Language, values: Value) -> Content {
    let values = match values {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    Content { key: key.to_owned(), values, language }
}

/// An outgoing with the usual fields.
pub(super) fn outgoing(
    turn: &mut Turn<'_>,
    target: Target,
    voice: Voice,
    priority: Priority,
    act: Act,
) -> Outgoing {
    Outgoing {
        outgoing_id: turn.ids.outgoing(),
        target,
        voice,
        priority,
        act,
        request_id: None,
        slot: None,
        state: OutgoingState::Queued,
        attempts: 0,
        own_failures: 0,
        not_before: None,
        refused: None,
        created_at: turn.now,
    }
}

/// A plain message act.
pub(super) fn post(content: Content) -> Act {
    Act::Post(Post::new(content))
}

/// Asks in the room of a request, at some time or at once, notifying who asked for it.
pub(super) fn ask(
    turn: &mut Turn<'_>,
    id: &RequestId,
    (key, values): (&str, Value),
    (buttons, version, menus): (&[ButtonAct], u32, Vec<Menu>),
    not_before: Option<Timestamp>,
) {
    let Some(request) = turn.request(id) else { return };
    let button = |act: &ButtonAct| Button { act: *act, subject: id.to_string(), version };
    let act = Act::Post(Post {
        mention: request.conversation.reply_route.author_id,
        buttons: buttons.iter().map(button).collect(),
        menus,
        ..Post::new(content(key, request.conversation.language, values))
    });
    let target = Target::Room(id.clone());
    let mut outgoing = outgoing(turn, target, Voice::Team, Priority::Approval, act);
    outgoing.request_id = Some(id.clone());
    outgoing.not_before = not_before;
    turn.send(outgoing);
}

/// The channel in which the room of a request opens that has no message of its own; none in a direct message, which has
/// no rooms.
pub(super) fn room_channel(route: &ReplyRoute) -> Option<Target> {
    match (route.channel_id, route.author_id) {
        _ if route.is_dm => None,
        (Some(channel), _) => Some(Target::Channel(channel)),
        (None, None) => Some(Target::Named(NamedChannel::Report)),
        (None, Some(_)) => None,
    }
}

/// Posts what the room of a request hangs on, which has no message of its own for that.
pub(super) fn post_for_room(
    turn: &mut Turn<'_>,
    id: &RequestId,
    target: Target,
    (key, values): CatalogText,
) {
    let Some(request) = turn.edit(id) else { return };
    request.conversation.room = Some(Room::default());
    let said = content(key, request.conversation.language, values);
    let act = Act::Post(Post { room_of: Some(id.clone()), ..Post::new(said) });
    let mut outgoing = outgoing(turn, target, Voice::Team, Priority::Progress, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// Takes the buttons of a card away, which was answered or is about nothing any more.
pub(super) fn unbutton(
    turn: &mut Turn<'_>,
    (channel, message_id): (ChannelId, MessageId),
    request: Option<&RequestId>,
) {
    let target = Target::Channel(channel);
    let act = Act::Unbutton { message_id };
    let mut outgoing = outgoing(turn, target, Voice::Team, Priority::Progress, act);
    outgoing.request_id = request.cloned();
    turn.send(outgoing);
}

/// Something in the room of a request.
pub(super) fn in_room(
    turn: &mut Turn<'_>,
    id: &RequestId,
    voice: Voice,
    priority: Priority,
    key: &str,
    values: Value,
) {
    let Some(request) = turn.request(id) else {
        return;
    };
    if request.duty().is_some() {
        return;
    }
    let language = request.conversation.language;
    let act = post(content(key, language, values));
    let mut outgoing = outgoing(turn, Target::Room(id.clone()), voice, priority, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// The same with files of the workspace.
pub(super) fn in_room_with(
    turn: &mut Turn<'_>,
    id: &RequestId,
    voice: Voice,
    said: Content,
    files: Vec<String>,
) {
    if turn.request(id).is_none_or(|request| request.duty().is_some()) {
        return;
    }
    let mut act = post(said);
    if let Act::Post(Post { files: attached, .. }) = &mut act {
        *attached = files;
    }
    let mut outgoing = outgoing(turn, Target::Room(id.clone()), voice, Priority::Progress, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// The outcome, as an answer to the message that asked, notifying who asked.
pub(super) fn answer(
    turn: &mut Turn<'_>,
    id: &RequestId,
    priority: Priority,
    key: &str,
    values: Value,
    buttons: Vec<Button>,
) {
    let Some(request) = turn.request(id) else {
        return;
    };
    if request.duty().is_some() {
        // The sprint tells what came of it.
        return;
    }
    let route = request.conversation.reply_route.clone();
    let content = content(key, request.conversation.language, values);
    let answered = request.conversation.message_to_answer();
    let (target, reply_to) = match (route.channel_id, route.author_id) {
        // A todo is answered in its room.
        (None, _) if request.todo_id.is_some() => (Target::Room(id.clone()), None),
        (Some(channel), _) => (Target::Channel(channel), answered),
        (None, Some(author)) => (Target::Dm(author), None),
        (None, None) => (Target::Named(NamedChannel::Report), answered),
    };
    let act = Act::Post(Post { reply_to, mention: route.author_id, buttons, ..Post::new(content) });
    let mut outgoing = outgoing(turn, target, Voice::Team, priority, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// One readable line about a hand-off, for operators.
pub(super) fn relay_line(turn: &mut Turn<'_>, id: &RequestId, values: Value) {
    let language = turn.policy.language;
    let act = post(content("relay.summary", language, values));
    let target = Target::Named(NamedChannel::Relay);
    let mut outgoing = outgoing(turn, target, Voice::Team, Priority::Progress, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// The decisions of a request for people: each with its number, what was chosen from, and what was decided by whom.
pub(super) fn decisions(request: &Request) -> Vec<Value> {
    let one = |(decision, number): (&PlanDecision, usize)| {
        let answer = decision.answer.as_ref();
        let by = answer.map(|answer| match &answer.by {
            DecidedBy::Person { name, .. } => name.as_str(),
            DecidedBy::Planner => "",
        });
        json!({
            "number": number, "question": decision.question, "options": decision.options,
            "assumption": decision.assumption, "answer": answer.map(|it| &it.text), "by": by,
        })
    };
    request.work.decisions.iter().zip(1..).map(one).collect()
}

/// Nothing is asked any more: the card with the questions keeps no buttons.
pub(super) fn close_questions(turn: &mut Turn<'_>, id: &RequestId) {
    let has_card = turn.request(id).is_some_and(|it| it.work.questions_card.is_some());
    let card = turn.edit(id).filter(|_| has_card).and_then(|it| it.work.questions_card.take());
    if let Some(card) = card {
        unbutton(turn, card, Some(id));
    }
}

/// The checks of some evidence, for templates.
pub(super) fn checks(evidence: Option<&Evidence>) -> Vec<CheckLine<'_>> {
    let checks = evidence.map(|evidence| evidence.checks.as_slice()).unwrap_or_default();
    checks.iter().map(CheckLine::of).collect()
}

/// What a message says of a check.
#[derive(Debug, Serialize)]
pub(super) struct CheckLine<'e> {
    name: &'e str,
    passed: bool,
    seconds: u64,
    tests: String,
}

impl<'e> CheckLine<'e> {
    fn of(check: &'e CheckRun) -> CheckLine<'e> {
        CheckLine {
            name: &check.name,
            passed: check.verdict == CheckVerdict::Passed,
            seconds: check.duration_ms / 1_000,
            tests: check.tests_passed.map_or_else(String::new, |count| count.to_string()),
        }
    }
}

/// What fails in a request's evidence that failed at its base, too; before there is any, what fails at the base.
#[must_use]
pub fn red_before(request: &Request) -> Vec<String> {
    match (&request.work.evidence, &request.work.base) {
        (Some(evidence), _) => evidence.compared(|it| &it.red_before).lines(),
        (None, Some(base)) => base.red.lines(),
        (None, None) => Vec::new(),
    }
}

/// The paths of a candidate, for templates.
pub(super) fn files(candidate: Option<&Candidate>) -> Vec<&str> {
    let paths = candidate.map(|candidate| candidate.paths.as_slice()).unwrap_or_default();
    paths.iter().map(|changed| changed.path.as_str()).collect()
}

/// The first characters of a commit id.
pub(super) fn short(commit: &str) -> String {
    commit.chars().take(10).collect()
}

/// A text cut to so many characters, with an ellipsis where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    let text = text.trim();
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// The end of a log, by whole lines: there it says what went wrong.
pub(super) fn end_of(log: &str, most: usize) -> String {
    let log = log.trim();
    let count = log.chars().count();
    if count <= most {
        return log.to_owned();
    }
    let end: String = log.chars().skip(count - most + 2).collect();
    // A line that is longer than most of that is cut.
    let whole = end.split_once('\n').map(|(_, whole)| whole);
    match whole.filter(|whole| whole.chars().count() * 2 > most) {
        Some(whole) => format!("…\n{whole}"),
        None => format!("…{end}"),
    }
}

/// The most that is kept of what a role wrote, for the file that people get; far beyond what anybody reads.
const WHOLE: usize = 400_000;

/// All of what a role wrote. How much of it a message shows is the template's matter.
pub(super) fn whole(text: &str) -> String {
    cut(text, WHOLE)
}

/// The first line of a text, for titles.
pub(super) fn title(text: &str) -> String {
    cut(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default(), 80)
}

pub(super) fn digest(values: &impl Serialize) -> String {
    use sha1::{Digest, Sha1};
    let bytes = Sha1::digest(serde_json::to_vec(values).unwrap_or_default());
    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// One line in the room of an open request about what was cut off and what happens next.
pub(super) fn interrupted(turn: &mut Turn<'_>, id: &RequestId, values: Value) {
    if turn.request(id).is_some_and(|request| !request.status.is_terminal()) {
        in_room(turn, id, Voice::Team, Priority::Progress, "room.interrupted", values);
    }
}
