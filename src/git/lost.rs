//! What the team keeps in the project beside its branch: branches of requests with work that has not landed, and what was
//! not used, under `refs/teams/lost/`.

use std::collections::BTreeSet;

use super::project::tip;
use super::worktree::{LOST, team_branch};
use super::{Project, Result, refs};
use crate::domain::ids::RequestId;
use crate::domain::time::Timestamp;

impl Project {
    /// The requests that have a branch of their own: at work, or ended with commits that are not on the project's branch.
    ///
    /// # Errors
    /// What git reports.
    pub fn requests_with_branches(&self) -> Result<BTreeSet<RequestId>> {
        let repository = self.repository()?;
        let mut found = BTreeSet::new();
        for name in repository.references_glob("refs/heads/teams/*")?.names() {
            let id = name?.strip_prefix("refs/heads/teams/").map(RequestId::parse);
            found.extend(id.and_then(std::result::Result::ok));
        }
        Ok(found)
    }

    /// Lets go of branches of requests other than the open ones that were last written before an instant, where the
    /// project's branch has all that they would bring. How many that were.
    ///
    /// # Errors
    /// What git reports; a ref that somebody holds stays for the next time.
    pub fn forget_branches(&self, before: Timestamp, open: &BTreeSet<RequestId>) -> Result<usize> {
        let repository = self.repository()?;
        let head = repository.find_commit(self.head()?.0)?;
        let mut forgotten = 0;
        for request in self.requests_with_branches()?.difference(open) {
            let branch = team_branch(request)?;
            let Some(own) = tip(&repository, &branch)? else { continue };
            let own = repository.find_commit(own)?;
            if own.time().seconds() >= before.utc().timestamp() {
                continue;
            }
            // Without a common ancestor nothing says so.
            let Ok(base) = repository.merge_base(head.id(), own.id()) else { continue };
            let base = repository.find_commit(base)?.tree()?;
            let (ours, theirs) = (head.tree()?, own.tree()?);
            let mut merged = repository.merge_trees(&base, &ours, &theirs, None)?;
            if !merged.has_conflicts() && merged.write_tree_to(&repository)? == ours.id() {
                refs::delete(self, &repository, &branch)?;
                forgotten += 1;
            }
        }
        Ok(forgotten)
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
            if !is_kept && commit.time().seconds() < before.utc().timestamp() {
                old.push(name.to_owned());
            }
        }
        for name in &old {
            refs::delete(self, &repository, name)?;
        }
        Ok(old.len())
    }
}
