//! A lifecycle as it is written.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::{
    Condition, CounterName, Prerequisite, SprintStep, StepAccess, StepKind, StepName, StepOutcome,
    Subject,
};
use crate::domain::role::Role;
use crate::domain::sprint::{Duty, PlanningStep};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    pub(super) lifecycle: Subject,
    pub(super) begin: StepName,
    pub(super) begin_todo: Option<StepName>,
    pub(super) begin_blocked: Option<StepName>,
    pub(super) resume: Option<StepName>,
    pub(super) stop: Option<StepName>,
    pub(super) attempts: Option<u32>,
    pub(super) timeout: Option<String>,
    #[serde(default)]
    pub(super) counters: BTreeMap<CounterName, u32>,
    #[serde(default)]
    pub(super) reopen: ReopenDefinition,
    pub(super) steps: OrderedMap<StepName, StepDefinition>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepDefinition {
    pub(super) role: Option<Role>,
    pub(super) result: Option<ResultWord>,
    pub(super) runtime: Option<RuntimeWord>,
    pub(super) prompt: Option<String>,
    #[serde(default)]
    pub(super) access: StepAccess,
    #[serde(default)]
    pub(super) needs: Vec<Prerequisite>,
    #[serde(default)]
    pub(super) only_if: Vec<Condition>,
    pub(super) counts: Option<CounterName>,
    pub(super) attempts: Option<u32>,
    pub(super) timeout: Option<String>,
    #[serde(default)]
    pub(super) on: BTreeMap<StepOutcome, EdgeDefinition>,
    #[serde(default)]
    pub(super) reopen: ReopenDefinition,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResultWord {
    Research,
    Plan,
    Advice,
    Guidance,
    Change,
    Review,
    Verdict,
    ResearchPrepass,
    MilestoneRefinement,
    ArtifactSync,
    BacklogDefinition,
    BacklogPrioritization,
    TodoFinalization,
    PlanReview,
    OngoingReview,
    ClosingReport,
    Sourcing,
    SourcerReview,
    BlockedBacklogReview,
}

impl ResultWord {
    pub(super) const fn kind(self) -> StepKind {
        use SprintStep::{Duty as D, Planning as P};
        use StepKind::Sprint;
        match self {
            Self::Research => StepKind::Research,
            Self::Plan => StepKind::Plan,
            Self::Advice => StepKind::Advice,
            Self::Guidance => StepKind::Guidance,
            Self::Change => StepKind::Change,
            Self::Review => StepKind::Review,
            Self::Verdict => StepKind::Verdict,
            Self::ResearchPrepass => Sprint(D(Duty::ResearchPrepass)),
            Self::MilestoneRefinement => Sprint(P(PlanningStep::MilestoneRefinement)),
            Self::ArtifactSync => Sprint(P(PlanningStep::ArtifactSync)),
            Self::BacklogDefinition => Sprint(P(PlanningStep::BacklogDefinition)),
            Self::BacklogPrioritization => Sprint(P(PlanningStep::BacklogPrioritization)),
            Self::TodoFinalization => Sprint(P(PlanningStep::TodoFinalization)),
            Self::PlanReview => Sprint(D(Duty::PlanReview)),
            Self::OngoingReview => Sprint(D(Duty::OngoingReview)),
            Self::ClosingReport => Sprint(D(Duty::ClosingReport)),
            Self::Sourcing => Sprint(D(Duty::Sourcing)),
            Self::SourcerReview => Sprint(D(Duty::SourcerReview)),
            Self::BlockedBacklogReview => Sprint(D(Duty::BlockedReview)),
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RuntimeWord {
    Land,
    Baseline,
    Work,
    Inspect,
    Archive,
}

impl RuntimeWord {
    pub(super) const fn kind(self) -> StepKind {
        match self {
            Self::Land => StepKind::Land,
            Self::Baseline => StepKind::Sprint(SprintStep::Baseline),
            Self::Work => StepKind::Sprint(SprintStep::Work),
            Self::Inspect => StepKind::Sprint(SprintStep::Inspection),
            Self::Archive => StepKind::Sprint(SprintStep::Archive),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReopenDefinition {
    pub(super) counter: Option<CounterName>,
    pub(super) scope: Option<EdgeDefinition>,
    pub(super) ux: Option<EdgeDefinition>,
    pub(super) architecture: Option<EdgeDefinition>,
    pub(super) implementation: Option<EdgeDefinition>,
    pub(super) verification: Option<EdgeDefinition>,
}

/// Where an outcome leads: a step's name, or that with what it costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct EdgeDefinition {
    pub(super) to: StepName,
    pub(super) charge: Option<CounterName>,
    pub(super) within: Option<CounterName>,
    pub(super) otherwise: Option<StepName>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WholeEdge {
    to: StepName,
    charge: Option<CounterName>,
    within: Option<CounterName>,
    #[serde(rename = "else")]
    otherwise: Option<StepName>,
}

impl<'de> Deserialize<'de> for EdgeDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Edge;
        impl<'de> Visitor<'de> for Edge {
            type Value = EdgeDefinition;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a step, or {to: STEP, charge: COUNTER, else: STEP}")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<EdgeDefinition, E> {
                let to = StepName::parse(text).map_err(E::custom)?;
                Ok(EdgeDefinition { to, charge: None, within: None, otherwise: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<EdgeDefinition, A::Error> {
                let WholeEdge { to, charge, within, otherwise } =
                    WholeEdge::deserialize(MapAccessDeserializer::new(map))?;
                Ok(EdgeDefinition { to, charge, within, otherwise })
            }
        }
        deserializer.deserialize_any(Edge)
    }
}

/// A mapping in the order in which it is written.
#[derive(Debug)]
pub(super) struct OrderedMap<K, V>(pub(super) Vec<(K, V)>);

impl<'de, K: Deserialize<'de> + PartialEq + fmt::Display, V: Deserialize<'de>> Deserialize<'de>
    for OrderedMap<K, V>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<K, V>(PhantomData<(K, V)>);
        impl<'de, K: Deserialize<'de> + PartialEq + fmt::Display, V: Deserialize<'de>> Visitor<'de>
            for Entries<K, V>
        {
            type Value = OrderedMap<K, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(K, V)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<K, V>()? {
                    if entries.iter().any(|(known, _)| *known == key) {
                        return Err(A::Error::custom(format!("`{key}` stands here twice")));
                    }
                    entries.push((key, value));
                }
                Ok(OrderedMap(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}
