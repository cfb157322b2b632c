//! Lifecycles as data: which steps a request takes, who works them, and where each outcome leads.
//!
//! A definition is read and compiled once; what does not hold together never becomes a [`Lifecycle`]. Which
//! outcome a role's result is, and what no definition can switch off, is code (`engine::lifecycle`).

mod compile;
mod definition;
mod kind;
mod names;
mod words;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

pub use kind::{SprintStep, StepKind};
pub(crate) use names::blank as blank_name;
pub use names::{CounterName, NotAName, StepName};
pub use words::{Condition, Phase, ReopenCategory, StepOutcome, Subject};

use crate::domain::role::Role;

/// The text of the lifecycle of requests that is built in.
pub const BUILT_IN: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lifecycles/request.yaml"));
const SPRINT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lifecycles/sprint.yaml"));
const SOURCING: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lifecycles/sourcing.yaml"));

/// The definition that is built in for a subject.
const fn built_in(subject: Subject) -> &'static str {
    match subject {
        Subject::Request => BUILT_IN,
        Subject::Sprint => SPRINT,
        Subject::Sourcing => SOURCING,
    }
}

/// A lifecycle that holds together. In records it is its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Lifecycle {
    text: String,
    digest: String,
    /// What goes by it.
    pub subject: Subject,
    /// Where a person's request, a sprint or sourcing begins.
    pub begin: StepName,
    /// Where a todo of a sprint begins; `begin` where no requests go by it.
    pub begin_todo: StepName,
    /// Where the look at blocked items begins; `begin` where no sourcing goes by it.
    pub begin_blocked: StepName,
    /// Where a person's answer leads; the planner's step in which a plan is settled. `begin` where no requests go
    /// by it.
    pub resume: StepName,
    /// Where a sprint goes on that is to end; `begin` where no sprints go by it.
    pub stop: StepName,
    /// How often something may happen.
    pub counters: BTreeMap<CounterName, u32>,
    /// Where a category leads where the step says nothing else.
    reopen: BTreeMap<ReopenCategory, Edge>,
    steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: StepName,
    /// What it is for: decides what results mean, and their schema.
    pub kind: StepKind,
    /// Who works it; the version controller where the runtime does.
    pub role: Role,
    /// The name of the template with its rules, in `steps/`.
    pub prompt: String,
    /// What its role may write.
    pub access: StepAccess,
    /// What has to be there before.
    pub needs: Vec<Prerequisite>,
    /// What has to hold, all of it; else the step is passed over.
    pub only_if: Vec<Condition>,
    /// The counter that goes up each time that the step is entered.
    pub counts: Option<CounterName>,
    /// Attempts before a person is asked.
    pub attempts: u32,
    /// Seconds of one attempt, after which its agent is ended.
    pub timeout_seconds: u64,
    /// The counter that pays for what it sends back.
    pub reopen_counter: CounterName,
    on: BTreeMap<StepOutcome, Edge>,
    reopen: BTreeMap<ReopenCategory, Edge>,
}

/// Where an outcome leads, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The next step.
    pub to: StepName,
    /// The counter that pays.
    pub charge: Option<CounterName>,
    /// The counter that must not be used up.
    pub within: Option<CounterName>,
    /// The next step where the counter does not allow it; a person is asked where there is none.
    pub otherwise: Option<StepName>,
}

/// The counters by which the rules above every lifecycle pay, and those of the lifecycle that is built in.
pub mod counter {
    use super::CounterName;

    /// Reports in all.
    pub const TURNS: CounterName = CounterName::of("turns");
    /// Plans that named none of their documents.
    pub const PLANNER_CONTRACT: CounterName = CounterName::of("planner_contract");
    /// Advice that a planner asked for.
    pub const ADVICE: CounterName = CounterName::of("advice");
    /// Reviews that were begun.
    pub const REVIEW: CounterName = CounterName::of("review");
    /// What roles other than QA sent back.
    pub const REOPEN: CounterName = CounterName::of("reopen");
    /// What QA sent back.
    pub const QA_REOPEN: CounterName = CounterName::of("qa_reopen");
    /// Checks that failed.
    pub const CHECKS: CounterName = CounterName::of("checks");
    /// Conflicts with the branch.
    pub const CONFLICTS: CounterName = CounterName::of("conflicts");
}

/// What the role of a step may write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAccess {
    /// Nothing of the project.
    #[default]
    Read,
    /// The request's worktree.
    Write,
}

/// What has to be there before a step begins; the runtime brings it about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prerequisite {
    /// The work so far as a commit on the request's own branch.
    Commit,
    /// Green checks of that commit, where checks are configured.
    Evidence,
}

impl Lifecycle {
    /// The one of requests that is built in.
    #[must_use]
    pub fn built_in() -> &'static Arc<Lifecycle> {
        Self::of(Subject::Request)
    }

    /// The one that is built in.
    #[must_use]
    pub fn of(subject: Subject) -> &'static Arc<Lifecycle> {
        // Tests hold the built-in texts against the rules.
        #[expect(clippy::expect_used, reason = "they are part of the program")]
        fn compiled(subject: Subject) -> Arc<Lifecycle> {
            Arc::new(Lifecycle::compile(built_in(subject)).expect("a built-in lifecycle"))
        }
        static REQUEST_LIFECYCLE: LazyLock<Arc<Lifecycle>> =
            LazyLock::new(|| compiled(Subject::Request));
        static SPRINT_LIFECYCLE: LazyLock<Arc<Lifecycle>> =
            LazyLock::new(|| compiled(Subject::Sprint));
        static SOURCING_LIFECYCLE: LazyLock<Arc<Lifecycle>> =
            LazyLock::new(|| compiled(Subject::Sourcing));
        match subject {
            Subject::Request => &REQUEST_LIFECYCLE,
            Subject::Sprint => &SPRINT_LIFECYCLE,
            Subject::Sourcing => &SOURCING_LIFECYCLE,
        }
    }

    /// SHA-256 of its text: requests name it by this.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The definition.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The steps, in the order of the definition.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter()
    }

    /// The step of a name.
    #[must_use]
    pub fn step(&self, name: StepName) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// The first step of a kind.
    #[must_use]
    pub fn step_of(&self, kind: StepKind) -> Option<&Step> {
        self.steps.iter().find(|step| step.kind == kind)
    }

    /// The first step of each kind that guides, builds or judges: what a todo goes through after its plan where its route
    /// leaves nothing out and nothing is sent back.
    pub fn usual_steps(&self) -> impl Iterator<Item = &Step> {
        let is_usual = |kind| match kind {
            StepKind::Guidance | StepKind::Change | StepKind::Review | StepKind::Verdict => true,
            StepKind::Research
            | StepKind::Plan
            | StepKind::Advice
            | StepKind::Land
            | StepKind::Sprint(_) => false,
        };
        let first = |kind| self.step_of(kind).map(|it| it.name);
        self.steps
            .iter()
            .filter(move |step| is_usual(step.kind) && first(step.kind) == Some(step.name))
    }

    /// The steps that a request comes by until it lands, where each leads on along its first outcome; those that it passes
    /// over are among them.
    #[must_use]
    pub fn straight_way(&self) -> Vec<StepName> {
        let mut way = Vec::new();
        let mut next = Some(self.begin);
        while let Some(step) = next.filter(|name| !way.contains(name)) {
            way.push(step);
            let leads_on = self.step(step).filter(|step| step.kind != StepKind::Land);
            next = leads_on.and_then(|step| step.edges().next()).map(|(_, edge)| edge.to);
        }
        way
    }

    /// The step at which the change comes to the branch.
    #[must_use]
    pub fn landing(&self) -> StepName {
        self.step_of(StepKind::Land).map_or(self.resume, |step| step.name)
    }

    /// Where what a step sends back leads, by category; nothing for a step that sends nothing back.
    pub fn ways_back<'l>(
        &'l self,
        step: &'l Step,
    ) -> impl Iterator<Item = (ReopenCategory, Edge)> + 'l {
        let all = ReopenCategory::ALL.iter().filter(|_| step.kind.sends_back());
        all.filter_map(|category| Some((*category, self.reopened(step, Some(*category))?)))
    }

    /// Where a category of what is to be done again leads from a step; without one it is the scope.
    #[must_use]
    pub fn reopened(&self, from: &Step, category: Option<ReopenCategory>) -> Option<Edge> {
        let category = category.unwrap_or(ReopenCategory::Scope);
        from.reopen.get(&category).or_else(|| self.reopen.get(&category)).copied()
    }
}

impl Step {
    /// The template with its rules, within `prompts/`.
    #[must_use]
    pub fn template(&self) -> String {
        format!("steps/{}.md", self.prompt)
    }

    /// Where an outcome leads; `None` for one that the step does not have.
    #[must_use]
    pub fn on(&self, outcome: StepOutcome) -> Option<Edge> {
        self.on.get(&outcome).copied()
    }

    /// Its outcomes and where they lead.
    pub fn edges(&self) -> impl Iterator<Item = (StepOutcome, Edge)> {
        self.on.iter().map(|(outcome, edge)| (*outcome, *edge))
    }

    /// Whether something has to be there before it begins.
    #[must_use]
    pub fn needs(&self, need: Prerequisite) -> bool {
        self.needs.contains(&need)
    }
}

impl TryFrom<String> for Lifecycle {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        // Nearly every workspace has these, which every start reads.
        if let Some(subject) = Subject::ALL.into_iter().find(|it| built_in(*it) == text) {
            return Ok(Lifecycle::clone(Lifecycle::of(subject)));
        }
        Lifecycle::compile(&text).map_err(|problems| {
            let lines = problems.iter().map(|it| format!("{}: {}", it.key.join("."), it.message));
            lines.collect::<Vec<_>>().join("; ")
        })
    }
}

impl From<Lifecycle> for String {
    fn from(lifecycle: Lifecycle) -> String {
        lifecycle.text
    }
}

#[cfg(test)]
mod tests;
