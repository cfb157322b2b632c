//! Why a run has no model proxy.

use crate::platform::files::FileError;

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum ModelProxyError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The socket.
    #[error("cannot listen: {0}")]
    Io(#[from] std::io::Error),
    /// What is kept of it does not parse.
    #[error("door.json of the run does not parse: {0}")]
    Json(#[from] serde_json::Error),
    /// The path of the socket.
    #[error("its path would be longer than {0} bytes; set TMPDIR to a shorter one")]
    TooLong(usize),
    /// The client for model servers.
    #[error("no client for model servers: {0}")]
    Client(#[from] reqwest::Error),
}
