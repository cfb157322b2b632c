//! Which agent works for a role, with its settings.

use std::path::Path;

use super::team::Team;
use crate::agents::acp::AcpSettings;
use crate::agents::claude::ClaudeSettings;
use crate::agents::codex::CodexSettings;
use crate::agents::rehearsal::RehearsalSettings;
use crate::agents::{Agent, Sandbox};
use crate::assets::RoleSpec;
use crate::domain::config::{AgentKind, AgentSandbox};
use crate::domain::role::Role;

/// How the names of Claude's models begin.
const CLAUDE_MODELS: [&str; 4] = ["claude", "sonnet", "opus", "haiku"];

/// The agent of a role.
pub(super) fn of(team: &Team, role: Role, spec: &RoleSpec) -> Agent {
    let agents = &team.workspace.runtime.agents;
    // An absolute path stays as it is.
    let in_workspace = |path: &Path| team.root().join(path);
    match agents.of(role) {
        AgentKind::Codex => Agent::Codex(CodexSettings {
            binary: agents.codex.binary.clone(),
            model: spec.model.clone(),
            reasoning: spec.reasoning.as_str().to_owned(),
            model_url: agents.codex.model_url.clone(),
            sandbox: sandbox(agents.codex.sandbox),
            login_home: agents.codex.login_home.as_deref().map(in_workspace),
            ..CodexSettings::default()
        }),
        AgentKind::Claude => Agent::Claude(ClaudeSettings {
            binary: agents.claude.binary.clone(),
            model: claude_model(team, role),
            reasoning: spec.reasoning.as_str().to_owned(),
            model_url: agents.claude.model_url.clone(),
            sandbox: sandbox(agents.claude.sandbox),
            login_home: agents.claude.login_home.as_deref().map(in_workspace),
            ..ClaudeSettings::default()
        }),
        AgentKind::Acp => Agent::Acp(AcpSettings {
            command: agents.acp.command.clone(),
            env: agents.acp.env.clone(),
            mode: agents.acp.mode.clone(),
            login_home: agents.acp.login_home.as_deref().map(in_workspace),
            sandbox: sandbox(agents.acp.sandbox),
        }),
        AgentKind::Rehearsal => Agent::Rehearsal(RehearsalSettings {
            script: agents.rehearsal.script.as_deref().map(in_workspace),
        }),
    }
}

/// The model that a conversation of the role is held with. A conversation goes on only with the same one,
/// and with the same agent: no agent can resume another's.
pub(super) fn model(team: &Team, role: Role, spec: &RoleSpec) -> String {
    let agents = &team.workspace.runtime.agents;
    match agents.of(role) {
        // As before there were others.
        AgentKind::Codex => spec.model.clone(),
        AgentKind::Rehearsal => AgentKind::Rehearsal.as_str().to_owned(),
        AgentKind::Claude => format!("claude {}", claude_model(team, role)),
        AgentKind::Acp => format!("acp {}", agents.acp.command.join(" ")),
    }
}

/// The tokens of its model's window, where the operator says so.
pub(super) fn window(team: &Team, role: Role) -> Option<u64> {
    let runtime = &team.workspace.runtime;
    let of_the_role = runtime.role_defaults.get(&role).and_then(|it| it.context_window);
    of_the_role.or_else(|| runtime.agents.window_of(runtime.agents.of(role)))
}

/// What a role's model is called decides whose it is: `role_defaults` usually names Codex's, and those mean
/// nothing here.
fn claude_model(team: &Team, role: Role) -> String {
    let runtime = &team.workspace.runtime;
    let named = runtime.role_defaults.get(&role).and_then(|defaults| defaults.model.clone());
    named
        .filter(|model| CLAUDE_MODELS.iter().any(|word| model.starts_with(word)))
        .or_else(|| runtime.agents.claude.model.clone())
        .unwrap_or_else(|| ClaudeSettings::default().model)
}

fn sandbox(wanted: AgentSandbox) -> Sandbox {
    match wanted {
        AgentSandbox::Auto => Sandbox::Auto,
        AgentSandbox::Off => Sandbox::Off,
    }
}
