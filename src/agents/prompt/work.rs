//! What a role is told about the sprint and the backlog that its step belongs to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::criterion::Criterion;
use crate::domain::item::Item;
use crate::domain::sprint::{Duty, PlanningStep, ResearchPrepass, SprintCommit, Todo};

/// A sprint, as far as its roles need it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SprintBrief {
    /// Its id.
    pub sprint_id: String,
    /// Where the workspace lies.
    pub root: String,
    /// Its folder, relative to the workspace.
    pub folder: String,
    /// `planning`, `running`, …
    pub status: String,
    /// Whether a person has approved its plan.
    pub plan_approved: bool,
    /// The milestone as it was asked for; blank where the team began the sprint itself.
    pub requested_milestone: String,
    /// The milestone as it reads now.
    pub milestone: String,
    /// Kickoff: what it is about.
    pub brief: String,
    /// Kickoff: what has to hold at the end.
    pub requirements: Vec<String>,
    /// Kickoff: the words that asked for it.
    pub request_text: String,
    /// Kickoff: files.
    pub artifacts: Vec<String>,
    /// What research found.
    pub research: Option<ResearchPrepass>,
    /// The todos; of many, whoever does one of them is told of the nearest.
    pub todos: Vec<Todo>,
    /// Further todos.
    pub todos_left_out: usize,
    /// Its commits so far; none for whoever does a todo, which is told them with the todos.
    pub commits: Vec<SprintCommit>,
    /// How closing it stands; blank before.
    pub closeout: String,
    /// Paths that nobody committed.
    pub uncommitted_paths: Vec<String>,
}

/// Both sides of a conflict with the branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConflictBrief {
    /// The branch's commit that the worktree stands on.
    pub head: String,
    /// The paths that both sides changed.
    pub paths: Vec<String>,
    /// What the request changed in them, as a diff.
    pub own: String,
    /// What came onto the branch in them, as a diff.
    pub branch: String,
    /// All paths that one of the two changed.
    pub changed: Vec<String>,
    /// Whether they have been brought together already, and the solution was sent back.
    pub solved: bool,
    /// The changes that it came by, newest first.
    pub others: Vec<OtherChange>,
    /// The acceptance criteria of those that are requests.
    pub criteria: Vec<Criterion>,
}

/// A change that somebody else brought onto the branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherChange {
    /// The request that it was made for; blank for a person's own commit.
    pub request_id: String,
    /// Who asked for it, or made it.
    pub author: String,
    /// What was asked for, or the commit's message.
    pub words: String,
    /// What was planned for it, in the planner's summary; blank where nobody planned.
    pub plan: String,
}

/// What an earlier conversation of the role about this request leaves to the one that follows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handover {
    /// That conversation; blank where it is gone.
    pub session: String,
    /// Whether it may still be asked for a summary.
    pub can_answer: bool,
    /// What the records say about the role's work until then.
    pub records: String,
    /// What it said itself, where it could.
    pub summary: String,
}

/// A command that is registered under a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionBrief {
    /// Its name.
    pub name: String,
    /// The parameters that it takes.
    pub parameters: Vec<String>,
}

/// Another request of the same person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRequest {
    /// Its id.
    pub request_id: String,
    /// What it asks for.
    pub scope: String,
}

/// Work that a todo builds on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EarlierWork {
    /// What was to be done, in a line.
    pub title: String,
    /// How its request ended.
    pub status: String,
    /// The commit on the branch; blank where there is none.
    pub commit: String,
    /// The files of its change.
    pub files: Vec<String>,
    /// What whoever built it reported.
    pub report: String,
    /// What QA found, and which risks stayed.
    pub to_know: Vec<String>,
    /// Why it waited for a person at last; blank where it did not.
    pub stopped_by: String,
    /// Whether it is an earlier attempt at the same, rather than something that is depended on.
    pub is_attempt: bool,
}

/// Everything about sprint, backlog and the role's own earlier work that a step needs; all blank for a
/// person's request outside a sprint that begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// What the sprint or the backlog wants of the role.
    pub duty: Option<Duty>,
    /// The step of planning.
    pub planning_step: Option<PlanningStep>,
    /// Times that this step of planning was given back.
    pub reopens: u32,
    /// The sprint.
    pub sprint: Option<SprintBrief>,
    /// The item that this request delivers.
    pub item: Option<Item>,
    /// Open items, those of the sprint first.
    pub backlog: Vec<Item>,
    /// How many more there are.
    pub backlog_left_out: usize,
    /// For the sourcer: what was found.
    pub findings: Vec<Value>,
    /// For the planner: what the sourcer made of it.
    pub candidates: Vec<Value>,
    /// For the planner: what does not move.
    pub blocked_items: Vec<Value>,
    /// For the orchestrator's intake: the commands that may be run by name.
    pub actions: Vec<ActionBrief>,
    /// For the same: what else whoever asks has open.
    pub open_requests: Vec<OpenRequest>,
    /// Whether the web may be read.
    pub web: bool,
    /// Set where the conversation is handed over to a fresh one.
    pub handover: Option<Handover>,
    /// What those that it depends on have delivered, and what came of earlier attempts.
    pub builds_on: Vec<EarlierWork>,
}

impl Work {
    /// Whether an item belongs to the sprint: planned or selected for it, made for it, or of its milestone.
    #[must_use]
    pub fn is_of_the_sprint(&self, item: &Item) -> bool {
        let Some(sprint) = &self.sprint else {
            return false;
        };
        let is = |id: Option<&str>| id == Some(sprint.sprint_id.as_str());
        is(item.planned_in_sprint_id.as_ref().map(crate::domain::ids::SprintId::as_str))
            || is(item.selected_in_sprint_id.as_ref().map(crate::domain::ids::SprintId::as_str))
            || is(item.origin.text("sprint_id"))
            || (!item.milestone_title.trim().is_empty()
                && [&sprint.milestone, &sprint.requested_milestone]
                    .contains(&&item.milestone_title))
    }
}
