//! A message that holds two pieces of work: whoever asked says whether they are one request or two, before anybody works
//! on them.

use serde_json::{Value, json};

use super::turn::Turn;
use super::{handoff, intent, say};
use crate::domain::block::BlockCode;
use crate::domain::ids::RequestId;
use crate::domain::outgoing::{Button, ButtonAct, Priority};
use crate::domain::request::{Blocked, EventKind, Request, RequestStatus};
use crate::domain::role::Role;

/// The pieces of work that a new request holds, where its words say that they are two matters; else none.
pub(super) fn pieces(request: &Request) -> Vec<String> {
    let parts = intent::read(&request.body).parts;
    let texts: Vec<String> = parts.into_iter().map(|part| part.text).collect();
    if texts.len() > 1 { texts } else { Vec::new() }
}

/// Begins a new request with the orchestrator, or asks first where it holds two pieces of work.
pub(super) fn begin(turn: &mut Turn<'_>, id: &RequestId, text: &str) {
    let pieces = turn.request(id).map(pieces).unwrap_or_default();
    if pieces.is_empty() {
        handoff::delegate(turn, id, Role::Orchestrator, None, text, None);
        return;
    }
    let now = turn.now;
    let Some(request) = turn.edit(id) else { return };
    request.status = RequestStatus::Blocked;
    request.route.current_role = Some(Role::Orchestrator);
    request.blocked = Some(Blocked {
        code: BlockCode::TwoParts,
        detail: String::new(),
        required_inputs: Vec::new(),
        since: now,
    });
    let who = request.conversation.reply_route.author_name.clone();
    turn.record(id, EventKind::Blocked, "runtime", BlockCode::TwoParts.word(), Value::Null);
    let button = |act| Button { act, subject: id.to_string(), version: 0 };
    let buttons = [ButtonAct::Split, ButtonAct::Together, ButtonAct::Cancel].map(button).to_vec();
    let values = json!({ "request_id": id, "pieces": pieces, "who": who });
    say::answer(turn, id, Priority::Approval, "two_parts", values, buttons);
}
