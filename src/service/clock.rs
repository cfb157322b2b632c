//! The engine's sense of time: it says at which instant it wants to be woken, and is woken then. Where
//! it waits for no instant, nothing wakes at all.

use std::sync::Arc;

use super::team::{Team, now, until};
use crate::domain::event::Event;
use crate::domain::time::Timestamp;
use crate::engine;
use crate::platform::alarm;

/// Keeps the time until the team closes.
pub(super) async fn keep(team: Arc<Team>) {
    let mut told: Option<Timestamp> = None;
    while !team.closing.is_cancelled() {
        // An instant that was told and is still asked for waits for something else than time.
        let due = team.hub.consult(engine::due).filter(|due| told != Some(*due));
        tokio::select! {
            () = team.closing.cancelled() => return,
            () = team.signals.clock.notified() => continue,
            () = reach(due) => {}
        }
        if let Err(error) = team.insist(Event::Tick).await {
            tracing::debug!(%error, "an instant passed unheard; the next start finds it due");
            return team.closing.cancelled().await;
        }
        // The clock may have been set back meanwhile: then the instant is still to come.
        told = due.filter(|due| *due <= now());
        let asked = team.hub.consult(engine::due);
        if told.is_some() && asked == told {
            tracing::warn!(due = ?asked, "nothing came of an instant that the team waited for");
        }
    }
}

/// Waits until `due`, or for ever where there is nothing to wait for.
async fn reach(due: Option<Timestamp>) {
    let Some(instant) = due else {
        return std::future::pending().await;
    };
    if let Err(error) = alarm::at(instant.utc()).await {
        tracing::warn!(%error, "the system gives no alarm; counting the time instead");
        until(due).await;
    }
}
