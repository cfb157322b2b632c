//! Which steps of its lifecycle a request takes: `routes.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::domain::config::Problem;
use crate::domain::intent::Intent;
use crate::domain::lifecycle::{Condition, Lifecycle, StepName};
use crate::domain::word::words;

/// The text of the routes that are built in, and that a new workspace gets.
pub const BUILT_IN_ROUTES: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/scaffold/workspace/routes.yaml"));

words! {
    /// A usual way, the shortest first.
    pub enum Lane {
        /// Nothing is built: somebody gets an answer.
        Answer = "answer",
        /// Built, proven by tests, and landed; only for what is small.
        Fast = "fast",
        /// With a review.
        Quick = "quick",
        /// With a plan, a review and QA.
        Standard = "standard",
        /// Every step.
        Full = "full",
    }
    /// How a request came to its lane.
    pub enum LaneSource {
        /// A person named it.
        Person = "person",
        /// The rules and the orchestrator say the same.
        Both = "both",
        /// The rules are sure, and the orchestrator said nothing.
        Rules = "rules",
        /// The orchestrator is sure, and the rules are not.
        Orchestrator = "orchestrator",
        /// The two differ: the longer way was taken.
        Longer = "longer",
        /// Neither is sure.
        Unsure = "unsure",
        /// The change became more than its lane is for.
        Outgrown = "outgrown",
    }
}

words! {
    /// How much work it is. The sentences are for the orchestrator: they stand in the schema.
    #[derive(schemars::JsonSchema)]
    pub enum WorkSize {
        /// A few lines in up to three files, with no decision to take.
        Small = "small",
        /// Anything between.
        Normal = "normal",
        /// Several parts, or decisions that others have to live with.
        Large = "large",
    }
}

impl Lane {
    /// The next longer one for work; what is answered stays an answer.
    #[must_use]
    pub const fn longer(self) -> Self {
        match self {
            Self::Answer => Self::Answer,
            Self::Fast => Self::Quick,
            Self::Quick => Self::Standard,
            Self::Standard | Self::Full => Self::Full,
        }
    }
}

/// The lane of a request, and how it came to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneChoice {
    /// The lane.
    pub lane: Lane,
    /// How it came to it.
    pub source: LaneSource,
    /// What the rules took the message for; none where they are not sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_rules: Option<Intent>,
    /// What the orchestrator took it for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_orchestrator: Option<Intent>,
}

impl LaneChoice {
    /// A lane that a person names, after the choice so far.
    #[must_use]
    pub fn named(lane: Lane, before: Option<LaneChoice>) -> LaneChoice {
        LaneChoice {
            lane,
            source: LaneSource::Person,
            by_rules: before.and_then(|it| it.by_rules),
            by_orchestrator: before.and_then(|it| it.by_orchestrator),
        }
    }
}

/// The steps of a lane, among those that a lifecycle takes only where the route has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LaneSteps {
    /// Every one.
    All(AllWord),
    /// These.
    These(Vec<StepName>),
}

/// The word for every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllWord {
    /// Every one.
    All,
}

/// What the fast lane is for; whatever is more takes the next lane, with its work kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FastLane {
    /// Files that a change may touch.
    pub most_files: usize,
    /// Lines that it may add and remove.
    pub most_lines: u64,
    /// Whether at least one executed test has to prove it.
    pub tests: bool,
    /// Names of files by which a project takes in dependencies: a change of one is more.
    #[serde(default)]
    pub dependencies: BTreeSet<String>,
}

/// `routes.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routes {
    /// The lane of each intent, for work of a normal size.
    pub intents: BTreeMap<Intent, Lane>,
    /// The lane where neither the rules nor the orchestrator is sure.
    pub unsure: Lane,
    /// From how many percent on the orchestrator counts as sure.
    pub confidence: u8,
    /// The steps of each lane.
    pub lanes: BTreeMap<Lane, LaneSteps>,
    /// What the fast lane is for.
    pub fast: FastLane,
}

impl Routes {
    /// Those that are built in.
    #[must_use]
    pub fn built_in() -> &'static Arc<Routes> {
        // A test holds the built-in text against the built-in lifecycle.
        #[expect(clippy::expect_used, reason = "it is part of the program")]
        static BUILT_IN: LazyLock<Arc<Routes>> = LazyLock::new(|| {
            let routes = Routes::compile(BUILT_IN_ROUTES, Lifecycle::built_in());
            Arc::new(routes.expect("the built-in routes"))
        });
        &BUILT_IN
    }

    /// Reads and checks routes for the requests that go by a lifecycle.
    ///
    /// # Errors
    /// Everything that is wrong, each with the key at which it stands.
    pub fn compile(text: &str, lifecycle: &Lifecycle) -> Result<Routes, Vec<Problem>> {
        let routes: Routes = serde_path_to_error::deserialize(serde_yaml::Deserializer::from_str(
            text,
        ))
        .map_err(|error| {
            let key = error.path().to_string();
            let key = if key == "." { "" } else { &key };
            let hint = "`teams route --show` prints routes that hold together";
            vec![Problem::at(key, error.inner().to_string()).hint(hint)]
        })?;
        let problems = routes.problems(lifecycle);
        if problems.is_empty() { Ok(routes) } else { Err(problems) }
    }

    fn problems(&self, lifecycle: &Lifecycle) -> Vec<Problem> {
        let mut problems = Vec::new();
        let optional = optional(lifecycle);
        let names: Vec<&str> = optional.iter().map(StepName::as_str).collect();
        for lane in Lane::ALL.iter().filter(|lane| !self.lanes.contains_key(lane)) {
            let hint = format!("write `{lane}: [STEP, …]`, or `{lane}: all`");
            problems.push(Problem::at(&format!("lanes.{lane}"), "it is not there").hint(hint));
        }
        for intent in Intent::ALL.iter().filter(|intent| !self.intents.contains_key(intent)) {
            let hint = format!("write `{intent}: LANE`");
            problems.push(Problem::at(&format!("intents.{intent}"), "it is not there").hint(hint));
        }
        if self.confidence > 100 {
            let message = format!("{} is no percentage", self.confidence);
            problems.push(Problem::at("confidence", message).hint("write 0 to 100"));
        }
        if self.unsure < Lane::Standard {
            let message = format!("what nobody is sure of would take the {} lane", self.unsure);
            problems.push(Problem::at("unsure", message).hint("write `standard` or `full`"));
        }
        for (lane, steps) in &self.lanes {
            let LaneSteps::These(steps) = steps else { continue };
            for step in steps.iter().filter(|step| !optional.contains(step)) {
                let key = format!("lanes.{lane}");
                let (message, hint) = match lifecycle.step(*step) {
                    Some(_) => {
                        let hint = "leave it out, or give the step `only_if: [route]` in lifecycles/request.yaml";
                        (format!("`{step}` is always taken"), hint.to_owned())
                    }
                    None => {
                        let hint = format!("those that a lane chooses among: {}", names.join(", "));
                        (format!("there is no step `{step}`"), hint)
                    }
                };
                problems.push(Problem::at(&key, message).hint(hint));
            }
        }
        for pair in Lane::ALL.windows(2) {
            let [shorter, longer] = pair else { continue };
            let (less, more) = (self.steps(*shorter, lifecycle), self.steps(*longer, lifecycle));
            for step in less.difference(&more) {
                let message = format!("`{step}` is in the {shorter} lane and not here");
                let hint = "add it: a longer lane has every step of a shorter one";
                problems.push(Problem::at(&format!("lanes.{longer}"), message).hint(hint));
            }
        }
        problems
    }

    /// The steps of a lane among those that a lifecycle takes only where the route has them.
    #[must_use]
    pub fn steps(&self, lane: Lane, lifecycle: &Lifecycle) -> BTreeSet<StepName> {
        match self.lanes.get(&lane) {
            Some(LaneSteps::These(steps)) => steps.iter().copied().collect(),
            Some(LaneSteps::All(AllWord::All)) | None => optional(lifecycle),
        }
    }

    /// The steps of a lifecycle that a lane leaves out.
    #[must_use]
    pub fn left_out(&self, lane: Lane, lifecycle: &Lifecycle) -> BTreeSet<StepName> {
        optional(lifecycle).difference(&self.steps(lane, lifecycle)).copied().collect()
    }

    /// The lane of an intent for work of a size.
    #[must_use]
    pub fn lane(&self, intent: Intent, size: WorkSize) -> Lane {
        let usual = self.intents.get(&intent).copied().unwrap_or(self.unsure);
        match size {
            WorkSize::Small => match usual {
                Lane::Answer => Lane::Answer,
                Lane::Fast | Lane::Quick => Lane::Fast,
                Lane::Standard => Lane::Quick,
                Lane::Full => Lane::Standard,
            },
            WorkSize::Normal => usual,
            WorkSize::Large => usual.longer(),
        }
    }
}

/// The steps of a lifecycle that are taken only where the route has them.
fn optional(lifecycle: &Lifecycle) -> BTreeSet<StepName> {
    let steps = lifecycle.steps().filter(|step| step.only_if.contains(&Condition::Route));
    steps.map(|step| step.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(from: &str, to: &str, key: &str, words: &str) {
        assert!(BUILT_IN_ROUTES.contains(from), "{from:?} is not in the built-in routes");
        let text = BUILT_IN_ROUTES.replacen(from, to, 1);
        let problems = Routes::compile(&text, Lifecycle::built_in()).expect_err("a fault");
        assert!(problems.iter().all(|problem| problem.hint.is_some()), "{problems:?}");
        let told = problems.iter().any(|it| {
            it.key_path() == key && it.message.contains(words)
                || it.message.starts_with(key) && it.message.contains(words)
        });
        assert!(told, "{key} {words}: {problems:#?}");
    }

    #[test]
    fn the_built_in_routes_hold_together_and_each_lane_is_longer_than_the_one_before() {
        let (routes, lifecycle) = (Routes::built_in(), Lifecycle::built_in());
        let counts = Lane::ALL.map(|lane| routes.left_out(lane, lifecycle).len());
        assert_eq!(counts, [5, 5, 4, 2, 0]);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_to_write() {
        refused("  question: answer ", "  # ", "intents.question", "not there");
        refused("  question: answer ", "  question: shortest ", "intents.question", "unknown");
        refused("  quick: [architect_review]\n", "", "lanes.quick", "not there");
        refused("[architect_review]", "[architect_revue]", "lanes.quick", "no step");
        refused("[architect_review]", "[developer_build]", "lanes.quick", "always taken");
        refused("[architect_review]", "[research_initial]", "lanes.standard", "quick lane");
        refused("unsure: full", "unsure: fast", "unsure", "fast lane");
        refused("confidence: 70", "confidence: 170", "confidence", "percentage");
        refused("most_files: 3", "most_flies: 3", "fast.most_flies", "unknown field");
        assert!(Routes::compile("", Lifecycle::built_in()).is_err());
    }

    #[test]
    fn a_size_moves_a_lane_by_one_and_never_below_the_fast_one() {
        let routes = Routes::built_in();
        for (intent, lanes) in [
            (Intent::Question, [Lane::Answer; 3]),
            (Intent::BugFix, [Lane::Fast, Lane::Quick, Lane::Standard]),
            (Intent::Feature, [Lane::Quick, Lane::Standard, Lane::Full]),
            (Intent::SpecRevision, [Lane::Standard, Lane::Full, Lane::Full]),
        ] {
            let all = [WorkSize::Small, WorkSize::Normal, WorkSize::Large];
            assert_eq!(all.map(|size| routes.lane(intent, size)), lanes, "{intent}");
        }
    }
}
