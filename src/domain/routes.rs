//! Which steps of its lifecycle a request takes: `routes.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::domain::config::Problem;
use crate::domain::gate::Stance;
use crate::domain::intent::Intent;
use crate::domain::lifecycle::{Condition, Lifecycle, StepKind, StepName};
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
        /// A signal of the routes is in the message, and asks for a longer way than it would take.
        Signal = "signal",
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
    /// What [`Self::is_shortened`] says, where a person has named the lane. An earlier build did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened: Option<bool>,
}

impl LaneChoice {
    /// Whether a person has named a shorter lane than the words of the message would have, so that their signals ask for
    /// nothing.
    #[must_use]
    pub fn is_shortened(&self) -> bool {
        self.shortened.unwrap_or(self.source == LaneSource::Person)
    }

    /// A lane that a person names, after the choice so far.
    #[must_use]
    pub fn named(lane: Lane, before: Option<LaneChoice>) -> LaneChoice {
        LaneChoice {
            lane,
            source: LaneSource::Person,
            by_rules: before.and_then(|it| it.by_rules),
            by_orchestrator: before.and_then(|it| it.by_orchestrator),
            shortened: Some(false),
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

/// What a message may say besides its intent, and what follows where it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSignal {
    /// It is seen where the message has one of these words, in any case.
    pub words: Vec<String>,
    /// The shortest lane that it allows.
    #[serde(default)]
    pub lane: Option<Lane>,
    /// Steps that are taken besides those of the lane.
    #[serde(default)]
    pub add: Vec<StepName>,
    /// Whether a person is asked about the plan; the stricter of this and `gates.plan` counts.
    #[serde(default)]
    pub plan: Option<Stance>,
}

impl RouteSignal {
    /// Whether a text in lower case has one of its words. A Korean word is seen with what follows it as well.
    fn is_in(&self, text: &str) -> bool {
        let has = |word: &String| {
            let word = word.trim().to_lowercase();
            let latin = word.chars().next_back().is_some_and(|last| last.is_ascii_alphanumeric());
            text.match_indices(&word).any(|(at, _)| {
                let before = text.get(..at).and_then(|it| it.chars().next_back());
                let behind = text.get(at + word.len()..).and_then(|it| it.chars().next());
                let joins = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
                // Korean particles follow a word without a blank.
                !(before.is_some_and(char::is_alphanumeric) || latin && joins(behind))
            })
        };
        self.words.iter().any(has)
    }
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
    /// What a message may say besides its intent, by name.
    #[serde(default)]
    pub signals: BTreeMap<String, RouteSignal>,
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
        // What a person is to approve, and what is asked to be changed, is planned in these.
        let plans =
            |step: &StepName| lifecycle.step(*step).is_some_and(|step| step.kind == StepKind::Plan);
        let is_a_choice = optional.iter().any(plans);
        for lane in [Lane::Standard, Lane::Full].into_iter().filter(|_| is_a_choice) {
            if !self.steps(lane, lifecycle).iter().any(plans) {
                let hint =
                    "add `planner_draft`: it is what people approve before something is built";
                let key = format!("lanes.{lane}");
                problems.push(Problem::at(&key, "nobody plans in it").hint(hint));
            }
        }
        for (name, signal) in &self.signals {
            problems.extend(self.problems_of(name, signal, lifecycle));
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

    fn problems_of(&self, name: &str, signal: &RouteSignal, lifecycle: &Lifecycle) -> Vec<Problem> {
        let mut problems = Vec::new();
        let at = |part: &str| format!("signals.{name}.{part}");
        if signal.words.is_empty() || signal.words.iter().any(|word| word.trim().is_empty()) {
            let hint = "write `words: [payment, 결제]`";
            problems.push(Problem::at(&at("words"), "a word is missing or blank").hint(hint));
        }
        if let Some(lane @ (Lane::Answer | Lane::Fast)) = signal.lane {
            let hint = "write `quick`, `standard` or `full`, or leave it out";
            problems
                .push(Problem::at(&at("lane"), format!("`{lane}` makes no way longer")).hint(hint));
        }
        if signal.lane.is_none() && signal.add.is_empty() && signal.plan.is_none() {
            let hint = "give it `lane`, `add` or `plan`";
            problems.push(
                Problem::at(&format!("signals.{name}"), "nothing follows from it").hint(hint),
            );
        }
        let kind = |step: &StepName| lifecycle.step(*step).map(|step| step.kind);
        let optional = optional(lifecycle);
        let mut taken = self.steps(signal.lane.unwrap_or(Lane::Fast), lifecycle);
        taken.extend(&signal.add);
        for step in &signal.add {
            let is_advice = kind(step) == Some(StepKind::Advice);
            if !is_advice && !optional.contains(step) {
                let advice = lifecycle.steps().filter(|it| it.kind == StepKind::Advice);
                let names: Vec<&str> = optional
                    .iter()
                    .chain(advice.map(|it| &it.name))
                    .map(StepName::as_str)
                    .collect();
                let hint = format!("those that can be added: {}", names.join(", "));
                let message = format!("`{step}` cannot be added");
                problems.push(Problem::at(&at("add"), message).hint(hint));
            } else if is_advice && !taken.iter().any(|it| kind(it) == Some(StepKind::Plan)) {
                let hint = "give the signal `lane: standard`, or add the step that plans";
                let message = format!("`{step}` is advice for a plan, and there may be none");
                problems.push(Problem::at(&at("add"), message).hint(hint));
            }
        }
        problems
    }

    /// The names of the signals that are in a message.
    #[must_use]
    pub fn signals_in(&self, text: &str) -> Vec<String> {
        let text = text.to_lowercase();
        let seen = self.signals.iter().filter(|(_, signal)| signal.is_in(&text));
        seen.map(|(name, _)| name.clone()).collect()
    }

    /// What follows from the signals of these names; one that was taken out of the routes means nothing any more.
    pub fn signals_of<'r>(&'r self, names: &'r [String]) -> impl Iterator<Item = &'r RouteSignal> {
        names.iter().filter_map(|name| self.signals.get(name))
    }

    /// The steps that a request leaves out, with these signals in it.
    #[must_use]
    pub fn left_out_with(
        &self,
        lane: Lane,
        signals: &[String],
        lifecycle: &Lifecycle,
    ) -> BTreeSet<StepName> {
        let mut left_out = self.left_out(lane, lifecycle);
        for step in self.signals_of(signals).flat_map(|signal| &signal.add) {
            left_out.remove(step);
        }
        left_out
    }

    /// The steps of a lane among those that a lifecycle takes only where the route has them.
    #[must_use]
    pub fn steps(&self, lane: Lane, lifecycle: &Lifecycle) -> BTreeSet<StepName> {
        match self.lanes.get(&lane) {
            Some(LaneSteps::These(steps)) => steps.iter().copied().collect(),
            Some(LaneSteps::All(AllWord::All)) | None => optional(lifecycle),
        }
    }

    /// The steps of a lifecycle that a lane leaves out. Where the routes have steps that it has not, they were written for
    /// other names, and what plans or judges under a name of which no lane knows is left out of none that builds.
    #[must_use]
    pub fn left_out(&self, lane: Lane, lifecycle: &Lifecycle) -> BTreeSet<StepName> {
        let mut left_out = optional(lifecycle);
        let taken = self.steps(lane, lifecycle);
        let named = self.lanes.values().filter_map(|lane| match lane {
            LaneSteps::These(steps) => Some(steps),
            LaneSteps::All(AllWord::All) => None,
        });
        let named: BTreeSet<StepName> = named.flatten().copied().collect();
        let is_foreign = named.iter().any(|step| lifecycle.step(*step).is_none());
        let is_kept = |step: &StepName| {
            let kind = lifecycle.step(*step).map(|step| step.kind);
            let matters = kind.is_some_and(|kind| kind.judges() || kind == StepKind::Plan);
            lane != Lane::Answer && is_foreign && matters && !named.contains(step)
        };
        left_out.retain(|step| !taken.contains(step) && !is_kept(step));
        left_out
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
    fn what_plans_or_judges_under_a_name_that_no_lane_has_is_left_out_of_none() {
        let text = Lifecycle::built_in().text();
        let text =
            text.replace("architect_review", "code_review").replace("planner_draft", "draft");
        let text =
            text.replacen("  code_review:\n", "  code_review:\n    prompt: architect_review\n", 1);
        let text = text.replacen("  draft:\n", "  draft:\n    prompt: planner_draft\n", 1);
        let renamed = Lifecycle::compile(&text).unwrap_or_else(|found| panic!("{found:#?}"));
        for lane in [Lane::Fast, Lane::Quick, Lane::Standard, Lane::Full] {
            let left_out = Routes::built_in().left_out(lane, &renamed);
            let is_left_out = |name: &str| left_out.iter().any(|step| step.as_str() == name);
            assert!(!is_left_out("code_review") && !is_left_out("draft"), "{lane}: {left_out:?}");
            assert_eq!(is_left_out("qa_validation"), lane < Lane::Standard, "{lane}");
        }
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
        let signal = |rest: &str| format!("signals: {{money: {{words: [payment], {rest}}}}}");
        let none = "signals: {}";
        refused(none, &signal("lane: fast"), "signals.money.lane", "no way longer");
        refused(none, &signal("add: []"), "signals.money", "nothing follows");
        refused(none, &signal("add: [developer_build]"), "signals.money.add", "cannot be added");
        refused(none, &signal("add: [designer_advisory]"), "signals.money.add", "advice");
        refused(none, "signals: {money: {words: [], lane: full}}", "signals.money.words", "blank");
        refused("most_files: 3", "most_flies: 3", "fast.most_flies", "unknown field");
        assert!(Routes::compile("", Lifecycle::built_in()).is_err());
    }

    #[test]
    fn a_signal_is_a_whole_word_and_a_korean_one_with_what_follows_it() {
        let words = ["payment", "결제", "log in"].map(str::to_owned).to_vec();
        let signal = RouteSignal { words, lane: Some(Lane::Full), add: Vec::new(), plan: None };
        let mut routes = Routes::clone(Routes::built_in());
        routes.signals.insert("money".to_owned(), signal);
        for (text, is_seen) in [
            ("Fix the Payment page", true),
            ("rename payment_api.py", true),
            ("the payments", false),
            ("repayment", false),
            ("결제를 고쳐 주세요", true),
            ("미결제 목록", false),
            ("users cannot log in.", true),
            ("the log, in short", false),
            ("", false),
        ] {
            assert_eq!(!routes.signals_in(text).is_empty(), is_seen, "{text}");
        }
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
