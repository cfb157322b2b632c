//! The control socket: how the command line talks to a running team. Every call carries the secret
//! of this start, which lies in a file that only the operator can read and no agent's sandbox sees.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::team::Team;
use crate::domain::event::Event;
use crate::domain::incoming::{Actor, Command};
use crate::engine::Answer;
use crate::platform::files::{self, FileError};
use crate::platform::{ids, tasks};

/// Bytes of one call.
const MAX_CALL: u64 = 256 << 10;

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
}

#[derive(Serialize, Deserialize)]
struct Call {
    secret: String,
    command: Command,
}

#[derive(Serialize, Deserialize)]
struct Reply {
    ok: bool,
    text: String,
}

fn socket(root: &Path) -> PathBuf {
    root.join(".teams_runtime").join("control.sock")
}

fn secret_file(root: &Path) -> PathBuf {
    root.join(".teams_runtime").join("control.secret")
}

/// Listens until the team closes.
pub(super) async fn listen(team: Arc<Team>) -> Result<(), ControlError> {
    let path = socket(team.root());
    files::remove_file(&path)?;
    let secret: Arc<str> = ids::secret().into();
    files::write_private(&secret_file(team.root()), secret.as_bytes())?;
    let listener = UnixListener::bind(&path)?;
    files::set_mode(&path, 0o600)?;
    loop {
        let stream = tokio::select! {
            () = team.closing.cancelled() => return Ok(()),
            accepted = listener.accept() => accepted?.0,
        };
        let (team, secret) = (Arc::clone(&team), Arc::clone(&secret));
        tasks::spawn("control", async move {
            if let Err(error) = serve(&team, &secret, stream).await {
                tracing::debug!(%error, "a control call broke off");
            }
        });
    }
}

async fn serve(team: &Team, secret: &str, mut stream: UnixStream) -> Result<(), ControlError> {
    let (read, mut write) = stream.split();
    let mut line = String::new();
    BufReader::new(read.take(MAX_CALL)).read_line(&mut line).await?;
    let reply = match serde_json::from_str::<Call>(&line) {
        Ok(call) if same(&call.secret, secret) => answer(team, call.command).await,
        Ok(_) => Reply { ok: false, text: "the secret is not that of this start".to_owned() },
        Err(error) => Reply { ok: false, text: format!("not a call: {error}") },
    };
    let mut text = serde_json::to_string(&reply)?;
    text.push('\n');
    write.write_all(text.as_bytes()).await?;
    Ok(())
}

/// Compares without telling by its time how much was right.
fn same(given: &str, secret: &str) -> bool {
    use sha2::{Digest, Sha256};
    Sha256::digest(given) == Sha256::digest(secret)
}

async fn answer(team: &Team, command: Command) -> Reply {
    let event = Event::Command { actor: Actor::Operator, command };
    match team.hub.submit(event).await {
        Ok(Answer::Say(content)) => {
            let text = team.catalog.render(&content).map(|rendered| rendered.text);
            Reply { ok: true, text: text.unwrap_or(content.key) }
        }
        Ok(Answer::Accepted) => Reply { ok: true, text: "done".to_owned() },
        Ok(Answer::Ignored(why)) => Reply { ok: false, text: why.to_owned() },
        Err(error) => Reply { ok: false, text: error.to_string() },
    }
}

/// Calls the team that runs in a workspace. Returns its words.
pub async fn call(root: &Path, command: Command) -> Result<String, ControlError> {
    let path = socket(root);
    let gone = || ControlError::NotRunning(root.to_owned());
    let secret = files::read_text_if_present(&secret_file(root))?.ok_or_else(gone)?;
    let mut stream = UnixStream::connect(&path).await.map_err(|_| gone())?;
    let mut line = serde_json::to_string(&Call { secret, command })?;
    line.push('\n');
    stream.write_all(line.as_bytes()).await?;
    let mut text = String::new();
    BufReader::new(stream).read_line(&mut text).await?;
    let reply: Reply = serde_json::from_str(&text)?;
    if reply.ok { Ok(reply.text) } else { Err(ControlError::Refused(reply.text)) }
}
