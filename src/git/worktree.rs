//! One worktree a request: made, found again, repaired, snapshot, reset, released.
//!
//! `<root>/<request>/tree` holds the files, `<root>/<request>/worktree.json` says what they grew from. The
//! note is written last, so a worktree without it was cut off while it was made and is made anew. Before a
//! request writes, its roles read the files of its base in `bases/<commit>` beside `<root>`, which all requests on
//! that base share.

use std::path::{Path, PathBuf};

use git2::{Oid, Repository, Signature};
use serde::{Deserialize, Serialize};

use super::project::tip;
use super::trees::TreePool;
use super::{CommitId, GitError, Project, Result, TreeId, content, kept, refs, tree_diff};
use crate::domain::evidence::ChangedPath;
use crate::domain::ids::{RequestId, RunId};
use crate::domain::time::Timestamp;
use crate::platform::{clock, files};

/// The working files of a request.
#[derive(Debug, Clone)]
pub struct Worktree {
    project: Project,
    request: RequestId,
    base: CommitId,
    /// The folder of the note, which is the request's own.
    own: PathBuf,
    /// The folder of the files.
    dir: PathBuf,
    is_shared: bool,
    own_since: Option<Timestamp>,
    /// What its files are to be brought to before anybody sees them.
    ahead: Option<Ahead>,
}

/// A change that was composed on another one without its files: in a train it is moved often, and seldom looked at.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Ahead {
    /// The commit that the files are of.
    from: CommitId,
    /// The commit that they are to be.
    to: CommitId,
}

#[derive(Serialize, Deserialize)]
struct WorktreeRecord {
    base: CommitId,
    /// Whether the files are those that all requests on this base read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
    /// When it got files of its own, after its roles had read those of its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own_since: Option<Timestamp>,
    /// What its files are behind of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ahead: Option<Ahead>,
}

/// Says that the files of a base are all there.
const WHOLE: &str = "whole";

fn note_in(own: &Path) -> PathBuf {
    own.join("worktree.json")
}

fn read_note(own: &Path) -> Result<Option<WorktreeRecord>> {
    let path = note_in(own);
    let Some(text) = files::read_text_if_present(&path)? else { return Ok(None) };
    let bad = |error: serde_json::Error| GitError::BadNote { path, reason: error.to_string() };
    Ok(Some(serde_json::from_str(&text).map_err(bad)?))
}

/// Where the files of a base are that is read by several requests.
fn base_dir(root: &Path, base: CommitId) -> PathBuf {
    root.with_file_name("bases").join(base.to_string())
}

/// How many requests read a base.
fn readers(root: &Path, base: CommitId) -> Result<usize> {
    let mut readers = 0;
    for own in files::list(root)? {
        let note = read_note(&own)?;
        readers += usize::from(note.is_some_and(|note| note.shared && note.base == base));
    }
    Ok(readers)
}

impl Project {
    /// The worktree of a request under `root`, on branch `teams/<request>`. Made at the branch's head where
    /// it does not exist, opened where it does, repaired where a crash left it half made; with what it held where it
    /// was put away. Files that an agent has changed are never touched here.
    ///
    /// # Errors
    /// [`GitError::BranchName`], [`GitError::NameTaken`], and whatever files and git report.
    pub fn worktree(&self, request: &RequestId, root: &Path) -> Result<Worktree> {
        let repository = self.repository()?;
        let branch = team_branch(request)?;
        let own = root.join(request.as_str());
        let note = read_note(&own)?;
        let is_made = note.as_ref().is_some_and(|note| !note.shared);
        let ahead = note.as_ref().and_then(|note| note.ahead);
        let (base, own_since) =
            match note.filter(|note| note.shared || files::exists(&own.join("tree"))) {
                Some(note) if is_made => (note.base, note.own_since),
                before => {
                    let kept = kept::of(&repository, request)?;
                    let (base, start) = match (&before, &kept) {
                        (Some(note), _) => (note.base, note.base.0),
                        (None, Some(kept)) => (kept.base, kept.base.0),
                        (None, None) => self.beginning(&repository, &branch)?,
                    };
                    let own_since = match (&before, &kept) {
                        (Some(_), _) => Some(Timestamp::new(clock::now())),
                        (None, Some(kept)) => kept.own_since,
                        (None, None) => None,
                    };
                    self.make(root, &own, &repository.find_commit(start)?.tree()?, before)?;
                    let at = tip(&repository, &branch)?;
                    if kept.is_none() {
                        refs::set(self, &repository, &branch, at, start, "teams: begin")?;
                    }
                    if let Some(kept) = kept {
                        kept.restore(&repository, &own.join("tree"))?;
                    }
                    (base, own_since)
                }
            };
        let own = files::canonicalize(&own)?;
        let dir = own.clone();
        let request = request.clone();
        let project = self.clone();
        let mut worktree =
            Worktree { project, request, base, own, dir, is_shared: false, own_since, ahead };
        worktree.link()?;
        worktree.catch_up(&repository)?;
        if !is_made || !files::exists(&note_in(&worktree.own)) {
            files::sync_filesystem(&worktree.dir)?;
            worktree.write_note()?;
        }
        // Also where that was cut off, or somebody's git was in the way: it would hide what lies here from now on.
        kept::forget(self, &repository, &worktree.request)?;
        Ok(worktree)
    }

    /// The same without a look at the files, for a change that is put onto another base without them.
    pub(super) fn worktree_unopened(&self, request: &RequestId, root: &Path) -> Result<Worktree> {
        let left = self.worktree_left(request, root)?;
        left.map_or_else(|| self.worktree(request, root), Ok)
    }

    /// The worktree of a request as it lies there, where it has one of its own.
    pub(super) fn worktree_left(
        &self,
        request: &RequestId,
        root: &Path,
    ) -> Result<Option<Worktree>> {
        let own = root.join(request.as_str());
        let Some(note) = read_note(&own)?.filter(|note| !note.shared) else { return Ok(None) };
        let own = files::canonicalize(&own)?;
        Ok(Some(Worktree {
            project: self.clone(),
            request: request.clone(),
            base: note.base,
            dir: own.clone(),
            own,
            is_shared: false,
            own_since: note.own_since,
            ahead: note.ahead,
        }))
    }

    /// The files for a step of a request that writes, or does not.
    ///
    /// # Errors
    /// Those of [`Project::worktree`].
    pub fn tree_for(&self, request: &RequestId, root: &Path, may_write: bool) -> Result<Worktree> {
        if may_write { self.worktree(request, root) } else { self.reading_tree(request, root) }
    }

    /// What a role of a request reads that does not write: the request's worktree where it has one or had one, else
    /// the files of the branch's head, which all requests share that begin there.
    ///
    /// # Errors
    /// Those of [`Project::worktree`].
    pub fn reading_tree(&self, request: &RequestId, root: &Path) -> Result<Worktree> {
        let repository = self.repository()?;
        let own = root.join(request.as_str());
        let note = read_note(&own)?;
        let has_own = note.as_ref().is_some_and(|note| !note.shared)
            || tip(&repository, &team_branch(request)?)?.is_some()
            || kept::of(&repository, request)?.is_some();
        if has_own {
            return self.worktree(request, root);
        }
        let base = match &note {
            Some(note) => note.base,
            None => self.head()?,
        };
        let dir = base_dir(root, base);
        if !files::exists(&dir.join(WHOLE)) {
            files::remove_dir_all(&dir)?;
            files::create_dir_all(&dir)?;
            let tree = repository.find_commit(base.0)?.tree()?;
            TreePool::beside(root).make(self, &tree, &dir.join("tree"), &dir.join("index"))?;
            files::sync_filesystem(&dir)?;
            files::write_durable(&dir.join(WHOLE), "")?;
        }
        files::create_dir_all(&own)?;
        let (own, dir) = (files::canonicalize(&own)?, files::canonicalize(&dir)?);
        let request = request.clone();
        let project = self.clone();
        let worktree = Worktree {
            project,
            request,
            base,
            own,
            dir,
            is_shared: true,
            own_since: None,
            ahead: None,
        };
        worktree.link()?;
        if note.is_none() {
            worktree.write_note()?;
        }
        Ok(worktree)
    }

    /// Makes the files of a request's own worktree: those that it read alone until now, else of what others left.
    fn make(
        &self,
        root: &Path,
        own: &Path,
        tree: &git2::Tree<'_>,
        before: Option<WorktreeRecord>,
    ) -> Result<()> {
        let (pool, base) = (TreePool::beside(root), before.map(|note| note.base));
        if let Some(base) = base
            && readers(root, base)? == 1
        {
            self.unlink_base(root, base, &pool)?;
        }
        files::remove_file(&note_in(own))?;
        files::remove_dir_all(own)?;
        files::create_dir_all(own)?;
        pool.make(self, tree, &own.join("tree"), &own.join("index"))
    }

    /// Lets go of the files of a base that nobody reads any more.
    fn unlink_base(&self, root: &Path, base: CommitId, pool: &TreePool) -> Result<()> {
        let dir = base_dir(root, base);
        files::remove_file(&dir.join(WHOLE))?;
        files::remove_dir_all(&self.admin_dir(&base_admin(base)))?;
        pool.keep(&dir.join("tree"), &dir.join("index"))?;
        files::remove_dir_all(&dir)?;
        if let Some(bases) = dir.parent() {
            files::remove_dir_if_empty(bases)?;
        }
        Ok(())
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

    /// Lets go of the folder of a request; its files go to whoever comes next.
    pub(super) fn leave(&self, request: &RequestId, root: &Path) -> Result<()> {
        let (own, pool) = (root.join(request.as_str()), TreePool::beside(root));
        // First, so that a half-removed tree is never taken for an agent's deletions.
        files::remove_file(&note_in(&own))?;
        for base in files::folders(&root.with_file_name("bases"))? {
            let id = base.file_name().and_then(|name| name.to_str()?.parse().ok());
            if let Some(id) = id
                && readers(root, id)? == 0
            {
                self.unlink_base(root, id, &pool)?;
            }
        }
        pool.keep(&own.join("tree"), &own.join("index"))?;
        files::remove_dir_all(&own)?;
        Ok(files::remove_dir_all(&self.admin_dir(request.as_str()))?)
    }

    /// Git's own folder of a worktree of ours.
    fn admin_dir(&self, name: &str) -> PathBuf {
        self.common_dir().join("worktrees").join(format!("teams-{name}"))
    }
}

/// The folder, among those of worktrees, of what could not be kept in git.
pub const NOT_KEPT: &str = "not-kept";

/// Moves the files of a request's worktree to where nobody looks at them but people, from now on; where that is, if there
/// were any.
pub(super) fn put_files_aside(request: &RequestId, root: &Path) -> Result<Option<PathBuf>> {
    let tree = root.join(request.as_str()).join("tree");
    if !files::exists(&tree) {
        return Ok(None);
    }
    let aside = root.join(NOT_KEPT).join(request.as_str());
    files::remove_dir_all(&aside)?;
    files::create_dir_all(&root.join(NOT_KEPT))?;
    files::set_mode(&tree, 0o700)?;
    files::rename(&tree, &aside)?;
    files::set_modified(&aside, clock::now().into())?;
    Ok(Some(aside))
}

/// Whether git's own folder of a worktree is that of one of ours, by its name and the folder that it leads to.
pub(super) fn is_own_admin(name: &str, leads_to: &Path) -> bool {
    let is_commit =
        |rest: &str| rest.strip_prefix("base-").is_some_and(|id| id.parse::<CommitId>().is_ok());
    let is_ours =
        |rest: &str| is_commit(rest) || RequestId::parse(rest).is_ok_and(|id| id.looks_made());
    name.strip_prefix("teams-").is_some_and(is_ours) && leads_to.ends_with("tree")
}

fn base_admin(base: CommitId) -> String {
    format!("base-{base}")
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

    /// The commit that its files are still of, where they are to follow to another one.
    pub(super) fn behind(&self) -> Option<CommitId> {
        self.ahead.map(|ahead| ahead.from)
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
        Ok(TreeId(content::write_tree(&view, self.project.filters(), &base, &self.seen())?))
    }

    /// [`Self::tree_id`] where nobody is at work: what was changed in submodules is put back first, and a repository that
    /// was made inside becomes a folder of files. What several requests read is left as it is: nobody writes there.
    ///
    /// # Errors
    /// Where the repository or the disk fails.
    pub fn settled_tree_id(&self) -> Result<TreeId> {
        if self.is_shared {
            return self.tree_id();
        }
        let view = self.view()?;
        let base = view.find_commit(self.base.0)?.tree()?;
        Ok(TreeId(content::write_settled(&view, self.project.filters(), &base, &self.seen())?))
    }

    /// The present content, and what differs in it from `tree`.
    pub fn changed_since(&self, tree: TreeId) -> Result<(TreeId, Vec<ChangedPath>)> {
        let now = self.tree_id()?;
        let view = self.view()?;
        let changed = tree_diff::changes(&view, &view.find_tree(tree.0)?, &view.find_tree(now.0)?)?;
        Ok((now, changed))
    }

    /// Makes the files equal `tree`, removing what is not in it. Ignored files stay.
    pub fn reset_to(&self, tree: TreeId) -> Result<()> {
        let view = self.view()?;
        let base = view.find_commit(self.base.0)?.tree()?;
        let filters = self.project.filters();
        content::reset(&view, filters, &base, &view.find_tree(tree.0)?, &self.seen())?;
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

    /// Notes durably that the files are to become `to` before anybody sees them; so far they are of `from`.
    pub(super) fn follow_later(&mut self, from: CommitId, to: CommitId) -> Result<()> {
        let from = self.ahead.map_or(from, |ahead| ahead.from);
        self.ahead = Some(Ahead { from, to });
        self.write_note()
    }

    /// Brings the files to the commit that the request's branch was put onto without them.
    fn catch_up(&mut self, repository: &Repository) -> Result<()> {
        let Some(Ahead { from, to }) = self.ahead else { return Ok(()) };
        // Nothing names it any more, so git may have cleaned it up: then all that is there counts as somebody's.
        let from =
            repository.find_commit(from.0).map_or_else(|_| Oid::ZERO_SHA1, |it| it.tree_id());
        let to = repository.find_commit(to.0)?;
        self.bring_files(repository, from, to.tree_id())?;
        self.ahead = None;
        self.rebase_onto(CommitId(to.parent_id(0)?))
    }

    /// Makes the files and the agents' index the tree `new`. What they hold now and is neither `old` nor `new` is kept.
    pub(super) fn bring_files(&self, repository: &Repository, old: Oid, new: Oid) -> Result<()> {
        let now = self.settled_tree_id()?.0;
        if now != old && now != new {
            self.keep_as(&format!("{}-rebase", self.request()), Timestamp::new(clock::now()))?;
        }
        if now != new {
            self.reset_to(TreeId(new))?;
            files::sync_filesystem(&self.path())?;
        }
        self.refresh_index(repository, new)
    }

    /// Brings the agents' own index to `tree`, so that `git status` in the worktree tells what they expect.
    pub(super) fn refresh_index(&self, repository: &Repository, tree: Oid) -> Result<()> {
        let admin = self.admin();
        // Nobody works here now: a lock is the rest of an agent's git command that was killed. The index
        // itself is not worth reading, and after a power failure it may not be readable.
        files::remove_file(&admin.join("index.lock"))?;
        let tree = repository.find_tree(tree)?;
        content::write_index_for_git(&tree, &self.seen(), &admin.join("index"))
    }

    /// What its link to the repository says where that is seen at another path.
    #[must_use]
    pub fn link_to(&self, repository: &Path) -> String {
        let admin = self.admin();
        let name = admin.file_name().unwrap_or_default();
        format!("gitdir: {}\n", repository.join("worktrees").join(name).display())
    }

    /// Where looks at the files are noted.
    pub(super) fn seen(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// The request's own folder under the root of all.
    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    /// When it got files of its own, after its roles had read those of its base at another path.
    #[must_use]
    pub const fn own_since(&self) -> Option<Timestamp> {
        self.own_since
    }

    /// Whether other requests read the same files.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn admin(&self) -> PathBuf {
        let name = self.is_shared.then(|| base_admin(self.base));
        self.project.admin_dir(name.as_deref().unwrap_or(self.request.as_str()))
    }

    fn write_note(&self) -> Result<()> {
        let note = WorktreeRecord {
            base: self.base,
            shared: self.is_shared,
            own_since: self.own_since,
            ahead: self.ahead,
        };
        let bad = |error: serde_json::Error| GitError::BadNote {
            path: note_in(&self.own),
            reason: error.to_string(),
        };
        let text = serde_json::to_string(&note).map_err(bad)?;
        Ok(files::write_durable(&note_in(&self.own), text)?)
    }

    /// Makes the worktree one that the git program knows, so that agents can use `git diff` and `git log`.
    /// Written by hand rather than by libgit2, because each part must be repairable by itself.
    fn link(&self) -> Result<()> {
        let admin = self.admin();
        let link = self.path().join(".git");
        let complete = files::exists(&admin.join("index"))
            && files::read_text_if_present(&admin.join("gitdir"))?
                .is_some_and(|text| Path::new(text.trim_end()) == link);
        let gitdir = format!("gitdir: {}\n", admin.display());
        let is_link = files::symlink_metadata(&link).is_ok_and(|found| found.is_file());
        if complete && is_link && files::read_text(&link)? == gitdir {
            return Ok(());
        }
        files::remove_dir_all(&admin)?;
        files::create_dir_all(&admin)?;
        files::write(&admin.join("commondir"), "../..\n")?;
        let head = if self.is_shared {
            format!("{}\n", self.base)
        } else {
            format!("ref: {}\n", self.branch_ref()?)
        };
        files::write(&admin.join("HEAD"), head)?;
        files::write(&admin.join("gitdir"), format!("{}\n", link.display()))?;
        let repository = self.project.repository()?;
        let branch = if self.is_shared { None } else { tip(&repository, &self.branch_ref()?)? };
        let commit = branch.unwrap_or(self.base.0);
        self.refresh_index(&repository, repository.find_commit(commit)?.tree_id())?;
        if !is_link {
            files::remove_any(&link)?;
        }
        Ok(files::write(&link, gitdir)?)
    }
}

/// `refs/heads/teams/<request>`, where git allows the id in a name.
pub(super) fn team_branch(request: &RequestId) -> Result<String> {
    valid(format!("refs/heads/teams/{request}"))
}

/// `refs/teams/lost/<what>`.
pub(super) fn lost_ref(what: &str) -> Result<String> {
    valid(format!("{}{what}", refs::LOST))
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
