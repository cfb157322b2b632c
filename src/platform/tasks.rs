//! The only place that starts tasks, so that each keeps its name in logs.

use std::future::Future;

use tokio::task::JoinHandle;
use tracing::Instrument;

/// Starts a named task on the current runtime.
#[expect(clippy::disallowed_methods, reason = "this is the room that owns tasks")]
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future.instrument(tracing::info_span!("task", name)))
}

/// Runs blocking work off the async threads.
#[expect(clippy::disallowed_methods, reason = "this is the room that owns tasks")]
pub fn blocking<F, T>(work: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    tokio::task::spawn_blocking(work)
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
