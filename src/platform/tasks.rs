//! The only place that starts tasks: each keeps its name in logs, and those of a [`TaskGroup`] are watched, so
//! that none of them breaks off in silence.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::plug;

tokio::task_local! {
    /// The group of the task at work.
    static GROUP: TaskGroup;
}

/// How a task of a service ended that should not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    /// A fault of this program.
    Panicked,
    /// It returned, and the service needs it until it closes.
    Returned,
}

impl fmt::Display for TaskEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskEnd::Panicked => "panicked",
            TaskEnd::Returned => "ended by itself",
        })
    }
}

/// A task broke off: what belongs together is not whole any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the task `{task}` {end}")]
pub struct TaskFailure {
    /// Its name.
    pub task: &'static str,
    /// How it ended.
    pub end: TaskEnd,
}

/// The tasks of a service. Whatever is started within [`TaskGroup::run`], and by those tasks in turn, belongs to
/// it: a panic of any is a [`TaskFailure`], and so is the end of one that was started by [`spawn_needed`].
#[derive(Debug, Clone)]
pub struct TaskGroup {
    failures: mpsc::UnboundedSender<TaskFailure>,
    closing: CancellationToken,
}

/// The failures of a group, in the order in which they were noticed.
#[derive(Debug)]
pub struct TaskFailures(mpsc::UnboundedReceiver<TaskFailure>);

impl TaskGroup {
    /// A group that needs none of its tasks any more once `closing` is cancelled.
    #[must_use]
    pub fn new(closing: CancellationToken) -> (TaskGroup, TaskFailures) {
        let (failures, noticed) = mpsc::unbounded_channel();
        (TaskGroup { failures, closing }, TaskFailures(noticed))
    }

    /// Does this within the group.
    pub async fn run<F: Future>(self, future: F) -> F::Output {
        GROUP.scope(self, future).await
    }

    fn note(&self, task: &'static str, end: TaskEnd) {
        let failure = TaskFailure { task, end };
        tracing::error!(task, "{failure}");
        // Nobody listens any more where the service is about to end.
        let _ = self.failures.send(failure);
    }
}

impl TaskFailures {
    /// Waits for the next one.
    pub async fn next(&mut self) -> TaskFailure {
        match self.0.recv().await {
            Some(failure) => failure,
            None => std::future::pending().await,
        }
    }

    /// What is behind a failure: a task may have returned because another one panicked, and been noticed first.
    #[must_use]
    pub fn cause_of(mut self, first: TaskFailure) -> TaskFailure {
        let others = std::iter::from_fn(|| self.0.try_recv().ok());
        std::iter::once(first)
            .chain(others)
            .find(|failure| failure.end == TaskEnd::Panicked)
            .unwrap_or(first)
    }
}

/// Watches a task for its group, where it is in one.
async fn watched<F: Future>(name: &'static str, needed: bool, future: F) -> F::Output {
    let mut future = pin!(future);
    let stepping = poll_fn(|context| {
        plug::step(name);
        future.as_mut().poll(context)
    });
    let Ok(group) = GROUP.try_with(TaskGroup::clone) else { return stepping.await };
    match AssertUnwindSafe(stepping).catch_unwind().await {
        Ok(output) => {
            if needed && !group.closing.is_cancelled() {
                group.note(name, TaskEnd::Returned);
            }
            output
        }
        Err(panic) => {
            group.note(name, TaskEnd::Panicked);
            resume_unwind(panic)
        }
    }
}

/// The same group for a task of its own.
async fn with_group<F: Future>(group: Option<TaskGroup>, future: F) -> F::Output {
    match group {
        Some(group) => group.run(future).await,
        None => future.await,
    }
}

fn group() -> Option<TaskGroup> {
    GROUP.try_with(TaskGroup::clone).ok()
}

#[expect(clippy::disallowed_methods, reason = "this module owns tasks")]
fn start<F>(name: &'static str, needed: bool, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let future = with_group(group(), watched(name, needed, future));
    tokio::spawn(future.instrument(tracing::info_span!("task", name)))
}

/// Starts a named task on the current runtime.
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    start(name, false, future)
}

/// Starts a named task that its group needs until it closes.
pub fn spawn_needed<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    start(name, true, future)
}

/// Starts a named task on another runtime.
pub fn spawn_on<F>(
    runtime: &tokio::runtime::Handle,
    name: &'static str,
    future: F,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    runtime.spawn(future.instrument(tracing::info_span!("task", name)))
}

/// Runs a future, and whatever it starts, on a thread and a runtime of its own, which end with it.
pub fn apart<F>(name: &'static str, future: F) -> std::io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread(name, move || {
        runtime.block_on(future.instrument(tracing::info_span!("apart", name)));
        // Names being looked up must not hold the thread.
        runtime.shutdown_background();
    })?;
    Ok(())
}

/// Runs blocking work off the async threads.
#[expect(clippy::disallowed_methods, reason = "this module owns tasks")]
pub fn blocking<F, T>(work: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    tokio::task::spawn_blocking(work)
}

/// The same for work that nobody waits for, where there may be no runtime any more: then it is done at once.
pub fn later<F>(work: F)
where
    F: FnOnce() + Send + 'static,
{
    match tokio::runtime::Handle::try_current() {
        Ok(_) => drop(blocking(work)),
        Err(_) => work(),
    }
}

/// Starts a named thread of its own, for work that blocks all its life.
pub fn thread<F>(name: &'static str, work: F) -> std::io::Result<std::thread::JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// The same for a thread that gives way to the others of the process, by so many steps of niceness.
pub fn nice_thread<F>(
    name: &'static str,
    nice: i32,
    work: F,
) -> std::io::Result<std::thread::JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    thread(name, move || {
        // On Linux niceness belongs to the thread. Refused, the work is done all the same.
        let me = rustix::thread::gettid();
        if let Err(error) = rustix::process::setpriority_process(Some(me), nice) {
            tracing::debug!(%error, name, "a thread is not nicer than the others");
        }
        work();
    })
}
