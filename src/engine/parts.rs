//! A message that holds several pieces of work, as the orchestrator reads it: whoever asked says whether they are one
//! request ([`super::split`]), before anybody works on them.

use std::collections::BTreeSet;

use serde_json::json;

use super::turn::Turn;
use super::{ending, say};
use crate::domain::block::BlockCode;
use crate::domain::ids::RequestId;
use crate::domain::outgoing::ButtonAct;
use crate::domain::result::RoleResult;

/// The most pieces that one message is asked about.
const MOST: usize = 5;

/// The orchestrator hands a request on: whether a person says first how many requests it is. That is asked once.
pub(super) fn holds(turn: &mut Turn<'_>, id: &RequestId, result: &RoleResult) -> bool {
    let Some(request) = turn.request(id) else { return false };
    let said = result.proposals.request_parts.as_deref().unwrap_or_default();
    let mut seen = BTreeSet::new();
    let parts: Vec<String> = said
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty() && seen.insert(part.to_lowercase()))
        .map(str::to_owned)
        .collect();
    // Who names a lane means one piece of work.
    let is_asked = !request.params.parts.is_empty();
    let is_named = request.route.lane.is_some();
    let is_asked_about = (2..=MOST).contains(&parts.len());
    if !is_asked_about || is_asked || is_named || request.todo_id.is_some() {
        return false;
    }
    let values = json!({ "request_id": id.as_str(), "parts": parts });
    ending::stop(turn, id, BlockCode::Parts, "", Vec::new());
    let Some(request) = turn.edit(id) else { return false };
    request.params.parts = parts;
    let version = request.params.parts_version();
    let buttons = [ButtonAct::Split, ButtonAct::Together, ButtonAct::Cancel];
    say::ask(turn, id, ("parts.card", values), (&buttons, version, Vec::new()), None);
    true
}
