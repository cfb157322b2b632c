//! Sprints, plans, backlog items and the scheduler within one decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::change::Change;
use crate::domain::ids::{ItemId, PlanId, SprintId};
use crate::domain::item::Item;
use crate::domain::plan::StoredPlan;
use crate::domain::schedule::Scheduler;
use crate::domain::sprint::Sprint;

/// What this turn has changed of them.
#[derive(Debug, Default)]
pub(super) struct PlanningChanges {
    pub(super) sprints: BTreeMap<SprintId, Arc<Sprint>>,
    pub(super) items: BTreeMap<ItemId, Arc<Item>>,
    pub(super) plans: BTreeMap<PlanId, Arc<StoredPlan>>,
    pub(super) scheduler: Option<Arc<Scheduler>>,
}

impl PlanningChanges {
    /// The changes of this turn.
    pub(super) fn close(self, changes: &mut Vec<Change>) {
        changes.extend(self.items.into_values().map(Change::save));
        changes.extend(self.plans.into_values().map(Change::save));
        changes.extend(self.sprints.into_values().map(Change::save));
        changes.extend(self.scheduler.map(Change::save));
    }

    /// Whether anything was changed.
    pub(super) fn is_touched(&self) -> bool {
        !self.sprints.is_empty()
            || !self.items.is_empty()
            || !self.plans.is_empty()
            || self.scheduler.is_some()
    }
}
