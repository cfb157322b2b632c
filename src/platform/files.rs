//! Files: thin wrappers that put the path into every error, and the durable write.

#![expect(clippy::disallowed_methods, reason = "this module owns files")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::removal;

/// A file operation that failed, with the path it was about.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    /// What was tried, as a verb: `read`, `write`, `rename`.
    pub action: &'static str,
    /// The path it was tried on.
    pub path: PathBuf,
    /// The reason the system gave.
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// Whether the file or folder was not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// The result of a file operation.
pub type Result<T> = std::result::Result<T, FileError>;

pub(crate) fn at<T>(action: &'static str, path: &Path, result: io::Result<T>) -> Result<T> {
    result.map_err(|source| FileError { action, path: path.to_owned(), source })
}

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    at("read", path, fs::read(path))
}

/// Reads a whole file; `None` where it does not exist.
pub fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>> {
    match read(path) {
        Err(error) if error.is_missing() => Ok(None),
        bytes => bytes.map(Some),
    }
}

/// Reads a whole file as UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    at("read", path, fs::read_to_string(path))
}

/// Reads a whole file as UTF-8; `None` where it does not exist.
pub fn read_text_if_present(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError { action: "read", path: path.to_owned(), source }),
    }
}

/// Reads a file that people write, of at most `most` bytes and one more, as UTF-8; `None` where nothing has its name. A
/// link that leads nowhere is no absent file, and what is no file is not read.
pub fn read_settings(path: &Path, most: usize) -> Result<Option<String>> {
    if !is_there(path)? {
        return Ok(None);
    }
    let wrong = |why: &str| FileError {
        action: "read",
        path: path.to_owned(),
        source: io::Error::other(why.to_owned()),
    };
    match metadata(path) {
        Err(error) if error.is_missing() => return Err(wrong("it is a link that leads nowhere")),
        Ok(found) if !found.is_file() => return Err(wrong("it is not a file")),
        found => found?,
    };
    read_text_at_most(path, most).map(Some)
}

/// Reads at most `most` bytes and one more, as UTF-8, of whatever can be read.
pub fn read_text_at_most(path: &Path, most: usize) -> Result<String> {
    let mut bytes = Vec::new();
    let read = at("open", path, File::open(path))?.take(most as u64 + 1).read_to_end(&mut bytes);
    at("read", path, read)?;
    if bytes.len() > most {
        // It was cut, perhaps within a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let text = String::from_utf8(bytes);
    at("read", path, text.map_err(|_| io::Error::other("it is not UTF-8")))
}

/// Reads the last bytes of a file as UTF-8, whole characters only, however long the file is; `None`
/// where it does not exist. What is no UTF-8 is replaced.
pub fn read_end(path: &Path, bytes: usize) -> Result<Option<String>> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(FileError { action: "read", path: path.to_owned(), source }),
    };
    let length = at("read", path, file.metadata())?.len();
    let from = length.saturating_sub(bytes as u64);
    at("read", path, file.seek(SeekFrom::Start(from)))?;
    let mut end = Vec::new();
    at("read", path, file.take(bytes as u64).read_to_end(&mut end))?;
    // A character of which the beginning is missing.
    let torn = end.iter().take(3).take_while(|byte| from > 0 && **byte & 0xc0 == 0x80).count();
    Ok(Some(String::from_utf8_lossy(end.get(torn..).unwrap_or_default()).into_owned()))
}

/// Whether something exists at the path.
#[must_use]
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// Whether something has this name, a link that leads nowhere among it.
///
/// # Errors
/// Where that cannot be seen.
pub fn is_there(path: &Path) -> Result<bool> {
    match at("look at", path, path.symlink_metadata()) {
        Err(error) if error.is_missing() => Ok(false),
        found => found.map(|_| true),
    }
}

/// Whether a regular file stands at the path, links followed.
#[must_use]
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// What stands at the path, links followed.
pub fn metadata(path: &Path) -> Result<fs::Metadata> {
    at("look at", path, fs::metadata(path))
}

/// What stands at the path, links not followed.
pub fn symlink_metadata(path: &Path) -> Result<fs::Metadata> {
    at("look at", path, fs::symlink_metadata(path))
}

/// The disk on which the path itself lies, links not followed, as a number.
pub fn disk_of(path: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(symlink_metadata(path)?.dev())
}

/// The absolute path with links resolved.
pub fn canonicalize(path: &Path) -> Result<PathBuf> {
    at("resolve", path, fs::canonicalize(path))
}

/// Creates a folder and its parents.
pub fn create_dir_all(path: &Path) -> Result<()> {
    at("create", path, fs::create_dir_all(path))
}

/// Makes a folder that only its owner can look into, or checks that it is one. In a shared temporary
/// folder somebody else may have been faster.
///
/// # Errors
/// Where it is not a folder of this user alone.
pub fn create_private_dir(path: &Path) -> Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return at("create", path, Err(error)),
    }
    let found = symlink_metadata(path)?;
    let ours = found.uid() == rustix::process::getuid().as_raw();
    if found.is_dir() && ours && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let strange = io::Error::other("it is not a folder of this user alone; remove it");
    at("use", path, Err(strange))
}

/// The entries of a folder in name order; an absent folder is empty.
pub fn list(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(FileError { action: "list", path: path.to_owned(), source });
        }
    };
    let mut found = Vec::new();
    for entry in entries {
        found.push(at("list", path, entry)?.path());
    }
    // All lie in the same folder, so their bytes say what their parts would.
    found.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    Ok(found)
}

/// The folders in a folder, in name order, links not followed; an absent folder has none.
pub fn folders(path: &Path) -> Result<Vec<PathBuf>> {
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    Ok(list(path)?.into_iter().filter(is_folder).collect())
}

/// Writes a file without any promise about a crash. For scratch and derived files.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    at("write", path, fs::write(path, bytes))
}

/// Writes a file that only its owner can read (mode 0600), replacing it whole; no sync.
pub fn write_private(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let (temp, mut file) = fresh_beside(path, 0o600)?;
    at("write", &temp, file.write_all(bytes.as_ref()))?;
    rename(&temp, path)
}

/// The same, replacing it whole and durably: a reader never sees a part, and it is there after a crash.
pub fn write_private_durable(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    replace_durably(path, bytes.as_ref(), 0o600)
}

/// Replaces a file so that a reader sees the old or the new text, never a part; no sync.
pub fn write_atomic(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    rename(&written_beside(path, bytes.as_ref())?, path)
}

/// The same, with the time at which the file is to have been modified.
pub fn write_atomic_dated(
    path: &Path,
    bytes: impl AsRef<[u8]>,
    when: std::time::SystemTime,
) -> Result<()> {
    let temp = written_beside(path, bytes.as_ref())?;
    set_modified(&temp, when)?;
    rename(&temp, path)
}

fn written_beside(path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    let (temp, mut file) = fresh_beside(path, 0o666)?;
    at("write", &temp, file.write_all(bytes))?;
    Ok(temp)
}

/// Removes the oldest files of a folder, so that the one that was just written and the newest others stay; also where the
/// clock was set back.
pub fn keep_newest(folder: &Path, written: &Path, most: usize) -> Result<()> {
    let mut others = Vec::new();
    for path in list(folder)?.into_iter().filter(|path| path != written) {
        others.push((metadata(&path).ok().and_then(|it| it.modified().ok()), path));
    }
    others.sort();
    for (_, path) in others.iter().rev().skip(most.saturating_sub(1)) {
        remove_any(path)?;
    }
    Ok(())
}

/// Replaces a file and makes both its bytes and its name durable: write aside, sync, rename, sync
/// the folder (`spec/rust.md` C8 shows why each of the four is needed).
pub fn write_durable(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    replace_durably(path, bytes.as_ref(), 0o666)
}

/// The same for a file that people keep: what a link leads to is replaced and not the link, and the mode stays.
pub fn rewrite_durable(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = match canonicalize(path) {
        Err(error) if error.is_missing() => return write_durable(path, bytes),
        resolved => resolved?,
    };
    let mode = metadata(&path)?.permissions().mode();
    // It is never open to more than before, also where this is cut off.
    replace_durably(&path, bytes.as_ref(), mode & 0o777)?;
    set_mode(&path, mode & 0o7777)
}

fn replace_durably(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let (temp, mut file) = fresh_beside(path, mode)?;
    let written = at("write", &temp, file.write_all(bytes));
    let kept = written.and_then(|()| at("sync", &temp, file.sync_data()));
    drop(file);
    if let Err(error) = kept.and_then(|()| rename(&temp, path)) {
        // A part of it would take the room that others need.
        let _ = remove_file(&temp);
        return Err(error);
    }
    sync_dir(parent(path))
}

/// A new file to be renamed over another one. Never what lies there already: that could be readable by
/// others, and in a folder that an agent may write it could be a link to anything of ours.
fn fresh_beside(path: &Path, mode: u32) -> Result<(PathBuf, File)> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let temp = temp_beside(path);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let opened = match options.open(&temp) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove_file(&temp)?;
            options.open(&temp)
        }
        opened => opened,
    };
    let file = at("write", &temp, opened)?;
    Ok((temp, file))
}

/// Appends to a file, creating it; no sync.
pub fn append(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let mut file = at("append to", path, OpenOptions::new().append(true).create(true).open(path))?;
    at("append to", path, file.write_all(bytes.as_ref()))
}

/// Opens a file for appending, creating it.
pub fn open_append(path: &Path) -> Result<File> {
    at("open", path, OpenOptions::new().append(true).create(true).open(path))
}

/// Opens a file for reading.
pub fn open(path: &Path) -> Result<File> {
    at("open", path, File::open(path))
}

/// Creates a file that must not exist yet.
pub fn create_new(path: &Path) -> Result<File> {
    at("create", path, OpenOptions::new().write(true).create_new(true).open(path))
}

/// Renames a file or folder, replacing a file at the target.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    at("rename", from, fs::rename(from, to))
}

/// Copies a file.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    at("copy", from, fs::copy(from, to)).map(|_| ())
}

/// Copies a file, or a link as a link.
pub fn copy_any(from: &Path, to: &Path) -> Result<()> {
    if symlink_metadata(from)?.is_symlink() {
        let target = at("read", from, fs::read_link(from))?;
        at("create", to, std::os::unix::fs::symlink(target, to))
    } else {
        copy(from, to)
    }
}

/// Where a link points to.
pub fn read_link(path: &Path) -> Result<PathBuf> {
    at("read", path, fs::read_link(path))
}

/// Sets when a file was last modified; of a link, when the link was.
pub fn set_modified(path: &Path, when: std::time::SystemTime) -> Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
    let since = when.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let last_modification = Timespec {
        tv_sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: since.subsec_nanos().into(),
    };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps { last_access, last_modification };
    let set = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    at("set the time of", path, set.map_err(io::Error::from))
}

/// Makes a file's bytes durable.
pub fn sync_file(path: &Path) -> Result<()> {
    let file = open(path)?;
    at("sync", path, file.sync_all())
}

/// Removes a file; an absent one is fine.
pub fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => at("remove", path, result),
    }
}

/// Removes a folder and what is in it, also where a program took its own rights away or went very deep. An absent one
/// is fine.
pub fn remove_dir_all(path: &Path) -> Result<()> {
    match removal::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => at("remove", path, result),
    }
}

/// Removes a folder that has nothing in it; says whether the folder is gone now.
pub fn remove_dir_if_empty(path: &Path) -> Result<bool> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(false)
        }
        Err(source) => at("remove", path, Err(source)),
    }
}

/// Removes whatever stands at the path, links not followed; an absent one is fine.
pub fn remove_any(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => remove_dir_all(path),
        Ok(_) => remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => at("look at", path, Err(source)),
    }
}

/// Makes a symbolic link, which must not exist yet.
pub fn symlink(target: &Path, link: &Path) -> Result<()> {
    at("create", link, std::os::unix::fs::symlink(target, link))
}

/// Gives a file a second name, which must not exist yet.
pub fn hard_link(existing: &Path, new: &Path) -> Result<()> {
    at("create", new, fs::hard_link(existing, new))
}

/// Makes everything durable that was written so far to the file system that holds `path`: one call for
/// many files whose number is not known beforehand.
pub fn sync_filesystem(path: &Path) -> Result<()> {
    let folder = at("open", path, File::open(path))?;
    at("sync", path, rustix::fs::syncfs(&folder).map_err(io::Error::from))
}

/// Makes the names in a folder durable.
pub fn sync_dir(path: &Path) -> Result<()> {
    let folder = at("open", path, File::open(path))?;
    at("sync", path, folder.sync_all())
}

/// Sets the permission bits of a file.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    at("change the mode of", path, fs::set_permissions(path, fs::Permissions::from_mode(mode)))
}

fn temp_beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    path.with_file_name(name)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether another process holds the lock of a file; an absent file is not locked.
#[must_use]
pub fn is_locked(path: &Path) -> bool {
    File::open(path)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::*;

    /// With files beside, links to what stays, and the rights to some of it taken away.
    #[test]
    fn a_folder_goes_however_deep_it_is() {
        let temp = tempfile::tempdir().unwrap();
        let (stays, top) = (temp.path().join("stays"), temp.path().join("top"));
        write(&stays, "x").unwrap();
        create_dir_all(&top).unwrap();
        let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut here = openat(CWD, &top, open, Mode::empty()).unwrap();
        for level in 0..5_000 {
            mkdirat(&here, "a", Mode::RWXU).unwrap();
            rustix::fs::symlinkat(&stays, &here, "link").unwrap();
            mkdirat(&here, ".removed-1", Mode::empty()).unwrap();
            let next = openat(&here, "a", open, Mode::empty()).unwrap();
            if level % 10 == 0 {
                rustix::fs::fchmod(&here, Mode::empty()).unwrap();
            }
            here = next;
        }
        remove_dir_all(&top).unwrap();
        assert!(!exists(&top));
        remove_dir_all(&top).unwrap();
        symlink(temp.path(), &top).unwrap();
        remove_dir_all(&top).unwrap();
        assert_eq!(read(&stays).unwrap(), b"x");
    }

    #[test]
    fn a_file_that_is_a_link_stays_one_and_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (file, target) = (root.path().join("link.yaml"), elsewhere.path().join("kept.yaml"));
        write(&target, "a: 1\n").unwrap();
        set_mode(&target, 0o640).unwrap();
        symlink(&target, &file).unwrap();
        rewrite_durable(&file, "a: 2\n").unwrap();
        assert_eq!(read_text(&target).unwrap(), "a: 2\n");
        assert!(symlink_metadata(&file).unwrap().is_symlink());
        assert_eq!(metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_is_replaced_is_never_written_through_a_link_that_lay_in_wait() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("usage.json"), folder.path().join("of-ours"));
        let writers: [fn(&Path, &str) -> Result<()>; 3] = [
            |path, text| write_durable(path, text),
            |path, text| write_atomic(path, text),
            |path, text| write_private_durable(path, text),
        ];
        for write_it in writers {
            write(&other, "as it was").unwrap();
            std::os::unix::fs::symlink(&other, temp_beside(&path)).unwrap();
            write_it(&path, "new").unwrap();
            assert_eq!(read_text(&other).unwrap(), "as it was");
            assert_eq!(read_text(&path).unwrap(), "new");
            assert!(symlink_metadata(&path).unwrap().is_file());
            assert!(!temp_beside(&path).is_symlink());
        }
    }
}
