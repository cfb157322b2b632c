//! The orchestrator's inbox, and what other programs put into the queue's folders.

use std::sync::Arc;

use super::HubError;
use super::team::{Team, now, until};
use crate::domain::event::Event;
use crate::platform::tasks;
use crate::relay;
use crate::relay::watch::{self, KnownEnvelopes, ScanResult, WatchError, Watcher};
use crate::store::StoreError;

/// Applies reports one after the other, in the order of the queue.
pub(super) async fn apply_reports(team: Arc<Team>) {
    while !team.closing.is_cancelled() {
        let (next, due) = team
            .hub
            .read(|state| (relay::next_report(state, now()), relay::next_due(state, now())));
        match next {
            Some(relay_id) => {
                if team.insist(Event::ReportReady { relay_id }).await.is_err() {
                    // Without a hub the team is about to close.
                    return team.closing.cancelled().await;
                }
            }
            None => tokio::select! {
                () = team.closing.cancelled() => return,
                () = team.signals.reports.notified() => {}
                () = until(due) => {}
            },
        }
    }
}

/// Why a look into the inboxes failed.
#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error("the look was cut off: {0}")]
    Cut(#[from] tokio::task::JoinError),
}

/// Takes in what other programs drop and what operators move back from the dead letters.
pub(super) async fn watch(team: Arc<Team>) {
    let watcher = match Watcher::new(team.root()) {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, "the inboxes are not watched");
            None
        }
    };
    loop {
        if let Err(trouble) = look(&team).await {
            tracing::warn!(%trouble, "the inboxes could not be looked through");
        }
        let Some(watcher) = &watcher else { return team.closing.cancelled().await };
        tokio::select! {
            () = team.closing.cancelled() => return,
            () = watcher.changed() => {}
        }
    }
}

async fn look(team: &Arc<Team>) -> Result<(), RelayError> {
    let (root, hub) = (team.root().to_owned(), team.hub.clone());
    let look = move || watch::candidates(&root, || hub.read(KnownEnvelopes::of));
    let unknown = tasks::blocking(look).await??;
    if unknown.is_empty() {
        return Ok(());
    }
    // First the records, then the files: an envelope that was consumed before this look has left the
    // inbox by the time that the store has settled, and is not taken for one that came back.
    let known = team.hub.read(KnownEnvelopes::of);
    team.store.settled().await?;
    let root = team.root().to_owned();
    let found = tasks::blocking(move || watch::examine(&root, &known, &unknown)).await??;
    for found in found {
        let event = match found {
            ScanResult::Dropped(envelope) => Event::EnvelopeDropped(envelope),
            ScanResult::Replayed(envelope) => Event::EnvelopeReplayed(envelope),
            ScanResult::Bad { .. } => continue,
        };
        team.insist(event).await?;
    }
    Ok(())
}
