//! `routes.yaml`: which steps requests take, where the workspace says it.

use std::path::Path;
use std::sync::Arc;

use super::error::ConfigError;
use super::yaml::{from_yaml, text_if_present};
use crate::domain::lifecycle::Lifecycle;
use crate::domain::routes::Routes;

/// The routes of a workspace, relative to it.
pub const ROUTES_FILE: &str = "routes.yaml";

/// The routes of a workspace: its own where it has some, else those that are built in.
///
/// # Errors
/// The first thing that is wrong with the file.
pub(super) fn read(root: &Path, lifecycle: &Lifecycle) -> Result<Arc<Routes>, ConfigError> {
    match check(root, lifecycle)? {
        Ok(routes) => Ok(routes),
        Err(mut problems) => Err(problems.swap_remove(0)),
    }
}

/// The same with everything that is wrong with the file.
///
/// # Errors
/// Where it cannot be read at all.
pub fn check(
    root: &Path,
    lifecycle: &Lifecycle,
) -> Result<Result<Arc<Routes>, Vec<ConfigError>>, ConfigError> {
    let path = root.join(ROUTES_FILE);
    let Some(text) = text_if_present(&path)? else {
        return Ok(Ok(Arc::clone(Routes::built_in())));
    };
    // Of what stands there twice the types would take the last.
    if let Err(error) = from_yaml::<serde_yaml::Value>(&path, &text) {
        return Ok(Err(vec![error]));
    }
    Ok(Routes::compile(&text, lifecycle).map(Arc::new).map_err(|problems| {
        let of = |problem| ConfigError::problem_in(&path, &text, problem);
        problems.into_iter().map(of).collect()
    }))
}
