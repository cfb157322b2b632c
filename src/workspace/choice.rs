//! Which model a role works with at a step, and where that is said.

use super::{ConfigError, Workspace};
use crate::domain::config::{AgentKind, Profile, Reasoning};
use crate::domain::lifecycle::StepName;
use crate::domain::role::Role;
use crate::domain::run::Approach;

/// How the names of Claude's models begin.
const CLAUDE_MODELS: [&str; 4] = ["claude", "sonnet", "opus", "haiku"];
/// What Claude works with where nothing is said.
const CLAUDE_USUAL: &str = "sonnet";

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The agent.
    pub agent: AgentKind,
    /// The profile that it was chosen by.
    pub profile: Profile,
    /// The model; the command for agents that choose it themselves.
    pub model: String,
    /// How long it may think.
    pub reasoning: Reasoning,
    /// The key or file that names the model.
    pub source: String,
}

impl Workspace {
    /// The choice for a role at a step. `role_defaults` names a model for good; else the profile of step, role
    /// or team does; else what the role asks for. Another approach takes the next stronger profile, and then
    /// the profile's model comes first: the one that is named has failed.
    ///
    /// # Errors
    /// Where the role's file cannot be read.
    pub fn choice(
        &self,
        role: Role,
        step: Option<StepName>,
        approach: Approach,
    ) -> Result<Choice, ConfigError> {
        let spec = self.role(role)?;
        let runtime = &self.runtime;
        let agent = runtime.agents.of(role);
        let set = runtime.role_defaults.get(&role);
        let (usual, key) = runtime.profiles.of(role, step);
        let escalated = approach == Approach::Different && runtime.profiles.escalate;
        let profile = if escalated { usual.stronger() } else { usual };
        let wish = runtime.profiles.wish(agent, profile);
        let source_of_wish = match (escalated && profile != usual, key.is_empty()) {
            (true, _) => "profiles.escalate".to_owned(),
            (false, true) => format!("profiles.models.{}.{}", agent.as_str(), profile.as_str()),
            (false, false) => key,
        };
        let wished = wish.model.map(|model| (model, source_of_wish));
        let named = set
            .and_then(|set| set.model.clone())
            .filter(|model| agent != AgentKind::Claude || is_claude(model))
            .map(|model| (model, format!("role_defaults.{role}")));
        let own = || match agent {
            AgentKind::Claude => match &runtime.agents.claude.model {
                Some(model) => (model.clone(), "agents.claude.model".to_owned()),
                None => (CLAUDE_USUAL.to_owned(), "claude".to_owned()),
            },
            AgentKind::Acp => match &runtime.agents.acp.model {
                Some(model) => (model.clone(), "agents.acp.model".to_owned()),
                None => (runtime.agents.acp.command.join(" "), "agents.acp.command".to_owned()),
            },
            AgentKind::Codex | AgentKind::Rehearsal => {
                (spec.model.clone(), format!("roles/{role}.yaml"))
            }
        };
        let (model, source) = match agent {
            // One model for all, or its own choice.
            AgentKind::Acp => own(),
            AgentKind::Codex | AgentKind::Claude | AgentKind::Rehearsal if escalated => {
                wished.or(named).unwrap_or_else(own)
            }
            AgentKind::Codex | AgentKind::Claude | AgentKind::Rehearsal => {
                named.or(wished).unwrap_or_else(own)
            }
        };
        let said = set.and_then(|set| set.reasoning).filter(|_| !escalated);
        let reasoning = said.or(wish.reasoning).unwrap_or(spec.reasoning);
        Ok(Choice { agent, profile, model, reasoning, source })
    }
}

/// What a role's model is called decides whose it is: `role_defaults` may name Codex's, and those mean
/// nothing to Claude.
fn is_claude(model: &str) -> bool {
    CLAUDE_MODELS.iter().any(|word| model.starts_with(word))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::config::{ProfilesConfig, RuntimeConfig};
    use crate::workspace::{imagine, init::Options};

    /// The choice under a configuration.
    fn choose(extra: &str, role: Role, approach: Approach) -> (String, Reasoning, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut workspace = imagine(folder.path(), &Options::default()).expect("a workspace");
        let text = format!("sprint: {{id: a}}\n{extra}");
        let path = Path::new("team_runtime.yaml");
        workspace.runtime = crate::workspace::open::parse(path, &text, RuntimeConfig::check)
            .unwrap_or_else(|error| panic!("{extra}: {error}"));
        let choice = workspace.choice(role, None, approach).expect("a choice");
        (choice.model, choice.reasoning, choice.source)
    }

    fn check(extra: &str, role: Role, approach: Approach, expected: (&str, Reasoning, &str)) {
        let (model, reasoning, source) = choose(extra, role, approach);
        assert_eq!((model.as_str(), reasoning, source.as_str()), expected, "{extra} {approach:?}");
    }

    #[test]
    fn a_model_is_named_chosen_by_profile_or_the_roles_own() {
        use Approach::{Different, Usual};
        use Reasoning::{High, Low, Xhigh};
        let developer = Role::Developer;
        check("", developer, Usual, ("gpt-5.5", High, "roles/developer.yaml"));
        check("", developer, Different, ("gpt-5.5", Xhigh, "roles/developer.yaml"));
        let claude = "agents: {default: claude}\n";
        check(claude, developer, Usual, ("sonnet", High, "claude"));
        check(claude, developer, Different, ("opus", High, "profiles.escalate"));
        let cheap = format!("{claude}profiles: {{roles: {{developer: budget}}}}");
        check(&cheap, developer, Usual, ("haiku", High, "profiles.roles.developer"));
        check(&cheap, developer, Different, ("sonnet", High, "claude"));
        let named = format!("{cheap}\nrole_defaults: {{developer: {{model: opus-5}}}}");
        check(&named, developer, Usual, ("opus-5", High, "role_defaults.developer"));
        let of_codex = format!("{claude}role_defaults: {{developer: {{model: gpt-5.5}}}}");
        check(&of_codex, developer, Usual, ("sonnet", High, "claude"));
        let table = "profiles: {default: budget, models: {codex: {budget: {model: small}, balanced: {model: big}}}}";
        check(table, developer, Usual, ("small", Low, "profiles.default"));
        check(table, developer, Different, ("big", High, "profiles.escalate"));
        let fixed = "profiles: {escalate: false}";
        check(fixed, developer, Different, ("gpt-5.5", High, "roles/developer.yaml"));
        let acp = "agents: {default: acp, acp: {command: [gemini, --acp]}}";
        check(acp, developer, Different, ("gemini --acp", High, "agents.acp.command"));
        let named =
            "agents: {default: acp, acp: {command: [opencode, acp], server: ours, model: qwen3}}";
        check(named, developer, Different, ("qwen3", High, "agents.acp.model"));
    }

    #[test]
    fn what_is_absent_escalates() {
        assert!(ProfilesConfig::default().escalate);
    }
}
