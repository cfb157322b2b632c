//! What people answer to the planner's questions. Where nothing else is wanted than what it assumed, its plan stands;
//! else it plans once more, with the decisions before it.

use serde_json::{Value, json};

use super::authorize::{Resource, act, authorize};
use super::decision::Answer;
use super::questions::{decided, is_asked, tell};
use super::turn::Turn;
use super::{plan_items, progress, say};
use crate::domain::actor::Actor;
use crate::domain::ids::{ChannelId, MessageId, RequestId};
use crate::domain::lifecycle::StepKind;
use crate::domain::plan_decision::{
    DecidedAnswer, DecidedBy, GivenAnswer, LONGEST_ANSWER, NumberedAnswer, PlanDecision,
};
use crate::domain::request::{RequestStatus, SelectionSource};

/// Somebody answers some of the questions, and leaves the `rest` to the planner or for later. Until the last one is
/// answered an answer can be changed.
pub(super) fn answer(
    turn: &mut Turn<'_>,
    actor: &Actor,
    id: &RequestId,
    (answers, rest): (&[NumberedAnswer], bool),
    card: Option<(ChannelId, MessageId)>,
) -> Answer {
    let language = turn.policy.language;
    let refused = |key: &str, values: Value| Answer::Refused(say::content(key, language, values));
    let Some(request) = turn.request(id) else {
        return refused("unknown_request", json!({ "request_id": id.as_str() }));
    };
    let Ok(granted) = authorize::<act::Answer>(turn.policy, actor, Resource::Request(request))
    else {
        return refused("not_allowed", json!({}));
    };
    if !is_asked(request) {
        return refused("questions.closed", json!({ "request_id": id.as_str() }));
    }
    let mut decisions = request.work.decisions.clone();
    let asked_by = request.work.questions_card;
    let status_card = request.conversation.status_card();
    let is_status = card.is_some_and(|(_, message)| Some(message) == status_card);
    if card.is_some() && asked_by.is_some() && asked_by != card && !is_status {
        // An older card is about other questions.
        return refused("gate.stale", json!({}));
    }
    let message_id = card.map(|(_, message_id)| message_id);
    let asker = request.params.open_end().map(|it| it.author_id);
    let takes_back = asker.is_some() && asker == actor.person_id();
    let by = DecidedBy::Person { name: granted.name(), message_id };
    for NumberedAnswer { number, answer } in answers {
        let all = decisions.len();
        let wrong = || refused("questions.unknown", json!({ "number": number, "questions": all }));
        let Some(decision) = number.checked_sub(1).and_then(|at| decisions.get_mut(at)) else {
            return wrong();
        };
        let text = match answer {
            GivenAnswer::YouDecide => {
                decision.assume();
                continue;
            }
            GivenAnswer::Option(at) => {
                let options = &decision.options;
                match at.checked_sub(1).and_then(|at| options.get(at)) {
                    Some(option) => option.clone(),
                    None => {
                        let values = json!({ "number": number, "options": options.len() });
                        return refused("questions.no_option", values);
                    }
                }
            }
            GivenAnswer::Words(words) if words.chars().count() > LONGEST_ANSWER => {
                return refused("too_long", json!({ "limit": LONGEST_ANSWER }));
            }
            GivenAnswer::Words(words) => words.clone(),
        };
        decision.answer = Some(DecidedAnswer { text, by: by.clone() });
    }
    if rest {
        PlanDecision::assume_open(&mut decisions);
    }
    let open: Vec<String> = decisions
        .iter()
        .zip(1..)
        .filter(|(decision, _)| decision.is_open())
        .map(|(_, number)| format!("D-{number}"))
        .collect();
    if let Some(request) = turn.edit(id) {
        request.work.decisions = decisions;
        if takes_back {
            // Whoever wanted it to end says what is to be built.
            request.params.end_is_answered();
        }
    }
    decided(turn, id, &granted.name());
    if open.is_empty() {
        go_on(turn, id);
    }
    // Whoever chooses on the card sees there what they chose.
    match (card, open.is_empty()) {
        (Some(_), _) => Answer::Accepted,
        (None, is_all) => {
            let key = if is_all { "questions.all_answered" } else { "questions.left" };
            let values = json!({ "request_id": id.as_str(), "open": open });
            Answer::Say(say::content(key, language, values))
        }
    }
}

/// Somebody lets the request go on: what is open is left to the planner. Whether it waited for answers.
pub(super) fn left_to_planner(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    if !turn.request(id).is_some_and(is_asked) {
        return false;
    }
    if let Some(request) = turn.edit(id) {
        PlanDecision::assume_open(&mut request.work.decisions);
    }
    decided(turn, id, "planner");
    go_on(turn, id);
    true
}

/// Every question has its answer.
fn go_on(turn: &mut Turn<'_>, id: &RequestId) {
    say::close_questions(turn, id);
    let Some(request) = turn.edit(id) else { return };
    if !request.work.decisions.iter().all(PlanDecision::is_as_assumed) {
        tell(turn, id, 0);
        progress::resume(turn, id, SelectionSource::PlanningResume);
        return;
    }
    // The plan was made by these answers.
    request.status = RequestStatus::Delegated;
    request.blocked = None;
    let plan = turn.stands(id).and_then(|(lifecycle, state)| {
        Some((lifecycle.step_of(StepKind::Plan)?.clone(), state.step))
    });
    let holds = plan.is_some_and(|(from, next)| {
        plan_items::holds(turn, id, &from) || progress::holds_plan(turn, id, &from, next)
    });
    if holds {
        // Its card shows them.
        return;
    }
    tell(turn, id, 0);
    progress::begin_current(turn, id);
}
