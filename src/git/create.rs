//! A repository from nothing, for the demo.

use std::path::Path;

use git2::{IndexAddOption, Repository, RepositoryInitOptions, Signature};

use super::{CommitId, Result};

/// Makes a repository of the files in `path`, with one commit on `branch`. Where a crash cut an
/// earlier try off, it is finished; a repository that has a commit is left as it is.
pub fn create(path: &Path, branch: &str, message: &str) -> Result<CommitId> {
    let mut options = RepositoryInitOptions::new();
    options.initial_head(branch).no_reinit(false).external_template(false);
    let repository = Repository::init_opts(path, &options)?;
    if let Ok(head) = repository.head().and_then(|head| head.peel_to_commit()) {
        return Ok(CommitId(head.id()));
    }
    let mut index = repository.index()?;
    index.add_all(["*"], IndexAddOption::DEFAULT, None)?;
    index.write()?;
    let tree = repository.find_tree(index.write_tree()?)?;
    let signature = Signature::now("teams", "teams@localhost")?;
    let commit = repository.commit(Some("HEAD"), &signature, &signature, message, &tree, &[])?;
    Ok(CommitId(commit))
}

/// The commits of a branch, newest first, by first parents.
pub fn first_parents(path: &Path, branch: &str) -> Result<Vec<CommitId>> {
    let repository = Repository::open(path)?;
    let mut next =
        Some(repository.find_branch(branch, git2::BranchType::Local)?.get().peel_to_commit()?);
    let mut commits = Vec::new();
    while let Some(commit) = next {
        commits.push(CommitId(commit.id()));
        next = commit.parent(0).ok();
    }
    Ok(commits)
}
