//! Which agent works for a role, with its settings.

use std::path::Path;

use super::team::Team;
use crate::agents::Agent;
use crate::agents::acp::AcpSettings;
use crate::agents::claude::ClaudeSettings;
use crate::agents::codex::CodexSettings;
use crate::agents::rehearsal::RehearsalSettings;
use crate::domain::config::AgentKind;
use crate::domain::role::Role;
use crate::workspace::Choice;

/// The agent that was chosen.
pub(super) fn of(team: &Team, choice: &Choice) -> Agent {
    let agents = &team.workspace.runtime.agents;
    // An absolute path stays as it is.
    let in_workspace = |path: &Path| team.root().join(path);
    let server = crate::model_proxy::server_of(agents, choice.agent, |name| team.models.has(name));
    match choice.agent {
        AgentKind::Codex => Agent::Codex(CodexSettings {
            binary: agents.codex.binary.clone(),
            model: choice.model.clone(),
            reasoning: choice.reasoning.as_str().to_owned(),
            model_url: agents.codex.model_url.clone(),
            server,
            sandbox: agents.codex.sandbox,
            login_home: agents.codex.login_home.as_deref().map(in_workspace),
            ..CodexSettings::default()
        }),
        AgentKind::Claude => Agent::Claude(ClaudeSettings {
            binary: agents.claude.binary.clone(),
            model: choice.model.clone(),
            reasoning: choice.reasoning.as_str().to_owned(),
            model_url: agents.claude.model_url.clone(),
            server,
            sandbox: agents.claude.sandbox,
            login_home: agents.claude.login_home.as_deref().map(in_workspace),
            ..ClaudeSettings::default()
        }),
        AgentKind::Acp => Agent::Acp(AcpSettings {
            command: agents.acp.command.clone(),
            env: agents.acp.env.clone(),
            server,
            model: agents.acp.model.clone(),
            mode: agents.acp.mode.clone(),
            login_home: agents.acp.login_home.as_deref().map(in_workspace),
            sandbox: agents.acp.sandbox,
        }),
        AgentKind::Rehearsal => Agent::Rehearsal(RehearsalSettings {
            script: agents.rehearsal.script.as_deref().map(in_workspace),
            sandbox: agents.rehearsal.sandbox,
        }),
    }
}

/// The tokens of its model's window, where the operator says so.
pub(super) fn window(team: &Team, role: Role, agent: AgentKind) -> Option<u64> {
    let runtime = &team.workspace.runtime;
    let of_the_role = runtime.role_defaults.get(&role).and_then(|it| it.context_window);
    of_the_role.or_else(|| runtime.agents.window_of(agent))
}
