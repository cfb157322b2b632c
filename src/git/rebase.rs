//! Putting a candidate onto the branch's new head.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Oid, Repository, Tree};

use super::commit::{move_team_branch, refuse_person};
use super::project::tip;
use super::worktree::lost_ref;
use super::{CommitId, GitError, Project, Result, conflict, diff, merge, refs, sign, tree_diff};
use crate::domain::config::Signing;
use crate::domain::conflict::Conflict;
use crate::domain::evidence::{Candidate, ChangeKind, ChangedPath};
use crate::domain::ids::RequestId;

/// What came of a rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebased {
    /// The same change as a commit on the new base; its checks must run again. The files of the worktree follow when
    /// somebody opens it.
    Moved(Candidate),
    /// The new base already has all of it. The worktree stands at the new base.
    NothingLeft,
    /// A conflict with another candidate that is to be its base, or something that both do: nothing was touched.
    Clash,
    /// Both sides changed the same lines or the same file's existence. The worktree stands at the new base with
    /// what both wrote marked in its files, so that what is committed next grows from that base. The candidate
    /// is kept under `refs/teams/lost/<its id>`.
    Conflict(Conflict),
}

/// Puts the candidate onto `new_base` by a three-way merge of trees. Where that does not work out, neither side is
/// chosen here: the same commit is made with the conflicts marked in it, which is no candidate.
/// Message, author and dates stay, so the result's id is determined by the arguments and repeating this
/// after a crash gives the same commit. Content of the request's worktree under `root` that is neither the old nor the
/// new candidate's is kept under `refs/teams/lost/<request>-rebase` when the files follow.
pub fn rebase(
    project: &Project,
    place: (&RequestId, &Path),
    candidate: &Candidate,
    new_base: CommitId,
) -> Result<Rebased> {
    put(project, place, candidate, new_base, false)
        .map_err(|error| merge::name_damage(project, candidate, error))
}

/// The same onto a commit that is not on the branch yet. Nobody has to solve anything yet.
pub fn compose(
    project: &Project,
    place: (&RequestId, &Path),
    candidate: &Candidate,
    onto: CommitId,
) -> Result<Rebased> {
    put(project, place, candidate, onto, true)
}

/// The commits that changes come to, put onto `head` one on the other. One that touches a path of what is before it is
/// left out. Nothing points at them, and no worktree is touched.
pub fn chain(
    project: &Project,
    head: CommitId,
    changes: &[Candidate],
) -> Result<Vec<Option<CommitId>>> {
    let repository = project.repository()?;
    let mut ahead = head;
    let mut commits = Vec::new();
    for change in changes {
        let (base, own): (CommitId, CommitId) = (change.base.parse()?, change.commit.parse()?);
        let commit = if base == ahead { Some(own) } else { on(&repository, base, own, ahead)? };
        ahead = commit.unwrap_or(ahead);
        commits.push(commit);
    }
    Ok(commits)
}

fn on(
    repository: &Repository,
    base: CommitId,
    own: CommitId,
    onto: CommitId,
) -> Result<Option<CommitId>> {
    let commit = repository.find_commit(own.0)?;
    let onto = repository.find_commit(onto.0)?;
    let (base, ahead) = (repository.find_commit(base.0)?.tree()?, onto.tree()?);
    let Some(tree) = put_apart(repository, &base, &ahead, &commit.tree()?)? else {
        return Ok(None);
    };
    let message = String::from_utf8_lossy(commit.message_bytes());
    let (author, committer) = (commit.author(), commit.committer());
    let made = repository.commit(None, &author, &committer, &message, &tree, &[&onto])?;
    Ok(Some(CommitId(made)))
}

fn put(
    project: &Project,
    (request, root): (&RequestId, &Path),
    candidate: &Candidate,
    new_base: CommitId,
    onto_candidate: bool,
) -> Result<Rebased> {
    let (old_base, old): (CommitId, CommitId) =
        (candidate.base.parse()?, candidate.commit.parse()?);
    let mut worktree = project.worktree_unopened(request, root)?;
    let repository = project.repository()?;
    refuse_person(&worktree, &repository)?;
    let commit = repository.find_commit(old.0)?;
    let base_tree = repository.find_commit(old_base.0)?.tree()?;
    let onto = repository.find_commit(new_base.0)?;
    let onto_tree = onto.tree()?;
    let mut paths = Vec::new();
    let apart = put_apart(&repository, &base_tree, &onto_tree, &commit.tree()?)?;
    let meets = apart.is_none();
    let tree = if let Some(tree) = apart {
        tree
    } else {
        let mut merged = repository.merge_trees(&base_tree, &onto_tree, &commit.tree()?, None)?;
        let branch = project.branch();
        let marked = conflict::mark(&repository, &merged, &onto_tree, branch, request)?;
        if marked.is_some() && onto_candidate {
            return Ok(Rebased::Clash);
        }
        if let Some(marked) = marked {
            (merged, paths) = marked;
            keep(project, &repository, old.0)?;
        }
        repository.find_tree(merged.write_tree_to(&repository)?)?
    };
    let changed = tree_diff::changes(&repository, &onto_tree, &tree)?;
    if paths.is_empty() {
        only_own(candidate, &changed, &base_tree)?;
    }
    let nothing_left = tree.id() == onto_tree.id();
    let trees = (&base_tree, &onto_tree, &commit.tree()?, &tree);
    if onto_candidate && (nothing_left || meets && !comes_back(project, &repository, trees)?) {
        return Ok(Rebased::Clash);
    }
    let moved = if nothing_left {
        onto.id()
    } else {
        let message = String::from_utf8_lossy(commit.message_bytes());
        let (author, committer) = (commit.author(), commit.committer());
        match sign::of(&commit) {
            Signing::Off => {
                repository.commit(None, &author, &committer, &message, &tree, &[&onto])?
            }
            signing @ (Signing::Ssh | Signing::Gpg) => sign::commit(
                project,
                signing,
                (&author, &committer),
                &message,
                (tree.id(), onto.id()),
            )?,
        }
    };
    move_team_branch(&worktree, &repository, moved, Some(old))?;
    if paths.is_empty() && !nothing_left {
        worktree.follow_later(old, CommitId(moved))?;
    } else {
        let mut worktree = project.worktree(request, root)?;
        worktree.bring_files(&repository, commit.tree_id(), tree.id())?;
        worktree.rebase_onto(new_base)?;
    }
    if !paths.is_empty() {
        return Ok(Rebased::Conflict(Conflict {
            head: new_base.to_string(),
            commit: candidate.commit.clone(),
            base: candidate.base.clone(),
            excerpt: conflict::excerpt(&repository, &tree, &paths, (project.branch(), request))?,
            paths,
            ..Conflict::default()
        }));
    }
    if nothing_left {
        return Ok(Rebased::NothingLeft);
    }
    let (added_lines, removed_lines) = diff::line_counts(&repository, &onto_tree, &tree)?;
    Ok(Rebased::Moved(Candidate {
        commit: moved.to_string(),
        base: new_base.to_string(),
        paths: changed,
        subject: candidate.subject.clone(),
        added_lines,
        removed_lines,
        tree: tree.id().to_string(),
        excerpt: String::new(),
        marks: Vec::new(),
    }))
}

/// The change on `onto`, where no path of it lies at, in or around one that `onto` changed: what a merge of the whole
/// trees gives then, in the time that the change takes and not the project. `None` where it has to be merged.
fn put_apart<'r>(
    repository: &'r Repository,
    base: &Tree<'_>,
    onto: &Tree<'_>,
    own: &Tree<'_>,
) -> Result<Option<Tree<'r>>> {
    let (gone, written) = tree_diff::paths_between(repository, base, own)?;
    let (others_gone, others_written) = tree_diff::paths_between(repository, base, onto)?;
    let others: BTreeSet<PathBuf> = others_gone.into_iter().chain(others_written).collect();
    let meets = |path: &PathBuf| {
        let inside = others.range(path.clone()..).next().is_some_and(|it| it.starts_with(path));
        inside || path.ancestors().any(|folder| others.contains(folder))
    };
    if gone.iter().chain(&written).any(meets) {
        return Ok(None);
    }
    let mut update = TreeUpdateBuilder::new();
    for path in &gone {
        update.remove(path.as_path());
    }
    for path in &written {
        let entry = own.get_path(path)?;
        let mode = match u32::try_from(entry.filemode()) {
            Ok(0o100_644) => FileMode::Blob,
            Ok(0o100_755) => FileMode::BlobExecutable,
            Ok(0o120_000) => FileMode::Link,
            Ok(0o160_000) => FileMode::Commit,
            _ => return Ok(None),
        };
        update.upsert(path.as_path(), entry.id(), mode);
    }
    // What takes the place of a folder, or is a folder now, is for a merge.
    let Ok(tree) = update.create_updated(repository, onto) else { return Ok(None) };
    Ok(Some(repository.find_tree(tree)?))
}

/// Whether a change is whole without what was composed before it, on the branch as it is: what both do would be gone
/// with the other one.
fn comes_back(
    project: &Project,
    repository: &Repository,
    (base, onto, old, new): (&Tree<'_>, &Tree<'_>, &Tree<'_>, &Tree<'_>),
) -> Result<bool> {
    let head = repository.find_commit(project.head()?.0)?.tree()?;
    let mut alone = repository.merge_trees(base, &head, old, None)?;
    let mut back = repository.merge_trees(onto, &head, new, None)?;
    if alone.has_conflicts() || back.has_conflicts() {
        return Ok(false);
    }
    let alone = repository.find_tree(alone.write_tree_to(repository)?)?;
    let back = repository.find_tree(back.write_tree_to(repository)?)?;
    Ok(alone.id() == back.id())
}

/// Looks that a change does nothing on its new base that it did not do on its old one. Where the base has renamed a file,
/// the change follows it.
fn only_own(candidate: &Candidate, changed: &[ChangedPath], base: &Tree<'_>) -> Result<()> {
    let is_own = |path: &str| candidate.paths.iter().any(|own| own.path == path);
    let follows = |new: &ChangedPath| {
        new.kind == ChangeKind::Modified && merge::entry(base, &new.path).is_none()
    };
    let foreign = changed.iter().filter(|new| !is_own(&new.path) && !follows(new));
    let paths: Vec<String> = foreign.map(|new| new.path.clone()).collect();
    if paths.is_empty() {
        return Ok(());
    }
    Err(GitError::Foreign { commit: candidate.commit.clone(), paths })
}

/// Keeps a commit reachable that no branch names any more.
fn keep(project: &Project, repository: &Repository, commit: Oid) -> Result<()> {
    let name = lost_ref(&commit.to_string())?;
    let before = tip(repository, &name)?;
    refs::set(project, repository, &name, before, commit, "teams: conflict")?;
    Ok(())
}
