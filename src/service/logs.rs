//! The log: to the terminal and to a file of the workspace, with secrets taken out on the way.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::platform::files::{self, FileError};
use crate::platform::redact::redact;

/// A log file larger than this is put aside at the start, in bytes.
const ROTATE_AT: u64 = 16 << 20;

/// Starts logging. `quiet` keeps the terminal free. The level comes from `TEAMS_RUNTIME_LOG_LEVEL`.
pub fn init(root: &Path, quiet: bool) -> Result<(), FileError> {
    let folder = root.join("logs");
    files::create_dir_all(&folder)?;
    let path = folder.join("teams.log");
    if files::exists(&path) && files::metadata(&path)?.len() > ROTATE_AT {
        files::rename(&path, &folder.join("teams.1.log"))?;
    }
    let sink = Sink { file: Arc::new(Mutex::new(files::open_append(&path)?)), quiet };
    let level = std::env::var("TEAMS_RUNTIME_LOG_LEVEL").unwrap_or_else(|_| "info".to_owned());
    let filter = EnvFilter::try_new(format!("warn,teams={level}"))
        .unwrap_or_else(|_| EnvFilter::new("warn,teams=info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_target(false)
        .with_writer(sink)
        .finish();
    // A second start in one process keeps the first subscriber; only tests do that.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

#[derive(Clone)]
struct Sink {
    file: Arc<Mutex<File>>,
    quiet: bool,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = redact(&text);
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes())?;
        if !self.quiet {
            io::stderr().write_all(text.as_bytes())?;
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
