//! How a full disk is known: by an error, by what a program said, and by what is left.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk::is_full;
use super::files::FileError;
use super::machine::{free_bytes, free_files};

/// How long a full disk is left alone before the next try.
pub const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Whether what a program said tells that it met a full disk.
#[must_use]
pub fn says_full(words: &str) -> bool {
    const SAYINGS: [&str; 4] =
        ["No space left on ", "no space left on ", "Disk quota exceeded", "ENOSPC"];
    SAYINGS.iter().any(|saying| words.contains(saying))
}

/// The path that there was no room for, where that is what went wrong; where the error does not name it, what
/// `otherwise` says.
#[must_use]
pub fn full_path(
    trouble: &(dyn Error + 'static),
    otherwise: impl FnOnce() -> PathBuf,
) -> Option<PathBuf> {
    let mut error = trouble;
    loop {
        if let Some(file) = error.downcast_ref::<FileError>() {
            return is_full(file).then(|| file.path.clone());
        }
        // Of an error that passes on what is below it, only that is seen.
        if let Some(io) = error.downcast_ref::<io::Error>() {
            let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
            return full.contains(&io.kind()).then(otherwise);
        }
        match error.source() {
            Some(source) => error = source,
            None => break,
        }
    }
    says_full(&trouble.to_string()).then(otherwise)
}

/// The error of a path that there is no room for.
#[must_use]
pub fn no_room(path: &Path) -> FileError {
    let source = io::ErrorKind::StorageFull.into();
    FileError { action: "write", path: path.to_owned(), source }
}

/// Whether so little is left on the file system of a path that who was told of a full disk there was told the truth.
#[must_use]
pub fn is_nearly_full(path: &Path) -> bool {
    const LITTLE: u64 = 64 * 1024 * 1024;
    const FEW: u64 = 64;
    free_bytes(path).is_ok_and(|free| free < LITTLE)
        || free_files(path).is_ok_and(|free| free < FEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Trouble {
        #[error(transparent)]
        File(#[from] FileError),
        #[error("{0}")]
        Words(&'static str),
    }

    #[test]
    fn a_full_disk_is_found_below_whatever_was_done_and_named_by_its_path() {
        let failed = |kind: io::ErrorKind| {
            let path = PathBuf::from("/srv/x");
            FileError { action: "write", path, source: kind.into() }
        };
        let found = |error: &(dyn Error + 'static)| full_path(error, || PathBuf::from("/work"));
        for full in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert_eq!(found(&failed(full)), Some(PathBuf::from("/srv/x")));
            assert_eq!(found(&Trouble::File(failed(full))), Some(PathBuf::from("/work")));
        }
        let refused = io::ErrorKind::PermissionDenied;
        assert_eq!(found(&Trouble::File(failed(refused))), None);
        let said = Trouble::Words("could not write: No space left on device");
        assert_eq!(found(&said), Some(PathBuf::from("/work")));
    }
}
