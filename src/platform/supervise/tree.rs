//! The process tree below the supervisor, as `/proc` tells it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::platform::files;
use crate::platform::spawn::{INSIDE, SUPERVISE};

/// Names the run folder in the environment of all that a supervisor starts: a program may leave its process group.
pub(super) const RUN_FOLDER: &str = "TEAMS_RUN_FOLDER";

/// One process of the tree.
struct Process {
    parent: i32,
    group: i32,
    dead: bool,
    /// Whether it has the processor, or waits for its turn.
    running: bool,
    ticks: u64,
    began: u64,
}

/// Reads `/proc/<pid>/stat`; `None` for a process that is gone meanwhile.
fn process(pid: i32) -> Option<Process> {
    let text = files::read(Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name may hold blanks and brackets; what follows its last bracket does not.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        // Of one whose first thread has ended while others go on, that alone is a zombie.
        dead: match *fields.first()? {
            "X" => true,
            "Z" => number(17).is_none_or(|threads| threads <= 1),
            _ => false,
        },
        running: fields.first() == Some(&"R"),
        // With those of children that have ended and were waited for.
        ticks: (11..15).map(number).sum::<Option<u64>>()?,
        began: number(19)?,
    })
}

/// When a process began: with its number it is no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessStart {
    /// Which start of the machine.
    boot: String,
    /// Ticks since then.
    ticks: u64,
}

impl ProcessStart {
    pub(super) fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }
}

fn boot() -> String {
    files::read_text(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default()
}

/// When a living process began.
pub(super) fn began(pid: i32) -> Option<ProcessStart> {
    let process = process(pid).filter(|process| !process.dead)?;
    Some(ProcessStart { boot: boot(), ticks: process.began })
}

/// What lives of a program without its supervisor: of its process group, and what left that and was begun in the run.
pub(super) fn left_of(group: i32, run_dir: &Path) -> Vec<i32> {
    let mark = [RUN_FOLDER.as_bytes(), b"=", run_dir.as_os_str().as_bytes()].concat();
    let is_marked = |pid: i32| {
        let environment = files::read(Path::new(&format!("/proc/{pid}/environ")));
        environment.unwrap_or_default().split(|byte| *byte == 0).any(|entry| entry == mark)
    };
    let living = all().into_iter().filter(|(_, process)| !process.dead);
    living.filter(|(pid, it)| it.group == group || is_marked(*pid)).map(|(pid, _)| pid).collect()
}

/// This process.
pub(super) fn own() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// What the tree does at one moment.
pub(super) struct Activity {
    /// Processor time that its living processes have used, in ticks.
    pub(super) ticks: u64,
    /// Whether one of them has the processor or waits for its turn: on a busy machine a program that computes may get
    /// none of it for long.
    pub(super) is_running: bool,
    /// Whether there is none any more.
    pub(super) is_over: bool,
}

impl Activity {
    pub(super) fn now() -> Activity {
        let living = living(own());
        Activity {
            ticks: living.iter().map(|(_, process)| process.ticks).sum(),
            is_running: living.iter().any(|(_, process)| process.running),
            is_over: living.is_empty(),
        }
    }
}

fn all() -> BTreeMap<i32, Process> {
    let entries = files::list(Path::new("/proc")).unwrap_or_default();
    let pids = entries.iter().filter_map(|path| path.file_name()?.to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| process(pid).map(|process| (pid, process))).collect()
}

/// The living processes below one.
fn living(above: i32) -> Vec<(i32, Process)> {
    let mut all = all();
    let is_below = |pid: i32| {
        let mut at = pid;
        // A chain of parents cannot be longer than there are processes; a torn reading could loop.
        for _ in 0..all.len() {
            match all.get(&at) {
                Some(process) if process.parent == above => return true,
                Some(process) => at = process.parent,
                None => return false,
            }
        }
        false
    };
    let below: Vec<i32> = all
        .iter()
        .filter(|(pid, process)| !process.dead && is_below(**pid))
        .map(|(pid, _)| *pid)
        .collect();
    below.into_iter().filter_map(|pid| Some((pid, all.remove(&pid)?))).collect()
}

/// The words that a process was started with.
fn words(pid: i32) -> Vec<Vec<u8>> {
    let all = files::read(Path::new(&format!("/proc/{pid}/cmdline"))).unwrap_or_default();
    all.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// Whether a process belongs to the run whose folder this is, or to a turn of it in a folder below. The
/// topmost supervisor above the process decides: that one we started, and whatever calls itself so
/// further down is an agent's doing. Orphans stay below it, because it is their subreaper.
#[must_use]
pub fn belongs_to(pid: i32, run_dir: &Path) -> bool {
    let mut run = None;
    let mut at = pid;
    // A torn reading could loop; no chain of parents is that long.
    for _ in 0..4_096 {
        let words = words(at);
        if let [_, name, folder, ..] = words.as_slice()
            && name == SUPERVISE.as_bytes()
        {
            run = Some(folder.clone());
        }
        match process(at) {
            Some(process) if process.parent > 1 => at = process.parent,
            Some(_) | None => break,
        }
    }
    run.is_some_and(|folder| Path::new(OsStr::from_bytes(&folder)).starts_with(run_dir))
}

/// Interrupts the first program within a sandbox ([`crate::platform::inside`]) below a process, which passes it on;
/// whether there is one. What calls itself so further down harms nobody but itself.
pub(super) fn interrupt_inside(above: i32) -> bool {
    let named = |pid: i32| words(pid).get(1).is_some_and(|name| name == INSIDE.as_bytes());
    let below = living(above).into_iter().map(|(pid, _)| pid);
    let found: Vec<i32> = below.filter(|pid| named(*pid)).collect();
    for pid in found.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process(pid, Signal::INT);
    }
    !found.is_empty()
}

/// Kills every living descendant once; how many there were. Orphans are among them, because the supervisor is their
/// subreaper.
pub(super) fn kill_all() -> usize {
    let living = living(own());
    for (pid, _) in &living {
        if let Some(pid) = Pid::from_raw(*pid) {
            // Gone meanwhile is what we want.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    living.len()
}
