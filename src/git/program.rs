//! The git program, for what only it can do: filters and signatures. It runs no hook and asks nobody anything.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::{GitError, Result};
use crate::platform::{ask, spawn};

/// Filters of large files take their time.
const LIMIT: Duration = Duration::from_secs(600);

/// Words of this process's environment that git, its filters and signers need.
const PASSED: [&str; 7] =
    ["PATH", "HOME", "XDG_CONFIG_HOME", "GNUPGHOME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "LANG"];

/// Settings that keep git from running what the project names.
const QUIET: [&str; 4] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.fsync=all",
    // What is missing is not fetched meanwhile.
    "lfs.url=file:///nowhere",
];

/// Runs git on the repository whose shared folder is `common`, in `folder`, and returns what it prints.
///
/// # Errors
/// [`GitError::Program`] with its own words.
pub(super) fn git(
    common: &Path,
    folder: &Path,
    settings: &[String],
    arguments: &[&str],
    more: &[(&str, OsString)],
    input: Vec<u8>,
) -> Result<String> {
    let failed = |reason: String| GitError::Program {
        what: arguments.first().copied().unwrap_or_default().to_owned(),
        reason,
    };
    let path = std::env::var_os("PATH");
    let Some(program) = spawn::find_program("git", path.as_deref()) else {
        return Err(failed("there is no program git on the team's PATH".to_owned()));
    };
    let mut env: BTreeMap<String, OsString> = PASSED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?)))
        .collect();
    let fixed = [
        ("GIT_DIR", common.as_os_str().to_owned()),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("GIT_NO_LAZY_FETCH", "1".into()),
        ("GIT_NO_REPLACE_OBJECTS", "1".into()),
    ];
    let all = fixed.iter().chain(more).map(|(name, value)| ((*name).to_owned(), value.clone()));
    env.extend(all);
    let settings = QUIET.iter().map(|it| (*it).to_owned()).chain(settings.iter().cloned());
    let mut words: Vec<String> = settings.flat_map(|it| ["-c".to_owned(), it]).collect();
    words.extend(arguments.iter().map(|it| (*it).to_owned()));
    let said = ask::tell(&program, &words, &env, (folder, input), LIMIT);
    let said = said.map_err(|error| failed(error.to_string()))?;
    if said.code == Some(0) {
        return Ok(said.stdout);
    }
    let words = said.stderr.trim();
    let from = words.len().saturating_sub(400);
    let end = (from..=words.len()).find_map(|at| words.get(at..)).unwrap_or_default();
    Err(failed(end.replace('\n', "; ")))
}
