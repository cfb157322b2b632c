//! What this machine offers: space and rights.

use std::io;
use std::path::Path;

use rustix::fs::{Access, statvfs};

use super::files;

/// Bytes that this user may still write to the file system of a path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Whether this user may make and remove files in a folder.
#[must_use]
pub fn may_write(folder: &Path) -> bool {
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
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
