//! What the planner asks before anything is built: a card with its questions, which whoever may write to the team
//! answers one by one, in words, or by leaving it to the planner ([`super::question_answers`]).

use serde_json::json;

use super::turn::Turn;
use super::{ending, say};
use crate::domain::block::BlockCode;
use crate::domain::ids::RequestId;
use crate::domain::intent::Intent;
use crate::domain::modes::PlanningMode;
use crate::domain::outgoing::{Act, Button, ButtonAct, ChoiceMenu, Priority, Target, Voice};
use crate::domain::plan_decision::{DecidedAnswer, DecidedBy, LONGEST_ANSWER, PlanDecision};
use crate::domain::policy::Policy;
use crate::domain::request::{Request, RequestStatus};

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
        && request.work.decisions.is_empty()
}

/// The planner has planned: whether a person answers its questions first. What nobody is asked is taken as it assumed.
pub(super) fn holds(turn: &mut Turn<'_>, id: &RequestId) -> bool {
    let Some(request) = turn.request(id) else { return false };
    let asks = may_ask(turn.policy, request);
    let proposed = request.work.result.as_ref().and_then(|it| it.proposals.questions.clone());
    let known = &request.work.decisions;
    let is_new = |it: &PlanDecision| known.iter().all(|known| known.question != it.question);
    let new: Vec<PlanDecision> = proposed
        .unwrap_or_default()
        .into_iter()
        .map(|question| question.undecided())
        .filter(is_new)
        .map(|it| PlanDecision { answer: (!asks).then(|| it.assumed()), ..it })
        .collect();
    if new.is_empty() {
        return false;
    }
    if let Some(request) = turn.edit(id) {
        request.work.decisions.extend(new);
    }
    if asks {
        ask(turn, id);
    } else {
        tell(turn, id);
    }
    asks
}

fn ask(turn: &mut Turn<'_>, id: &RequestId) {
    ending::stop(turn, id, BlockCode::Questions, "", Vec::new());
    let Some(request) = turn.request(id) else { return };
    let values = json!({ "request_id": id.as_str(), "decisions": say::decisions(request) });
    let menu = |(decision, number): (&PlanDecision, usize)| ChoiceMenu {
        subject: format!("{id}.{number}"),
        label: format!("D-{number} · {}", decision.question),
        options: decision.options.clone(),
        assumption: decision.assumption.clone(),
    };
    let menus = request.work.decisions.iter().zip(1..).map(menu).collect();
    let button = |act| Button { act, subject: id.to_string(), version: 0 };
    let act = Act::Post {
        content: say::content("questions.card", request.conversation.language, values),
        reply_to: None,
        mention: request.conversation.reply_route.author_id,
        buttons: vec![button(ButtonAct::YouDecide), button(ButtonAct::Cancel)],
        gate_id: None,
        files: Vec::new(),
        room_of: None,
        menus,
    };
    let target = Target::Room(id.clone());
    let mut outgoing = say::outgoing(turn, target, Voice::Team, Priority::Approval, act);
    outgoing.request_id = Some(id.clone());
    turn.send(outgoing);
}

/// Says in the room what was decided.
pub(super) fn tell(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.request(id) else { return };
    let values = json!({ "decisions": say::decisions(request) });
    say::in_room(turn, id, Voice::Team, Priority::Progress, "questions.decided", values);
}

/// Whether people are asked now.
pub(super) fn is_asked(request: &Request) -> bool {
    request.status == RequestStatus::Blocked
        && request.blocked.as_ref().is_some_and(|it| it.code == BlockCode::Questions)
}

/// Words for a request that waits for answers: they answer what is open, and the planner reads them whole.
pub(super) fn answered_in_words(turn: &mut Turn<'_>, id: &RequestId, by: &DecidedBy, words: &str) {
    if !turn.request(id).is_some_and(is_asked) {
        return;
    }
    let text = say::cut(&words.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_ANSWER);
    if let Some(request) = turn.edit(id) {
        for decision in request.work.decisions.iter_mut().filter(|it| it.is_open()) {
            decision.answer = Some(DecidedAnswer { text: text.clone(), by: by.clone() });
        }
    }
    close_card(turn, id);
    tell(turn, id);
}

/// The request is planned anew: what was asked and not answered may be asked again.
pub(super) fn withdrawn(turn: &mut Turn<'_>, id: &RequestId) {
    if turn.request(id).is_some_and(|it| it.work.decisions.iter().any(PlanDecision::is_open)) {
        if let Some(request) = turn.edit(id) {
            request.work.decisions.retain(|decision| !decision.is_open());
        }
        close_card(turn, id);
    }
}

/// Nothing is asked any more: the card keeps no buttons.
pub(super) fn close_card(turn: &mut Turn<'_>, id: &RequestId) {
    if let Some(card) = turn.edit(id).and_then(|request| request.work.questions_card.take()) {
        say::unbutton(turn, card, Some(id));
    }
}
