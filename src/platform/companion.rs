//! A second process of our own binary that lives no longer than we do.

#![expect(clippy::disallowed_methods, reason = "this module owns processes")]

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::spawn::own_binary;

/// The process. It is told to end when its standard input closes: by [`Companion::stop`], and by the
/// system when we are gone, however that came.
#[derive(Debug)]
pub struct Companion {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

/// How a companion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Companion {
    /// Starts our own binary with these arguments. `env` comes on top of our own environment. Its
    /// standard error is ours.
    pub fn start(args: &[String], env: &BTreeMap<String, String>) -> io::Result<Companion> {
        let mut child = Command::new(own_binary()?)
            .args(args)
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A terminal's Ctrl-C is for us; the companion is told by its input.
            .process_group(0)
            .spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        Ok(Companion { child, input, output: BufReader::new(output).lines() })
    }

    /// The next line of its standard output; `None` when that is closed.
    pub async fn line(&mut self) -> io::Result<Option<String>> {
        self.output.next_line().await
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> io::Result<ExitReason> {
        let status = self.child.wait().await?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => ExitReason::Code(code),
            (None, signal) => ExitReason::Signal(signal.unwrap_or(0)),
        })
    }

    /// Tells it to end, and waits.
    pub async fn stop(&mut self) -> io::Result<ExitReason> {
        drop(self.input.take());
        self.ended().await
    }
}
