//! Answers to questions about the team. They change nothing, so no decision is made for them; who may ask
//! is told by the same gate as everything else.

mod spending;
mod suggestions;
mod team;
mod work;

use std::sync::Arc;

use serde_json::{Value, json};

use super::team::{Team, now};
use crate::domain::actor::Actor;
use crate::domain::commands::Question;
use crate::domain::ids::{RequestId, SubjectId};
use crate::domain::language::Language;
use crate::domain::outgoing::Content;
use crate::domain::state::State;
use crate::engine::authorize::{Granted, Resource, act, authorize};
use crate::engine::board::board;
use crate::engine::{standing, verify, why};
use crate::store;

pub(super) use suggestions::suggest;

/// What `actor` is told; `Err` where that is why there is no answer.
pub(super) fn answer(
    team: &Team,
    actor: &Actor,
    question: &Question,
    language: Language,
) -> Result<Content, Content> {
    let granted = team.hub.consult(|_, policy| authorize(policy, actor, Resource::Team));
    match granted {
        Err(_) => Err(content("not_allowed", json!({}), language)),
        Ok(granted) => look(team, actor, &granted, question, language),
    }
}

fn content(key: &str, values: Value, language: Language) -> Content {
    let values = values.as_object().cloned().unwrap_or_default();
    Content { key: key.to_owned(), values, language }
}

fn look(
    team: &Team,
    actor: &Actor,
    _granted: &Granted<act::Look>,
    question: &Question,
    language: Language,
) -> Result<Content, Content> {
    let (key, values) = match question {
        Question::Status => {
            ("overview", team.hub.read(|state| standing::overview(state, Some(actor))))
        }
        Question::Why(id) => return why(team, actor, id, language),
        Question::Sprint => ("sprint.status", {
            let zone = team.workspace.runtime.sprint.timezone.0;
            team.hub.read(|state| standing::sprint(state, zone))
        }),
        Question::Board => ("board", team.hub.consult(|state, policy| board(state, policy, now()))),
        Question::Verify => ("verify.list", team.hub.read(|state| verifications(state, actor))),
        Question::Backlog => ("backlog.list", team.hub.read(work::backlog)),
        Question::Models => ("models", team::models(&team.workspace)),
        Question::Cost => ("cost", spending::report(team, now())),
        Question::Health => ("health", team::health(team, now())),
        Question::Settings => ("settings", team::settings(team)),
    };
    Ok(content(key, values, language))
}

/// The criteria that wait for a person, as far as an answer shows them.
fn verifications(state: &State, reader: &Actor) -> Value {
    let all = verify::waiting(state, reader);
    let more = all.len().saturating_sub(standing::LINES);
    json!({ "lines": all.into_iter().take(standing::LINES).collect::<Vec<_>>(), "more": more })
}

/// Why something does not move; an ended request is looked up where it was put away.
fn why(
    team: &Team,
    reader: &Actor,
    id: &SubjectId,
    language: Language,
) -> Result<Content, Content> {
    let request = team.hub.read(|state| why::request(state, id).cloned()).or_else(|| {
        let ended = RequestId::parse(id.as_str()).ok()?;
        store::read_request(team.root(), &ended).ok().flatten().map(Arc::new)
    });
    let known = match request {
        // What somebody said to the team alone stays there.
        Some(request) if request.conversation.reply_route.is_hidden_from(reader) => {
            let values = json!({ "request_id": request.request_id });
            return Err(content("request_private", values, language));
        }
        Some(request) => {
            Some(team.hub.consult(|state, policy| why::why(state, policy, &request, now())))
        }
        None => team.hub.consult(|state, policy| why::about(state, policy, id, now())),
    };
    match known {
        // In the language of who asks, also about another's request.
        Some(content) => Ok(Content { language, ..content }),
        None => Err(content("unknown_subject", json!({ "id": id.as_str() }), language)),
    }
}
