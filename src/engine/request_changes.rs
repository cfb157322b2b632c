//! Changes that a person wants to what was delivered. Each problem, in their words, is a criterion of another version of
//! the plan, which waits for approval; where a sprint delivered it, an item of the backlog.

use serde_json::json;

use super::authorize::{Granted, Resource, act, authorize, denied};
use super::decision::Answer;
use super::turn::Turn;
use super::{intake, lanes, progress, say, sprint};
use crate::domain::actor::Actor;
use crate::domain::criterion::{Criterion, written};
use crate::domain::ids::{ItemId, RequestId};
use crate::domain::language::Language;
use crate::domain::request::{
    EventKind, Params, ReplyRoute, Request, RequestConversation, RequestStatus, RequestWork, Room,
    fingerprint,
};
use crate::domain::routes::Lane;

/// The most problems that are told at once.
const MOST: usize = 20;

/// Takes them in. `old` is what was delivered.
pub(super) fn request_changes(
    turn: &mut Turn<'_>,
    actor: &Actor,
    old: &Request,
    text: &str,
) -> Answer {
    let language = Language::of(text).unwrap_or(old.conversation.language);
    let refused = |key: &str, values| Answer::Refused(say::content(key, language, values));
    let granted: Granted<act::RequestChanges> =
        match authorize(turn.policy, actor, Resource::Request(old)) {
            Ok(granted) => granted,
            Err(_) => return refused(denied(turn.policy, actor), json!({})),
        };
    let person = ReplyRoute::of(actor).author_id;
    let route = &old.conversation.reply_route;
    if route.is_dm && person.is_some() && person != route.author_id {
        // What somebody said to the team alone stays there.
        return refused("request_private", json!({ "request_id": old.request_id }));
    }
    let values = json!({ "request_id": old.request_id, "status": old.status });
    if old.status != RequestStatus::Committed {
        return refused("revise.not_delivered", values);
    }
    let limit = turn.policy.limits.message_chars;
    if text.chars().count() > limit {
        return refused("too_long", json!({ "limit": limit }));
    }
    let problems = problems(text);
    if problems.is_empty() {
        return refused("empty", json!({}));
    }
    if problems.len() > MOST {
        return refused("revise.too_many", json!({ "limit": MOST }));
    }
    if let Some(limit) = intake::too_many(turn, person, 1) {
        return refused("too_many", json!({ "limit": limit }));
    }
    if old.sprint_id.is_some() {
        return match items(turn, &granted, old, &problems) {
            Ok(items) => {
                Answer::Say(say::content("revise.items", language, json!({ "items": items })))
            }
            Err(error) => refused("backlog.refused", json!({ "reason": error.to_string() })),
        };
    }
    if let Some(open) = goes_on(turn, old) {
        let values = json!({ "request_id": old.request_id, "open": open });
        return refused("revise.under_way", values);
    }
    begin(turn, &granted, old, (text, language), problems)
}

/// The open request that goes on from what was delivered, or stands in the same room: a room has one.
fn goes_on(turn: &Turn<'_>, old: &Request) -> Option<RequestId> {
    let thread = |it: &Request| it.conversation.thread();
    let is_there = |it: &&Request| {
        let follows = it.params.follows_request_id.as_ref() == Some(&old.request_id);
        let shares = thread(it).is_some() && thread(it) == thread(old);
        !it.status.is_terminal() && (follows || shares)
    };
    turn.requests().find(is_there).map(|it| it.request_id.clone())
}

/// What is wrong, one thing a line.
fn problems(text: &str) -> Vec<Criterion> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches(['-', '*', '•']).trim());
    lines.map(Criterion::from).filter(|criterion| !criterion.is_blank()).collect()
}

fn items(
    turn: &mut Turn<'_>,
    _granted: &Granted<act::RequestChanges>,
    old: &Request,
    problems: &[Criterion],
) -> Result<Vec<ItemId>, sprint::backlog::MergeError> {
    let title = say::title(&old.scope);
    let entry = |problem: &Criterion| {
        json!({
            "title": say::cut(&problem.text, 80),
            "scope": format!("{}\n\n{title} ({})", problem.text, old.request_id),
            "kind": "bug",
            "acceptance_criteria": written(std::slice::from_ref(problem)),
        })
    };
    sprint::add_items(turn, &problems.iter().map(entry).collect())
}

/// Another request in the same room, held against what the person wrote whatever its planner adds.
fn begin(
    turn: &mut Turn<'_>,
    granted: &Granted<act::RequestChanges>,
    old: &Request,
    (text, language): (&str, Language),
    problems: Vec<Criterion>,
) -> Answer {
    let now = turn.now;
    let id = turn.ids.request(&turn.today());
    let room = old.conversation.thread();
    let channel_id = room.or(old.conversation.reply_route.channel_id);
    // What was said to the team alone stays so, wherever it is gone on with.
    let asked = &old.conversation.reply_route;
    let route = if asked.is_dm { asked.clone() } else { ReplyRoute::of(granted.actor()) };
    let count = problems.len();
    let request = Request {
        request_id: id.clone(),
        scope: text.trim().to_owned(),
        body: text.to_owned(),
        created_at: now,
        updated_at: now,
        fingerprint: fingerprint(&granted.name(), old.request_id.as_str(), "revise", text.trim()),
        params: Params { follows_request_id: Some(old.request_id.clone()), ..Params::default() },
        conversation: RequestConversation {
            reply_route: ReplyRoute { channel_id, message_id: None, ..route },
            language,
            room: room.map(|thread| Room { thread_id: Some(thread), ..Room::default() }),
            ..RequestConversation::default()
        },
        work: RequestWork {
            persons_criteria: problems,
            wants_changes: true,
            ..RequestWork::default()
        },
        ..Request::default()
    };
    turn.create(request);
    if let Some(request) = turn.edit(&id) {
        request.route.signals.clone_from(&old.route.signals);
    }
    turn.record(&id, EventKind::Created, &granted.name(), &say::title(text), json!({}));
    // There has to be a plan that somebody can approve.
    let lane = old.route.lane.map_or(Lane::Standard, |choice| choice.lane.max(Lane::Standard));
    lanes::name(turn, &id, lane);
    let decision = lanes::begin(turn, &id, None);
    progress::start(turn, &id, decision);
    let values = json!({ "request_id": id, "of": old.request_id, "count": count });
    Answer::Say(say::content("revise.begun", language, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_one_problem() {
        let read = |text: &str| written(&problems(text));
        assert_eq!(read("one\n\n - two\n* three \n•\n"), ["one", "two", "three"]);
        assert_eq!(read("(manual) it looks calm"), ["(manual) it looks calm"]);
        assert!(read(" \n-\n").is_empty());
    }
}
