//! What a worker is asked to do for a run: what its agent is told, and what it may reach.

use std::collections::BTreeSet;

use super::task::{self, TaskError};
use super::team::Team;
use crate::agents::Agent;
use crate::assets::Network;
use crate::domain::assignment::Control;
use crate::domain::config::{AgentKind, AgentsConfig};
use crate::domain::envelope::Envelope;
use crate::domain::lifecycle::StepAccess;
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::model_proxy::{AllowedHosts, ModelServers, server_of};
use crate::worker::{JobEnvironments, JobProxy, JobSpec};

/// Where an agent with a login of its own has to get to.
const CODEX_HOSTS: [&str; 3] = ["chatgpt.com", "api.openai.com", "auth.openai.com"];
const CLAUDE_HOSTS: [&str; 4] =
    ["api.anthropic.com", "claude.ai", "console.anthropic.com", "platform.claude.com"];

/// The servers that a run may ask.
fn servers_for(agents: &AgentsConfig, kind: AgentKind, models: &ModelServers) -> BTreeSet<String> {
    match kind {
        AgentKind::Codex | AgentKind::Claude => {
            server_of(agents, kind, |name| models.has(name)).into_iter().collect()
        }
        // Those that its settings name.
        AgentKind::Acp => {
            let named = |name: &&str| {
                let wanted = format!("{{models}}/{name}");
                let ends = |rest: &str| {
                    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
                };
                let found = |value: &String| {
                    value.match_indices(&wanted).any(|(at, _)| ends(&value[at + wanted.len()..]))
                };
                agents.acp.env.values().any(found)
            };
            let told = models.names().filter(named).map(str::to_owned);
            told.chain(server_of(agents, kind, |name| models.has(name))).collect()
        }
        AgentKind::Rehearsal => BTreeSet::new(),
    }
}

/// What a run may reach besides.
fn outside(team: &Team, run: &Run) -> AllowedHosts {
    let runtime = &team.workspace.runtime;
    let policy = team.workspace.role(run.role).map(|role| role.network).unwrap_or_default();
    // Research reads outside only where the workspace says so.
    let reads = run.role != Role::Research || runtime.research_defaults.web;
    if policy == Network::Open && reads {
        return AllowedHosts::Public;
    }
    let owned = |hosts: &[&str]| hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>();
    let agents = &runtime.agents;
    let hosts = match run.agent {
        AgentKind::Codex if agents.codex.login_home.is_some() => owned(&CODEX_HOSTS),
        AgentKind::Claude if agents.claude.login_home.is_some() => owned(&CLAUDE_HOSTS),
        AgentKind::Acp => agents.acp.hosts.clone(),
        AgentKind::Codex | AgentKind::Claude | AgentKind::Rehearsal => Vec::new(),
    };
    if hosts.is_empty() { AllowedHosts::Nothing } else { AllowedHosts::Hosts(hosts) }
}

/// What the way out of a run leads to; none for an agent that needs none.
fn proxy(team: &Team, run: &Run, agent: &Agent) -> Option<JobProxy> {
    let agents = &team.workspace.runtime.agents;
    let (servers, outside) = (servers_for(agents, run.agent, &team.models), outside(team, run));
    let needed = !matches!(agent, Agent::Rehearsal(_)) || outside.is_open();
    let (allowance, shared_budgets) = (run.allowance, run.shared_budgets.clone());
    needed.then_some(JobProxy { servers, outside, allowance, shared_budgets })
}

/// The job of a generation of a run; `controls` are what was written to it before its prompt is made, which holds them.
/// Blocks: it reads git, and the records, for which the store has to have settled.
pub(super) fn job(
    team: &Team,
    envelope: &Envelope,
    run: &Run,
    controls: &[Control],
    environments: JobEnvironments,
) -> Result<JobSpec, TaskError> {
    let worktrees = team.worktrees();
    let worktree = task::tree_for(team, &run.request_id, run.step)?;
    let spec = task::spec(team, envelope, &worktree, run, team.run_dir(run))?;
    let model = team.workspace.choice(run.role, run.step, run.approach)?.model;
    let may_write = task::step_of(team, run).is_some_and(|step| step.access == StepAccess::Write);
    Ok(JobSpec {
        run_id: run.run_id.clone(),
        generation: run.generation,
        request_id: run.request_id.clone(),
        role: run.role,
        step: run.step,
        started_at: run.started_at,
        worktrees,
        pre_tree: run.pre_tree.clone(),
        may_write,
        agent_kind: run.agent,
        model,
        environments,
        proxy: proxy(team, run, &spec.agent),
        run: spec,
        in_prompt: controls.iter().map(|control| control.message_id).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::config::ModelApi;
    use crate::model_proxy::Server;

    #[test]
    fn an_acp_agent_gets_the_servers_that_its_settings_name() {
        let server =
            || Server { api: ModelApi::Chat, base_url: "http://127.0.0.1:9".to_owned(), key: None };
        let all = ["one", "one-more", "two"].map(|name| (name.to_owned(), server()));
        let models = ModelServers::new(all.into(), Default::default()).unwrap();
        let mut agents = AgentsConfig::default();
        agents
            .acp
            .env
            .insert("CONFIG".to_owned(), "{\"url\": \"{models}/one-more/v1\"}".to_owned());
        let found = servers_for(&agents, AgentKind::Acp, &models);
        assert_eq!(found, BTreeSet::from(["one-more".to_owned()]));
    }
}
