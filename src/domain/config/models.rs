//! Model servers and their keys.

use serde::{Deserialize, Serialize};

use super::values::EnvName;

/// What a model server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelApi {
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Chat Completions, which many others speak.
    Chat,
    /// Google's Gemini.
    Gemini,
}

/// One entry of `models:` in `team_runtime.yaml`: a model server, reached through the team's proxy. Its key
/// never reaches an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelServer {
    /// What it speaks.
    pub api: ModelApi,
    /// Where its paths begin, such as `https://api.openai.com/v1` or `https://api.anthropic.com`.
    pub base_url: String,
    /// The variable that holds its key; none for a server that wants none.
    #[serde(default)]
    pub key_env: Option<EnvName>,
}

impl ModelServer {
    /// What is there without being listed, where its key is: the name, the server and the key's variable.
    pub const USUAL: [(&'static str, ModelApi, &'static str, &'static str); 3] = [
        ("openai", ModelApi::Responses, "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("anthropic", ModelApi::Messages, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("gemini", ModelApi::Gemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    ];
}
