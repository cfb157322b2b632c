//! What the worker keeps of one generation of a run until the hub has settled it: in the run's folder, durable
//! before it is acted upon. What its agent said is kept there by the driver, and a report is made of that again.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::job::JobSpec;
use crate::platform::files::{self, FileError};

/// What was to be done, and the number of the last control that the agent knew of from the beginning.
const JOB: &str = "job.json";
/// The number of the last control that the agent was given.
const APPLIED: &str = "applied.json";

/// Why something cannot be kept, or found again.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} does not parse: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
}

/// A job as it was kept first.
#[derive(Debug)]
pub(super) struct KeptJob {
    pub(super) job: JobSpec,
    /// The number of the last control that its agent knows.
    pub(super) applied: u32,
    /// Whether it was kept by an earlier start: an agent may have begun.
    pub(super) is_resumed: bool,
}

/// The folder of one generation.
#[derive(Debug, Clone)]
pub(super) struct Spool(PathBuf);

impl Spool {
    pub(super) const fn new(folder: PathBuf) -> Spool {
        Spool(folder)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, SpoolError> {
        let path = self.0.join(name);
        let Some(text) = files::read_text_if_present(&path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|source| SpoolError::Json { path, source })
    }

    fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), SpoolError> {
        let path = self.0.join(name);
        match serde_json::to_vec(value) {
            Ok(text) => Ok(files::write_private_durable(&path, text)?),
            Err(source) => Err(SpoolError::Json { path, source }),
        }
    }

    /// What is to be done, as it was kept first: an agent that has begun goes by that. What it may spend together with others
    /// is what the hub says now, which knows what they have spent meanwhile.
    pub(super) fn keep_job(&self, offered: JobSpec, given: u32) -> Result<KeptJob, SpoolError> {
        if let Some((mut job, given)) = self.read::<(JobSpec, u32)>(JOB)? {
            if let (Some(kept), Some(now)) = (&mut job.proxy, offered.proxy) {
                kept.shared_budgets = now.shared_budgets;
            }
            let applied = self.read(APPLIED)?.unwrap_or(given);
            return Ok(KeptJob { job, applied, is_resumed: true });
        }
        // A build that kept no jobs may have begun with it.
        let is_resumed = files::exists(&self.0);
        files::create_dir_all(&self.0)?;
        self.write(JOB, &(&offered, given))?;
        Ok(KeptJob { job: offered, applied: given, is_resumed })
    }

    pub(super) fn keep_applied(&self, number: u32) -> Result<(), SpoolError> {
        self.write(APPLIED, &number)
    }
}
