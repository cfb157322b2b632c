//! What the store asks of a disk, so that the same store runs on the real one and on one that loses
//! whatever was not synced ([`SimDisk`](crate::platform::sim_disk::SimDisk)).

#![expect(clippy::disallowed_methods, reason = "this module owns files")]

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::platform::files::{FileError, Result, at};

/// What stands behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// A file, or a link to one.
    File,
    /// A folder; a link to one is something else, because it may lead in a circle.
    Folder,
    /// A socket, a link that leads nowhere, …
    Other,
}

/// An open file that is written at places the caller knows. Dropping it closes it.
pub trait DiskFile: Send {
    /// Writes all of `bytes` at `offset`; on an error part of it may have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Makes what was written durable. After an error nothing is known about it and it is never
    /// tried again on the same file (`spec/rust.md` C9).
    fn sync(&mut self) -> Result<()>;
    /// Cuts the file.
    fn truncate(&mut self, len: u64) -> Result<()>;
}

/// A lock that is held until this is dropped or the process ends.
pub trait FileLock: Send + Sync {}

/// A lock of the machine's disk. It is given back by name: a process that is being spawned holds a copy of the open
/// file for an instant, and the lock would live as long as that.
struct HeldFile(File);

impl FileLock for HeldFile {}

impl Drop for HeldFile {
    fn drop(&mut self) {
        // Closing it does the same, a moment later.
        let _ = self.0.unlock();
    }
}

/// The operations that the store needs. Names become durable only by [`Disk::sync_dir`], bytes only by
/// a sync of their file.
pub trait Disk: Send + Sync {
    /// Creates a file, or empties it, for writing at places.
    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>>;
    /// The whole file.
    fn read(&self, path: &Path) -> Result<Vec<u8>>;
    /// The length of a file in bytes; `None` where there is none.
    fn len(&self, path: &Path) -> Result<Option<u64>>;
    /// When the bytes of a file were last written, in milliseconds since 1970; `None` where there is none.
    fn written(&self, path: &Path) -> Result<Option<u64>>;
    /// What stands behind a name; `None` where nothing does.
    fn node(&self, path: &Path) -> Result<Option<Node>>;
    /// The names in a folder, sorted; names that are not UTF-8 are left out; an absent folder is empty.
    fn list(&self, path: &Path) -> Result<Vec<String>>;
    /// Creates a folder and its parents.
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// Replaces the bytes of a file, creating it; no sync.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()>;
    /// Appends to a file, creating it; no sync.
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<()>;
    /// Makes the bytes of a file durable.
    fn sync(&self, path: &Path) -> Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// Makes many files and then the names in many folders durable; `root` is a folder above them all.
    /// Files and folders that are gone again are fine.
    fn sync_many(&self, root: &Path, files: &[PathBuf], folders: &[PathBuf]) -> Result<()> {
        let _ = root;
        sync_each(self, files, folders)
    }
    /// Renames a file, replacing one at the target.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Cuts a file.
    fn truncate(&self, path: &Path, len: u64) -> Result<()>;
    /// Removes a file; an absent one is fine.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Takes the exclusive lock of a file, creating it; `None` where somebody else has it.
    fn lock(&self, path: &Path) -> Result<Option<Box<dyn FileLock>>>;
}

/// From this many files on, the whole file system is flushed at once.
const FLUSH_ALL: usize = 64;

fn sync_each<D: Disk + ?Sized>(disk: &D, files: &[PathBuf], folders: &[PathBuf]) -> Result<()> {
    let gone_is_fine = |outcome: Result<()>| match outcome {
        Err(error) if error.is_missing() => Ok(()),
        outcome => outcome,
    };
    for file in files {
        gone_is_fine(disk.sync(file))?;
    }
    for folder in folders {
        gone_is_fine(disk.sync_dir(folder))?;
    }
    Ok(())
}

/// The machine's disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

struct RealFile {
    path: PathBuf,
    file: File,
}

impl DiskFile for RealFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        at("write", &self.path, self.file.write_all_at(bytes, offset))
    }

    fn sync(&mut self) -> Result<()> {
        at("sync", &self.path, self.file.sync_data())?;
        // A file without a name takes every write, and keeps none.
        let found = at("look at", &self.path, self.file.metadata())?;
        if found.nlink() == 0 {
            let gone = "it was removed while it was in use: the workspace is gone";
            return at("sync", &self.path, Err(io::Error::other(gone)));
        }
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        at("cut", &self.path, self.file.set_len(len))
    }
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let file = at("create", path, File::create(path))?;
        Ok(Box::new(RealFile { path: path.to_owned(), file }))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        at("read", path, fs::read(path))
    }

    fn len(&self, path: &Path) -> Result<Option<u64>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => at("look at", path, Err(error)),
        }
    }

    fn written(&self, path: &Path) -> Result<Option<u64>> {
        let written = match fs::metadata(path).and_then(|metadata| metadata.modified()) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return at("look at", path, Err(error)),
        };
        let passed = written.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Some(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)))
    }

    fn node(&self, path: &Path) -> Result<Option<Node>> {
        match fs::symlink_metadata(path) {
            Ok(it) if it.is_file() => Ok(Some(Node::File)),
            Ok(it) if it.is_dir() => Ok(Some(Node::Folder)),
            // A link.
            Ok(_) if fs::metadata(path).is_ok_and(|it| it.is_file()) => Ok(Some(Node::File)),
            Ok(_) => Ok(Some(Node::Other)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => at("look at", path, Err(error)),
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return at("list", path, Err(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = at("list", path, entry)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        at("create", path, fs::create_dir_all(path))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        at("write", path, fs::write(path, bytes))
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let opened = OpenOptions::new().append(true).create(true).open(path);
        let mut file = at("append to", path, opened)?;
        at("append to", path, file.write_all(bytes))
    }

    fn sync(&self, path: &Path) -> Result<()> {
        let file = at("open", path, File::open(path))?;
        at("sync", path, file.sync_data())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let folder = at("open", path, File::open(path))?;
        at("sync", path, folder.sync_all())
    }

    fn sync_many(&self, root: &Path, files: &[PathBuf], folders: &[PathBuf]) -> Result<()> {
        // One flush of the file system is cheaper than one a file, but also flushes what others wrote.
        if files.len() + folders.len() > FLUSH_ALL {
            let mut flushed = BTreeSet::new();
            // A folder of the workspace may be on another disk.
            for path in std::iter::once(root).chain(folders.iter().chain(files).map(AsRef::as_ref))
            {
                let device = match fs::metadata(path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    found => at("look at", path, found)?.dev(),
                };
                if flushed.insert(device) {
                    let file = at("open", path, File::open(path))?;
                    at("sync", path, rustix::fs::syncfs(&file).map_err(io::Error::from))?;
                }
            }
            return Ok(());
        }
        sync_each(self, files, folders)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        at("rename", from, fs::rename(from, to))
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<()> {
        let file = at("open", path, OpenOptions::new().write(true).open(path))?;
        at("cut", path, file.set_len(len))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => at("remove", path, result),
        }
    }

    fn lock(&self, path: &Path) -> Result<Option<Box<dyn FileLock>>> {
        // Not truncated: the older runtime's lock files are only locked, never written by us.
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = at("open", path, opened)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(HeldFile(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => at("lock", path, Err(error)),
        }
    }
}

/// Whether an error means that the disk, or the quota on it, is full.
#[must_use]
pub fn is_full(error: &FileError) -> bool {
    matches!(error.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Replaces a file so that a reader sees the old or the new text; no sync.
pub fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    let temp = temp(path);
    disk.write(&temp, bytes)?;
    disk.rename(&temp, path)
}

/// The same with the bytes synced before they get their name; the name is for the caller to sync.
pub fn replace_synced(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    let temp = temp(path);
    disk.write(&temp, bytes)?;
    disk.sync(&temp)?;
    disk.rename(&temp, path)
}

/// The scratch name beside a file; readers skip names that begin with a dot.
#[must_use]
pub fn temp(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}
