//! The process of the rehearsal agent.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use super::answer::{Answer, answer};
use super::script::{self, Act};
use super::{Brief, LABEL, Line};
use crate::platform::files;

/// The hidden subcommand: the brief on stdin, JSON lines on stdout, the worktree as working folder.
pub fn main(_args: &[OsString]) -> ExitCode {
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nobody else to tell where stderr is gone as well.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn play() -> Result<(), String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let brief: Brief =
        serde_json::from_str(&text).map_err(|error| format!("the brief: {error}"))?;
    let root = std::env::current_dir().map_err(|error| error.to_string())?;
    let home = std::env::var_os("HOME").map(PathBuf::from).ok_or("HOME is not set")?;
    print(&Line::Session { id: brief.session.clone() })?;
    print(&Line::Text { text: format!("{LABEL}: {} at work", brief.task.role) })?;
    let played = match &brief.script {
        Some(path) => script::next(path, &brief.task, &home)?,
        None => None,
    };
    let act = played.as_ref().map(|played| played.act);
    match act {
        Some(Act::Hang) => loop {
            std::thread::park();
        },
        Some(Act::Flood) => flood(),
        Some(Act::Rubbish) => return rubbish(),
        Some(Act::Sleep) => {
            let ms = played.as_ref().map_or(0, |played| played.ms);
            std::thread::sleep(Duration::from_millis(ms));
        }
        Some(Act::WriteOutside) => write_outside(&brief, &root)?,
        Some(
            Act::Crash
            | Act::Prose
            | Act::WrongContract
            | Act::Revise
            | Act::Fail
            | Act::Block
            | Act::BadPlan
            | Act::Control,
        )
        | None => {}
    }
    let outcome = answer(&brief, &root, played.as_ref(), &mut |path| {
        // The files are written whether anybody hears of it or not.
        let _ = print(&Line::Wrote { path: path.to_string_lossy().into_owned() });
    });
    match (act, outcome) {
        (Some(Act::Crash), _) => {
            kill_process(getpid(), Signal::KILL).map_err(|error| error.to_string())
        }
        (Some(Act::Prose), _) => print(&Line::Result {
            text: "All done, everything works and all tests pass!".to_owned(),
        }),
        (Some(Act::WrongContract), _) => {
            print(&Line::Result { text: r#"{"state": "finished"}"#.to_owned() })
        }
        (_, Answer::Result(value)) => print(&Line::Result { text: value.to_string() }),
        (_, Answer::NeedsRealAgent(message)) => print(&Line::NeedsRealAgent { message }),
    }
}

fn print(line: &Line) -> Result<(), String> {
    let mut text = serde_json::to_vec(line).map_err(|error| error.to_string())?;
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// Until somebody ends it, or the reader is gone.
fn flood() {
    let line = [b"x".repeat(8 << 10).as_slice(), b"\n"].concat();
    while io::stdout().write_all(&line).is_ok() {}
}

fn rubbish() -> Result<(), String> {
    io::stdout()
        .write_all(b"Segfault? {\"type\": \"result\", \xff\xfe\nERROR [agent] 0x00\n\n{}\n[1,2\n")
        .map_err(|error| error.to_string())
}

/// A role that may not write does, and one that may does so beside its worktree.
fn write_outside(brief: &Brief, root: &Path) -> Result<(), String> {
    let folder = if brief.read_only { Some(root) } else { root.parent() };
    let path = folder.unwrap_or(root).join("rehearsal-outside.txt");
    files::write(&path, "written where it may not\n").map_err(|error| error.to_string())
}
