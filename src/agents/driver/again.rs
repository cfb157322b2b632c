//! What agents of an earlier team said, read again from the spool, and followed where one still works.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::follow::{self, LAST_WORD, NOTED};
use super::keep::TurnPurpose;
use super::rollout::Rollout;
use super::usage_count::UsageCount;
use super::watch::Watch;
use crate::agents::error::RunError;
use crate::agents::run::RunSpec;
use crate::agents::run_folder::{STDIN, STUCK};
use crate::agents::turn::Turn;
use crate::platform::supervise::{
    Adoption, EndedBy, Exit, STDOUT_SPOOL, SpoolReader, SuperviseError,
};
use crate::platform::{files, tasks};

/// How long an agent of an earlier start may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// A turn of an earlier team. What its agent was told stands in its input already.
pub(super) struct EarlierTurn {
    spec: Arc<RunSpec>,
    folder: PathBuf,
    turn: Turn,
    spool: SpoolReader,
    rollout: Option<Rollout>,
}

impl EarlierTurn {
    /// Nothing of it is read yet, but for its input. Blocks.
    pub(super) fn open(
        spec: Arc<RunSpec>,
        folder: PathBuf,
        purpose: TurnPurpose,
    ) -> Result<EarlierTurn, RunError> {
        let told = files::read_text_if_present(&folder.join(STDIN))?.unwrap_or_default();
        let turn = Turn::new(follow::codec_again(&spec, purpose, &told));
        let spool = SpoolReader::new(folder.join(STDOUT_SPOOL));
        let rollout = Rollout::of(&spec.agent);
        Ok(EarlierTurn { spec, folder, turn, spool, rollout })
    }

    /// Reads what is new. Blocks.
    fn read_on(&mut self, watch: &Watch) -> Result<(), RunError> {
        loop {
            let piece = self.spool.read()?;
            if piece.is_empty() {
                break;
            }
            watch.tell(self.turn.feed(&piece));
        }
        if let Some(rollout) = &mut self.rollout {
            rollout.count(&self.spec, &mut self.turn);
        }
        Ok(())
    }

    /// Reads the rest, where its agent has ended. Blocks.
    pub(super) fn finish(mut self, watch: &Watch) -> Result<Turn, RunError> {
        self.read_on(watch)?;
        if let Some(rollout) = &mut self.rollout {
            rollout.count_all(&self.spec, &mut self.turn);
        }
        watch.tell(self.turn.finish());
        Ok(self.turn)
    }

    /// Waits until its agent has ended; when cancelled, or over its budget, it is asked to. `before` is what the run had
    /// used before this turn.
    pub(super) async fn until_its_end(
        mut self,
        adoption: &Adoption,
        before: UsageCount,
        watch: &Watch,
    ) -> Result<(EarlierTurn, Exit), RunError> {
        let mut ended = pin!(adoption.wait());
        let mut cancelled = false;
        // When one that is over, or over its budget, is asked to end.
        let mut asked_at: Option<Instant> = None;
        // When patience with one that was asked is over.
        let mut at_last: Option<Instant> = None;
        // One that is over was given the time to end by itself.
        let mut was_given_time = false;
        // The earlier team was about to stop it.
        let mut is_stuck = files::exists(&self.folder.join(STUCK));
        if is_stuck {
            at_last = Some(interrupt(adoption)?);
        }
        let exit = loop {
            tokio::select! {
                biased;
                exit = &mut ended => break exit?,
                () = watch.cancel.cancelled(), if !cancelled => {
                    (cancelled, asked_at) = (true, None);
                    at_last = Some(interrupt(adoption)?);
                }
                () = watch.over_budget.cancelled(), if !cancelled && !is_stuck && !self.turn.is_over() => {
                    is_stuck = true;
                    follow::note_failure(&self.spec, &self.folder, &follow::over_budget())?;
                    let may_be_done = self.rollout.is_some() && !self.turn.has_open_tools();
                    let moment = if may_be_done { LAST_WORD } else { Duration::ZERO };
                    asked_at = Some(Instant::now() + moment);
                }
                () = sleep_until(asked_at.unwrap_or_else(Instant::now)), if asked_at.is_some() => {
                    asked_at = None;
                    at_last = Some(interrupt(adoption)?);
                }
                () = sleep_until(at_last.unwrap_or_else(Instant::now)), if at_last.is_some() => {
                    at_last = None;
                    adoption.kill()?;
                }
                () = sleep(NOTED) => {
                    let watch = watch.clone();
                    self = tasks::blocking(move || {
                        self.read_on(&watch)?;
                        watch.tell_used(before.with(&self.spec, &self.turn));
                        Ok::<_, RunError>(self)
                    })
                    .await??;
                    if self.turn.is_over() && !was_given_time && at_last.is_none() {
                        was_given_time = true;
                        asked_at = Some(Instant::now() + GRACE);
                    }
                }
            }
        };
        let ended_by = if cancelled { EndedBy::Cancelled } else { exit.ended_by };
        Ok((self, Exit { ended_by, ..exit }))
    }
}

/// Asks an agent to end; until when it has to have done that.
fn interrupt(adoption: &Adoption) -> Result<Instant, SuperviseError> {
    adoption.interrupt()?;
    Ok(Instant::now() + GRACE)
}

/// Reads what an agent said in a turn of an earlier team, to its end. Blocks.
pub(super) fn read_again(
    spec: &RunSpec,
    folder: PathBuf,
    purpose: TurnPurpose,
) -> Result<Turn, RunError> {
    // What it did was told while it did it.
    EarlierTurn::open(Arc::new(spec.clone()), folder, purpose)?.finish(&Watch::default())
}
