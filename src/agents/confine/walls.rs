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
    let kept = keeps.iter().filter(|path| !path.starts_with(&spec.session_dir));
    let mut written = vec![spec.worktree.as_path()];
    written.extend(kept.clone().map(PathBuf::as_path));
    let folders = super::session_folders(spec);
    written.extend(folders.iter().map(PathBuf::as_path));
    if let Access::Documents(folder) = access {
        written.push(folder);
    }
    walls.show(Show::Read, repository(&spec.worktree, &written));
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
    walls.show(Show::Read, Some(spec.worktree.join(".git")).filter(|link| !places::is_link(link)));
    walls.show(Show::Read, [spec.run_dir.join(crate::agents::driver::SCHEMA)]);
    // What it keeps within a session's folder is open with that folder; by itself it could be a link by now.
    walls.show(Show::Write, kept.cloned());
    walls.show(Show::Write, folders);
    // Their folder, because a team that is started again makes new ones there.
    let sockets = [spec.socket.clone(), walls.door.clone()].into_iter().flatten();
    walls.show(Show::Read, sockets.filter_map(|it| it.parent().map(Path::to_path_buf)));
    walls
}

/// Where a worktree's objects and references lie. An agent that is confined by Landlock may have written the
/// link: it counts where the other end, out of the reach of whatever it writes, leads back here.
fn repository(worktree: &Path, written: &[&Path]) -> Option<PathBuf> {
    let real = |path: &Path| files::canonicalize(path).ok();
    let link = worktree.join(".git");
    if places::is_link(&link) {
        return None;
    }
    let text = files::read_text(&link).ok()?;
    let own = real(&worktree.join(text.strip_prefix("gitdir:")?.trim()))?;
    if written.iter().filter_map(|folder| real(folder)).any(|folder| own.starts_with(folder)) {
        return None;
    }
    let back = files::read_text(&own.join("gitdir")).ok()?;
    if real(Path::new(back.trim()))? != real(&link)? {
        return None;
    }
    let common = files::read_text(&own.join("commondir")).ok()?;
    real(&own.join(common.trim()))
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::agents::codex::CodexSettings;
    use crate::agents::run::{Agent, Limits, Surroundings};
    use crate::agents::{Said, Task};
    use crate::domain::ids::RunId;
    use crate::domain::role::Role;

    /// A developer's run, in a workspace with secrets, in a worktree of a project.
    fn spec(root: &Path) -> RunSpec {
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            files::create_dir_all(path.parent().unwrap()).unwrap();
            files::write(&path, text).unwrap();
        };
        let admin = root.join("project/.git/worktrees/1");
        put("workspace/secrets/tokens.env", "TOKEN=1");
        put("workspace/tree/.git", &format!("gitdir: {}\n", admin.display()));
        put("project/.git/worktrees/1/commondir", "../..\n");
        let link = root.join("workspace/tree/.git");
        put("project/.git/worktrees/1/gitdir", &format!("{}\n", link.display()));
        put("workspace/session/home/.keep", "");
        RunSpec {
            run_id: RunId::parse("run").unwrap(),
            run_dir: root.join("workspace/runs/run"),
            session_dir: root.join("workspace/session"),
            worktree: root.join("workspace/tree"),
            access: Access::Worktree,
            agent: Agent::Codex(CodexSettings::default()),
            task: Task::first(
                Role::Developer,
                None,
                "20260101-00000001",
                Said { author: "Mina".to_owned(), text: "do it".to_owned() },
            ),
            resume: None,
            limits: Limits::default(),
            socket: None,
            surroundings: Surroundings {
                hidden: vec![root.join("workspace"), root.join("project")],
                ..Surroundings::default()
            },
            templates: BTreeMap::new(),
        }
    }

    /// What of the workspace and the project can be read, and what written, by the kernel's rules; links
    /// followed, as it does.
    fn open(spec: &RunSpec, root: &Path) -> [Vec<PathBuf>; 2] {
        let home = spec.session_dir.join("codex");
        let rules = around(spec, &spec.access, &[home], &[]).rules(Path::new("/usr/bin/teams"));
        [rules.read, rules.write].map(|paths| {
            let real = paths.iter().filter_map(|path| files::canonicalize(path).ok());
            let within = real.filter_map(|path| path.strip_prefix(root).map(Path::to_owned).ok());
            within.collect()
        })
    }

    #[test]
    fn what_an_agent_left_where_it_writes_opens_nothing_to_its_next_turn() {
        let folder = tempfile::tempdir().unwrap();
        let root = files::canonicalize(folder.path()).unwrap();
        let spec = spec(&root);
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let written = paths(&["workspace/session", "workspace/tree"]);
        let usual = [paths(&["project/.git", "workspace/tree/.git"]), written.clone()];
        files::create_dir_all(&spec.session_dir.join("codex")).unwrap();
        assert_eq!(open(&spec, &root), usual);

        // Its home in the session becomes a link to what it may not even read.
        files::remove_dir_all(&spec.session_dir.join("codex")).unwrap();
        symlink("../secrets", spec.session_dir.join("codex")).unwrap();
        assert_eq!(open(&spec, &root), usual);

        // The link to the repository leads to a folder that names the secrets as one.
        let link = spec.worktree.join(".git");
        for made_up in [spec.worktree.join("fake"), spec.session_dir.join("home/fake")] {
            files::create_dir_all(&made_up).unwrap();
            files::write(
                &made_up.join("commondir"),
                root.join("workspace/secrets").to_str().unwrap(),
            )
            .unwrap();
            files::write(&made_up.join("gitdir"), link.to_str().unwrap()).unwrap();
            files::write(&link, format!("gitdir: {}\n", made_up.display())).unwrap();
            assert_eq!(open(&spec, &root), [paths(&["workspace/tree/.git"]), written.clone()]);
        }

        // To a real one, which is somebody else's.
        let other = root.join("elsewhere/.git/worktrees/1");
        files::create_dir_all(&other).unwrap();
        files::write(&other.join("commondir"), "../..").unwrap();
        files::write(&other.join("gitdir"), "/somewhere/else/.git").unwrap();
        files::write(&link, format!("gitdir: {}\n", other.display())).unwrap();
        assert_eq!(open(&spec, &root), [paths(&["workspace/tree/.git"]), written.clone()]);

        // It is a link of the file system itself.
        files::remove_file(&link).unwrap();
        symlink("../secrets", &link).unwrap();
        assert_eq!(open(&spec, &root), [Vec::new(), written]);
    }
}
