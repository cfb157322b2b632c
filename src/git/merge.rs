//! Bringing a candidate to the project's branch.

use git2::{Repository, RepositoryState};
use serde::{Deserialize, Serialize};

use super::lock::IndexLock;
use super::project::checked_out_branch;
use super::refs::{self, Update};
use super::replace::Move;
use super::{CommitId, GitError, Project, Result, content};
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
/// Where a commit is missing, or does not stand directly on what is before it.
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
    Ok(PlannedMerge { branch: project.branch_ref(), old, new })
}

/// The paths of a candidate whose change the branch does not have although it has the commit, or all of them where it
/// has not even that. None is what has to be; nobody assumes it.
pub fn missing(project: &Project, candidate: &Candidate) -> Result<Vec<String>> {
    let repository = project.repository()?;
    let commit = repository.find_commit(candidate.commit.parse::<CommitId>()?.0)?;
    let branch = project.branch_ref();
    let head = super::project::tip(&repository, &branch)?;
    let head = head.ok_or(GitError::MissingBranch { branch })?;
    let has_it = head == commit.id() || repository.graph_descendant_of(head, commit.id())?;
    let landed = match has_it {
        true => content::changes(&repository, &commit.parent(0)?.tree()?, &commit.tree()?)?,
        false => Vec::new(),
    };
    let lost = candidate.paths.iter().filter(|changed| !landed.contains(changed));
    Ok(lost.map(|changed| changed.path.clone()).collect())
}

/// Does the planned merge, or finishes it after a crash: the ref first, by compare-and-set, then files and
/// index of the checkout, all under git's own index lock, so that no person's command sees it half done.
pub fn apply_merge(project: &Project, plan: &PlannedMerge) -> Result<MergeOutcome> {
    let repository = project.repository()?;
    let Some(checkout) = find_checkout(project, &repository, &plan.branch)? else {
        return Ok(match move_ref(project, &repository, plan)? {
            None => MergeOutcome::Merged { kept: Vec::new() },
            Some(head) => MergeOutcome::BranchMoved { head },
        });
    };
    let _lock = IndexLock::take(&checkout.git_dir)?;
    let at = current(&repository, plan)?;
    if at != plan.old && at != plan.new {
        // Somebody may have gone on from our commit since.
        return Ok(if repository.graph_descendant_of(at.0, plan.new.0)? {
            MergeOutcome::Merged { kept: Vec::new() }
        } else {
            MergeOutcome::BranchMoved { head: at }
        });
    }
    if at == plan.old && checkout.state != RepositoryState::Clean {
        return Err(GitError::OperationInProgress { path: checkout.root });
    }
    let old = repository.find_commit(plan.old.0)?.tree()?;
    let new = repository.find_commit(plan.new.0)?.tree()?;
    let head_log = checkout.git_dir.join("logs/HEAD");
    let change = Move::new(project, checkout.git_dir, checkout.root, &old, &new)?;
    change.stage()?;
    let survey = change.survey()?;
    if at == plan.old {
        if !survey.edited.is_empty() {
            change.unstage()?;
            return Ok(MergeOutcome::PersonEdits { paths: survey.edited.into_iter().collect() });
        }
        if let Some(head) = move_ref(project, &repository, plan)? {
            change.unstage()?;
            return Ok(MergeOutcome::BranchMoved { head });
        }
        refs::append_log(&head_log, Some(plan.old.0), plan.new.0, REASON)?;
    }
    change.finish(&survey)?;
    Ok(MergeOutcome::Merged { kept: survey.edited.into_iter().collect() })
}

/// Whether the branch has the planned commit, whatever became of the files.
pub fn has_landed(project: &Project, plan: &PlannedMerge) -> Result<bool> {
    let repository = project.repository()?;
    let at = current(&repository, plan)?;
    Ok(at == plan.new || repository.graph_descendant_of(at.0, plan.new.0)?)
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

/// Where the branch is checked out: in the project's folder, its main folder, or a worktree of a person's.
fn find_checkout(
    project: &Project,
    repository: &Repository,
    branch: &str,
) -> Result<Option<Checkout>> {
    let mut candidates = vec![Repository::open(project.path())?];
    if let Ok(main) = Repository::open(project.common_dir()) {
        candidates.push(main);
    }
    for name in repository.worktrees()?.iter().flatten().flatten() {
        // Ours are never on the project's branch, and an agent may have written there whatever it liked.
        if name.starts_with("teams-") {
            continue;
        }
        let found = repository.find_worktree(name)?;
        if found.validate().is_ok() {
            candidates.push(Repository::open_from_worktree(&found)?);
        }
    }
    for found in candidates {
        let named = checked_out_branch(&found)?.map(|name| format!("refs/heads/{name}"));
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
