//! The engine's sense of time: it says at which instant it wants to be woken, and is woken then. Where
//! it waits for no instant, nothing wakes at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::team::{Team, now, until};
use crate::domain::event::Event;
use crate::engine;

/// Keeps the time until the team closes.
pub(super) async fn keep(team: Arc<Team>) {
    let mut told = BTreeSet::new();
    while !team.closing.is_cancelled() {
        let asked = team.hub.consult(engine::due);
        // One that was told and is still asked for waits for something else than time. The clock may have been set
        // back meanwhile: then it is still to come.
        told.retain(|due| asked.contains(due) && *due <= now());
        let due = asked.difference(&told).next().copied();
        tokio::select! {
            () = team.closing.cancelled() => return,
            () = team.signals.clock.notified() => continue,
            () = until(due) => {}
        }
        let told_at = now();
        if let Err(error) = team.insist(Event::Tick).await {
            tracing::debug!(%error, "an instant passed unheard; the next start finds it due");
            return team.closing.cancelled().await;
        }
        let still = team.hub.consult(engine::due);
        for due in asked.intersection(&still).filter(|due| **due <= told_at) {
            if told.insert(*due) {
                tracing::warn!(%due, "nothing came of an instant that the team waited for");
            }
        }
    }
}
