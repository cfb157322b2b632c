//! Bringing a candidate to the project's branch.

use std::collections::BTreeSet;

use git2::{
    Blob, ErrorCode, ObjectType, Oid, Repository, RepositoryState, Tree, WorktreeLockStatus,
};
use serde::{Deserialize, Serialize};

use super::lock::{self, IndexLock};
use super::path_name::path_of;
use super::project::checked_out_branch;
use super::refs::{self, Update};
use super::replace::Move;
use super::worktree::is_own_admin;
use super::{CommitId, GitError, Project, Result, tree_diff};
use crate::domain::evidence::Candidate;
use crate::platform::files;

/// A fast-forward that has not happened yet. Goes into the effect's `Started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedMerge {
    /// The full name of the branch's ref.
    pub branch: String,
    /// Where it must be for this to happen.
    pub old: CommitId,
    /// Where it goes.
    pub new: CommitId,
}

/// How a merge ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The branch has the commit, and a checkout of it has the files.
    Merged {
        /// Paths that a person edited between a crash and its repair: left as they are, and thus shown by
        /// `git status` as changed. Empty otherwise.
        kept: Vec<String>,
    },
    /// Nothing was touched: the branch is no longer where the candidate grew from.
    BranchMoved {
        /// Where it is now.
        head: CommitId,
    },
    /// Nothing was touched: a person's uncommitted work in the checked-out branch stands in the way.
    PersonEdits {
        /// In these paths.
        paths: Vec<String>,
    },
}

/// What reflogs say about it.
const REASON: &str = "teams: fast-forward";

/// A checkout of the branch.
struct Checkout {
    git_dir: std::path::PathBuf,
    root: std::path::PathBuf,
    state: RepositoryState,
}

/// Computes the fast-forward that brings candidates to the branch, each of which stands on the one before it.
///
/// # Errors
/// Where a commit or what it writes cannot be read, where it does not stand directly on what is before it, or undoes
/// what one before it does in a file that it does not say that it writes.
pub fn plan_merge(project: &Project, candidates: &[Candidate]) -> Result<PlannedMerge> {
    let repository = project.repository()?;
    let mut range = None;
    for candidate in candidates {
        let (base, new): (CommitId, CommitId) =
            (candidate.base.parse()?, candidate.commit.parse()?);
        let (old, tip) = range.unwrap_or((base, base));
        let parent = repository.find_commit(new.0)?.parent_id(0)?;
        if parent != tip.0 || base != tip {
            return Err(GitError::PlanMismatch {
                planned: tip.to_string(),
                actual: parent.to_string(),
            });
        }
        range = Some((old, new));
    }
    let (old, new) = range.ok_or(GitError::NothingToMerge)?;
    readable(&repository, candidates)?;
    undone(&repository, candidates)?;
    Ok(PlannedMerge { branch: project.branch_ref(), old, new })
}

/// Looks that the branch has these candidates, which have just landed, with all that they change: nobody assumes it.
///
/// # Errors
/// [`GitError::Lost`] where it has not, or where a commit or the branch is missing.
pub fn verify_landed(project: &Project, candidates: &[Candidate]) -> Result<()> {
    let repository = project.repository()?;
    let branch = project.branch_ref();
    let head = super::project::tip(&repository, &branch)?;
    let head = head.ok_or(GitError::MissingBranch { branch })?;
    for candidate in candidates {
        let commit: CommitId = candidate.commit.parse()?;
        if head != commit.0 && !repository.graph_descendant_of(head, commit.0)? {
            return Err(lost(
                candidate,
                candidate.paths.iter().map(|it| it.path.clone()).collect(),
            ));
        }
    }
    undone(&repository, candidates)
}

/// The error that names what of a candidate cannot be read, where that may be why something failed.
pub(super) fn name_damage(project: &Project, candidate: &Candidate, error: GitError) -> GitError {
    let looked = project.repository().and_then(|it| readable(&it, std::slice::from_ref(candidate)));
    if let Err(damaged @ GitError::Damaged { .. }) = looked { damaged } else { error }
}

/// Looks that what candidates write can be read.
fn readable(repository: &Repository, candidates: &[Candidate]) -> Result<()> {
    for candidate in candidates {
        let tree = repository.find_commit(candidate.commit.parse::<CommitId>()?.0)?.tree()?;
        for path in candidate.paths.iter().map(|changed| &changed.path) {
            let damaged = |object: Oid, error: &git2::Error| GitError::Damaged {
                commit: candidate.commit.clone(),
                path: path.clone(),
                object: object.to_string(),
                reason: error.message().to_owned(),
            };
            let entry = match tree.get_path(&path_of(path)) {
                Ok(entry) => entry,
                // It is deleted.
                Err(error) if error.code() == ErrorCode::NotFound => continue,
                Err(error) => return Err(damaged(tree.id(), &error)),
            };
            if entry.kind() == Some(ObjectType::Blob) {
                let found = repository.find_blob(entry.id());
                found.map_err(|error| damaged(entry.id(), &error))?;
            }
        }
    }
    Ok(())
}

/// Looks that each candidate changes what it says that it does and nothing else, and that its files are at the last commit
/// what they are at its own, but for those that a later candidate says that it writes.
fn undone(repository: &Repository, candidates: &[Candidate]) -> Result<()> {
    let tree = |candidate: &Candidate| -> Result<Tree<'_>> {
        Ok(repository.find_commit(candidate.commit.parse::<CommitId>()?.0)?.tree()?)
    };
    let Some(last) = candidates.last() else { return Ok(()) };
    let end = tree(last)?;
    let (mut written, mut foreign) = (BTreeSet::new(), None);
    for candidate in candidates.iter().rev() {
        let own = tree(candidate)?;
        let base = repository.find_commit(candidate.base.parse::<CommitId>()?.0)?.tree()?;
        let known: BTreeSet<&str> = candidate.paths.iter().map(|it| it.path.as_str()).collect();
        let changed = tree_diff::changes(repository, &base, &own)?.into_iter().map(|it| it.path);
        let more: Vec<String> = changed.filter(|path| !known.contains(path.as_str())).collect();
        if !more.is_empty() {
            foreign
                .get_or_insert(GitError::Foreign { commit: candidate.commit.clone(), paths: more });
        }
        let paths = candidate.paths.iter().map(|changed| changed.path.as_str());
        let is_lost =
            |path: &&str| !written.contains(path) && entry(&own, path) != entry(&end, path);
        let mut paths_lost: Vec<String> =
            paths.clone().filter(is_lost).map(str::to_owned).collect();
        for path in paths.clone().filter(|path| written.contains(path)) {
            if is_undone(repository, (&base, &own, &end), path) {
                paths_lost.push(path.to_owned());
            }
        }
        if !paths_lost.is_empty() {
            return Err(lost(candidate, paths_lost));
        }
        written.extend(paths);
    }
    foreign.map_or(Ok(()), Err)
}

/// Whether a file that a later change wrote as well has lost all lines that an earlier one brought to it: what a merge put
/// onto that one has them, and what was built on it may have changed some.
fn is_undone(
    repository: &Repository,
    (base, own, end): (&Tree<'_>, &Tree<'_>, &Tree<'_>),
    path: &str,
) -> bool {
    let blob =
        |tree: &Tree<'_>| repository.find_blob(tree.get_path(&path_of(path)).ok()?.id()).ok();
    let (Some(base), Some(own), Some(end)) = (blob(base), blob(own), blob(end)) else {
        return false;
    };
    if own.id() == end.id() {
        return false;
    }
    let lines = |blob: &Blob<'_>| -> BTreeSet<Vec<u8>> {
        blob.content().split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    let (base, own, end) = (lines(&base), lines(&own), lines(&end));
    let mut brought = own.difference(&base).peekable();
    brought.peek().is_some() && brought.all(|line| !end.contains(line))
}

/// What stands at a path: the object and its mode. A folder is nothing of its own.
pub(super) fn entry(tree: &Tree<'_>, path: &str) -> Option<(Oid, i32)> {
    let entry = tree.get_path(&path_of(path)).ok()?;
    (entry.kind() != Some(ObjectType::Tree)).then(|| (entry.id(), entry.filemode()))
}

fn lost(candidate: &Candidate, paths: Vec<String>) -> GitError {
    GitError::Lost { commit: candidate.commit.clone(), paths }
}

/// Does the planned merge, or finishes it after a crash: the ref first, by compare-and-set, then files and
/// index of the checkout, all under git's own index lock, so that no person's command sees it half done.
pub fn apply_merge(project: &Project, plan: &PlannedMerge) -> Result<MergeOutcome> {
    let repository = project.repository()?;
    let Some(checkout) = find_checkout(project, &repository, &plan.branch)? else {
        // Whoever is about to check the branch out holds their index while they write its files as they are now.
        for other in checkouts(project, &repository)? {
            lock::refuse_held(other.path())?;
        }
        return Ok(match move_ref(project, &repository, plan)? {
            // Somebody was faster with a checkout of it as it was.
            None if find_checkout(project, &repository, &plan.branch)?.is_some() => {
                return apply_merge(project, plan);
            }
            None => MergeOutcome::Merged { kept: Vec::new() },
            Some(head) => MergeOutcome::BranchMoved { head },
        });
    };
    let in_progress = || GitError::OperationInProgress { path: checkout.root.clone() };
    if checkout.state != RepositoryState::Clean
        && !IndexLock::is_left(&checkout.git_dir)
        && current(&repository, plan)? == plan.old
    {
        // Seen without the lock, in which a command of theirs would not run.
        return Err(in_progress());
    }
    let _lock = IndexLock::take(&checkout.git_dir)?;
    // A command of theirs may have ended in between.
    let now = find_checkout(project, &repository, &plan.branch)?;
    let Some(now) = now.filter(|now| now.git_dir == checkout.git_dir) else {
        return Err(lock::held(&checkout.git_dir));
    };
    let is_clean = now.state == RepositoryState::Clean;
    let at = current(&repository, plan)?;
    if at != plan.old && at != plan.new {
        // Somebody may have gone on from our commit since.
        if !repository.graph_descendant_of(at.0, plan.new.0)? {
            return Ok(MergeOutcome::BranchMoved { head: at });
        }
    }
    if at == plan.old && !is_clean {
        return Err(in_progress());
    }
    let old = repository.find_commit(plan.old.0)?.tree()?;
    let new = repository.find_commit(plan.new.0)?.tree()?;
    let head_log = checkout.git_dir.join("logs/HEAD");
    let root = checkout.root.clone();
    let change = Move::new(project, checkout.git_dir, checkout.root, &old, &new)?;
    if at != plan.old && at != plan.new {
        return match change.abandon()? {
            paths if paths.is_empty() => Ok(MergeOutcome::Merged { kept: paths }),
            paths => Err(GitError::LeftBehind { paths }),
        };
    }
    change.stage()?;
    let mut survey = match change.survey() {
        Ok(survey) => survey,
        Err(error) => {
            change.unstage()?;
            return Err(error);
        }
    };
    if at == plan.old {
        if !survey.edited.is_empty() {
            change.unstage()?;
            return Ok(MergeOutcome::PersonEdits { paths: survey.edited.into_iter().collect() });
        }
        if let Err(error) = change.refuse_read_only(&survey) {
            change.unstage()?;
            return Err(error);
        }
        if let Some(head) = move_ref(project, &repository, plan)? {
            change.unstage()?;
            return Ok(MergeOutcome::BranchMoved { head });
        }
        let head = Repository::open(&root)?.head().ok().and_then(|head| head.target());
        if head != Some(plan.new.0) {
            // A branch is begun without git's lock: they are on one of their own by now, and their files are of that.
            change.unstage()?;
            return Ok(MergeOutcome::Merged { kept: Vec::new() });
        }
        refs::append_log(&head_log, Some(plan.old.0), plan.new.0, REASON)?;
    }
    change.finish(&mut survey)?;
    Ok(MergeOutcome::Merged { kept: survey.edited.into_iter().collect() })
}

/// Whether the branch has the planned commit, whatever became of the files.
pub fn has_landed(project: &Project, plan: &PlannedMerge) -> Result<bool> {
    let repository = project.repository()?;
    let at = current(&repository, plan)?;
    Ok(at == plan.new || repository.graph_descendant_of(at.0, plan.new.0)?)
}

/// Whether a planned merge has begun to land, or has landed: before that nothing of it is anywhere.
pub fn is_landing(project: &Project, plan: &PlannedMerge) -> Result<bool> {
    if has_landed(project, plan)? {
        return Ok(true);
    }
    let repository = project.repository()?;
    if current(&repository, plan)? == plan.old {
        // Files follow the ref. What a crash left before that is nothing but a lock in everybody's way, also in that of
        // who has begun a branch of their own since.
        for checkout in checkouts(project, &repository)? {
            if IndexLock::is_left(checkout.path()) {
                drop(IndexLock::take(checkout.path())?);
            }
        }
        return Ok(false);
    }
    Ok(match find_checkout(project, &repository, &plan.branch) {
        Ok(checkout) => checkout.is_some_and(|it| IndexLock::is_left(&it.git_dir)),
        // It would have had to wait for that.
        Err(GitError::OperationInProgress { .. }) => false,
        Err(error) => return Err(error),
    })
}

/// Moves the ref from old to new; says where it is where it is at neither and does not contain new.
fn move_ref(
    project: &Project,
    repository: &Repository,
    plan: &PlannedMerge,
) -> Result<Option<CommitId>> {
    let (old, new) = (plan.old.0, plan.new.0);
    match refs::set(project, repository, &plan.branch, Some(old), new, REASON)? {
        Update::Done => Ok(None),
        Update::Elsewhere(Some(head)) => {
            let contained = repository.graph_descendant_of(head, new)?;
            Ok((!contained).then_some(CommitId(head)))
        }
        Update::Elsewhere(None) => Err(GitError::MissingBranch { branch: plan.branch.clone() }),
    }
}

fn current(repository: &Repository, plan: &PlannedMerge) -> Result<CommitId> {
    super::project::tip(repository, &plan.branch)?
        .map(CommitId)
        .ok_or_else(|| GitError::MissingBranch { branch: plan.branch.clone() })
}

/// A person's checkouts: the project's folder, its main folder, and worktrees.
pub(super) fn checkouts(project: &Project, repository: &Repository) -> Result<Vec<Repository>> {
    let mut candidates = vec![Repository::open(project.path())?];
    if let Ok(main) = Repository::open(project.common_dir()) {
        candidates.push(main);
    }
    for name in repository.worktrees()?.iter().flatten().flatten() {
        // It may be gone meanwhile, and in ours an agent may have written whatever it liked.
        let Ok(found) = repository.find_worktree(name) else { continue };
        if is_own_admin(name, found.path()) {
            continue;
        }
        if found.validate().is_err() {
            continue;
        }
        match Repository::open_from_worktree(&found) {
            // Another repository may lie there by now.
            Ok(opened) if is_of(project, &opened) => candidates.push(opened),
            Ok(_) => {}
            Err(error) if has_branch(project, &found) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, name, "a worktree of the project cannot be opened")
            }
        }
    }
    Ok(candidates)
}

fn is_of(project: &Project, opened: &Repository) -> bool {
    let common = files::canonicalize(opened.commondir()).ok();
    common.is_some() && common == files::canonicalize(project.common_dir()).ok()
}

/// Refuses where the branch is checked out on a disk that is not there at the moment, as a person's lock says: its files
/// would stay behind.
fn refuse_away(project: &Project, repository: &Repository) -> Result<()> {
    for name in repository.worktrees()?.iter().flatten().flatten() {
        let Ok(found) = repository.find_worktree(name) else { continue };
        let is_locked = || matches!(found.is_locked(), Ok(WorktreeLockStatus::Locked(_)));
        if !is_own_admin(name, found.path())
            && found.validate().is_err()
            && is_locked()
            && has_branch(project, &found)
        {
            return Err(GitError::WorktreeAway { path: found.path().to_owned() });
        }
    }
    Ok(())
}

/// Whether a worktree that cannot be opened has the project's branch checked out.
fn has_branch(project: &Project, worktree: &git2::Worktree) -> bool {
    let admin = worktree
        .name()
        .ok()
        .flatten()
        .map(|name| project.common_dir().join("worktrees").join(name));
    let head = admin.and_then(|admin| files::read_text_if_present(&admin.join("HEAD")).ok()?);
    let named = format!("ref: refs/heads/{}", project.branch());
    head.is_some_and(|head| head.trim() == named)
}

/// The branch that a rebase in a checkout is about: while it goes on, nothing is checked out there, and its end moves the
/// branch.
pub(super) fn rebased_branch(checkout: &Repository) -> Option<String> {
    let mut found = ["rebase-merge/head-name", "rebase-apply/head-name"]
        .into_iter()
        .filter_map(|name| files::read_text_if_present(&checkout.path().join(name)).ok()?);
    found.next().map(|name| name.trim().to_owned())
}

/// Where the branch is checked out.
fn find_checkout(
    project: &Project,
    repository: &Repository,
    branch: &str,
) -> Result<Option<Checkout>> {
    refuse_away(project, repository)?;
    for found in checkouts(project, repository)? {
        let named = checked_out_branch(&found)?.map(|name| format!("refs/heads/{name}"));
        if rebased_branch(&found).as_deref() == Some(branch) {
            let path = found.workdir().unwrap_or(found.path()).to_owned();
            return Err(GitError::OperationInProgress { path });
        }
        if let (Some(root), true) = (found.workdir(), named.as_deref() == Some(branch)) {
            return Ok(Some(Checkout {
                git_dir: files::canonicalize(found.path())?,
                root: files::canonicalize(root)?,
                state: found.state(),
            }));
        }
    }
    Ok(None)
}
