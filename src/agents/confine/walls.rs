//! What an agent sees, whatever it is confined by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::places::{self, SYSTEM, SYSTEM_SECRETS};
use crate::agents::run::{Access, RunSpec};
use crate::platform::files;
use crate::platform::landlock::Rules;

/// How a path is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    /// For reading and running.
    Read,
    /// For writing, too.
    Write,
    /// As a folder of nothing.
    EmptyFolder,
    /// As a file of nothing.
    EmptyFile,
}

/// What an agent sees beside the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walls {
    /// The later of two words about the same path counts; deeper paths have the last word.
    at: BTreeMap<PathBuf, Show>,
    pub(super) cwd: PathBuf,
    /// The socket of the team's door.
    pub(super) door: Option<PathBuf>,
    /// Its port, where the agent has no network of its own.
    pub(super) port: Option<u16>,
}

/// The walls of a turn. `keeps` are folders that the agent keeps beside its session's; `programs` are what is
/// run.
pub(crate) fn around(
    spec: &RunSpec,
    access: &Access,
    keeps: &[PathBuf],
    programs: &[PathBuf],
) -> Walls {
    let mut walls = Walls {
        at: BTreeMap::new(),
        cwd: spec.worktree.clone(),
        door: spec.surroundings.door.as_ref().map(|door| door.socket.clone()),
        port: spec.surroundings.door.as_ref().and_then(|door| door.port),
    };
    // Only where one of them lies within something that is shown.
    for path in &spec.surroundings.hidden {
        walls.hide(path);
    }
    if let Some(home) = places::home() {
        walls.hide(&home);
    }
    for path in SYSTEM_SECRETS.map(PathBuf::from) {
        walls.hide(&path);
    }
    let tools = match &spec.surroundings.tools {
        Some(listed) => listed.iter().map(|path| places::expand(path)).collect(),
        None => places::tools(),
    };
    walls.show(Show::Read, tools);
    for secret in places::tool_secrets() {
        walls.hide(&secret);
    }
    // A folder that holds what is hidden is no installation: then the program's file is all that is shown.
    let hidden = &spec.surroundings.hidden;
    let apart = |path: &PathBuf| !hidden.iter().any(|one| one.starts_with(path));
    let installed = programs.iter().flat_map(|program| places::installation(program));
    walls.show(Show::Read, installed.filter(apart));
    walls.show(Show::Read, spec.surroundings.readable.iter().cloned());
    walls.show(Show::Read, repository(&spec.worktree));
    let worktree = [spec.worktree.clone()];
    match access {
        Access::ReadOnly => walls.show(Show::Read, worktree),
        Access::Worktree => walls.show(Show::Write, worktree),
        Access::Documents(folder) => {
            walls.show(Show::Read, worktree);
            walls.show(Show::Write, [folder.clone()]);
        }
    }
    // A worktree's link to its repository is not the agent's to change, nor is a repository.
    walls.show(Show::Read, [spec.worktree.join(".git")]);
    walls.show(Show::Read, [spec.run_dir.join(crate::agents::driver::SCHEMA)]);
    walls.show(Show::Write, super::session_folders(spec));
    walls.show(Show::Write, keeps.iter().cloned());
    // Their folder, because a team that is started again makes new ones there.
    let sockets = [spec.socket.clone(), walls.door.clone()].into_iter().flatten();
    walls.show(Show::Read, sockets.filter_map(|it| it.parent().map(Path::to_path_buf)));
    walls
}

/// Where a worktree's objects and references lie.
fn repository(worktree: &Path) -> Option<PathBuf> {
    let link = files::read_text(&worktree.join(".git")).ok()?;
    let own = worktree.join(link.strip_prefix("gitdir:")?.trim());
    let common = files::read_text(&own.join("commondir")).ok()?;
    files::canonicalize(&own.join(common.trim())).ok()
}

impl Walls {
    /// With one more file for reading.
    pub(crate) fn with_file(mut self, path: Option<PathBuf>) -> Walls {
        self.show(Show::Read, path);
        self
    }

    /// With nothing to be seen at some places.
    pub(crate) fn without(mut self, paths: impl Iterator<Item = PathBuf>) -> Walls {
        paths.for_each(|path| self.hide(&path));
        self
    }

    fn show(&mut self, show: Show, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths {
            if path.is_absolute() && path.parent().is_some() && files::exists(&path) {
                self.at.insert(path, show);
            }
        }
    }

    fn hide(&mut self, path: &Path) {
        if let Ok(meta) = files::metadata(path) {
            let show = if meta.is_dir() { Show::EmptyFolder } else { Show::EmptyFile };
            let real = files::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            self.at.extend([(path.to_owned(), show), (real, show)]);
        }
    }

    /// Everything in order, outer folders first. What hides something that would not be there anyway is left
    /// out.
    pub(super) fn seen(&self, own: &Path) -> Vec<(PathBuf, Show)> {
        let mut all = self.at.clone();
        all.entry(own.to_owned()).or_insert(Show::Read);
        let shown = |path: &Path| {
            let by_system = SYSTEM.iter().any(|folder| path.starts_with(folder));
            let mut above = path.ancestors().skip(1).filter_map(|at| all.get(at));
            above.next().map_or(by_system, |show| matches!(show, Show::Read | Show::Write))
        };
        let needed = all.iter().filter(|(path, show)| match show {
            Show::Read | Show::Write => true,
            Show::EmptyFolder | Show::EmptyFile => shown(path),
        });
        needed.map(|(path, show)| (path.clone(), *show)).collect()
    }

    /// The same for a kernel that can only give, not take away: a folder with something hidden below it is
    /// given piece by piece.
    pub(super) fn rules(&self, own: &Path) -> Rules {
        let seen: BTreeMap<PathBuf, Show> = self.seen(own).into_iter().collect();
        let hidden: Vec<&PathBuf> = seen
            .iter()
            .filter(|(_, show)| matches!(show, Show::EmptyFolder | Show::EmptyFile))
            .map(|(path, _)| path)
            .collect();
        let mut rules = Rules::default();
        let devices =
            ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
        rules.write.extend(devices.map(PathBuf::from));
        let system = SYSTEM.iter().map(PathBuf::from).chain([PathBuf::from("/proc")]);
        for path in system.filter(|path| !places::is_link(path)) {
            pieces(&path, &hidden, &mut rules.read);
        }
        for (path, show) in &seen {
            match show {
                Show::Read => pieces(path, &hidden, &mut rules.read),
                Show::Write => rules.write.push(path.clone()),
                Show::EmptyFolder | Show::EmptyFile => {}
            }
        }
        rules
    }
}

fn pieces(path: &Path, hidden: &[&PathBuf], into: &mut Vec<PathBuf>) {
    if hidden.iter().any(|one| path == one.as_path()) {
        return;
    }
    if !hidden.iter().any(|one| one.starts_with(path)) {
        into.push(path.to_owned());
        return;
    }
    for inner in files::list(path).unwrap_or_default() {
        pieces(&inner, hidden, into);
    }
}
