//! The records of the older runtime.

use std::collections::BTreeMap;

use crate::domain::ids::{ItemId, RequestId, SprintId};
use crate::domain::item::Item;
use crate::domain::request::Request;
use crate::domain::schedule::Scheduler;
use crate::domain::sprint::Sprint;

/// Everything that was read.
#[derive(Default)]
pub(super) struct Records {
    pub(super) requests: BTreeMap<RequestId, Request>,
    pub(super) items: BTreeMap<ItemId, Item>,
    /// What sprints hold of items beside their records.
    pub(super) copies: BTreeMap<ItemId, Item>,
    pub(super) sprints: BTreeMap<SprintId, Sprint>,
    pub(super) scheduler: Scheduler,
}
