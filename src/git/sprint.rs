//! How the project stands when a sprint begins and when it ends (`spec/teams.md` 11.1, 11.2).
//!
//! The team works in worktrees of its own, so what lies uncommitted in the project's checkout was written by
//! people or by the commands that they run. It is named and left alone. What differs is told by content.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType, Oid, Repository, StatusOptions, Tree};

use super::path_name::name_of;
use super::project::{checked_out_branch, tip};
use super::tracked::as_path;
use super::{Project, Result, content, filter};
use crate::domain::effect::Inspection;
use crate::domain::ids::SprintId;
use crate::domain::sprint::{CloseoutStatus, GitBaseline, SprintCommit};
use crate::platform::files;

/// Characters of a short commit id.
const SHORT: usize = 10;
const MODE_FILE: u32 = 0o100_644;
const MODE_PROGRAM: u32 = 0o100_755;
const MODE_LINK: u32 = 0o120_000;

/// How the project stands before a sprint. `excluded` are folders relative to the project's root that are
/// no part of it: the workspace. A project whose repository is gone has a blank baseline.
pub fn baseline(project: &Project, excluded: &[PathBuf]) -> Result<GitBaseline> {
    if is_gone(project) {
        return Ok(GitBaseline::default());
    }
    Ok(GitBaseline {
        repo_root: project.path().to_string_lossy().into_owned(),
        head_sha: project.head()?.to_string(),
        dirty_paths: uncommitted(project, excluded)?.into_iter().collect(),
    })
}

/// The commits of a sprint, and what lies uncommitted in the project. Never an error: what git cannot say is the status `failed` with its
/// reason, so that a sprint can end all the same.
#[must_use]
pub fn inspect(
    project: &Project,
    baseline: Option<&GitBaseline>,
    sprint: &SprintId,
    excluded: &[PathBuf],
) -> Inspection {
    let plain = |status, message: &str| Inspection {
        status,
        commits: Vec::new(),
        uncommitted_paths: Vec::new(),
        message: message.to_owned(),
    };
    let Some(baseline) = baseline else {
        return plain(CloseoutStatus::Failed, "nobody looked at the project when it began");
    };
    if is_gone(project) || baseline.repo_root.is_empty() {
        return plain(CloseoutStatus::NoRepo, "the project is not a repository");
    }
    let looked = commits_since(project, baseline, sprint)
        .and_then(|commits| Ok((commits, uncommitted(project, excluded)?)));
    match looked {
        Ok((commits, paths)) => Inspection {
            status: if commits.is_empty() {
                CloseoutStatus::NoNewCommits
            } else if commits.iter().any(|commit| commit.sprint_tagged) {
                CloseoutStatus::Verified
            } else {
                CloseoutStatus::WarningMissingSprintTag
            },
            commits,
            uncommitted_paths: paths.into_iter().collect(),
            message: String::new(),
        },
        Err(error) => plain(CloseoutStatus::Failed, &error.to_string()),
    }
}

/// What differs from the branch in the project's own checkout, by content. Nothing where another branch is
/// checked out there: that is a person's affair. What git ignores does not count.
pub fn uncommitted(project: &Project, excluded: &[PathBuf]) -> Result<BTreeSet<String>> {
    let repository = Repository::open(project.path())?;
    if checked_out_branch(&repository)?.as_deref() != Some(project.branch()) {
        return Ok(BTreeSet::new());
    }
    let head = match tip(&repository, &project.branch_ref())? {
        Some(commit) => Some(repository.find_commit(commit)?.tree()?),
        None => None,
    };
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
    let mut found = BTreeSet::new();
    let index = repository.index()?;
    for entry in repository.statuses(Some(&mut options))?.iter() {
        let path = as_path(entry.path_bytes());
        // A folder is a repository of its own, which is no part of this one.
        let is_folder = entry.path_bytes().ends_with(b"/");
        if is_folder || excluded.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let own = index.get_path(path, 0);
        if own.is_some_and(|entry| filter::is_left_out(&entry))
            && !files::exists(&project.path().join(path))
        {
            continue;
        }
        if let Some(name) = filter::of(&repository, path)? {
            if let (true, Some(head)) = (project.filters().allow(&name), &head)
                && files::exists(&project.path().join(path))
            {
                let of_head = content::index_for_git(head)?;
                let now = project.filters().clean(&repository, project.path(), of_head, &[path])?;
                let now = now.get(path).map(|(id, mode)| digest(*mode, *id));
                if now != committed(Some(head), path)? {
                    found.insert(name_of(entry.path_bytes()));
                }
            }
            continue;
        }
        if is_changed(&repository, head.as_ref(), project.path(), path)? {
            found.insert(name_of(entry.path_bytes()));
        }
    }
    Ok(found)
}

/// Whether a file of the checkout is another than the branch's version. What the branch does not have is not read: it may
/// be large, or somebody else's. Of what cannot be read nobody knows that it is the same.
fn is_changed(
    repository: &Repository,
    head: Option<&Tree<'_>>,
    checkout: &Path,
    path: &Path,
) -> Result<bool> {
    let full = checkout.join(path);
    let found = match files::symlink_metadata(&full) {
        Ok(found) => Some(found).filter(|found| !found.is_dir()),
        Err(error)
            if error.is_missing() || error.source.kind() == std::io::ErrorKind::NotADirectory =>
        {
            None
        }
        Err(error) => return Err(error.into()),
    };
    let (found, (mode, id)) = match (found, committed_blob(head, path)?) {
        (Some(found), Some(blob)) => (found, blob),
        (found, blob) => return Ok(found.is_some() || blob.is_some()),
    };
    let (size, _) = repository.odb()?.read_header(id)?;
    if found.is_file() && found.len() != size as u64 {
        return Ok(true);
    }
    Ok(digest_of(&full, &found).map_or(true, |own| own != digest(mode, id)))
}

/// Mode and content of a file.
fn digest_of(path: &Path, found: &std::fs::Metadata) -> Result<String> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt as _;

    let (mode, bytes) = if found.is_symlink() {
        (MODE_LINK, files::read_link(path)?.as_os_str().as_bytes().to_vec())
    } else if found.permissions().mode() & 0o100 != 0 {
        (MODE_PROGRAM, files::read(path)?)
    } else {
        (MODE_FILE, files::read(path)?)
    };
    Ok(digest(mode, Oid::hash_object(ObjectType::Blob, &bytes)?))
}

/// The same of the branch's version; none where it has none.
fn committed(head: Option<&Tree<'_>>, path: &Path) -> Result<Option<String>> {
    Ok(committed_blob(head, path)?.map(|(mode, id)| digest(mode, id)))
}

fn committed_blob(head: Option<&Tree<'_>>, path: &Path) -> Result<Option<(u32, Oid)>> {
    let Some(tree) = head else {
        return Ok(None);
    };
    match tree.get_path(path) {
        Ok(entry) if entry.kind() == Some(ObjectType::Blob) => {
            let mode = u32::try_from(entry.filemode()).unwrap_or(MODE_FILE);
            Ok(Some((mode, entry.id())))
        }
        Ok(_) => Ok(None),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn digest(mode: u32, content: Oid) -> String {
    format!("{mode:o} {content}")
}

/// The commits that the branch got since, oldest first, whoever made them.
fn commits_since(
    project: &Project,
    baseline: &GitBaseline,
    sprint: &SprintId,
) -> Result<Vec<SprintCommit>> {
    let repository = project.repository()?;
    let mut walk = repository.revwalk()?;
    walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::REVERSE)?;
    walk.push(project.head()?.0)?;
    // The older runtime wrote the word HEAD where there was no commit yet.
    if !baseline.head_sha.is_empty() && baseline.head_sha != "HEAD" {
        let from: super::CommitId = baseline.head_sha.parse()?;
        walk.hide(from.0)?;
    }
    let mut commits = Vec::new();
    for id in walk {
        let commit = repository.find_commit(id?)?;
        let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
        let subject = message.lines().next().unwrap_or_default().to_owned();
        let sha = commit.id().to_string();
        commits.push(SprintCommit {
            short_sha: sha.chars().take(SHORT).collect(),
            sprint_tagged: subject.contains(sprint.as_str()),
            sha,
            subject,
        });
    }
    Ok(commits)
}

fn is_gone(project: &Project) -> bool {
    Repository::open(project.path()).is_err_and(|error| error.code() == ErrorCode::NotFound)
}
