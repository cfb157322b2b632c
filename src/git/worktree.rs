//! One worktree a request: made, found again, repaired, snapshot, reset, released.
//!
//! `<root>/<request>/tree` holds the files, `<root>/<request>/worktree.json` says what they grew from. The
//! note is written last, so a worktree without it was cut off while it was made and is made anew.

use std::path::{Path, PathBuf};

use git2::{Index, Oid, Repository, Signature};
use serde::{Deserialize, Serialize};

use super::project::tip;
use super::{CommitId, GitError, Project, Result, TreeId, content, refs};
use crate::domain::evidence::ChangedPath;
use crate::domain::ids::{RequestId, RunId};
use crate::domain::time::Timestamp;
use crate::platform::files;

/// A request's own working files.
#[derive(Debug, Clone)]
pub struct Worktree {
    project: Project,
    request: RequestId,
    dir: PathBuf,
    base: CommitId,
}

#[derive(Serialize, Deserialize)]
struct WorktreeRecord {
    base: CommitId,
}

impl Project {
    /// The worktree of a request under `root`, on branch `teams/<request>`. Made at the branch's head where
    /// it does not exist, opened where it does, repaired where a crash left it half made. Files that an
    /// agent has changed are never touched here.
    ///
    /// # Errors
    /// [`GitError::BranchName`], [`GitError::NameTaken`], and whatever files and git report.
    pub fn worktree(&self, request: &RequestId, root: &Path) -> Result<Worktree> {
        let repository = self.repository()?;
        let branch = team_branch(request)?;
        let dir = root.join(request.as_str());
        let note = dir.join("worktree.json");
        let noted = files::read_text_if_present(&note)?;
        let base = match noted.filter(|_| files::exists(&dir.join("tree"))) {
            Some(text) => {
                let note: WorktreeRecord = serde_json::from_str(&text)
                    .map_err(|error| GitError::BadNote { path: note, reason: error.to_string() })?;
                note.base
            }
            None => {
                let (base, start) = self.beginning(&repository, &branch)?;
                files::remove_file(&note)?;
                files::remove_dir_all_forced(&dir)?;
                let tree = dir.join("tree");
                files::create_dir_all(&tree)?;
                let view = content::view(self.repository()?, &tree)?;
                content::write_all(&view, &view.find_commit(start)?.tree()?, &tree)?;
                let before = tip(&repository, &branch)?;
                refs::set(self, &repository, &branch, before, start, "teams: begin")?;
                base
            }
        };
        let dir = files::canonicalize(&dir)?;
        let worktree = Worktree { project: self.clone(), request: request.clone(), dir, base };
        worktree.link()?;
        if !files::exists(&worktree.note()) {
            files::sync_filesystem(&worktree.dir)?;
            worktree.write_note()?;
        }
        Ok(worktree)
    }

    /// What a new worktree grows from, and the commit whose files it begins with: those of an earlier
    /// worktree of the same request, where its branch was kept for its commits, else the project's head.
    fn beginning(&self, repository: &Repository, branch: &str) -> Result<(CommitId, Oid)> {
        let head = self.head()?;
        match tip(repository, branch)? {
            Some(own) if own != head.0 && !repository.graph_descendant_of(head.0, own)? => {
                Ok((CommitId(repository.merge_base(own, head.0)?), own))
            }
            Some(_) | None => Ok((head, head.0)),
        }
    }

    /// Removes a request's worktree. Its branch is deleted where all its commits are on the project's
    /// branch, and stays where one is not. Repeating it is fine.
    pub fn release(&self, request: &RequestId, root: &Path) -> Result<()> {
        let repository = self.repository()?;
        let dir = root.join(request.as_str());
        // First, so that a half-removed tree is never taken for an agent's deletions.
        files::remove_file(&dir.join("worktree.json"))?;
        files::remove_dir_all_forced(&dir)?;
        files::remove_dir_all_forced(&admin_dir(self, request))?;
        let branch = team_branch(request)?;
        let tips = (tip(&repository, &branch)?, self.branch_tip(&repository)?);
        if let (Some(own), Some(main)) = tips
            && (own == main || repository.graph_descendant_of(main, own)?)
        {
            refs::delete(self, &repository, &branch)?;
        }
        Ok(())
    }
}

impl Worktree {
    /// The folder that agents work in.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// The commit of the project's branch that the work grew from.
    #[must_use]
    pub const fn base(&self) -> CommitId {
        self.base
    }

    /// The request that it belongs to.
    #[must_use]
    pub const fn request(&self) -> &RequestId {
        &self.request
    }

    /// The project that it belongs to.
    #[must_use]
    pub const fn project(&self) -> &Project {
        &self.project
    }

    /// Writes the present content as a tree and returns its id. Ignored files do not count, except those
    /// that the base tracks.
    ///
    /// # Errors
    /// [`GitError::NestedRepository`] where an agent made a repository inside.
    pub fn tree_id(&self) -> Result<TreeId> {
        let view = self.view()?;
        let base = view.find_commit(self.base.0)?.tree()?;
        Ok(TreeId(content::write_tree(&view, &base)?))
    }

    /// What differs from `tree` now, by content.
    pub fn changed_since(&self, tree: TreeId) -> Result<Vec<ChangedPath>> {
        let now = self.tree_id()?;
        let view = self.view()?;
        content::changes(&view, &view.find_tree(tree.0)?, &view.find_tree(now.0)?)
    }

    /// Makes the files equal `tree`, removing what is not in it. Ignored files stay.
    pub fn reset_to(&self, tree: TreeId) -> Result<()> {
        let view = self.view()?;
        let base = view.find_commit(self.base.0)?.tree()?;
        content::reset(&view, &base, &view.find_tree(tree.0)?)?;
        self.refresh_index(&view, tree.0)
    }

    /// Keeps the present content under `refs/teams/lost/<run>`, for a run whose result will not be used.
    /// Repeating it keeps the later content on top of the earlier.
    pub fn snapshot_lost(&self, run: &RunId, at: Timestamp) -> Result<CommitId> {
        self.keep_as(run.as_str(), at)
    }

    /// Keeps the present content under `refs/teams/lost/<what>`.
    pub(super) fn keep_as(&self, what: &str, at: Timestamp) -> Result<CommitId> {
        let name = lost_ref(what)?;
        let tree = self.tree_id()?;
        let view = self.view()?;
        let before = tip(&view, &name)?;
        let parent = before.unwrap_or(self.base.0);
        let parent = view.find_commit(parent)?;
        if before.is_some() && parent.tree_id() == tree.0 {
            return Ok(CommitId(parent.id()));
        }
        let who = Signature::new("teams", "teams@localhost", &git_time(at, 0))?;
        let message = format!("kept of {}: {what}\n", self.request);
        let tree = view.find_tree(tree.0)?;
        let commit = view.commit(None, &who, &who, &message, &tree, &[&parent])?;
        refs::set(&self.project, &view, &name, before, commit, "teams: kept")?;
        Ok(CommitId(commit))
    }

    /// The full name of the request's branch.
    pub(super) fn branch_ref(&self) -> Result<String> {
        team_branch(&self.request)
    }

    /// The repository with this worktree's files.
    pub(super) fn view(&self) -> Result<Repository> {
        content::view(self.project.repository()?, &self.path())
    }

    /// Records another base, durably.
    pub(super) fn rebase_onto(&mut self, base: CommitId) -> Result<()> {
        self.base = base;
        self.write_note()
    }

    /// Brings the agents' own index to `tree`, so that `git status` in the worktree tells what they expect.
    pub(super) fn refresh_index(&self, repository: &Repository, tree: Oid) -> Result<()> {
        let admin = admin_dir(&self.project, &self.request);
        // Nobody works here now: a lock is the rest of an agent's git command that was killed. The index
        // itself is not worth reading, and after a power failure it may not be readable.
        files::remove_file(&admin.join("index.lock"))?;
        files::remove_file(&admin.join("index"))?;
        let mut index = Index::open(&admin.join("index"))?;
        index.read_tree(&repository.find_tree(tree)?)?;
        Ok(index.write()?)
    }

    fn note(&self) -> PathBuf {
        self.dir.join("worktree.json")
    }

    fn write_note(&self) -> Result<()> {
        let text = serde_json::json!({ "base": self.base }).to_string();
        Ok(files::write_durable(&self.note(), text)?)
    }

    /// Makes the worktree one that the git program knows, so that agents can use `git diff` and `git log`.
    /// Written by hand rather than by libgit2, because each part must be repairable by itself.
    fn link(&self) -> Result<()> {
        let admin = admin_dir(&self.project, &self.request);
        let link = self.path().join(".git");
        let complete = files::exists(&admin.join("index"))
            && files::read_text_if_present(&admin.join("gitdir"))?
                .is_some_and(|text| Path::new(text.trim_end()) == link);
        let gitdir = format!("gitdir: {}\n", admin.display());
        let is_link = files::symlink_metadata(&link).is_ok_and(|found| found.is_file());
        if complete && is_link && files::read_text(&link)? == gitdir {
            return Ok(());
        }
        files::remove_dir_all_forced(&admin)?;
        files::create_dir_all(&admin)?;
        files::write(&admin.join("commondir"), "../..\n")?;
        files::write(&admin.join("HEAD"), format!("ref: {}\n", self.branch_ref()?))?;
        files::write(&admin.join("gitdir"), format!("{}\n", link.display()))?;
        let repository = self.project.repository()?;
        let branch = tip(&repository, &self.branch_ref()?)?.unwrap_or(self.base.0);
        self.refresh_index(&repository, repository.find_commit(branch)?.tree_id())?;
        if !is_link {
            files::remove_any(&link)?;
        }
        Ok(files::write(&link, gitdir)?)
    }
}

fn admin_dir(project: &Project, request: &RequestId) -> PathBuf {
    project.common_dir().join("worktrees").join(format!("teams-{request}"))
}

/// `refs/heads/teams/<request>`, where git allows the id in a name.
pub(super) fn team_branch(request: &RequestId) -> Result<String> {
    valid(format!("refs/heads/teams/{request}"))
}

/// Under which what was not used is kept.
pub(super) const LOST: &str = "refs/teams/lost/";

/// `refs/teams/lost/<what>`.
pub(super) fn lost_ref(what: &str) -> Result<String> {
    valid(format!("{LOST}{what}"))
}

fn valid(name: String) -> Result<String> {
    if git2::Reference::is_valid_name(&name) {
        Ok(name)
    } else {
        Err(GitError::BranchName { name })
    }
}

/// An instant as git writes it, told so many minutes ahead of UTC.
pub(super) fn git_time(at: Timestamp, offset_minutes: i32) -> git2::Time {
    git2::Time::new(at.millis().div_euclid(1000), offset_minutes)
}
