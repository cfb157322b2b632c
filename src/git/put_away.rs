//! The worktree of a request that waits is put away, and its folder is somebody else's meanwhile.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::Signature;

use super::project::tip;
use super::tracked::{as_path, changed_tree};
use super::worktree::git_time;
use super::{Result, Worktree, content, kept, refs};
use crate::domain::time::Timestamp;
use crate::platform::files;

impl Worktree {
    /// Puts the worktree away: keeps what it holds beside what git ignores, and gives its folder back.
    /// [`Project::worktree`] brings all of it back as it was.
    ///
    /// # Errors
    /// Those of [`Worktree::tree_id`]; then nothing has changed.
    pub fn put_away(self, at: Timestamp) -> Result<()> {
        let root = self.own().parent().map(Path::to_owned).unwrap_or_default();
        if !self.is_shared() {
            self.settled_tree_id()?;
            let view = self.view()?;
            let base = view.find_commit(self.base().0)?;
            let base_tree = base.tree()?;
            let filters = self.project().filters();
            let mut changes = content::look(&view, filters, &base_tree, &self.seen())?.changes;
            // What differs is kept as it lies there, whatever git would make of its line ends.
            for (path, put) in &mut changes {
                let Some((id, _)) = put else { continue };
                let full = self.path().join(as_path(path));
                let bytes = if files::symlink_metadata(&full)?.is_symlink() {
                    files::read_link(&full)?.as_os_str().as_bytes().to_vec()
                } else {
                    files::read(&full)?
                };
                *id = view.blob(&bytes)?;
            }
            let tree = view.find_tree(changed_tree(&view, &base_tree, &changes)?)?;
            let who = Signature::new("teams", "teams@localhost", &git_time(at, 0))?;
            let message = kept::message(self.request(), self.own_since());
            let commit = view.commit(None, &who, &who, &message, &tree, &[&base])?;
            let name = format!("{}{}", kept::KEPT, self.request());
            let before = tip(&view, &name)?;
            refs::set(self.project(), &view, &name, before, commit, "teams: put away")?;
        }
        self.project().leave(self.request(), &root)
    }
}
