//! What a sandbox of bubblewrap shows of a folder that an agent may write: our binary as
//! `teams __bind [FOLDER BELOW PLACE]… -- bwrap arguments… -- teams __inside …`.
//!
//! bubblewrap mounts what a path leads to, and an agent could put a link there at any moment. So each thing is
//! opened first, below its folder and through no link; its number takes the place of `@0`, `@1`, … after
//! `--bind-fd` and `--ro-bind-fd`; and then this process becomes bubblewrap.
//!
//! bubblewrap finds the path of what is open, mounts that path, and then looks whether the right thing stands at
//! the place. Who exchanges names between these looks gets something else mounted elsewhere, while the right thing
//! is seen through the folder above. So [`super::inside`] is told what was opened, and asks the kernel whether
//! each is, at its place, a mount of its own.

#![expect(clippy::disallowed_methods, reason = "this module owns processes")]

use std::ffi::OsString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::io::FdFlags;

use super::beneath::Folder;
use super::files::{self, FileError};
use super::inside::{self, ExpectedMount};

/// What is shown of a folder that an agent may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedMount {
    /// The folder; its own path no agent can change.
    pub folder: PathBuf,
    /// Where it lies below that.
    pub below: PathBuf,
    /// Where the sandbox shows it.
    pub place: PathBuf,
    /// Whether it may be written.
    pub writable: bool,
}

impl OpenedMount {
    /// The words for bubblewrap; `number` is its place among all of them.
    #[must_use]
    pub fn arguments(&self, number: usize) -> [String; 3] {
        let word = if self.writable { BIND } else { READ };
        [word.to_owned(), format!("@{number}"), self.place.to_string_lossy().into_owned()]
    }
}

const BIND: &str = "--bind-fd";
const READ: &str = "--ro-bind-fd";

/// The words by which it is started, ahead of bubblewrap's path and arguments.
#[must_use]
pub fn arguments(mounts: &[OpenedMount]) -> Vec<String> {
    let mut words = vec![super::spawn::BIND.to_owned()];
    for mount in mounts {
        let paths = [&mount.folder, &mount.below, &mount.place];
        words.extend(paths.map(|it| it.to_string_lossy().into_owned()));
    }
    words.push("--".to_owned());
    words
}

/// The hidden subcommand: `args` is what follows `__bind`.
pub fn main(args: &[OsString]) -> ExitCode {
    let Some((mounts, program, rest)) = read(args) else {
        return complain("usage: teams __bind [FOLDER BELOW PLACE]… -- bwrap arguments…");
    };
    let opened: Result<Vec<(OwnedFd, ExpectedMount)>, FileError> =
        mounts.iter().map(|mount| open(*mount)).collect();
    match opened {
        Ok(opened) => {
            let words = told(rest, &opened);
            let error = Command::new(program).args(words).exec();
            complain(&format!("cannot start {}: {error}", program.display()))
        }
        Err(error) => complain(&format!("{}{error}", inside::NO_SANDBOX)),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "what a sandbox says goes where its program's complaints go"
)]
fn complain(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(126)
}

/// A folder, a path below it, and the place of that.
type MountWords<'a> = [&'a Path; 3];
type Words<'a> = (Vec<MountWords<'a>>, &'a Path, &'a [OsString]);

fn read(args: &[OsString]) -> Option<Words<'_>> {
    let end = args.iter().position(|word| word == "--")?;
    let (mounts, rest) = (args.get(..end)?, args.get(end + 1..)?);
    let (program, rest) = rest.split_first()?;
    let named = mounts.chunks(3).map(|words| match words {
        [folder, below, place] => Some([folder, below, place].map(Path::new)),
        _ => None,
    });
    Some((named.collect::<Option<_>>()?, Path::new(program), rest))
}

/// Held open across the start of bubblewrap, which closes it before anything else runs in the sandbox.
fn open([folder, below, place]: MountWords<'_>) -> Result<(OwnedFd, ExpectedMount), FileError> {
    let opened = Folder::open(folder)?.handle(below)?;
    let path = folder.join(below);
    let kept = rustix::io::fcntl_setfd(&opened, FdFlags::empty());
    files::at("hold", &path, kept.map_err(std::io::Error::from))?;
    let mount = files::at("look at", &path, ExpectedMount::of(&opened, place))?;
    Ok((opened, mount))
}

/// bubblewrap's own arguments with the numbers of what was opened, and what that is among those of our binary
/// within.
fn told(words: &[OsString], opened: &[(OwnedFd, ExpectedMount)]) -> Vec<OsString> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    // After `--`: our binary, its subcommand, its arguments.
    let (outside, within) = words.split_at(words.len().min(end + 3));
    let mut all = Vec::with_capacity(words.len());
    let mut number_follows = false;
    for word in outside {
        let wanted = word.to_str().and_then(|word| word.strip_prefix('@')?.parse::<usize>().ok());
        let number = wanted.filter(|_| number_follows).and_then(|at| opened.get(at));
        let number = number.map(|(fd, _)| fd.as_raw_fd().to_string().into());
        all.push(number.unwrap_or_else(|| word.clone()));
        number_follows = word == BIND || word == READ;
    }
    all.extend(opened.iter().flat_map(|(_, mount)| mount.words()));
    all.extend_from_slice(within);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(folder: &Path, below: &str, writable: bool) -> OpenedMount {
        let place = folder.join(below);
        OpenedMount { folder: folder.to_owned(), below: PathBuf::from(below), place, writable }
    }

    #[test]
    fn what_was_opened_is_named_by_its_number_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        files::create_dir_all(&folder.path().join("one/two")).unwrap();
        std::os::unix::fs::symlink("..", folder.path().join("out")).unwrap();
        let mounts = [mount(folder.path(), "one", true), mount(folder.path(), "one/two", false)];
        let mut words = arguments(&mounts);
        assert_eq!(words.remove(0), super::super::spawn::BIND);
        words.push("/bin/bwrap".to_owned());
        for (number, mount) in mounts.iter().enumerate() {
            words.extend(mount.arguments(number));
        }
        let within = ["--", "teams", "__inside", "--", "p", "--bind-fd", "@0"];
        words.extend(within.map(str::to_owned));
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let (pairs, program, rest) = read(&words).unwrap();
        assert_eq!(program, Path::new("/bin/bwrap"));
        let opened: Vec<(OwnedFd, ExpectedMount)> =
            pairs.iter().map(|named| open(*named).unwrap()).collect();
        let told = told(rest, &opened);
        let number = |nth: usize| opened[nth].0.as_raw_fd().to_string();
        let at = |below: &str| folder.path().join(below).to_str().unwrap().to_owned();
        let mut expected = vec!["--bind-fd".to_owned(), number(0), at("one")];
        expected.extend(["--ro-bind-fd".to_owned(), number(1), at("one/two")]);
        expected.extend(within[..3].iter().map(ToString::to_string));
        let expected = expected.into_iter().map(OsString::from);
        let mounts = opened.iter().flat_map(|(_, mount)| mount.words());
        let all = expected.chain(mounts).chain(within[3..].iter().map(OsString::from));
        assert_eq!(told, all.collect::<Vec<_>>());
        for out in ["out", "one/../.."] {
            assert!(open([folder.path(), Path::new(out), Path::new("/out")]).is_err(), "{out}");
        }
    }
}
