//! Folders of files that nobody uses at the moment. Making a folder of many files takes long, moving one from
//! commit to commit does not; so what a request or its checks have given back is what the next ones begin with.

use std::path::{Path, PathBuf};

use git2::Tree;

use super::{Project, Result, content};
use crate::platform::{files, full_disk, ids};

/// Folders that are kept; the oldest beyond them go.
const KEPT: usize = 3;
const TREE: &str = "tree";
const SEEN: &str = "index";

/// Where such folders are kept, in `trees` beside a folder that holds others in use.
#[derive(Debug, Clone)]
pub(super) struct TreePool(PathBuf);

impl TreePool {
    /// The pool beside a folder.
    pub(super) fn beside(folder: &Path) -> TreePool {
        TreePool(folder.with_file_name("trees"))
    }

    /// The pool in a folder.
    pub(super) fn at(folder: &Path) -> TreePool {
        TreePool(folder.to_owned())
    }

    /// Makes `dir` the files of a tree, of a kept folder where there is one. `seen` is where looks at it are noted.
    pub(super) fn make(
        &self,
        project: &Project,
        tree: &Tree<'_>,
        dir: &Path,
        seen: &Path,
    ) -> Result<()> {
        let taken = files::list(&self.0)?.iter().rev().any(|kept| {
            let is_taken =
                is_folder(&kept.join(TREE)) && files::rename(&kept.join(TREE), dir).is_ok();
            if is_taken {
                // Without it everything is written anew.
                let _ = files::rename(&kept.join(SEEN), seen);
                let _ = files::remove_dir_all(kept);
            }
            is_taken
        });
        if !taken {
            files::create_dir_all(dir)?;
        }
        let view = content::view(project.repository()?, dir)?;
        content::bring(&view, project.filters(), tree, dir, seen)
    }

    /// Keeps a folder that nobody uses any more; one that is not there is fine.
    pub(super) fn keep(&self, dir: &Path, seen: &Path) -> Result<()> {
        if !is_folder(dir) {
            files::remove_any(dir)?;
        } else if full_disk::is_nearly_full(dir) {
            // What else was written there is not needed, and may be what fills the disk.
            files::remove_dir_all(dir)?;
        } else {
            let kept = self.0.join(ids::uuid_v7().to_string());
            files::create_dir_all(&kept)?;
            if files::exists(seen) {
                // Across file systems there is nothing to keep.
                let _ = files::rename(seen, &kept.join(SEEN));
            }
            if files::rename(dir, &kept.join(TREE)).is_err() {
                files::remove_dir_all(dir)?;
            }
        }
        self.trim()
    }

    /// Removes what is beyond the bound, and what a crash left half done.
    fn trim(&self) -> Result<()> {
        let mut whole = 0;
        for kept in files::list(&self.0)?.iter().rev() {
            if is_folder(&kept.join(TREE)) {
                whole += 1;
                // Renamed, so that nobody takes it from here on.
                if whole <= KEPT || files::rename(&kept.join(TREE), &kept.join("gone")).is_err() {
                    continue;
                }
            } else if whole == 0 {
                // Somebody may be about to put it there.
                continue;
            }
            files::remove_dir_all(kept)?;
        }
        Ok(())
    }
}

/// Whether a folder lies there, and no link that somebody put in its place.
fn is_folder(path: &Path) -> bool {
    files::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}
