//! How agents that speak the protocol are told of another model server. Each has variables of its own.

use std::collections::BTreeMap;

use serde_json::json;

use crate::agents::claude::ClaudeSettings;
use crate::agents::codex::CodexSettings;
use crate::domain::config::ModelApi;

/// An agent whose ways are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownAgent {
    Codex,
    Claude,
    Gemini,
    OpenCode,
}

fn known(command: &[String]) -> Option<KnownAgent> {
    let names = [
        ("codex-acp", KnownAgent::Codex),
        ("claude-agent-acp", KnownAgent::Claude),
        ("claude-code-acp", KnownAgent::Claude),
        ("gemini", KnownAgent::Gemini),
        ("opencode", KnownAgent::OpenCode),
    ];
    let is = |name: &str| command.iter().any(|word| word.contains(name));
    names.into_iter().find(|(name, _)| is(name)).map(|(_, agent)| agent)
}

/// What a known agent asks its model server for; none for one that is not known. `command` is the program with
/// its arguments.
#[must_use]
pub fn api(command: &[String]) -> Option<ModelApi> {
    known(command).map(|agent| match agent {
        KnownAgent::Codex => ModelApi::Responses,
        KnownAgent::Claude => ModelApi::Messages,
        KnownAgent::Gemini => ModelApi::Gemini,
        KnownAgent::OpenCode => ModelApi::Chat,
    })
}

/// The environment by which a known agent uses the model server at `url` with `key`, and asks it for `model`; none for
/// one that is not known.
#[must_use]
pub fn environment(
    command: &[String],
    (url, key): (&str, &str),
    model: Option<&str>,
) -> Option<BTreeMap<String, String>> {
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: &str| env.insert(name.to_owned(), value.to_owned());
    match known(command)? {
        KnownAgent::Codex => {
            let server = json!({"name": "teams", "base_url": url, "wire_api": "responses",
                "experimental_bearer_token": key, "request_max_retries": 2, "stream_max_retries": 2});
            let usual = CodexSettings::default().model;
            let config = json!({"model": model.unwrap_or(&usual), "model_provider": "teams",
                "model_providers": {"teams": server}, "analytics": {"enabled": false},
                "features": {"plugins": false, "apps": false}});
            set("CODEX_CONFIG", &config.to_string());
            if let Ok(program) = CodexSettings::default().program() {
                set("CODEX_PATH", &program.to_string_lossy());
            }
        }
        KnownAgent::Claude => {
            set("ANTHROPIC_BASE_URL", url);
            set("ANTHROPIC_API_KEY", key);
            if let Some(model) = model {
                set("ANTHROPIC_MODEL", model);
            }
            set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            set("CLAUDE_CODE_MAX_RETRIES", &ClaudeSettings::default().retries.to_string());
        }
        KnownAgent::Gemini => {
            set("GOOGLE_GEMINI_BASE_URL", url);
            set("GEMINI_API_KEY", key);
            if let Some(model) = model {
                set("GEMINI_MODEL", model);
            }
            set("GEMINI_CLI_TRUST_WORKSPACE", "true");
            set("GEMINI_CLI_NO_RELAUNCH", "true");
        }
        KnownAgent::OpenCode => {
            // Without a provider of its own it takes a hosted one of somebody else.
            let model = model.unwrap_or("model");
            let provider = json!({"npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": url, "apiKey": key}, "models": {model: {}}});
            let model = format!("teams/{model}");
            let config = json!({"model": model, "small_model": model, "share": "disabled",
                "enabled_providers": ["teams"], "autoupdate": false, "provider": {"teams": provider}});
            set("OPENCODE_CONFIG_CONTENT", &config.to_string());
        }
    }
    Some(env)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_agent_is_given_the_address_and_no_other_one() {
        let url = "http://127.0.0.1:9/v1";
        for command in [
            &["node", "/opt/codex-acp/dist/index.js"][..],
            &["claude-agent-acp"],
            &["gemini", "--acp"],
            &["opencode", "acp"],
        ] {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let env = environment(&command, (url, "the-key"), Some("the/model")).unwrap();
            for part in [url, "the-key", "the/model"] {
                assert!(env.values().any(|value| value.contains(part)), "{command:?} {part}");
            }
            assert!(api(&command).is_some());
        }
        assert_eq!(environment(&["sh".to_owned()], (url, ""), None), None);
    }
}
