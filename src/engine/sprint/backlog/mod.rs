//! The rules of backlog items: kind, order, which belong to a sprint, and what a todo makes of its item
//! (`spec/teams.md` 4.3, 4.11, 9.7).

use std::collections::BTreeMap;

use super::todos::rank_or_last;
use crate::domain::item::{Item, ItemKind, ItemSource, ItemStatus, ItemTodo};
use crate::domain::request::{Request, RequestStatus};
use crate::domain::role::Role;
use crate::domain::sprint::{Sprint, TodoStatus};
use crate::domain::time::Timestamp;
use crate::engine::parse::terms::Text;

mod entry;
mod merge;
#[cfg(test)]
mod tests;

pub use entry::{MAX_ITEMS, MergeError};
pub use merge::{MergeContext, MergeResult, merge};

const BUG: [&str; 12] = [
    "bug", "bugs", "error", "errors", "fix", "fixes", "fixed", "fixing", "버그", "회귀", "실패",
    "오류",
];
const FEATURE: [&str; 4] = ["feature", "features", "기능 추가", "신규 기능"];
const CHORE: [&str; 7] = ["chore", "chores", "cleanup", "clean up", "docs", "정리", "문서"];

/// The kind of work that a text speaks of. Terms count as whole words: "prefix" speaks of no fix.
#[must_use]
pub fn classify(text: &str) -> ItemKind {
    let text = Text::new(text);
    let has = |terms: &[&str]| terms.iter().any(|term| text.has(term));
    if has(&BUG) {
        ItemKind::Bug
    } else if has(&FEATURE) {
        ItemKind::Feature
    } else if has(&CHORE) {
        ItemKind::Chore
    } else {
        ItemKind::Enhancement
    }
}

/// The order of items in reports and when they are selected: by status, rank (none is last), people's own
/// first, kind, age.
#[must_use]
pub fn priority_key(item: &Item) -> (u8, u32, bool, ItemKind, Timestamp) {
    let status = match item.status {
        ItemStatus::Selected => 0,
        ItemStatus::Pending => 1,
        ItemStatus::Blocked => 2,
        ItemStatus::Done => 3,
        ItemStatus::CarriedOver => 4,
        ItemStatus::Dropped => 5,
    };
    let not_from_a_person = item.source != ItemSource::User;
    (status, rank_or_last(item.priority_rank), not_from_a_person, item.kind, item.created_at)
}

/// Whether an item is one that the sprint could work on: still active, and linked to the sprint by plan,
/// selection, origin or milestone. What is asked of the sprint is made ready once.
fn is_relevant(item: &Item, sprint: &Sprint) -> bool {
    let id = &sprint.sprint_id;
    item.status.is_active()
        && (item.planned_in_sprint_id.as_ref() == Some(id)
            || item.selected_in_sprint_id.as_ref() == Some(id)
            || item.origin.text("sprint_id") == Some(id.as_str())
            || sprint.is_about(&item.milestone_title))
}

/// The items that the sprint could work on, by rank (none is last), then by age.
pub fn relevant<'a>(items: impl IntoIterator<Item = &'a Item>, sprint: &Sprint) -> Vec<&'a Item> {
    let mut found: Vec<&Item> =
        items.into_iter().filter(|item| is_relevant(item, sprint)).collect();
    found.sort_by_key(|item| (rank_or_last(item.priority_rank), item.created_at));
    found
}

/// The open items as reports show them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overview<'a> {
    /// They, the first to be worked on first.
    pub active: Vec<&'a Item>,
    /// How many there are of each kind.
    pub kinds: BTreeMap<ItemKind, usize>,
    /// How many came from each source.
    pub sources: BTreeMap<ItemSource, usize>,
}

/// Sums up the open ones among some items.
pub fn overview<'a>(items: impl IntoIterator<Item = &'a Item>) -> Overview<'a> {
    let mut overview = Overview::default();
    overview.active.extend(items.into_iter().filter(|item| item.status.is_active()));
    overview.active.sort_by_key(|item| priority_key(item));
    for item in &overview.active {
        *overview.kinds.entry(item.kind).or_default() += 1;
        *overview.sources.entry(item.source).or_default() += 1;
    }
    overview
}

/// How many of some items stand in each status.
pub fn counts<'a>(items: impl IntoIterator<Item = &'a Item>) -> BTreeMap<ItemStatus, usize> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(item.status).or_default() += 1;
    }
    counts
}

/// Whether a sprint may be begun for the item: it waits, and it is no echo.
#[must_use]
pub fn is_actionable(item: &Item) -> bool {
    item.status == ItemStatus::Pending && !is_echo(item)
}

/// Whether the item only repeats what the team itself does: a chore that a discovery action left, or a trace of
/// one of the sprint's own requests. Such items are dropped before a sprint selects (S39).
#[must_use]
pub fn is_echo(item: &Item) -> bool {
    let found_by_action = item.source == ItemSource::Discovery && item.kind == ItemKind::Chore;
    found_by_action || (item.origin.has("_teams_kind") && item.source != ItemSource::User)
}

/// Brings an item to where its todo stands (`spec/teams.md` 9.7).
///
/// `request` is the todo's request where there is one. A cancelled todo drops its item only where that request
/// was cancelled as well, which a person does; without one the sprint let the todo go, and the item waits again.
pub fn set_by_todo(item: &mut Item, request: Option<&Request>, now: Timestamp) {
    let before = item.clone();
    let Some(ItemTodo { sprint_id: sprint, progress: todo }) = &before.todo else { return };
    match todo.status {
        TodoStatus::Queued | TodoStatus::Running => {
            item.status = ItemStatus::Selected;
            item.selected_in_sprint_id = Some(sprint.clone());
            item.completed_in_sprint_id = None;
            item.clear_blockers();
        }
        TodoStatus::Completed | TodoStatus::Committed => {
            item.status = ItemStatus::Done;
            item.selected_in_sprint_id = Some(sprint.clone());
            item.completed_in_sprint_id = Some(sprint.clone());
            item.clear_blockers();
        }
        TodoStatus::Uncommitted => {
            leave(item, ItemStatus::Blocked);
            item.blocked_reason =
                first_of([&todo.version_control_message, &why_blocked(request), &todo.summary])
                    .unwrap_or_else(|| "the commit could not be brought to the branch".to_owned());
            let conflicts = request.is_some_and(Request::has_open_conflict);
            let (role, next) = match conflicts {
                true => {
                    (Role::ConflictResolver, "say in its room how the two versions go together")
                }
                false if request.is_some_and(|it| it.blocked.is_none()) => (
                    Role::VersionController,
                    "say at its card whether the commit goes to the branch",
                ),
                false => (
                    Role::VersionController,
                    "look at the project's branch and its uncommitted files, then try the commit again",
                ),
            };
            role.as_str().clone_into(&mut item.blocked_by_role);
            if request.is_some() {
                item.required_inputs = required_inputs(request);
            }
            next.clone_into(&mut item.recommended_next_step);
        }
        TodoStatus::Blocked => {
            leave(item, ItemStatus::Blocked);
            // Without a request, as in older records, the item keeps what it says.
            if request.is_some() {
                item.blocked_reason =
                    first_of([&why_blocked(request), &todo.summary]).unwrap_or_default();
                item.blocked_by_role = who_is_stuck(request).map_or("", Role::as_str).to_owned();
                item.required_inputs = required_inputs(request);
                item.recommended_next_step = next_step(request).unwrap_or_default();
            }
        }
        TodoStatus::Failed => {
            // Nothing goes on with it by itself.
            leave(item, ItemStatus::Blocked);
            item.blocked_reason.clone_from(&todo.summary);
        }
        TodoStatus::Cancelled => {
            let withdrawn = request.is_some_and(|r| r.status == RequestStatus::Cancelled);
            item.clear_blockers();
            if withdrawn {
                leave(item, ItemStatus::Dropped);
                item.dropped_reason =
                    first_of([&todo.summary]).unwrap_or_else(|| "withdrawn by a person".to_owned());
            } else {
                leave(item, ItemStatus::Pending);
                item.planned_in_sprint_id = None;
            }
        }
    }
    if *item != before {
        item.updated_at = now;
    }
}

/// The sprint no longer works on the item.
fn leave(item: &mut Item, status: ItemStatus) {
    item.status = status;
    item.selected_in_sprint_id = None;
    item.completed_in_sprint_id = None;
}

fn first_of<const N: usize>(texts: [&String; N]) -> Option<String> {
    texts.into_iter().map(|text| text.trim()).find(|text| !text.is_empty()).map(str::to_owned)
}

fn why_blocked(request: Option<&Request>) -> String {
    let blocked = request.and_then(|request| request.blocked.as_ref());
    let words =
        |it: &crate::domain::request::Blocked| first_of([&it.detail, &it.code.word().to_owned()]);
    blocked.and_then(words).unwrap_or_default()
}

fn required_inputs(request: Option<&Request>) -> Vec<String> {
    let blocked = request.and_then(|request| request.blocked.as_ref());
    blocked.map(|blocked| blocked.required_inputs.clone()).unwrap_or_default()
}

fn who_is_stuck(request: Option<&Request>) -> Option<Role> {
    let request = request?;
    request.route.current_role.or_else(|| request.work.result.as_ref().map(|result| result.role))
}

/// What the last role would do next, in its own words.
fn next_step(request: Option<&Request>) -> Option<String> {
    let next = request?.work.result.as_ref()?.proposals.suggested_next_step.as_ref()?;
    first_of([&next.reason])
}
