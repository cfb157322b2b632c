//! The only place that reads the clock.

use chrono::{DateTime, Local, Utc};

/// The present instant.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the room that owns the clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// The zone of this machine, in which the programs that we start tell times as well.
#[must_use]
pub fn zone() -> Local {
    Local
}
