//! Folders as layers: our binary as `teams __layers SPEC -- program arguments…`.
//!
//! What was prepared once is seen in many trees, and a program that writes there writes to its own tree alone. The
//! kernel's overlay does that without copying anything. It is mounted in namespaces of this process, which then
//! becomes the program: nothing of it is seen elsewhere, and it ends with the last process within. Where the kernel
//! does not let us, [`copy`] makes the same of real files.

#![expect(clippy::disallowed_methods, reason = "this module owns processes")]

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::mount::{MountFlags, mount};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use super::ask::ask;
use super::files::{self, FileError};
use super::{ids, inside, spawn};

/// How long the kernel may take to show that it can.
const LIMIT: Duration = Duration::from_secs(30);

/// One folder made of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Where they are seen as one; an empty folder.
    pub merged: PathBuf,
    /// What is written goes here, and what lies here hides the same path below. Without it nothing can be written,
    /// and there are two folders below at least.
    pub upper: Option<UpperLayer>,
    /// What is only read, the topmost first. Must not change meanwhile.
    pub lower: Vec<PathBuf>,
}

/// Where layers are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpperLayer {
    /// The folder. Never that of other layers at the same time.
    pub folder: PathBuf,
    /// An empty folder on the same file system, for the kernel.
    pub work: PathBuf,
}

/// The words by which it is started, ahead of the program's path and arguments.
#[must_use]
pub fn arguments(layers: &[Layers]) -> [String; 3] {
    // Paths and lists can always be written as JSON, unless one is not UTF-8: then the mount says so.
    let text = serde_json::to_string(layers).unwrap_or_default();
    [spawn::LAYERS.to_owned(), text, "--".to_owned()]
}

/// Makes the empty folders that layers stand on.
///
/// # Errors
/// Where the disk does.
pub fn make_way(layers: &[Layers]) -> Result<(), FileError> {
    for one in layers {
        let upper = one.upper.iter().flat_map(|upper| [&upper.folder, &upper.work]);
        for folder in upper.chain([&one.merged]) {
            files::create_dir_all(folder)?;
        }
    }
    Ok(())
}

/// Lets what lies below a folder show through again at a path: whoever removed a folder there and made it anew hid it,
/// and the kernel remembers that with the folder.
pub fn show_through(upper: &Path, path: &Path) {
    for above in path.ancestors().skip(1) {
        // Mostly there is no such note.
        let _ = rustix::fs::lremovexattr(upper.join(above), OPAQUE);
    }
}

/// The kernel's note that a folder hides what lies below it.
const OPAQUE: &str = "user.overlay.opaque";

/// Whether the kernel lets us do so with files in `folder`, by trying it.
pub async fn work_in(folder: &Path) -> bool {
    let trial = folder.join(format!("layers-{}", ids::random_hex(8)));
    let layers = [Layers {
        merged: trial.join("merged"),
        upper: Some(UpperLayer { folder: trial.join("upper"), work: trial.join("work") }),
        lower: vec![trial.join("lower")],
    }];
    let made = make_way(&layers).and_then(|()| files::create_dir_all(&trial.join("lower/seen")));
    let works = match (made, spawn::own_binary()) {
        (Ok(()), Ok(own)) => {
            let seen = trial.join("merged/seen").to_string_lossy().into_owned();
            let words = arguments(&layers);
            let words: Vec<&str> = words
                .iter()
                .map(String::as_str)
                .chain(["/bin/sh", "-c", "cd \"$1\"", "sh", &seen])
                .collect();
            ask(&own, &words, &BTreeMap::new(), LIMIT).await.is_ok_and(|said| said.code == Some(0))
        }
        (Ok(()) | Err(_), Ok(_) | Err(_)) => false,
    };
    if let Err(error) = files::remove_dir_all(&trial) {
        tracing::debug!(%error, "a trial of layers was left behind");
    }
    works
}

/// Copies a file, or a folder with what lies in it, where nothing of that name is there already; times, modes and links
/// are kept. What is there and is no folder hides what would lie in one, as it does between layers: a link leads nowhere.
/// Where the file system can share data between files, it does.
///
/// # Errors
/// Where the disk does.
pub fn copy(from: &Path, to: &Path) -> Result<(), FileError> {
    let mut left = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = left.pop() {
        let meta = files::symlink_metadata(&from)?;
        if files::symlink_metadata(&to).is_ok_and(|there| !there.is_dir()) {
            continue;
        }
        if meta.is_dir() {
            files::create_dir_all(&to)?;
            for source in files::list(&from)? {
                let target = to.join(source.file_name().unwrap_or_default());
                left.push((source, target));
            }
        } else if (meta.is_file() || meta.is_symlink()) && files::symlink_metadata(&to).is_err() {
            files::copy_any(&from, &to)?;
            if meta.is_file() {
                files::set_modified(&to, files::at("look at", &from, meta.modified())?)?;
            }
        }
    }
    Ok(())
}

/// The hidden subcommand: `args` is what follows `__layers`.
pub fn main(args: &[OsString]) -> ExitCode {
    let [spec, dashes, program, rest @ ..] = args else {
        return complain("usage: teams __layers SPEC -- program arguments…");
    };
    let layers: Option<Vec<Layers>> =
        spec.to_str().filter(|_| dashes == "--").and_then(|text| serde_json::from_str(text).ok());
    let Some(layers) = layers else {
        return complain("usage: teams __layers SPEC -- program arguments…");
    };
    if let Err(error) = enter().and_then(|()| layers.iter().try_for_each(mount_one)) {
        return complain(&format!("{}layers: {error}", inside::NO_SANDBOX));
    }
    let error = Command::new(program).args(rest).exec();
    complain(&format!("{}{}: {error}", inside::CANNOT_START, program.to_string_lossy()))
}

#[expect(
    clippy::print_stderr,
    reason = "what a sandbox says goes where its program's complaints go"
)]
fn complain(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(inside::NOT_STARTED)
}

/// Namespaces of our own for users and mounts, in which everybody stays who they are: were we root in there, git
/// would find another owner at every file, and read them all again.
fn enter() -> io::Result<()> {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    #[expect(
        deprecated,
        reason = "its successor is unsafe; this process has one thread and shares nothing"
    )]
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

fn mount_one(layers: &Layers) -> io::Result<()> {
    let mut options = b"userxattr,lowerdir=".to_vec();
    for (number, folder) in layers.lower.iter().enumerate() {
        if number > 0 {
            options.push(b':');
        }
        options.extend(escaped(folder));
    }
    let mut flags = MountFlags::NODEV | MountFlags::NOSUID;
    match &layers.upper {
        Some(upper) => {
            for (name, folder) in [(",upperdir=", &upper.folder), (",workdir=", &upper.work)] {
                options.extend(name.as_bytes());
                options.extend(escaped(folder));
            }
        }
        None => flags |= MountFlags::RDONLY,
    }
    let options = CString::new(options)?;
    mount("overlay", &layers.merged, "overlay", flags, options.as_c_str())?;
    Ok(())
}

/// A path as an option of the overlay.
fn escaped(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b'\\' | b':' | b',') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_times_modes_and_links_and_what_is_there() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for name in ["from/bin", "to"] {
            files::create_dir_all(&folder.path().join(name)).unwrap();
        }
        files::write(&from.join("bin/tool"), "tool").unwrap();
        files::set_mode(&from.join("bin/tool"), 0o755).unwrap();
        let then = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        files::set_modified(&from.join("bin/tool"), then).unwrap();
        files::symlink(Path::new("bin/tool"), &from.join("link")).unwrap();
        files::write(&from.join("mine"), "theirs").unwrap();
        files::write(&to.join("mine"), "mine").unwrap();
        // A link in the place of a folder leads nowhere.
        for name in ["from/away", "elsewhere"] {
            files::create_dir_all(&folder.path().join(name)).unwrap();
        }
        files::write(&from.join("away/planted"), "x").unwrap();
        files::symlink(&folder.path().join("elsewhere"), &to.join("away")).unwrap();
        copy(&from, &to).unwrap();
        assert!(files::list(&folder.path().join("elsewhere")).unwrap().is_empty());
        let meta = files::metadata(&to.join("bin/tool")).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o755);
        assert_eq!(meta.modified().unwrap(), then);
        assert_eq!(files::read_link(&to.join("link")).unwrap(), Path::new("bin/tool"));
        assert_eq!(files::read_text(&to.join("mine")).unwrap(), "mine");
    }

    #[test]
    fn a_path_is_one_option_whatever_it_is_called() {
        assert_eq!(escaped(Path::new("/a:b,c\\d")), b"/a\\:b\\,c\\\\d");
    }
}
