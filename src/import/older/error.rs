//! Why a workspace could not be taken over.

use crate::platform::files::FileError;

/// Why a workspace could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The copy that counts is gone.
    #[error(
        "the folder {0} is gone, from which this workspace is being taken over; put it back where it was, and start again"
    )]
    NoCopy(String),
    /// A folder of records is a link.
    #[error(
        "{0} is a link, which cannot be taken over; put the folder itself there, and start again"
    )]
    Link(String),
    /// A record has no JSON form.
    #[error("a record has no JSON form: {0}")]
    Encode(#[from] serde_json::Error),
}
