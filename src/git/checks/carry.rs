//! Folders of the person's checkout that checks are lent, and what to say of a program that a clean tree
//! does not have.

use std::path::{Component, Path, PathBuf};

use crate::domain::config::is_build_folder;
use crate::git::{CommitId, GitError, Project, Result};
use crate::platform::beneath::Folder;
use crate::platform::{files, places, spawn};

/// Bytes of a script that are read for its first line.
const FIRST_LINE: u64 = 4_096;

/// A folder that checks are lent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CarriedFolder {
    /// Relative to the project.
    pub(super) path: PathBuf,
    /// Where it lies.
    pub(super) lies: PathBuf,
}

/// The folders that `carry` names, each looked at.
///
/// # Errors
/// [`GitError::Carry`] for the first that is not there, leaves the project, is not ignored by git, holds
/// what is tracked, or holds what is hidden.
pub(super) fn carried(
    project: &Project,
    commit: CommitId,
    folders: &[PathBuf],
    hidden: &[PathBuf],
) -> Result<Vec<CarriedFolder>> {
    let look = |folder: &PathBuf| {
        let refuse = |reason: String| GitError::Carry { folder: folder.clone(), reason };
        one(project, commit, folder, hidden)?.map_err(refuse)
    };
    folders.iter().map(look).collect()
}

fn one(
    project: &Project,
    commit: CommitId,
    folder: &Path,
    hidden: &[PathBuf],
) -> Result<std::result::Result<CarriedFolder, String>> {
    let mut lies = project.path().to_owned();
    for part in folder.components() {
        let Component::Normal(part) = part else {
            return Ok(Err("it leaves the project".to_owned()));
        };
        lies.push(part);
        match files::symlink_metadata(&lies) {
            Ok(found) if found.is_symlink() => {
                let words = "is a symbolic link; name the folder that it leads to, in the project";
                return Ok(Err(format!("{} {words}", lies.display())));
            }
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Ok(Err(format!("{} is no folder", lies.display()))),
            Err(error) if error.is_missing() => {
                return Ok(Err(format!(
                    "there is no {}; make it as you do for working there yourself",
                    lies.display()
                )));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let real = |path: &PathBuf| files::canonicalize(path).unwrap_or_else(|_| path.clone());
    if hidden.iter().map(real).any(|path| path.starts_with(&lies) || lies.starts_with(&path)) {
        return Ok(Err("the team's workspace is there".to_owned()));
    }
    let repository = project.repository()?;
    let inside = format!("{}/", folder.display());
    let tracked = repository.find_commit(commit.0)?.tree()?.get_path(folder).is_ok()
        || repository.index()?.find_prefix(&inside).is_ok();
    if tracked {
        return Ok(Err("git tracks files in it".to_owned()));
    }
    if !repository.is_path_ignored(&inside)? {
        return Ok(Err("git does not ignore it; add it to .gitignore".to_owned()));
    }
    Ok(Ok(CarriedFolder { path: folder.to_owned(), lies }))
}

/// The outermost folder or file on the way to `path`, relative to the project, that git ignores.
fn ignored(project: &Project, path: &Path) -> Result<Option<PathBuf>> {
    let repository = project.repository()?;
    let mut at = PathBuf::new();
    for part in path.components() {
        at.push(part);
        let is_last = at == path;
        let asked = if is_last { at.clone() } else { at.join("") };
        if repository.is_path_ignored(asked)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Why a program could not be started, as far as the project and the machine tell: a sentence with the
/// remedy, or nothing.
pub(super) fn why_missing(
    project: &Project,
    carried: &[CarriedFolder],
    tree: &Path,
    program: &str,
    is_missing: bool,
) -> Result<Option<String>> {
    let within = if program.contains('/') {
        let path = Path::new(program);
        let path = path.strip_prefix(project.path()).unwrap_or(path);
        if path.is_absolute() {
            return Ok(files::exists(path).then(|| out_of_sight(path)));
        }
        path.components().filter(|part| *part != Component::CurDir).collect()
    } else {
        let path = std::env::var_os("PATH");
        let Some(found) = spawn::find_program(program, path.as_deref()) else {
            return Ok(Some("no folder of the team's PATH has it".to_owned()));
        };
        match found.strip_prefix(project.path()) {
            Ok(within) => within.to_owned(),
            Err(_) => return Ok(Some(out_of_sight(&found))),
        }
    };
    let name = within.display();
    if let Some(one) = carried.iter().find(|one| within.starts_with(&one.path)) {
        let lies = project.path().join(&within);
        let start = files::read(&lies).ok().filter(|_| is_missing);
        return Ok(Some(match start.as_deref().and_then(interpreter) {
            Some(first) => format!("its first line names {first}, which checks do not see"),
            None => format!("{} is lent to checks and has no such file", one.path.display()),
        }));
    }
    if files::exists(&tree.join(&within)) {
        // What lies there is the change's: no link is followed, and no pipe read.
        let file = Folder::open(tree)?.file(&within).ok().filter(|_| is_missing);
        let start = file.and_then(|mut file| file.read_on(FIRST_LINE).ok());
        let named = start.as_deref().and_then(interpreter);
        return Ok(named.map(|first| format!("its first line names {first}, which is not there")));
    }
    let Some(ignored) = ignored(project, &within)? else {
        let lies = files::exists(&project.path().join(&within));
        return Ok(lies.then(|| format!("{name} is in the checkout and not in the commit")));
    };
    let folder = ignored.display();
    Ok(Some(if is_build_folder(&ignored.to_string_lossy()) || ignored == within {
        format!("git ignores {folder}, so a clean tree has no {name}; let the check build it")
    } else {
        format!(
            "git ignores {folder}, so a clean tree has no {name}; write `carry: [{folder}]` in team_runtime.yaml \
             to lend the folder of your checkout to checks"
        )
    }))
}

/// What in the folders leads to files of the person's checkout: a package of the project that is installed
/// editable, or linked. Only where another tree lies at the project's path is that the right thing.
pub(super) fn leads_back(project: &Path, carried: &[CarriedFolder]) -> Option<PathBuf> {
    let entries = |folder: &Path| files::list(folder).unwrap_or_default();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let says = |path: &PathBuf| {
        let is_finder =
            name(path).starts_with("__editable__") && path.extension().is_some_and(|it| it == "py");
        let is_path = path.extension().is_some_and(|it| it == "pth");
        let text = || files::read_text(path).unwrap_or_default();
        (is_finder || is_path) && text().contains(&*project.to_string_lossy())
    };
    let links = |one: &CarriedFolder, path: &PathBuf| {
        let real = || files::canonicalize(path).unwrap_or_default();
        places::is_link(path) && real().starts_with(project) && !real().starts_with(&one.lies)
    };
    carried.iter().find_map(|one| {
        let versions = entries(&one.lies.join("lib"));
        let mut packages = versions.iter().flat_map(|at| entries(&at.join("site-packages")));
        let scoped = |path: PathBuf| {
            if name(&path).starts_with('@') { entries(&path) } else { vec![path] }
        };
        let mut linked = entries(&one.lies).into_iter().flat_map(scoped);
        packages.find(says).or_else(|| linked.find(|path| links(one, path)))
    })
}

fn out_of_sight(path: &Path) -> String {
    let folder = path.parent().unwrap_or(path).display();
    format!(
        "{} is there, and checks do not see it; write `read: [{folder}]` under the check in team_runtime.yaml",
        path.display()
    )
}

/// The program that a script names on its first line.
fn interpreter(start: &[u8]) -> Option<String> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    line.split_whitespace().next().map(str::to_owned)
}

/// What a virtual environment of Python among the folders needs beside itself: the installation that it was
/// made of.
pub(super) fn interpreters(carried: &[CarriedFolder]) -> Vec<PathBuf> {
    let home = |one: &CarriedFolder| {
        let text = files::read_text(&one.lies.join("pyvenv.cfg")).ok()?;
        let line = text.lines().find_map(|line| {
            line.split_once('=')
                .filter(|(key, _)| key.trim() == "home")
                .map(|(_, value)| value.trim())
        })?;
        let folder = PathBuf::from(line);
        folder.is_absolute().then(|| folder.join("python"))
    };
    carried.iter().filter_map(home).flat_map(|program| places::installation(&program)).collect()
}
