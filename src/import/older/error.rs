//! Why a workspace could not be taken over.

use crate::platform::files::FileError;

/// Why a workspace could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A record has no JSON form.
    #[error("a record has no JSON form: {0}")]
    Encode(#[from] serde_json::Error),
}
