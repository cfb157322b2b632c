//! Messages and payloads as they lie on a transport.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::assignment::{Message, PROTOCOL, Payload};
use crate::platform::transport::{SendResult, Transport, digest};

/// Where the hub listens.
pub const HUB: &str = "hub";
/// Where the worker of this process listens.
pub const LOCAL_WORKER: &str = "worker.local";
/// Bytes of a payload that goes within its message.
const WITHIN: usize = 64 << 10;

/// Why a message or a payload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It is no message.
    #[error("it is no message: {0}")]
    Json(#[from] serde_json::Error),
    /// Of a version that is not spoken here.
    #[error("it is of version {0}, and here {PROTOCOL} is spoken")]
    Version(u32),
    /// A blob that is not there, or not what it has to be.
    #[error("the blob {0} is not there, or was altered on its way")]
    Blob(String),
    /// More than there is room for.
    #[error("there is no room for {0} bytes")]
    NoRoom(usize),
}

/// A message as bytes.
///
/// # Errors
/// [`MessageError::Json`], which no message of ours brings about.
pub fn encode<B: Serialize>(message: &Message<B>) -> Result<Vec<u8>, MessageError> {
    Ok(serde_json::to_vec(message)?)
}

/// A message from bytes.
///
/// # Errors
/// [`MessageError::Json`] and [`MessageError::Version`].
pub fn decode<B: DeserializeOwned>(bytes: &[u8]) -> Result<Message<B>, MessageError> {
    #[derive(serde::Deserialize)]
    struct Version {
        v: u32,
    }
    let Version { v } = serde_json::from_slice(bytes)?;
    if v != PROTOCOL {
        return Err(MessageError::Version(v));
    }
    Ok(serde_json::from_slice(bytes)?)
}

/// A text for a message: itself, or as a blob where it is large.
///
/// # Errors
/// [`MessageError::NoRoom`].
pub async fn pack(transport: &dyn Transport, text: String) -> Result<Payload, MessageError> {
    if text.len() <= WITHIN {
        return Ok(Payload::Text(text));
    }
    let bytes = text.into_bytes();
    let (digest, size) = (digest(&bytes), bytes.len());
    match transport.put(&digest, bytes).await {
        SendResult::Refused => Err(MessageError::NoRoom(size)),
        SendResult::Taken | SendResult::Unknown => {
            Ok(Payload::Blob { digest, size: u64::try_from(size).unwrap_or(u64::MAX) })
        }
    }
}

/// Nobody needs a payload any more; for whoever made it.
pub async fn remove(transport: &dyn Transport, payload: &Payload) {
    if let Payload::Blob { digest, .. } = payload {
        transport.remove(digest).await;
    }
}

/// The text of a payload, held against its digest.
///
/// # Errors
/// [`MessageError::Blob`].
pub async fn unpack(transport: &dyn Transport, payload: Payload) -> Result<String, MessageError> {
    match payload {
        Payload::Text(text) => Ok(text),
        Payload::Blob { digest: wanted, size: _ } => {
            let bytes = transport.get(&wanted).await.filter(|bytes| digest(bytes) == wanted);
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            text.ok_or(MessageError::Blob(wanted))
        }
    }
}
