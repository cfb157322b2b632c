//! The log: to the terminal and to a file of the workspace, with secrets taken out on the way.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::platform::files::{self, FileError};
use crate::platform::redact::redact;

/// A log file that would grow beyond this is put aside, in bytes.
const ROTATE_AT: u64 = 16 << 20;
/// Log files that were put aside and are kept, `teams.1.log` being the newest.
const KEPT: u32 = 3;

/// Starts logging. `quiet` keeps the terminal free. The level comes from `TEAMS_RUNTIME_LOG_LEVEL`.
pub fn init(root: &Path, quiet: bool) -> Result<(), FileError> {
    let folder = root.join("logs");
    files::create_dir_all(&folder)?;
    let log = LogFile::open(folder, ROTATE_AT)?;
    let sink = Sink { file: Arc::new(Mutex::new(log)), quiet };
    let level = std::env::var("TEAMS_RUNTIME_LOG_LEVEL").unwrap_or_else(|_| "info".to_owned());
    let filter = EnvFilter::try_new(format!("warn,teams={level}"))
        .unwrap_or_else(|_| EnvFilter::new("warn,teams=info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_target(false)
        .log_internal_errors(false)
        .with_writer(sink)
        .finish();
    // A second start in one process keeps the first subscriber; only tests do that.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

/// The log file of a folder, and how long it is.
struct LogFile {
    folder: PathBuf,
    file: File,
    length: u64,
    limit: u64,
}

impl LogFile {
    fn open(folder: PathBuf, limit: u64) -> Result<LogFile, FileError> {
        let path = folder.join("teams.log");
        let file = files::open_append(&path)?;
        let length = files::metadata(&path)?.len();
        Ok(LogFile { folder, file, length, limit })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if !self.is_in_place()
            && let Ok(again) = LogFile::open(self.folder.clone(), self.limit)
        {
            *self = again;
        }
        let more = text.len() as u64;
        if self.length > 0 && self.length + more > self.limit && self.put_aside().is_err() {
            // A log that cannot be put aside grows on: its lines count for more than its length. The
            // next try comes after as much again.
            self.length = 0;
        }
        self.length += more;
        self.file.write_all(text.as_bytes())
    }

    /// Whether the file is still what its name stands for: people remove logs, or move them away.
    fn is_in_place(&self) -> bool {
        let ids = |it: std::fs::Metadata| (it.dev(), it.ino());
        let named = files::metadata(&self.folder.join("teams.log")).ok().map(ids);
        named.is_some() && named == self.file.metadata().ok().map(ids)
    }

    fn put_aside(&mut self) -> Result<(), FileError> {
        let old = |number: u32| self.folder.join(format!("teams.{number}.log"));
        for number in (1..KEPT).rev() {
            if files::exists(&old(number)) {
                files::rename(&old(number), &old(number + 1))?;
            }
        }
        files::rename(&self.folder.join("teams.log"), &old(1))?;
        *self = LogFile::open(self.folder.clone(), self.limit)?;
        Ok(())
    }
}

#[derive(Clone)]
struct Sink {
    file: Arc<Mutex<LogFile>>,
    quiet: bool,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = redact(&text);
        // A disk may be full and a terminal closed: nothing ends because a line of the log is lost.
        let _ = self.file.lock().unwrap_or_else(PoisonError::into_inner).write(&text);
        if !self.quiet {
            let _ = io::stderr().write_all(text.as_bytes());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Sink;
    fn make_writer(&'a self) -> Sink {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_put_aside_while_it_is_written_and_few_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(folder.path().to_owned(), 20).unwrap();
        for number in 0..20 {
            log.write(&format!("line {number:03}\n")).unwrap();
        }
        let names: Vec<_> = files::list(folder.path()).unwrap();
        let texts: Vec<_> = names.iter().map(|path| files::read_text(path).unwrap()).collect();
        assert_eq!(
            texts,
            [
                "line 016\nline 017\n",
                "line 014\nline 015\n",
                "line 012\nline 013\n",
                "line 018\nline 019\n",
            ]
        );
        let mut log = LogFile::open(folder.path().to_owned(), 20).unwrap();
        log.write("after a restart\n").unwrap();
        assert!(files::read_text(&names[0]).unwrap().starts_with("line 018"), "its length counts");
    }

    #[test]
    fn a_log_that_somebody_removed_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(folder.path().to_owned(), 2_000).unwrap();
        log.write("before\n").unwrap();
        let path = folder.path().join("teams.log");
        files::rename(&path, &folder.path().join("mine.log")).unwrap();
        log.write("after\n").unwrap();
        assert_eq!(files::read_text(&path).unwrap(), "after\n");
    }

    #[test]
    fn a_line_that_cannot_be_written_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        files::symlink(Path::new("/dev/full"), &folder.path().join("teams.log")).unwrap();
        let mut log = LogFile::open(folder.path().to_owned(), 20).unwrap();
        assert!(log.write("it is full").is_err());
        let mut sink = Sink { file: Arc::new(Mutex::new(log)), quiet: true };
        assert_eq!(sink.write(b"it is full").unwrap(), 10);
    }
}
