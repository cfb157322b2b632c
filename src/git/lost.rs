//! What the team keeps in the project beside its branch: branches of requests with work that has not landed, which long
//! after their end are refs under `refs/teams/unmerged/`, and what was not used, under `refs/teams/lost/`.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, Utc};
use git2::{Commit, Oid, Repository};

use super::project::{checked_out_branch, tip};
use super::refs::{LOST, Update};
use super::worktree::{lost_ref, put_files_aside, team_branch};
use super::{Project, Result, kept, merge, program, refs};
use crate::domain::ids::RequestId;
use crate::domain::time::Timestamp;
use crate::platform::{clock, files, full_disk};

/// Where branches of requests are.
const BRANCHES: &str = "refs/heads/teams/";
/// Objects that git lets lie loose where nothing else is configured.
const GC_AUTO: i64 = 6_700;
/// Where their commits are kept once the branches are gone.
pub(super) const UNMERGED: &str = "refs/teams/unmerged/";

impl Project {
    /// Removes a request's worktree. Its branch is deleted where all its commits are on the project's
    /// branch, and stays where one is not, or where somebody has it checked out. Repeating it is fine.
    pub fn release(&self, request: &RequestId, root: &Path) -> Result<()> {
        let repository = self.repository()?;
        let mut is_kept = true;
        match self.keep_uncommitted(&repository, request, root) {
            // Nothing goes before there is room to keep it.
            Err(error) if full_disk::full_path(&error, || root.to_owned()).is_some() => {
                return Err(error);
            }
            Err(error) => {
                is_kept = false;
                match put_files_aside(request, root)? {
                    Some(aside) => {
                        let place = aside.display();
                        tracing::error!(%error, %request, %place, "what it left uncommitted stays there");
                    }
                    None => tracing::error!(%error, %request, "what it left stays as it was kept"),
                }
            }
            Ok(()) => {}
        }
        self.leave(request, root)?;
        if let Err(error) = self.forget_refs(&repository, request, is_kept) {
            // Somebody's git holds it; the daily look lets go of it.
            tracing::warn!(%error, %request, "its branch stays for now");
        }
        Ok(())
    }

    /// Lets go of what only the request needed; where what it left is kept elsewhere, also of what was kept of its worktree.
    fn forget_refs(
        &self,
        repository: &Repository,
        request: &RequestId,
        is_kept: bool,
    ) -> Result<()> {
        if is_kept && let Err(error) = kept::forget(self, repository, request) {
            tracing::warn!(%error, %request, "what was kept of its worktree stays");
        }
        let branch = team_branch(request)?;
        let tips = (tip(repository, &branch)?, self.branch_tip(repository)?);
        if let (Some(own), Some(main)) = tips
            && (own == main || repository.graph_descendant_of(main, own)?)
            && !taken(self, repository)?.contains(&branch)
        {
            refs::delete(self, repository, &branch)?;
        }
        Ok(())
    }

    /// Keeps what a request leaves that no commit of its has, under `refs/teams/lost/<request>-ended`.
    fn keep_uncommitted(
        &self,
        repository: &Repository,
        request: &RequestId,
        root: &Path,
    ) -> Result<()> {
        let own = tip(repository, &team_branch(request)?)?;
        let own = own.map(|own| repository.find_commit(own)).transpose()?;
        let what = format!("{request}-ended");
        let left = self.worktree_left(request, root)?;
        if left.is_none()
            && let Some(kept) = tip(repository, &format!("{}{request}", kept::KEPT))?
        {
            let name = lost_ref(&what)?;
            let (before, commit) = (tip(repository, &name)?, repository.find_commit(kept)?);
            let known = [own.map(|own| own.tree_id()), Some(commit.parent(0)?.tree_id())];
            if !known.contains(&Some(commit.tree_id())) {
                refs::set(self, repository, &name, before, kept, "teams: kept")?;
            }
            return Ok(());
        }
        let Some(worktree) = left else { return Ok(()) };
        let (now, mut known) = (worktree.settled_tree_id()?, Vec::from_iter(own));
        for commit in [Some(worktree.base()), worktree.behind()].into_iter().flatten() {
            // What the branch stood on before may have no name any more, and git may have cleaned it up.
            known.extend(repository.find_commit(commit.0).ok());
        }
        if known.iter().all(|commit| commit.tree_id() != now.0) {
            worktree.keep_as(&what, Timestamp::new(clock::now()))?;
        }
        Ok(())
    }

    /// The requests that have commits of their own: at work, or ended with some that are not on the project's branch.
    ///
    /// # Errors
    /// What git reports.
    pub fn requests_with_commits(&self) -> Result<BTreeSet<RequestId>> {
        let repository = self.repository()?;
        Ok(own_refs(&repository)?.into_iter().map(|(request, _)| request).collect())
    }

    /// Lets go of branches of requests other than the open ones that were last written before an instant. Where the
    /// project's branch does not have all that they would bring, their commits stay under `refs/teams/unmerged/`. How
    /// many refs went.
    ///
    /// # Errors
    /// What git reports; a ref that somebody holds stays for the next time.
    pub fn forget_branches(&self, before: Timestamp, open: &BTreeSet<RequestId>) -> Result<usize> {
        let repository = self.repository()?;
        let head = repository.find_commit(self.head()?.0)?;
        let taken = taken(self, &repository)?;
        let mut forgotten = 0;
        for (request, name) in own_refs(&repository)? {
            if open.contains(&request) || taken.contains(&name) {
                continue;
            }
            match self.forget_branch(&repository, &head, (&request, &name), before) {
                Ok(is_forgotten) => forgotten += usize::from(is_forgotten),
                // One that cannot be read keeps no other.
                Err(error) => tracing::warn!(%error, name, "a branch stays for the next time"),
            }
        }
        Ok(forgotten)
    }

    /// The same for one; whether it is gone.
    fn forget_branch(
        &self,
        repository: &Repository,
        head: &Commit<'_>,
        (request, name): (&RequestId, &str),
        before: Timestamp,
    ) -> Result<bool> {
        let Some(own) = tip(repository, name)? else { return Ok(false) };
        let own = repository.find_commit(own)?;
        if own.time().seconds() >= before.utc().timestamp() {
            return Ok(false);
        }
        if !has_all_of(repository, head, &own)? {
            let kept = format!("{UNMERGED}{request}");
            if name == kept {
                return Ok(false);
            }
            let before = tip(repository, &kept)?;
            // Another work of that name is kept there already.
            if before.is_some_and(|it| it != own.id() && !is_before(repository, it, &own)) {
                return Ok(false);
            }
            let why = "teams: branch is kept";
            if refs::set(self, repository, &kept, before, own.id(), why)? != Update::Done {
                return Ok(false);
            }
        }
        // Somebody may have worked on it meanwhile.
        let is_still = tip(repository, name)? == Some(own.id());
        if is_still {
            refs::delete(self, repository, name)?;
        }
        Ok(is_still)
    }

    /// Lets go of what was kept under `refs/teams/lost/` before an instant, unless it is of one of these requests. How
    /// many refs that were.
    ///
    /// # Errors
    /// What git reports; a ref that somebody holds stays for the next time.
    pub fn forget_lost(&self, before: Timestamp, kept: &BTreeSet<RequestId>) -> Result<usize> {
        let repository = self.repository()?;
        let mut old = Vec::new();
        for found in repository.references_glob(&format!("{LOST}*"))? {
            let found = found?;
            let (Ok(name), Ok(commit)) = (found.name(), found.peel_to_commit()) else { continue };
            // A snapshot names its request in its message, a commit that was replaced in its own, and other refs in
            // their names.
            let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
            let is_kept = kept.iter().map(RequestId::as_str);
            let is_kept =
                is_kept.filter(|id| message.contains(id) || name.contains(id)).count() > 0;
            let since = self.kept_since(&repository, name, &commit);
            if !is_kept && since < before.utc().timestamp() {
                old.push(name.to_owned());
            }
        }
        let mut forgotten = 0;
        for name in &old {
            match refs::delete(self, &repository, name) {
                Ok(()) => forgotten += 1,
                Err(error) => tracing::warn!(%error, name, "a ref stays for the next time"),
            }
        }
        Ok(forgotten)
    }

    /// Has git pack what lies loose, where that is more than git's own setting (`gc.auto`) lets lie: else only commands of
    /// people do that, and the team writes on without them. Nothing is thrown away, and no ref is touched.
    ///
    /// # Errors
    /// What git reports.
    pub fn pack_loose(&self) -> Result<()> {
        let most = self.repository()?.config()?.get_i64("gc.auto").unwrap_or(GC_AUTO);
        // As git counts them: by one folder of 256.
        let some = files::list(&self.common_dir().join("objects/17"))?.len();
        let all = i64::try_from(some.saturating_mul(256)).unwrap_or(i64::MAX);
        if most <= 0 || all <= most {
            return Ok(());
        }
        let common = self.common_dir();
        let packing: &[&str] = &["maintenance", "run", "--quiet", "--task=loose-objects"];
        for arguments in [packing, &["prune-packed", "--quiet"]] {
            program::git(common, common, &[], arguments, &[], Vec::new())?;
        }
        Ok(())
    }

    /// Since when a commit is kept under a ref, in seconds since 1970: by the ref's log, or by its file where an earlier
    /// build wrote no log. The commit itself may be older.
    fn kept_since(&self, repository: &Repository, name: &str, commit: &Commit<'_>) -> i64 {
        // Reading a log that is not there would make it.
        let has_log = files::exists(&self.common_dir().join("logs").join(name));
        let log = has_log.then(|| repository.reflog(name).ok()).flatten();
        let logged = log.and_then(|log| Some(log.get(0)?.committer().when().seconds()));
        let written = || {
            let file = files::metadata(&self.common_dir().join(name)).ok()?;
            Some(DateTime::<Utc>::from(file.modified().ok()?).timestamp())
        };
        let made = commit.time().seconds();
        logged.or_else(written).map_or(made, |since| since.max(made))
    }
}

/// The refs of requests with commits of their own.
fn own_refs(repository: &Repository) -> Result<Vec<(RequestId, String)>> {
    let mut found = Vec::new();
    for folder in [BRANCHES, UNMERGED] {
        for name in repository.references_glob(&format!("{folder}*"))?.names() {
            // One that is no text is nobody's here.
            let Ok(name) = name else { continue };
            let id = name.strip_prefix(folder).and_then(|id| RequestId::parse(id).ok());
            // People may have branches of their own there.
            if let Some(id) = id.filter(RequestId::looks_made) {
                found.push((id, name.to_owned()));
            }
        }
    }
    Ok(found)
}

/// The branches that a person has checked out, or rebases.
pub(super) fn taken(project: &Project, repository: &Repository) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for checkout in merge::checkouts(project, repository)? {
        let branch = checked_out_branch(&checkout)?.map(|name| format!("refs/heads/{name}"));
        found.extend(branch.into_iter().chain(merge::rebased_branch(&checkout)));
    }
    Ok(found)
}

fn is_before(repository: &Repository, earlier: Oid, later: &Commit<'_>) -> bool {
    repository.graph_descendant_of(later.id(), earlier).unwrap_or(false)
}

/// Whether a commit's tree would not change by a merge of another one.
fn has_all_of(repository: &Repository, head: &Commit<'_>, other: &Commit<'_>) -> Result<bool> {
    // Without a common ancestor nothing says so.
    let Ok(base) = repository.merge_base(head.id(), other.id()) else { return Ok(false) };
    let base = repository.find_commit(base)?.tree()?;
    let (ours, theirs) = (head.tree()?, other.tree()?);
    let mut merged = repository.merge_trees(&base, &ours, &theirs, None)?;
    Ok(!merged.has_conflicts() && merged.write_tree_to(repository)? == ours.id())
}
