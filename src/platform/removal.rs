//! Removing a folder with all that is in it, whatever a program left there: folders without the right to read or to
//! write them (package caches), and more folders in each other than a process may open or a path can name.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Folders that are open at a time. What lies deeper is moved up beside what lies in the first, and goes from there.
const OPEN: usize = 32;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open folder and what is left in it.
struct Level {
    name: CString,
    fd: OwnedFd,
    left: Vec<CString>,
}

/// Removes it; a link alone, and not what it leads to.
///
/// # Errors
/// Where it is not there, is no folder, or something in it cannot be removed.
pub(super) fn remove_dir_all(path: &Path) -> io::Result<()> {
    let found = rustix::fs::lstat(path)?;
    if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
        return Ok(rustix::fs::unlink(path)?);
    }
    let mut levels = vec![enter(CWD, CString::new(path.as_os_str().as_encoded_bytes())?)?];
    let mut moved = 0_u64;
    while let Some(mut here) = levels.pop() {
        let Some(name) = here.left.pop() else {
            let above = levels.last().map_or(CWD, |above| above.fd.as_fd());
            let remove = || rustix::fs::unlinkat(above, &here.name, AtFlags::REMOVEDIR);
            match allowed(above, remove) {
                // Somebody else has removed it meanwhile.
                Err(Errno::NOENT) if !levels.is_empty() => {}
                removed => removed?,
            }
            continue;
        };
        let fd = here.fd.as_fd();
        let removed = allowed(fd, || rustix::fs::unlinkat(fd, &name, AtFlags::empty()));
        let next = match removed {
            Ok(()) | Err(Errno::NOENT) => None,
            // What Linux says of a folder, and what POSIX does.
            Err(error @ (Errno::ISDIR | Errno::PERM)) if levels.len() + 1 < OPEN => {
                match enter(fd, name) {
                    Ok(level) => Some(level),
                    Err(missing) if missing.kind() == io::ErrorKind::NotFound => None,
                    // It is no folder.
                    Err(_) if error == Errno::PERM => return Err(error.into()),
                    Err(error) => return Err(error),
                }
            }
            Err(Errno::ISDIR | Errno::PERM) => {
                // A folder that moves is written as well.
                give_rights(fd, &name)?;
                let first = &mut levels[0];
                loop {
                    let up = CString::new(format!(".removed-{moved}"))?;
                    moved += 1;
                    match allowed(fd, || rustix::fs::renameat(fd, &name, &first.fd, &up)) {
                        // One that was cut short before.
                        Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                        done => {
                            done?;
                            first.left.push(up);
                            break;
                        }
                    }
                }
                None
            }
            Err(error) => return Err(error.into()),
        };
        levels.push(here);
        levels.extend(next);
    }
    Ok(())
}

fn enter(above: BorrowedFd<'_>, name: CString) -> io::Result<Level> {
    let open = || rustix::fs::openat(above, &name, FOLDER, Mode::empty());
    let fd = match open() {
        Err(Errno::ACCESS) => {
            give_rights(above, &name)?;
            open()
        }
        opened => opened,
    }?;
    let mut left = Vec::new();
    for entry in Dir::read_from(&fd)? {
        let entry = entry?.file_name().to_owned();
        if !matches!(entry.to_bytes(), b"." | b"..") {
            left.push(entry);
        }
    }
    Ok(Level { name, fd, left })
}

/// Tries again with the rights to the folder where they lack.
fn allowed(
    folder: BorrowedFd<'_>,
    mut what: impl FnMut() -> Result<(), Errno>,
) -> Result<(), Errno> {
    match what() {
        Err(Errno::ACCESS) if folder.as_raw_fd() != CWD.as_raw_fd() => {
            rustix::fs::fchmod(folder, Mode::RWXU)?;
            what()
        }
        done => done,
    }
}

/// Gives the owner of a folder all rights to it. It is held before, so that it is none that a link leads to.
fn give_rights(above: BorrowedFd<'_>, name: &CString) -> io::Result<()> {
    let held = rustix::fs::openat(
        above,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let held = format!("/proc/self/fd/{}", held.as_raw_fd());
    Ok(rustix::fs::chmod(held, Mode::RWXU)?)
}
