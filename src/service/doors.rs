//! Which door a run gets: the model server of its agent, and what its role's policy opens besides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;

use super::models::{Models, OpenDoor, Outside, ProxyOptions, Server, socket_in};
use super::refusals;
use super::run_socket;
use super::team::Team;
use crate::agents::acp::known;
use crate::agents::{Agent, Confinement};
use crate::assets::Network;
use crate::domain::config::{AgentKind, AgentsConfig, ModelApi, ModelServer};
use crate::domain::role::Role;
use crate::domain::run::Run;
use crate::platform::files;
use crate::workspace::Workspace;

/// The servers that `agents.codex.model_url` and `agents.claude.model_url` are.
const CODEX_URL: &str = "codex-model-url";
const CLAUDE_URL: &str = "claude-model-url";
const ACP_URL: &str = "acp-model-url";
/// Where an agent with a login of its own has to get to.
const CODEX_HOSTS: [&str; 3] = ["chatgpt.com", "api.openai.com", "auth.openai.com"];
const CLAUDE_HOSTS: [&str; 4] =
    ["api.anthropic.com", "claude.ai", "console.anthropic.com", "platform.claude.com"];

/// The model servers that a workspace names, and the usual ones whose keys it has.
pub(super) fn servers(workspace: &Workspace) -> BTreeMap<String, Server> {
    let key = |name: &str| workspace.environment.get(name).map(SecretString::from);
    let mut all = BTreeMap::new();
    for (name, api, base_url, variable) in ModelServer::USUAL {
        if let Some(key) = key(variable) {
            let server = Server { api, base_url: base_url.to_owned(), key: Some(key) };
            all.insert(name.to_owned(), server);
        }
    }
    let agents = &workspace.runtime.agents;
    let urls = [
        (CODEX_URL, Some(ModelApi::Responses), &agents.codex.model_url),
        (CLAUDE_URL, Some(ModelApi::Messages), &agents.claude.model_url),
        (ACP_URL, known::api(&agents.acp.command), &agents.acp.model_url),
    ];
    for (name, api, url) in urls {
        if let (Some(api), Some(base_url)) = (api, url.clone()) {
            all.insert(name.to_owned(), Server { api, base_url, key: None });
        }
    }
    for (name, listed) in &workspace.runtime.models {
        let found = listed.key_env.as_ref().map(|variable| key(variable.as_str()));
        if found.as_ref().is_some_and(Option::is_none) {
            tracing::warn!(server = name.as_str(), "the key of a model server is not set");
            continue;
        }
        let (api, base_url) = (listed.api, listed.base_url.clone());
        all.insert(name.clone(), Server { api, base_url, key: found.flatten() });
    }
    all
}

/// The model server of an agent; none where it goes by a login of its own, or nobody named one.
pub(super) fn server_of(
    agents: &AgentsConfig,
    kind: AgentKind,
    has: impl Fn(&str) -> bool,
) -> Option<String> {
    let (url, url_name, login, named, usual) = match kind {
        AgentKind::Codex => {
            let set = &agents.codex;
            (set.model_url.is_some(), CODEX_URL, &set.login_home, &set.server, "openai")
        }
        AgentKind::Claude => {
            let set = &agents.claude;
            (set.model_url.is_some(), CLAUDE_URL, &set.login_home, &set.server, "anthropic")
        }
        // Which one such an agent wants by itself is not known.
        AgentKind::Acp => {
            let set = &agents.acp;
            (set.model_url.is_some(), ACP_URL, &set.login_home, &set.server, "")
        }
        AgentKind::Rehearsal => return None,
    };
    let name = match (named, url, login) {
        (Some(named), _, _) => named.as_str(),
        (None, true, _) => url_name,
        (None, false, Some(_)) => return None,
        (None, false, None) => usual,
    };
    has(name).then(|| name.to_owned())
}

/// The servers that a run may ask.
fn servers_for(agents: &AgentsConfig, kind: AgentKind, models: &Models) -> BTreeSet<String> {
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
pub(super) async fn open(team: &Arc<Team>, run: &Run, run_dir: PathBuf) -> Option<OpenDoor> {
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

/// Whether an earlier start had opened a door for a run.
pub(super) fn was_open(run_dir: &std::path::Path) -> bool {
    files::exists(&run_dir.join(super::models::KEPT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_an_agent_follows_from_what_is_configured() {
        let mut agents = AgentsConfig::default();
        let codex = |agents: &AgentsConfig, keys: &[&str]| {
            server_of(agents, AgentKind::Codex, |name| keys.contains(&name))
        };
        assert_eq!(codex(&agents, &[]), None);
        assert_eq!(codex(&agents, &["openai"]).as_deref(), Some("openai"));
        agents.codex.login_home = Some("codex".into());
        assert_eq!(codex(&agents, &["openai"]), None, "a login is not mixed with a key");
        agents.codex.server = Some("ours".to_owned());
        assert_eq!(codex(&agents, &["openai", "ours"]).as_deref(), Some("ours"));
        agents.codex.server = None;
        agents.codex.model_url = Some("http://127.0.0.1:9/v1".to_owned());
        assert_eq!(codex(&agents, &["openai", CODEX_URL]).as_deref(), Some(CODEX_URL));
        let claude = server_of(&agents, AgentKind::Claude, |name| name == "anthropic");
        assert_eq!(claude.as_deref(), Some("anthropic"));
    }

    #[test]
    fn an_acp_agent_gets_the_servers_that_its_settings_name() {
        let server =
            || Server { api: ModelApi::Chat, base_url: "http://127.0.0.1:9".to_owned(), key: None };
        let all = ["one", "one-more", "two"].map(|name| (name.to_owned(), server()));
        let models = Models::new(all.into(), Default::default()).unwrap();
        let mut agents = AgentsConfig::default();
        agents
            .acp
            .env
            .insert("CONFIG".to_owned(), "{\"url\": \"{models}/one-more/v1\"}".to_owned());
        let found = servers_for(&agents, AgentKind::Acp, &models);
        assert_eq!(found, BTreeSet::from(["one-more".to_owned()]));
    }
}
