//! Sprints, backlog items and the scheduler within one decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::domain::backlog::BacklogItem;
use crate::domain::change::Change;
use crate::domain::ids::{BacklogId, SprintId};
use crate::domain::schedule::Scheduler;
use crate::domain::sprint::{Activity, Sprint, SprintEvent, SprintEventKind, Todo};
use crate::engine::turn::Turn;

/// What this turn has changed of them.
#[derive(Debug, Default)]
pub(in crate::engine) struct Plans {
    sprints: BTreeMap<SprintId, Arc<Sprint>>,
    items: BTreeMap<BacklogId, Arc<BacklogItem>>,
    scheduler: Option<Arc<Scheduler>>,
}

impl Plans {
    /// The changes of this turn.
    pub(in crate::engine) fn close(self, changes: &mut Vec<Change>) {
        changes.extend(self.items.into_values().map(Change::save));
        changes.extend(self.sprints.into_values().map(Change::save));
        changes.extend(self.scheduler.map(Change::save));
    }

    /// Whether anything was changed.
    pub(super) fn is_touched(&self) -> bool {
        !self.sprints.is_empty() || !self.items.is_empty() || self.scheduler.is_some()
    }
}

impl Turn<'_> {
    /// The sprint as it is now.
    pub(super) fn sprint(&self, id: &SprintId) -> Option<&Sprint> {
        self.plans.sprints.get(id).or_else(|| self.before().sprints.get(id)).map(Arc::as_ref)
    }

    /// The sprint that holds the slot.
    pub(super) fn active_sprint(&self) -> Option<&Sprint> {
        self.scheduler().active_sprint_id.as_ref().and_then(|id| self.sprint(id))
    }

    /// The sprint for changing.
    pub(super) fn edit_sprint(&mut self, id: &SprintId) -> Option<&mut Sprint> {
        if !self.plans.sprints.contains_key(id) {
            let sprint = self.before().sprints.get(id)?.clone();
            self.plans.sprints.insert(id.clone(), sprint);
        }
        let now = self.now;
        let sprint = Arc::make_mut(self.plans.sprints.get_mut(id)?);
        sprint.updated_at = Some(now);
        Some(sprint)
    }

    /// A todo of a sprint for changing.
    pub(super) fn edit_todo(&mut self, id: &SprintId, index: usize) -> Option<&mut Todo> {
        let now = self.now;
        let todo = self.edit_sprint(id)?.todos.get_mut(index)?;
        todo.updated_at = Some(now);
        Some(todo)
    }

    /// A new sprint.
    pub(super) fn create_sprint(&mut self, sprint: Sprint) {
        self.plans.sprints.insert(sprint.sprint_id.clone(), Arc::new(sprint));
    }

    /// The scheduler as it is now.
    pub(in crate::engine) fn scheduler(&self) -> &Scheduler {
        self.plans.scheduler.as_ref().unwrap_or(&self.before().scheduler)
    }

    /// The scheduler for changing.
    pub(super) fn edit_scheduler(&mut self) -> &mut Scheduler {
        let before = &self.before().scheduler;
        Arc::make_mut(self.plans.scheduler.get_or_insert_with(|| Arc::clone(before)))
    }

    /// The active backlog item as it is now.
    pub(in crate::engine) fn item(&self, id: &BacklogId) -> Option<&BacklogItem> {
        match self.plans.items.get(id) {
            Some(item) => item.status.is_active().then_some(&**item),
            None => self.before().backlog.get(id).map(Arc::as_ref),
        }
    }

    /// The active backlog items as they are now.
    pub(super) fn items(&self) -> BTreeMap<&BacklogId, &BacklogItem> {
        let before = self.before().backlog.iter();
        let mut items: BTreeMap<_, _> = before.map(|(id, item)| (id, &**item)).collect();
        for (id, item) in &self.plans.items {
            if item.status.is_active() {
                items.insert(id, item);
            } else {
                items.remove(id);
            }
        }
        items
    }

    /// The fingerprints of items that left the backlog, as they are now.
    pub(super) fn settled_items(&self) -> BTreeMap<&BacklogId, &str> {
        let before = &self.before().settled_items;
        let mut settled: BTreeMap<_, _> =
            before.iter().map(|(id, print)| (id, print.as_str())).collect();
        for (id, item) in &self.plans.items {
            if item.status.is_active() {
                settled.remove(id);
            } else {
                settled.insert(id, &item.fingerprint);
            }
        }
        settled
    }

    /// The item is now this.
    pub(super) fn put_item(&mut self, item: BacklogItem) {
        self.plans.items.insert(item.backlog_id.clone(), Arc::new(item));
    }

    /// Changes an active item, if there is one.
    pub(super) fn edit_item(&mut self, id: &BacklogId, change: impl FnOnce(&mut BacklogItem)) {
        if let Some(mut item) = self.item(id).cloned() {
            change(&mut item);
            item.updated_at = self.now;
            self.put_item(item);
        }
    }

    /// Adds a line to a sprint's history and to its recent activity.
    pub(super) fn sprint_event(
        &mut self,
        id: &SprintId,
        kind: SprintEventKind,
        summary: &str,
        payload: Value,
    ) {
        let now = self.now;
        if let Some(sprint) = self.edit_sprint(id) {
            let request_id = payload.get("request_id").and_then(Value::as_str).unwrap_or_default();
            let role = payload.get("role").and_then(Value::as_str).unwrap_or_default();
            sprint.note(Activity {
                timestamp: now,
                kind,
                role: role.to_owned(),
                request_id: request_id.to_owned(),
                summary: summary.to_owned(),
            });
        }
        let event = SprintEvent { timestamp: now, kind, summary: summary.to_owned(), payload };
        self.change(Change::SprintEvent(id.clone(), event));
    }
}
