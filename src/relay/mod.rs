//! The file queue between roles, its watcher, and the transport trait.
//!
//! The files under `.teams_runtime/internal_relay/` are a view of the journal. What may be handled next is
//! decided on the state alone; files matter only where another program dropped or moved one.

mod check;
mod file_transport;
mod memory_transport;
mod order;
mod transport;
pub mod watch;

#[cfg(test)]
mod tests;

pub use check::{BadEnvelope, MAX_ENVELOPE_BYTES};
pub use file_transport::FileTransport;
pub use memory_transport::MemoryTransport;
pub use order::{next_due, next_report, ready};
pub use transport::{Transport, TransportError};
