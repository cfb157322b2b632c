//! The socket of one run: what its agent says to the team. Who speaks is known from the socket and the process, never
//! from what is said; the hub decides what it may.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::job::JobSpec;
use super::messages::{pack, remove};
use super::worker::Worker;
use crate::domain::assignment::RunCall;
use crate::domain::ids::RunId;
use crate::domain::refusal::Refusal;
use crate::platform::accept::AcceptRetry;
use crate::platform::files::{self, FileError};
use crate::platform::{supervise, tasks};

/// Bytes of the longest path that a socket can have, the ending zero left aside.
const LONGEST_PATH: usize = 107;
/// Bytes of one call.
const MAX_CALL: u64 = 4 << 20;
/// Calls of one run that are read and answered at the same time; others wait to be let in.
const AT_ONCE: usize = 16;
/// How long a call may take to come, and one of another run, which is answered no.
const READS: Duration = Duration::from_secs(30);
const READS_OF_OTHERS: Duration = Duration::from_secs(1);

/// A socket that listens until it is dropped; its file goes with it, unless the team stops: the sandbox of an agent that
/// works on shows this very folder, in which the next start makes another one.
pub(super) struct RunSocket {
    path: PathBuf,
    closing: CancellationToken,
    _listens: DropGuard,
}

impl RunSocket {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunSocket {
    fn drop(&mut self) {
        if self.closing.is_cancelled() {
            return;
        }
        let folder = self.path.parent().unwrap_or(&self.path);
        let gone = files::remove_file(&self.path).and_then(|()| files::remove_dir_if_empty(folder));
        if let Err(error) = gone {
            tracing::warn!(%error, "the socket of a run stays behind");
        }
    }
}

/// Why a run has no socket.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSocket {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot listen: {0}")]
    Io(#[from] std::io::Error),
    #[error("its path would be longer than {LONGEST_PATH} bytes; set TMPDIR to a shorter one")]
    TooLong,
}

/// Where the socket of a run is. It follows from the run's folder, so that a restart finds the agent that an
/// earlier start left behind where it expects the team.
pub(super) fn path(run_dir: &Path) -> PathBuf {
    folder_of(run_dir).join("run.sock")
}

/// The folder of a run's sockets, which its agent's sandbox shows.
pub(super) fn folder_of(run_dir: &Path) -> PathBuf {
    // The workspace and the run: an agent that outlives an update finds the socket where it was.
    let workspace = run_dir.ancestors().nth(4).unwrap_or(run_dir);
    let run = run_dir.file_name().unwrap_or_default().to_string_lossy();
    let run = format!("{}\n{run}", workspace.display());
    let name: String = Sha256::digest(run).iter().take(8).map(|b| format!("{b:02x}")).collect();
    folder().join(name)
}

/// A folder of this user alone. Paths in a workspace are often longer than a socket's may be. Where systemd keeps one for
/// the service from start to start it is there: a private `/tmp` is another one each time.
fn folder() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    let kept =
        std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from).filter(|it| it.is_absolute());
    kept.unwrap_or_else(std::env::temp_dir).join(format!("teams-{user}"))
}

/// Makes that folder, for this user alone.
pub(super) fn make_folder(run_dir: &Path) -> Result<(), FileError> {
    files::create_private_dir(&folder())?;
    files::create_private_dir(&folder_of(run_dir))
}

/// Opens the socket of a run. A run without one has no tools, which is logged and no reason to fail.
pub(super) fn open(worker: &Arc<Worker>, job: &JobSpec, run_dir: &Path) -> Option<RunSocket> {
    match listen(worker, job, run_dir) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::warn!(run = %job.run_id, %error, "the run has no tools of the team");
            None
        }
    }
}

fn listen(worker: &Arc<Worker>, job: &JobSpec, run_dir: &Path) -> Result<RunSocket, NoSocket> {
    let path = path(run_dir);
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(NoSocket::TooLong);
    }
    make_folder(run_dir)?;
    // Left behind by an earlier start.
    files::remove_file(&path)?;
    let listener = UnixListener::bind(&path)?;
    let stop = CancellationToken::new();
    let closing = worker.parts.closing.clone();
    let socket = RunSocket { path, closing, _listens: stop.clone().drop_guard() };
    files::set_mode(&socket.path, 0o600)?;
    let worker = Arc::clone(worker);
    let own = Arc::new(Own {
        run_id: job.run_id.clone(),
        run_dir: run_dir.to_owned(),
        tools: format!("the tools of {} on {}", job.role, job.request_id),
    });
    tasks::spawn("run-socket", async move {
        let mut retry = AcceptRetry::new("run");
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let place = tokio::select! {
                () = stop.cancelled() => return,
                () = worker.parts.closing.cancelled() => return,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                () = worker.parts.closing.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Some((stream, _)) = retry.settle(accepted).await else { continue };
            let (worker, own, stop) = (Arc::clone(&worker), Arc::clone(&own), stop.clone());
            tasks::spawn("run-call", async move {
                let _place = place;
                if let Err(error) = serve(&worker, &own, stream, &stop).await {
                    tracing::debug!(%error, "the call of an agent broke off");
                }
            });
        }
    });
    Ok(socket)
}

/// Whose socket it is.
struct Own {
    run_id: RunId,
    run_dir: PathBuf,
    /// Its tools, for people.
    tools: String,
}

/// Serves a call until the run is over. What was sent to the hub is waited for, and then removed: its answer comes, or
/// the run's end.
async fn serve(
    worker: &Worker,
    own: &Own,
    mut stream: UnixStream,
    stop: &CancellationToken,
) -> std::io::Result<()> {
    // Agents share a user: another one may have found the path, but its processes are not of this run.
    let peer = stream.peer_cred()?.pid();
    let is_ours = || peer.is_some_and(|pid| supervise::belongs_to(pid, &own.run_dir));
    // Its number may be another one's by the time that it has spoken.
    let was_ours = is_ours();
    let mut line = String::new();
    let mut reader = BufReader::new((&mut stream).take(MAX_CALL));
    let patience = if was_ours { READS } else { READS_OF_OTHERS };
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        read = tokio::time::timeout(patience, reader.read_line(&mut line)) => { read??; }
    }
    let ours = was_ours && is_ours();
    let answer = if ours {
        let transport = &*worker.parts.transport;
        let line = pack(transport, line).await.map_err(std::io::Error::other)?;
        let said = worker.say_for(&own.run_id, RunCall::Tool(line.clone())).await;
        remove(transport, &line).await;
        // The run ended meanwhile.
        said.ok_or(std::io::ErrorKind::BrokenPipe)?
    } else {
        if let Some(other) = peer.and_then(|pid| worker.run_of(pid)) {
            let what = own.tools.clone();
            worker.say_for(&other, RunCall::Refused { refusal: Refusal::OtherRun, what }).await;
        }
        serde_json::json!({"ok": false, "text": "these are the tools of another run"}).to_string()
    };
    let written = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.write_all(b"\n").await
    };
    tokio::select! {
        () = stop.cancelled() => Ok(()),
        written = written => written,
    }
}
