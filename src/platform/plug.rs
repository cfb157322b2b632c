//! Pulling the plug: this process kills itself at a chosen point of its life, so that anyone can see
//! that nothing is lost (`teams demo --pull-plug N`, and the tests of the same promise); or one of its tasks
//! panics, so that anyone can see that nothing limps on (`teams demo --panic TASK`).
//!
//! `TEAMS_PULL_PLUG="<point>:<n>"` kills at the n-th time that the point is reached, and
//! `TEAMS_PULL_PLUG="panic:<task>:<n>"` panics at the n-th time that a task of that name goes on;
//! `TEAMS_PULL_PLUG_COUNT=<file>` lets [`write_counts`] say how often each point was reached in a life.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::platform::files;

/// The variable that says where to die.
pub const PLUG_VARIABLE: &str = "TEAMS_PULL_PLUG";
/// The variable that names the file for the counts.
pub const COUNT_VARIABLE: &str = "TEAMS_PULL_PLUG_COUNT";

/// A point in the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The journal is about to be written.
    BeforeAppend,
    /// A batch is durable, nobody was told yet.
    AfterSync,
    /// The world was changed, which is not durable yet.
    AfterEffect,
    /// A worktree stands on another commit, which is not durable yet.
    AfterRebase,
}

impl Point {
    /// Every point.
    pub const ALL: [Point; 4] =
        [Point::BeforeAppend, Point::AfterSync, Point::AfterEffect, Point::AfterRebase];

    /// The word in the variable and in the file of counts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Point::BeforeAppend => "before_append",
            Point::AfterSync => "after_sync",
            Point::AfterEffect => "after_effect",
            Point::AfterRebase => "after_rebase",
        }
    }
}

/// A value of [`PLUG_VARIABLE`] that names no point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{PLUG_VARIABLE}={0:?} is not `<point>:<n>` with a point of before_append, after_sync, after_effect, after_rebase and n from 1, \
     nor `panic:<task>:<n>`"
)]
pub struct PlugError(String);

/// What is to happen, and at the how-manieth time.
#[derive(Debug, PartialEq, Eq)]
enum Order {
    /// The process dies at a point.
    Kill { point: Point, at: u64 },
    /// A task panics.
    Panic { task: String, at: u64 },
}

/// The word before the name of a task.
const PANIC: &str = "panic";

fn parse(text: &str) -> Result<Order, PlugError> {
    let refused = || PlugError(text.to_owned());
    let (word, number) = text.rsplit_once(':').ok_or_else(refused)?;
    let at = number.parse().ok().filter(|at| *at > 0).ok_or_else(refused)?;
    if let Some((PANIC, task)) = word.split_once(':')
        && !task.is_empty()
    {
        return Ok(Order::Panic { task: task.to_owned(), at });
    }
    let point = Point::ALL.into_iter().find(|point| point.as_str() == word).ok_or_else(refused)?;
    Ok(Order::Kill { point, at })
}

/// The value of [`PLUG_VARIABLE`] with which a task panics as soon as it is started.
#[must_use]
pub fn panic_of(task: &str) -> String {
    format!("{PANIC}:{task}:1")
}

struct Plug {
    order: Option<Order>,
    counts_to: Option<PathBuf>,
    counts: [AtomicU64; Point::ALL.len()],
    steps: AtomicU64,
}

static PLUG: OnceLock<Option<Plug>> = OnceLock::new();

type Act = Box<dyn Fn() + Send + Sync>;
static BEFORE_DEATH: OnceLock<Act> = OnceLock::new();

/// Lets something be done right before this process kills itself; the first one counts.
pub fn before_death(act: Act) {
    let _ = BEFORE_DEATH.set(act);
}

fn plug() -> Option<&'static Plug> {
    PLUG.get_or_init(|| {
        let order = std::env::var(PLUG_VARIABLE).ok().and_then(|text| parse(&text).ok());
        let counts_to = std::env::var_os(COUNT_VARIABLE).map(PathBuf::from);
        (order.is_some() || counts_to.is_some()).then(|| Plug {
            order,
            counts_to,
            counts: Default::default(),
            steps: AtomicU64::new(0),
        })
    })
    .as_ref()
}

/// Checks the variable at the start, so that a mistyped one is said and not ignored.
pub fn check() -> Result<(), PlugError> {
    match std::env::var(PLUG_VARIABLE) {
        Ok(text) => parse(&text).map(|_| ()),
        Err(_) => Ok(()),
    }
}

/// Counts the point and, where it is the one that was asked for, kills this process with SIGKILL.
pub fn point(point: Point) {
    let Some(plug) = plug() else { return };
    let count = plug.counts[point as usize].fetch_add(1, Ordering::SeqCst) + 1;
    if plug.order == Some(Order::Kill { point, at: count }) {
        if let Some(act) = BEFORE_DEATH.get() {
            act();
        }
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// A task goes on: panics where that was asked for.
#[expect(clippy::panic, reason = "it is what was asked for")]
pub fn step(name: &str) {
    let Some(Order::Panic { task, at }) = plug().and_then(|plug| plug.order.as_ref()) else {
        return;
    };
    let count = |plug: &Plug| plug.steps.fetch_add(1, Ordering::SeqCst) + 1;
    if task == name && plug().map(count) == Some(*at) {
        std::panic::panic_any(format!("{PLUG_VARIABLE} wants the task `{name}` to panic"));
    }
}

/// Writes `<point> <count>` lines to the file that [`COUNT_VARIABLE`] names, if it does; for the end of
/// a clean run.
pub fn write_counts() -> files::Result<()> {
    let Some((plug, path)) = plug().and_then(|plug| Some((plug, plug.counts_to.as_ref()?))) else {
        return Ok(());
    };
    let lines: String = Point::ALL
        .into_iter()
        .zip(&plug.counts)
        .map(|(point, count)| format!("{} {}\n", point.as_str(), count.load(Ordering::SeqCst)))
        .collect();
    files::write(path, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_names_a_point_and_a_count() {
        assert_eq!(parse("after_sync:12"), Ok(Order::Kill { point: Point::AfterSync, at: 12 }));
        let order = Order::Panic { task: "effects".to_owned(), at: 1 };
        assert_eq!(parse(&panic_of("effects")), Ok(order));
        for bad in
            ["", "after_sync", "after_sync:0", "after_sync:x", "never:1", "panic:1", "panic::1"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
