//! A sprint: a milestone-driven or backlog-driven batch of todos (`spec/teams.md` 4.5).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::backlog::blank_is_none;
use crate::domain::ids::{BacklogId, RequestId, SprintId, TodoId};
use crate::domain::language::Language;
use crate::domain::request::ReplyRoute;
use crate::domain::time::Timestamp;

mod duty;
mod event;
mod planning;
mod todo;
mod words;

pub use duty::DutyDetails;
pub use event::{Activity, SprintEvent, SprintEventKind};

pub use planning::{
    BackingSource, Duty, InitialStep, PlanningIteration, PrepassStatus, ResearchPrepass,
};
pub use todo::{RESTART_CHECKPOINT, Todo, TodoStatus};
pub use words::{CloseoutStatus, ExecutionMode, Phase, SprintStatus, Trigger, WrapUp};

/// How many lines of recent activity a sprint keeps.
pub const ACTIVITY_KEPT: usize = 25;

/// How the project stood when the sprint began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitBaseline {
    /// The repository.
    pub repo_root: String,
    /// The branch's commit; blank in a repository without commits.
    pub head_sha: String,
    /// What lay uncommitted in its checkout.
    pub dirty_paths: Vec<String>,
}

/// A commit of the sprint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SprintCommit {
    /// Its id.
    pub sha: String,
    /// The first characters of it.
    pub short_sha: String,
    /// The first line of its message.
    pub subject: String,
    /// Whether that names the sprint.
    pub sprint_tagged: bool,
}

/// What a sprint is begun with. Kept in the sprint as it was given and never changed afterwards.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kickoff {
    /// The milestone, as it was asked for; blank only for a sprint that the scheduler begins.
    pub milestone: String,
    /// What it is about.
    pub brief: String,
    /// What has to hold at the end.
    pub requirements: Vec<String>,
    /// Files that go with it, workspace-relative.
    pub artifacts: Vec<String>,
    /// The words that asked for it, verbatim.
    pub request_text: String,
    /// The request that asked, where one did.
    pub source_request_id: Option<RequestId>,
    /// Where reports to the person go.
    pub reply_route: ReplyRoute,
    /// The language of the sprint.
    pub language: Option<Language>,
}

impl Kickoff {
    /// What was filled in, as a person would have written it (`spec/teams.md` 1.5): the sections that
    /// plain words to the team are read by.
    #[must_use]
    pub fn written(&self) -> String {
        let mut lines = vec!["start sprint".to_owned(), format!("milestone: {}", self.milestone)];
        if !self.brief.is_empty() {
            lines.push(format!("brief: {}", self.brief));
        }
        if !self.requirements.is_empty() {
            lines.push("requirements:".to_owned());
            lines.extend(self.requirements.iter().map(|words| format!("- {words}")));
        }
        lines.join("\n")
    }
}

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
    /// The milestone as it was asked for.
    #[serde(default)]
    pub requested_milestone_title: String,
    /// The milestone as the planner framed it.
    #[serde(default)]
    pub milestone_title: String,
    /// Kickoff: what it is about.
    #[serde(default)]
    pub kickoff_brief: String,
    /// Kickoff: what has to hold at the end.
    #[serde(default)]
    pub kickoff_requirements: Vec<String>,
    /// Kickoff: the words that asked for it.
    #[serde(default)]
    pub kickoff_request_text: String,
    /// Kickoff: the request that asked.
    #[serde(default, with = "blank_is_none")]
    pub kickoff_source_request_id: Option<RequestId>,
    /// Kickoff: files.
    #[serde(default)]
    pub kickoff_reference_artifacts: Vec<String>,
    /// Where reports to the person who asked go.
    #[serde(default)]
    pub reply_route: ReplyRoute,
    /// The language of its reports.
    #[serde(default)]
    pub language: Language,
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
    /// When planning was through.
    #[serde(default, with = "blank_is_none")]
    pub initial_phase_ready_at: Option<Timestamp>,
    /// When the planner last reviewed the running sprint.
    #[serde(default, with = "blank_is_none")]
    pub last_planner_review_at: Option<Timestamp>,
    /// When it was asked to end.
    #[serde(default, with = "blank_is_none")]
    pub wrap_up_requested_at: Option<Timestamp>,
    /// How it was asked to end.
    #[serde(default)]
    pub wrap_up: Option<WrapUp>,
    /// The step that planning stands at; none before research is through, and afterwards.
    #[serde(default)]
    pub initial_phase_step: Option<InitialStep>,
    /// Times that each step was reopened.
    #[serde(default)]
    pub initial_phase_reopen_counts: BTreeMap<InitialStep, u32>,
    /// The step that was last reopened.
    #[serde(default)]
    pub last_initial_phase_reopen_step: Option<InitialStep>,
    /// Why.
    #[serde(default)]
    pub last_initial_phase_reopen_reason: String,
    /// The request whose result was not enough.
    #[serde(default, with = "blank_is_none")]
    pub last_initial_phase_reopen_request_id: Option<RequestId>,
    /// The sprint's own request under way: research, a planning step, a review, the closing words.
    #[serde(default, with = "blank_is_none")]
    pub planning_request_id: Option<RequestId>,
    /// What research found before planning.
    #[serde(default)]
    pub research_prepass: Option<ResearchPrepass>,
    /// What each planning request came to, one entry a request and phase.
    #[serde(default)]
    pub planning_iterations: Vec<PlanningIteration>,
    /// Items that became todos.
    #[serde(default)]
    pub selected_backlog_ids: Vec<BacklogId>,
    /// The todos.
    #[serde(default)]
    pub todos: Vec<Todo>,
    /// Files that matter, workspace-relative.
    #[serde(default)]
    pub reference_artifacts: Vec<String>,
    /// The last lines of what happened.
    #[serde(default)]
    pub recent_activity: Vec<Activity>,
    /// When something last happened.
    #[serde(default, with = "blank_is_none")]
    pub last_activity_at: Option<Timestamp>,
    /// The last commit.
    #[serde(default)]
    pub commit_sha: String,
    /// All of them, oldest first.
    #[serde(default)]
    pub commit_shas: Vec<String>,
    /// All of them, as git tells.
    #[serde(default)]
    pub commits: Vec<SprintCommit>,
    /// How many.
    #[serde(default)]
    pub commit_count: u64,
    /// How closing it went.
    #[serde(default)]
    pub closeout_status: Option<CloseoutStatus>,
    /// One line about that.
    #[serde(default)]
    pub closeout_message: String,
    /// What lay uncommitted in the project's checkout at its end. The team works in worktrees of its own, so
    /// that this is people's; nobody commits it but they.
    #[serde(default)]
    pub uncommitted_paths: Vec<String>,
    /// `not_needed`. In older files also what became of a commit of what lay in the checkout: `committed`,
    /// `failed`.
    #[serde(default)]
    pub version_control_status: String,
    /// In older files: that commit.
    #[serde(default)]
    pub version_control_sha: String,
    /// In older files: its paths.
    #[serde(default)]
    pub version_control_paths: Vec<String>,
    /// The closing words of the planner, as it wrote them.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub planner_report_draft: Value,
    /// The final report, for people.
    #[serde(default)]
    pub report_body: String,
    /// Where it lies, workspace-relative.
    #[serde(default)]
    pub report_path: String,
    /// The project as it was at the start; none until it was looked at.
    #[serde(default)]
    pub git_baseline: Option<GitBaseline>,
    /// When it was asked to go on from a checkpoint.
    #[serde(default, with = "blank_is_none")]
    pub resume_from_checkpoint_requested_at: Option<Timestamp>,
    /// The todo that it went on from.
    #[serde(default, with = "blank_is_none")]
    pub last_resume_checkpoint_todo_id: Option<TodoId>,
    /// How that todo stood.
    #[serde(default)]
    pub last_resume_checkpoint_status: String,
    /// When the record last changed.
    #[serde(default, with = "blank_is_none")]
    pub updated_at: Option<Timestamp>,
}

impl Sprint {
    /// A sprint that is about to begin. Name, folder and times are set by who begins it.
    #[must_use]
    pub fn new(id: SprintId, trigger: Trigger, kickoff: Kickoff, language: Language) -> Self {
        Self {
            sprint_id: id,
            sprint_name: String::new(),
            sprint_folder: String::new(),
            sprint_folder_name: String::new(),
            requested_milestone_title: kickoff.milestone.clone(),
            milestone_title: kickoff.milestone,
            kickoff_brief: kickoff.brief,
            kickoff_requirements: kickoff.requirements,
            kickoff_request_text: kickoff.request_text,
            kickoff_source_request_id: kickoff.source_request_id,
            kickoff_reference_artifacts: kickoff.artifacts,
            reply_route: kickoff.reply_route,
            language: kickoff.language.unwrap_or(language),
            phase: Phase::Initial,
            status: SprintStatus::Planning,
            trigger,
            execution_mode: trigger.mode(),
            started_at: None,
            ended_at: None,
            cutoff_at: None,
            initial_phase_ready_at: None,
            last_planner_review_at: None,
            wrap_up_requested_at: None,
            wrap_up: None,
            initial_phase_step: None,
            initial_phase_reopen_counts: BTreeMap::new(),
            last_initial_phase_reopen_step: None,
            last_initial_phase_reopen_reason: String::new(),
            last_initial_phase_reopen_request_id: None,
            planning_request_id: None,
            research_prepass: None,
            planning_iterations: Vec::new(),
            selected_backlog_ids: Vec::new(),
            todos: Vec::new(),
            reference_artifacts: Vec::new(),
            recent_activity: Vec::new(),
            last_activity_at: None,
            commit_sha: String::new(),
            commit_shas: Vec::new(),
            commits: Vec::new(),
            commit_count: 0,
            closeout_status: None,
            closeout_message: String::new(),
            uncommitted_paths: Vec::new(),
            version_control_status: String::new(),
            version_control_sha: String::new(),
            version_control_paths: Vec::new(),
            planner_report_draft: Value::Null,
            report_body: String::new(),
            report_path: String::new(),
            git_baseline: None,
            resume_from_checkpoint_requested_at: None,
            last_resume_checkpoint_todo_id: None,
            last_resume_checkpoint_status: String::new(),
            updated_at: None,
        }
    }

    /// The todo by its id.
    #[must_use]
    pub fn todo(&self, id: &TodoId) -> Option<&Todo> {
        self.todos.iter().find(|todo| todo.todo_id == *id)
    }

    /// How many todos stand in each status.
    #[must_use]
    pub fn todo_counts(&self) -> BTreeMap<TodoStatus, usize> {
        let mut counts = BTreeMap::new();
        for todo in &self.todos {
            *counts.entry(todo.status).or_insert(0) += 1;
        }
        counts
    }

    /// Adds a line to the recent activity; the oldest leaves.
    pub fn note(&mut self, activity: Activity) {
        self.last_activity_at = Some(activity.timestamp);
        self.recent_activity.push(activity);
        let over = self.recent_activity.len().saturating_sub(ACTIVITY_KEPT);
        self.recent_activity.drain(..over);
    }
}
