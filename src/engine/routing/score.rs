//! How well a role fits: the sum of what intent, words, phase and state say.

use serde::Serialize;

use crate::domain::role::Role;
use crate::domain::routing::{Capability, RequestStateClass, RoutingPhase, RoutingPolicy};
use crate::engine::parse::terms::Text;

/// How many matches of a kind count (`spec/teams.md` 7.6).
const SIGNALS: usize = 4;
const DOMAINS: usize = 3;
const SKILLS: usize = 2;
const TRAITS: usize = 2;

/// Where a score comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Breakdown {
    /// The role owns the intent.
    pub owned_intent: u32,
    /// Words that point to the role.
    pub routing_signals: u32,
    /// Words of what it is best at.
    pub strongest_domains: u32,
    /// Words of its skills.
    pub preferred_skills: u32,
    /// Words of how it works.
    pub behavior_traits: u32,
    /// It fits the phase.
    pub phase_fit: u32,
    /// It fits the state.
    pub request_state_fit: u32,
}

impl Breakdown {
    /// What intent and words say, without the circumstances.
    #[must_use]
    pub const fn evidence(self) -> u32 {
        self.owned_intent
            + self.routing_signals
            + self.strongest_domains
            + self.preferred_skills
            + self.behavior_traits
    }

    /// The whole score.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.evidence() + self.phase_fit + self.request_state_fit
    }
}

/// One role that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The role.
    pub role: Role,
    /// Whether a term says that it must not do this.
    pub excluded_by_boundary: bool,
    /// Those terms.
    pub disallowed_matches: Vec<String>,
    /// The score; 0 when excluded.
    pub score_total: u32,
    /// Where it comes from.
    #[serde(rename = "score_breakdown")]
    pub breakdown: Breakdown,
    /// `intent:` and `routing:` matches.
    pub matched_signals: Vec<String>,
    /// `strength:` and `strength_signal:` matches.
    pub matched_strongest_domains: Vec<String>,
    /// `skill:` and `skill_signal:` matches.
    pub matched_preferred_skills: Vec<String>,
    /// `behavior:` and `behavior_signal:` matches.
    pub matched_behavior_traits: Vec<String>,
}

/// Scores one role; `None` for roles that the policy does not know. Whether the role is excluded is
/// another question, see [`consider`].
#[must_use]
pub fn score(
    policy: &RoutingPolicy,
    role: Role,
    intent: &str,
    text: &Text,
    phase: RoutingPhase,
    class: RequestStateClass,
) -> Option<Candidate> {
    let capability = policy.capability(role)?;
    let weights = policy.weights;
    let mut candidate = Candidate {
        role,
        excluded_by_boundary: false,
        disallowed_matches: Vec::new(),
        score_total: 0,
        breakdown: Breakdown::default(),
        matched_signals: Vec::new(),
        matched_strongest_domains: Vec::new(),
        matched_preferred_skills: Vec::new(),
        matched_behavior_traits: Vec::new(),
    };
    let intent = intent.trim().to_lowercase();
    let owned = capability.owned_intents.contains(&intent);
    if owned {
        candidate.matched_signals.push(format!("intent:{intent}"));
    }
    candidate.matched_signals.extend(matches("routing", &capability.routing_signals, text));
    candidate.matched_strongest_domains = both(
        ("strength", &capability.strongest_for),
        ("strength_signal", &capability.strongest_domain_signals),
        text,
    );
    candidate.matched_preferred_skills = both(
        ("skill", &capability.preferred_skills),
        ("skill_signal", &capability.preferred_skill_signals),
        text,
    );
    candidate.matched_behavior_traits = both(
        ("behavior", &capability.behavior_traits),
        ("behavior_signal", &capability.behavior_trait_signals),
        text,
    );
    candidate.matched_signals.truncate(SIGNALS);
    candidate.matched_strongest_domains.truncate(DOMAINS);
    candidate.matched_preferred_skills.truncate(SKILLS);
    candidate.matched_behavior_traits.truncate(TRAITS);
    let points = |found: &[String], weight: u32| {
        u32::try_from(found.len()).unwrap_or(u32::MAX).saturating_mul(weight)
    };
    let fits = |fit: bool, weight: u32| if fit { weight } else { 0 };
    candidate.breakdown = Breakdown {
        owned_intent: fits(owned, weights.owned_intent),
        routing_signals: points(&candidate.matched_signals, weights.routing_signal),
        strongest_domains: points(&candidate.matched_strongest_domains, weights.strongest_domain),
        preferred_skills: points(&candidate.matched_preferred_skills, weights.preferred_skill),
        behavior_traits: points(&candidate.matched_behavior_traits, weights.behavior_trait),
        phase_fit: fits(capability.phase_fit.contains(&phase), weights.phase_fit),
        request_state_fit: fits(
            capability.request_state_fit.contains(&class),
            weights.request_state_fit,
        ),
    };
    candidate.score_total = candidate.breakdown.total();
    Some(candidate)
}

/// Looks at one role: excluded by a term that it should not handle, with those terms and no score,
/// or scored. `None` for roles that the policy does not know.
#[must_use]
pub fn consider(
    policy: &RoutingPolicy,
    role: Role,
    intent: &str,
    text: &Text,
    phase: RoutingPhase,
    class: RequestStateClass,
) -> Option<Candidate> {
    let capability = policy.capability(role)?;
    let disallowed = matches("forbidden", &capability.should_not_handle, text);
    if disallowed.is_empty() {
        return score(policy, role, intent, text, phase, class);
    }
    Some(Candidate {
        role,
        excluded_by_boundary: true,
        disallowed_matches: disallowed,
        score_total: 0,
        breakdown: Breakdown::default(),
        matched_signals: Vec::new(),
        matched_strongest_domains: Vec::new(),
        matched_preferred_skills: Vec::new(),
        matched_behavior_traits: Vec::new(),
    })
}

/// How much intent and words point to a role: 5 for the intent, 1 a signal, skill or trait, 2 a
/// domain (`spec/teams.md` 7.6).
pub(super) fn hint(capability: &Capability, intent: &str, text: &Text) -> u32 {
    let owned = capability.owned_intents.iter().any(|owned| owned == intent.trim());
    let count = |terms: &[String]| terms.iter().filter(|term| text.has(term)).count();
    let words = count(&capability.routing_signals)
        + 2 * (count(&capability.strongest_for) + count(&capability.strongest_domain_signals))
        + count(&capability.preferred_skills)
        + count(&capability.preferred_skill_signals)
        + count(&capability.behavior_traits)
        + count(&capability.behavior_trait_signals);
    u32::try_from(words).unwrap_or(u32::MAX).saturating_add(if owned { 5 } else { 0 })
}

fn both(names: (&str, &[String]), signals: (&str, &[String]), text: &Text) -> Vec<String> {
    let mut found = matches(names.0, names.1, text);
    found.extend(matches(signals.0, signals.1, text));
    found
}

fn matches(kind: &str, terms: &[String], text: &Text) -> Vec<String> {
    terms.iter().filter(|term| text.has(term)).map(|term| format!("{kind}:{term}")).collect()
}
