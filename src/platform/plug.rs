//! Pulling the plug: this process kills itself at a chosen point of its life, so that anyone can see
//! that nothing is lost (`teams demo --pull-plug N`, and the tests of the same promise).
//!
//! `TEAMS_PULL_PLUG="<point>:<n>"` kills at the n-th time that the point is reached;
//! `TEAMS_PULL_PLUG_COUNT=<file>` lets [`write_counts`] say how often each was reached in a life.

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
}

impl Point {
    /// Every point.
    pub const ALL: [Point; 3] = [Point::BeforeAppend, Point::AfterSync, Point::AfterEffect];

    /// The word in the variable and in the file of counts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Point::BeforeAppend => "before_append",
            Point::AfterSync => "after_sync",
            Point::AfterEffect => "after_effect",
        }
    }
}

/// A value of [`PLUG_VARIABLE`] that names no point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{PLUG_VARIABLE}={0:?} is not `<point>:<n>` with a point of before_append, after_sync, after_effect and n from 1"
)]
pub struct PlugError(String);

#[derive(Debug, PartialEq, Eq)]
struct Order {
    point: Point,
    at: u64,
}

fn parse(text: &str) -> Result<Order, PlugError> {
    let refused = || PlugError(text.to_owned());
    let (word, number) = text.split_once(':').ok_or_else(refused)?;
    let point = Point::ALL.into_iter().find(|point| point.as_str() == word).ok_or_else(refused)?;
    match number.parse() {
        Ok(at) if at > 0 => Ok(Order { point, at }),
        Ok(_) | Err(_) => Err(refused()),
    }
}

struct Plug {
    order: Option<Order>,
    counts_to: Option<PathBuf>,
    counts: [AtomicU64; Point::ALL.len()],
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
    if plug.order == Some(Order { point, at: count }) {
        if let Some(act) = BEFORE_DEATH.get() {
            act();
        }
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
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
        assert_eq!(parse("after_sync:12"), Ok(Order { point: Point::AfterSync, at: 12 }));
        for bad in ["", "after_sync", "after_sync:0", "after_sync:x", "never:1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
