//! The agents' programs: there, of a tested version, logged in, confined.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use secrecy::SecretString;
use serde_json::{Value, json};

use super::finding::{Check, Finding, safe};
use crate::agents::RunError;
use crate::agents::acp::AcpSettings;
use crate::agents::claude::ClaudeSettings;
use crate::agents::codex::CodexSettings;
use crate::agents::probe::known::{self, TestedAgent};
use crate::agents::probe::{self, Age, Answer, Login};
use crate::agents::project_settings;
use crate::domain::config::{AgentKind, Sandbox};
use crate::domain::role::Role;
use crate::model_proxy::{Server, configured, server_of};
use crate::platform::confinement::{self, Confinement};
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
                claude(workspace, &mut found).await;
                found.push(confined(agents.claude.sandbox).await);
            }
            AgentKind::Acp => {
                acp(workspace, &mut found).await;
                found.push(confined(agents.acp.sandbox).await);
            }
        }
    }
    keys(workspace, &mut found);
    found.extend(no_price(workspace));
    found.extend(brought(workspace));
    if !found.iter().any(|finding| finding.check == Check::Sandbox) {
        found.push(Finding::not_needed(Check::Sandbox, "doctor.sandbox.unused", json!({})));
    }
    found
}

fn servers(workspace: &Workspace) -> BTreeMap<String, Server> {
    let key = |name: &str| workspace.environment.get(name).map(SecretString::from);
    configured(&workspace.runtime, key)
}

fn servers_of(workspace: &Workspace, kind: AgentKind) -> Option<String> {
    let servers = servers(workspace);
    server_of(&workspace.runtime.agents, kind, |name| servers.contains_key(name))
}

/// What the project brings along for agents, and the line by which it would be pinned.
fn brought(workspace: &Workspace) -> Option<Finding> {
    let project = workspace.project_root();
    let found = match project_settings::in_tree(&project) {
        Ok(found) => found,
        Err(error) => {
            let values = json!({"error": safe(&error)});
            return Some(Finding::problem(Check::Agent, "doctor.agent.settings_unread", values));
        }
    };
    let pinned = &workspace.runtime.sandbox.project_settings;
    if found.is_empty() && pinned.is_empty() {
        return None;
    }
    let line: Vec<String> =
        found.iter().map(|(path, hash)| format!("{path:?}: {hash:?}")).collect();
    let paths: Vec<&String> = found.keys().collect();
    let values = json!({"paths": paths, "line": line.join(", ")});
    let same = pinned.len() == found.len()
        && pinned
            .iter()
            .all(|(path, hash)| found.get(path.as_str()).is_some_and(|it| it == hash.as_str()));
    Some(match (pinned.is_empty(), same) {
        (true, _) => Finding::not_needed(Check::Agent, "doctor.agent.settings_ignored", values),
        (false, true) => Finding::ok(Check::Agent, "doctor.agent.settings_pinned", values),
        (false, false) => Finding::problem(Check::Agent, "doctor.agent.settings_changed", values),
    })
}

/// The model servers that are listed: each with its key, and each that an agent is to work with.
fn keys(workspace: &Workspace, found: &mut Vec<Finding>) {
    let runtime = &workspace.runtime;
    let servers = servers(workspace);
    for (name, listed) in &runtime.models {
        let Some(variable) = listed.key_env.as_ref().filter(|_| !servers.contains_key(name)) else {
            continue;
        };
        let values = json!({"name": name, "variable": variable.as_str()});
        found.push(Finding::problem(Check::Agent, "doctor.models.key", values));
    }
    let agents = &runtime.agents;
    for wanted in [&agents.codex.server, &agents.claude.server, &agents.acp.server] {
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

/// Where budgets count nothing while an agent works, because nobody says what its model costs.
fn no_price(workspace: &Workspace) -> Option<Finding> {
    let runtime = &workspace.runtime;
    let kinds: BTreeSet<AgentKind> =
        Role::ALL.into_iter().map(|role| runtime.agents.of(role)).collect();
    let agents: Vec<&str> = kinds
        .into_iter()
        .filter(|kind| *kind != AgentKind::Rehearsal)
        .map(AgentKind::as_str)
        .collect();
    let is_blind = runtime.budgets.are_in_dollars() && runtime.prices.0.is_empty();
    let values = json!({ "agents": agents });
    (is_blind && !agents.is_empty())
        .then(|| Finding::advice(Check::Agent, "doctor.agent.no_price", values))
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
    let own = Own { tried: known::CODEX, kind: "codex", variable: "TEAMS_CODEX" };
    match probe::codex(&settings).await {
        Ok(seen) => {
            found.push(own.version(&seen.program, seen.version.as_ref()));
            let login = |home: &str, program: &str| {
                format!("mkdir -p '{home}' && CODEX_HOME='{home}' '{program}' login")
            };
            found.push(own.login(&seen.program, &seen.login, login));
        }
        Err(error) => found.push(own.absent(&error)),
    }
}

async fn claude(workspace: &Workspace, found: &mut Vec<Finding>) {
    let config = &workspace.runtime.agents.claude;
    let settings = ClaudeSettings {
        binary: config.binary.clone(),
        model_url: config.model_url.clone(),
        server: servers_of(workspace, AgentKind::Claude),
        login_home: config.login_home.as_deref().map(|path| workspace.root.join(path)),
        ..ClaudeSettings::default()
    };
    let own = Own { tried: known::CLAUDE, kind: "claude", variable: "TEAMS_CLAUDE" };
    match probe::claude(&settings).await {
        Ok(seen) => {
            found.push(own.version(&seen.program, seen.version.as_ref()));
            let login = |home: &str, program: &str| {
                format!("mkdir -p '{home}' && CLAUDE_CONFIG_DIR='{home}' '{program}' auth login")
            };
            found.push(own.login(&seen.program, &seen.login, login));
        }
        Err(error) => found.push(own.absent(&error)),
    }
}

/// An agent with a driver of its own, and how it is named.
struct Own {
    tried: TestedAgent,
    kind: &'static str,
    variable: &'static str,
}

impl Own {
    fn values(&self, program: &Path, version: Option<&str>) -> Value {
        json!({"name": self.tried.name, "package": self.tried.package, "version": self.tried.version(),
            "kind": self.kind, "variable": self.variable,
            "program": program.display().to_string(), "found": version})
    }

    fn absent(&self, error: &RunError) -> Finding {
        let RunError::NotInstalled { looked, .. } = error else { return unknown(error) };
        let mut values = self.values(Path::new(""), None);
        values["looked"] = json!(looked);
        Finding::problem(Check::Agent, "doctor.agent.missing", values)
    }

    fn version(&self, program: &Path, version: Option<&(String, Age)>) -> Finding {
        let values = self.values(program, version.map(|(text, _)| text.as_str()));
        match version.map(|(_, age)| age) {
            None => Finding::problem(Check::Agent, "doctor.agent.strange", values),
            Some(Age::TooOld) => Finding::problem(Check::Agent, "doctor.agent.old", values),
            Some(Age::Newer) => Finding::ok(Check::Agent, "doctor.agent.newer", values),
            Some(Age::Tested) => Finding::ok(Check::Agent, "doctor.agent.ok", values),
        }
    }

    /// `command` logs it in, in a folder with a program.
    fn login(
        &self,
        program: &Path,
        login: &Login,
        command: impl Fn(&str, &str) -> String,
    ) -> Finding {
        let mut values = self.values(program, None);
        match login {
            Login::Yes => Finding::ok(Check::Agent, "doctor.login.ok", values),
            Login::NotNeeded => Finding::not_needed(Check::Agent, "doctor.login.server", values),
            Login::Unknown => Finding::not_needed(Check::Agent, "doctor.login.unknown", values),
            Login::Nowhere => Finding::problem(Check::Agent, "doctor.login.nowhere", values),
            Login::No(home) => {
                let (home, program) = (home.display().to_string(), program.display().to_string());
                values["command"] = json!(command(&home, &program));
                Finding::problem(Check::Agent, "doctor.login.none", values)
            }
        }
    }
}

async fn acp(workspace: &Workspace, found: &mut Vec<Finding>) {
    let config = &workspace.runtime.agents.acp;
    let settings = AcpSettings {
        command: config.command.clone(),
        env: config.env.clone(),
        login_home: config.login_home.as_deref().map(|path| workspace.root.join(path)),
        ..AcpSettings::default()
    };
    let seen = match probe::acp(&settings).await {
        Ok(seen) => seen,
        Err(RunError::NotInstalled { looked, setting, .. }) => {
            let values = json!({"name": "agents.acp", "looked": looked, "setting": setting});
            found.push(Finding::problem(Check::Agent, "doctor.agent.absent", values));
            return;
        }
        Err(error) => {
            found.push(unknown(&error));
            return;
        }
    };
    let command = config.command.join(" ");
    let (name, ways) = match &seen.answer {
        Answer::Strange(reason) => {
            let values = json!({"command": command, "reason": reason});
            found.push(Finding::problem(Check::Agent, "doctor.acp.strange", values));
            return;
        }
        Answer::Version(version) => {
            let values = json!({"command": command, "found": version});
            found.push(Finding::problem(Check::Agent, "doctor.acp.protocol", values));
            return;
        }
        Answer::Speaks { name, version, tried, ways } => {
            let wanted = tried.map(|(tried, _)| tried.version()).unwrap_or_default();
            let package = tried.map(|(tried, _)| tried.package).unwrap_or_default();
            let values = json!({"name": name, "found": version, "version": wanted, "package": package,
                "program": seen.program.display().to_string()});
            found.push(match tried.map(|(_, age)| age) {
                Some(Age::TooOld) => Finding::problem(Check::Agent, "doctor.agent.old", values),
                Some(Age::Tested) => Finding::ok(Check::Agent, "doctor.agent.ok", values),
                Some(Age::Newer) => Finding::ok(Check::Agent, "doctor.agent.newer", values),
                None => Finding::ok(Check::Agent, "doctor.acp.untried", values),
            });
            (name, ways)
        }
    };
    found.push(match &seen.login {
        Login::No(home) => {
            let home = home.display().to_string();
            let values = json!({"name": name, "home": home, "command": format!("mkdir -p '{home}' && HOME='{home}' {command}")});
            Finding::problem(Check::Agent, "doctor.acp.login.none", values)
        }
        Login::NotNeeded => {
            Finding::not_needed(Check::Agent, "doctor.acp.login.not_needed", json!({"name": name}))
        }
        Login::Yes | Login::Nowhere | Login::Unknown => {
            let values = json!({"name": name, "ways": ways.join(", ")});
            Finding::not_needed(Check::Agent, "doctor.acp.login.unknown", values)
        }
    });
}

fn unknown(error: &RunError) -> Finding {
    Finding::problem(Check::Agent, "doctor.agent.unknown", json!({"error": safe(error)}))
}

/// What the agent would be confined by.
async fn confined(wanted: Sandbox) -> Finding {
    if wanted == Sandbox::Off {
        return Finding::not_needed(Check::Sandbox, "doctor.sandbox.off", json!({}));
    }
    match confinement::find().await {
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
