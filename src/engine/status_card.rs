//! The status card of a request: what it says, and when it is edited.

use serde::Serialize;

use super::lanes::{self, StepOfCard};
use super::say::{self, CheckLine};
use super::train;
use super::turn::Turn;
use crate::domain::block::BlockCode;
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{Act, Button, ButtonAct, Priority, Target, Voice};
use crate::domain::request::{Request, RequestStatus};
use crate::domain::role::Role;

/// What the card says, as its template takes it.
#[derive(Debug, Serialize)]
struct StatusCard<'r> {
    request_id: &'r str,
    title: String,
    status: &'static str,
    place: usize,
    owner: &'r str,
    step: &'r str,
    lane: &'static str,
    line: Vec<StepOfCard>,
    next: &'static str,
    files: Vec<&'r str>,
    checks: Vec<CheckLine<'r>>,
    red_before: Vec<String>,
    commit: String,
    through: String,
    turns: u32,
    tokens: u64,
    cost: String,
    agent: &'r str,
    blocked: Option<BlockCode>,
    rehearsal: bool,
}

impl<'r> StatusCard<'r> {
    fn of(turn: &'r Turn<'_>, request: &'r Request) -> StatusCard<'r> {
        let step = request.params.workflow.as_ref().map_or("intake", |state| state.step.as_str());
        let decides = request.work.gate_id.is_some();
        let owner = match request.status {
            // It is a person's turn, whoever worked on it last.
            RequestStatus::Blocked => request.conversation.reply_route.author_name.as_str(),
            // Whoever decides: the card that asks names them.
            RequestStatus::Delegated if decides => "",
            RequestStatus::Queued
            | RequestStatus::Delegated
            | RequestStatus::Committed
            | RequestStatus::Completed
            | RequestStatus::Failed
            | RequestStatus::Cancelled => request.route.current_role.map_or("", Role::as_str),
        };
        let candidate = request.work.candidate.as_ref();
        let is_of_candidate = |commit: &str| candidate.is_some_and(|it| it.commit == commit);
        let evidence = request.work.evidence.as_ref().filter(|it| is_of_candidate(&it.commit));
        let short = |commit: Option<&str>| commit.map(say::short).unwrap_or_default();
        let usage = request.work.usage;
        StatusCard {
            request_id: request.request_id.as_str(),
            title: say::title(&request.scope),
            status: status(turn, request),
            place: train::place_now(turn, &request.request_id).unwrap_or(0),
            owner,
            step: if request.status.is_terminal() || decides { "" } else { step },
            lane: request.route.lane.map_or("", |choice| choice.lane.as_str()),
            line: lanes::line(turn, request),
            next: request.route.next_role.filter(|_| !decides).map_or("", Role::as_str),
            files: say::files(candidate),
            checks: say::checks(evidence),
            red_before: say::red_before(request),
            commit: short(request.outcome.commit_sha.as_deref()),
            through: short(request.outcome.proven_through.as_deref()),
            turns: request.work.spent.turns,
            tokens: usage.input_tokens + usage.output_tokens,
            cost: if usage.cost_usd > 0.0 {
                format!("{:.2}", usage.cost_usd)
            } else {
                String::new()
            },
            agent: &request.params.agent,
            blocked: request.blocked.as_ref().map(|it| it.code),
            rehearsal: request.params.agent.contains("rehearsal"),
        }
    }
}

/// The word of a card for where a request stands.
fn status(turn: &Turn<'_>, request: &Request) -> &'static str {
    match request.status {
        RequestStatus::Queued => "queued",
        RequestStatus::Delegated => {
            let role = request.route.current_role;
            let is_served = role.is_none_or(|role| turn.policy.serves.contains(&role));
            if request.work.gate_id.is_some() {
                "deciding"
            } else if role == Some(Role::VersionController) {
                "checking"
            } else if request.work.active_run.is_none() && !is_served {
                "queued"
            } else {
                "working"
            }
        }
        RequestStatus::Blocked => "blocked",
        RequestStatus::Committed => "done",
        RequestStatus::Completed if request.was_refused() => "kept_aside",
        RequestStatus::Completed if request.work.candidate.is_some() => "done",
        RequestStatus::Completed => "answered",
        RequestStatus::Failed => "failed",
        // Nobody has withdrawn what its sprint let go of.
        RequestStatus::Cancelled if request.params.released => "carried_over",
        RequestStatus::Cancelled => "cancelled",
    }
}

/// Queues an edit of the card where it would say something else.
pub(super) fn refresh(turn: &mut Turn<'_>, id: &RequestId) {
    let Some(request) = turn.request(id) else { return };
    let Some(room) = &request.conversation.room else { return };
    let card = StatusCard::of(turn, request);
    let digest = say::digest(&card);
    if room.card_digest == digest {
        return;
    }
    let values = serde_json::to_value(card).unwrap_or_default();
    let content = say::content("card", request.conversation.language, values);
    let act = Act::Card { content, buttons: buttons(request), menu: lanes::menu(request) };
    let mut card =
        say::outgoing(turn, Target::Room(id.clone()), Voice::Team, Priority::Progress, act);
    card.request_id = Some(id.clone());
    card.slot = Some(format!("card:{id}"));
    turn.send(card);
    if let Some(room) = turn.edit(id).and_then(|it| it.conversation.room.as_mut()) {
        room.card_digest = digest;
    }
}

/// What a person may press.
fn buttons(request: &Request) -> Vec<Button> {
    let asks = match &request.blocked {
        Some(blocked) if blocked.code == BlockCode::Questions => Some(ButtonAct::YouDecide),
        Some(_) => Some(ButtonAct::Retry),
        None => None,
    };
    let cancel = (!request.status.is_terminal()).then_some(ButtonAct::Cancel);
    let answer = lanes::may_only_be_answered(request).then_some(ButtonAct::Answer);
    let all = asks.into_iter().chain(cancel).chain(answer);
    all.map(|act| Button { act, subject: request.request_id.to_string(), version: 0 }).collect()
}
