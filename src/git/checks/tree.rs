//! The tree that checks prove: the files of one commit, and a small repository of its own with that commit
//! checked out, so that `git ls-files`, `git describe` and `git status` answer as in any clone.
//!
//! The repository has no branches, remotes, hooks or logs. Its objects are the project's, which it only
//! reads; what checks write to it ends with it. Of the project's settings it has those alone that say how
//! files are written out.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{ObjectType, ReferenceType, Repository};

use crate::git::tracked::of_tree;
use crate::git::trees::TreePool;
use crate::git::{CommitId, Project, Result, content};
use crate::platform::files;

/// Settings that say how blobs become files, and their possible values.
const SETTINGS: [(&str, &[&str]); 6] = [
    ("autocrlf", &["true", "false", "input"]),
    ("eol", &["lf", "crlf", "native"]),
    ("filemode", &["true", "false"]),
    ("symlinks", &["true", "false"]),
    ("ignorecase", &["true", "false"]),
    ("precomposeunicode", &["true", "false"]),
];

/// Steps from one object folder to the next that it borrows from; git itself allows five.
const BORROWED: usize = 5;

/// The folders with the project's objects: its own, and those that it borrows from.
pub(super) fn object_folders(project: &Project) -> Result<Vec<PathBuf>> {
    let mut found = vec![project.common_dir().join("objects")];
    let mut at = 0;
    while let Some(folder) = found.get(at).cloned() {
        at += 1;
        let list = files::read_text_if_present(&folder.join(ALTERNATES))?.unwrap_or_default();
        for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            // An absolute path stays one when it is joined.
            let Ok(borrowed) = files::canonicalize(&folder.join(line)) else { continue };
            if !found.contains(&borrowed) && found.len() < BORROWED {
                found.push(borrowed);
            }
        }
    }
    Ok(found)
}

/// Where an object folder names those that it borrows from.
pub(super) const ALTERNATES: &str = "info/alternates";

/// Makes `dir` the tree, of one that is kept in `pool` where there is one. `seen` is where looks at it are noted.
/// `objects` is where checks will find the project's object folders; `ignored` are paths at which something else
/// is going to lie, of which git shall say nothing. Gives whether the tree has packages of cargo.
pub(super) fn write(
    project: &Project,
    commit: CommitId,
    (dir, seen): (&Path, &Path),
    pool: &TreePool,
    objects: &[PathBuf],
    ignored: &[PathBuf],
) -> Result<bool> {
    files::remove_dir_all(dir)?;
    let source = project.repository()?;
    let tree = source.find_commit(commit.0)?.tree()?;
    pool.make(project, &tree, dir, seen)?;
    let git = dir.join(".git");
    for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
        files::create_dir_all(&git.join(folder))?;
    }
    files::write(&git.join("HEAD"), format!("{commit}\n"))?;
    files::write(&git.join("config"), settings(&source)?)?;
    files::write(&git.join("packed-refs"), tags(&source)?)?;
    let shallow = project.common_dir().join("shallow");
    if files::exists(&shallow) {
        files::copy(&shallow, &git.join("shallow"))?;
    }
    files::write(&git.join("info/exclude"), excluded(project, ignored))?;
    files::write(&git.join("objects").join(ALTERNATES), lines(objects))?;
    content::write_index_for_git(&tree, seen, &git.join("index"))?;
    // A manifest of cargo anywhere, or what one is made from, such as `Cargo.toml.in`.
    let is_manifest = |path: &&Vec<u8>| {
        path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"Cargo.toml"))
    };
    Ok(of_tree(&tree)?.keys().find(is_manifest).is_some())
}

fn lines(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("{}\n", path.display())).collect()
}

fn settings(source: &Repository) -> Result<String> {
    let config = source.config()?.snapshot()?;
    let mut text = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\
                    \tlogallrefupdates = false\n"
        .to_owned();
    for (name, values) in SETTINGS {
        let set = config.get_string(&format!("core.{name}")).unwrap_or_default().to_lowercase();
        if values.contains(&set.as_str()) {
            text.push_str(&format!("\t{name} = {set}\n"));
        }
    }
    Ok(text)
}

/// All tags, as git packs them: sorted, with what an annotated one leads to.
fn tags(source: &Repository) -> Result<String> {
    let mut found = Vec::new();
    for reference in source.references_glob("refs/tags/*")? {
        let reference = reference?;
        let (Ok(name), Some(target)) = (reference.name(), reference.target()) else { continue };
        if reference.kind() != Some(ReferenceType::Direct) {
            continue;
        }
        // A tag whose object is gone is nothing that a clone would have.
        let Ok(peeled) = reference.peel(ObjectType::Any) else { continue };
        let peeled = peeled.id();
        let mut line = format!("{target} {name}\n");
        if peeled != target {
            line.push_str(&format!("^{peeled}\n"));
        }
        found.push((name.to_owned(), line));
    }
    found.sort();
    let head = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
    Ok(found.into_iter().fold(head, |text, (_, line)| text + &line))
}

/// What the person lets git ignore beside the project's own rules.
fn excluded(project: &Project, ignored: &[PathBuf]) -> Vec<u8> {
    let own = files::read(&project.common_dir().join("info/exclude")).unwrap_or_default();
    let more = ignored.iter().map(|path| [b"\n/", path.as_os_str().as_bytes()].concat());
    more.fold(own, |text, line| [text, line].concat())
}
