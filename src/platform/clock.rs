//! The only place that reads the clock.

use chrono::{DateTime, Local, Utc};

/// The present instant.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this module owns the clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Milliseconds of a clock that runs through suspend, which `Instant` does not; for durations alone.
#[must_use]
pub fn uptime_ms() -> u64 {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanoseconds) = (at.tv_sec.unsigned_abs(), at.tv_nsec.unsigned_abs());
    seconds * 1_000 + nanoseconds / 1_000_000
}

/// The zone of this machine, in which the programs that we start tell times as well.
#[must_use]
pub fn zone() -> Local {
    Local
}
