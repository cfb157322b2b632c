//! What could be typed into an option of a slash command. Whoever may not look is suggested nothing.

use super::super::team::Team;
use super::work;
use crate::discord::{Suggestion, Typing};
use crate::domain::commands::Takes;
use crate::domain::state::State;
use crate::engine::authorize::{Granted, Resource, act, authorize};
use crate::engine::{content_of, standing};

/// The most that Discord shows.
const MOST: usize = 25;

/// What fits to what is typed so far.
pub(in crate::service) fn suggest(team: &Team, typing: &Typing) -> Vec<Suggestion> {
    let granted = team.hub.consult(|_, policy| authorize(policy, &typing.actor, Resource::Team));
    match granted {
        Err(_) => Vec::new(),
        Ok(granted) => team.hub.read(|state| fitting(&granted, state, typing)),
    }
}

fn fitting(_granted: &Granted<act::Look>, state: &State, typing: &Typing) -> Vec<Suggestion> {
    let all: Vec<Suggestion> = match typing.takes {
        Takes::Request => standing::open(state)
            .map(|request| Suggestion {
                name: format!("{} · {}", standing::title(request), request.request_id),
                value: request.request_id.to_string(),
            })
            .collect(),
        Takes::Waiting => work::waiting(state)
            .into_iter()
            .map(|(gate, request)| {
                let content: String = content_of(gate).chars().take(10).collect();
                Suggestion {
                    name: format!("{} · {content}", standing::title(request)),
                    value: format!("{}@{content}", request.request_id),
                }
            })
            .collect(),
        Takes::RefusedMessage => standing::refused(state)
            .map(|outgoing| Suggestion {
                name: format!("{} · {}", outgoing.short_id(), standing::refusal(state, outgoing)),
                value: outgoing.short_id(),
            })
            .collect(),
        Takes::Text
        | Takes::Number
        | Takes::Yes
        | Takes::File
        | Takes::Kind
        | Takes::Verdict
        | Takes::Lane => Vec::new(),
    };
    let typed = typing.typed.trim().to_lowercase();
    all.into_iter().filter(|it| it.name.to_lowercase().contains(&typed)).take(MOST).collect()
}
