//! The two threads of the store: one makes appends durable, one brings the files up to date behind it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use super::entry::Entry;
use super::error::StoreError;
use super::images::ChangeDraft;
use super::index::checkpoint;
use super::journal::{Failure, Journal, PreparedAppend};
use super::views::Views;
use crate::domain::record::RUNTIME;
use crate::domain::state::State;
use crate::platform::disk::{Disk, is_full};
use crate::platform::files::FileError;
use crate::platform::tasks;

type Answer<T> = oneshot::Sender<T>;

/// Who waits for a checkpoint: the state that it has, or nothing where one was being made already.
type CheckpointAnswer = Answer<Result<Option<Box<State>>, StoreError>>;

/// What the owner asks of the writer, in the order of its calls.
pub(super) enum Order {
    Append(PreparedAppend, Answer<Result<u64, StoreError>>),
    Settle(Answer<()>),
    Reload(Answer<Box<State>>),
    Checkpoint(CheckpointAnswer),
    Close(Answer<Result<(), StoreError>>),
}

/// What the writer hands on, in the order of the journal.
enum ViewTask {
    Durable(u64, Vec<Entry>),
    Checkpoint(u64, Option<CheckpointAnswer>),
    Settle(Answer<()>),
    Reload(Answer<Box<State>>),
    Close(u64, Answer<Result<(), StoreError>>),
}

/// How much may be written between checkpoints: what a start after a crash replays at most, give or take
/// what comes in while the checkpoint is being made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { entries: 16_384, bytes: 16 * 1024 * 1024 }
    }
}

/// The most that one group takes, in bytes of JSON.
const GROUP_BYTES: usize = 4 * 1024 * 1024;
/// Groups that the files may lie behind the journal.
const BEHIND: usize = 256;
/// How long an append waits for others where the group before had several: those who were answered with
/// it are about to come with their next ones, and a sync is dearer than this.
const COMPANY: Duration = Duration::from_micros(60);
/// The files give way to whoever waits for the journal, but not to agents, which are nicer still.
const FILES_NICE: i32 = 5;

/// The first failure, after which nothing is appended any more.
#[derive(Clone, Default)]
pub(super) struct SharedFailure(Arc<Mutex<Option<Arc<FileError>>>>);

impl SharedFailure {
    pub(super) fn get(&self) -> Option<StoreError> {
        let failure = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone().map(|cause| StoreError::Poisoned { cause })
    }

    fn set(&self, cause: Arc<FileError>) {
        let mut failure = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            tracing::error!(%cause, "the store stops: what is durable is found out at the next start");
            *failure = Some(cause);
        }
    }
}

/// Starts both threads.
pub(super) fn start(
    journal: Journal,
    views: Views,
    disk: Arc<dyn Disk>,
    root: &Path,
    pace: Pace,
    failure: &SharedFailure,
) -> Result<(Sender<Order>, Vec<JoinHandle<()>>), StoreError> {
    let (orders, inbox) = channel();
    let (notes, viewed) = sync_channel(BEHIND);
    let idle = Arc::new(AtomicBool::new(true));
    let good = Arc::new(AtomicBool::new(true));
    let writer = Writer {
        journal,
        notes,
        pace,
        failure: failure.clone(),
        refusing: false,
        checkpoint_done: idle.clone(),
        checkpoint_good: good.clone(),
    };
    let viewer = Viewer {
        views,
        disk,
        root: root.to_owned(),
        failure: failure.clone(),
        checkpoint_done: idle,
        checkpoint_good: good,
    };
    let spawn = |outcome: std::io::Result<JoinHandle<()>>| {
        outcome.map_err(|source| {
            StoreError::File(Arc::new(FileError {
                action: "start a thread for",
                path: root.to_owned(),
                source,
            }))
        })
    };
    let threads = vec![
        spawn(tasks::thread("store-journal", move || writer.run(&inbox)))?,
        spawn(tasks::nice_thread("store-files", FILES_NICE, move || viewer.run(&viewed)))?,
    ];
    Ok((orders, threads))
}

struct Writer {
    journal: Journal,
    notes: SyncSender<ViewTask>,
    pace: Pace,
    failure: SharedFailure,
    /// The disk was full: appends may build on one that was not saved.
    refusing: bool,
    /// No checkpoint is under way.
    checkpoint_done: Arc<AtomicBool>,
    /// The last one succeeded.
    checkpoint_good: Arc<AtomicBool>,
}

impl Writer {
    fn run(mut self, orders: &Receiver<Order>) {
        let mut group = Group::default();
        // The size of the last group.
        let mut company = 0;
        while let Ok(first) = orders.recv() {
            let mut next = Some(first);
            // Everything that is queued goes into one write; other orders keep their place in the row.
            while let Some(order) = next.take() {
                let interrupting = match order {
                    Order::Append(pending, answer) => {
                        group.push(pending, answer);
                        None
                    }
                    other @ (Order::Settle(_)
                    | Order::Reload(_)
                    | Order::Checkpoint(_)
                    | Order::Close(_)) => Some(other),
                };
                if interrupting.is_some() || group.bytes >= GROUP_BYTES {
                    self.commit(&mut group);
                }
                if let Some(order) = interrupting
                    && !self.handle(order)
                {
                    return;
                }
                next = match orders.try_recv() {
                    Ok(order) => Some(order),
                    Err(_) if (1..company).contains(&group.pending.len()) => {
                        orders.recv_timeout(COMPANY).ok()
                    }
                    Err(_) => None,
                };
            }
            company = group.pending.len();
            self.commit(&mut group);
        }
    }

    fn commit(&mut self, group: &mut Group) {
        if group.pending.is_empty() {
            return;
        }
        let Group { pending, answers, .. } = std::mem::take(group);
        let refusal = match self.failure.get() {
            Some(failure) => Some(failure),
            None if self.refusing => Some(StoreError::NoSpace),
            None => None,
        };
        if let Some(refusal) = refusal {
            refuse(answers, &refusal);
            return;
        }
        match self.journal.commit(pending) {
            Ok((first, entries)) => {
                for (seq, answer) in (first..).zip(answers) {
                    // Nobody waits for some of them.
                    let _ = answer.send(Ok(seq));
                }
                self.note(ViewTask::Durable(first, entries));
                let due = self.journal.entries >= self.pace.entries
                    || self.journal.bytes >= self.pace.bytes;
                if due {
                    self.checkpoint(None);
                }
            }
            Err(failure) => {
                match &failure {
                    Failure::Full => self.refusing = true,
                    Failure::Broken(cause) => self.failure.set(cause.clone()),
                    Failure::Unwritable(_) => {}
                }
                refuse(answers, &StoreError::from(failure));
            }
        }
    }

    /// Begins a checkpoint, unless one is under way.
    fn checkpoint(&mut self, answer: Option<CheckpointAnswer>) {
        if self.checkpoint_done.swap(false, Ordering::SeqCst) {
            self.journal.rotate(self.checkpoint_good.load(Ordering::SeqCst));
            self.note(ViewTask::Checkpoint(self.journal.next_seq() - 1, answer));
        } else if let Some(answer) = answer {
            let _ = answer.send(Ok(None));
        }
    }

    /// Whether to go on.
    fn handle(&mut self, order: Order) -> bool {
        match order {
            // Handled before.
            Order::Append(..) => true,
            Order::Settle(answer) => {
                self.note(ViewTask::Settle(answer));
                true
            }
            Order::Reload(answer) => {
                self.refusing = false;
                self.note(ViewTask::Reload(answer));
                true
            }
            Order::Checkpoint(answer) => {
                self.checkpoint(Some(answer));
                true
            }
            Order::Close(answer) => {
                self.note(ViewTask::Close(self.journal.next_seq() - 1, answer));
                false
            }
        }
    }

    fn note(&self, note: ViewTask) {
        // The other thread outlives this one unless it panicked, and then nobody gets an answer.
        if self.notes.send(note).is_err() {
            let source = std::io::Error::other("the thread that writes the files has ended");
            let path = PathBuf::from(RUNTIME);
            self.failure.set(Arc::new(FileError { action: "write", path, source }));
        }
    }
}

#[derive(Default)]
struct Group {
    pending: Vec<PreparedAppend>,
    answers: Vec<Answer<Result<u64, StoreError>>>,
    bytes: usize,
}

impl Group {
    fn push(&mut self, pending: PreparedAppend, answer: Answer<Result<u64, StoreError>>) {
        self.bytes += pending.drafts.iter().map(ChangeDraft::weight).sum::<usize>();
        self.pending.push(pending);
        self.answers.push(answer);
    }
}

fn refuse(answers: Vec<Answer<Result<u64, StoreError>>>, refusal: &StoreError) {
    for answer in answers {
        let _ = answer.send(Err(refusal.clone()));
    }
}

struct Viewer {
    views: Views,
    disk: Arc<dyn Disk>,
    root: PathBuf,
    failure: SharedFailure,
    /// No checkpoint is under way.
    checkpoint_done: Arc<AtomicBool>,
    /// The last one succeeded.
    checkpoint_good: Arc<AtomicBool>,
}

impl Viewer {
    fn run(mut self, notes: &Receiver<ViewTask>) {
        while let Ok(first) = notes.recv() {
            let mut next = Some(first);
            // A file that changes several times in what is queued is written once.
            while let Some(note) = next.take() {
                if !self.handle(note) {
                    return;
                }
                next = notes.try_recv().ok();
            }
            self.materialise();
        }
        self.materialise();
    }

    /// Whether to go on.
    fn handle(&mut self, note: ViewTask) -> bool {
        match note {
            ViewTask::Durable(first, entries) => {
                for (seq, entry) in (first..).zip(&entries) {
                    if let Err(error) = self.views.apply(seq, entry) {
                        // It had a JSON form when it was queued.
                        tracing::error!(%error, seq, "a durable entry has no files");
                    }
                }
                true
            }
            ViewTask::Checkpoint(seq, answer) => {
                let outcome = match self.failure.get() {
                    Some(failure) => Err(failure),
                    None => self.checkpoint(seq),
                };
                if let Err(error) = &outcome {
                    tracing::warn!(%error, "no checkpoint; the journal stays");
                }
                self.checkpoint_done.store(true, Ordering::SeqCst);
                if let Some(answer) = answer {
                    let _ = answer.send(outcome.map(|()| Some(Box::new(self.views.state.clone()))));
                }
                true
            }
            ViewTask::Settle(answer) => {
                self.materialise();
                let _ = answer.send(());
                true
            }
            ViewTask::Reload(answer) => {
                let _ = answer.send(Box::new(self.views.state.clone()));
                true
            }
            ViewTask::Close(seq, answer) => {
                let outcome = match self.failure.get() {
                    Some(failure) => Err(failure),
                    None => self.checkpoint(seq),
                };
                let _ = answer.send(outcome);
                false
            }
        }
    }

    fn materialise(&mut self) {
        if let Err(error) = self.views.materialise() {
            self.failed(error);
        }
    }

    fn checkpoint(&mut self, seq: u64) -> Result<(), StoreError> {
        let outcome = checkpoint(&*self.disk, &self.root, &mut self.views, seq);
        self.checkpoint_good.store(outcome.is_ok(), Ordering::SeqCst);
        if let Err(StoreError::File(cause)) = &outcome {
            self.failure.set(cause.clone());
        }
        outcome
    }

    fn failed(&self, error: FileError) {
        if is_full(&error) {
            tracing::warn!(%error, "a record file lies behind the journal until there is space");
        } else {
            self.failure.set(Arc::new(error));
        }
    }
}
