//! The file queue between roles and its watcher.
//!
//! The files under `.teams_runtime/internal_relay/` are a view of the journal. What may be handled next is
//! decided on the state alone; files matter only where another program dropped or moved one.

mod check;
mod order;
pub mod watch;

#[cfg(test)]
mod tests;

pub use check::{BadEnvelope, MAX_ENVELOPE_BYTES};
pub use order::{next_due, next_report, ready};
