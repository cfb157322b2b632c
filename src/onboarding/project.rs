//! The project of a workspace, opened the same way by whoever asks whether the team can work in it.

use crate::git::{GitError, Project};
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
