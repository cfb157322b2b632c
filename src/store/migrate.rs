//! Bringing a workspace that an earlier build of teams wrote up to the version of this one.
//!
//! Whatever is read is brought into today's shape while it is read ([`super::entry`], [`crate::domain::record`]); what one
//! record has to learn from another follows when all are read. The first opening by this build copies what it will write
//! over, writes every open record anew and makes a checkpoint; until that is durable, the next opening begins again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use std::sync::Arc;

use super::entry::{Entry, VERSION};
use super::error::StoreError;
use super::loaded::LoadedWorkspace;
use crate::domain::change::Change;
use crate::domain::record::{RUNTIME, RecordKind, inside};
use crate::domain::state::State;
use crate::platform::backup;
use crate::platform::disk::{Disk, replace_synced};

/// The file of the last checkpoint's index, in the folder of the runtime.
const CHECKPOINT: &str = "checkpoint";

/// Where an earlier build wrote the workspace: copies its records and journal, and has every open record
/// written anew. The copy's name.
pub(super) fn migrate(
    disk: &dyn Disk,
    root: &Path,
    loaded: &mut LoadedWorkspace,
) -> Result<Option<String>, StoreError> {
    if loaded.version >= VERSION {
        return Ok(None);
    }
    let name = copy(disk, root)?;
    // The journal has those that it speaks of; nothing else has the others, so each is whole at any instant.
    let replayed: BTreeSet<String> = loaded.views.records().into_iter().collect();
    let (mut changes, mut folders) = (Vec::new(), BTreeSet::new());
    for record in loaded.views.state.records() {
        let path = inside(&record.path());
        if !replayed.contains(&path) {
            let bytes = record.bytes()?;
            let file = root.join(&path);
            replace_synced(disk, &file, &bytes)?;
            folders.extend(file.parent().map(Path::to_owned));
            loaded.views.digests.insert(path, crc32fast::hash(&bytes));
        } else if matches!(record.kind(), RecordKind::Sprint | RecordKind::Backlog) {
            // As it is with the todos of items, which the journal does not have.
            changes.push(Change::Save(record));
        }
    }
    // Before the checkpoint says that they are of this version.
    for folder in folders {
        disk.sync_dir(&folder)?;
    }
    loaded.views.apply(loaded.seq, &Entry { base: BTreeMap::new(), changes })?;
    Ok(Some(name))
}

/// Makes the copy of the records and the journal, or finds the one that was made before: what was cut off has written
/// over some of the records, and not over the checkpoint. The copy's name.
pub(super) fn copy(disk: &dyn Disk, root: &Path) -> Result<String, StoreError> {
    let is_indexed = disk.len(&root.join(RUNTIME).join(CHECKPOINT))?.is_some();
    let made = match is_indexed {
        true => backup::whole_with(disk, root, RUNTIME, CHECKPOINT)?,
        false => None,
    };
    match made {
        Some(name) => Ok(name),
        None => Ok(backup::make(disk, root, RUNTIME, is_stored)?.name),
    }
}

/// Before this version only the sprint's record said how far it was with an item.
const TODOS_OF_ITEMS: u32 = 4;

/// Items of a workspace of `version` get the todos that they are in the sprint under way.
pub(super) fn give_items_their_todos(version: u32, state: &mut State) {
    if version >= TODOS_OF_ITEMS {
        return;
    }
    let active = state.scheduler.active_sprint_id.clone();
    let sprint = active.and_then(|id| state.sprints.get_mut(&id)).map(Arc::make_mut);
    let Some(sprint) = sprint else { return };
    for todo in &sprint.work.todos {
        let item = todo.backlog_id.as_ref().and_then(|id| state.backlog.get_mut(id));
        if let Some(item) = item {
            Arc::make_mut(item).take_todo(&sprint.sprint_id, &todo.progress);
        }
    }
    sprint.show_todos(|id| state.backlog.get(id).map(Arc::as_ref));
}

/// Whether a path of the folder of the runtime is of the store's: what agents and prompts left there, and
/// worktrees, are no records and stay where they are.
fn is_stored(path: &Path) -> bool {
    const FOLDERS: [&str; 14] = [
        "backlog",
        "effects",
        "gates",
        "internal_relay",
        "journal",
        "lifecycles",
        "operations",
        "outbox",
        "plans",
        "requests",
        "role_sessions",
        "runs",
        "sprints",
        "verifications",
    ];
    let mut parts = path.components();
    let Some(Component::Normal(first)) = parts.next() else { return false };
    match first.to_str() {
        // Below it lie the folders of what agents did; the records are files.
        Some("runs") => path.components().count() == 1 || is_record(path) && parts.count() == 1,
        // What was handled is never written again.
        Some("internal_relay") => !path.starts_with("internal_relay/archive"),
        Some(folder) if FOLDERS.contains(&folder) => true,
        // What an importer noted is of no build's version.
        Some(_) => {
            path.components().count() == 1
                && (is_record(path) && path != Path::new("import.json") || path == CHECKPOINT)
        }
        None => false,
    }
}

fn is_record(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}
