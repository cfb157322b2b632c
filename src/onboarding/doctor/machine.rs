//! This machine: who runs the workspace, space, rights, git, clock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::finding::{Check, Finding, Repair, safe};
use crate::discord::standing;
use crate::domain::check_proposal::CheckProposal;
use crate::domain::config::AgentKind;
use crate::domain::record::RUNTIME;
use crate::domain::role::Role;
use crate::git::GitError;
use crate::onboarding::proposals;
use crate::onboarding::{open_project, place_outside};
use crate::platform::ask::ask;
use crate::platform::confinement::{self, Confinement};
use crate::platform::{files, machine, spawn, tasks};
use crate::store::{self, StoreError};
use crate::workspace::{Origin, Workspace, secrets};

/// Less space than this, in bytes, and work may fail: a checkout and the output of its checks have to fit.
const LITTLE_SPACE: u64 = 512 * 1024 * 1024;
/// The clock may differ by so many seconds.
const SKEW: i64 = 60;
/// The oldest git whose words agents know.
const OLDEST_GIT: (u32, u32) = (2, 20);

/// Who runs the workspace, and how its connections stand. `live`: the bot is connected from this machine.
pub(super) fn service(root: &Path, live: bool) -> Vec<Finding> {
    if store::is_owned_by_older(root) {
        return vec![Finding::problem(Check::Service, "doctor.service.older", json!({}))];
    }
    if !store::is_owned(root) {
        return vec![if live {
            Finding::problem(Check::Service, "doctor.service.elsewhere", json!({}))
        } else {
            Finding::not_needed(Check::Service, "doctor.service.stopped", json!({}))
        }];
    }
    let mut found = vec![Finding::ok(Check::Service, "doctor.service.running", json!({}))];
    for (name, bot) in standing::Report::read(root).bots {
        if let standing::Standing::NeedsYou { reason } = bot.standing {
            let values = json!({"bot": name, "reason": safe(&reason)});
            found.push(Finding::problem(Check::Service, "doctor.service.link", values));
        }
    }
    found
}

/// Whether the journal and the records can be read. A team that runs has read them.
pub(super) fn records(root: &Path) -> Option<Finding> {
    if store::is_owned(root) || !files::exists(&root.join(RUNTIME)) {
        return None;
    }
    let wrong = |error: &StoreError, key| {
        Finding::problem(Check::Records, key, json!({"error": safe(error)}))
    };
    Some(match store::read_only(root) {
        Ok(state) => {
            let values = json!({"requests": state.requests.len()});
            Finding::ok(Check::Records, "doctor.records.ok", values)
        }
        Err(error @ (StoreError::Corrupt { .. } | StoreError::CorruptIndex { .. })) => {
            wrong(&error, "doctor.records.damaged").repaired_by(Repair::Records)
        }
        Err(error @ StoreError::Newer { .. }) => wrong(&error, "doctor.records.newer"),
        Err(
            error @ (StoreError::Locked { .. }
            | StoreError::NoSpace
            | StoreError::Poisoned { .. }
            | StoreError::Closed
            | StoreError::BadPath { .. }
            | StoreError::Encode { .. }
            | StoreError::File(_)),
        ) => wrong(&error, "doctor.records.unread"),
    })
}

/// Space and rights.
pub(super) fn place(root: &Path, workspace: Option<&Workspace>) -> Vec<Finding> {
    let mut found = Vec::new();
    let project = workspace.map(Workspace::project_root);
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    folders.extend(project.filter(|project| project != root));
    for folder in folders.iter().filter(|folder| files::exists(folder)) {
        let path = folder.display().to_string();
        match machine::free_bytes(folder) {
            Ok(free) => {
                let values = json!({"path": path, "megabytes": free / (1024 * 1024)});
                found.push(if free < LITTLE_SPACE {
                    Finding::problem(Check::Disk, "doctor.disk.low", values)
                } else {
                    Finding::ok(Check::Disk, "doctor.disk.ok", values)
                });
            }
            Err(error) => {
                let values = json!({"path": path, "error": error.to_string()});
                found.push(Finding::problem(Check::Disk, "doctor.disk.unknown", values));
            }
        }
    }
    if let Some(project) = workspace.map(Workspace::project_root)
        && let Some(outside) = place_outside(root, &project)
    {
        let shown = |path: &Path| path.display().to_string();
        let values = json!({
            "path": shown(root), "project": shown(&project), "outside": shown(&outside),
        });
        found.push(Finding::advice(Check::Folders, "doctor.folders.inside", values));
    }
    let inner = [
        ".teams_runtime",
        ".teams_runtime/internal_relay",
        "logs",
        "shared_workspace",
        secrets::FOLDER,
    ];
    let closed: Vec<_> = folders
        .iter()
        .cloned()
        .chain(inner.iter().map(|name| root.join(name)))
        .filter(|path| files::exists(path) && !machine::may_write(path))
        .collect();
    let mut good = closed.is_empty();
    for path in topmost(&closed) {
        let values = json!({"path": path.display().to_string()});
        let key = if machine::is_read_only(path) {
            "doctor.folders.read_only"
        } else {
            "doctor.folders.closed"
        };
        found.push(Finding::problem(Check::Folders, key, values));
    }
    for path in workspace.map(secret_files).unwrap_or_default() {
        if machine::others_may_read(&path).unwrap_or(false) {
            good = false;
            let values = json!({"path": path.display().to_string()});
            let finding = Finding::problem(Check::Folders, "doctor.folders.readable", values);
            found.push(finding.repaired_by(Repair::Private(path)));
        }
    }
    if good && files::exists(root) {
        found.push(Finding::ok(Check::Folders, "doctor.folders.ok", json!({})));
    }
    found
}

/// The folders that lie in none of the others: what mends them mends what is in them.
fn topmost(folders: &[PathBuf]) -> Vec<&PathBuf> {
    let within = |path: &PathBuf| folders.iter().any(|it| it != path && path.starts_with(it));
    folders.iter().filter(|path| !within(path)).collect()
}

/// The files that hold tokens.
fn secret_files(workspace: &Workspace) -> Vec<PathBuf> {
    let kept = secrets::tokens_file(&workspace.root);
    let mut all: Vec<PathBuf> = Some(kept).filter(|path| files::exists(path)).into_iter().collect();
    let names = workspace.discord.token_names();
    let names = names.iter().flat_map(|names| names.roles.values().chain([&names.main]));
    let runtime = &workspace.runtime;
    let keys = runtime.models.values().filter_map(|server| server.key_env.as_ref());
    let prepared = runtime.prepare.iter().flat_map(|it| &it.secrets);
    let own = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"];
    let names = names.map(|it| it.as_str()).chain(keys.chain(prepared).map(|it| it.as_str()));
    for name in names.chain(own) {
        if let Some(Origin::File(path)) = workspace.environment.origin(name)
            && !all.contains(&path)
        {
            all.push(path);
        }
    }
    all
}

/// git, and the repository of the project.
pub(super) async fn project(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(git(workspace).await);
    let opened = open_project(workspace);
    let looked = tasks::blocking(move || {
        let project = opened?;
        project.refuse_unready()?;
        let (submodules, filters) = (project.submodules_missing()?, project.filters_missing()?);
        Ok::<_, GitError>((project.branch().to_owned(), submodules, filters))
    })
    .await;
    match looked {
        Ok(Ok((branch, missing, filters))) => {
            let path = workspace.project_root().display().to_string();
            let values = json!({"path": path, "branch": branch});
            found.push(Finding::ok(Check::Git, "doctor.git.project", values));
            if !missing.is_empty() {
                let values = json!({"path": path, "missing": missing});
                found.push(Finding::advice(Check::Git, "doctor.git.submodules", values));
            }
            if !filters.is_empty() {
                let allowed = workspace.runtime.project.filters.iter().map(ToString::to_string);
                let all: BTreeSet<String> = allowed.chain(filters.iter().cloned()).collect();
                let values = json!({ "filters": filters, "all": all });
                found.push(Finding::advice(Check::Git, "doctor.git.filters", values));
            }
        }
        Ok(Err(error)) => {
            let values = json!({"error": safe(&error)});
            found.push(Finding::problem(Check::Git, "doctor.git.wrong", values));
        }
        Err(error) => {
            let values = json!({"error": safe(&error)});
            found.push(Finding::problem(Check::Git, "doctor.git.wrong", values));
        }
    }
    if workspace.runtime.checks.is_empty() {
        found.push(no_checks(workspace).await);
    } else {
        found.push(isolation(workspace.runtime.allow_unisolated_checks).await);
        found.extend(not_prepared(workspace).await);
    }
    found
}

/// What the project shows. What is wrong with it is told already.
async fn shown(workspace: &Workspace) -> CheckProposal {
    let Ok(project) = open_project(workspace) else { return CheckProposal::default() };
    let shown = tasks::blocking(move || proposals::propose(&project)).await;
    shown.ok().and_then(Result::ok).unwrap_or_default()
}

/// No checks are configured: those that the project shows.
async fn no_checks(workspace: &Workspace) -> Finding {
    let shown = shown(workspace).await;
    if shown.checks.is_empty() {
        Finding::not_needed(Check::Git, "doctor.git.no_checks", json!({}))
    } else {
        Finding::advice(Check::Git, "doctor.checks.proposed", json!(shown))
    }
}

/// Checks are configured, and nothing brings what they depend on: what the project shows.
async fn not_prepared(workspace: &Workspace) -> Option<Finding> {
    let shown = proposals::missing(&shown(workspace).await, &workspace.runtime);
    let is_shown = !shown.prepare.is_empty();
    is_shown.then(|| Finding::advice(Check::Git, "doctor.checks.not_prepared", json!(shown)))
}

/// What keeps checks from everything but the commit that they prove.
async fn isolation(allowed: bool) -> Finding {
    let (reason, open) = match confinement::find().await {
        Confinement::Bubblewrap(_) => {
            return Finding::ok(Check::Sandbox, "doctor.checks.isolated", json!({}));
        }
        Confinement::Landlock(_, reason) => (reason, false),
        Confinement::Nothing(reason) => (reason, true),
    };
    if allowed {
        let values = json!({"reason": reason, "open": open});
        Finding::ok(Check::Sandbox, "doctor.checks.unisolated", values)
    } else {
        Finding::problem(Check::Sandbox, "doctor.checks.refused", json!({"reason": reason}))
    }
}

/// The program: agents look at history with it; the team itself does not need it.
async fn git(workspace: &Workspace) -> Option<Finding> {
    let agents = &workspace.runtime.agents;
    let real = Role::ALL.into_iter().any(|role| agents.of(role) != AgentKind::Rehearsal);
    let path = std::env::var_os("PATH");
    let version = match spawn::find_program("git", path.as_deref()) {
        Some(program) => {
            let env = BTreeMap::new();
            let said = ask(&program, &["--version"], &env, Duration::from_secs(20));
            said.await.ok().filter(|said| said.code == Some(0)).map(|said| said.stdout)
        }
        None => None,
    };
    let Some(text) = version else {
        return Some(if real {
            Finding::problem(Check::Git, "doctor.git.missing", json!({}))
        } else {
            Finding::not_needed(Check::Git, "doctor.git.unused", json!({}))
        });
    };
    let version = text.split_whitespace().nth(2).unwrap_or_default().to_owned();
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let values = json!({"version": version});
    Some(if number < OLDEST_GIT {
        Finding::problem(Check::Git, "doctor.git.old", values)
    } else {
        Finding::ok(Check::Git, "doctor.git.version", values)
    })
}

/// The clock against Discord's, and the zone of sprints.
pub(super) fn clock(workspace: &Workspace, skew: Option<i64>) -> Finding {
    let zone = workspace.runtime.sprint.timezone.0.name();
    match skew {
        Some(skew) if skew.abs() > SKEW => {
            // The other side before ours: ours is behind.
            let values = json!({"seconds": skew.abs(), "behind": skew > 0, "zone": zone});
            Finding::problem(Check::Clock, "doctor.clock.wrong", values)
        }
        Some(_) => Finding::ok(Check::Clock, "doctor.clock.ok", json!({"zone": zone})),
        None => Finding::not_needed(Check::Clock, "doctor.clock.unknown", json!({"zone": zone})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_and_not_each_that_it_holds() {
        let all = ["/a/w", "/a", "/a/w/.teams_runtime", "/b"].map(PathBuf::from);
        assert_eq!(topmost(&all), [Path::new("/a"), Path::new("/b")]);
    }
}
