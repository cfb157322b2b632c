//! Files below a folder that an agent may write.
//!
//! Whoever may write a folder may put a link to anything of ours into it, a pipe on which a reader waits for
//! ever, or exchange one for the other between a look and a use. So nothing in there is reached by its path:
//! the folder is opened once, and the kernel opens what lies below from there, follows no link and does not
//! leave the folder (`openat2`, Linux 5.6; before that one name at a time).

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::files::{self, FileError, Result, at};
use super::ids;

/// How often the kernel is asked again that was disturbed by a rename.
const TRIES: usize = 64;

/// An opened folder. What is named below it is a relative path of plain names.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// A regular file that was found below a folder.
#[derive(Debug)]
pub struct RegularFile {
    file: File,
    found: Metadata,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder whose own path no agent can change. Links in that path are the operator's, and are
    /// followed.
    ///
    /// # Errors
    /// Where there is no such folder.
    pub fn open(path: &Path) -> Result<Folder> {
        let opened = rustix::fs::open(path, FOLDER, Mode::empty());
        Ok(Folder { fd: at("open", path, opened.map_err(io::Error::from))?, path: path.to_owned() })
    }

    /// Where it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder below this one.
    ///
    /// # Errors
    /// Where it is not there, is no folder, or lies behind a link.
    pub fn folder(&self, below: impl AsRef<Path>) -> Result<Folder> {
        let below = below.as_ref();
        let fd = self.enter("open", below, FOLDER, Mode::empty())?;
        Ok(Folder { fd, path: self.path.join(below) })
    }

    /// The same, made with its parents where it is missing.
    ///
    /// # Errors
    /// Where something that is no folder stands in the way.
    pub fn make_folder(&self, below: impl AsRef<Path>) -> Result<Folder> {
        self.make(below.as_ref(), InTheWay::Stays)
    }

    /// The same for a folder that is the team's own, where only an agent can have put something else: a link
    /// or a file that stands in the way is removed.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn claim_folder(&self, below: impl AsRef<Path>) -> Result<Folder> {
        self.make(below.as_ref(), InTheWay::Goes)
    }

    fn make(&self, below: &Path, in_the_way: InTheWay) -> Result<Folder> {
        let full = self.path.join(below);
        let mut here = at("open", &self.path, self.fd.try_clone())?;
        for name in names(below).map_err(|error| refused("create", &full, error))? {
            let made = rustix::fs::mkdirat(&here, name, Mode::from_raw_mode(0o777));
            let mut opened = open_at(here.as_fd(), Path::new(name), FOLDER, Mode::empty());
            if made == Err(Errno::EXIST) && opened.is_err() && in_the_way == InTheWay::Goes {
                tracing::warn!(path = %full.display(), "what stood in the way of a folder of the team is removed");
                let gone = rustix::fs::unlinkat(&here, name, AtFlags::empty())
                    .and_then(|()| rustix::fs::mkdirat(&here, name, Mode::from_raw_mode(0o777)));
                at("create", &full, gone.map_err(io::Error::from))?;
                opened = open_at(here.as_fd(), Path::new(name), FOLDER, Mode::empty());
            }
            match (made, opened) {
                (_, Ok(next)) => here = next,
                (Err(error), Err(_)) if error != Errno::EXIST => {
                    return at("create", &full, Err(error.into()));
                }
                (_, Err(error)) => return Err(refused("create", &full, error)),
            }
        }
        Ok(Folder { fd: here, path: full })
    }

    /// What stands there, held and not opened: to be mounted, ruled about or looked at.
    ///
    /// # Errors
    /// Where nothing is there, or it is a link or lies behind one.
    pub fn handle(&self, below: impl AsRef<Path>) -> Result<OwnedFd> {
        self.enter("look at", below.as_ref(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    /// Where a path leads whose links stay in the folder, relative to it and without links; `None` where
    /// nothing is there or it leaves the folder. Only for what is taken away: what is given is opened.
    #[must_use]
    pub fn leads_to(&self, below: impl AsRef<Path>) -> Option<PathBuf> {
        let real = files::canonicalize(&self.path).ok()?;
        let found = files::canonicalize(&real.join(below)).ok()?;
        found.strip_prefix(&real).ok().map(Path::to_owned)
    }

    /// What is known of what stands there.
    ///
    /// # Errors
    /// As [`Folder::handle`].
    pub fn metadata(&self, below: impl AsRef<Path>) -> Result<Metadata> {
        let below = below.as_ref();
        let handle = File::from(self.handle(below)?);
        at("look at", &self.path.join(below), handle.metadata())
    }

    /// Whether a regular file stands there.
    #[must_use]
    pub fn has_file(&self, below: impl AsRef<Path>) -> bool {
        self.metadata(below).is_ok_and(|found| found.is_file())
    }

    /// A regular file. Pipes, devices and sockets are not opened at all: opening alone can wait for ever, or
    /// do something.
    ///
    /// # Errors
    /// Where there is none.
    pub fn file(&self, below: impl AsRef<Path>) -> Result<RegularFile> {
        let below = below.as_ref();
        let path = self.path.join(below);
        let held = File::from(self.handle(below)?);
        let found = at("look at", &path, held.metadata())?;
        if !found.is_file() {
            return at("read", &path, Err(io::Error::other(strange(&found))));
        }
        // What is held is what is opened, whatever the name stands for by now.
        let held_as = format!("/proc/self/fd/{}", held.as_raw_fd());
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
            .open(held_as);
        let file = at("read", &path, opened)?;
        Ok(RegularFile { file, found, path })
    }

    /// The text of a file of at most so many bytes; `None` where nothing is there.
    ///
    /// # Errors
    /// Where it is no regular file, is too large, or is not UTF-8.
    pub fn read_text_if_present(
        &self,
        below: impl AsRef<Path>,
        most: u64,
    ) -> Result<Option<String>> {
        let file = match self.file(below) {
            Ok(file) => file,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        let path = file.path.clone();
        let text = String::from_utf8(file.read(most)?);
        let text = text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
        at("read", &path, text).map(Some)
    }

    /// The names in the folder, in order.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn list(&self) -> Result<Vec<OsString>> {
        let entries = rustix::fs::Dir::read_from(&self.fd);
        let mut found = Vec::new();
        for entry in at("list", &self.path, entries.map_err(io::Error::from))? {
            let entry = at("list", &self.path, entry.map_err(io::Error::from))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                found.push(name.to_owned());
            }
        }
        found.sort();
        Ok(found)
    }

    /// Replaces a file of this folder so that a reader sees the old or the new text, never a part; no sync. A
    /// link of that name goes, and what it led to stays as it is.
    ///
    /// # Errors
    /// Where it cannot be written, or a folder has that name.
    pub fn write_atomic(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.replace(name, bytes.as_ref(), 0o666, Lasts::Perhaps)
    }

    /// The same, durable: its bytes and its name are there after a crash.
    ///
    /// # Errors
    /// As [`Folder::write_atomic`].
    pub fn write_durable(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.replace(name, bytes.as_ref(), 0o666, Lasts::AfterACrash)
    }

    /// The same for a file that only its owner can read.
    ///
    /// # Errors
    /// As [`Folder::write_atomic`].
    pub fn write_private_durable(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.replace(name, bytes.as_ref(), 0o600, Lasts::AfterACrash)
    }

    /// Makes a name of this folder a link to `target`. A file or another link of that name goes; a folder is put
    /// aside.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn put_link(&self, name: &str, target: &Path) -> Result<()> {
        let path = self.path.join(name);
        let own = || -> io::Result<()> {
            let is_own = |found: CString| found.as_bytes() == target.as_os_str().as_bytes();
            if rustix::fs::readlinkat(&self.fd, name, Vec::new()).is_ok_and(is_own) {
                return Ok(());
            }
            let temp = format!(".{name}.{}", ids::random_hex(8));
            let aside = format!("{name}.{}", ids::random_hex(8));
            rustix::fs::symlinkat(target, &self.fd, &temp)?;
            let put = || rustix::fs::renameat(&self.fd, &temp, &self.fd, name);
            let put = match put() {
                Err(Errno::ISDIR) => {
                    rustix::fs::renameat(&self.fd, name, &self.fd, &aside).and_then(|()| put())
                }
                put => put,
            };
            if put.is_err() {
                // It stays where even this fails.
                let _ = rustix::fs::unlinkat(&self.fd, &temp, AtFlags::empty());
            }
            Ok(put?)
        };
        match names(Path::new(name)) {
            Ok(parts) if parts.len() == 1 => at("write", &path, own()),
            Ok(_) | Err(_) => Err(refused("write", &path, Errno::INVAL)),
        }
    }

    /// Makes a file's bytes durable.
    ///
    /// # Errors
    /// As [`Folder::file`].
    pub fn sync_file(&self, name: &str) -> Result<()> {
        let file = self.file(name)?;
        at("sync", &file.path, file.file.sync_all())
    }

    /// Sets the permission bits of the folder itself.
    ///
    /// # Errors
    /// Where they cannot be changed.
    pub fn set_mode(&self, mode: u32) -> Result<()> {
        let set = rustix::fs::fchmod(&self.fd, Mode::from_raw_mode(mode));
        at("change the mode of", &self.path, set.map_err(io::Error::from))
    }

    fn replace(&self, name: &str, bytes: &[u8], mode: u32, lasts: Lasts) -> Result<()> {
        let path = self.path.join(name);
        let single = match names(Path::new(name)).map_err(|error| refused("write", &path, error))? {
            parts if parts.len() == 1 => parts[0],
            _ => return Err(refused("write", &path, Errno::INVAL)),
        };
        let mut temp = OsString::from(".");
        temp.push(single);
        temp.push(".tmp");
        let write = || -> io::Result<()> {
            let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let new = || rustix::fs::openat(&self.fd, &temp, create, Mode::from_raw_mode(mode));
            let opened = match new() {
                // Never what lies there already: that could be a link to anything of ours.
                Err(Errno::EXIST) => {
                    rustix::fs::unlinkat(&self.fd, &temp, AtFlags::empty())?;
                    new()
                }
                opened => opened,
            };
            let mut file = File::from(opened?);
            file.write_all(bytes)?;
            if lasts == Lasts::AfterACrash {
                file.sync_data()?;
            }
            rustix::fs::renameat(&self.fd, &temp, &self.fd, single)?;
            if lasts == Lasts::AfterACrash {
                rustix::fs::fsync(&self.fd)?;
            }
            Ok(())
        };
        at("write", &path, write())
    }

    fn enter(
        &self,
        action: &'static str,
        below: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd> {
        let full = self.path.join(below);
        let clean = names(below).map_err(|error| refused(action, &full, error))?;
        let clean: PathBuf = clean.into_iter().collect();
        open_at(self.fd.as_fd(), &clean, flags, mode).map_err(|error| refused(action, &full, error))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl RegularFile {
    /// Bytes, as it was found.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.found.len()
    }

    /// Whether it had no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Names that it has. One with more may belong to somebody else.
    #[must_use]
    pub fn links(&self) -> u64 {
        self.found.nlink()
    }

    /// All of it, where that is at most so many bytes, however it grows meanwhile.
    ///
    /// # Errors
    /// Where it cannot be read, or is larger.
    pub fn read(mut self, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(most.saturating_add(1)).read_to_end(&mut bytes);
        at("read", &self.path, read)?;
        if bytes.len() as u64 > most {
            let large = format!("it has more than {most} bytes");
            return at("read", &self.path, Err(io::Error::new(io::ErrorKind::FileTooLarge, large)));
        }
        Ok(bytes)
    }

    /// The next bytes, at most so many; none where its end is reached, which may move.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn read_on(&mut self, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        at("read", &self.path, (&mut self.file).take(most).read_to_end(&mut bytes))?;
        Ok(bytes)
    }
}

/// What becomes of what is no folder and stands where one is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InTheWay {
    Stays,
    Goes,
}

/// Whether what is written is to be there after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasts {
    Perhaps,
    AfterACrash,
}

/// How folders are opened.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The names of a relative path; nothing else may stand in it.
fn names(below: &Path) -> std::result::Result<Vec<&OsStr>, Errno> {
    below
        .components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| match part {
            Component::Normal(name) => Ok(name),
            Component::CurDir
            | Component::ParentDir
            | Component::RootDir
            | Component::Prefix(_) => Err(Errno::XDEV),
        })
        .collect()
}

/// What was met in place of a regular file.
fn strange(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    if kind.is_dir() {
        "it is a folder"
    } else if kind.is_fifo() {
        "it is a pipe"
    } else if kind.is_socket() {
        "it is a socket"
    } else {
        "it is a device"
    }
}

fn refused(action: &'static str, path: &Path, error: Errno) -> FileError {
    let source = match error {
        Errno::LOOP => {
            io::Error::other("it is a link, or lies behind one, where an agent may write")
        }
        Errno::XDEV => io::Error::other("it does not lie within its folder"),
        error => error.into(),
    };
    FileError { action, path: path.to_owned(), source }
}

/// Opens what lies below a folder, through no link and not outside of it. An empty path is the folder.
fn open_at(
    folder: BorrowedFd<'_>,
    below: &Path,
    flags: OFlags,
    mode: Mode,
) -> std::result::Result<OwnedFd, Errno> {
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match rustix::fs::openat2(folder, below, flags, mode, how) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // An older kernel; or a container whose filter does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => return one_by_one(folder, below, flags, mode),
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// The same, one name at a time.
fn one_by_one(
    folder: BorrowedFd<'_>,
    below: &Path,
    flags: OFlags,
    mode: Mode,
) -> std::result::Result<OwnedFd, Errno> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut held: Option<OwnedFd> = None;
    let mut parts = below.iter().peekable();
    while let Some(name) = parts.next() {
        let here = held.as_ref().map_or(folder, AsFd::as_fd);
        let last = parts.peek().is_none();
        let wanted = if last { flags | OFlags::NOFOLLOW } else { step };
        let opened = rustix::fs::openat(here, name, wanted, mode);
        let next = match opened {
            // That a link is no folder is not what stands in the way.
            Err(Errno::NOTDIR) if is_link(here, name) => return Err(Errno::LOOP),
            opened => opened?,
        };
        if last && flags.contains(OFlags::PATH) {
            // A link itself can be held.
            let found = rustix::fs::fstat(&next)?;
            if rustix::fs::FileType::from_raw_mode(found.st_mode).is_symlink() {
                return Err(Errno::LOOP);
            }
        }
        held = Some(next);
    }
    held.ok_or(Errno::NOENT)
}

fn is_link(folder: BorrowedFd<'_>, name: &OsStr) -> bool {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|it| rustix::fs::FileType::from_raw_mode(it.st_mode).is_symlink())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A folder that an agent may write, beside a secret, with every kind of thing in it.
    fn yard() -> (tempfile::TempDir, Folder) {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("agents");
        files::create_dir_all(&root.join("real/deep")).unwrap();
        files::create_dir_all(&top.path().join("private")).unwrap();
        files::write(&top.path().join("private/secret"), "secret").unwrap();
        files::write(&root.join("real/deep/plan.md"), "the plan").unwrap();
        symlink("../private", root.join("folder-link")).unwrap();
        symlink("../private/secret", root.join("file-link")).unwrap();
        symlink("real", root.join("harmless-link")).unwrap();
        symlink("/proc/self/root", root.join("magic-link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), Mode::from_raw_mode(0o600))
            .unwrap();
        let _ = UnixListener::bind(root.join("socket")).unwrap();
        let folder = Folder::open(&root).unwrap();
        (top, folder)
    }

    const OUT: [&str; 9] = [
        "folder-link/secret",
        "file-link",
        "harmless-link/deep/plan.md",
        "magic-link/etc/hostname",
        "../private/secret",
        "real/../../private/secret",
        "/etc/hostname",
        "pipe",
        "socket",
    ];

    #[test]
    fn nothing_is_read_through_a_link_or_out_of_anything_but_a_file() {
        let (_top, folder) = yard();
        assert_eq!(
            folder.read_text_if_present("real/./deep/plan.md", 8).unwrap().as_deref(),
            Some("the plan")
        );
        assert_eq!(folder.read_text_if_present("real/gone", 8).unwrap(), None);
        assert!(folder.read_text_if_present("real/deep/plan.md", 7).is_err(), "too large");
        for out in OUT {
            assert!(folder.file(out).is_err(), "{out}");
            assert!(!folder.has_file(out), "{out}");
        }
        for out in &OUT[..7] {
            assert!(folder.handle(out).is_err(), "{out}");
        }
        let said = folder.file("file-link").unwrap_err().to_string();
        assert!(said.contains("it is a link"), "{said}");
        assert!(folder.folder("folder-link").is_err() && folder.folder("harmless-link").is_err());
        assert_eq!(folder.folder("real/deep").unwrap().list().unwrap(), ["plan.md"]);
    }

    #[test]
    fn an_older_kernel_is_asked_one_name_at_a_time_and_gives_the_same() {
        let (_top, folder) = yard();
        let both = |below: &str, flags| {
            let below = Path::new(below);
            let flags = flags | OFlags::CLOEXEC;
            let new = open_at(folder.as_fd(), below, flags, Mode::empty());
            let old = one_by_one(folder.as_fd(), below, flags, Mode::empty());
            assert_eq!(new.as_ref().err(), old.as_ref().err(), "{}", below.display());
            let inode = |opened: std::result::Result<OwnedFd, Errno>| {
                opened.ok().map(|fd| rustix::fs::fstat(fd).unwrap().st_ino)
            };
            assert_eq!(inode(new), inode(old), "{}", below.display());
        };
        for below in ["real", "real/deep", "real/deep/plan.md", "gone", "real/gone/more", "pipe"] {
            both(below, OFlags::PATH);
        }
        for below in ["folder-link/secret", "file-link", "harmless-link/deep", "magic-link/etc"] {
            both(below, OFlags::PATH);
            both(below, OFlags::RDONLY | OFlags::DIRECTORY);
        }
    }

    type Write = fn(&Folder, &str, &str) -> Result<()>;

    #[test]
    fn nothing_is_written_through_a_link() {
        let (top, folder) = yard();
        let secret = || files::read_text(&top.path().join("private/secret")).unwrap();
        symlink("../private/secret", top.path().join("agents/.file-link.tmp")).unwrap();
        let writers: [Write; 3] = [
            |folder, name, text| folder.write_atomic(name, text),
            |folder, name, text| folder.write_durable(name, text),
            |folder, name, text| folder.write_private_durable(name, text),
        ];
        for write_it in writers {
            write_it(&folder, "file-link", "mine").unwrap();
            assert_eq!(secret(), "secret");
            assert!(folder.has_file("file-link"), "a file has taken the place of the link");
            files::remove_file(&top.path().join("agents/file-link")).unwrap();
            symlink("../private/secret", top.path().join("agents/file-link")).unwrap();
            symlink("../private/secret", top.path().join("agents/.file-link.tmp")).unwrap();
        }
        for name in ["folder-link/new", "../private/new", "real", "..", ""] {
            assert!(folder.write_atomic(name, "mine").is_err(), "{name}");
        }
        assert!(folder.make_folder("folder-link/new").is_err());
        assert!(folder.make_folder("../private/new").is_err());
        assert_eq!(folder.make_folder("real/new/newer").unwrap().list().unwrap().len(), 0);
        let claimed = folder.claim_folder("folder-link/new").unwrap();
        claimed.write_atomic("note", "mine").unwrap();
        let private = top.path().join("private");
        assert_eq!(files::list(&private).unwrap(), [private.join("secret")]);
        assert!(folder.has_file("folder-link/new/note"));
    }

    /// Lets the other thread go however the test ends.
    struct Ends<'a>(&'a AtomicBool);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_folder_that_becomes_a_link_again_and_again_never_leads_out() {
        let (top, folder) = yard();
        files::create_dir_all(&top.path().join("agents/swapped")).unwrap();
        files::write(&top.path().join("agents/swapped/secret"), "mine").unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _ends = Ends(&over);
            scope.spawn(|| {
                let other = rustix::fs::RenameFlags::EXCHANGE;
                let both =
                    ["swapped", "folder-link"].map(|name| top.path().join("agents").join(name));
                let cwd = rustix::fs::CWD;
                while !over.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(cwd, &both[0], cwd, &both[1], other).unwrap();
                }
            });
            let mut seen = 0;
            while seen < 200 {
                match folder.read_text_if_present("swapped/secret", 100) {
                    Ok(text) => {
                        assert_eq!(text.as_deref(), Some("mine"));
                        seen += 1;
                    }
                    Err(error) => assert!(!error.is_missing(), "{error}"),
                }
            }
        });
    }
}
