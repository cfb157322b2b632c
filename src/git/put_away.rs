//! The worktree of a request that waits is put away, and its folder is somebody else's meanwhile.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::Signature;

use super::project::tip;
use super::worktree::git_time;
use super::{Result, Worktree, content, kept, refs, tree_diff};
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
            let mut index =
                content::look(&view, self.project().filters(), &base_tree, &self.seen())?;
            let now = view.find_tree(index.write_tree_to(&view)?)?;
            // What differs is kept as it lies there, whatever git would make of its line ends.
            let (_, put) = tree_diff::paths_between(&view, &base_tree, &now)?;
            for path in &put {
                let full = self.path().join(path);
                let bytes = if files::symlink_metadata(&full)?.is_symlink() {
                    files::read_link(&full)?.as_os_str().as_bytes().to_vec()
                } else {
                    files::read(&full)?
                };
                let mut entry =
                    index.get_path(path, 0).ok_or_else(|| git2::Error::from_str("no entry"))?;
                entry.id = view.blob(&bytes)?;
                index.add(&entry)?;
            }
            let tree = view.find_tree(index.write_tree_to(&view)?)?;
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
