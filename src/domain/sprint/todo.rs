//! A todo: an item as the sprint that has taken it shows it (`spec/teams.md` 4.4).

use serde::{Deserialize, Serialize};

use super::todo_progress::TodoProgress;
use crate::domain::criterion::Criterion;
use crate::domain::ids::{ItemId, SprintId, TodoId};
use crate::domain::item::{Item, ItemKind, ItemTodo};
use crate::domain::lenient::{blank_is_none, is_zero};
use crate::domain::time::Timestamp;

/// A view of an item ([`Todo::of`]), made anew when the item changes until the todo is over. Then it stays in the sprint's
/// record, whatever becomes of the item. In records of older builds it may have no item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Todo {
    /// The item.
    #[serde(default, with = "blank_is_none")]
    pub backlog_id: Option<ItemId>,
    /// One line.
    #[serde(default)]
    pub title: String,
    /// The milestone that it serves.
    #[serde(default)]
    pub milestone_title: String,
    /// 1 is first; 0 means unranked, which is last.
    #[serde(default)]
    pub priority_rank: u32,
    /// The work that it takes, compared with others; 0 where nobody says.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub effort: u32,
    /// Todos of which each has to be delivered before this one begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TodoId>,
    /// When it counts as done.
    #[serde(default)]
    pub acceptance_criteria: Vec<Criterion>,
    /// The requirements that it says it serves.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// How far the sprint is with it.
    #[serde(flatten)]
    pub progress: TodoProgress,
}

impl Todo {
    /// A queued one of which only the title is known.
    #[must_use]
    pub fn new(todo_id: TodoId, title: &str, now: Timestamp) -> Self {
        Self {
            backlog_id: None,
            title: title.to_owned(),
            milestone_title: String::new(),
            priority_rank: 0,
            effort: 0,
            depends_on: Vec::new(),
            acceptance_criteria: Vec::new(),
            requirements: Vec::new(),
            progress: TodoProgress::new(todo_id, now),
        }
    }

    /// An item with its todo, among the todos of its sprint: what is not there is delivered, or is not waited for.
    #[must_use]
    pub fn of(item: &Item, progress: &TodoProgress, among: &[Todo]) -> Self {
        let named = |id: &ItemId| {
            let own = |it: &&Todo| it.backlog_id.as_ref() == Some(id);
            // One that failed stands for the item that carries it on, until a todo is made of that.
            let carried = |it: &&Todo| it.progress.carry_over_backlog_id.as_ref() == Some(id);
            let found = among.iter().rfind(own).or_else(|| among.iter().rfind(carried))?;
            Some(found.progress.todo_id.clone())
        };
        Self {
            backlog_id: Some(item.backlog_id.clone()),
            title: item.title.clone(),
            milestone_title: item.milestone_title.clone(),
            priority_rank: item.priority_rank,
            effort: item.effort,
            depends_on: item.depends_on.iter().filter_map(named).collect(),
            acceptance_criteria: item.acceptance_criteria.clone(),
            requirements: item.origin.texts("requirement_refs"),
            progress: progress.clone(),
        }
    }

    /// Its item as far as the todo, among those of its sprint, still tells, where the item's own record is gone
    /// (`spec/teams.md` 9.7). Where it stands is not said.
    #[must_use]
    pub fn item_again(
        &self,
        id: ItemId,
        kind: ItemKind,
        (sprint, among): (&SprintId, &[Todo]),
        now: Timestamp,
    ) -> Item {
        let title = self.title.trim();
        let mut item = Item::new(id, title, "", kind, self.progress.created_at.unwrap_or(now));
        item.milestone_title.clone_from(&self.milestone_title);
        item.priority_rank = self.priority_rank;
        item.effort = self.effort;
        let said = self.acceptance_criteria.iter().filter(|it| !it.is_blank());
        item.acceptance_criteria = said.cloned().collect();
        let on = among.iter().filter(|other| self.depends_on.contains(&other.progress.todo_id));
        item.depends_on = on.filter_map(|other| other.backlog_id.clone()).collect();
        if !self.requirements.is_empty() {
            item.origin.set("requirement_refs", self.requirements.clone());
        }
        item.todo = Some(ItemTodo { sprint_id: sprint.clone(), progress: self.progress.clone() });
        item
    }
}
