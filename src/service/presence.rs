//! What the bot shows beside its name: whether the team works, on how much, and whether it waits for people.

use std::sync::Arc;

use serde_json::json;

use super::team::Team;
use crate::discord::Presence;
use crate::domain::outgoing::Content;
use crate::domain::policy::Policy;
use crate::domain::request::RequestStatus;
use crate::domain::state::State;

/// Shows it anew whenever requests change, until the team closes.
pub(super) async fn keep(team: Arc<Team>) {
    loop {
        let (content, waits) = team.hub.consult(now);
        match team.catalog.render(&content) {
            Ok(rendered) => team.link.show(Presence { text: rendered.text, waits }),
            Err(error) => tracing::error!(%error, "what the team is doing cannot be said"),
        }
        tokio::select! {
            () = team.closing.cancelled() => return,
            () = team.signals.presence.notified() => {}
        }
    }
}

fn now(state: &State, policy: &Policy) -> (Content, bool) {
    let open = state.requests.values().filter(|request| !request.status.is_terminal());
    let (mut working, mut waiting) = (0, 0);
    for request in open {
        if request.work.gate_id.is_some() || request.status == RequestStatus::Blocked {
            waiting += 1;
        } else {
            working += 1;
        }
    }
    let values = json!({ "working": working, "waiting": waiting });
    let values = values.as_object().cloned().unwrap_or_default();
    let content = Content { key: "presence".to_owned(), values, language: policy.language };
    (content, working == 0 && waiting > 0)
}
