//! Whether somebody is logged in, and how an agent's program is asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a program may take to say its version.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// Whether the CLI says that somebody is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// It does.
    Yes,
    /// It does not, in the folder that the configuration names.
    No(PathBuf),
    /// No folder is named in which somebody could have logged in.
    Nowhere,
    /// Another model server is used.
    NotNeeded,
    /// It does not answer the question.
    Unknown,
}

/// The environment of a program that is asked; nothing in it leads to what agents may write.
pub(super) fn environment(scratch: &Path) -> BTreeMap<String, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    [
        ("PATH", std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())),
        ("LANG", "C.UTF-8".to_owned()),
        ("HOME", text(scratch)),
        ("TMPDIR", text(scratch)),
        ("CODEX_HOME", text(scratch)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
