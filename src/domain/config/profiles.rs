//! How strong the models are, by role and step, and which model that means for which agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AgentKind, Problem, Reasoning};
use crate::domain::lifecycle::{Lifecycle, StepName};
use crate::domain::role::Role;
use crate::domain::word::words;

words! {
    /// How much a thought may cost.
    #[derive(Default)]
    pub enum Profile {
        /// As little as will do.
        Budget = "budget",
        /// What the roles ask for by themselves.
        #[default]
        Balanced = "balanced",
        /// The best there is.
        Quality = "quality",
    }
}

impl Profile {
    /// The next stronger one; the strongest stays.
    #[must_use]
    pub const fn stronger(self) -> Self {
        match self {
            Self::Budget => Self::Balanced,
            Self::Balanced | Self::Quality => Self::Quality,
        }
    }
}

/// The model and the reasoning that a profile means for an agent; what is absent stays as the role has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wish {
    /// The model.
    pub model: Option<String>,
    /// How long it may think.
    pub reasoning: Option<Reasoning>,
}

/// `profiles:` of `team_runtime.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProfilesConfig {
    /// Where the others say nothing.
    pub default: Profile,
    /// By role.
    pub roles: BTreeMap<Role, Profile>,
    /// By step; before the role.
    pub steps: BTreeMap<StepName, Profile>,
    /// Whether a stronger one is taken once the same way has failed twice.
    pub escalate: bool,
    /// What a profile means, by agent.
    pub models: BTreeMap<AgentKind, BTreeMap<Profile, Wish>>,
}

impl Default for ProfilesConfig {
    fn default() -> Self {
        Self {
            default: Profile::default(),
            roles: BTreeMap::new(),
            steps: BTreeMap::new(),
            escalate: true,
            models: BTreeMap::new(),
        }
    }
}

impl ProfilesConfig {
    /// What is wrong beside the lifecycle that requests go by.
    ///
    /// # Errors
    /// The first step that it does not have.
    pub fn check(&self, lifecycle: &Lifecycle) -> Result<(), Problem> {
        match self.steps.keys().find(|name| lifecycle.step(**name).is_none()) {
            Some(name) => {
                let key = format!("profiles.steps.{}", name.as_str());
                let steps: Vec<&str> = lifecycle.steps().map(|step| step.name.as_str()).collect();
                let message = format!("the lifecycle has no step {:?}", name.as_str());
                Err(Problem::at(&key, message).hint(format!("its steps are {}", steps.join(", "))))
            }
            None => Ok(()),
        }
    }

    /// The profile of a role at a step, and the key that says so; blank where none does.
    #[must_use]
    pub fn of(&self, role: Role, step: Option<StepName>) -> (Profile, String) {
        if let Some((step, profile)) = step.and_then(|step| self.steps.get_key_value(&step)) {
            return (*profile, format!("profiles.steps.{}", step.as_str()));
        }
        if let Some(profile) = self.roles.get(&role) {
            return (*profile, format!("profiles.roles.{role}"));
        }
        let said = self.default != Profile::default();
        (self.default, if said { "profiles.default".to_owned() } else { String::new() })
    }

    /// What a profile means for an agent: the configuration first, then what is known of the agent's own
    /// names for its models. No name is guessed: where none is known, the role's model thinks longer.
    #[must_use]
    pub fn wish(&self, agent: AgentKind, profile: Profile) -> Wish {
        let said = self.models.get(&agent).and_then(|table| table.get(&profile)).cloned();
        let said = said.unwrap_or_default();
        let known = built_in(agent, profile);
        Wish { model: said.model.or(known.model), reasoning: said.reasoning.or(known.reasoning) }
    }
}

fn built_in(agent: AgentKind, profile: Profile) -> Wish {
    let (model, reasoning) = match (agent, profile) {
        (AgentKind::Claude, Profile::Budget) => (Some("haiku"), None),
        (AgentKind::Claude, Profile::Quality) => (Some("opus"), Some(Reasoning::High)),
        (AgentKind::Codex, Profile::Budget) => (None, Some(Reasoning::Low)),
        (AgentKind::Codex, Profile::Quality) => (None, Some(Reasoning::Xhigh)),
        (AgentKind::Claude | AgentKind::Codex, Profile::Balanced)
        | (AgentKind::Acp | AgentKind::Rehearsal, _) => (None, None),
    };
    Wish { model: model.map(str::to_owned), reasoning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_comes_before_the_role_and_the_role_before_the_rest() {
        let config = ProfilesConfig {
            default: Profile::Budget,
            roles: [(Role::Developer, Profile::Quality)].into(),
            steps: [(StepName::of("developer_revision"), Profile::Balanced)].into(),
            ..ProfilesConfig::default()
        };
        let of = |role, step| {
            let (profile, key) = config.of(role, step);
            (profile.as_str(), key)
        };
        let developer = of(Role::Developer, Some(StepName::of("developer_build")));
        assert_eq!(developer, ("quality", "profiles.roles.developer".to_owned()));
        let revision = of(Role::Developer, Some(StepName::of("developer_revision")));
        assert_eq!(revision, ("balanced", "profiles.steps.developer_revision".to_owned()));
        assert_eq!(of(Role::Qa, None), ("budget", "profiles.default".to_owned()));
        assert_eq!(ProfilesConfig::default().of(Role::Qa, None).1, "");
    }

    #[test]
    fn what_a_profile_means_is_said_or_known_and_never_guessed() {
        let wish = Wish { model: Some("small".to_owned()), reasoning: None };
        let config = ProfilesConfig {
            models: [(AgentKind::Codex, [(Profile::Budget, wish)].into())].into(),
            ..ProfilesConfig::default()
        };
        let codex = config.wish(AgentKind::Codex, Profile::Budget);
        assert_eq!(
            (codex.model.as_deref(), codex.reasoning),
            (Some("small"), Some(Reasoning::Low))
        );
        assert_eq!(config.wish(AgentKind::Claude, Profile::Quality).model.as_deref(), Some("opus"));
        assert_eq!(config.wish(AgentKind::Acp, Profile::Quality), Wish::default());
        assert_eq!(Profile::Budget.stronger().stronger().stronger(), Profile::Quality);
    }
}
