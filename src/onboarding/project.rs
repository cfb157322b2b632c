//! The project of a workspace, opened the same way by whoever asks whether the team can work in it.

use std::path::{Path, PathBuf};

use crate::git::{GitError, Project};
use crate::platform::files;
use crate::workspace::Workspace;

/// Opens it on its branch. What `teams run` refuses here, `teams setup` and `teams doctor` refuse before, in
/// the same words.
///
/// # Errors
/// Those of [`Project::open`].
pub fn open_project(workspace: &Workspace) -> Result<Project, GitError> {
    let project = Project::open(&workspace.project_root(), workspace.branch().unwrap_or_default())?;
    let filters = &workspace.runtime.project.filters;
    Ok(project.with_filters(filters.iter().map(ToString::to_string).collect()))
}

/// The place for a workspace beside a project.
#[must_use]
pub fn beside(project: &Path) -> PathBuf {
    let name = project.file_name().unwrap_or_default().to_string_lossy();
    project.with_file_name(format!("{name}-team"))
}

/// A place for a workspace that lies inside its project, where `git clean -xfd` would remove it; none where it is safe.
#[must_use]
pub fn place_outside(root: &Path, project: &Path) -> Option<PathBuf> {
    let (root, project) = (files::canonicalize(root).ok()?, files::canonicalize(project).ok()?);
    // git leaves alone what is a repository of its own.
    let is_its_own = root != project && files::exists(&root.join(".git"));
    let is_safe = !root.starts_with(&project) || is_its_own;
    (!is_safe).then(|| beside(&project))
}
