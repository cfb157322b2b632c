//! The control socket: how the command line talks to a running team. Every call carries the secret
//! of this start, which lies in a file that only the operator can read and no agent's sandbox sees. An
//! agent's tools speak the same words, without the secret, over the socket of its run.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::answers;
use super::ended::with_ended;
use super::refusals::{self, Refusals};
use super::team::Team;
use super::tool::Tool;
use crate::domain::actor::Actor;
use crate::domain::commands::Question;
use crate::domain::event::Event;
use crate::domain::incoming::Command;
use crate::domain::outgoing::Content;
use crate::domain::refusal::Refusal;
use crate::engine::Answer;
use crate::platform::accept::AcceptRetry;
use crate::platform::files::{self, FileError};
use crate::platform::redact::{self, redact};
use crate::platform::{ids, socket, tasks};

/// Bytes of one call.
pub(super) const MAX_CALL: usize = 4 << 20;
/// How long a call may take to come.
const READS: Duration = Duration::from_secs(30);

/// Why a call got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens.
    #[error("no team is running in {}", .0.display())]
    NotRunning(PathBuf),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The socket.
    #[error("the team did not answer: {0}")]
    Io(#[from] std::io::Error),
    /// The answer is not one.
    #[error("the team's answer cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// The team says no.
    #[error("{0}")]
    Refused(String),
    /// The socket of a run cannot be reached.
    #[error("the tools of this run cannot be reached from here: {0}")]
    NoTools(#[source] std::io::Error),
    /// More than fits.
    #[error("that is {0} bytes, and one call takes at most {MAX_CALL}; send it in parts")]
    TooLong(usize),
}

/// One call.
#[derive(Serialize, Deserialize)]
pub(super) struct Call {
    /// The secret of this start; blank on the socket of a run, which needs none.
    #[serde(default)]
    pub(super) secret: String,
    /// What to do, or to tell.
    pub(super) wanted: CallSubject,
}

/// What a call is about.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallSubject {
    /// Something to be done.
    Command(Command),
    /// Something to be shown.
    Question(Question),
    /// The tools that an agent has, as MCP lists them.
    Tools,
    /// An agent uses one.
    Use {
        /// Which.
        tool: Tool,
        /// With what.
        arguments: Value,
    },
}

impl From<Command> for CallSubject {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

impl From<Question> for CallSubject {
    fn from(question: Question) -> Self {
        Self::Question(question)
    }
}

/// What the team says to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Whether it was done.
    pub ok: bool,
    /// For people.
    pub text: String,
    /// For programs: what the text was made from, where the team had something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

impl Reply {
    pub(super) fn yes(text: impl Into<String>) -> Reply {
        Reply { ok: true, text: text.into(), content: None }
    }

    pub(super) fn no(text: impl Into<String>) -> Reply {
        Reply { ok: false, text: text.into(), content: None }
    }
}

fn socket_of(root: &Path) -> PathBuf {
    root.join(".teams_runtime").join("control.sock")
}

fn secret_file(root: &Path) -> PathBuf {
    root.join(".teams_runtime").join("control.secret")
}

/// Listens until the team closes. A team that cannot listen at all works on without the command line.
pub(super) async fn listen(team: Arc<Team>, bound: Result<(UnixListener, Arc<str>), ControlError>) {
    let (listener, secret) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            tracing::warn!(%error, "the control socket is closed; the command line cannot reach the team");
            return team.closing.cancelled().await;
        }
    };
    let refusals = Arc::new(Refusals::default());
    let mut retry = AcceptRetry::new("control");
    loop {
        let accepted = tokio::select! {
            () = team.closing.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Some((stream, _)) = retry.settle(accepted).await else { continue };
        let (team, secret) = (Arc::clone(&team), Arc::clone(&secret));
        let refusals = Arc::clone(&refusals);
        tasks::spawn("control-call", async move {
            if let Err(error) = serve(&team, &secret, &refusals, stream).await {
                tracing::debug!(%error, "a control call broke off");
            }
        });
    }
}

/// The socket, and the secret of this start.
pub(super) fn bind(team: &Team) -> Result<(UnixListener, Arc<str>), ControlError> {
    let path = socket_of(team.root());
    files::remove_file(&path)?;
    let secret: Arc<str> = ids::secret().into();
    redact::register(&secret);
    files::write_private(&secret_file(team.root()), secret.as_bytes())?;
    let listener = socket::bind(&path)?;
    files::set_mode(&path, 0o600)?;
    Ok((listener, secret))
}

async fn serve(
    team: &Arc<Team>,
    secret: &str,
    refusals: &Refusals,
    mut stream: UnixStream,
) -> Result<(), ControlError> {
    let peer = stream.peer_cred()?.pid();
    let call = read(&mut stream).await?;
    // Whatever an agent found, this is not for it.
    let agent = refusals::run_of(team, peer);
    if let Some(run) = &agent {
        refusals.note(team, &run.run_id, Refusal::Control, "control.sock").await;
        let reply = Reply::no("this is for the operator; an agent has the tools of its run");
        return write(&mut stream, &reply).await;
    }
    let reply = match call {
        Ok(call) if same(&call.secret, secret) => match call.wanted {
            CallSubject::Command(command) => {
                let command = with_ended(team, command).await;
                submit(team, Actor::Operator, command).await
            }
            CallSubject::Question(question) => answered(team, question).await,
            CallSubject::Tools | CallSubject::Use { .. } => {
                Reply::no("these are the tools of agents; they are there within a run only")
            }
        },
        Ok(_) => Reply::no("the secret is not that of this start"),
        Err(refusal) => refusal,
    };
    write(&mut stream, &reply).await
}

/// Reads a call; what is none is answered with the reply inside.
async fn read(stream: &mut UnixStream) -> Result<Result<Call, Reply>, ControlError> {
    let mut line = String::new();
    let limit = MAX_CALL as u64;
    let mut reader = BufReader::new(stream.take(limit));
    tokio::time::timeout(READS, reader.read_line(&mut line))
        .await
        .map_err(std::io::Error::from)??;
    Ok(call_of(&line).map_err(Reply::no))
}

/// The call of a line; else why it is none.
pub(super) fn call_of(line: &str) -> Result<Call, String> {
    serde_json::from_str(line).map_err(|error| {
        format!("not a call that this team knows ({error}): where another build of teams called, use one for both, and start the team again with it")
    })
}

/// A reply as it goes back, without secrets.
pub(super) fn line(reply: &Reply) -> String {
    let reply = Reply { text: redact(&reply.text).into_owned(), ..reply.clone() };
    serde_json::to_string(&reply).unwrap_or_default()
}

/// Answers a call.
async fn write(stream: &mut UnixStream, reply: &Reply) -> Result<(), ControlError> {
    stream.write_all(line(reply).as_bytes()).await?;
    stream.write_all(b"\n").await?;
    Ok(())
}

/// Compares without telling by its time how much was right.
fn same(given: &str, secret: &str) -> bool {
    use sha2::{Digest, Sha256};
    Sha256::digest(given) == Sha256::digest(secret)
}

/// The answer to a question. It may read records of long ago and render much, so not here.
async fn answered(team: &Arc<Team>, question: Question) -> Reply {
    let asked = Arc::clone(team);
    let answer = tasks::blocking(move || {
        let language = asked.workspace.runtime.language;
        let found = answers::answer(&asked, &Actor::Operator, &question, language);
        said(&asked, found.is_ok(), found.unwrap_or_else(|none| none))
    });
    match answer.await {
        Ok(reply) => reply,
        Err(error) => Reply::no(format!("there is no answer: {error}")),
    }
}

/// Brings a command to the engine and puts its answer into words.
pub(super) async fn submit(team: &Team, actor: Actor, command: Command) -> Reply {
    match team.hub.submit(Event::Command { actor, command, interaction: None }).await {
        Ok(Answer::Say(content)) => said(team, true, content),
        Ok(Answer::Refused(content)) => said(team, false, content),
        Ok(Answer::Accepted) => Reply { ok: true, text: "done".to_owned(), content: None },
        Ok(Answer::Ignored(why)) => Reply::no(why),
        Err(error) => Reply::no(error.to_string()),
    }
}

/// The answer in words.
fn said(team: &Team, ok: bool, content: Content) -> Reply {
    let text = team.catalog.render(&content).map(|rendered| rendered.text);
    Reply { ok, text: text.unwrap_or_else(|_| content.key.clone()), content: Some(content) }
}

/// Calls the team that runs in a workspace.
///
/// # Errors
/// [`ControlError::Refused`] with the team's words where it says no.
pub async fn call(root: &Path, wanted: CallSubject) -> Result<Reply, ControlError> {
    let gone = || ControlError::NotRunning(root.to_owned());
    let secret = files::read_text_if_present(&secret_file(root))?.ok_or_else(gone)?;
    let is_gone =
        |error: &Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused);
    let stream = match socket::connect(&socket_of(root)).await {
        Err(error) if is_gone(&error) => return Err(gone()),
        stream => stream?,
    };
    exchange(stream, &Call { secret, wanted }).await
}

/// Says one thing and waits for the answer.
pub(super) async fn exchange(mut stream: UnixStream, call: &Call) -> Result<Reply, ControlError> {
    let mut line = serde_json::to_string(call)?;
    if line.len() >= MAX_CALL {
        return Err(ControlError::TooLong(line.len()));
    }
    line.push('\n');
    stream.write_all(line.as_bytes()).await?;
    let mut text = String::new();
    BufReader::new(stream).read_line(&mut text).await?;
    let reply: Reply = serde_json::from_str(&text)?;
    if reply.ok { Ok(reply) } else { Err(ControlError::Refused(reply.text)) }
}
