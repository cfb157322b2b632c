//! What can go wrong with a run beside its agent.

use crate::agents;
use crate::git::GitError;
use crate::platform::files::FileError;

/// Why a run could not be carried out. What an agent does wrong is an outcome instead.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunAgentError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Agent(#[from] agents::RunError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the work was cut off: {0}")]
    Cut(#[from] tokio::task::JoinError),
}
