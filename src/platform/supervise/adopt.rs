//! What became of a run whose team is gone.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::tree::ProcessStart;
use super::{
    Exit, LOCK_FILE, Result, SPEC_FILE, STARTED_FILE, Spec, SuperviseError, lost, millis,
    read_exit, read_json, tree,
};
use crate::platform::files::{self, FileError};
use crate::platform::tasks;

/// The process that the supervisor looks after: the content of `started.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StartRecord {
    pub(super) child_pid: i32,
    /// When it began; none where an earlier build started it.
    #[serde(default)]
    pub(super) began: Option<ProcessStart>,
}

/// What stands in a run folder.
#[derive(Debug)]
pub enum RunFolderState {
    /// Its supervisor still works.
    Running(Adoption),
    /// It is over.
    Finished(Exit),
    /// It never began, or its supervisor was killed: there is no outcome.
    Never,
}

/// A run of an earlier team that still goes on.
#[derive(Debug)]
pub struct Adoption {
    run_dir: PathBuf,
}

/// Looks at a run folder of an earlier team.
pub fn adopt(run_dir: &Path) -> Result<RunFolderState> {
    let path = run_dir.join(LOCK_FILE);
    if !files::exists(&path) {
        return Ok(RunFolderState::Never);
    }
    let lock = files::open_append(&path)?;
    // The outcome is written before the lock is given up, so it is read after the lock was tried.
    let free = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    let exit = match read_exit(run_dir) {
        // It went with the power before it was durable; whoever did not sync it repeats the run.
        Err(SuperviseError::Parse { .. }) if free => None,
        exit => exit?,
    };
    Ok(match exit {
        Some(exit) if free => RunFolderState::Finished(exit),
        None if free => {
            end_orphan(run_dir)?;
            RunFolderState::Never
        }
        Some(_) | None => RunFolderState::Running(Adoption { run_dir: run_dir.to_owned() }),
    })
}

/// How long a killed program is waited for.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Kills what is left of a program whose supervisor was killed: nobody looks after it any more, and it would go on writing
/// where the next one begins.
///
/// # Errors
/// [`SuperviseError::StillAlive`].
fn end_orphan(run_dir: &Path) -> Result<()> {
    // What a power failure tore is of no process that lives.
    let started = read_json(&run_dir.join(STARTED_FILE)).ok().flatten();
    let Some(StartRecord { child_pid, began: Some(began) }) = started else { return Ok(()) };
    // No other process has the number of a group of which one lives.
    let is_another = tree::began(child_pid).is_some_and(|it| it != began);
    if is_another || !began.is_of_this_boot() {
        return Ok(());
    }
    let deadline = Instant::now() + KILL_LIMIT;
    loop {
        let left = tree::left_of(child_pid, run_dir);
        if left.is_empty() {
            return Ok(());
        }
        left.into_iter().for_each(|process| signal(process, Signal::KILL));
        if Instant::now() > deadline {
            return Err(SuperviseError::StillAlive { path: run_dir.to_owned() });
        }
        thread::sleep(millis(10));
    }
}

/// What came of a run whose supervisor is gone. Where that was killed, its program does not go on.
pub(super) async fn outcome(run_dir: &Path) -> Result<Exit> {
    if let Some(exit) = read_exit(run_dir)? {
        return Ok(exit);
    }
    let folder = run_dir.to_owned();
    let ended = tasks::blocking(move || end_orphan(&folder)).await;
    ended.map_err(|error| SuperviseError::Follow(std::io::Error::other(error)))??;
    Err(lost(run_dir))
}

impl Adoption {
    /// Waits until the supervisor gave up its lock, and takes its outcome.
    pub async fn wait(&self) -> Result<Exit> {
        let path = self.run_dir.join(LOCK_FILE);
        let lock = files::open_append(&path)?;
        let locked = tasks::blocking(move || {
            rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(std::io::Error::from)
        });
        match locked.await {
            Ok(Ok(())) => outcome(&self.run_dir).await,
            Ok(Err(source)) => {
                Err(SuperviseError::File(FileError { action: "lock", path, source }))
            }
            Err(error) => Err(SuperviseError::Follow(std::io::Error::other(error))),
        }
    }

    /// Asks the program to stop (SIGINT), or what is in its sandbox. The control pipe went with the earlier team.
    pub fn interrupt(&self) -> Result<()> {
        let spec: Option<Spec> = read_json(&self.run_dir.join(SPEC_FILE))?;
        if let Some(program) = self.program()?
            && !(spec.is_some_and(|spec| spec.holds_inside) && tree::interrupt_inside(program))
        {
            signal(program, Signal::INT);
        }
        Ok(())
    }

    /// Kills the program; its supervisor then ends everything that came from it.
    pub fn kill(&self) -> Result<()> {
        if let Some(program) = self.program()? {
            signal(program, Signal::KILL);
        }
        Ok(())
    }

    /// The number of the program while it lives and its supervisor has not said how it ended: then, or when that is about
    /// to say so, the number may be another one's.
    fn program(&self) -> Result<Option<i32>> {
        if read_exit(&self.run_dir)?.is_some() {
            return Ok(None);
        }
        let started: Option<StartRecord> = read_json(&self.run_dir.join(STARTED_FILE))?;
        let lives = |it: &StartRecord| {
            let now = tree::began(it.child_pid);
            now.is_some() && (it.began.is_none() || it.began == now)
        };
        Ok(started.filter(lives).map(|it| it.child_pid))
    }
}

fn signal(program: i32, signal: Signal) {
    if let Some(program) = Pid::from_raw(program) {
        // An error means that it is gone, which is what was asked for.
        let _ = kill_process(program, signal);
    }
}
