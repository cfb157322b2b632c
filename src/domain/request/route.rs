//! Which roles a request goes through.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::role::Role;
use crate::domain::routes::LaneChoice;

/// Why the role at work was chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoutingContext {
    /// The role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_role: Option<Role>,
    /// By what.
    pub selection_source: SelectionSource,
}

/// By what a role was chosen; the words are those of `spec/teams.md` 4.2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionSource {
    /// The orchestrator handed it on.
    AgentFirstIntake,
    /// A person let a blocked request try again.
    BlockedRetry,
    /// More input came for a blocked request.
    PlanningResume,
    /// Somebody asked something at a gate.
    GateQuestion,
    /// Its message was edited.
    Edited,
    /// The lifecycle led there.
    #[default]
    #[serde(other)]
    WorkflowContract,
}

/// Who has a request, and who had it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestRoute {
    /// Who has it now; none at the ends.
    #[serde(deserialize_with = "role_or_empty")]
    pub current_role: Option<Role>,
    /// Who gets it next, where that is known.
    #[serde(deserialize_with = "role_or_empty")]
    pub next_role: Option<Role>,
    /// Always the orchestrator.
    pub owner_role: Role,
    /// Roles that have reported.
    pub visited_roles: Vec<Role>,
    /// Why the current role was chosen.
    #[serde(deserialize_with = "none_where_odd", skip_serializing_if = "Option::is_none")]
    pub routing_context: Option<RoutingContext>,
    /// Its lane; none before one is chosen, and where every step is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneChoice>,
    /// The signals of the routes that are in its message, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<String>,
}

impl Default for RequestRoute {
    fn default() -> Self {
        Self {
            current_role: None,
            next_role: None,
            owner_role: Role::Orchestrator,
            visited_roles: Vec::new(),
            routing_context: None,
            lane: None,
            signals: Vec::new(),
        }
    }
}

fn none_where_odd<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

fn role_or_empty<'de, D>(deserializer: D) -> Result<Option<Role>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.as_deref().and_then(Role::parse))
}
