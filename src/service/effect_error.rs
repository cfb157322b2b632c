//! Why an effect could not be done.

use super::discover::LookError;
use super::hub::HubError;
use crate::assets::AssetError;
use crate::git::GitError;
use crate::platform::files;
use crate::platform::supervise::SuperviseError;
use crate::store::StoreError;
use crate::workspace::ConfigError;
use crate::workspace::edit::EditError;
use crate::workspace::papers::ChartError;

/// Why an effect could not be done; told to people, so it is redacted there.
#[derive(Debug, thiserror::Error)]
pub(super) enum EffectError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    File(#[from] files::FileError),
    #[error(transparent)]
    Supervise(#[from] SuperviseError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Paper(#[from] AssetError),
    #[error(transparent)]
    Chart(#[from] ChartError),
    #[error("the plan of an earlier start cannot be read: {0}")]
    Plan(#[from] serde_json::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Look(#[from] LookError),
    #[error("{0}")]
    Worktree(String),
    #[error("the request has no commit to go on from")]
    NoCandidate,
    #[error("the request is gone")]
    Gone,
    #[error("the work was cut off: {0}")]
    Cut(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The engine does not want it any more.
    #[error("it is not wanted any more")]
    Unwanted,
}
