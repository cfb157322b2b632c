//! Which door a run gets: the model server of its agent, and what its role's policy opens besides.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::refusals;
use super::run_socket;
use super::team::Team;
use crate::agents::{Agent, Confinement};
use crate::assets::Network;
use crate::domain::config::{AgentKind, AgentsConfig};
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::model_proxy::{ModelProxy, ModelServers, Outside, ProxyOptions, server_of, socket_in};

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
fn outside(team: &Team, run: &Run) -> Outside {
    let runtime = &team.workspace.runtime;
    let policy = team.workspace.role(run.role).map(|role| role.network).unwrap_or_default();
    // Research reads outside only where the workspace says so.
    let reads = run.role != Role::Research || runtime.research_defaults.web;
    if policy == Network::Open && reads {
        return Outside::Public;
    }
    let owned = |hosts: &[&str]| hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>();
    let agents = &runtime.agents;
    let hosts = match run.agent {
        AgentKind::Codex if agents.codex.login_home.is_some() => owned(&CODEX_HOSTS),
        AgentKind::Claude if agents.claude.login_home.is_some() => owned(&CLAUDE_HOSTS),
        AgentKind::Acp => agents.acp.hosts.clone(),
        AgentKind::Codex | AgentKind::Claude | AgentKind::Rehearsal => Vec::new(),
    };
    if hosts.is_empty() { Outside::Nothing } else { Outside::Hosts(hosts) }
}

/// Opens the door of a run; again where an earlier start had opened it. A run without one has no model and no
/// way out, which is logged and what its agent will say.
pub(super) async fn open(team: &Arc<Team>, run: &Run, run_dir: PathBuf) -> Option<ModelProxy> {
    let choice = team.workspace.choice(run.role, run.step, run.approach).ok()?;
    let agent = super::agent::of(team, &choice);
    let agents = &team.workspace.runtime.agents;
    let (servers, outside) = (servers_for(agents, run.agent, &team.models), outside(team, run));
    if matches!(agent, Agent::Rehearsal(_)) && !outside.is_open() {
        return None;
    }
    let confinement = team.driver.confinement(agent.sandbox()).await;
    let folder = run_socket::folder_of(team, run);
    let opening = ProxyOptions {
        socket: socket_in(&folder),
        port: !confinement.is_some_and(Confinement::has_own_network),
        run_dir,
        servers,
        outside,
        allowance: run.allowance,
        refused: refusals::of_door(team, run),
    };
    let opened = match run_socket::make_folder(team, run) {
        Ok(()) => team.models.open(opening).await,
        Err(error) => Err(error.into()),
    };
    match opened {
        Ok(door) => Some(door),
        Err(error) => {
            tracing::warn!(run = %run.run_id, %error, "the run has no way to its model");
            None
        }
    }
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
