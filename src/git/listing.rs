//! The files of the commit at the tip of the branch, as those see them who look what kind of project it is.

use std::collections::BTreeSet;
use std::path::Path;

use git2::ErrorCode;

use super::lost::UNMERGED;
use super::tracked::{MODE_GITLINK, of_tree};
use super::{CommitId, GitError, Project, Result, TreeId};

/// More of a file than this, in bytes, is not read: no manifest that a person writes is longer.
const LARGEST: usize = 4 << 20;

/// The files of one commit. Names that are not UTF-8 are left out.
#[derive(Debug, Clone)]
pub struct CommitFiles {
    project: Project,
    commit: CommitId,
    paths: BTreeSet<String>,
}

impl CommitFiles {
    /// Those at the tip of the branch.
    ///
    /// # Errors
    /// Where the branch or its tree cannot be read.
    pub fn at_head(project: &Project) -> Result<CommitFiles> {
        let commit = project.head()?;
        let tracked = of_tree(&project.repository()?.find_commit(commit.0)?.tree()?)?;
        let files = tracked.iter().filter(|(_, (_, mode))| *mode != MODE_GITLINK);
        let paths = files.filter_map(|(path, _)| String::from_utf8(path.clone()).ok()).collect();
        Ok(CommitFiles { project: project.clone(), commit, paths })
    }

    /// Every path, relative to the project, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Whether a file lies there.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// The text of a file; none where it is not there, too large, or no text.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn text(&self, path: &str) -> Result<Option<String>> {
        if !self.has(path) {
            return Ok(None);
        }
        let repository = self.project.repository()?;
        let tree = repository.find_commit(self.commit.0)?.tree()?;
        let blob = tree.get_path(Path::new(path))?.to_object(&repository)?.peel_to_blob()?;
        let bytes = blob.content();
        let text = (bytes.len() <= LARGEST).then(|| String::from_utf8(bytes.to_vec()).ok());
        Ok(text.flatten())
    }
}

impl Project {
    /// The tree of a commit.
    ///
    /// # Errors
    /// Where the repository or the commit cannot be read.
    pub fn tree_of(&self, commit: CommitId) -> Result<TreeId> {
        Ok(TreeId(self.repository()?.find_commit(commit.0)?.tree_id()))
    }

    /// The commit that a name, a tag or the beginning of an id stands for.
    ///
    /// # Errors
    /// [`GitError::NoSuchCommit`]; others where the repository cannot be read.
    pub fn resolve(&self, name: &str) -> Result<CommitId> {
        let repository = self.repository()?;
        let none = || GitError::NoSuchCommit { name: name.to_owned() };
        let unknown = [ErrorCode::NotFound, ErrorCode::InvalidSpec, ErrorCode::Ambiguous];
        // A branch of ours whose request ended long ago.
        let kept = name.strip_prefix("teams/").map(|request| format!("{UNMERGED}{request}"));
        let found = repository.revparse_single(name);
        let found = found.or_else(|error| match &kept {
            Some(kept) if error.code() == ErrorCode::NotFound => {
                repository.revparse_single(kept).map_err(|_| error)
            }
            Some(_) | None => Err(error),
        });
        let object = found.map_err(|error| {
            if unknown.contains(&error.code()) { none() } else { GitError::Git(error) }
        })?;
        Ok(CommitId(object.peel_to_commit().map_err(|_| none())?.id()))
    }
}
