//! What a sprint finds in the project's own checkout and what it leaves there (`spec/teams.md` 11.1, 11.2).
//!
//! The team works in worktrees of its own, so what differs in the checkout was written by people or by the
//! commands that they run. It is told apart by content: a file that differed when the sprint began belongs
//! to the sprint only if it is another one now. The older runtime compared names, and so never saw a
//! further edit of a file that was dirty before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType, Oid, Repository, StatusOptions, Tree};

use super::project::{checked_out_branch, tip};
use super::{GitError, Project, Result, TreeId, Worktree, content};
use crate::domain::effect::Inspection;
use crate::domain::ids::SprintId;
use crate::domain::sprint::{CloseoutStatus, GitBaseline, SprintCommit};
use crate::platform::files;

/// Characters of a short commit id.
const SHORT: usize = 10;
const MODE_FILE: u32 = 0o100_644;
const MODE_PROGRAM: u32 = 0o100_755;
const MODE_LINK: u32 = 0o120_000;

/// What differs in a checkout, each path with a digest of its content; blank for one that is gone.
pub type Dirty = BTreeMap<String, String>;

/// How the project stands before a sprint. `excluded` are folders relative to the project's root that are
/// no part of it: the workspace. A project whose repository is gone has a blank baseline.
pub fn baseline(project: &Project, excluded: &[PathBuf]) -> Result<GitBaseline> {
    if is_gone(project) {
        return Ok(GitBaseline::default());
    }
    let dirty = dirty(project, excluded)?;
    Ok(GitBaseline {
        repo_root: project.path().to_string_lossy().into_owned(),
        head_sha: project.head()?.to_string(),
        dirty_paths: dirty.keys().cloned().collect(),
        dirty,
    })
}

/// What a sprint left in the project. Never an error: what git cannot say is the status `failed` with its
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
        .and_then(|commits| Ok((commits, left_over(project, baseline, excluded)?)));
    match looked {
        Ok((commits, left)) => Inspection {
            status: if !left.is_empty() {
                CloseoutStatus::PendingChanges
            } else if commits.is_empty() {
                CloseoutStatus::NoNewCommits
            } else if commits.iter().any(|commit| commit.sprint_tagged) {
                CloseoutStatus::Verified
            } else {
                CloseoutStatus::WarningMissingSprintTag
            },
            commits,
            uncommitted_paths: left.into_keys().collect(),
            message: String::new(),
        },
        Err(error) => plain(CloseoutStatus::Failed, &error.to_string()),
    }
}

/// What differs in the checkout now and did not so at the baseline.
pub fn left_over(project: &Project, baseline: &GitBaseline, excluded: &[PathBuf]) -> Result<Dirty> {
    let mut now = dirty(project, excluded)?;
    now.retain(|path, digest| match baseline.dirty.get(path) {
        Some(before) => before != digest,
        // A baseline of the older runtime has names alone: what was dirty then is not ours to judge.
        None => !baseline.dirty_paths.contains(path),
    });
    Ok(now)
}

/// The named leftovers as they are now.
///
/// # Errors
/// [`GitError::ChangedMeanwhile`] names the first that is a leftover no more.
pub fn pick(
    project: &Project,
    baseline: &GitBaseline,
    paths: &[String],
    excluded: &[PathBuf],
) -> Result<Dirty> {
    let mut left = left_over(project, baseline, excluded)?;
    paths
        .iter()
        .map(|path| {
            let found = left.remove_entry(path);
            found.ok_or_else(|| GitError::ChangedMeanwhile { path: path.clone() })
        })
        .collect()
}

/// Copies exactly these paths, as they were seen, from the project's checkout into a worktree, deletions
/// too; everything else there is as at its base. Repeating it gives the same.
///
/// # Errors
/// [`GitError::ChangedMeanwhile`] names the first path that is not as it was seen.
pub fn collect(worktree: &Worktree, seen: &Dirty, excluded: &[PathBuf]) -> Result<()> {
    let project = worktree.project();
    let changed = |path: &str| GitError::ChangedMeanwhile { path: path.to_owned() };
    let now = dirty(project, excluded)?;
    if let Some((path, _)) = seen.iter().find(|(path, digest)| now.get(*path) != Some(digest)) {
        return Err(changed(path));
    }
    let base = project.repository()?.find_commit(worktree.base().0)?.tree_id();
    worktree.reset_to(TreeId(base))?;
    let target = worktree.path();
    // What goes comes first: a file may have become a folder.
    for (path, _) in seen.iter().filter(|(_, digest)| digest.is_empty()) {
        match files::symlink_metadata(&target.join(path)) {
            Ok(found) if !found.is_dir() => content::remove(&target, Path::new(path))?,
            Ok(_) | Err(_) => {}
        }
    }
    for (path, digest) in seen.iter().filter(|(_, digest)| !digest.is_empty()) {
        let to = target.join(path);
        if let Some(folder) = Path::new(path).parent() {
            make_folders(&target, folder, path)?;
        }
        files::remove_any(&to)?;
        files::copy_any(&project.path().join(path), &to)?;
        if digest_of(&to)?.as_ref() != Some(digest) {
            return Err(changed(path));
        }
    }
    Ok(())
}

/// Makes the folders that a path needs; a link on the way could lead anywhere and is refused.
fn make_folders(root: &Path, folder: &Path, path: &str) -> Result<()> {
    let mut here = root.to_owned();
    for part in folder.components() {
        here.push(part);
        match files::symlink_metadata(&here) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(GitError::ForbiddenPath {
                    path: path.to_owned(),
                    reason: "a folder of its path is a file or a link in the worktree",
                });
            }
            Err(_) => files::create_dir_all(&here)?,
        }
    }
    Ok(())
}

/// What differs from the branch in the project's own checkout, by content. Nothing where another branch is
/// checked out there: that is a person's affair. What git ignores does not count.
pub fn dirty(project: &Project, excluded: &[PathBuf]) -> Result<Dirty> {
    let repository = Repository::open(project.path())?;
    if checked_out_branch(&repository)?.as_deref() != Some(project.branch()) {
        return Ok(Dirty::new());
    }
    let head = match tip(&repository, &project.branch_ref())? {
        Some(commit) => Some(repository.find_commit(commit)?.tree()?),
        None => None,
    };
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
    let mut found = Dirty::new();
    for entry in repository.statuses(Some(&mut options))?.iter() {
        let Ok(path) = std::str::from_utf8(entry.path_bytes()) else {
            // It could stand in no record and in no commit of ours.
            tracing::warn!("a file whose name is not UTF-8 is left out of account");
            continue;
        };
        let skipped = excluded.iter().any(|folder| Path::new(path).starts_with(folder));
        // A folder is a repository of its own, which is no part of this one.
        if skipped || path.ends_with('/') {
            continue;
        }
        let now = digest_of(&project.path().join(path))?;
        if now != committed(head.as_ref(), path)? {
            found.insert(path.to_owned(), now.unwrap_or_default());
        }
    }
    Ok(found)
}

/// Mode and content of a file; none where there is none.
fn digest_of(path: &Path) -> Result<Option<String>> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt as _;

    let found = match files::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => found,
        Ok(_) => return Ok(None),
        Err(error)
            if error.is_missing() || error.source.kind() == std::io::ErrorKind::NotADirectory =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let (mode, bytes) = if found.is_symlink() {
        (MODE_LINK, files::read_link(path)?.as_os_str().as_bytes().to_vec())
    } else if found.permissions().mode() & 0o100 != 0 {
        (MODE_PROGRAM, files::read(path)?)
    } else {
        (MODE_FILE, files::read(path)?)
    };
    Ok(Some(digest(mode, Oid::hash_object(ObjectType::Blob, &bytes)?)))
}

/// The same of the branch's version.
fn committed(head: Option<&Tree<'_>>, path: &str) -> Result<Option<String>> {
    let Some(tree) = head else {
        return Ok(None);
    };
    match tree.get_path(Path::new(path)) {
        Ok(entry) if entry.kind() == Some(ObjectType::Blob) => {
            let mode = u32::try_from(entry.filemode()).unwrap_or(MODE_FILE);
            Ok(Some(digest(mode, entry.id())))
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
