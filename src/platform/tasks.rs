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
