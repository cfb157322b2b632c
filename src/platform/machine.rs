//! What this machine offers: space and rights; and who holds a lock.

use std::io;
use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, statvfs};

use super::files;

/// Bytes that this user may still write to the file system of a path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = statvfs(path)?;
    if stat.f_blocks == 0 {
        // Some file systems do not know.
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// How many files more a file system takes.
///
/// # Errors
/// Where it does not say, or knows no such limit.
pub fn free_files(path: &Path) -> io::Result<u64> {
    let stat = statvfs(path)?;
    if stat.f_files == 0 { Err(io::ErrorKind::Unsupported.into()) } else { Ok(stat.f_favail) }
}

/// What may be used at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Processor cores that this process may use.
    pub cores: usize,
    /// Memory, in GiB; that of the control group where it is less.
    pub memory_gib: usize,
}

/// This machine, as far as it says; one core and one GiB at least.
#[must_use]
pub fn this() -> Machine {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let number = |text: &str| text.split_whitespace().find_map(|word| word.parse::<u64>().ok());
    let info = files::read_text(Path::new("/proc/meminfo")).unwrap_or_default();
    let total = info.lines().find(|line| line.starts_with("MemTotal:")).and_then(number);
    let group = files::read_text(Path::new("/sys/fs/cgroup/memory.max")).unwrap_or_default();
    let bytes = [total.map(|kib| kib.saturating_mul(1_024)), number(&group)];
    let gib = bytes.into_iter().flatten().min().unwrap_or_default() >> 30;
    Machine { cores, memory_gib: usize::try_from(gib).unwrap_or(1).max(1) }
}

/// Whether this user may make and remove files in a folder.
#[must_use]
pub fn may_write(folder: &Path) -> bool {
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Whether the file system of a path takes no writes at all.
#[must_use]
pub fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// The processes that hold the lock of a file, as far as they can be seen: `teams run … (process 4711)`. The
/// kernel's own list names also those whose open files nobody may look at.
#[must_use]
pub fn lock_holders(path: &Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(inode) = files::metadata(path).map(|found| found.ino().to_string()) else {
        return Vec::new();
    };
    let locks = files::read_text(Path::new("/proc/locks")).unwrap_or_default();
    let mut found: Vec<String> = locks.lines().filter_map(|line| holder(line, &inode)).collect();
    found.dedup();
    found
}

/// Who holds the lock of a line such as `1: FLOCK ADVISORY WRITE 4711 08:01:393 0 EOF`, where it is about this
/// file. Those that wait for it are told of behind an arrow.
fn holder(line: &str, inode: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip(1);
    let (kind, number, file) = (words.next()?, words.nth(2)?, words.next()?);
    (kind == "FLOCK" && file.rsplit(':').next() == Some(inode))
        .then(|| format!("{} (process {number})", command_line(&Path::new("/proc").join(number))))
}

/// The beginning of a process's command line.
fn command_line(process: &Path) -> String {
    const LONGEST: usize = 60;
    let bytes = files::read(&process.join("cmdline")).unwrap_or_default();
    let words: Vec<_> = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line: String = words.join(" ").trim().chars().take(LONGEST).collect();
    if line.is_empty() { "a process that is ending".to_owned() } else { line }
}

/// The number of the user that this process runs as.
#[must_use]
pub fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Whether others than the owner may read a file.
pub fn others_may_read(path: &Path) -> files::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(files::metadata(path)?.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_a_lock_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert_eq!(lock_holders(&path), Vec::<String>::new());
        let open = files::create_new(&path).unwrap();
        assert_eq!(lock_holders(&path), Vec::<String>::new());
        open.lock().unwrap();
        let named = lock_holders(&path);
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(named[0].ends_with(&format!("(process {})", std::process::id())), "{named:?}");
        drop(open);
        assert!(!is_read_only(folder.path()));
    }

    #[test]
    fn a_folder_is_looked_at_without_touching_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(folder.path()).unwrap() > 0);
        assert!(may_write(folder.path()));
        assert!(!may_write(&folder.path().join("gone")));
        let file = folder.path().join("x");
        files::write_private(&file, "x").unwrap();
        assert!(!others_may_read(&file).unwrap());
        files::set_mode(&file, 0o640).unwrap();
        assert!(others_may_read(&file).unwrap());
    }
}
