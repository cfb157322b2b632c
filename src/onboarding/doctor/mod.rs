//! `teams doctor`: looks at everything that a team needs, changes nothing, and says for each failure the
//! exact fix. [`repair`] does those that are safe.

mod agents;
mod discord;
mod finding;
mod machine;
mod programs;
mod repair;
mod server;

use std::path::Path;

use serde_json::json;

use crate::agents::check_templates;
use crate::assets::AssetKind;
use crate::domain::role::Role;
use crate::workspace::{self, ConfigError};

use finding::safe;
pub use finding::{Check, Finding, Health, Repair};
pub use repair::repair;

/// Looks at everything. `root` need not be a workspace: then that is what is found.
pub async fn diagnose(root: &Path) -> Vec<Finding> {
    let workspace = match workspace::load(root) {
        Ok(workspace) => workspace,
        Err(error) => {
            let mut found = vec![wrong_config(&error)];
            found.extend(machine::records(root));
            found.extend(machine::place(root, None));
            return found;
        }
    };
    let mut found = config(&workspace);
    let (met, skew) = discord::look(&workspace, &mut found).await;
    if let Some(met) = &met {
        server::judge(&workspace, met, &mut found);
    }
    let live = met.as_ref().is_some_and(|met| crate::discord::is_taken(&met.rest));
    found.extend(machine::service(root, live));
    found.extend(machine::records(root));
    found.extend(machine::place(root, Some(&workspace)));
    found.extend(machine::project(&workspace).await);
    found.extend(programs::look(&workspace).await);
    found.extend(agents::look(&workspace).await);
    found.push(machine::clock(&workspace, skew));
    found
}

fn wrong_config(error: &ConfigError) -> Finding {
    let values = json!({"error": safe(error), "hint": error.hint().unwrap_or_default()});
    match error {
        ConfigError::NotAWorkspace { .. } => {
            Finding::problem(Check::Config, "doctor.config.none", values)
        }
        ConfigError::HalfReset { .. }
        | ConfigError::File(_)
        | ConfigError::TooLarge { .. }
        | ConfigError::Invalid(_)
        | ConfigError::TokenMissing { .. }
        | ConfigError::Asset(_) => Finding::problem(Check::Config, "doctor.config.wrong", values),
    }
}

fn config(workspace: &workspace::Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    let placeholders = workspace.refuse_placeholders();
    let channels = workspace.channels();
    match (&placeholders, &channels) {
        (Ok(()), Ok(_)) => {
            let values = json!({"path": workspace.root.display().to_string()});
            found.push(Finding::ok(Check::Config, "doctor.config.ok", values));
        }
        (Err(error), _) => {
            let values = json!({"error": safe(error)});
            found.push(Finding::problem(Check::Config, "doctor.config.example", values));
        }
        (Ok(()), Err(error)) => found.push(wrong_config(error)),
    }
    let people = &workspace.runtime.people;
    let nobody = people.owner.is_none()
        && [&people.ask, &people.approve, &people.administer]
            .iter()
            .all(|holders| holders.users.is_empty() && holders.roles.is_empty());
    if nobody {
        found.push(Finding::problem(Check::Config, "doctor.config.nobody", json!({})));
    }
    if let Some(error) = &workspace.policy_problem {
        let values = json!({"error": safe(error), "path": workspace::POLICY_FILE});
        found.push(Finding::problem(Check::Config, "doctor.config.policy", values));
    }
    for role in Role::ALL {
        if let Err(error) = workspace.role(role) {
            found.push(wrong_config(&error));
        }
    }
    found.extend(templates(workspace));
    found
}

/// The workspace's own templates of prompts: each is in force and can be filled in.
fn templates(workspace: &workspace::Workspace) -> Option<Finding> {
    let wrong = |error: &dyn std::fmt::Display| {
        let values = json!({"error": safe(error)});
        Finding::problem(Check::Config, "doctor.config.prompt", values)
    };
    for role in Role::ALL {
        let lookup = workspace.lookup().in_room(role);
        let strays = match lookup.strays(AssetKind::Prompt) {
            Ok(strays) => strays,
            Err(error) => return Some(wrong(&error)),
        };
        // The lifecycle may name templates of its own.
        let named = |path: &std::path::PathBuf| {
            workspace.lifecycle.steps().any(|step| path.ends_with(step.template()))
        };
        if let Some(path) = strays.iter().find(|path| !named(path)) {
            let path = path.strip_prefix(&workspace.root).unwrap_or(path);
            let values = json!({"path": path.display().to_string()});
            return Some(Finding::problem(Check::Config, "doctor.config.prompt_stray", values));
        }
        let checked = lookup
            .overrides(AssetKind::Prompt)
            .map_err(|error| wrong(&error))
            .and_then(|all| check_templates(&all).map_err(|error| wrong(&error)));
        if let Err(problem) = checked {
            return Some(problem);
        }
    }
    None
}
