//! How somebody outside follows a run.

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::agents::codec::Event;
use crate::agents::words::Mailbox;
use crate::domain::usage::Usage;

/// How somebody outside follows a run and ends it.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Ends the run when cancelled.
    pub cancel: CancellationToken,
    /// Gets the events as they come; those for which there is no room are dropped.
    pub events: Option<mpsc::Sender<Event>>,
    /// What people say to the agent while it works.
    pub words: Mailbox,
    /// Gets what the run has used so far, as its agent tells.
    pub used: Option<watch::Sender<Usage>>,
    /// Ends the run for its budget when cancelled.
    pub over_budget: CancellationToken,
}

impl Watch {
    pub(super) fn tell_used(&self, used: Usage) {
        if let Some(listener) = &self.used {
            listener.send_if_modified(|before| std::mem::replace(before, used) != used);
        }
    }

    pub(super) fn tell(&self, events: Vec<Event>) {
        if let Some(listener) = &self.events {
            for event in events {
                // A listener that does not keep up must not slow the agent down.
                let _ = listener.try_send(event);
            }
        }
    }
}
