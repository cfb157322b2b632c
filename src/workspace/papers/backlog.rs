//! `backlog.md`, `completed_backlog.md` and `current_sprint.md` (`spec/teams.md` 3.4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::values::{as_value, record, todos};
use super::{Keep, Paper, fill, is_korean, nothing, sprint_folder};
use crate::assets::AssetError;
use crate::domain::change::Change;
use crate::domain::ids::ItemId;
use crate::domain::item::{Item, ItemStatus};
use crate::domain::language::Language;
use crate::domain::record::AnyRecord;
use crate::domain::sprint::Sprint;
use crate::domain::state::State;

/// Where delivered items are listed.
const COMPLETED: &str = "shared_workspace/completed_backlog.md";

/// `backlog.md`: everything that may still become work, in the order of 3.4; unranked items last.
pub fn backlog(
    items: &BTreeMap<ItemId, Arc<Item>>,
    language: Language,
) -> Result<Paper, AssetError> {
    let mut order: Vec<&Item> = items.values().map(Arc::as_ref).collect();
    order.sort_by_key(|item| {
        let rank = if item.priority_rank == 0 { u32::MAX } else { item.priority_rank };
        (group(item.status), rank, item.updated_at, &item.backlog_id)
    });
    let mut entries = Vec::with_capacity(order.len());
    for item in order {
        entries.push(entry(item, items)?);
    }
    let text = fill("backlog", json!({ "items": entries, "ko": is_korean(language) }))?;
    let path = "shared_workspace/backlog.md".to_owned();
    Ok(Paper { path, heading: "Backlog", name: "backlog", text, keep: Keep::Part })
}

const fn group(status: ItemStatus) -> u8 {
    match status {
        ItemStatus::Pending | ItemStatus::Selected => 0,
        ItemStatus::Blocked => 1,
        ItemStatus::CarriedOver => 2,
        ItemStatus::Done => 3,
        ItemStatus::Dropped => 4,
    }
}

fn entry(item: &Item, items: &BTreeMap<ItemId, Arc<Item>>) -> Result<Value, AssetError> {
    let mut value = as_value(item)?;
    let name = |id: &ItemId| items.get(id).map_or_else(|| id.to_string(), |it| it.title.clone());
    value["waits_on"] = json!(item.depends_on.iter().map(name).collect::<Vec<_>>());
    Ok(value)
}

/// The entries that a decision adds to `completed_backlog.md`: one for each item that it delivers.
/// `before` are the records without the decision's changes, so that an item is listed once.
pub fn completed(changes: &[Change], before: &State) -> Result<Vec<Change>, AssetError> {
    let mut listed = BTreeSet::new();
    let mut out = Vec::new();
    // The last image of an item is the one that counts.
    for change in changes.iter().rev() {
        let Change::Save(AnyRecord::Backlog(item)) = change else {
            continue;
        };
        let id = &item.backlog_id;
        let was_open = before.backlog.contains_key(id) || !before.settled_items.contains_key(id);
        if !listed.insert(id) || item.status != ItemStatus::Done || !was_open {
            continue;
        }
        let text =
            fill("backlog", json!({ "items": [entry(item, &before.backlog)?], "ko": false }))?;
        out.push(Change::Append { file: COMPLETED.to_owned(), text: format!("\n{text}\n") });
    }
    out.reverse();
    Ok(out)
}

/// `current_sprint.md`: the sprint that holds the slot.
pub fn current_sprint(sprint: Option<&Sprint>, language: Language) -> Result<Paper, AssetError> {
    let language = sprint.map_or(language, |sprint| sprint.language);
    let context = json!({
        "s": sprint.map(record).transpose()?,
        "todos": sprint.map(todos).transpose()?.unwrap_or_default(),
        "folder": sprint.map(sprint_folder).unwrap_or_default(),
        "ko": is_korean(language),
        "nothing": nothing(language),
    });
    let path = "shared_workspace/current_sprint.md".to_owned();
    let text = fill("current", context)?;
    Ok(Paper { path, heading: "Current sprint", name: "current_sprint", text, keep: Keep::Part })
}
