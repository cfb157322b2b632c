//! How an agent that speaks the protocol is found and started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::known;
use crate::agents::error::RunError;
use crate::agents::sandbox::{ProxyAddress, Sandbox};
use crate::platform::spawn;

/// Settings of an agent that speaks the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AcpSettings {
    /// The program with its arguments.
    pub command: Vec<String>,
    /// What its environment holds beside what every agent's does. No secrets: its commands see it.
    pub env: BTreeMap<String, String>,
    /// The model server behind the team's proxy that it works with, for the agents that are known.
    pub server: Option<String>,
    /// What it asks that server for; its own choice where absent.
    pub model: Option<String>,
    /// The mode of the agent to be set; by role where absent and the agent has one that fits.
    pub mode: Option<String>,
    /// A folder in which the operator logged it in, as its home; a private one by default.
    pub login_home: Option<PathBuf>,
    /// Whether it is confined.
    pub sandbox: Sandbox,
}

impl AcpSettings {
    /// Finds the program.
    ///
    /// # Errors
    /// [`RunError::NotInstalled`] where there is none.
    pub fn program(&self) -> Result<PathBuf, RunError> {
        let wanted = self.command.first().map(String::as_str).unwrap_or_default();
        let path = std::env::var_os("PATH");
        spawn::find_program(wanted, path.as_deref()).ok_or_else(|| RunError::NotInstalled {
            name: "the agent",
            looked: format!("looked for `{wanted}`"),
            setting: "agents.acp.command",
            variable: "PATH",
        })
    }

    /// What its environment holds beside what every agent's does. `{models}` in a value is the address of the
    /// team's proxy, below which each model server has its name, `{token}` the word that opens it, and `{model}` the
    /// model that is to be asked for.
    pub(in crate::agents) fn environment(
        &self,
        proxy: Option<&ProxyAddress>,
    ) -> BTreeMap<String, String> {
        let model = self.model.as_deref().unwrap_or_default();
        let filled = |value: &String| {
            let value = value.replace("{model}", model);
            let Some(proxy) = proxy else { return value };
            let url = proxy.url("");
            value.replace("{models}", url.trim_end_matches('/')).replace("{token}", &proxy.token)
        };
        // Else codex-acp asks its model, after every turn, what the user might say next.
        let quiet = ("CODEX_ACP_PROMPT_SUGGESTIONS".to_owned(), "false".to_owned());
        let server = proxy.zip(self.server.as_deref());
        let known = server.and_then(|(proxy, server)| {
            let (url, model) = (proxy.url(server), self.model.as_deref());
            known::environment(&self.command, (&url, &proxy.token), model)
        });
        let own = self.env.iter().map(|(name, value)| (name.clone(), filled(value)));
        [quiet].into_iter().chain(known.unwrap_or_default()).chain(own).collect()
    }

    /// A short name for people: the program, or the script that it plays.
    pub(in crate::agents) fn name(&self) -> String {
        let file = |word: &String| {
            let name = Path::new(word).file_stem().map(|name| name.to_string_lossy().into_owned());
            name.unwrap_or_default()
        };
        let words = self.command.iter().filter(|word| !word.starts_with('-'));
        let interpreters = ["node", "npx", "bun", "python3", "sh", "env"];
        let name = words.map(file).find(|name| !interpreters.contains(&name.as_str()));
        name.unwrap_or_else(|| "acp".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_is_not_known_is_told_by_its_environment() {
        let named = [("URL", "{models}/ours"), ("KEY", "{token}"), ("MODEL", "{model}")];
        let env = named.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let model = Some("qwen3".to_owned());
        let settings = AcpSettings { env, model, ..AcpSettings::default() };
        let proxy = ProxyAddress {
            socket: PathBuf::new(),
            port: Some(9),
            token: "the-key".to_owned(),
            leads_out: false,
            traffic: None,
        };
        let told = settings.environment(Some(&proxy));
        assert_eq!(told["URL"], proxy.url("ours"));
        assert_eq!([&told["KEY"], &told["MODEL"]], ["the-key", "qwen3"]);
        assert_eq!(settings.environment(None)["MODEL"], "qwen3", "also with a login of its own");
    }
}
