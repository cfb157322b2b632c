//! Which folder is meant (`spec/teams.md` 1.3).

use std::path::{Component, Path, PathBuf};

use super::{DISCORD_FILE, RUNTIME_FILE};
use crate::platform::files;

/// The name of a workspace that lies inside its project.
const INSIDE_PROJECT: &str = "teams_generated";

/// Whether the folder holds both configuration files.
#[must_use]
pub fn is_workspace(folder: &Path) -> bool {
    files::exists(&folder.join(RUNTIME_FILE)) && files::exists(&folder.join(DISCORD_FILE))
}

/// Whether the folder holds the settings of a team, also where it is no whole workspace.
#[must_use]
pub fn has_settings(folder: &Path) -> bool {
    files::exists(&folder.join(RUNTIME_FILE))
}

/// The workspace that a command means: the explicit one without any look at it, else the first of
/// `.`, `./teams_generated` and `./workspace/teams_generated` that is one, else `./teams_generated`,
/// which `init` may then create. Always absolute.
#[must_use]
pub fn resolve(explicit: Option<&Path>, cwd: &Path) -> PathBuf {
    if let Some(path) = explicit {
        return plain(&cwd.join(expand_home(path)));
    }
    let candidates =
        [cwd.to_owned(), cwd.join(INSIDE_PROJECT), cwd.join("workspace").join(INSIDE_PROJECT)];
    candidates
        .iter()
        .find(|folder| is_workspace(folder))
        // A part of one is not to get another one within.
        .or_else(|| candidates.iter().find(|folder| has_settings(folder)))
        .cloned()
        .unwrap_or_else(|| cwd.join(INSIDE_PROJECT))
}

/// The project of a workspace that names none: the parent of a folder called `teams_generated`, else
/// the workspace itself.
#[must_use]
pub fn project_default(root: &Path) -> PathBuf {
    let inside = root.file_name().is_some_and(|name| name == INSIDE_PROJECT);
    match root.parent() {
        Some(parent) if inside => parent.to_owned(),
        Some(_) | None => root.to_owned(),
    }
}

fn expand_home(path: &Path) -> PathBuf {
    let Ok(rest) = path.strip_prefix("~") else {
        return path.to_owned();
    };
    match std::env::var_os("HOME") {
        Some(home) if !home.is_empty() => Path::new(&home).join(rest),
        Some(_) | None => path.to_owned(),
    }
}

/// Without `.` and `..`, by words alone, so that the folder need not exist. Links on the way stay as
/// they were written.
pub(super) fn plain(path: &Path) -> PathBuf {
    if let Ok(real) = files::canonicalize(path) {
        return real;
    }
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => out.push(part),
        }
    }
    out
}
