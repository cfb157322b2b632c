//! What a check sees beside the system, and how that is said to bubblewrap and to Landlock.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::carry::CarriedFolder;
use super::plan::{CheckPlan, CheckSpec};
use super::tree;
use crate::domain::config::CheckNetwork;
use crate::domain::evidence::Isolation;
use crate::git::{GitError, Project, Result};
use crate::platform::bubblewrap::{self, Network};
use crate::platform::landlock::{self, Rules};
use crate::platform::layers::Layers;
use crate::platform::{files, places, spawn};

/// Where checks see what has no place of its own on the machine.
pub(super) const OWN: &str = "/run/teams";

/// A folder that checks may write: where it lies, and where they see it.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    pub(super) lies: PathBuf,
    pub(super) seen: PathBuf,
}

/// The folders of one run of the checks.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) isolation: Isolation,
    pub(super) tree: Folder,
    /// Where looks at the tree are noted.
    pub(super) seen: PathBuf,
    pub(super) home: Folder,
    pub(super) tmp: Folder,
    /// `/var/tmp`, where it is theirs alone.
    pub(super) var_tmp: PathBuf,
    /// Where downloads are kept, for what prepares checks.
    pub(super) cache: Option<Folder>,
    /// Whether Go's modules were prepared in the home.
    pub(super) has_modules: bool,
    /// Of these folders checks see more than what lies there: what was prepared, in layers below.
    pub(super) layers: Vec<Layers>,
}

impl Layout {
    /// `root` is where the folders lie. In a file system of their own checks see the tree at the project's
    /// path and their home where the home of whoever runs the team is, so that tools are where they were
    /// installed; elsewhere they see everything where it lies.
    pub(super) fn new(isolation: Isolation, project: &Path, root: &Path) -> Layout {
        let at = |name: &str, elsewhere: PathBuf| {
            let lies = root.join(name);
            let seen = if isolation.is_isolated() { elsewhere } else { lies.clone() };
            Folder { lies, seen }
        };
        Layout {
            isolation,
            // Some programs leave out what is called `tree` or lies in a hidden folder; none, this.
            tree: at("project", project.to_owned()),
            seen: root.join("index"),
            home: at("home", home_seen(project)),
            tmp: at("tmp", PathBuf::from("/tmp")),
            var_tmp: root.join("var-tmp"),
            cache: None,
            has_modules: false,
            layers: Vec::new(),
        }
    }

    /// What is mounted for a folder that checks may write.
    fn shown<'a>(&'a self, lies: &'a Path) -> &'a Path {
        let is_upper = |one: &&Layers| one.upper.as_ref().is_some_and(|upper| upper.folder == lies);
        self.layers.iter().find(is_upper).map_or(lies, |one| &one.merged)
    }

    /// Where checks find the project's object folders.
    pub(super) fn objects(&self, project: &Project) -> Result<Vec<PathBuf>> {
        let lie = tree::object_folders(project)?;
        Ok(if self.isolation.is_isolated() {
            (0..lie.len()).map(|at| Path::new(OWN).join("objects").join(at.to_string())).collect()
        } else {
            lie
        })
    }
}

/// The home of whoever runs the team, unless something else has to be at that path.
fn home_seen(project: &Path) -> PathBuf {
    let taken = ["/", "/tmp", "/var/tmp", "/dev", "/proc", "/run"].map(Path::new);
    let free = |home: &PathBuf| !home.starts_with(project) && !taken.contains(&home.as_path());
    places::home().filter(free).unwrap_or_else(|| Path::new(OWN).join("home"))
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mount {
    /// This file or folder, for reading.
    Read(PathBuf),
    /// This folder, for writing.
    Write(PathBuf),
    /// An empty folder.
    EmptyFolder,
    /// An empty file.
    EmptyFile,
}

/// What one check sees.
#[derive(Debug)]
pub(super) struct View {
    /// Outer folders first: what lies deeper has the last word.
    at: BTreeMap<PathBuf, Mount>,
    /// What of the machine is not shown, wherever it lies.
    hidden: Vec<PathBuf>,
    layout: Layout,
    network: Network,
}

impl View {
    /// # Errors
    /// [`GitError::Readable`] where the check is to read what it must not.
    pub(super) fn of(
        project: &Project,
        plan: &CheckPlan,
        check: &CheckSpec,
        carried: &[CarriedFolder],
        layout: &Layout,
    ) -> Result<View> {
        let mut hidden: Vec<PathBuf> = plan.hidden.clone();
        hidden.extend([project.path().to_owned(), project.common_dir().to_owned()]);
        let guarded = hidden.clone();
        hidden.extend(places::SYSTEM_SECRETS.map(PathBuf::from));
        hidden.extend(places::tool_secrets());
        let real = hidden.iter().filter_map(|path| files::canonicalize(path).ok());
        let real: Vec<PathBuf> = real.collect();
        hidden.extend(real);
        let network = match check.network {
            CheckNetwork::Off => Network::Own,
            CheckNetwork::Host => Network::Host,
        };
        let mut view = View { at: BTreeMap::new(), hidden, layout: layout.clone(), network };
        view.tools(plan, check, carried, &guarded);
        for path in &check.read {
            let path = places::expand(path);
            let real = readable(&path, &guarded)?;
            view.at.insert(path, Mount::Read(real));
        }
        view.write(&layout.home);
        view.write(&layout.tmp);
        view.write(&layout.tree);
        if let Some(cache) = &layout.cache {
            view.write(cache);
        }
        for one in carried {
            let seen = if layout.isolation.is_isolated() {
                layout.tree.seen.join(&one.path)
            } else {
                one.lies.clone()
            };
            view.at.insert(seen, Mount::Read(one.lies.clone()));
        }
        for (seen, lies) in layout.objects(project)?.into_iter().zip(tree::object_folders(project)?)
        {
            let borrowed = lies.join(tree::ALTERNATES);
            if layout.isolation.is_isolated() && files::exists(&borrowed) {
                // What it borrows from is shown as well, at another path.
                view.at.insert(seen.join(tree::ALTERNATES), Mount::EmptyFile);
            }
            view.at.insert(seen, Mount::Read(lies));
        }
        if layout.isolation.is_isolated() {
            let var_tmp = layout.var_tmp.clone();
            view.at.insert(PathBuf::from("/var/tmp"), Mount::Write(var_tmp));
            view.resolver();
        }
        view.hide();
        Ok(view)
    }

    /// The tools that agents may read as well, and what the check's own program needs of its installation.
    fn tools(
        &mut self,
        plan: &CheckPlan,
        check: &CheckSpec,
        carried: &[CarriedFolder],
        guarded: &[PathBuf],
    ) {
        let mut tools = match &plan.tools {
            Some(listed) => listed.iter().map(|path| places::expand(path)).collect(),
            None => places::tools(),
        };
        let apart = |path: &PathBuf| {
            !guarded.iter().any(|one| one.starts_with(path) || path.starts_with(one))
        };
        let path = std::env::var_os("PATH");
        let program = check.command.first().filter(|word| !word.starts_with('.'));
        let found = program.and_then(|word| spawn::find_program(word, path.as_deref()));
        let installed = found.iter().filter(|path| path.is_absolute());
        tools.extend(installed.flat_map(|path| places::installation(path)).filter(apart));
        tools.extend(super::carry::interpreters(carried).into_iter().filter(apart));
        // What a preparation downloads is in the home of the checks, and would be hidden by the person's own.
        let own_modules = self.layout.cache.is_some() || self.layout.has_modules;
        for path in tools {
            if own_modules && path.ends_with(places::GO_MODULES) {
                continue;
            }
            // The system is there already.
            let by_system = places::SYSTEM.iter().any(|folder| path.starts_with(folder));
            if path.is_absolute() && path.parent().is_some() && !by_system && files::exists(&path) {
                self.at.insert(path.clone(), Mount::Read(path));
            }
        }
    }

    fn write(&mut self, folder: &Folder) {
        self.at.insert(folder.seen.clone(), Mount::Write(folder.lies.clone()));
    }

    /// With the machine's network, the list of name servers is often a link out of what is shown.
    fn resolver(&mut self) {
        let Ok(real) = files::canonicalize(Path::new("/etc/resolv.conf")) else { return };
        let shown = places::SYSTEM.iter().any(|folder| real.starts_with(folder));
        if self.network == Network::Host && !shown {
            self.at.insert(real.clone(), Mount::Read(real));
        }
    }

    /// Hides what lies within something that is shown, and is not shown by itself.
    fn hide(&mut self) {
        for path in self.hidden.clone() {
            let Ok(meta) = files::metadata(&path) else { continue };
            let by_system = places::SYSTEM.iter().any(|folder| path.starts_with(folder));
            let above = path.ancestors().skip(1).find_map(|at| self.at.get(at));
            let shown = match above {
                Some(Mount::Read(_)) => true,
                Some(Mount::Write(_) | Mount::EmptyFolder | Mount::EmptyFile) => false,
                None => by_system,
            };
            if shown && !self.at.contains_key(&path) {
                let mount = if meta.is_dir() { Mount::EmptyFolder } else { Mount::EmptyFile };
                self.at.insert(path, mount);
            }
        }
    }

    /// Makes what mounts stand on in the folders that checks may write. An earlier check may have left
    /// something else there, such as a link out of them; nothing of it runs any more.
    pub(super) fn make_way(&self) -> Result<()> {
        for (path, mount) in &self.at {
            let mut above = path.ancestors().skip(1).filter_map(|at| Some((at, self.at.get(at)?)));
            let Some((seen, Mount::Write(lies))) = above.next() else { continue };
            let Ok(rest) = path.strip_prefix(seen) else { continue };
            let is_folder = match mount {
                Mount::Read(source) => files::metadata(source)?.is_dir(),
                Mount::Write(_) | Mount::EmptyFolder => true,
                Mount::EmptyFile => false,
            };
            stand(lies, rest, is_folder)?;
        }
        Ok(())
    }

    /// As bubblewrap's arguments, up to where the program within begins. `own` is our binary, which is that
    /// program.
    pub(super) fn bubblewrap(&self, own: &Path) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut all = bubblewrap::base(self.network);
        for (path, mount) in &self.at {
            let path = text(path);
            match mount {
                Mount::Read(lies) => all.extend(["--ro-bind".to_owned(), text(lies), path]),
                Mount::Write(lies) => {
                    all.extend(["--bind".to_owned(), text(self.layout.shown(lies)), path]);
                }
                Mount::EmptyFolder => all.extend(bubblewrap::empty_folder(path)),
                Mount::EmptyFile => {
                    all.extend(["--ro-bind".to_owned(), "/dev/null".to_owned(), path]);
                }
            }
        }
        // Not where it lies, which may be within the project.
        let program = format!("{OWN}/teams");
        all.extend(["--ro-bind".to_owned(), text(own), program.clone()]);
        all.extend(["--remount-ro".to_owned(), "/".to_owned()]);
        all.extend(["--chdir".to_owned(), text(&self.layout.tree.seen), "--".to_owned(), program]);
        all
    }

    /// As Landlock's rules.
    pub(super) fn landlock(&self) -> Rules {
        let hidden: Vec<&Path> = self.hidden.iter().map(PathBuf::as_path).collect();
        let mut rules = Rules { any_port: true, ..Rules::default() };
        rules.write.extend(landlock::DEVICES.map(PathBuf::from));
        rules.write.push(PathBuf::from("/dev/shm"));
        let system = places::SYSTEM.iter().map(PathBuf::from).chain([PathBuf::from("/proc")]);
        for path in system.filter(|path| !places::is_link(path)) {
            landlock::pieces(&path, &hidden, &mut rules.read);
        }
        for mount in self.at.values() {
            match mount {
                // What lies within something hidden is shown because it was named.
                Mount::Read(lies) if hidden.iter().any(|one| lies.starts_with(one)) => {
                    rules.read.push(lies.clone());
                }
                Mount::Read(lies) => landlock::pieces(lies, &hidden, &mut rules.read),
                Mount::Write(lies) => rules.write.push(lies.clone()),
                Mount::EmptyFolder | Mount::EmptyFile => {}
            }
        }
        rules
    }
}

/// A path that a check is to read, links followed.
fn readable(path: &Path, guarded: &[PathBuf]) -> Result<PathBuf> {
    let refuse = |reason| GitError::Readable { path: path.to_owned(), reason };
    if !path.is_absolute() {
        return Err(refuse("it is not absolute"));
    }
    let Ok(real) = files::canonicalize(path) else {
        return Err(refuse("it is not there"));
    };
    for at in [path, &real] {
        if at.parent().is_none() || places::home().is_some_and(|home| home.starts_with(at)) {
            return Err(refuse("it holds the home of whoever runs the team"));
        }
        if guarded.iter().any(|one| one.starts_with(at)) {
            return Err(refuse("it holds the project or the team's workspace"));
        }
        if guarded.iter().any(|one| at.starts_with(one)) {
            return Err(refuse(
                "it is in the project or the team's workspace; folders of the project that git ignores go under \
                 `carry`",
            ));
        }
    }
    Ok(real)
}

/// Makes `rest` below `top` a folder, or an empty file, without following a link.
fn stand(top: &Path, rest: &Path, is_folder: bool) -> Result<()> {
    let mut at = top.to_owned();
    let mut parts = rest.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(part) = part else { continue };
        at.push(part);
        let wants_folder = is_folder || parts.peek().is_some();
        match files::symlink_metadata(&at) {
            Ok(found) if wants_folder && found.is_dir() => continue,
            Ok(found) if !wants_folder && found.is_file() => continue,
            Ok(_) => files::remove_any(&at)?,
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
        if wants_folder {
            files::create_dir_all(&at)?;
        } else {
            files::write(&at, "")?;
        }
    }
    Ok(())
}
