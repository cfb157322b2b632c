//! The socket of one run: the tools that its agent has at the team. Who speaks is known from the socket,
//! never from what is said, and an agent holds no right of a person: the planner may change the backlog,
//! and that is all that any agent may do here.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::control::{self, Call, ControlError, Reply, Wanted};
use super::refusals::{self, Refusals};
use super::run_tools::{self, AtWork};
use super::team::Team;
use crate::domain::actor::Actor;
use crate::domain::backlog::BacklogSource;
use crate::domain::incoming::Command;
use crate::domain::refusal::Refusal;
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::platform::accept::AcceptRetry;
use crate::platform::files::{self, FileError};
use crate::platform::{supervise, tasks};

pub use crate::agents::RUN_SOCKET;

/// Bytes of the longest path that a socket can have, the ending zero left aside.
const LONGEST_PATH: usize = 107;

/// A socket that listens until it is dropped; its file goes with it.
pub(super) struct RunSocket {
    path: PathBuf,
    _listens: DropGuard,
}

impl Drop for RunSocket {
    fn drop(&mut self) {
        let folder = self.path.parent().unwrap_or(&self.path);
        let gone = files::remove_file(&self.path).and_then(|()| files::remove_dir_if_empty(folder));
        if let Err(error) = gone {
            tracing::warn!(%error, "the socket of a run stays behind");
        }
    }
}

/// Why a run has no socket.
#[derive(Debug, thiserror::Error)]
enum NoSocket {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot listen: {0}")]
    Io(#[from] std::io::Error),
    #[error("its path would be longer than {LONGEST_PATH} bytes; set TMPDIR to a shorter one")]
    TooLong,
}

/// Where the socket of a run is. It follows from the run, so that a restart finds the agent that an
/// earlier start left behind where it expects the team.
pub(super) fn path(team: &Team, run: &Run) -> PathBuf {
    folder_of(team, run).join("run.sock")
}

/// The folder of a run's sockets, which its agent's sandbox shows.
pub(super) fn folder_of(team: &Team, run: &Run) -> PathBuf {
    use sha2::{Digest, Sha256};
    let run = format!("{}\n{}.{}", team.root().display(), run.run_id, run.generation);
    let name: String = Sha256::digest(run).iter().take(8).map(|b| format!("{b:02x}")).collect();
    folder().join(name)
}

/// A folder of this user alone. Paths in a workspace are often longer than a socket's may be.
fn folder() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("teams-{user}"))
}

/// Makes that folder, for this user alone.
pub(super) fn make_folder(team: &Team, run: &Run) -> Result<(), FileError> {
    files::create_private_dir(&folder())?;
    files::create_private_dir(&folder_of(team, run))
}

/// Opens the socket of a run. A run without one has no tools, which is logged and no reason to fail.
pub(super) fn open(team: &Arc<Team>, run: &Run, run_dir: PathBuf) -> Option<RunSocket> {
    match listen(team, run, run_dir) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::warn!(run = %run.run_id, %error, "the run has no tools of the team");
            None
        }
    }
}

fn listen(team: &Arc<Team>, run: &Run, run_dir: PathBuf) -> Result<RunSocket, NoSocket> {
    let path = path(team, run);
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(NoSocket::TooLong);
    }
    make_folder(team, run)?;
    // Left behind by an earlier start.
    files::remove_file(&path)?;
    let listener = UnixListener::bind(&path)?;
    let stop = CancellationToken::new();
    let socket = RunSocket { path, _listens: stop.clone().drop_guard() };
    files::set_mode(&socket.path, 0o600)?;
    let (team, run, run_dir) = (Arc::clone(team), run.clone(), Arc::<Path>::from(run_dir));
    let counts = Arc::new(Counts::default());
    tasks::spawn("run-socket", async move {
        let mut retry = AcceptRetry::new("run");
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                () = team.closing.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Some((stream, _)) = retry.settle(accepted).await else { continue };
            let (team, run, stop) = (Arc::clone(&team), run.clone(), stop.clone());
            let (run_dir, counts) = (Arc::clone(&run_dir), Arc::clone(&counts));
            tasks::spawn("run-call", async move {
                let served = tokio::select! {
                    () = stop.cancelled() => return,
                    served = serve(&team, &run, &run_dir, &counts, stream) => served,
                };
                if let Err(error) = served {
                    tracing::debug!(%error, "the call of an agent broke off");
                }
            });
        }
    });
    Ok(socket)
}

async fn serve(
    team: &Team,
    run: &Run,
    run_dir: &Path,
    counts: &Counts,
    mut stream: UnixStream,
) -> Result<(), ControlError> {
    // Agents share a user: another one may have found the path, but its processes are not of this run.
    let peer = stream.peer_cred()?.pid();
    let call = control::read(&mut stream).await?;
    let ours = peer.is_some_and(|pid| supervise::belongs_to(pid, run_dir));
    let told = match call {
        _ if !ours => {
            // Not this run's doing.
            if let Some(other) = refusals::run_of(team, peer) {
                let what = format!("the tools of {} on {}", run.role, run.request_id);
                let (run, refusal) = (&other.run_id, Refusal::OtherRun);
                counts.refusals.note(team, run, refusal, &what).await;
            }
            Err(Refused { refusal: None, why: "these are the tools of another run".to_owned() })
        }
        Ok(call) => match call.wanted {
            Wanted::Tools => Ok(run_tools::offer(team, run)),
            Wanted::Use { tool, arguments } => {
                let at_work = AtWork { team, run, run_dir, notes: &counts.notes };
                at_work.serve(tool, arguments).await
            }
            wanted @ (Wanted::Command(_) | Wanted::Question(_)) => command(team, run, wanted).await,
        },
        Err(refusal) => Ok(refusal),
    };
    let reply = match told {
        Ok(reply) => reply,
        Err(Refused { refusal, why }) => {
            if let Some((refusal, what)) = refusal {
                counts.refusals.note(team, &run.run_id, refusal, &what).await;
            }
            Reply::no(why)
        }
    };
    control::write(&mut stream, &reply).await
}

/// What an agent may not, whatever it says.
#[derive(Debug, PartialEq)]
pub(super) struct Refused {
    /// The kind of it, and what it was; none where it is noted elsewhere.
    refusal: Option<(Refusal, String)>,
    /// What the agent is told.
    why: String,
}

impl Refused {
    fn new(refusal: Refusal, what: &str, why: String) -> Refused {
        Refused::of_a_kind(Some(refusal), what, why)
    }

    /// The same, or without a kind where nothing was tried that has to be noted.
    pub(super) fn of_a_kind(refusal: Option<Refusal>, what: &str, why: String) -> Refused {
        Refused { refusal: refusal.map(|kind| (kind, what.to_owned())), why }
    }
}

/// What is counted for one run.
#[derive(Debug, Default)]
struct Counts {
    /// Notes that it made.
    notes: AtomicU32,
    /// What it was refused here.
    refusals: Refusals,
}

/// Does what an agent commands, where its role may.
pub(super) async fn command(team: &Team, run: &Run, wanted: Wanted) -> Result<Reply, Refused> {
    let command = tool(run.role, wanted)?;
    let actor = Actor::Agent { role: run.role, request_id: run.request_id.clone() };
    tracing::info!(role = %run.role, request = %run.request_id, "an agent uses a tool");
    Ok(control::submit(team, actor, command).await)
}

/// The command as an agent of this role may give it.
fn tool(role: Role, wanted: Wanted) -> Result<Command, Refused> {
    let command = match wanted {
        Wanted::Command(command) => command,
        Wanted::Question(_) | Wanted::Tools | Wanted::Use { .. } => {
            let why = "that is for people; an agent cannot ask it".to_owned();
            return Err(Refused::new(Refusal::Command, "a question", why));
        }
    };
    let name = match command {
        Command::BacklogMerge { payload, source: _ } if role == Role::Planner => {
            return Ok(Command::BacklogMerge { payload, source: BacklogSource::Planner });
        }
        Command::BacklogMerge { .. } => {
            let why = format!("only the planner keeps the backlog; {role} can propose items");
            return Err(Refused::new(Refusal::Tool, "backlog", why));
        }
        Command::Press { .. } => "press",
        Command::Ask { .. } => "ask",
        Command::Cancel { .. } => "cancel",
        Command::Steer { .. } => "steer",
        Command::Decide { .. } | Command::AskBack { .. } => "approve",
        Command::Retry { .. } => "retry",
        Command::OutboxRetry => "outbox retry",
        Command::OutboxDismiss { .. } => "outbox dismiss",
        Command::SprintStart { .. } => "sprint start",
        Command::SprintStop { .. } => "sprint stop",
        Command::SprintRestart => "sprint restart",
    };
    let why = format!("`{name}` is for people; an agent cannot do it");
    Err(Refused::new(Refusal::Command, name, why))
}

/// Calls the team over the socket of a run, from within that run.
///
/// # Errors
/// [`ControlError::Refused`] with the team's words where it says no.
pub async fn call(socket: &Path, wanted: Wanted) -> Result<Reply, ControlError> {
    // Gone with its run, or kept away by a sandbox: the reason tells which.
    let stream = UnixStream::connect(socket).await.map_err(ControlError::NoTools)?;
    control::exchange(stream, &Call { secret: String::new(), wanted }).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merge(source: BacklogSource) -> Command {
        Command::BacklogMerge { payload: json!([]), source }
    }

    #[test]
    fn only_the_planner_changes_the_backlog_and_only_as_itself() {
        for role in Role::ALL {
            let allowed = tool(role, merge(BacklogSource::User).into());
            if role == Role::Planner {
                assert_eq!(allowed, Ok(merge(BacklogSource::Planner)));
            } else {
                let refused = allowed.unwrap_err().why;
                assert!(refused.contains(role.as_str()), "{refused}");
            }
        }
    }

    #[test]
    fn nothing_else_is_done_for_an_agent() {
        for (command, name) in [
            (Command::SprintStop { now: true }, "sprint stop"),
            (Command::SprintStart { kickoff: Box::default() }, "sprint start"),
            (Command::SprintRestart, "sprint restart"),
        ] {
            let refused = tool(Role::Planner, command.into()).unwrap_err().why;
            assert!(refused.contains(name), "{refused}");
        }
    }
}
