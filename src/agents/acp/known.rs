//! How agents that speak the protocol are told of another model server. Each has variables of its own.

use std::collections::BTreeMap;

use serde_json::json;

use crate::agents::codex::CodexSettings;

/// The environment by which a known agent uses the model server at `url`, which wants no key; none for one that
/// is not known. `command` is the program with its arguments.
#[must_use]
pub fn environment(command: &[String], url: &str) -> Option<BTreeMap<String, String>> {
    let is = |name: &str| command.iter().any(|word| word.contains(name));
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
    if is("codex-acp") {
        let server = json!({"name": "teams", "base_url": url, "wire_api": "responses",
            "request_max_retries": 2, "stream_max_retries": 2});
        let config = json!({"model": CodexSettings::default().model, "model_provider": "teams",
            "model_providers": {"teams": server}, "analytics": {"enabled": false},
            "features": {"plugins": false, "apps": false}});
        set("CODEX_CONFIG", config.to_string());
        if let Ok(program) = CodexSettings::default().program() {
            set("CODEX_PATH", program.to_string_lossy().into_owned());
        }
    } else if is("claude-agent-acp") || is("claude-code-acp") {
        set("ANTHROPIC_BASE_URL", url.to_owned());
        set("ANTHROPIC_API_KEY", "none".to_owned());
        set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned());
    } else if is("gemini") {
        set("GOOGLE_GEMINI_BASE_URL", url.to_owned());
        set("GEMINI_API_KEY", "none".to_owned());
        set("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned());
        set("GEMINI_CLI_NO_RELAUNCH", "true".to_owned());
    } else if is("opencode") {
        // Without a provider of its own it takes a hosted one of somebody else.
        let provider = json!({"npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": url, "apiKey": "none"}, "models": {"model": {}}});
        let config = json!({"model": "teams/model", "small_model": "teams/model", "share": "disabled",
            "enabled_providers": ["teams"], "autoupdate": false, "provider": {"teams": provider}});
        set("OPENCODE_CONFIG_CONTENT", config.to_string());
    } else {
        return None;
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
            let env = environment(&command, url).unwrap();
            assert!(env.values().any(|value| value.contains(url)), "{command:?}");
        }
        assert_eq!(environment(&["sh".to_owned()], url), None);
    }
}
