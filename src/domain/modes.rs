//! How sprints begin, and where their work is looked for.

use serde::{Deserialize, Serialize};

/// How sprints begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SprintMode {
    /// At the slots of the grid, and as soon as something waits in the backlog.
    #[default]
    Hybrid,
    /// One interval after the end of the last sprint.
    Rolling,
    /// At the slots of the grid only.
    WallClock,
}

/// What becomes of what a request leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanningMode {
    /// For features the planner asks.
    #[default]
    Ask,
    /// What the planner assumes holds.
    Assume,
}

/// Who starts sprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartMode {
    /// The team.
    #[default]
    Auto,
    /// A person, once a day.
    ManualDaily,
}

/// Where candidate work is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveryScope {
    /// Nowhere.
    Off,
    /// In the workspace.
    WorkspaceOnly,
    /// And in git.
    PlusGit,
    /// Everywhere the older runtime looked.
    #[default]
    BroadScan,
}
