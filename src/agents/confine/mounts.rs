//! What an agent sees, whatever it is confined by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::places::{self, SYSTEM, SYSTEM_SECRETS};
use crate::agents::run::{ProjectView, RunSpec};
use crate::agents::sandbox::WriteAccess;
use crate::platform::beneath::Folder;
use crate::platform::files;
use crate::platform::landlock::{self, Below, DEVICES, Rules};

/// Where the repository is seen whose own place is that of the worktree's link.
pub(crate) const REPOSITORY: &str = "/run/teams/repository";

/// How a path is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
pub(crate) struct SandboxMounts {
    /// The later of two words about the same path counts; deeper paths have the last word.
    at: BTreeMap<PathBuf, Show>,
    /// Folders in which agents write: whatever lies below one could be a link by now, and is opened from there.
    written: Vec<PathBuf>,
    pub(super) cwd: PathBuf,
    /// What is seen at another place than its own.
    placed: BTreeMap<PathBuf, PathBuf>,
    /// The worktree as it is seen, where that is at another place.
    pub(super) project: Option<ProjectView>,
    repository: Option<PathBuf>,
    /// The socket of the team's proxy.
    pub(super) proxy: Option<PathBuf>,
    /// Its port, where the agent has no network of its own.
    pub(super) port: Option<u16>,
}

/// The mounts of a turn. `keeps` are folders that the agent keeps beside its session's; `programs` are what is
/// run.
pub(crate) fn around(
    spec: &RunSpec,
    access: &WriteAccess,
    keeps: &[PathBuf],
    programs: &[PathBuf],
) -> SandboxMounts {
    let documents = match access {
        WriteAccess::Documents(folder) => Some(folder.clone()),
        WriteAccess::ReadOnly | WriteAccess::Worktree => None,
    };
    let own = [spec.worktree.clone(), spec.session_dir.clone()];
    let mut mounts = SandboxMounts {
        at: BTreeMap::new(),
        written: own.into_iter().chain(spec.surroundings.shared.clone()).chain(documents).collect(),
        cwd: spec.worktree.clone(),
        placed: BTreeMap::new(),
        project: spec.surroundings.project.clone(),
        repository: spec.surroundings.repository.clone(),
        proxy: spec.surroundings.proxy.as_ref().map(|proxy| proxy.socket.clone()),
        port: spec.surroundings.proxy.as_ref().and_then(|proxy| proxy.port),
    };
    // Only where one of them lies within something that is shown.
    for path in &spec.surroundings.hidden {
        mounts.hide(path);
    }
    if let Some(home) = places::home() {
        mounts.hide(&home);
    }
    for path in SYSTEM_SECRETS.map(PathBuf::from) {
        mounts.hide(&path);
    }
    let tools = match &spec.surroundings.tools {
        Some(listed) => listed.iter().map(|path| places::expand(path)).collect(),
        None => places::tools(),
    };
    mounts.show(Show::Read, tools);
    for secret in places::tool_secrets() {
        mounts.hide(&secret);
    }
    // A folder that holds what is hidden is no installation: then the program's file is all that is shown.
    let hidden = &spec.surroundings.hidden;
    let apart = |path: &PathBuf| !hidden.iter().any(|one| one.starts_with(path));
    let installed = programs.iter().flat_map(|program| places::installation(program));
    mounts.show(Show::Read, installed.filter(apart));
    mounts.show(Show::Read, spec.surroundings.readable.iter().cloned());
    let prepared = spec.surroundings.project.iter().flat_map(|project| &project.readable);
    mounts.show(Show::Read, prepared.cloned());
    // What its worktree's link says may be the agent's word, and says nothing here.
    mounts.show(Show::Read, spec.surroundings.repository.clone());
    let worktree = [spec.worktree.clone()];
    match access {
        WriteAccess::ReadOnly => mounts.show(Show::Read, worktree),
        WriteAccess::Worktree => mounts.show(Show::Write, worktree),
        WriteAccess::Documents(folder) => {
            mounts.show(Show::Read, worktree);
            mounts.show(Show::Write, [folder.clone()]);
            // In there they are mounts of their own, which nobody within can move or replace.
            mounts.show(Show::Read, spec.surroundings.read_only.iter().cloned());
        }
    }
    // A worktree's link to its repository is not the agent's to change, nor is a repository.
    mounts.show(Show::Read, [spec.worktree.join(".git")]);
    mounts.show(Show::Read, [spec.run_dir.join(crate::agents::run_folder::SCHEMA)]);
    mounts.show(Show::Write, keeps.iter().cloned());
    mounts.show(Show::Write, [spec.session_dir.clone()]);
    // Their folder, because a team that is started again makes new ones there.
    let sockets = [spec.socket.clone(), mounts.proxy.clone()].into_iter().flatten();
    mounts.show(Show::Read, sockets.filter_map(|it| it.parent().map(Path::to_path_buf)));
    mounts
}

impl SandboxMounts {
    /// With one more file for reading.
    pub(crate) fn with_file(mut self, path: Option<PathBuf>) -> SandboxMounts {
        self.show(Show::Read, path);
        self
    }

    /// With nothing to be seen at some places.
    pub(crate) fn without(mut self, paths: impl Iterator<Item = PathBuf>) -> SandboxMounts {
        paths.for_each(|path| self.hide(&path));
        self
    }

    /// With folders of the session, each at the place that is named beside it.
    pub(crate) fn with_folders(mut self, folders: Vec<(PathBuf, PathBuf)>) -> SandboxMounts {
        self.show(Show::Write, folders.iter().map(|(path, _)| path.clone()));
        self.placed.extend(folders);
        self
    }

    fn show(&mut self, show: Show, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths {
            if path.is_absolute() && path.parent().is_some() && self.is_there(&path) {
                self.at.insert(path, show);
            }
        }
    }

    /// Where a path is seen.
    pub(super) fn place(&self, path: &Path) -> PathBuf {
        if let Some(place) = self.placed.get(path) {
            return place.clone();
        }
        let Some(project) = &self.project else { return path.to_owned() };
        if let Ok(below) = path.strip_prefix(&self.cwd) {
            // Joined with nothing it would end with a slash.
            let is_top = below.as_os_str().is_empty();
            return if is_top { project.path.clone() } else { project.path.join(below) };
        }
        if self.repository.as_deref() == Some(path) { REPOSITORY.into() } else { path.to_owned() }
    }

    /// What is mounted for a path, where that is something else.
    pub(super) fn instead(&self, path: &Path) -> Option<&Path> {
        let project = self.project.as_ref()?;
        if path == self.cwd {
            return project.layers.as_ref().map(|layers| layers.merged.as_path());
        }
        path.strip_prefix(&self.cwd)
            .is_ok_and(|below| below == Path::new(".git"))
            .then_some(&project.git_link)
    }

    /// The outermost folder in which agents write that a path lies below, and where it lies below that.
    pub(super) fn within<'a>(&'a self, path: &'a Path) -> Option<(&'a Path, &'a Path)> {
        let outermost = self.written.iter().filter(|at| path != at.as_path());
        let outermost =
            outermost.filter(|at| path.starts_with(at)).min_by_key(|at| at.iter().count())?;
        Some((outermost, path.strip_prefix(outermost).ok()?))
    }

    /// Whether there is something to show. A link that an agent could have made is nothing.
    fn is_there(&self, path: &Path) -> bool {
        let Some((folder, below)) = self.within(path) else { return files::exists(path) };
        match Folder::open(folder).and_then(|folder| folder.handle(below)) {
            Ok(_) => true,
            Err(error) => {
                if !error.is_missing() {
                    tracing::warn!(%error, "not shown to an agent");
                }
                false
            }
        }
    }

    fn hide(&mut self, path: &Path) {
        let hidden = match self.within(path) {
            // A link that stays in there is hidden where it leads; others lead nowhere in the sandbox.
            Some((folder, below)) => {
                let real = Folder::open(folder).ok().and_then(|folder| folder.leads_to(below));
                real.map(|real| folder.join(real))
            }
            None => files::canonicalize(path).ok(),
        };
        let Some(real) = hidden else { return };
        if let Ok(meta) = files::metadata(&real) {
            let show = if meta.is_dir() { Show::EmptyFolder } else { Show::EmptyFile };
            // A path of ours by all of its names.
            let named = Some(path.to_owned()).filter(|_| self.within(path).is_none());
            self.at.extend(named.into_iter().chain([real]).map(|path| (path, show)));
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
        let hidden: Vec<&Path> = seen
            .iter()
            .filter(|(_, show)| matches!(show, Show::EmptyFolder | Show::EmptyFile))
            .map(|(path, _)| path.as_path())
            .collect();
        let mut rules = Rules::default();
        rules.write.extend(DEVICES.map(PathBuf::from));
        let system = SYSTEM.iter().map(PathBuf::from).chain([PathBuf::from("/proc")]);
        for path in system.filter(|path| !places::is_link(path)) {
            landlock::pieces(&path, &hidden, &mut rules.read);
        }
        let (mut read, mut write) = (Vec::new(), Vec::new());
        for (path, show) in &seen {
            match show {
                Show::Read => landlock::pieces(path, &hidden, &mut read),
                Show::Write => write.push(path.clone()),
                Show::EmptyFolder | Show::EmptyFile => {}
            }
        }
        for (paths, writable) in [(read, false), (write, true)] {
            for path in paths {
                match self.within(&path) {
                    // One of several pieces may be a link.
                    Some(_) if !self.is_there(&path) => {}
                    Some((folder, below)) => {
                        let (folder, below) = (folder.to_owned(), below.to_owned());
                        rules.below.push(Below { folder, below, writable });
                    }
                    None if writable => rules.write.push(path),
                    None => rules.read.push(path),
                }
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::agents::codex::CodexSettings;
    use crate::agents::run::{Agent, Limits, Surroundings};
    use crate::agents::{PersonMessage, Task};
    use crate::domain::ids::RunId;
    use crate::domain::role::Role;

    /// A developer's run, in a workspace with secrets, in a worktree of a project.
    fn spec(root: &Path) -> RunSpec {
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            files::create_dir_all(path.parent().unwrap()).unwrap();
            files::write(&path, text).unwrap();
        };
        put("workspace/secrets/tokens.env", "TOKEN=1");
        put("workspace/tree/.git", "gitdir: wherever\n");
        put("workspace/shared/sprints/s/plan.md", "the plan");
        put("workspace/shared/sprints/s/todos/1/spec.md", "the plan of one");
        put("workspace/shared/attachments/1.txt", "somebody's");
        put("project/.git/HEAD", "ref: refs/heads/main\n");
        put("workspace/session/home/.keep", "");
        RunSpec {
            run_id: RunId::parse("run").unwrap(),
            run_dir: root.join("workspace/runs/run"),
            session_dir: root.join("workspace/session"),
            worktree: root.join("workspace/tree"),
            access: WriteAccess::Worktree,
            agent: Agent::Codex(CodexSettings::default()),
            task: Task::first(
                Role::Developer,
                None,
                "20260101-00000001",
                PersonMessage::new("Mina", "do it"),
            ),
            resume: None,
            limits: Limits::default(),
            socket: None,
            surroundings: Surroundings {
                shared: Some(root.join("workspace/shared")),
                repository: Some(root.join("project/.git")),
                hidden: vec![root.join("workspace"), root.join("project")],
                ..Surroundings::default()
            },
            templates: BTreeMap::new(),
        }
    }

    /// What of the workspace and the project can be read, and what written, by the kernel's rules; links
    /// followed, as it does, but for what is opened.
    fn open_to(spec: &RunSpec, mounts: &SandboxMounts, root: &Path) -> [Vec<PathBuf>; 2] {
        assert!(spec.worktree.starts_with(root));
        let rules = mounts.rules(Path::new("/usr/bin/teams"));
        let opened = |writable: bool| {
            let all = rules.below.iter().filter(move |it| it.writable == writable);
            all.map(|it| {
                Folder::open(&it.folder).unwrap().handle(&it.below).unwrap();
                it.folder.join(&it.below)
            })
        };
        let [read, write] =
            [(&rules.read, false), (&rules.write, true)].map(|(paths, writable)| {
                let real = paths.iter().filter_map(|path| files::canonicalize(path).ok());
                let all = real.chain(opened(writable));
                let within =
                    all.filter_map(|path| path.strip_prefix(root).map(Path::to_owned).ok());
                let mut within: Vec<PathBuf> = within.collect();
                within.sort();
                within.dedup();
                within
            });
        [read, write]
    }

    fn open(spec: &RunSpec, root: &Path) -> [Vec<PathBuf>; 2] {
        open_to(spec, &around(spec, &spec.access, &[], &[]), root)
    }

    fn paths(all: &[&str]) -> Vec<PathBuf> {
        all.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn what_an_agent_left_where_it_writes_opens_nothing_to_its_next_turn() {
        let folder = tempfile::tempdir().unwrap();
        let root = files::canonicalize(folder.path()).unwrap();
        let spec = spec(&root);
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
        let made_up = spec.session_dir.join("home/fake");
        files::create_dir_all(&made_up).unwrap();
        let secrets = root.join("workspace/secrets");
        files::write(&made_up.join("commondir"), secrets.to_str().unwrap()).unwrap();
        files::write(&made_up.join("gitdir"), link.to_str().unwrap()).unwrap();
        files::write(&link, format!("gitdir: {}\n", made_up.display())).unwrap();
        assert_eq!(open(&spec, &root), usual);

        // It is a link of the file system itself.
        files::remove_file(&link).unwrap();
        symlink("../secrets", &link).unwrap();
        assert_eq!(open(&spec, &root), [paths(&["project/.git"]), written]);
    }

    #[test]
    fn a_link_among_the_documents_opens_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = files::canonicalize(folder.path()).unwrap();
        let shared = root.join("workspace/shared");
        let sprint = shared.join("sprints/s");
        let mut spec = spec(&root);
        spec.access = WriteAccess::Documents(sprint.join("todos/1"));
        spec.surroundings.readable = vec![sprint.join("plan.md")];
        let tree = ["project/.git", "workspace/tree", "workspace/tree/.git"];
        let plan = "workspace/shared/sprints/s/plan.md";
        let todo = "workspace/shared/sprints/s/todos/1";
        assert_eq!(
            open(&spec, &root),
            [paths(&[tree[0], plan, tree[1], tree[2]]), paths(&["workspace/session", todo])]
        );
        // Whoever plans puts links in their place.
        files::remove_dir_all(&sprint.join("todos/1")).unwrap();
        symlink("../../../../secrets", sprint.join("todos/1")).unwrap();
        files::remove_file(&sprint.join("plan.md")).unwrap();
        symlink("../../../secrets/tokens.env", sprint.join("plan.md")).unwrap();
        let closed = [paths(&tree), paths(&["workspace/session"])];
        assert_eq!(open(&spec, &root), closed);
        // Or in the place of a folder above.
        files::remove_dir_all(&sprint.join("todos")).unwrap();
        files::create_dir_all(&root.join("workspace/secrets/1")).unwrap();
        symlink("../../../secrets", sprint.join("todos")).unwrap();
        assert_eq!(open(&spec, &root), closed);
        // What is not there is made into nothing that could be found later.
        let mounts = around(&spec, &spec.access, &[], &[]);
        let (opened, told) =
            super::super::bubblewrap::arguments(&mounts, Path::new("/usr/bin/teams"));
        assert!(!told.iter().any(|word| word.contains("todos")), "{told:?}");
        assert!(opened.iter().all(|it| it.folder == spec.worktree), "{opened:?}");
    }

    #[test]
    fn a_worktree_that_is_shown_piece_by_piece_opens_nothing_through_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = files::canonicalize(folder.path()).unwrap();
        let mut spec = spec(&root);
        spec.access = WriteAccess::ReadOnly;
        files::create_dir_all(&spec.worktree.join("config/agent")).unwrap();
        files::write(&spec.worktree.join("src.rs"), "").unwrap();
        symlink("config/agent", spec.worktree.join(".claude")).unwrap();
        symlink("../secrets", spec.worktree.join("src")).unwrap();
        symlink("../secrets/tokens.env", spec.worktree.join(".mcp.json")).unwrap();
        let places = crate::agents::project_settings::places(&spec.worktree);
        let mounts = around(&spec, &spec.access, &[], &[]).without(places);
        let read = ["project/.git", "workspace/tree/.git", "workspace/tree/src.rs"];
        assert_eq!(open_to(&spec, &mounts, &root), [paths(&read), paths(&["workspace/session"])]);
        let (_, told) = super::super::bubblewrap::arguments(&mounts, Path::new("/usr/bin/teams"));
        let hidden = spec.worktree.join("config/agent").to_str().unwrap().to_owned();
        assert!(told.contains(&hidden), "{told:?}");
    }
}
