//! A sandbox around agents that bring none: bubblewrap, with the whole system to read and, by the role's
//! access, a folder to write (`spec/agents.md` 5.5).

use std::path::{Path, PathBuf};

use crate::agents::run::{Access, RunSpec};
use crate::platform::supervise::{self, Spec};
use crate::platform::{ids, spawn};

/// What every sandbox has. Other processes, and with them their environments, are not to be seen.
const ALWAYS: [&str; 9] = [
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--unshare-pid",
    "--die-with-parent",
];

/// Finds bubblewrap, and tries whether this machine lets it work.
pub(super) async fn find(spec: &RunSpec) -> Option<PathBuf> {
    let program = spawn::find_program("bwrap", std::env::var_os("PATH").as_deref())?;
    let folder = spec.run_dir.join(format!("probe-{}", ids::random_hex(8)));
    let mut probe = Spec::new(&program, "/");
    probe.args = ALWAYS.iter().map(|word| (*word).to_owned()).collect();
    probe.args.push("true".to_owned());
    probe.env.insert("PATH".to_owned(), std::env::var("PATH").unwrap_or_default());
    probe.wall_ms = Some(60_000);
    match supervise::run(&probe, &folder).await {
        Ok(exit) if exit.success() => Some(program),
        Ok(exit) => {
            tracing::warn!(code = exit.code, "bubblewrap does not work on this machine");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "bubblewrap could not be tried");
            None
        }
    }
}

/// The arguments of bubblewrap for a program. `home` is what the agent keeps beside its session's folder.
pub(super) fn arguments(
    spec: &RunSpec,
    access: &Access,
    home: Option<&Path>,
    program: &Path,
    args: Vec<String>,
) -> Vec<String> {
    let mut all: Vec<String> = ALWAYS.iter().map(|word| (*word).to_owned()).collect();
    let mut add = |option: &str, path: &Path| {
        let path = path.to_string_lossy().into_owned();
        all.extend([option.to_owned(), path.clone(), path]);
    };
    match access {
        Access::ReadOnly => {}
        Access::Worktree => {
            add("--bind", &spec.worktree);
            // A worktree's link to its repository is not the agent's to change.
            let link = spec.worktree.join(".git");
            if crate::platform::files::exists(&link) {
                add("--ro-bind", &link);
            }
        }
        Access::Documents(folder) => add("--bind", folder),
    }
    add("--bind", &spec.session_dir);
    if let Some(home) = home {
        add("--bind", home);
    }
    all.extend(["--chdir".to_owned(), spec.worktree.to_string_lossy().into_owned()]);
    all.extend(["--".to_owned(), program.to_string_lossy().into_owned()]);
    all.extend(args);
    all
}
