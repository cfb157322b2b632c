//! Unix sockets at paths of any length: an address takes 107 bytes, and the path of a workspace may be longer.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use tokio::net::{UnixListener, UnixStream};

/// Bytes of the longest address.
const LONGEST: usize = 107;

/// Listens at a path.
///
/// # Errors
/// Where the system refuses.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    let (_folder, short) = shortened(path)?;
    UnixListener::bind(short)
}

/// Connects to whoever listens at a path.
///
/// # Errors
/// Where nobody does, or the system refuses.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    let (_folder, short) = shortened(path)?;
    UnixStream::connect(short).await
}

/// The path by its folder, which is held open meanwhile, where it is too long itself.
fn shortened(path: &Path) -> io::Result<(Option<OwnedFd>, PathBuf)> {
    if path.as_os_str().len() <= LONGEST {
        return Ok((None, path.to_owned()));
    }
    let (above, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, above, flags, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
    Ok((Some(folder), short.join(name.unwrap_or(OsStr::new("")))))
}
