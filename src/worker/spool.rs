//! What the worker keeps of one generation of a run until the hub has settled it: in the run's folder, durable
//! before it is acted upon.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::job::JobSpec;
use crate::domain::run::RunReport;
use crate::platform::files::{self, FileError};

/// What was to be done, and the number of the last control that the agent knew of from the beginning.
const JOB: &str = "job.json";
/// The number of the last control that the agent was given.
const APPLIED: &str = "applied.json";
/// That an agent may have begun.
const BEGUN: &str = "begun";
/// How it ended.
const OVER: &str = "over.json";

/// Why something cannot be kept, or found again.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} does not parse: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
}

/// How a generation ended, as its worker keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KeptEnd {
    Report(Box<RunReport>),
    Lost,
    Ended { agent_lives: bool },
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

    /// What is to be done, as it was kept first: an agent that has begun goes by that.
    pub(super) fn keep_job(&self, job: JobSpec, given: u32) -> Result<(JobSpec, u32), SpoolError> {
        if let Some(kept) = self.read(JOB)? {
            return Ok(kept);
        }
        if files::exists(&self.0) {
            // A build that kept no jobs began with it.
            self.keep_begun()?;
        }
        files::create_dir_all(&self.0)?;
        let job = (job, given);
        self.write(JOB, &job)?;
        Ok(job)
    }

    pub(super) fn applied(&self) -> Result<Option<u32>, SpoolError> {
        self.read(APPLIED)
    }

    pub(super) fn keep_applied(&self, number: u32) -> Result<(), SpoolError> {
        self.write(APPLIED, &number)
    }

    pub(super) fn has_begun(&self) -> bool {
        files::exists(&self.0.join(BEGUN))
    }

    pub(super) fn keep_begun(&self) -> Result<(), SpoolError> {
        Ok(files::write_private_durable(&self.0.join(BEGUN), "")?)
    }

    pub(super) fn end(&self) -> Result<Option<KeptEnd>, SpoolError> {
        self.read(OVER)
    }

    pub(super) fn keep_end(&self, end: &KeptEnd) -> Result<(), SpoolError> {
        self.write(OVER, end)
    }
}
