//! Who is asked next when no workflow says so (`spec/teams.md` 7.6): fixed routes first, then a
//! score over the capability table. Terms match as words (13.A #15).

mod after;
mod score;

pub use after::{
    ReportFacts, ReportRoute, TerminalReason, reentry_is_explicit, route_after_report,
};
pub use score::{Breakdown, Candidate, consider, score};

use serde::{Deserialize, Serialize};

use crate::domain::role::Role;
use crate::domain::routing::{RequestStateClass, RoutingPhase, RoutingPolicy};
use crate::engine::parse::terms::Text;

/// What the selection is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionSource {
    /// A person asked.
    UserIntake,
    /// Candidate work was found.
    SourcerReview,
    /// Blocked backlog is looked at again.
    BlockedBacklogReview,
    /// A blocked request goes on.
    PlanningResume,
    /// A sprint begins.
    SprintInitial,
    /// A role reported.
    RoleReport,
}

/// What the selection is made from.
#[derive(Debug, Clone, Copy)]
pub struct RoutingFacts<'a> {
    /// What it is made for.
    pub source: SelectionSource,
    /// The role that has the request.
    pub current: Role,
    /// The role that somebody would prefer.
    pub preferred: Option<Role>,
    /// The intent of the request.
    pub intent: &'a str,
    /// Scope, body and what the report says.
    pub text: &'a str,
    /// Whether it belongs to a sprint.
    pub sprint_internal: bool,
    /// Whether going back to the planner was asked for in so many words.
    pub planner_reentry: bool,
}

/// The selection and how it came about (`routing_context` of the record).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoutingSelection {
    /// The role to ask; `None` means that nobody fits.
    pub selected_role: Option<Role>,
    /// The role that somebody preferred.
    pub preferred_role: Option<Role>,
    /// What it was made for.
    pub selection_source: SelectionSource,
    /// The part of the plan it was made in.
    pub routing_phase: RoutingPhase,
    /// How far the request is.
    pub request_state_class: RequestStateClass,
    /// The winner's score; 0 for fixed routes.
    pub score_total: u32,
    /// Everybody looked at, best first, excluded ones last.
    pub candidate_summary: Vec<Candidate>,
}

impl RoutingSelection {
    /// Whether somebody else was selected than preferred.
    #[must_use]
    pub fn overrides_preferred(&self) -> bool {
        self.selected_role.is_some()
            && self.preferred_role.is_some()
            && self.selected_role != self.preferred_role
    }
}

/// Selects the role to ask next.
#[must_use]
pub fn select(policy: &RoutingPolicy, facts: &RoutingFacts<'_>) -> RoutingSelection {
    let text = Text::new(facts.text);
    let class = state_class(policy, facts, &text);
    let phase = phase_of(policy, facts, class, &text);
    let mut selection = RoutingSelection {
        selected_role: None,
        preferred_role: facts.preferred,
        selection_source: facts.source,
        routing_phase: phase,
        request_state_class: class,
        score_total: 0,
        candidate_summary: Vec::new(),
    };
    match facts.source {
        SelectionSource::UserIntake
        | SelectionSource::SourcerReview
        | SelectionSource::BlockedBacklogReview
        | SelectionSource::PlanningResume => selection.selected_role = Some(Role::Planner),
        SelectionSource::SprintInitial => {
            let preferred =
                facts.preferred.filter(|role| role.is_public() && *role != Role::Orchestrator);
            selection.selected_role =
                Some(preferred.unwrap_or(policy.policy_routes.sprint_initial_default));
        }
        SelectionSource::RoleReport => by_score(policy, facts, &text, &mut selection),
    }
    selection
}

fn by_score(
    policy: &RoutingPolicy,
    facts: &RoutingFacts<'_>,
    text: &Text,
    selection: &mut RoutingSelection,
) {
    let class = selection.request_state_class;
    let (excluded, mut scored): (Vec<Candidate>, Vec<Candidate>) = candidates(policy, facts, class)
        .into_iter()
        .filter_map(|role| {
            consider(policy, role, facts.intent, text, selection.routing_phase, class)
        })
        .partition(|candidate| candidate.excluded_by_boundary);
    let priority =
        |role: Role| policy.capability(role).map_or(0, |capability| capability.routing_priority);
    scored.sort_by_key(|candidate| {
        std::cmp::Reverse((
            candidate.score_total,
            priority(candidate.role),
            facts.preferred == Some(candidate.role),
            candidate.role.as_str(),
        ))
    });
    let best = scored.first().filter(|best| passes(policy, facts, class, best));
    if let Some(best) = best {
        selection.selected_role = Some(best.role);
        selection.score_total = best.score_total;
    }
    scored.extend(excluded);
    selection.candidate_summary = scored;
}

fn candidates(
    policy: &RoutingPolicy,
    facts: &RoutingFacts<'_>,
    class: RequestStateClass,
) -> Vec<Role> {
    let next = || {
        policy
            .capability(facts.current)
            .map(|capability| capability.allowed_next_roles.clone())
            .unwrap_or_default()
    };
    match facts.current {
        Role::Research => vec![Role::Planner],
        Role::Planner
            if class == RequestStateClass::ExecutionOpened || facts.preferred.is_some() =>
        {
            next()
        }
        Role::Designer | Role::Architect | Role::Developer | Role::Qa => next(),
        Role::Planner
        | Role::Orchestrator
        | Role::Parser
        | Role::Sourcer
        | Role::VersionController => Vec::new(),
    }
}

/// The gates: without words that point somewhere nobody is bothered.
fn passes(
    policy: &RoutingPolicy,
    facts: &RoutingFacts<'_>,
    class: RequestStateClass,
    best: &Candidate,
) -> bool {
    let evidence = best.breakdown.evidence() > 0;
    let asked = best.role != Role::Planner
        || facts.planner_reentry
        || facts.preferred.is_some()
        || !policy.policy_routes.planner_reentry_requires_explicit_signal;
    match facts.current {
        Role::Planner => evidence || facts.preferred.is_some(),
        Role::Qa => evidence && asked,
        Role::Designer | Role::Architect | Role::Developer => {
            let known = match class {
                RequestStateClass::ExecutionOpened
                | RequestStateClass::ImplementationReady
                | RequestStateClass::QaPending
                | RequestStateClass::CloseoutReady => true,
                RequestStateClass::PlanningOnly | RequestStateClass::BlockedResume => false,
            };
            (facts.sprint_internal || (evidence && known)) && asked
        }
        Role::Orchestrator
        | Role::Research
        | Role::Parser
        | Role::Sourcer
        | Role::VersionController => true,
    }
}

fn state_class(policy: &RoutingPolicy, facts: &RoutingFacts<'_>, text: &Text) -> RequestStateClass {
    if facts.source == SelectionSource::PlanningResume {
        return RequestStateClass::BlockedResume;
    }
    match facts.current {
        Role::Planner => {
            let preferred = facts.preferred.is_some_and(executes);
            if preferred || hinted(policy, facts.intent, text).is_some() {
                RequestStateClass::ExecutionOpened
            } else {
                RequestStateClass::PlanningOnly
            }
        }
        Role::Research => RequestStateClass::PlanningOnly,
        Role::Designer | Role::Architect => RequestStateClass::ImplementationReady,
        Role::Developer => RequestStateClass::QaPending,
        Role::Qa => RequestStateClass::CloseoutReady,
        Role::Orchestrator | Role::Parser | Role::Sourcer | Role::VersionController => {
            if facts.sprint_internal {
                RequestStateClass::ExecutionOpened
            } else {
                RequestStateClass::PlanningOnly
            }
        }
    }
}

fn phase_of(
    policy: &RoutingPolicy,
    facts: &RoutingFacts<'_>,
    class: RequestStateClass,
    text: &Text,
) -> RoutingPhase {
    match facts.source {
        SelectionSource::PlanningResume => return RoutingPhase::Resume,
        SelectionSource::UserIntake
        | SelectionSource::SourcerReview
        | SelectionSource::BlockedBacklogReview => return RoutingPhase::Planning,
        SelectionSource::SprintInitial | SelectionSource::RoleReport => {}
    }
    if class == RequestStateClass::CloseoutReady {
        return RoutingPhase::Closeout;
    }
    if let Some(preferred) = facts.preferred {
        return phase_for_role(Some(preferred));
    }
    match facts.current {
        Role::Designer | Role::Architect | Role::Developer => phase_for_role(Some(facts.current)),
        Role::Planner => phase_for_role(hinted(policy, facts.intent, text)),
        Role::Orchestrator
        | Role::Research
        | Role::Qa
        | Role::Parser
        | Role::Sourcer
        | Role::VersionController => RoutingPhase::Planning,
    }
}

/// The phase that a role works in.
#[must_use]
pub fn phase_for_role(role: Option<Role>) -> RoutingPhase {
    match role {
        Some(Role::Designer) => RoutingPhase::Design,
        Some(Role::Architect) => RoutingPhase::Architecture,
        Some(Role::Developer) => RoutingPhase::Implementation,
        Some(Role::Qa) => RoutingPhase::Validation,
        Some(
            Role::Orchestrator
            | Role::Research
            | Role::Planner
            | Role::Parser
            | Role::Sourcer
            | Role::VersionController,
        )
        | None => RoutingPhase::Planning,
    }
}

/// Whether a role carries work out rather than planning it.
#[must_use]
pub const fn executes(role: Role) -> bool {
    matches!(role, Role::Designer | Role::Architect | Role::Developer | Role::Qa)
}

/// The executing role that intent and text point to most, if any.
fn hinted(policy: &RoutingPolicy, intent: &str, text: &Text) -> Option<Role> {
    let mut best: Option<(u32, i64, Role)> = None;
    for role in [Role::Designer, Role::Architect, Role::Developer, Role::Qa] {
        let Some(capability) = policy.capability(role) else {
            continue;
        };
        let hint = score::hint(capability, intent, text);
        let entry = (hint, capability.routing_priority, role);
        if hint > 0 && best.is_none_or(|best| (entry.0, entry.1) > (best.0, best.1)) {
            best = Some(entry);
        }
    }
    best.map(|(_, _, role)| role)
}

#[cfg(test)]
mod tests;
