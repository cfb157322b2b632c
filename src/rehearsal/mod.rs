//! The rehearsal agent: a real process of our own binary that follows the contract without a model.
//!
//! It does the tasks of the project's task list and literal edit requests, answers simple questions
//! about the project, can be scripted to fail, and says of everything else that it needs a real
//! agent. It is there so that the whole path runs on a fresh machine and in tests, and it is always
//! labelled as what it is. What it is told and says: `agents::rehearsal`.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;

use crate::agents::rehearsal::{Brief, LABEL, Line, SteeringLine};
use crate::platform::files;
use answer::answer;
use draft::Answer;
use script::Act;

mod answer;
mod chat;
mod draft;
mod duties;
mod edits;
mod plan;
mod run;
mod script;
mod tasks;
mod times;
mod web;

pub use times::StepTimes;

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
    io::stdin().read_line(&mut text).map_err(|error| error.to_string())?;
    let mut brief: Brief =
        serde_json::from_str(&text).map_err(|error| format!("the brief: {error}"))?;
    let heard = listen();
    let root = std::env::current_dir().map_err(|error| error.to_string())?;
    let home = std::env::var_os("HOME").map(PathBuf::from).ok_or("HOME is not set")?;
    print(&Line::Session { id: brief.session.clone() })?;
    print(&Line::Text { text: format!("{LABEL}: {} at work", brief.task.role) })?;
    let script = brief.script.as_ref().map(|path| files::read_text(path)).transpose();
    let script = script.map_err(|error| error.to_string())?;
    let times = script.as_deref().map_or(Ok(None), StepTimes::of_script)?;
    let played = match (&script, &times) {
        (Some(text), None) => script::next(text, &brief.task, &home)?,
        (Some(_) | None, _) => None,
    };
    if let Some(times) = &times {
        std::thread::sleep(times.of(&brief.task));
    }
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
        Some(Act::Listen) => {
            let awaited = played.as_ref().map(|played| played.text.as_str()).unwrap_or_default();
            // It may have been said before it began.
            while !brief.task.followups.iter().any(|said| said.text.contains(awaited)) {
                let gone = "nobody said what it waits for, and nobody can any more";
                let words = heard.recv().map_err(|_| gone.to_owned())?;
                let found = words.said.text.contains(awaited);
                take(&mut brief, words)?;
                if found {
                    break;
                }
            }
        }
        Some(Act::WriteOutside) => write_outside(&brief, &root)?,
        Some(
            Act::Crash
            | Act::Prose
            | Act::WrongContract
            | Act::Revise
            | Act::Fail
            | Act::Block
            | Act::Abstain
            | Act::BadPlan
            | Act::Say
            | Act::Idle
            | Act::Control
            | Act::Ask
            | Act::Propose
            | Act::Run,
        )
        | None => {}
    }
    let found = played.as_ref().map(|played| run::all(&played.commands)).unwrap_or_default();
    // What is said from here on comes too late.
    while let Ok(words) = heard.try_recv() {
        take(&mut brief, words)?;
    }
    let job = times.and_then(|_| times::job(&brief.task));
    let outcome = answer(&brief, &root, played.as_ref(), job, &mut |path| {
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
        (Some(Act::Say), Answer::Result(mut value)) => {
            value["summary"] = played.map_or_else(String::new, |played| played.text).into();
            print(&Line::Result { text: value.to_string() })
        }
        (Some(Act::Propose), Answer::Result(mut value)) => {
            let proposed = played.map(|played| played.proposals).unwrap_or_default();
            if let Some(proposals) = value["proposals"].as_object_mut() {
                proposals.extend(proposed);
            }
            print(&Line::Result { text: value.to_string() })
        }
        (Some(Act::Run), Answer::Result(mut value)) => {
            let before = value["summary"].as_str().unwrap_or_default().to_owned();
            value["summary"] = format!("{before}\n\n{found}").into();
            if let (Some(named), Some(played)) = (value["artifacts"].as_array_mut(), played) {
                named.extend(played.artifacts.into_iter().map(Value::from));
            }
            print(&Line::Result { text: value.to_string() })
        }
        (Some(Act::Run), Answer::NeedsRealAgent(message)) => {
            print(&Line::NeedsRealAgent { message: format!("{message}\n\n{found}") })
        }
        (_, Answer::Result(value)) => print(&Line::Result { text: value.to_string() }),
        (_, Answer::NeedsRealAgent(message)) => print(&Line::NeedsRealAgent { message }),
    }
}

/// Follows stdin on a thread of its own. What cannot be read was not for us.
fn listen() -> Receiver<SteeringLine> {
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            let words = serde_json::from_str(&line);
            if words.is_ok_and(|words| sender.send(words).is_err()) {
                return;
            }
        }
    });
    heard
}

/// Takes what somebody said into the work.
fn take(brief: &mut Brief, words: SteeringLine) -> Result<(), String> {
    print(&Line::Heard { id: words.id })?;
    if words.said.replaces {
        let old = std::mem::replace(&mut brief.task.request, words.said);
        brief.task.earlier.push(old.text);
    } else {
        brief.task.followups.push(words.said);
    }
    Ok(())
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
