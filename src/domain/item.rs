//! An item: what one commit delivers, the one record of it (`spec/teams.md` 4.3). The backlog lists those that no sprint has
//! taken; the sprint that has taken one shows it as a todo ([`super::sprint::Todo`]).

use serde::{Deserialize, Serialize};

use crate::domain::criterion::Criterion;
use crate::domain::ids::{ItemId, RequestId, SprintId, TodoId};
use crate::domain::lenient::{blank_is_none, is_zero};
use crate::domain::origin::Origin;
use crate::domain::plan::PlanRef;
use crate::domain::sprint::{TodoProgress, TodoStatus};
use crate::domain::text::flat;
use crate::domain::time::Timestamp;
use crate::domain::word::words;

words! {
    /// Where an item stands.
    pub enum ItemStatus {
        /// Waits to be taken into a sprint.
        Pending = "pending",
        /// A todo of the active sprint.
        Selected = "selected",
        /// Waits for something that a person or another item has to bring.
        Blocked = "blocked",
        /// Delivered.
        Done = "done",
        /// Went on as another item, which names this one in `carry_over_of`.
        CarriedOver = "carried_over",
        /// Not wanted; `dropped_reason` says why.
        Dropped = "dropped",
    }
}

impl ItemStatus {
    /// Whether the item may still become work.
    #[must_use]
    pub const fn is_active(self) -> bool {
        match self {
            Self::Pending | Self::Selected | Self::Blocked => true,
            Self::Done | Self::CarriedOver | Self::Dropped => false,
        }
    }
}

words! {
    /// What kind of work it is.
    #[derive(Default)]
    pub enum ItemKind {
        /// Something is wrong.
        Bug = "bug",
        /// Something new.
        Feature = "feature",
        /// Something better.
        #[default]
        Enhancement = "enhancement",
        /// Upkeep.
        Chore = "chore",
    }
}

words! {
    /// Who found it.
    #[derive(Default)]
    pub enum ItemSource {
        /// A person.
        User = "user",
        /// The planner.
        #[default]
        Planner = "planner",
        /// The sourcer.
        Sourcer = "sourcer",
        /// A discovery action.
        Discovery = "discovery",
        /// A todo that failed.
        CarryOver = "carry_over",
    }
}

/// One item. What the older runtime left out reads as its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its id.
    pub backlog_id: ItemId,
    /// One line.
    #[serde(default)]
    pub title: String,
    /// A few lines.
    #[serde(default)]
    pub summary: String,
    /// What kind of work.
    #[serde(default)]
    pub kind: ItemKind,
    /// Who found it.
    #[serde(default)]
    pub source: ItemSource,
    /// What is to be done.
    #[serde(default)]
    pub scope: String,
    /// When it counts as done.
    #[serde(default)]
    pub acceptance_criteria: Vec<Criterion>,
    /// Those of them that a person wrote: no agent takes one away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons_criteria: Vec<Criterion>,
    /// The milestone that it serves; blank where none.
    #[serde(default)]
    pub milestone_title: String,
    /// 1 is first; 0 means unranked, which is last.
    #[serde(default)]
    pub priority_rank: u32,
    /// The work that it takes, compared with others; 0 where nobody says.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub effort: u32,
    /// Items of which each has to be done before this one begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<ItemId>,
    /// What it stands for in a plan that a person brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanRef>,
    /// The item of such a plan that it is a piece of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece_of: Option<PlanRef>,
    /// Globs of the paths that it changes; none declared where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_paths: Vec<String>,
    /// Globs of the paths that it leaves as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_paths: Vec<String>,
    /// The sprint that planned it.
    #[serde(default, with = "blank_is_none")]
    pub planned_in_sprint_id: Option<SprintId>,
    /// Whether it came while a sprint was running.
    #[serde(default)]
    pub added_during_active_sprint: bool,
    /// Where it stands.
    pub status: ItemStatus,
    /// Where it came from.
    #[serde(default)]
    pub origin: Origin,
    /// When it was written down.
    pub created_at: Timestamp,
    /// When it last changed; its todo has a time of its own.
    pub updated_at: Timestamp,
    /// The sprint that works on it.
    #[serde(default, with = "blank_is_none")]
    pub selected_in_sprint_id: Option<SprintId>,
    /// The sprint that delivered it.
    #[serde(default, with = "blank_is_none")]
    pub completed_in_sprint_id: Option<SprintId>,
    /// The item that this one carries on.
    #[serde(default, with = "blank_is_none")]
    pub carry_over_of: Option<ItemId>,
    /// Why it is blocked.
    #[serde(default)]
    pub blocked_reason: String,
    /// Who is stuck on it.
    #[serde(default)]
    pub blocked_by_role: String,
    /// What would unblock it.
    #[serde(default)]
    pub required_inputs: Vec<String>,
    /// What to do then.
    #[serde(default)]
    pub recommended_next_step: String,
    /// What people answered while it was blocked, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// Files that came with them, in the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// Sha-1 of title, scope and kind.
    #[serde(default)]
    pub fingerprint: String,
    /// Why it is not wanted.
    #[serde(default)]
    pub dropped_reason: String,
    /// The todo that it is in a sprint, or with which it was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<ItemTodo>,
}

/// An item as the todo of a sprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemTodo {
    /// The sprint.
    pub sprint_id: SprintId,
    /// How far it is.
    #[serde(flatten)]
    pub progress: TodoProgress,
}

/// The mark in the origin of an item that the team could not do: only people make it possible again.
pub const GAVE_UP: &str = "gave_up";

impl Item {
    /// It was planned for a sprint in which nobody has begun it, and is no sprint's any more.
    pub fn leave_sprint(&mut self) {
        self.planned_in_sprint_id = None;
        self.selected_in_sprint_id = None;
        if self.status == ItemStatus::Selected {
            self.status = ItemStatus::Pending;
            self.todo = None;
        }
    }

    /// Whether a sprint has put it aside with this request, which did its todo and ended then.
    #[must_use]
    pub fn is_of_ended(&self, request: &RequestId) -> bool {
        self.origin.has("todo_id") && self.origin.text("request_id") == Some(request.as_str())
    }

    /// The request of its todo ends, and the room of that stays the place to write about it.
    pub fn leave_request(&mut self, request: &RequestId, todo: &TodoId) {
        self.origin.set("request_id", request.as_str());
        self.origin.set("todo_id", todo.as_str());
    }

    /// A fresh pending item.
    #[must_use]
    pub fn new(id: ItemId, title: &str, scope: &str, kind: ItemKind, now: Timestamp) -> Self {
        Self {
            backlog_id: id,
            title: title.to_owned(),
            summary: String::new(),
            kind,
            source: ItemSource::default(),
            scope: scope.to_owned(),
            acceptance_criteria: Vec::new(),
            persons_criteria: Vec::new(),
            milestone_title: String::new(),
            priority_rank: 0,
            effort: 0,
            depends_on: Vec::new(),
            plan: None,
            piece_of: None,
            allowed_paths: Vec::new(),
            excluded_paths: Vec::new(),
            planned_in_sprint_id: None,
            added_during_active_sprint: false,
            status: ItemStatus::Pending,
            origin: Origin::default(),
            created_at: now,
            updated_at: now,
            selected_in_sprint_id: None,
            completed_in_sprint_id: None,
            carry_over_of: None,
            blocked_reason: String::new(),
            blocked_by_role: String::new(),
            required_inputs: Vec::new(),
            recommended_next_step: String::new(),
            answers: Vec::new(),
            artifacts: Vec::new(),
            fingerprint: fingerprint(title, scope, kind),
            dropped_reason: String::new(),
            todo: None,
        }
    }

    /// Somebody said this about it, with these files; said before, it changes nothing.
    pub fn add_answer(&mut self, said: String, files: &[String]) {
        if !said.is_empty() && !self.answers.contains(&said) {
            self.answers.push(said);
        }
        let new = files.iter().filter(|file| !self.artifacts.contains(file));
        let new: Vec<String> = new.cloned().collect();
        self.artifacts.extend(new);
    }

    /// It becomes a todo of a sprint; in records of older builds it may be several, of which one that is not over counts, else
    /// the last with which somebody goes on.
    pub fn take_todo(&mut self, sprint_id: &SprintId, progress: &TodoProgress) {
        let is_open = |it: &ItemTodo| !it.progress.status.is_terminal();
        let is_left = matches!(progress.status, TodoStatus::Failed | TodoStatus::Cancelled);
        if !is_left && !self.todo.as_ref().is_some_and(is_open) {
            let (sprint_id, progress) = (sprint_id.clone(), progress.clone());
            self.todo = Some(ItemTodo { sprint_id, progress });
        }
    }

    /// Whether it is this todo.
    #[must_use]
    pub fn is_todo(&self, id: &TodoId) -> bool {
        self.todo.as_ref().is_some_and(|todo| todo.progress.todo_id == *id)
    }

    /// Whether it is this todo, or can become it: it is no other one that is not over.
    #[must_use]
    pub fn may_be_todo(&self, id: &TodoId) -> bool {
        let is_over = |todo: &ItemTodo| todo.progress.status.is_terminal();
        self.is_todo(id) || self.todo.as_ref().is_none_or(is_over)
    }

    /// It without its todo, for whoever is told of that elsewhere.
    #[must_use]
    pub fn without_todo(&self) -> Self {
        Self { todo: None, ..self.clone() }
    }

    /// Forgets why it was blocked.
    pub fn clear_blockers(&mut self) {
        self.blocked_reason.clear();
        self.blocked_by_role.clear();
        self.required_inputs.clear();
        self.recommended_next_step.clear();
    }
}

/// The fingerprint of an item (`spec/teams.md` 4.3): sha-1 of `title|scope|kind`, lowercased with white
/// space collapsed.
#[must_use]
pub fn fingerprint(title: &str, scope: &str, kind: ItemKind) -> String {
    use sha1::{Digest, Sha1};
    let digest = Sha1::digest(format!("{}|{}|{}", flat(title), flat(scope), kind.as_str()));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
