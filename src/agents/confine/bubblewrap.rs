//! The mounts of a sandbox as bubblewrap's arguments. A new root is empty; what is shown is mounted into it, outer folders
//! first, so that what lies deeper has the last word. What lies where an agent may write is opened before.

use std::path::Path;

use super::mounts::{SandboxMounts, Show};
use crate::platform::bind::OpenedMount;
use crate::platform::bubblewrap::{self, Network};

/// The arguments up to where the program within begins, and what is to be opened for them. `own` is our
/// binary, which is that program.
pub(super) fn arguments(mounts: &SandboxMounts, own: &Path) -> (Vec<OpenedMount>, Vec<String>) {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut all = bubblewrap::base(Network::Own);
    let mut opened = Vec::new();
    let mut places: Vec<_> = mounts
        .seen(own)
        .into_iter()
        .map(|(path, show)| (mounts.place(&path), path, show))
        .collect();
    places.sort();
    for (place, path, show) in places {
        let word = match show {
            Show::Read => "--ro-bind",
            Show::Write => "--bind",
            // The project's own place is the worktree's.
            Show::EmptyFolder | Show::EmptyFile
                if mounts.project.as_ref().is_some_and(|project| path == project.path) =>
            {
                continue;
            }
            Show::EmptyFolder => {
                all.extend(bubblewrap::empty_folder(text(&place)));
                continue;
            }
            Show::EmptyFile => {
                all.extend(["--ro-bind".to_owned(), "/dev/null".to_owned(), text(&place)]);
                continue;
            }
        };
        match (mounts.instead(&path), mounts.within(&path)) {
            (Some(instead), _) => all.extend([word.to_owned(), text(instead), text(&place)]),
            (None, Some((folder, below))) => {
                let writable = show == Show::Write;
                let (folder, below) = (folder.to_owned(), below.to_owned());
                let mount = OpenedMount { folder, below, place, writable };
                all.extend(mount.arguments(opened.len()));
                opened.push(mount);
            }
            (None, None) => all.extend([word.to_owned(), text(&path), text(&place)]),
        }
    }
    all.extend(["--remount-ro".to_owned(), "/".to_owned()]);
    all.extend([
        "--chdir".to_owned(),
        text(&mounts.place(&mounts.cwd)),
        "--".to_owned(),
        text(own),
    ]);
    (opened, all)
}
