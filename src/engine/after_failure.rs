//! What people decide about a request at which the team has tried all that it may
//! ([`Request::has_given_up`](crate::domain::request::Request::has_given_up)): they say more, have it split, skip it with
//! a reason, pause it, or withdraw it.

use serde_json::{Value, json};

use super::authorize::{Granted, Resource, act, authorize, denied};
use super::decision::Answer;
use super::lifecycle::{self, ReportChange, WorkflowDecision};
use super::say::CatalogText;
use super::split::asked;
use super::turn::Turn;
use super::{ending, progress, questions, say, sprint};
use crate::domain::actor::Actor;
use crate::domain::ids::{ItemId, RequestId};
use crate::domain::outgoing::{Priority, Voice};
use crate::domain::request::{EventKind, Request, RequestStatus, SelectionSource, SkipDecision};

/// What is said where it has not come so far.
const NOT_GIVEN_UP: &str = "not_given_up";
/// What is said of an item that is to be divided before it is built.
const SPLIT_FIRST: &str = "Split it into smaller items first.";
/// The longest reason that is kept, in characters.
const REASON: usize = 600;

/// Somebody who may keep the backlog decides about the item of a todo that its sprint has put aside.
fn of_put_aside(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    decide: impl FnOnce(&mut Turn<'_>, &ItemId, &str) -> CatalogText,
) -> Option<Answer> {
    let item = sprint::put_aside_with(turn, id)?;
    let (item, title) = (item.backlog_id.clone(), item.title.clone());
    let language = turn.policy.language;
    let granted: Result<Granted<act::KeepBacklog>, _> =
        authorize(turn.policy, actor, Resource::Team);
    let Ok(granted) = granted else {
        return Some(Answer::Refused(say::content(
            denied(turn.policy, actor),
            language,
            json!({}),
        )));
    };
    let (key, mut values) = decide(turn, &item, &granted.name());
    values["title"] = json!(title);
    Some(Answer::Say(say::content(key, language, values)))
}

/// Words for what was put aside: it is possible again, with them.
pub(super) fn with_words(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    words: &str,
) -> Option<Answer> {
    bring_back(turn, actor, id, words, "backlog.reopened")
}

fn bring_back(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    words: &str,
    key: &'static str,
) -> Option<Answer> {
    of_put_aside(turn, actor, id, |turn, item, by| {
        sprint::bring_back(turn, item, by, words, &[]);
        (key, json!({}))
    })
}

/// The planner divides it: a person wants it as several items.
pub(super) fn split(turn: &mut Turn<'_>, actor: &Actor, id: &RequestId) -> Result<Answer, Answer> {
    if let Some(answer) = bring_back(turn, actor, id, SPLIT_FIRST, "split.later") {
        return Ok(answer);
    }
    let (request, granted) =
        asked::<act::Retry>(turn, actor, id, Request::has_given_up, NOT_GIVEN_UP)?;
    let language = request.conversation.language;
    let Some((lifecycle, state)) = turn.stands(id) else {
        return Err(Answer::Refused(say::content("gate.stale", language, json!({}))));
    };
    turn.record(id, EventKind::Retried, &granted.name(), "as several items", Value::Null);
    questions::planned_anew(turn, id);
    if let Some(request) = turn.edit(id) {
        request.params.wants_items = true;
        request.work.spent.renew();
        request.work.plan_review.renew();
        request.chosen_by(SelectionSource::BlockedRetry);
    }
    let mut decision = lifecycle::resume(&lifecycle, &state);
    if let WorkflowDecision::Next { notes, .. } = &mut decision {
        notes.push(ReportChange::AsItems);
    }
    progress::follow(turn, id, decision);
    let values = json!({ "request_id": id.as_str(), "by": granted.name() });
    Ok(Answer::Say(say::content("split.asked", language, values)))
}

/// Nobody does it: it ends, and its item with it, for a reason.
pub(super) fn skip(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    reason: &str,
) -> Result<Answer, Answer> {
    let reason = say::cut(reason.trim(), REASON);
    if reason.is_empty() {
        return Err(Answer::Refused(say::content(
            "no_skip_reason",
            turn.policy.language,
            json!({}),
        )));
    }
    let skipped = of_put_aside(turn, actor, id, |turn, item, by| {
        let skipped = SkipDecision { by: by.to_owned(), reason: reason.clone() };
        sprint::drop_item(turn, item, skipped.line());
        ("final.skipped", json!({ "request_id": id.as_str(), "by": by, "reason": reason }))
    });
    if let Some(answer) = skipped {
        return Ok(answer);
    }
    let (request, granted) =
        asked::<act::Cancel>(turn, actor, id, Request::has_given_up, NOT_GIVEN_UP)?;
    let language = request.conversation.language;
    let by = granted.name();
    let values = json!({ "request_id": id.as_str(), "by": by, "reason": reason });
    if let Some(request) = turn.edit(id) {
        request.outcome.skipped = Some(SkipDecision { by, reason });
    }
    ending::end(turn, id, RequestStatus::Cancelled, "final.skipped", values.clone());
    Ok(Answer::Say(say::content("final.skipped", language, values)))
}

/// It is paused: nobody is expected to decide about it now. The sprint that it belongs to begins nothing more, and goes
/// on with it when it is begun again.
pub(super) fn pause(turn: &mut Turn<'_>, actor: &Actor, id: &RequestId) -> Result<Answer, Answer> {
    // What was put aside waits already.
    let values = json!({ "request_id": id.as_str() });
    if let Some(answer) = of_put_aside(turn, actor, id, |_, _, _| ("paused", values)) {
        return Ok(answer);
    }
    let (request, granted) =
        asked::<act::Retry>(turn, actor, id, Request::has_given_up, NOT_GIVEN_UP)?;
    let language = request.conversation.language;
    let in_sprint = turn.is_of_active_sprint(&request);
    let sprint_goes_on =
        in_sprint && turn.active_sprint().is_some_and(|it| it.work.paused_by.is_none());
    if request.is_paused() && !sprint_goes_on {
        let values = json!({ "request_id": id.as_str() });
        return Ok(Answer::Say(say::content("paused", language, values)));
    }
    if in_sprint {
        match sprint::commands::may(turn, actor) {
            Ok(granted) => sprint::commands::paused(turn, &granted),
            Err((key, values)) => {
                return Err(Answer::Refused(say::content(key, language, values)));
            }
        }
    }
    let by = granted.name();
    turn.record(id, EventKind::Paused, &by, "", Value::Null);
    let told = json!({ "request_id": id.as_str(), "by": by, "in_sprint": in_sprint });
    if let Some(blocked) = turn.edit(id).and_then(|request| request.blocked.as_mut()) {
        blocked.paused_by = Some(by);
    }
    say::in_room(turn, id, Voice::Team, Priority::Progress, "room.paused", told);
    let values = json!({ "request_id": id.as_str() });
    Ok(Answer::Say(say::content("paused", language, values)))
}
