//! The configured checks at a commit, run for a person as the team runs them for a change.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::checks::check_plan;
use crate::domain::evidence::Evidence;
use crate::git::{self, GitError};
use crate::onboarding::open_project;
use crate::platform::disk::{Disk as _, RealDisk};
use crate::platform::files::{self, FileError};
use crate::platform::{confinement, tasks};
use crate::workspace::{self, ConfigError};

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The repository, or the checks could not be run at all.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is nothing to run.
    #[error("no checks are configured in {}", .0.display())]
    NoChecks(PathBuf),
    /// Somebody else runs them.
    #[error("another `teams checks run` is under way in {}", .0.display())]
    Busy(PathBuf),
    /// Blocking work broke off.
    #[error("the work broke off: {0}")]
    Cut(#[from] tokio::task::JoinError),
}

/// What the checks say, and where their logs lie until they are run by hand again.
#[derive(Debug)]
pub struct Proof {
    /// What would be evidence.
    pub evidence: Evidence,
    /// The folder with a log a check.
    pub logs: PathBuf,
}

/// Runs the checks at a commit, by default the tip of the branch, until `stop` is cancelled.
///
/// # Errors
/// Where they could not be run; a red check is none.
pub async fn by_hand(
    root: &Path,
    commit: Option<String>,
    stop: &CancellationToken,
) -> Result<Proof, ProofError> {
    let from = root.to_owned();
    let (workspace, project, commit) = tasks::blocking(move || {
        let workspace = workspace::load(&from)?;
        let project = open_project(&workspace)?;
        let commit = match commit {
            Some(name) => project.resolve(&name)?,
            None => project.head()?,
        };
        Ok::<_, ProofError>((workspace, project, commit))
    })
    .await??;
    if workspace.runtime.checks.is_empty() {
        return Err(ProofError::NoChecks(root.join(workspace::RUNTIME_FILE)));
    }
    let folder = workspace.state_dir().join("checks");
    files::create_dir_all(&folder)?;
    let alone = RealDisk.lock(&folder.join("by-hand.lock"))?;
    let _alone = alone.ok_or_else(|| ProofError::Busy(root.to_owned()))?;
    let logs = folder.join("by-hand");
    files::create_dir_all(&logs)?;
    let plan = check_plan(root, &workspace.runtime);
    let confinement = confinement::find().await;
    let evidence = git::checks::run(&project, commit, &plan, &confinement, &logs, stop).await?;
    Ok(Proof { evidence, logs })
}
