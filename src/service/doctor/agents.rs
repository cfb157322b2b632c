//! The agents' programs: there, of a tested version, logged in, confined.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;

use super::super::doors;
use super::{Check, Finding, safe};
use crate::agents::RunError;
use crate::agents::acp::AcpSettings;
use crate::agents::claude::ClaudeSettings;
use crate::agents::codex::CodexSettings;
use crate::agents::confine::{self, Confinement};
use crate::agents::probe::{self, Age, CODEX_TESTED, Found, Login};
use crate::domain::config::{AgentKind, AgentSandbox};
use crate::domain::role::Role;
use crate::platform::landlock::Strength;
use crate::workspace::Workspace;

/// Each agent that some role works with.
pub(super) async fn look(workspace: &Workspace) -> Vec<Finding> {
    let agents = &workspace.runtime.agents;
    let kinds: BTreeSet<AgentKind> = Role::ALL.into_iter().map(|role| agents.of(role)).collect();
    let mut found = Vec::new();
    for kind in kinds {
        match kind {
            AgentKind::Rehearsal => {
                found.push(Finding::ok(Check::Agent, "doctor.agent.rehearsal", json!({})));
            }
            AgentKind::Codex => {
                codex(workspace, &mut found).await;
                found.push(confined(agents.codex.sandbox).await);
            }
            AgentKind::Claude => {
                let binary = agents.claude.binary.clone();
                let settings = ClaudeSettings { binary, ..ClaudeSettings::default() };
                found.push(there("Claude Code", settings.program()));
                found.push(confined(agents.claude.sandbox).await);
            }
            AgentKind::Acp => {
                let command = agents.acp.command.clone();
                let settings = AcpSettings { command, ..AcpSettings::default() };
                found.push(there("agents.acp", settings.program()));
                found.push(confined(agents.acp.sandbox).await);
            }
        }
    }
    keys(workspace, &mut found);
    if !found.iter().any(|finding| finding.check == Check::Sandbox) {
        found.push(Finding::not_needed(Check::Sandbox, "doctor.sandbox.unused", json!({})));
    }
    found
}

fn servers_of(workspace: &Workspace, kind: AgentKind) -> Option<String> {
    let servers = doors::servers(workspace);
    doors::server_of(&workspace.runtime.agents, kind, |name| servers.contains_key(name))
}

/// The model servers that are listed: each with its key, and each that an agent is to work with.
fn keys(workspace: &Workspace, found: &mut Vec<Finding>) {
    let runtime = &workspace.runtime;
    let servers = doors::servers(workspace);
    for (name, listed) in &runtime.models {
        let Some(variable) = listed.key_env.as_ref().filter(|_| !servers.contains_key(name)) else {
            continue;
        };
        let values = json!({"name": name, "variable": variable.as_str()});
        found.push(Finding::problem(Check::Agent, "doctor.models.key", values));
    }
    for wanted in [&runtime.agents.codex.server, &runtime.agents.claude.server] {
        if let Some(name) = wanted
            .as_ref()
            .filter(|name| !servers.contains_key(*name) && !runtime.models.contains_key(*name))
        {
            let values = json!({"name": name});
            found.push(Finding::problem(Check::Agent, "doctor.models.unknown", values));
        }
    }
    if !servers.is_empty() {
        let names = servers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        found.push(Finding::ok(Check::Agent, "doctor.models.ok", json!({"names": names})));
    }
}

/// Whether an agent's program is there. What else there is to know it says when it begins.
fn there(name: &str, program: Result<PathBuf, RunError>) -> Finding {
    match program {
        Ok(program) => {
            let values = json!({"name": name, "program": program.display().to_string()});
            Finding::ok(Check::Agent, "doctor.agent.there", values)
        }
        Err(RunError::NotInstalled { looked, setting, .. }) => {
            let values = json!({"name": name, "looked": looked, "setting": setting});
            Finding::problem(Check::Agent, "doctor.agent.absent", values)
        }
        Err(error) => {
            Finding::problem(Check::Agent, "doctor.agent.unknown", json!({"error": safe(&error)}))
        }
    }
}

async fn codex(workspace: &Workspace, found: &mut Vec<Finding>) {
    let config = &workspace.runtime.agents.codex;
    let settings = CodexSettings {
        binary: config.binary.clone(),
        model_url: config.model_url.clone(),
        server: servers_of(workspace, AgentKind::Codex),
        login_home: config.login_home.as_deref().map(|path| workspace.root.join(path)),
        ..CodexSettings::default()
    };
    match probe::codex(&settings).await {
        Ok(seen) => judge(&seen, found),
        Err(RunError::NotInstalled { looked, .. }) => {
            let values = json!({"looked": looked, "version": install_version()});
            found.push(Finding::problem(Check::Agent, "doctor.agent.missing", values));
        }
        Err(error) => {
            let values = json!({"error": safe(&error)});
            found.push(Finding::problem(Check::Agent, "doctor.agent.unknown", values));
        }
    }
}

/// What to install: the first tested version.
fn install_version() -> String {
    let [(major, minor), _] = CODEX_TESTED;
    format!("{major}.{minor}.0")
}

fn judge(seen: &Found, found: &mut Vec<Finding>) {
    let program = seen.program.display().to_string();
    let wanted = install_version();
    found.push(match &seen.version {
        None => {
            let values = json!({"program": program, "version": wanted});
            Finding::problem(Check::Agent, "doctor.agent.strange", values)
        }
        Some((version, Age::TooOld)) => {
            let values = json!({"program": program, "found": version, "version": wanted});
            Finding::problem(Check::Agent, "doctor.agent.old", values)
        }
        Some((version, Age::Newer)) => {
            let values = json!({"program": program, "found": version, "version": wanted});
            Finding::ok(Check::Agent, "doctor.agent.newer", values)
        }
        Some((version, Age::Tested)) => {
            let values = json!({"program": program, "found": version});
            Finding::ok(Check::Agent, "doctor.agent.ok", values)
        }
    });
    found.push(match &seen.login {
        Login::Yes => Finding::ok(Check::Agent, "doctor.login.ok", json!({})),
        Login::NotNeeded => Finding::not_needed(Check::Agent, "doctor.login.server", json!({})),
        Login::No(home) => {
            let home = home.display().to_string();
            Finding::problem(
                Check::Agent,
                "doctor.login.none",
                json!({"home": home, "program": program}),
            )
        }
        Login::Nowhere => {
            Finding::problem(Check::Agent, "doctor.login.nowhere", json!({"program": program}))
        }
        Login::Unknown => Finding::not_needed(Check::Agent, "doctor.login.unknown", json!({})),
    });
}

/// What the agent would be confined by.
async fn confined(wanted: AgentSandbox) -> Finding {
    if wanted == AgentSandbox::Off {
        return Finding::not_needed(Check::Sandbox, "doctor.sandbox.off", json!({}));
    }
    match confine::find().await {
        Confinement::Bubblewrap(program) => {
            let values = json!({"program": program.display().to_string()});
            Finding::ok(Check::Sandbox, "doctor.sandbox.ok", values)
        }
        Confinement::Landlock(strength, reason) => {
            let key = match strength {
                Strength::Files => "doctor.sandbox.files",
                Strength::FilesAndTcp | Strength::FilesTcpAndSignals => "doctor.sandbox.landlock",
            };
            Finding::ok(Check::Sandbox, key, json!({"reason": reason}))
        }
        Confinement::Nothing(reason) => {
            Finding::problem(Check::Sandbox, "doctor.sandbox.none", json!({"reason": reason}))
        }
    }
}
