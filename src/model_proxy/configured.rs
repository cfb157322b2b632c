//! The model servers that the configuration names.

use std::collections::BTreeMap;

use secrecy::SecretString;

use super::servers::Server;
use crate::agents::acp::known;
use crate::domain::config::{AgentKind, AgentsConfig, ModelApi, ModelServer, RuntimeConfig};

/// The servers that `agents.codex.model_url` and `agents.claude.model_url` are.
const CODEX_URL: &str = "codex-model-url";
const CLAUDE_URL: &str = "claude-model-url";
const ACP_URL: &str = "acp-model-url";

/// The model servers that a workspace names, and the usual ones whose keys it has; `key` is the value of a
/// variable.
#[must_use]
pub fn configured(
    runtime: &RuntimeConfig,
    key: impl Fn(&str) -> Option<SecretString>,
) -> BTreeMap<String, Server> {
    let mut all = BTreeMap::new();
    for (name, api, base_url, variable) in ModelServer::USUAL {
        if let Some(key) = key(variable) {
            let server = Server { api, base_url: base_url.to_owned(), key: Some(key) };
            all.insert(name.to_owned(), server);
        }
    }
    let agents = &runtime.agents;
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
    for (name, listed) in &runtime.models {
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
#[must_use]
pub fn server_of(
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
}
