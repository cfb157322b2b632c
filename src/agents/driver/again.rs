//! Agents of an earlier team: what they said, read again from the spool, and how they end.

use std::path::Path;

use super::keep::{Mark, read_json};
use super::{RunError, SPEC, STDIN, Watch, follow, turn_dir, turn_name, turns};
use crate::agents::run::{Agent, RunSpec};
use crate::agents::turn::Turn;
use crate::platform::files;
use crate::platform::supervise::{
    self, Adopted, Adoption, Exit, STDOUT_SPOOL, SpoolReader, SuperviseError,
};

/// Reads what an agent said in a turn of an earlier team. What it was told stands in its input already.
pub(super) fn read_again(
    spec: &RunSpec,
    folder: &Path,
    mark: Mark,
    watch: &Watch,
) -> Result<Turn, RunError> {
    let told = files::read_text_if_present(&folder.join(STDIN))?.unwrap_or_default();
    let mut turn = Turn::new(follow::codec_again(spec, mark, &told));
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
    read_again(&spec, &folder, Mark::default(), &Watch::default()).ok()?.session
}

/// Ends whatever agent an earlier start left in a run folder, and waits until nothing of it is left.
///
/// # Errors
/// Where that cannot be found out: then it may still be there.
pub async fn end(run_dir: &Path) -> Result<(), RunError> {
    for number in 0..turns(run_dir) {
        match supervise::adopt(&run_dir.join(turn_name(number)))? {
            Adopted::Running(adoption) => {
                adoption.kill()?;
                match adoption.wait().await {
                    // Without an outcome it is over all the same: its lock is free.
                    Ok(_) | Err(SuperviseError::Lost { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Adopted::Finished(_) | Adopted::Never => {}
        }
    }
    Ok(())
}

pub(super) async fn wait_for(adoption: &Adoption, watch: &Watch) -> Result<Exit, RunError> {
    tokio::select! {
        exit = adoption.wait() => return Ok(exit?),
        () = watch.cancel.cancelled() => {}
    }
    adoption.interrupt()?;
    Ok(Exit { ended_by: supervise::EndedBy::Cancelled, ..adoption.wait().await? })
}
