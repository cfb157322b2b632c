//! How an envelope reaches a role: at least once. The receiver's store removes duplicates by id.

use crate::domain::envelope::Envelope;
use crate::domain::ids::EnvelopeId;
use crate::domain::role::Role;
use crate::platform::files::FileError;

/// Why a transport could not do something.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The envelope has no JSON form.
    #[error("the envelope has no JSON form: {0}")]
    Encode(#[from] serde_json::Error),
    /// Sender or receiver say one thing outside and another inside.
    #[error("the envelope contradicts itself: {0}")]
    Bad(#[from] super::BadEnvelope),
}

/// A queue a role. Whatever was delivered and not acknowledged is received again by the next life.
pub trait Transport: Send {
    /// Puts an envelope into its receiver's queue. `Ok` means that no crash can lose it any more.
    /// Delivering an id again, acknowledged or not, changes nothing.
    fn deliver(&mut self, envelope: &Envelope) -> Result<(), TransportError>;

    /// The oldest envelope of the role that this life has not received; `None` where there is none.
    fn receive(&mut self, role: Role) -> Result<Option<Envelope>, TransportError>;

    /// The envelope was handled and its consequences are durable: it is not received again.
    /// Acknowledging twice, or something unknown, changes nothing.
    fn ack(&mut self, role: Role, id: &EnvelopeId) -> Result<(), TransportError>;
}
