//! The roles of the team.

use serde::{Deserialize, Serialize};

/// A member of the team. The first seven are public, in the order in which people see them; the last
/// four work inside the orchestrator's process and have no channel presence of their own.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Takes in requests, answers or hands on, applies reports.
    Orchestrator,
    /// Gathers outside facts with sources.
    Research,
    /// Owns plans, backlog and documents.
    Planner,
    /// Advises on what people see.
    Designer,
    /// Guides and reviews the implementation.
    Architect,
    /// Changes the code.
    Developer,
    /// Validates against the acceptance criteria.
    Qa,
    /// Internal: classifies text.
    Parser,
    /// Internal: finds candidate work.
    Sourcer,
    /// Internal: commits and merges. Executed by the runtime, never by a model.
    VersionController,
    /// Internal: brings together two changes that met in the same place, neither of which it wrote or reviewed.
    ConflictResolver,
}

impl Role {
    /// The seven roles that people can address, in display order.
    pub const PUBLIC: [Role; 7] = [
        Role::Orchestrator,
        Role::Research,
        Role::Planner,
        Role::Designer,
        Role::Architect,
        Role::Developer,
        Role::Qa,
    ];
    /// Those that look first at what is written to them. What is written to others goes to the orchestrator: the developer
    /// builds what was planned, and nothing else.
    pub const ADDRESSED: [Role; 5] =
        [Role::Research, Role::Planner, Role::Designer, Role::Architect, Role::Qa];
    /// Every role.
    pub const ALL: [Role; 11] = [
        Role::Orchestrator,
        Role::Research,
        Role::Planner,
        Role::Designer,
        Role::Architect,
        Role::Developer,
        Role::Qa,
        Role::Parser,
        Role::Sourcer,
        Role::VersionController,
        Role::ConflictResolver,
    ];

    /// The name in files, folders, configuration and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Orchestrator => "orchestrator",
            Role::Research => "research",
            Role::Planner => "planner",
            Role::Designer => "designer",
            Role::Architect => "architect",
            Role::Developer => "developer",
            Role::Qa => "qa",
            Role::Parser => "parser",
            Role::Sourcer => "sourcer",
            Role::VersionController => "version_controller",
            Role::ConflictResolver => "conflict_resolver",
        }
    }

    /// Reads a role name; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// Whether people can address the role.
    #[must_use]
    pub fn is_public(self) -> bool {
        Role::PUBLIC.contains(&self)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
