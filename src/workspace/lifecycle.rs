//! `lifecycles/request.yaml`: what requests go by, where the workspace has its own.

use std::path::Path;
use std::sync::Arc;

use super::error::{ConfigError, MAX_CONFIG_BYTES};
use super::yaml::{from_yaml, text_if_present, within_limit};
use crate::assets::{AssetKind, Lookup};
use crate::domain::config::Problem;
use crate::domain::lifecycle::{Lifecycle, Subject};
use crate::platform::files;

/// The lifecycle of a workspace, relative to it.
pub const LIFECYCLE_FILE: &str = "lifecycles/request.yaml";

/// The lifecycle of a workspace: its own where it has one, else the one that is built in.
///
/// # Errors
/// The first thing that is wrong with the file.
pub(super) fn read(root: &Path) -> Result<Arc<Lifecycle>, ConfigError> {
    match check(root)? {
        Ok(lifecycle) => Ok(lifecycle),
        Err(mut problems) => Err(problems.swap_remove(0)),
    }
}

/// The same with everything that is wrong with the file.
///
/// # Errors
/// Where it cannot be read at all.
pub fn check(root: &Path) -> Result<Result<Arc<Lifecycle>, Vec<ConfigError>>, ConfigError> {
    let path = root.join(LIFECYCLE_FILE);
    let Some(text) = text_if_present(&path)? else {
        return Ok(Ok(Arc::clone(Lifecycle::built_in())));
    };
    let checked = check_text(&path, &text, root);
    Ok(checked.and_then(|lifecycle| match lifecycle.subject {
        Subject::Request => Ok(lifecycle),
        Subject::Sprint | Subject::Sourcing => {
            let message = format!("no request goes by the lifecycle of a {}", lifecycle.subject);
            let problem = Problem::at("lifecycle", message).hint("write `lifecycle: request`");
            Err(vec![ConfigError::problem_in(&path, lifecycle.text(), problem)])
        }
    }))
}

/// The lifecycle of a file that is named, perhaps one that another program writes, with the prompts of the workspace `root`,
/// or everything that is wrong with it.
///
/// # Errors
/// Where it cannot be read at all.
pub fn check_file(
    path: &Path,
    root: &Path,
) -> Result<Result<Arc<Lifecycle>, Vec<ConfigError>>, ConfigError> {
    let text = within_limit(path, files::read_text_at_most(path, MAX_CONFIG_BYTES)?)?;
    Ok(check_text(path, &text, root))
}

fn check_text(path: &Path, text: &str, root: &Path) -> Result<Arc<Lifecycle>, Vec<ConfigError>> {
    // Of what stands there twice the types would take the last.
    from_yaml::<serde_yaml::Value>(path, text).map_err(|error| vec![error])?;
    let compiled = Lifecycle::compile(text).and_then(|lifecycle| {
        let mut problems = lifecycle.problems_of_new();
        problems.extend(without_prompt(root, &lifecycle));
        if problems.is_empty() { Ok(Arc::new(lifecycle)) } else { Err(problems) }
    });
    compiled.map_err(|problems| {
        let of = |problem| ConfigError::problem_in(path, text, problem);
        problems.into_iter().map(of).collect()
    })
}

/// The steps whose rules are not there.
fn without_prompt(root: &Path, lifecycle: &Lifecycle) -> Vec<Problem> {
    let mut problems = Vec::new();
    for step in lifecycle.steps().filter(|step| !step.kind.roles().is_empty()) {
        let name = step.template();
        let lookup = Lookup::of_workspace(root).in_room(step.role);
        if let Err(error) = lookup.text(AssetKind::Prompt, &name) {
            let problem = Problem::at(&format!("steps.{}", step.name), error.to_string());
            problems.push(problem.hint(format!("write its rules into `prompts/{name}`")));
        }
    }
    problems
}
