//! What ended long ago makes room: it is packed, packs that are older still go, and so does work that was not used. Looked
//! for at the start, and then at most once a day, when a request has ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::team::{Team, now};
use crate::domain::ids::RequestId;
use crate::domain::time::Timestamp;
use crate::git::GitError;
use crate::platform::tasks;
use crate::store::{PackReport, Retention, StoreError};

/// A day, in seconds.
const DAY: u64 = 86_400;

#[derive(Debug, thiserror::Error)]
enum RetentionError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Looks for what is old until the team closes.
pub(super) async fn keep(team: Arc<Team>) {
    loop {
        let looked = now();
        let (look, stop) = (Arc::clone(&team), team.closing.clone());
        match tasks::blocking(move || make_room(&look, looked, &|| !stop.is_cancelled())).await {
            Ok(Ok((PackReport { requests: 0, files: 0, packs_removed: 0 }, 0))) => {}
            Ok(Ok((PackReport { requests, files, packs_removed }, forgotten))) => {
                tracing::info!(requests, files, packs_removed, forgotten, "old history was packed");
            }
            Ok(Err(error)) => tracing::warn!(%error, "old history stays until the next look"),
            Err(error) => tracing::warn!(%error, "old history stays until the next look"),
        }
        loop {
            tokio::select! {
                () = team.closing.cancelled() => return,
                () = team.signals.ended.notified() => {}
            }
            // A clock that was set back looks like no time at all.
            if now().seconds_since(looked) >= DAY || now() < looked {
                break;
            }
        }
    }
}

fn make_room(
    team: &Team,
    now: Timestamp,
    goes_on: &dyn Fn() -> bool,
) -> Result<(PackReport, usize), RetentionError> {
    let rules = &team.workspace.runtime.retention;
    let ago = |days: u64| {
        let millis = i64::try_from(days.saturating_mul(DAY * 1_000)).unwrap_or(i64::MAX);
        Timestamp::from_millis(now.millis().saturating_sub(millis))
    };
    // Held as those are who move refs: what ends meanwhile is looked at the next time.
    let _one = team.git.blocking_lock();
    let mut open: BTreeSet<RequestId> =
        team.hub.read(|state| state.requests.keys().cloned().collect());
    let branches = team.project.forget_branches(ago(rules.branches_days.get()), &open)?;
    let unmerged = team.project.requests_with_commits()?;
    open.extend(unmerged.iter().cloned());
    let forgotten = team.project.forget_lost(ago(rules.lost_days.get()), &open)?;
    let rules = Retention {
        ended_before: ago(rules.files_days.get()),
        packs_before: ago(rules.packs_days.get()),
        packs_bytes: rules.packs_mb.get().saturating_mul(1_000_000),
        unmerged,
    };
    Ok((team.store.pack_history(now, &rules, goes_on)?, branches + forgotten))
}
