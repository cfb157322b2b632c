//! Where what workers say waits for whoever follows the run that it is about.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::domain::assignment::WorkerBody;
use crate::domain::ids::{BootId, RunId};

/// Messages that wait for one run.
const WAITING: usize = 256;

/// What a worker says about a run.
#[derive(Debug)]
pub(super) struct WorkerNotice {
    pub(super) generation: u32,
    pub(super) boot: BootId,
    pub(super) body: WorkerBody,
}

/// Who is told what workers say, by run.
#[derive(Debug, Default)]
pub(super) struct RunInboxes {
    open: Mutex<BTreeMap<RunId, mpsc::Sender<WorkerNotice>>>,
    closed: Notify,
}

/// The inbox of one run, until it is dropped.
pub(super) struct RunInbox<'a> {
    run_id: &'a RunId,
    inboxes: &'a RunInboxes,
    pub(super) said: mpsc::Receiver<WorkerNotice>,
}

impl RunInboxes {
    fn all(&self) -> MutexGuard<'_, BTreeMap<RunId, mpsc::Sender<WorkerNotice>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the inbox of a run that is followed from now on.
    pub(super) fn open<'a>(&'a self, run_id: &'a RunId) -> RunInbox<'a> {
        let (sender, said) = mpsc::channel(WAITING);
        self.all().insert(run_id.clone(), sender);
        RunInbox { run_id, inboxes: self, said }
    }

    /// Waits until no inbox is open, once the team closes.
    pub(super) async fn none_after(&self, closing: &CancellationToken) {
        closing.cancelled().await;
        while !self.all().is_empty() {
            self.closed.notified().await;
        }
    }

    /// Puts something into the inbox of a run; whether there is one. What finds no room is said again.
    pub(super) fn put(&self, run_id: &RunId, said: WorkerNotice) -> bool {
        let inbox = self.all().get(run_id).cloned();
        inbox.is_some_and(|inbox| {
            let _ = inbox.try_send(said);
            true
        })
    }
}

impl Drop for RunInbox<'_> {
    fn drop(&mut self) {
        self.inboxes.all().remove(self.run_id);
        self.inboxes.closed.notify_one();
    }
}
