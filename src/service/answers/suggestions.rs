//! What could be typed into an option of a slash command. Whoever may not look is suggested nothing.

use std::sync::Arc;

use super::super::team::Team;
use super::work;
use crate::discord::{Suggestion, Typing};
use crate::domain::actor::Actor;
use crate::domain::commands::Takes;
use crate::domain::item::{Item, ItemStatus};
use crate::domain::sprint::TodoStatus;
use crate::domain::state::State;
use crate::engine::authorize::{Granted, Resource, act, authorize};
use crate::engine::{content_of, standing, verify};

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
        Takes::Request => requests(state, &typing.actor).collect(),
        Takes::Subject => {
            requests(state, &typing.actor).chain(todos(state)).chain(items(state)).collect()
        }
        Takes::Waiting => work::waiting(state)
            .into_iter()
            .map(|(gate, request)| {
                let content: String = content_of(gate).chars().take(10).collect();
                Suggestion {
                    name: format!("{} · {content}", standing::title_for(request, &typing.actor)),
                    value: format!("{}@{content}", request.request_id),
                }
            })
            .collect(),
        Takes::ManualCriterion => verify::waiting(state, &typing.actor)
            .iter()
            .filter_map(|one| {
                let (id, text) = (one["criterion"].as_str()?, one["text"].as_str()?);
                Some(Suggestion { name: named(text, id), value: id.to_owned() })
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
        | Takes::ManualVerdict
        | Takes::Lane => Vec::new(),
    };
    let typed = typing.typed.trim().to_lowercase();
    let fits = |it: &Suggestion| {
        [&it.name, &it.value].iter().any(|text| text.to_lowercase().contains(&typed))
    };
    all.into_iter().filter(fits).take(MOST).collect()
}

fn requests(state: &State, reader: &Actor) -> impl Iterator<Item = Suggestion> {
    standing::open(state).map(|request| Suggestion {
        name: format!("{} · {}", standing::title_for(request, reader), request.request_id),
        value: request.request_id.to_string(),
    })
}

/// The todos of the active sprint that have no request yet.
fn todos(state: &State) -> impl Iterator<Item = Suggestion> {
    let todos = state.active_sprint().into_iter().flat_map(|sprint| &sprint.work.todos);
    todos.filter(|todo| todo.progress.status == TodoStatus::Queued).map(|todo| Suggestion {
        name: named(&todo.title, todo.progress.todo_id.as_str()),
        value: todo.progress.todo_id.to_string(),
    })
}

/// The items that no sprint has taken.
fn items(state: &State) -> impl Iterator<Item = Suggestion> {
    let waits = |item: &&Arc<Item>| match item.status {
        ItemStatus::Pending | ItemStatus::Blocked => true,
        ItemStatus::Selected | ItemStatus::Done | ItemStatus::CarriedOver | ItemStatus::Dropped => {
            false
        }
    };
    state.backlog.values().filter(waits).map(|item| Suggestion {
        name: named(&item.title, item.backlog_id.as_str()),
        value: item.backlog_id.to_string(),
    })
}

fn named(title: &str, id: &str) -> String {
    let title: String = title.chars().take(60).collect();
    format!("{title} · {id}")
}
