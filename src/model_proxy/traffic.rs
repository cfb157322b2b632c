//! The sign that something comes to an agent from outside, for the supervisor that ends one which is silent: a model may
//! think for long, and many an agent shows nothing of an answer before it is over.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::platform::{files, tasks};

/// How often at most the sign is given.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes of the largest piece that may only keep a connection open.
const KEEP_ALIVE: usize = 128;

/// What comes to the agent of one run.
#[derive(Debug)]
pub(super) struct Traffic {
    file: PathBuf,
    told: Mutex<Option<Instant>>,
}

impl Traffic {
    /// Of the run in this folder.
    pub(super) fn of(run_dir: &Path) -> Traffic {
        Traffic { file: run_dir.join("traffic"), told: Mutex::default() }
    }

    /// The file whose time changes with what comes.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// A piece of a model's answer has come.
    pub(super) fn answered(&self) {
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.is_some_and(|at| at.elapsed() < EVERY) {
                return;
            }
            *told = Some(Instant::now());
        }
        let file = self.file.clone();
        tasks::later(move || {
            if let Err(error) = files::write_private(&file, "") {
                tracing::debug!(%error, "nobody sees that an agent is answered");
            }
        });
    }

    /// Bytes have come through a tunnel, of which nobody knows what they are.
    pub(super) fn carried(&self, bytes: usize) {
        if bytes > KEEP_ALIVE {
            self.answered();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_keeps_a_connection_open_is_nothing_that_comes() {
        let folder = tempfile::tempdir().unwrap();
        let traffic = Traffic::of(folder.path());
        traffic.carried(KEEP_ALIVE);
        assert!(!files::exists(traffic.file()));
        traffic.carried(KEEP_ALIVE + 1);
        assert!(files::exists(traffic.file()));
    }
}
