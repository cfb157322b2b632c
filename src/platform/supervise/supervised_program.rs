//! A program under a supervisor of its own, as its starter follows it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::FlockOperation;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::adopt::outcome;
use super::spool::SpoolReader;
use super::{
    EXIT_FILE, Exit, LOCK_FILE, Result, SPEC_FILE, STDERR_SPOOL, STDOUT_SPOOL, Spec,
    SuperviseError, stderr_tail,
};
use crate::platform::{files, spawn};

/// A running supervised program. Dropping it closes the control pipe: the program then ends or goes
/// on as [`Spec::on_eof`] says.
#[derive(Debug)]
pub struct SupervisedProgram {
    run_dir: PathBuf,
    child: Child,
    control: Option<ChildStdin>,
    pokes: ChildStdout,
    spool: SpoolReader,
    supervisor_gone: bool,
}

impl SupervisedProgram {
    /// Writes `spec.json` into a fresh run folder and starts the supervisor there. The folder's lock
    /// is held from before the supervisor exists, so that there is no moment in which an observer
    /// could take a starting run for one that never began.
    pub fn start(spec: &Spec, run_dir: &Path) -> Result<SupervisedProgram> {
        files::create_dir_all(run_dir)?;
        let lock = files::open_append(&run_dir.join(LOCK_FILE))?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(SuperviseError::Locked(run_dir.to_owned()));
        }
        if files::exists(&run_dir.join(EXIT_FILE)) {
            return Err(SuperviseError::Over(run_dir.to_owned()));
        }
        let path = run_dir.join(SPEC_FILE);
        let text = serde_json::to_vec_pretty(spec)
            .map_err(|source| SuperviseError::Parse { path: path.clone(), source })?;
        files::write_private(&path, text)?;
        files::write_private(&run_dir.join(STDOUT_SPOOL), "")?;
        files::write_private(&run_dir.join(STDERR_SPOOL), "")?;
        let (child, control, pokes) =
            start_supervisor(run_dir, lock).map_err(SuperviseError::Spawn)?;
        Ok(SupervisedProgram {
            run_dir: run_dir.to_owned(),
            child,
            control: Some(control),
            pokes,
            spool: SpoolReader::new(run_dir.join(STDOUT_SPOOL)),
            supervisor_gone: false,
        })
    }

    /// Asks the program to stop (SIGINT); after the grace time it is killed.
    pub async fn interrupt(&mut self) {
        self.command(b"i").await;
    }

    /// Adds to the input of a program with [`Spec::live_stdin`]. What was said stays in that file.
    pub async fn say(&mut self, stdin: &Path, words: &[u8]) -> Result<()> {
        files::append(stdin, words)?;
        self.command(b"w").await;
        Ok(())
    }

    /// Ends the input of a program with [`Spec::live_stdin`]: it has the grace time to end by itself, and
    /// counts as ended by itself also where it does not.
    pub async fn end_input(&mut self) {
        self.command(b"e").await;
    }

    /// Kills the program and everything that came from it.
    pub async fn kill(&mut self) {
        self.command(b"k").await;
    }

    async fn command(&mut self, byte: &[u8]) {
        if let Some(control) = &mut self.control
            && control.write_all(byte).await.is_err()
        {
            // The supervisor is already ending; `wait` tells how.
            self.control = None;
        }
    }

    /// The next piece of stdout; `None` when the program is over and all of it was read. Safe to
    /// cancel: nothing is lost.
    pub async fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let mut pokes = [0_u8; 512];
        loop {
            let piece = self.spool.read()?;
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
            if self.supervisor_gone {
                return Ok(None);
            }
            let read = self.pokes.read(&mut pokes).await;
            self.supervisor_gone = read.map_err(SuperviseError::Follow)? == 0;
        }
    }

    /// Waits until nothing of the program is left.
    pub async fn wait(&mut self) -> Result<Exit> {
        // tokio's `wait` would close a stdin that it still owns; ours was taken at the start.
        self.child.wait().await.map_err(SuperviseError::Follow)?;
        self.supervisor_gone = true;
        outcome(&self.run_dir).await
    }

    /// The last bytes of stderr as text, at most `max` of them.
    pub fn stderr_tail(&self, max: usize) -> String {
        stderr_tail(&self.run_dir, max)
    }
}

/// Runs a program to its end and gives its outcome; its output is in the spools of the run folder.
/// Where the future is dropped, the program ends or goes on as [`Spec::on_eof`] says.
pub async fn run(spec: &Spec, run_dir: &Path) -> Result<Exit> {
    run_until(spec, run_dir, std::future::pending()).await
}

/// As [`run`]; where `stop` comes first, the program is killed, and the outcome comes when nothing of
/// it is left.
pub async fn run_until(
    spec: &Spec,
    run_dir: &Path,
    stop: impl Future<Output = ()>,
) -> Result<Exit> {
    let mut program = SupervisedProgram::start(spec, run_dir)?;
    tokio::select! {
        exit = program.wait() => return exit,
        () = stop => {}
    }
    program.kill().await;
    program.wait().await
}

#[expect(clippy::disallowed_methods, reason = "this module owns processes")]
fn start_supervisor(
    run_dir: &Path,
    lock: std::fs::File,
) -> std::io::Result<(Child, ChildStdin, ChildStdout)> {
    let mut child = tokio::process::Command::new(spawn::own_binary()?)
        .arg(spawn::SUPERVISE)
        .arg(run_dir)
        // The environment of a process can be read through /proc by whatever has our user id, the
        // program under supervision included; so none of ours goes along.
        .env_clear()
        // A terminal's Ctrl-C reaches our group; what becomes of the program is our decision.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A lock belongs to the open file, so this hands it over without a gap.
        .stderr(Stdio::from(lock))
        .spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(control), Some(pokes)) => Ok((child, control, pokes)),
        (None, Some(_) | None) | (Some(_), None) => Err(std::io::ErrorKind::BrokenPipe.into()),
    }
}
