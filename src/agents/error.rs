//! Why a run could not be tried.

use std::path::{Path, PathBuf};

use crate::agents::prompt::PromptError;
use crate::platform::files::FileError;
use crate::platform::spawn;
use crate::platform::supervise::SuperviseError;

/// Why a run could not even be tried; its text is for people, already without secrets.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The supervisor.
    #[error(transparent)]
    Supervise(#[from] SuperviseError),
    /// The prompt.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A file of the run folder that cannot be written or read as JSON.
    #[error("cannot use {what} of the run: {source}")]
    Json {
        /// Which file.
        what: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The agent's program.
    #[error("{name} is not installed: {looked}; set `{setting}` or `{variable}`")]
    NotInstalled {
        /// The agent.
        name: &'static str,
        /// Where it was looked for.
        looked: String,
        /// The key of the configuration.
        setting: &'static str,
        /// The environment variable.
        variable: &'static str,
    },
    /// Nothing confines agents here, and the operator has not allowed that.
    #[error(
        "agents cannot be confined on this machine: {reason}, and the kernel has no Landlock; install bubblewrap, \
         or set `{setting}: \"off\"` where the machine is a sandbox itself"
    )]
    NoSandbox {
        /// Why bubblewrap is not used.
        reason: String,
        /// The key of the configuration.
        setting: &'static str,
    },
    /// Work off the async threads.
    #[error("what it said could not be read: {0}")]
    Cut(#[from] tokio::task::JoinError),
    /// Where our own binary is.
    #[error("cannot find our own binary: {0}")]
    OwnBinary(#[source] std::io::Error),
}

/// Finds an agent's program: by the setting, then by the environment variable, then by its usual name in `PATH`.
///
/// # Errors
/// [`RunError::NotInstalled`] where there is none.
pub(super) fn program(
    name: &'static str,
    binary: Option<&Path>,
    variable: &'static str,
    usual: &str,
    setting: &'static str,
) -> Result<PathBuf, RunError> {
    let named = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let wanted = binary.map(Path::to_path_buf).or(named).unwrap_or_else(|| PathBuf::from(usual));
    let path = std::env::var_os("PATH");
    spawn::find_program(&wanted.to_string_lossy(), path.as_deref()).ok_or_else(|| {
        let looked = format!("looked for {}", wanted.display());
        RunError::NotInstalled { name, looked, setting, variable }
    })
}
