//! Locks on folders, so that nobody removes one that somebody uses. They end with the process that holds them, and no
//! program that it starts has them.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::files::{self, FileError};

/// A lock on a folder, until it is dropped.
#[derive(Debug)]
pub struct FolderLock {
    _open: File,
}

/// Holds a folder together with others who use it, once nobody removes it; nothing where it is not there any more. On a
/// file system without locks nothing keeps it.
///
/// # Errors
/// Where the folder cannot be opened.
pub fn hold(folder: &Path) -> Result<Option<FolderLock>, FileError> {
    let Some(open) = open(folder)? else { return Ok(None) };
    let _ = open.lock_shared();
    is_there(&open, folder).map(|is_there| is_there.then_some(FolderLock { _open: open }))
}

/// The lock of a folder that nobody holds, for whoever removes it; nothing where it is held or not there. On a file
/// system without locks `is_old` says whether nobody can.
///
/// # Errors
/// Where the folder cannot be opened.
pub fn unused(
    folder: &Path,
    is_old: impl FnOnce() -> bool,
) -> Result<Option<FolderLock>, FileError> {
    let Some(open) = open(folder)? else { return Ok(None) };
    let is_unused = match open.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => is_old(),
    };
    Ok((is_unused && is_there(&open, folder)?).then_some(FolderLock { _open: open }))
}

/// Whether what is locked is what lies there: it may have been renamed, and another one made, before it was locked.
fn is_there(open: &File, folder: &Path) -> Result<bool, FileError> {
    let now = files::metadata(folder).ok().map(|meta| (meta.dev(), meta.ino()));
    let locked = files::at("look at", folder, open.metadata())?;
    Ok(now == Some((locked.dev(), locked.ino())))
}

fn open(folder: &Path) -> Result<Option<File>, FileError> {
    match files::open(folder) {
        Ok(open) => Ok(Some(open)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_by_many_and_removed_by_one() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("one");
        assert!(hold(&folder).unwrap().is_none() && unused(&folder, || true).unwrap().is_none());
        files::create_dir_all(&folder).unwrap();
        let (first, second) = (hold(&folder).unwrap(), hold(&folder).unwrap());
        assert!(first.is_some() && second.is_some());
        drop(first);
        assert!(unused(&folder, || true).unwrap().is_none());
        drop(second);
        let own = unused(&folder, || false).unwrap();
        assert!(own.is_some() && unused(&folder, || true).unwrap().is_none());
    }
}
