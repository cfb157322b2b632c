//! A request that waits for somebody gives its worktree back: what it holds is kept in the project's repository and
//! comes back when the request goes on.

use std::sync::Arc;

use super::effect_error::EffectError;
use super::team::{Team, now};
use crate::domain::ids::RequestId;
use crate::domain::request::RequestStatus;
use crate::domain::state::State;
use crate::platform::{files, tasks};

/// Puts the worktrees of blocked requests away until the team closes.
pub(super) async fn keep(team: Arc<Team>) {
    while !team.closing.is_cancelled() {
        let waiting: Vec<RequestId> = team.hub.read(|state| {
            let ids = state.requests.keys().filter(|id| waits(state, id));
            ids.cloned().collect()
        });
        for id in waiting {
            if let Err(trouble) = put_away(&team, &id).await {
                tracing::warn!(request = %id, %trouble, "its worktree stays where it is");
            }
        }
        tokio::select! {
            () = team.closing.cancelled() => return,
            () = team.signals.waiting.notified() => {}
        }
    }
}

/// Whether nobody works on a request, or is about to.
fn waits(state: &State, id: &RequestId) -> bool {
    state.requests.get(id).is_some_and(|it| it.status == RequestStatus::Blocked)
        && !state.runs.values().any(|run| run.request_id == *id)
        && !state.effects.values().any(|effect| effect.kind.request_id() == Some(id))
        && !state.envelopes.values().any(|it| it.envelope.request_id == *id)
}

async fn put_away(team: &Arc<Team>, id: &RequestId) -> Result<(), EffectError> {
    let _one = team.git.lock().await;
    let root = team.worktrees();
    let has_one = files::exists(&root.join(id.as_str()).join("worktree.json"));
    // It may have gone on meanwhile.
    if !has_one || !team.hub.read(|state| waits(state, id)) {
        return Ok(());
    }
    let (project, own) = (team.project.clone(), id.clone());
    tasks::blocking(move || project.tree_for(&own, &root, false)?.put_away(now())).await??;
    tracing::info!(request = %id, "its worktree was put away");
    Ok(())
}
