//! What the planner asks before anything is built: a card with its questions, which whoever may write to the team
//! answers one by one, in words, or by leaving it to the planner ([`super::question_answers`]).

use serde_json::{Value, json};

use super::turn::Turn;
use super::{ending, intent, say};
use crate::domain::block::BlockCode;
use crate::domain::ids::{MessageId, RequestId};
use crate::domain::intent::Intent;
use crate::domain::modes::PlanningMode;
use crate::domain::outgoing::{ButtonAct, ChoiceMenu, Menu, Priority, Voice};
use crate::domain::plan_decision::{
    DecidedAnswer, DecidedBy, LONGEST_ANSWER, MOST_QUESTIONS, PlanDecision,
};
use crate::domain::policy::Policy;
use crate::domain::request::{EventKind, Request};
use crate::domain::time::Timestamp;

/// Whether people are asked about what the planner cannot know: once for a feature that somebody asked for.
#[must_use]
pub fn may_ask(policy: &Policy, request: &Request) -> bool {
    let is_feature = request
        .route
        .lane
        .is_some_and(|lane| [lane.by_rules, lane.by_orchestrator].contains(&Some(Intent::Feature)));
    policy.planning == PlanningMode::Ask
        && is_feature
        && request.todo_id.is_none()
        && request.duty().is_none()
        && (request.work.decisions.is_empty() || request.work.asked_back)
}

/// The planner has planned: whether a person answers its questions first. What nobody is asked is taken as it assumed. What
/// somebody asked back about is asked as the planner puts it now, or is no question any more.
pub(super) fn holds(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let Some(request) = turn.request(id) else { return false };
    let (asks, asked_back) = (may_ask(turn.policy, request), request.work.asked_back);
    let proposed = request.work.result.as_ref().and_then(|it| it.proposals.questions.clone());
    let proposed: Vec<PlanDecision> =
        proposed.unwrap_or_default().into_iter().map(|question| question.undecided()).collect();
    let mut decisions = request.work.decisions.clone();
    let told = if asked_back { 0 } else { decisions.len() };
    decisions.retain_mut(|it| {
        let again = proposed.iter().find(|one| one.question == it.question);
        match again {
            Some(again) if it.is_open() => it.clone_from(again),
            Some(_) | None => {}
        }
        !it.is_open() || again.is_some()
    });
    if !asks {
        PlanDecision::assume_open(&mut decisions);
    }
    let is_new = |it: &&PlanDecision| decisions.iter().all(|known| known.question != it.question);
    let mut new: Vec<PlanDecision> = proposed.iter().filter(is_new).cloned().collect();
    if new.is_empty() && !asked_back {
        return false;
    }
    let open = decisions.iter().filter(|it| it.is_open()).count();
    // One card has so many menus.
    let most = if asks { MOST_QUESTIONS.saturating_sub(open) } else { 0 };
    new.iter_mut().skip(most).for_each(PlanDecision::assume);
    decisions.extend(new);
    let waits = decisions.iter().any(PlanDecision::is_open);
    if let Some(request) = turn.edit(id) {
        request.work.decisions = decisions;
        request.work.asked_back = false;
    }
    if waits {
        ask(turn, id);
    } else {
        decided(turn, id, "planner");
        tell(turn, id, told);
    }
    waits
}

fn ask(turn: &mut Turn<'_>, id: &RequestId) {
    ending::stop(turn, id, BlockCode::Questions, "", Vec::new());
    post_card(turn, id, None);
}

/// Posts the questions that are open, at some time or at once.
pub(super) fn post_card(turn: &mut Turn<'_>, id: &RequestId, not_before: Option<Timestamp>) {
    let Some(request) = turn.request(id) else { return };
    // What was asked in a terminal has no place in which words would be heard, and in a channel only answers are.
    let route = &request.conversation.reply_route;
    let has_room = request.conversation.thread().is_some() || route.is_dm;
    let by_reply = !has_room && route.channel_id.is_some() && turn.policy.mentions;
    let open = say::decisions(request).into_iter().filter(|it| it["answer"].is_null());
    let open: Vec<Value> = open.collect();
    let values = json!({
        "request_id": id.as_str(),
        "decisions": open,
        "has_room": has_room,
        "by_reply": by_reply,
    });
    let menu = |(decision, number): (&PlanDecision, usize)| {
        Menu::Choice(ChoiceMenu {
            subject: format!("{id}.{number}"),
            label: format!("D-{number} · {}", decision.question),
            options: decision.options.clone(),
            assumption: decision.assumption.clone(),
        })
    };
    let all = request.work.decisions.iter().zip(1..);
    let menus = all.filter(|(decision, _)| decision.is_open()).map(menu).collect();
    let buttons = [ButtonAct::YouDecide, ButtonAct::Cancel];
    say::ask(turn, id, ("questions.card", values), (&buttons, 0, menus), not_before);
}

/// Says in the room what was decided, but for what was `told` before.
pub(super) fn tell(turn: &mut Turn<'_>, id: &RequestId, told: usize) {
    let Some(request) = turn.request(id) else { return };
    let decisions: Vec<Value> = say::decisions(request).into_iter().skip(told).collect();
    let values = json!({ "decisions": decisions });
    say::in_room(turn, id, Voice::Team, Priority::Progress, "questions.decided", values);
}

/// A line of the request's history.
pub(super) fn decided(turn: &mut Turn<'_>, id: &RequestId, by: &str) {
    let Some(request) = turn.request(id) else { return };
    let lines = request.work.decisions.iter().filter_map(PlanDecision::line);
    let lines = lines.collect::<Vec<_>>().join("; ");
    turn.record(id, EventKind::Decided, by, &say::cut(&lines, 300), Value::Null);
}

/// Whether people are asked now.
pub(super) fn is_asked(request: &Request) -> bool {
    request.blocked.as_ref().is_some_and(|it| it.code == BlockCode::Questions)
}

/// Words for a request that waits for answers: they answer what is open, and the planner reads them whole. A question
/// back answers nothing: the planner reads it, and may ask again.
pub(super) fn answered_in_words(turn: &mut Turn<'_>, id: &RequestId, by: &DecidedBy, words: &str) {
    if !turn.request(id).is_some_and(is_asked) || is_question(words) {
        return;
    }
    let text = flat(words);
    if let Some(request) = turn.edit(id) {
        for decision in request.work.decisions.iter_mut().filter(|it| it.is_open()) {
            decision.answer = Some(DecidedAnswer { text: text.clone(), by: by.clone() });
        }
    }
    let name = match by {
        DecidedBy::Person { name, .. } => name.as_str(),
        DecidedBy::Planner => "planner",
    };
    decided(turn, id, name);
    say::close_questions(turn, id);
    tell(turn, id, 0);
}

fn is_question(words: &str) -> bool {
    intent::read(words).intent == Some(Intent::Question)
}

/// Words as an answer: in one line.
fn flat(words: &str) -> String {
    say::cut(&words.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_ANSWER)
}

/// A message that answered questions has other words now: so have the answers. Whether there are any.
pub(super) fn reworded(request: &mut Request, message: MessageId, words: &str) -> bool {
    let mut changed = false;
    for decision in &mut request.work.decisions {
        if let Some(DecidedAnswer { text, by: DecidedBy::Person { message_id, .. } }) =
            &mut decision.answer
            && *message_id == Some(message)
            && !words.trim().is_empty()
        {
            *text = flat(words);
            changed = true;
        }
    }
    changed
}

/// A message that answered questions is gone: what it decided is as the planner assumes. Whether it decided anything.
pub(super) fn taken_back(request: &mut Request, message: MessageId) -> bool {
    let mut changed = false;
    for decision in &mut request.work.decisions {
        if let Some(DecidedAnswer { by: DecidedBy::Person { message_id, .. }, .. }) =
            &decision.answer
            && *message_id == Some(message)
        {
            decision.assume();
            changed = true;
        }
    }
    changed
}

/// The request is planned anew while people are asked: where nobody has answered anything, or somebody asked back, the
/// planner may ask again what is open; else the numbers stay, and that is taken as it was assumed.
pub(super) fn planned_anew(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.request(id) else { return };
    if !request.work.decisions.iter().any(PlanDecision::is_open) {
        return;
    }
    if let Some(request) = turn.edit(id) {
        let last = request.params.followups.last();
        let asks_back = last.is_some_and(|it| is_question(&it.body));
        let decisions = &mut request.work.decisions;
        if decisions.iter().all(PlanDecision::is_open) {
            decisions.clear();
        }
        request.work.asked_back = asks_back && !decisions.is_empty();
        if !request.work.asked_back {
            PlanDecision::assume_open(decisions);
        }
    }
    say::close_questions(turn, id);
    let is_settled = |it: &Request| !it.work.decisions.is_empty() && !it.work.asked_back;
    if turn.request(id).is_some_and(is_settled) {
        decided(turn, id, "planner");
        tell(turn, id, 0);
    }
}
