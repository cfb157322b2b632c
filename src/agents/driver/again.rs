//! What agents of an earlier team said, read again from the spool.

use std::path::Path;

use super::folder::{turn_dir, turns};
use super::follow;
use super::keep::{TurnPurpose, read_json};
use super::watch::Watch;
use crate::agents::error::RunError;
use crate::agents::run::{Agent, RunSpec};
use crate::agents::run_folder::{SPEC, STDIN};
use crate::agents::turn::Turn;
use crate::platform::files;
use crate::platform::supervise::{STDOUT_SPOOL, SpoolReader};

/// Reads what an agent said in a turn of an earlier team. What it was told stands in its input already.
pub(super) fn read_again(
    spec: &RunSpec,
    folder: &Path,
    purpose: TurnPurpose,
    watch: &Watch,
) -> Result<Turn, RunError> {
    let told = files::read_text_if_present(&folder.join(STDIN))?.unwrap_or_default();
    let mut turn = Turn::new(follow::codec_again(spec, purpose, &told));
    let mut spool = SpoolReader::new(folder.join(STDOUT_SPOOL));
    loop {
        let piece = spool.read()?;
        if piece.is_empty() {
            break;
        }
        watch.tell(turn.feed(&piece));
    }
    watch.tell(turn.finish());
    Ok(turn)
}

/// The conversation of a run that was cut off and that nobody works on any more, for the same agent to go on
/// with. Only of agents that take a new one where that conversation is lost.
#[must_use]
pub fn conversation(run_dir: &Path, agent: &Agent) -> Option<String> {
    let spec =
        read_json::<RunSpec>(run_dir, SPEC).ok().flatten().filter(|it| it.agent == *agent)?;
    match &spec.agent {
        Agent::Acp(_) => {}
        Agent::Codex(_) | Agent::Claude(_) | Agent::Rehearsal(_) => return None,
    }
    let folder = turn_dir(&spec, turns(run_dir).checked_sub(1)?);
    read_again(&spec, &folder, TurnPurpose::default(), &Watch::default()).ok()?.session
}
