//! The programs of checks and actions: found as the team would find them when it starts them.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::finding::{Check, Finding, safe};
use crate::domain::word::words;
use crate::git::{InTree, Project};
use crate::onboarding::open_project;
use crate::platform::{spawn, tasks};
use crate::workspace::Workspace;

words! {
    /// Why a program cannot be started.
    enum Missing {
        /// No folder of `PATH` has it.
        NotInPath = "path",
        /// It is not there.
        NotThere = "absent",
        /// It is there, and git ignores it: a check sees what is committed.
        Ignored = "ignored",
        /// It is there, and not committed.
        NotCommitted = "uncommitted",
        /// It may not be executed.
        NotExecutable = "mode",
    }
}

/// Looks for each; one line where all are there.
pub(super) async fn look(workspace: &Workspace) -> Vec<Finding> {
    let Ok(project) = open_project(workspace) else {
        // That is told already.
        return Vec::new();
    };
    let runtime = &workspace.runtime;
    let checks = runtime.checks.iter().map(|it| (it.name.clone(), it.command.as_slice()));
    let checks: Vec<(String, String)> = checks.filter_map(named).collect();
    let prepare = runtime.prepare.iter().map(|it| (it.name.clone(), it.command.as_slice()));
    let prepare: Vec<(String, String)> = prepare.filter_map(named).collect();
    let carry: Vec<PathBuf> = runtime.carry.iter().map(|it| PathBuf::from(it.as_str())).collect();
    let actions = runtime.actions.iter().map(|(name, it)| (name.clone(), it.command.as_slice()));
    // A program that is a parameter is known only when the action is asked for.
    let actions: Vec<(String, String)> =
        actions.filter_map(named).filter(|(_, program)| !program.contains('{')).collect();
    let count = checks.len() + actions.len();
    let root = workspace.root.clone();
    let looked = tasks::blocking(move || {
        let mut found = Vec::new();
        for (name, program) in checks {
            let why = brought(&project, &carry, &program, of_check(&project, &program)?);
            let is_made = !prepare.is_empty() && project.is_ignored(Path::new(&program))?;
            let why = match why {
                Some(Missing::Ignored | Missing::NotThere) if is_made => None,
                why => why,
            };
            found.extend(why.map(|why| finding("doctor.programs.check", name, program, why)));
        }
        for (name, program) in prepare {
            let why = brought(&project, &carry, &program, of_check(&project, &program)?);
            found.extend(why.map(|why| finding("doctor.programs.prepare", name, program, why)));
        }
        for (name, program) in actions {
            if let Some(why) = of_action(&root, &program) {
                found.push(finding("doctor.programs.action", name, program, why));
            }
        }
        Ok::<_, crate::git::GitError>(found)
    });
    match looked.await {
        Ok(Ok(found)) if found.is_empty() && count > 0 => {
            vec![Finding::ok(Check::Programs, "doctor.programs.ok", json!({ "count": count }))]
        }
        Ok(Ok(found)) => found,
        Ok(Err(error)) => vec![unknown(&error)],
        Err(error) => vec![unknown(&error)],
    }
}

fn unknown(error: &dyn std::fmt::Display) -> Finding {
    Finding::problem(Check::Programs, "doctor.git.wrong", json!({ "error": safe(error) }))
}

fn named((name, command): (String, &[String])) -> Option<(String, String)> {
    Some((name, command.first()?.clone()))
}

fn finding(key: &'static str, name: String, program: String, why: Missing) -> Finding {
    let values = json!({ "name": name, "program": program, "why": why.as_str() });
    Finding::problem(Check::Programs, key, values)
}

/// A check runs in a checkout of the commit that it proves.
fn of_check(project: &Project, program: &str) -> Result<Option<Missing>, crate::git::GitError> {
    if !program.contains('/') {
        return Ok(in_path(program));
    }
    if Path::new(program).is_absolute() {
        return Ok(on_disk(Path::new(program)));
    }
    Ok(match project.in_tree(Path::new(program))? {
        InTree::Program => None,
        InTree::Text => Some(Missing::NotExecutable),
        InTree::Absent if !crate::platform::files::exists(&project.path().join(program)) => {
            Some(Missing::NotThere)
        }
        InTree::Absent if project.is_ignored(Path::new(program))? => Some(Missing::Ignored),
        InTree::Absent => Some(Missing::NotCommitted),
    })
}

/// The same of what is lent, which lies in the checkout.
fn brought(
    project: &Project,
    carry: &[PathBuf],
    program: &str,
    why: Option<Missing>,
) -> Option<Missing> {
    let path = Path::new(program);
    let path = path.strip_prefix(".").unwrap_or(path);
    if why.is_some() && carry.iter().any(|folder| path.starts_with(folder)) {
        on_disk(&project.path().join(path))
    } else {
        why
    }
}

/// An action runs in the workspace.
fn of_action(root: &Path, program: &str) -> Option<Missing> {
    if program.contains('/') { on_disk(&root.join(program)) } else { in_path(program) }
}

fn in_path(program: &str) -> Option<Missing> {
    let path = std::env::var_os("PATH");
    spawn::find_program(program, path.as_deref()).is_none().then_some(Missing::NotInPath)
}

fn on_disk(path: &Path) -> Option<Missing> {
    if !crate::platform::files::exists(path) {
        return Some(Missing::NotThere);
    }
    let is_program = spawn::find_program(&path.to_string_lossy(), None).is_some();
    (!is_program).then_some(Missing::NotExecutable)
}
