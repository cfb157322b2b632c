//! Child processes that leave nothing behind and whose output outlives us.
//!
//! A supervised program runs under a process of its own: our binary as `teams __supervise <run folder>`.
//! That supervisor adopts every orphan of the program (child subreaper), so that a descendant which
//! left its session or ignores signals is found and ended as well; process groups alone do not reach
//! it. Its control pipe is its stdin. It spools all output into the run folder and writes how it
//! ended there, durably, so that a team which was killed meanwhile can pick up the outcome.
//!
//! Files of a run folder: `spec.json` (what to run), `lock` (locked for the supervisor's life; holds
//! its own complaints), `started.json`, `stdout.spool`, `stderr.spool`, `exit.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::platform::files::{self, FileError};
use crate::platform::machine;

mod adopt;
mod spool;
mod supervised_program;
mod supervisor;
mod tree;

pub use adopt::{Adoption, RunFolderState, adopt};
pub use spool::{OnCap, SpoolReader};
pub use supervised_program::{SupervisedProgram, run, run_until};
pub use supervisor::main;
pub use tree::belongs_to;

pub(crate) const SPEC_FILE: &str = "spec.json";
pub(crate) const LOCK_FILE: &str = "lock";
pub(crate) const STARTED_FILE: &str = "started.json";
pub(crate) const EXIT_FILE: &str = "exit.json";
/// Less free bytes than this, and a supervisor may have had no room to say why it ended.
const ROOM_FOR_WORDS: u64 = 16 * 1024;
/// The program's stdout within the run folder.
pub const STDOUT_SPOOL: &str = "stdout.spool";
/// The program's stderr within the run folder.
pub const STDERR_SPOOL: &str = "stderr.spool";

/// What to do with a program when the team that started it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEof {
    /// Let it end by itself; the next team adopts the outcome.
    Finish,
    /// End it.
    Kill,
}

/// What to run and within which limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The program; an absolute path, or a name that the `PATH` in `env` finds.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment; nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// Its working folder.
    pub cwd: PathBuf,
    /// Whether the program is a sandbox with [`super::inside`] in it: an interrupt is then for that one, and
    /// not for the sandbox, which would end at once with everything in it.
    #[serde(default)]
    pub holds_inside: bool,
    /// The file that it reads as stdin; nothing where absent.
    pub stdin: Option<PathBuf>,
    /// Whether that file is followed as it grows ([`SupervisedProgram::say`]), until the input is ended or the
    /// control pipe closes.
    #[serde(default)]
    pub live_stdin: bool,
    /// Niceness, 0–19.
    pub nice: u8,
    /// Milliseconds of wall time before it is interrupted.
    pub wall_ms: Option<u64>,
    /// Milliseconds without a byte on stdout, without processor time in its whole process tree, and without a change of
    /// `traffic`, before it is interrupted.
    pub idle_ms: Option<u64>,
    /// A file whose time of change says that something came to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<PathBuf>,
    /// Milliseconds between an interrupt and the kill.
    pub grace_ms: u64,
    /// Bytes kept of one line of stdout; the rest of the line is dropped.
    pub max_line_bytes: u64,
    /// Bytes kept of stdout.
    pub max_stdout_bytes: u64,
    /// Bytes kept of stderr; beyond them the middle is dropped.
    pub max_stderr_bytes: u64,
    /// What happens beyond `max_stdout_bytes`.
    pub on_cap: OnCap,
    /// What happens when the control pipe closes.
    pub on_eof: OnEof,
    /// Whether it is simply run again after a power failure: then nothing of it has to survive one.
    #[serde(default)]
    pub is_repeated: bool,
    /// Folders on which it holds a shared lock as long as it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<PathBuf>,
}

impl Spec {
    /// A program without arguments, environment or time limits; it is ended together with us, and
    /// output is capped at 4 MiB a line and 64 MiB in all (`spec/agents.md` 5.7).
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Spec {
        Spec {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: cwd.into(),
            holds_inside: false,
            stdin: None,
            live_stdin: false,
            nice: 10,
            wall_ms: None,
            idle_ms: None,
            traffic: None,
            grace_ms: 4000,
            max_line_bytes: 4 << 20,
            max_stdout_bytes: 64 << 20,
            max_stderr_bytes: 1 << 20,
            on_cap: OnCap::Kill,
            on_eof: OnEof::Kill,
            is_repeated: false,
            locks: Vec::new(),
        }
    }
}

/// Why a supervised program is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// It ended by itself.
    Exit,
    /// The wall-clock limit.
    Wall,
    /// The idle limit.
    Idle,
    /// It wrote too much.
    OutputCap,
    /// We asked for it.
    Cancelled,
    /// The team was gone and the policy says kill.
    ParentGone,
    /// It could not be started.
    NotStarted,
}

/// How a supervised program ended: the content of `exit.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Why it is over.
    pub ended_by: EndedBy,
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// When it was started.
    pub started_at: DateTime<Utc>,
    /// When nothing of it was left.
    pub ended_at: DateTime<Utc>,
    /// Bytes of stdout that were dropped.
    pub dropped_stdout: u64,
    /// Bytes of stderr that were dropped.
    pub dropped_stderr: u64,
    /// Descendants that were still there after the program itself was over, and were killed.
    pub swept: u32,
    /// Why it could not be started.
    pub error: Option<String>,
}

impl Exit {
    /// Bytes of output that were dropped.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped_stdout.saturating_add(self.dropped_stderr)
    }

    /// Whether it ended by itself with exit code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.ended_by == EndedBy::Exit && self.code == Some(0)
    }
}

/// A supervised program that could not be started or followed.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// A file of the run folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of the run folder that does not parse.
    #[error("cannot read {}: {source}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: serde_json::Error,
    },
    /// The run folder is in use.
    #[error("the run folder {} is locked by another supervisor; adopt it instead", .0.display())]
    Locked(PathBuf),
    /// The run folder holds the outcome of an earlier run.
    #[error("the run in {} is over; a new one needs a new folder", .0.display())]
    Over(PathBuf),
    /// The supervisor could not be started.
    #[error("cannot start the supervisor: {0}")]
    Spawn(#[source] std::io::Error),
    /// The control pipe or the wait failed.
    #[error("cannot follow the supervisor: {0}")]
    Follow(#[source] std::io::Error),
    /// The supervisor was killed, and what is left of its program cannot be.
    #[error("a process of {} cannot be killed", path.display())]
    StillAlive {
        /// The run folder.
        path: PathBuf,
    },
    /// The supervisor ended without saying how its program did.
    #[error("the supervisor of {} ended without an outcome: {log}", path.display())]
    Lost {
        /// The run folder.
        path: PathBuf,
        /// What it wrote last.
        log: String,
    },
}

type Result<T> = std::result::Result<T, SuperviseError>;

/// The last bytes of a run's stderr as text, at most `max` of them; empty where there is none.
#[must_use]
pub fn stderr_tail(run_dir: &Path, max: usize) -> String {
    let bytes = files::read(&run_dir.join(STDERR_SPOOL)).unwrap_or_default();
    let from = bytes.len().saturating_sub(max);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    files::read_text_if_present(path)?
        .map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|source| SuperviseError::Parse { path: path.to_owned(), source })
}

fn read_exit(run_dir: &Path) -> Result<Option<Exit>> {
    read_json(&run_dir.join(EXIT_FILE))
}

fn lost(run_dir: &Path) -> SuperviseError {
    let log = files::read(&run_dir.join(LOCK_FILE)).unwrap_or_default();
    let log = match String::from_utf8_lossy(&log).trim() {
        // Its last words lie on the same disk.
        "" if machine::free_bytes(run_dir).is_ok_and(|free| free < ROOM_FOR_WORDS) => {
            "no space left on the disk of the run folder".to_owned()
        }
        "" => "it left no word".to_owned(),
        log => log.to_owned(),
    };
    SuperviseError::Lost { path: run_dir.to_owned(), log }
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
