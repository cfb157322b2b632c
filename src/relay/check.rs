//! What a file in an inbox must be to count as an envelope. Nothing is believed because of a file's name.

use serde_json::Value;

use crate::domain::envelope::Envelope;
use crate::domain::role::Role;

/// Larger files are not read.
pub const MAX_ENVELOPE_BYTES: u64 = 4 * 1024 * 1024;

/// Why a file in an inbox is no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEnvelope {
    /// No JSON, a field is missing, an id is no id, a role is no role.
    #[error("it does not read as an envelope: {0}")]
    Unparsable(String),
    /// More than [`MAX_ENVELOPE_BYTES`].
    #[error("it has {0} bytes; at most {MAX_ENVELOPE_BYTES} are read")]
    TooLarge(u64),
    /// A link, folder or device.
    #[error("it is no ordinary file")]
    NoFile,
    /// Its file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// In the inbox of another role.
    #[error("it is for {target} but lies in the inbox of {inbox}")]
    WrongInbox {
        /// Whom it names.
        target: Role,
        /// Where it lies.
        inbox: Role,
    },
    /// Inner and outer sender or receiver differ.
    #[error("it says {outer} outside and {inner} inside")]
    RoleMismatch {
        /// In `sender_role` or `target_role`.
        outer: Role,
        /// In `envelope.from` or `envelope.to`.
        inner: Role,
    },
    /// Its result is nested deeper than any is.
    #[error("its result is nested more than {DEEPEST} deep")]
    TooDeep,
    /// The same id was consumed before, or waits already in another file.
    #[error("an envelope with the id {0} was here before")]
    Doubled(String),
}

/// How deep a result may be nested.
const DEEPEST: usize = 64;

fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(entries) => entries.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + below.unwrap_or(0)
}

/// Reads the bytes of a file in the inbox of a role.
pub(super) fn read(bytes: &[u8], inbox: Role) -> Result<Envelope, BadEnvelope> {
    let envelope: Envelope = serde_json::from_slice(bytes)
        .map_err(|error| BadEnvelope::Unparsable(error.to_string()))?;
    if envelope.target_role != inbox {
        return Err(BadEnvelope::WrongInbox { target: envelope.target_role, inbox });
    }
    // In the journal it stands deeper, and has to be read there.
    if envelope.envelope.params.result.as_ref().is_some_and(|result| depth(result) > DEEPEST) {
        return Err(BadEnvelope::TooDeep);
    }
    for (outer, inner) in [
        (envelope.sender_role, envelope.envelope.from),
        (envelope.target_role, envelope.envelope.to),
    ] {
        if outer != inner {
            return Err(BadEnvelope::RoleMismatch { outer, inner });
        }
    }
    Ok(envelope)
}
