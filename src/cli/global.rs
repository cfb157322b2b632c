//! What every command has.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::output::Failure;
use crate::platform::tasks;

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Global {
    /// The workspace; otherwise `.`, `./teams_generated` or `./workspace/teams_generated`
    #[arg(long, global = true, value_name = "FOLDER")]
    workspace_root: Option<PathBuf>,
}

impl Global {
    /// The workspace that is meant, which has to be there.
    pub(super) fn existing(&self) -> Result<PathBuf, Failure> {
        let root = self.workspace()?;
        crate::workspace::must_exist(&root)?;
        Ok(root)
    }

    /// The workspace that is meant, by default another place than the usual ones.
    pub(super) fn workspace_or(&self, other: impl FnOnce() -> PathBuf) -> Result<PathBuf, Failure> {
        if self.workspace_root.is_some() { self.workspace() } else { Ok(other()) }
    }

    /// The workspace that is meant (`spec/teams.md` 1.3); it need not exist.
    pub(super) fn workspace(&self) -> Result<PathBuf, Failure> {
        let cwd = std::env::current_dir()
            .map_err(|error| Failure::new(format!("cannot find the current folder: {error}")))?;
        Ok(crate::workspace::resolve(self.workspace_root.as_deref(), &cwd))
    }
}

/// Runs work that is told to stop where somebody presses Ctrl-C.
pub(super) fn until_interrupt<T>(
    work: impl AsyncFnOnce(CancellationToken) -> T,
) -> Result<T, Failure> {
    Ok(runtime()?.block_on(async {
        let stop = CancellationToken::new();
        let told = stop.clone();
        let listening = tasks::spawn("Ctrl-C", async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                told.cancel();
            }
        });
        let done = work(stop).await;
        listening.abort();
        done
    }))
}

/// The runtime that commands with a conversation run on.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))
}
