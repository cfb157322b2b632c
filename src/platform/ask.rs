//! A short question to a program: what it prints within a time limit.

#![expect(clippy::disallowed_methods, reason = "this module owns processes")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// More output than this is not read.
const MOST: u64 = 64 * 1024;

/// What a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOutput {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// The beginning of its standard output.
    pub stdout: String,
    /// The beginning of its standard error.
    pub stderr: String,
}

/// Runs a program with this environment and nothing else, in `/`, and waits. A program that takes longer
/// than `limit` is killed.
///
/// # Errors
/// Where it cannot be started, or takes too long.
pub async fn ask(
    program: &Path,
    arguments: &[&str],
    env: &BTreeMap<String, String>,
    limit: Duration,
) -> io::Result<ProgramOutput> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env).current_dir("/");
    said(command, Vec::new(), limit).await
}

/// Runs a command where this process is, with its environment, and waits as [`ask`] does.
///
/// # Errors
/// Where it cannot be started, or takes too long.
pub fn here(program: &str, arguments: &[String], limit: Duration) -> io::Result<ProgramOutput> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut command = Command::new(program);
    command.args(arguments);
    runtime.block_on(said(command, Vec::new(), limit))
}

/// Runs a program with this environment and nothing else, in a folder, with words on its standard input, and waits as
/// [`ask`] does. Blocks.
///
/// # Errors
/// Where it cannot be started, or takes too long.
pub fn tell(
    program: &Path,
    arguments: &[String],
    env: &BTreeMap<String, OsString>,
    (folder, input): (&Path, Vec<u8>),
    limit: Duration,
) -> io::Result<ProgramOutput> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env).current_dir(folder);
    runtime.block_on(said(command, input, limit))
}

async fn said(mut command: Command, input: Vec<u8>, limit: Duration) -> io::Result<ProgramOutput> {
    let mut child = command
        .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let mut group = ProgramGroup(child.id());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let stdin = child.stdin.take();
    let tell = async {
        if let Some(mut stdin) = stdin {
            // One that does not want to hear it says why by other means.
            let _ = stdin.write_all(&input).await;
        }
    };
    let talk = async {
        let ((), stdout, stderr) = tokio::join!(tell, beginning(out), beginning(err));
        let status = child.wait().await?;
        Ok(ProgramOutput { code: status.code(), stdout: stdout?, stderr: stderr? })
    };
    match tokio::time::timeout(limit, talk).await {
        Ok(said) => {
            group.0 = None;
            said
        }
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("it did not end within {} s", limit.as_secs()),
        )),
    }
}

/// A program that has not ended yet, with what it started: killed with this value.
struct ProgramGroup(Option<u32>);

impl Drop for ProgramGroup {
    fn drop(&mut self) {
        let id = self.0.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            // It may be gone by itself.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(MOST).read_to_end(&mut bytes).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_asked_with_its_environment_alone() {
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let words = ["-c", "echo $A${HOME:-none}; echo no >&2; exit 3"];
        let said = ask(Path::new("/bin/sh"), &words, &env, Duration::from_secs(20)).await.unwrap();
        assert_eq!(said.code, Some(3));
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("1none\n", "no\n"));
        let gone = ask(Path::new("/no/such"), &[], &env, Duration::from_secs(20)).await;
        assert_eq!(gone.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn one_that_never_ends_or_never_stops_talking_is_left() {
        let (sh, env) = (Path::new("/bin/sh"), BTreeMap::new());
        let slow = ask(sh, &["-c", "exec sleep 1000"], &env, Duration::from_millis(50));
        assert_eq!(slow.await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let loud =
            ["-c", "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"];
        let said = ask(sh, &loud, &env, Duration::from_secs(60));
        assert_eq!(said.await.unwrap().stdout.len(), 64 * 1024);
    }
}
