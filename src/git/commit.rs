//! The request's work as one commit on `teams/<request>`.
//!
//! The commit always stands directly on the base: a later round replaces it (same parent, new tree), so what
//! people review and what reaches the branch is one commit a request.

use std::path::PathBuf;

use chrono_tz::Tz;
use git2::{ObjectType, Oid, Repository, Signature};
use serde::{Deserialize, Serialize};

use super::message::{MessageParts, message, request_of};
use super::path_name::path_of;
use super::project::tip;
use super::refs::{self, Update};
use super::worktree::{git_time, lost_ref};
use super::{
    CommitId, GitError, Result, TreeId, Worktree, content, diff, filter, lost, sign, tree_diff,
};
use crate::domain::config::Signing;
use crate::domain::evidence::{Candidate, ChangeKind, ChangedPath, ReportedWork};
use crate::domain::time::Timestamp;
use crate::platform::redact;

/// Who signs the team's commits, and where no commit of theirs may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRules {
    /// Author and committer name.
    pub name: String,
    /// Author and committer address.
    pub email: String,
    /// By what they are signed.
    pub sign: Signing,
    /// The zone in which their dates are told.
    pub zone: Tz,
    /// Folders relative to the project's root, such as the workspace inside the project.
    pub forbidden: Vec<PathBuf>,
}

impl Default for CommitRules {
    fn default() -> Self {
        Self {
            name: "teams".to_owned(),
            email: "teams@localhost".to_owned(),
            sign: Signing::Off,
            zone: Tz::UTC,
            forbidden: Vec::new(),
        }
    }
}

/// A commit whose id is known and which no ref names yet. Goes into the effect's `Started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCommit {
    /// Its id.
    pub commit: CommitId,
    /// Its content; already written and synced.
    pub tree: TreeId,
    /// Its one parent: the commit of the project's branch that the work grew from.
    pub base: CommitId,
    /// What `teams/<request>` named when this was planned.
    pub replaces: Option<CommitId>,
    /// The whole message.
    pub message: String,
    /// Author and committer name.
    pub name: String,
    /// Author and committer address.
    pub email: String,
    /// Author and committer date, to the second.
    pub at: Timestamp,
    /// Minutes that the date is told ahead of UTC. Plans of older builds are Korean.
    #[serde(default = "korean_minutes")]
    pub offset_minutes: i32,
    /// What differs from the base, by content.
    pub paths: Vec<ChangedPath>,
    /// Lines added.
    pub added_lines: u64,
    /// Lines removed.
    pub removed_lines: u64,
}

const fn korean_minutes() -> i32 {
    9 * 60
}

impl PlannedCommit {
    /// The candidate that applying it makes.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        Candidate {
            commit: self.commit.to_string(),
            base: self.base.to_string(),
            paths: self.paths.clone(),
            subject: self.message.lines().next().unwrap_or_default().to_owned(),
            added_lines: self.added_lines,
            removed_lines: self.removed_lines,
            tree: self.tree.to_string(),
            excerpt: String::new(),
            marks: Vec::new(),
        }
    }
}

/// Computes the commit of what was reported of the worktree, as long as its base is the same and git still has it, or
/// of its present content, of which the objects are written; `None` where that equals the base. Writes no ref.
///
/// # Errors
/// [`GitError::ForbiddenPath`] names the first path that may not be committed.
pub fn plan_commit(
    worktree: &Worktree,
    reported: Option<&ReportedWork>,
    parts: &MessageParts,
    rules: &CommitRules,
    at: Timestamp,
) -> Result<Option<PlannedCommit>> {
    let repository = worktree.project().repository()?;
    let base = worktree.base();
    let reported = reported.filter(|work| work.base == base.to_string());
    let reported = reported.and_then(|work| work.tree.parse::<TreeId>().ok());
    let tree = match reported.filter(|tree| repository.find_tree(tree.0).is_ok()) {
        Some(tree) => tree,
        None => worktree.tree_id()?,
    };
    let base_tree = repository.find_commit(base.0)?.tree()?;
    if base_tree.id() == tree.0 {
        return Ok(None);
    }
    let new_tree = repository.find_tree(tree.0)?;
    let paths = tree_diff::changes(&repository, &base_tree, &new_tree)?;
    for changed in &paths {
        refuse_forbidden(&changed.path, rules)?;
    }
    let view = worktree.view()?;
    content::know_attributes(&view, &new_tree)?;
    for changed in paths.iter().filter(|changed| changed.kind != ChangeKind::Deleted) {
        filter::refuse(&view, worktree.project().filters(), &changed.path)?;
    }
    refuse_person(worktree, &repository)?;
    let (added_lines, removed_lines) = diff::line_counts(&repository, &base_tree, &new_tree)?;
    let replaces = tip(&repository, &worktree.branch_ref()?)?.map(CommitId);
    let mut plan = PlannedCommit {
        commit: base,
        tree,
        base,
        replaces,
        message: redact::redact(&message(parts, &paths)).into_owned(),
        name: rules.name.clone(),
        email: rules.email.clone(),
        at,
        offset_minutes: at.offset_in(rules.zone) / 60,
        paths,
        added_lines,
        removed_lines,
    };
    plan.commit = match same_content(&repository, &plan)? {
        // Nothing was done since the last round: its commit, and with it its evidence, stays valid.
        Some((commit, message)) => {
            plan.message = message;
            commit
        }
        None if rules.sign != Signing::Off => {
            let who = signature(&plan)?;
            let (project, objects) = (worktree.project(), (plan.tree.0, plan.base.0));
            CommitId(sign::commit(project, rules.sign, (&who, &who), &plan.message, objects)?)
        }
        None => CommitId(Oid::hash_object(ObjectType::Commit, &commit_bytes(&repository, &plan)?)?),
    };
    Ok(Some(plan))
}

/// Makes the planned commit and lets `teams/<request>` name it. Repeating it changes nothing. A commit that
/// somebody else put there since the plan is kept under `refs/teams/lost/`.
pub fn apply_commit(worktree: &Worktree, plan: &PlannedCommit) -> Result<Candidate> {
    let repository = worktree.project().repository()?;
    let odb = repository.odb()?;
    if !odb.exists(plan.commit.0) {
        let bytes = commit_bytes(&repository, plan)?;
        let actual = Oid::hash_object(ObjectType::Commit, &bytes)?;
        if actual != plan.commit.0 {
            return Err(GitError::PlanMismatch {
                planned: plan.commit.to_string(),
                actual: actual.to_string(),
            });
        }
        odb.write(ObjectType::Commit, &bytes)?;
    }
    move_team_branch(worktree, &repository, plan.commit.0, plan.replaces)?;
    worktree.refresh_index(&repository, plan.tree.0)?;
    Ok(plan.candidate())
}

/// Looks that nobody else works on the branch of a request: what a person committed there and has on no other branch would
/// be gone, and the files of whoever has it checked out would be of another commit.
///
/// # Errors
/// [`GitError::CommitOfPerson`], [`GitError::TeamBranchInUse`].
pub(super) fn refuse_person(worktree: &Worktree, repository: &Repository) -> Result<()> {
    let (project, name) = (worktree.project(), worktree.branch_ref()?);
    let Some(at) = tip(repository, &name)? else { return Ok(()) };
    let (commit, base) = (repository.find_commit(at)?, worktree.base().0);
    let is_begin = at == base || repository.graph_descendant_of(base, at)?;
    let named = request_of(&String::from_utf8_lossy(commit.message_bytes()));
    let is_amended = commit.author().email_bytes() != commit.committer().email_bytes();
    let branch = name.trim_start_matches("refs/heads/").to_owned();
    let is_of_team = is_begin || named.as_ref() == Some(worktree.request()) && !is_amended;
    if !is_of_team && !is_on_another(repository, &name, at)? {
        return Err(GitError::CommitOfPerson { branch, commit: at.to_string() });
    }
    if lost::taken(project, repository)?.contains(&name) {
        return Err(GitError::TeamBranchInUse { branch });
    }
    Ok(())
}

/// Whether another branch has a commit.
fn is_on_another(repository: &Repository, branch: &str, commit: Oid) -> Result<bool> {
    for reference in repository.references_glob("refs/heads/*")? {
        let reference = reference?;
        let Some(at) = reference.target().filter(|_| reference.name_bytes() != branch.as_bytes())
        else {
            continue;
        };
        if at == commit || repository.graph_descendant_of(at, commit)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Points a team branch at `commit`; keeps an unexpected earlier commit reachable.
pub(super) fn move_team_branch(
    worktree: &Worktree,
    repository: &Repository,
    commit: Oid,
    expected: Option<CommitId>,
) -> Result<()> {
    let (project, branch) = (worktree.project(), worktree.branch_ref()?);
    let mut before = expected.map(|expected| expected.0);
    loop {
        match refs::set(project, repository, &branch, before, commit, "teams: commit")? {
            Update::Done => return Ok(()),
            Update::Elsewhere(found) => {
                if let Some(found) = found {
                    let lost = lost_ref(&found.to_string())?;
                    let kept = tip(repository, &lost)?;
                    refs::set(project, repository, &lost, kept, found, "teams: replaced")?;
                }
                before = found;
            }
        }
    }
}

fn same_content(
    repository: &Repository,
    plan: &PlannedCommit,
) -> Result<Option<(CommitId, String)>> {
    let Some(id) = plan.replaces else {
        return Ok(None);
    };
    let commit = repository.find_commit(id.0)?;
    let same = commit.tree_id() == plan.tree.0
        && commit.parent_count() == 1
        && commit.parent_id(0)? == plan.base.0;
    Ok(same.then(|| (id, String::from_utf8_lossy(commit.message_bytes()).into_owned())))
}

fn commit_bytes(repository: &Repository, plan: &PlannedCommit) -> Result<Vec<u8>> {
    let who = signature(plan)?;
    let tree = repository.find_tree(plan.tree.0)?;
    let parent = repository.find_commit(plan.base.0)?;
    let bytes = repository.commit_create_buffer(&who, &who, &plan.message, &tree, &[&parent])?;
    Ok(bytes.to_vec())
}

fn signature(plan: &PlannedCommit) -> Result<Signature<'static>> {
    Ok(Signature::new(&plan.name, &plan.email, &git_time(plan.at, plan.offset_minutes))?)
}

fn refuse_forbidden(path: &str, rules: &CommitRules) -> Result<()> {
    let refused = |reason| Err(GitError::ForbiddenPath { path: path.to_owned(), reason });
    if path.is_empty() || path.starts_with('/') || path.contains('\0') {
        return refused("it is not relative to the project");
    }
    for part in path.split('/') {
        if part.is_empty() || part == "." || part == ".." {
            return refused("it could leave the project");
        }
        if part.eq_ignore_ascii_case(".git") {
            return refused("it belongs to git itself");
        }
    }
    if rules.forbidden.iter().any(|folder| path_of(path).starts_with(folder)) {
        return refused("it is inside the team's workspace");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_project_and_inside_git_or_the_workspace_are_refused() {
        let rules =
            CommitRules { forbidden: vec![PathBuf::from("team ws")], ..CommitRules::default() };
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            ".git/config",
            "sub/.GIT/hooks/x",
            "team ws",
            "team ws/state.json",
        ] {
            assert!(refuse_forbidden(bad, &rules).is_err(), "{bad:?}");
        }
        // Row G04: a name is bytes, however git would quote it.
        for good in [".gitignore", "a/한.py", "team ws2/x", "a -> b"] {
            assert!(refuse_forbidden(good, &rules).is_ok(), "{good:?}");
        }
    }
}
