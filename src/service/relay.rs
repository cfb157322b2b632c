//! The orchestrator's inbox, and what other programs put into the queue's folders.

use std::sync::Arc;

use super::team::{Team, now, until};
use crate::domain::event::Event;
use crate::relay::{self, Found};

/// Applies reports one after the other, in the order of the queue.
pub(super) async fn apply_reports(team: Arc<Team>) {
    loop {
        let (next, due) = team
            .hub
            .read(|state| (relay::next_report(state, now()), relay::next_due(state, now())));
        match next {
            Some(relay_id) => {
                if team.hub.submit(Event::ReportReady { relay_id }).await.is_err() {
                    return;
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

/// Takes in what other programs drop and what operators move back.
pub(super) async fn watch(team: Arc<Team>, mut found: tokio::sync::mpsc::Receiver<Found>) {
    loop {
        let found = tokio::select! {
            () = team.closing.cancelled() => return,
            found = found.recv() => found,
        };
        let event = match found {
            Some(Found::Dropped(envelope)) => Event::EnvelopeDropped(envelope),
            Some(Found::Replayed(envelope)) => Event::EnvelopeReplayed(envelope),
            Some(Found::Bad { path, reason }) => {
                tracing::warn!(path = %path.display(), %reason, "a foreign envelope was put to the dead letters");
                continue;
            }
            None => return,
        };
        if team.hub.submit(event).await.is_err() {
            return;
        }
    }
}
