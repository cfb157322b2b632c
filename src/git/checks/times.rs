//! The times of files beside what was built of others.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::environments::PreparedEnvironment;
use crate::git::{CommitId, Project, Result, TreeId, content, tree_diff};
use crate::platform::{clock, files, places};

/// Makes every file of a tree that differs from the tree in which an environment was made younger than what was made
/// there: builders compare times, and would take what they built of the older file for what the newer one gives. Where a
/// file is gone, that is every file: what was built of it too is older than none of those that are left.
pub(super) fn touch(
    project: &Project,
    environment: &PreparedEnvironment,
    tree: TreeId,
    dir: &Path,
) -> Result<()> {
    let repository = project.repository()?;
    let tree = repository.find_tree(tree.0)?;
    let before = environment.record.commit.parse::<CommitId>()?;
    let differs = match repository.find_commit(before.0).and_then(|it| it.tree()) {
        Ok(before) => match tree_diff::paths_between(&repository, &before, &tree)? {
            (gone, differs) if gone.is_empty() => differs,
            (_, _) => content::paths(&tree)?,
        },
        // What it was made of is not known any more.
        Err(_) => content::paths(&tree)?,
    };
    // Some compare whole seconds.
    let made = SystemTime::UNIX_EPOCH
        + Duration::from_millis(u64::try_from(environment.record.made_at.millis()).unwrap_or(0));
    let after = made + Duration::from_secs(1);
    let differs = differs.into_iter().filter(|path| !is_behind_link(dir, path));
    let mut differs: Vec<_> = differs.map(|path| dir.join(path)).collect();
    while let Some(path) = differs.pop() {
        let Ok(meta) = files::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            // A submodule at another commit.
            differs.extend(files::list(&path)?);
        } else if meta.is_file() && meta.modified().is_ok_and(|at| at <= after) {
            files::set_modified(
                &path,
                SystemTime::from(clock::now()).max(after + Duration::from_secs(1)),
            )?;
        }
    }
    Ok(())
}

/// Whether a folder on the way to a path is a link, which an agent may have put there.
pub(super) fn is_behind_link(dir: &Path, path: &Path) -> bool {
    path.ancestors().skip(1).any(|above| places::is_link(&dir.join(above)))
}
