//! The folder of a run: its turns, what they were begun with, and whatever still runs in them.

use std::path::{Path, PathBuf};

use super::keep::{read_json, write_json};
use crate::agents::error::RunError;
use crate::agents::run::{AgentOutcome, RunSpec};
use crate::agents::run_folder::{PROMPT, RESULT, TURN_PROMPT, WORDS};
use crate::agents::words::Words;
use crate::domain::ids::MessageId;
use crate::platform::files;
use crate::platform::supervise::{self, RunFolderState, SuperviseError};

/// Bytes of stderr that a failure may quote.
pub(super) const STDERR_TAIL: usize = 8 << 10;

/// Ends whatever runs in the folder of a turn.
pub(super) async fn end_turn(folder: &Path) -> Result<(), RunError> {
    match supervise::adopt(folder)? {
        RunFolderState::Running(adoption) => {
            adoption.kill()?;
            match adoption.wait().await {
                // Without an outcome it is over all the same: its lock is free.
                Ok(_) | Err(SuperviseError::Lost { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        RunFolderState::Finished(_) | RunFolderState::Never => {}
    }
    Ok(())
}

/// Bytes that a turn was begun with.
pub(super) fn input_bytes(spec: &RunSpec, number: u32) -> u64 {
    let path = match number {
        0 => spec.run_dir.join(PROMPT),
        number => turn_dir(spec, number).join(TURN_PROMPT),
    };
    files::metadata(&path).map_or(0, |meta| meta.len())
}

/// How many turns were begun.
pub(super) fn turns(run_dir: &Path) -> u32 {
    let there = (0..).take_while(|number| files::exists(&run_dir.join(turn_name(*number))));
    u32::try_from(there.count()).unwrap_or(u32::MAX)
}

/// The messages that the turns up to this one were begun with.
pub(super) fn interrupted_for(spec: &RunSpec, number: u32) -> Vec<MessageId> {
    let words = (0..number).filter_map(|earlier| {
        read_json::<Vec<Words>>(&turn_dir(spec, earlier), WORDS).ok().flatten()
    });
    words.flatten().map(|words| words.id).collect()
}

pub(super) fn turn_dir(spec: &RunSpec, number: u32) -> PathBuf {
    spec.run_dir.join(turn_name(number))
}

pub(in crate::agents) fn turn_name(number: u32) -> String {
    format!("turn-{number}")
}

/// Keeps the outcome for a team that is killed before it has applied it.
pub(super) fn keep(spec: &RunSpec, outcome: &AgentOutcome) {
    if let Err(error) = write_json(&spec.run_dir, RESULT, outcome) {
        tracing::warn!(run = spec.run_id.as_str(), %error, "cannot keep the result");
    }
}
