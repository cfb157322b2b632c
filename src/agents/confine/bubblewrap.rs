//! The walls as bubblewrap's arguments. A new root is empty; what is shown is mounted into it, outer folders
//! first, so that what lies deeper has the last word.

use std::path::Path;

use super::places::{SYSTEM, is_link};
use super::walls::{Show, Walls};
use crate::platform::files;

/// Namespaces of its own: processes (also their environments are not to be seen), names, messages, network;
/// and no terminal.
const ALWAYS: [&str; 6] = [
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-net",
    "--new-session",
    "--die-with-parent",
];
/// Folders of its own. The size keeps a program from filling the memory.
const OWN: [&str; 12] = [
    "--dev",
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

/// What shows that all of it works here.
pub(super) const TRIAL: [&str; 17] = [
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
    "--",
    "/bin/sh",
    "-c",
    "exit 7",
];
/// The exit code of the trial.
pub(super) const TRIAL_CODE: i32 = 7;

/// The arguments up to where the program within begins. `own` is our binary, which is that program.
pub(super) fn arguments(walls: &Walls, own: &Path) -> Vec<String> {
    let mut all: Vec<String> = ALWAYS.iter().map(|word| (*word).to_owned()).collect();
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
    for (path, show) in walls.seen(own) {
        let path = text(&path);
        match show {
            Show::Read => all.extend(["--ro-bind".to_owned(), path.clone(), path]),
            Show::Write => all.extend(["--bind".to_owned(), path.clone(), path]),
            Show::EmptyFolder => all.extend(["--tmpfs".to_owned(), path]),
            Show::EmptyFile => all.extend(["--ro-bind".to_owned(), "/dev/null".to_owned(), path]),
        }
    }
    all.extend(["--remount-ro".to_owned(), "/".to_owned()]);
    all.extend(["--chdir".to_owned(), text(&walls.cwd), "--".to_owned(), text(own)]);
    all
}
