//! The journal, the records it makes durable, and the lock of the workspace.
//!
//! One append makes a whole decision durable: a thread of its own writes everything that is queued in one
//! frame with one `fdatasync` and then answers. A second thread brings the record files up to date behind
//! it and makes a checkpoint now and then, after which the journal begins anew.

mod entry;
mod error;
mod history;
mod images;
mod index;
mod journal;
mod layout;
mod load;
mod loaded;
mod migrate;
mod open;
mod read;
mod repair;
mod views;
mod work;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

pub use error::StoreError;
pub use history::{PackReport, Retention};
pub use layout::{RELAY, relay_folder};
pub use open::{OpenReport, SetAside};
pub use read::{
    StateReader, backlog_items, is_owned, is_owned_by_older, read_events, read_only, read_request,
    read_settled, read_settled_events, requests_ended_since, was_consumed,
};
pub use repair::{StoreRepair, repair};

use crate::domain::change::Change;
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::platform::disk::Disk;
use images::ChangeDraft;
use journal::PreparedAppend;
use work::Order;

/// What opening gives.
pub struct OpenedStore {
    /// The open store; it owns the workspace as long as it lives.
    pub store: Store,
    /// Everything that is open.
    pub state: State,
    /// What was found.
    pub report: OpenReport,
}

/// Keeps a workspace from being opened by a team, ours or of the older runtime, as long as this lives.
pub struct WorkspaceLock(open::Locks);

/// Takes a workspace without reading it, for whoever replaces its files, and for [`Store::open_held`].
///
/// # Errors
/// [`StoreError::Locked`] where another process owns it.
pub fn hold(root: &Path, disk: &dyn Disk) -> Result<WorkspaceLock, StoreError> {
    open::take_locks(disk, root).map(WorkspaceLock)
}

/// The open store. Dropping it without [`Store::close`] is fine: it is then as after a crash, except that
/// everything that was queued is durable.
pub struct Store {
    root: PathBuf,
    disk: Arc<dyn Disk>,
    orders: Option<Sender<Order>>,
    threads: Vec<JoinHandle<()>>,
    failure: work::SharedFailure,
    _locks: open::Locks,
}

impl Store {
    /// Takes the workspace and reads what is open in it. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Locked`] where another process owns it, [`StoreError::Corrupt`] and
    /// [`StoreError::CorruptIndex`] where it is damaged, else what the disk says.
    pub fn open(root: &Path, disk: Arc<dyn Disk>) -> Result<OpenedStore, StoreError> {
        Self::open_held(hold(root, &*disk)?, root, disk)
    }

    /// The same where the caller has taken the workspace before.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_held(
        lock: WorkspaceLock,
        root: &Path,
        disk: Arc<dyn Disk>,
    ) -> Result<OpenedStore, StoreError> {
        Self::open_with(lock, root, disk, work::Pace::default())
    }

    fn open_with(
        WorkspaceLock(locks): WorkspaceLock,
        root: &Path,
        disk: Arc<dyn Disk>,
        pace: work::Pace,
    ) -> Result<OpenedStore, StoreError> {
        let (journal, views, report) = open::recover(&disk, root)?;
        let state = views.state.clone();
        let failure = work::SharedFailure::default();
        let (orders, threads) = work::start(journal, views, disk.clone(), root, pace, &failure)?;
        let (root, orders) = (root.to_owned(), Some(orders));
        let store = Store { root, disk, orders, threads, failure, _locks: locks };
        Ok(OpenedStore { store, state, report })
    }

    /// The workspace.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Queues changes; they become durable together and in the order of the calls. Nothing that follows
    /// from them may leave the process before the answer is `Ok`.
    pub fn append(&self, changes: Vec<Change>) -> PendingAppend {
        let pending = match prepare(changes) {
            Ok(pending) => pending,
            Err(error) => return PendingAppend::ready(Err(error)),
        };
        let (answer, receiver) = oneshot::channel();
        match self.order(Order::Append(pending, answer)) {
            Ok(()) => PendingAppend::waiting(receiver, &self.failure),
            Err(error) => PendingAppend::ready(Err(error)),
        }
    }

    /// Resolves when the record files show every append that was called before.
    pub fn settled(&self) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        let (answer, receiver) = oneshot::channel();
        let sent = self.order(Order::Settle(answer));
        async move {
            sent?;
            receiver.await.map_err(|_| StoreError::Closed)
        }
    }

    /// After [`StoreError::NoSpace`]: the last durable state, to go on from. Until this is called every
    /// append is refused, because it may build on one that was not saved.
    pub fn reload(&self) -> impl Future<Output = Result<State, StoreError>> + Send + use<> {
        let (answer, receiver) = oneshot::channel();
        let sent = self.order(Order::Reload(answer));
        async move {
            sent?;
            receiver.await.map(|state| *state).map_err(|_| StoreError::Closed)
        }
    }

    /// Packs what ended long ago, and lets the oldest packs go, as long as it `goes_on`. Blocks. Does nothing where
    /// a checkpoint is being made.
    ///
    /// # Errors
    /// What the disk reports. What was packed and not removed is packed again the next time.
    pub fn pack_history(
        &self,
        now: Timestamp,
        rules: &Retention,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<PackReport, StoreError> {
        if !history::is_anything_old(&*self.disk, &self.root, rules)? {
            return Ok(PackReport::default());
        }
        let (answer, receiver) = oneshot::channel();
        self.order(Order::Checkpoint(answer))?;
        match receiver.blocking_recv().map_err(|_| StoreError::Closed)?? {
            Some(state) => history::pack(&*self.disk, &self.root, &state, now, rules, goes_on),
            None => Ok(PackReport::default()),
        }
    }

    /// Makes a last checkpoint while others still have the store, whose appends are refused from then on. Blocks.
    /// Afterwards edits to the record files count, once nobody has it any more.
    ///
    /// # Errors
    /// What kept the files from saying the same as the journal.
    pub fn finish(&self) -> Result<(), StoreError> {
        let (answer, receiver) = oneshot::channel();
        self.order(Order::Close(answer))?;
        let gone = |_| Err(self.failure.get().unwrap_or(StoreError::Closed));
        receiver.blocking_recv().unwrap_or_else(gone)
    }

    /// Makes a last checkpoint and gives the workspace back. Blocks. Afterwards edits to the record files
    /// count.
    pub fn close(mut self) -> Result<(), StoreError> {
        let (answer, mut receiver) = oneshot::channel();
        self.order(Order::Close(answer))?;
        self.join();
        receiver
            .try_recv()
            .unwrap_or_else(|_| Err(self.failure.get().unwrap_or(StoreError::Closed)))
    }

    fn order(&self, order: Order) -> Result<(), StoreError> {
        let closed = || self.failure.get().unwrap_or(StoreError::Closed);
        match &self.orders {
            Some(orders) => orders.send(order).map_err(|_| closed()),
            None => Err(closed()),
        }
    }

    fn join(&mut self) {
        self.orders = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the store ended by a panic");
            }
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.join();
    }
}

fn prepare(changes: Vec<Change>) -> Result<PreparedAppend, StoreError> {
    for change in &changes {
        if let Change::Append { file, .. } = change
            && !layout::is_document(file)
        {
            return Err(StoreError::BadPath { file: file.clone() });
        }
    }
    let drafts = changes.iter().map(ChangeDraft::of).collect::<Result<_, _>>()?;
    Ok(PreparedAppend { changes, drafts })
}

/// The answer to an append: its sequence once it is durable.
#[must_use = "nothing may leave the process before the append is durable"]
pub struct PendingAppend(Inner);

enum Inner {
    Ready(Option<Result<u64, StoreError>>),
    Waiting(oneshot::Receiver<Result<u64, StoreError>>, work::SharedFailure),
}

impl PendingAppend {
    fn ready(outcome: Result<u64, StoreError>) -> Self {
        Self(Inner::Ready(Some(outcome)))
    }

    fn waiting(
        receiver: oneshot::Receiver<Result<u64, StoreError>>,
        failure: &work::SharedFailure,
    ) -> Self {
        Self(Inner::Waiting(receiver, failure.clone()))
    }

    /// Waits for it on a thread that is no task.
    pub fn wait(self) -> Result<u64, StoreError> {
        match self.0 {
            Inner::Ready(outcome) => outcome.unwrap_or(Err(StoreError::Closed)),
            Inner::Waiting(receiver, failure) => receiver
                .blocking_recv()
                .unwrap_or_else(|_| Err(failure.get().unwrap_or(StoreError::Closed))),
        }
    }
}

impl Future for PendingAppend {
    type Output = Result<u64, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Ready(outcome) => Poll::Ready(outcome.take().unwrap_or(Err(StoreError::Closed))),
            Inner::Waiting(receiver, failure) => Pin::new(receiver).poll(context).map(|answer| {
                answer.unwrap_or_else(|_| Err(failure.get().unwrap_or(StoreError::Closed)))
            }),
        }
    }
}
