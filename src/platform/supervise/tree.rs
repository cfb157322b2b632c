//! The process tree below the supervisor, as `/proc` tells it.

use std::collections::BTreeMap;

use rustix::process::{Pid, Signal, kill_process};

use crate::platform::files;

/// One process of the tree.
struct Process {
    parent: i32,
    dead: bool,
    ticks: u64,
}

/// Reads `/proc/<pid>/stat`; `None` for a process that is gone meanwhile.
fn process(pid: i32) -> Option<Process> {
    let text = files::read(std::path::Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name may hold blanks and brackets; what follows its last bracket does not.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        dead: matches!(fields.first(), Some(&("Z" | "X"))),
        ticks: number(11)? + number(12)?,
    })
}

/// The living descendants of this process with the processor time that each has used, in ticks.
/// Orphans are among them, because the supervisor is their subreaper.
pub(super) fn descendants() -> Vec<(i32, u64)> {
    let entries = files::list(std::path::Path::new("/proc")).unwrap_or_default();
    let pids = entries.iter().filter_map(|path| path.file_name()?.to_str()?.parse::<i32>().ok());
    let all: BTreeMap<i32, Process> =
        pids.filter_map(|pid| process(pid).map(|process| (pid, process))).collect();
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let is_below = |pid: i32| {
        let mut at = pid;
        // A chain of parents cannot be longer than there are processes; a torn reading could loop.
        for _ in 0..all.len() {
            match all.get(&at) {
                Some(process) if process.parent == own => return true,
                Some(process) => at = process.parent,
                None => return false,
            }
        }
        false
    };
    all.iter()
        .filter(|(pid, process)| !process.dead && is_below(**pid))
        .map(|(pid, process)| (*pid, process.ticks))
        .collect()
}

/// The processor time of the whole tree, in ticks.
pub(super) fn ticks() -> u64 {
    descendants().iter().map(|(_, ticks)| ticks).sum()
}

/// Kills every living descendant once; how many there were.
pub(super) fn kill_all() -> usize {
    let living = descendants();
    for (pid, _) in &living {
        if let Some(pid) = Pid::from_raw(*pid) {
            // Gone meanwhile is what we want.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    living.len()
}
