//! A sprint: a milestone-driven or backlog-driven batch of todos (`spec/teams.md` 4.5).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::ids::{ItemId, RequestId, SprintId, TodoId};
use crate::domain::item::Item;
use crate::domain::language::Language;
use crate::domain::lenient::blank_is_none;
use crate::domain::lifecycle::{SprintStep, Step, StepKind, StepName};
use crate::domain::text::flat;
use crate::domain::time::Timestamp;

mod closing;
mod duty;
mod event;
mod kickoff;
mod plan;
mod planning;
mod todo;
mod todo_progress;
mod words;
mod work;

pub use closing::SprintClosing;
pub use duty::DutyDetails;
pub use event::{Activity, SprintEvent, SprintEventKind};
pub use kickoff::{Kickoff, SprintKickoff};
pub use plan::SprintPlanning;
pub use planning::{
    BackingSource, Duty, PlanningIteration, PlanningStep, PrepassStatus, ResearchPrepass,
};
pub use todo::Todo;
pub use todo_progress::{RESTART_CHECKPOINT, TodoProgress, TodoStatus};
pub use words::{CloseoutStatus, ExecutionMode, Phase, SprintStatus, Trigger, WrapUp};
pub use work::{GitBaseline, SprintCommit, SprintWork};

/// How many lines of recent activity a sprint keeps.
pub const ACTIVITY_KEPT: usize = 25;

/// One sprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sprint {
    /// `YYMMDD-Sprint-HH:MM`, with a suffix where that was taken.
    pub sprint_id: SprintId,
    /// `YYYY-MM-DD-<milestone>`, for people.
    #[serde(default)]
    pub sprint_name: String,
    /// The folder of its documents, relative to the workspace.
    #[serde(default)]
    pub sprint_folder: String,
    /// The folder's own name.
    #[serde(default)]
    pub sprint_folder_name: String,
    /// The milestone as the planner framed it.
    #[serde(default)]
    pub milestone_title: String,
    /// The language of its reports.
    #[serde(default)]
    pub language: Language,
    /// The digest of the lifecycle that it goes by; blank in records of before it had one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lifecycle: String,
    /// The step at which it stands, or stood when it ended; none in records of before it had a lifecycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepName>,
    /// Planning, working or closing.
    pub phase: Phase,
    /// Where it stands.
    pub status: SprintStatus,
    /// Why it began.
    pub trigger: Trigger,
    /// Who began it.
    #[serde(default)]
    pub execution_mode: ExecutionMode,
    /// When it began.
    #[serde(default, with = "blank_is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, with = "blank_is_none")]
    pub ended_at: Option<Timestamp>,
    /// No todo begins after this.
    #[serde(default, with = "blank_is_none")]
    pub cutoff_at: Option<Timestamp>,
    /// The sprint's own request under way: research, a planning step, a review, the closing words.
    #[serde(default, with = "blank_is_none")]
    pub planning_request_id: Option<RequestId>,
    /// When the record last changed.
    #[serde(default, with = "blank_is_none")]
    pub updated_at: Option<Timestamp>,
    /// What it was begun with.
    #[serde(flatten)]
    pub kickoff: SprintKickoff,
    /// How it came to its plan.
    #[serde(flatten)]
    pub planning: SprintPlanning,
    /// Its todos and what came of them.
    #[serde(flatten)]
    pub work: SprintWork,
    /// How it ended.
    #[serde(flatten)]
    pub closing: SprintClosing,
}

impl Sprint {
    /// Whether a title is that of its milestone, as it was asked for or in the words of its planner. Case and white
    /// space do not count.
    #[must_use]
    pub fn is_about(&self, title: &str) -> bool {
        let title = flat(title);
        let own = [&self.milestone_title, &self.kickoff.milestone];
        !title.is_empty() && own.into_iter().any(|milestone| flat(milestone) == title)
    }

    /// Whether somebody wants it to end, or its day is over, and it has not ended yet.
    #[must_use]
    pub const fn is_to_end(&self) -> bool {
        self.closing.wrap_up.is_some() && !self.status.is_terminal()
    }

    /// A sprint that is about to begin. Name, folder and times are set by who begins it.
    #[must_use]
    pub fn new(id: SprintId, trigger: Trigger, kickoff: Kickoff, language: Language) -> Self {
        Self {
            sprint_id: id,
            sprint_name: String::new(),
            sprint_folder: String::new(),
            sprint_folder_name: String::new(),
            milestone_title: kickoff.milestone.clone(),
            language: kickoff.language.unwrap_or(language),
            lifecycle: String::new(),
            step: None,
            phase: Phase::Initial,
            status: SprintStatus::Planning,
            trigger,
            execution_mode: trigger.mode(),
            started_at: None,
            ended_at: None,
            cutoff_at: None,
            planning_request_id: None,
            updated_at: None,
            kickoff: kickoff.into(),
            planning: SprintPlanning::default(),
            work: SprintWork::default(),
            closing: SprintClosing::default(),
        }
    }

    /// Puts it on a step of its lifecycle: status, phase and the step of planning follow.
    pub fn place(&mut self, step: &Step) {
        let StepKind::Sprint(kind) = step.kind else { return };
        (self.status, self.phase) = match kind {
            SprintStep::Baseline
            | SprintStep::Planning(_)
            | SprintStep::Duty(
                Duty::ResearchPrepass
                | Duty::Planning
                | Duty::PlanReview
                | Duty::Sourcing
                | Duty::SourcerReview
                | Duty::BlockedReview,
            ) => (SprintStatus::Planning, Phase::Initial),
            SprintStep::Work | SprintStep::Duty(Duty::OngoingReview) => {
                (SprintStatus::Running, Phase::Ongoing)
            }
            SprintStep::Inspection
            | SprintStep::Duty(Duty::ClosingReport)
            | SprintStep::Archive => (SprintStatus::Closeout, Phase::WrapUp),
        };
        self.planning.step = match kind {
            SprintStep::Planning(step) => Some(step),
            SprintStep::Baseline
            | SprintStep::Duty(_)
            | SprintStep::Work
            | SprintStep::Inspection
            | SprintStep::Archive => None,
        };
        self.step = Some(step.name);
    }

    /// Whether a todo was begun.
    #[must_use]
    pub fn has_worked(&self) -> bool {
        self.work.todos.iter().any(|todo| todo.progress.started_at.is_some())
    }

    /// The todo by its id.
    #[must_use]
    pub fn todo(&self, id: &TodoId) -> Option<&Todo> {
        self.work.todos.iter().find(|todo| todo.progress.todo_id == *id)
    }

    /// Shows its todos that are not over as their items are.
    pub fn show_todos<'i>(&mut self, item: impl Fn(&ItemId) -> Option<&'i Item>) {
        let all = self.work.todos.clone();
        for shown in self.work.todos.iter_mut().filter(|it| !it.progress.status.is_terminal()) {
            let item = shown.backlog_id.as_ref().and_then(&item);
            let todo = item.and_then(|item| item.todo.as_ref());
            let its = todo.filter(|todo| todo.progress.todo_id == shown.progress.todo_id);
            if let Some((item, todo)) = item.zip(its) {
                *shown = Todo::of(item, &todo.progress, &all);
            }
        }
    }

    /// How many todos stand in each status.
    #[must_use]
    pub fn todo_counts(&self) -> BTreeMap<TodoStatus, usize> {
        let mut counts = BTreeMap::new();
        for todo in &self.work.todos {
            *counts.entry(todo.progress.status).or_insert(0) += 1;
        }
        counts
    }

    /// Adds a line to the recent activity; the oldest leaves.
    pub fn note(&mut self, activity: Activity) {
        self.work.last_activity_at = Some(activity.timestamp);
        self.work.recent_activity.push(activity);
        let over = self.work.recent_activity.len().saturating_sub(ACTIVITY_KEPT);
        self.work.recent_activity.drain(..over);
    }
}
