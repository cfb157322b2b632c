//! Where programs are: our own binary, and the ones found through `PATH`.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The hidden subcommand that turns our binary into a supervisor.
pub const SUPERVISE: &str = "__supervise";
/// The hidden subcommand that turns our binary into the rehearsal agent.
pub const REHEARSE: &str = "__rehearse";

/// The hidden subcommand that turns our binary into the first program within a sandbox.
pub const INSIDE: &str = "__inside";
/// The hidden subcommand that opens what a sandbox shows, and then becomes the sandbox.
pub const BIND: &str = "__bind";
/// The hidden subcommand that mounts folders as layers, and then becomes what is to see them.
pub const LAYERS: &str = "__layers";

static OWN_BINARY: OnceLock<PathBuf> = OnceLock::new();

/// Says where our own binary is, for a process that is not it: a test harness. The first call wins.
pub fn set_own_binary(path: PathBuf) {
    OWN_BINARY.get_or_init(|| path);
}

/// Our own binary: what [`set_own_binary`] said, else `TEAMS_BIN`, else the running executable.
pub fn own_binary() -> std::io::Result<PathBuf> {
    if let Some(path) = OWN_BINARY.get() {
        return Ok(path.clone());
    }
    match std::env::var_os("TEAMS_BIN") {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        Some(_) | None => std::env::current_exe(),
    }
}

/// Finds a program: a name with a slash as it stands, any other through the given `PATH`.
#[must_use]
pub fn find_program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_executable(path));
    }
    std::env::split_paths(path?)
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Keeps other processes of the same user from reading our environment and memory, where tokens are.
/// Programs that we start are not affected. Root still can.
pub fn hide_ourselves() -> std::io::Result<()> {
    let behaviour = rustix::process::DumpableBehavior::NotDumpable;
    Ok(rustix::process::set_dumpable_behavior(behaviour)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_searched_and_a_path_is_not() {
        let path = OsStr::new("/nowhere:/bin:/usr/bin");
        assert!(find_program("sh", Some(path)).is_some());
        assert!(find_program("sh", None).is_none());
        assert!(find_program("/bin/sh", None).is_some());
        assert!(find_program("/bin/no-such-program", Some(path)).is_none());
    }
}
