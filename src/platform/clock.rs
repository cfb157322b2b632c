//! The only place that reads the clock.

use chrono::{DateTime, Utc};

/// The present instant.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the room that owns the clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}
