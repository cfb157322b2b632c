//! What every sandbox of bubblewrap begins with, and how it is found out that bubblewrap works here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ask::ask;
use super::places::{SYSTEM, is_link};
use super::{files, redact, spawn};

/// How long bubblewrap may take to show that it works.
const LIMIT: Duration = Duration::from_secs(30);

/// Namespaces of its own: processes (also their environments are not to be seen), names, messages; no
/// terminal; and nothing of what root may do beside files, such as mounting something else.
const ALWAYS: [&str; 7] = [
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--new-session",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
];
/// A network of its own, with nothing in it but a loopback.
const OWN_NETWORK: &str = "--unshare-net";
/// Folders of its own. The sizes keep a program from filling the memory.
const OWN: [&str; 18] = [
    "--dev",
    "/dev",
    "--size",
    "2147483648",
    "--tmpfs",
    "/dev/shm",
    "--remount-ro",
    "/dev",
    "--proc",
    "/proc",
    "--size",
    "2147483648",
    "--tmpfs",
    "/tmp",
    "--dir",
    "/var/tmp",
    "--dir",
    "/run",
];

/// What shows that all of it works here. With what is open: bubblewrap can mount that since 0.10, and in the
/// older versions that distributions keep up to date.
const TRIAL: [&str; 22] = [
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-net",
    "--new-session",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
    "--ro-bind-fd",
    "0",
    "/dev/null",
    "--",
    "/bin/sh",
    "-c",
    "exit 7",
];
/// The exit code of the trial.
const TRIAL_CODE: i32 = 7;

/// Which network a sandbox has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Its own: a loopback that leads nowhere else.
    Own,
    /// The machine's.
    Host,
}

/// The arguments that every sandbox begins with: its namespaces, the system for reading, and `/dev`, `/proc`,
/// `/tmp` of its own. Later arguments are mounted over these.
#[must_use]
pub fn base(network: Network) -> Vec<String> {
    let mut all: Vec<String> = ALWAYS.iter().map(|word| (*word).to_owned()).collect();
    match network {
        Network::Own => all.push(OWN_NETWORK.to_owned()),
        Network::Host => {}
    }
    let text = |path: &Path| path.to_string_lossy().into_owned();
    for folder in SYSTEM.map(Path::new) {
        match files::read_link(folder) {
            // `/bin` is a link to `usr/bin` on most machines.
            Ok(target) if is_link(folder) => {
                all.extend(["--symlink".to_owned(), text(&target), text(folder)]);
            }
            Ok(_) | Err(_) if files::exists(folder) => {
                all.extend(["--ro-bind".to_owned(), text(folder), text(folder)]);
            }
            Ok(_) | Err(_) => {}
        }
    }
    all.extend(OWN.iter().map(|word| (*word).to_owned()));
    all
}

/// An empty folder in the place of something hidden. A program may write there as it would, and little.
pub fn empty_folder(place: String) -> [String; 4] {
    ["--size".to_owned(), "1048576".to_owned(), "--tmpfs".to_owned(), place]
}

/// Finds bubblewrap and shows that it works, by running it.
///
/// # Errors
/// Why it cannot be used, in one line for people.
pub async fn find() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH");
    let program = spawn::find_program("bwrap", path.as_deref())
        .ok_or_else(|| "bubblewrap (bwrap) is not installed".to_owned())?;
    match ask(&program, &TRIAL, &BTreeMap::new(), LIMIT).await {
        Ok(said) if said.code == Some(TRIAL_CODE) => Ok(program),
        Ok(said) => {
            let line = said.stderr.lines().next().unwrap_or("it gave no reason");
            let line: String = redact::redact(line).chars().take(200).collect();
            Err(format!("bubblewrap does not work: {line}"))
        }
        Err(error) => Err(format!("bubblewrap could not be tried: {error}")),
    }
}
