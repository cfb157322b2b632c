//! What the team keeps in the project beside its branch: branches of requests with work that has not landed, and what was
//! not used, under `refs/teams/lost/`.

use std::collections::BTreeSet;

use super::worktree::LOST;
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
