//! Who may be asked next and how candidates are weighed (`spec/teams.md` 7.6): the policy as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::role::Role;

mod builtin;

/// The part of the plan that a routing decision is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoutingPhase {
    /// What to build.
    Planning,
    /// What people see.
    Design,
    /// How to build it.
    Architecture,
    /// Building it.
    Implementation,
    /// Proving it.
    Validation,
    /// Finishing it.
    Closeout,
    /// Going on after a block.
    Resume,
}

/// How far a request is, as routing sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStateClass {
    /// Only planning was asked for.
    PlanningOnly,
    /// Execution may begin.
    ExecutionOpened,
    /// Guidance stands.
    ImplementationReady,
    /// A change waits for QA.
    QaPending,
    /// QA is done.
    CloseoutReady,
    /// A blocked request goes on.
    BlockedResume,
}

/// What one role is for, in the words that routing matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capability {
    /// One line about the role.
    pub summary: String,
    /// Intents that the role owns.
    pub owned_intents: Vec<String>,
    /// Terms that point to the role.
    pub routing_signals: Vec<String>,
    /// What the role is best at.
    pub strongest_for: Vec<String>,
    /// Terms that point to what it is best at.
    pub strongest_domain_signals: Vec<String>,
    /// Skills it brings.
    pub preferred_skills: Vec<String>,
    /// Terms that point to a skill.
    pub preferred_skill_signals: Vec<String>,
    /// How it works.
    pub behavior_traits: Vec<String>,
    /// Terms that point to how it works.
    pub behavior_trait_signals: Vec<String>,
    /// Phases it fits.
    pub phase_fit: Vec<RoutingPhase>,
    /// Request states it fits.
    pub request_state_fit: Vec<RequestStateClass>,
    /// Roles that may follow it.
    pub allowed_next_roles: Vec<Role>,
    /// Breaks ties, higher first.
    pub routing_priority: i64,
    /// Terms that exclude it.
    pub should_not_handle: Vec<String>,
}

/// Points a match is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Weights {
    /// The role owns the intent.
    pub owned_intent: u32,
    /// A routing signal.
    pub routing_signal: u32,
    /// A strongest domain.
    pub strongest_domain: u32,
    /// A preferred skill.
    pub preferred_skill: u32,
    /// A behaviour.
    pub behavior_trait: u32,
    /// The phase fits.
    pub phase_fit: u32,
    /// The request state fits.
    pub request_state_fit: u32,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights {
            owned_intent: 60,
            routing_signal: 10,
            strongest_domain: 12,
            preferred_skill: 8,
            behavior_trait: 6,
            phase_fit: 20,
            request_state_fit: 12,
        }
    }
}

/// Switches and fixed routes of the policy file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyRoutes {
    /// Who begins a sprint when nobody is named.
    pub sprint_initial_default: Role,
    /// A sprint request never ends without QA.
    pub sprint_force_qa: bool,
    /// Going back to the planner needs to be asked for.
    pub planner_reentry_requires_explicit_signal: bool,
    /// A verification result ends a request.
    pub verification_result_terminal: bool,
    /// Backlog proposals of other roles than the planner do not route.
    pub ignore_non_planner_backlog_proposals_for_routing: bool,
}

impl Default for PolicyRoutes {
    fn default() -> PolicyRoutes {
        PolicyRoutes {
            sprint_initial_default: Role::Research,
            sprint_force_qa: true,
            planner_reentry_requires_explicit_signal: true,
            verification_result_terminal: true,
            ignore_non_planner_backlog_proposals_for_routing: true,
        }
    }
}

/// The part of the policy that the workflow reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowPolicy {
    /// Reviews after which only a pass is accepted.
    pub implementation_review_cycle_limit: u32,
}

impl Default for WorkflowPolicy {
    fn default() -> WorkflowPolicy {
        WorkflowPolicy { implementation_review_cycle_limit: 3 }
    }
}

/// The routing policy: `policy.yaml` of a workspace, or the built-in one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoutingPolicy {
    /// Version of the file.
    pub version: u32,
    /// Switches and fixed routes.
    pub policy_routes: PolicyRoutes,
    /// What the workflow reads.
    pub workflow_contract: WorkflowPolicy,
    /// Points.
    pub weights: Weights,
    /// What each public role is for.
    #[serde(rename = "public_roles")]
    pub roles: BTreeMap<Role, Capability>,
}

impl Default for RoutingPolicy {
    /// The built-in policy (`spec/teams.md` 7.6, capability table, version 2), with one change:
    /// `route` is nobody's intent, because every request carries it and it would always draw the
    /// planner (13.A #16).
    fn default() -> RoutingPolicy {
        RoutingPolicy {
            version: 2,
            policy_routes: PolicyRoutes::default(),
            workflow_contract: WorkflowPolicy::default(),
            weights: Weights::default(),
            roles: builtin::capabilities(),
        }
    }
}

impl RoutingPolicy {
    /// What a role is for; `None` for roles that are not routed to.
    #[must_use]
    pub fn capability(&self, role: Role) -> Option<&Capability> {
        self.roles.get(&role)
    }
}
