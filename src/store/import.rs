//! The first opening of a workspace that has no checkpoint: a new one, or one of the older runtime.

use std::collections::BTreeSet;
use std::path::Path;

use super::error::StoreError;
use super::layout::{self, Kind, RUNTIME};
use super::load::{Loaded, Unreadable};
use crate::domain::change::Change;
use crate::platform::disk::Disk;

/// Reads every record once. Envelopes are left to the watcher: what lies in an inbox is a drop.
pub(super) fn base(
    disk: &dyn Disk,
    root: &Path,
    covered: &BTreeSet<String>,
    loaded: &mut Loaded,
) -> Result<(), StoreError> {
    for (kind, folder) in [
        (Kind::Request, "requests"),
        (Kind::Run, "runs"),
        (Kind::Effect, "effects"),
        (Kind::Outgoing, "outbox"),
        (Kind::Gate, "gates"),
        (Kind::Operation, "operations"),
    ] {
        let folder = format!("{RUNTIME}/{folder}");
        for name in disk.list(&root.join(&folder))? {
            let path = format!("{folder}/{name}");
            if name.starts_with('.') || !name.ends_with(".json") || covered.contains(&path) {
                continue;
            }
            let bytes = disk.read(&root.join(&path))?;
            match layout::parse(kind, &path, &bytes) {
                Ok(Change::Request(request)) if request.status.is_terminal() => {
                    loaded.views.state.ended_requests += 1;
                }
                Ok(change) => {
                    if let Change::Request(request) = &change {
                        keep_history(
                            disk,
                            root,
                            &layout::events(&request.request_id),
                            &bytes,
                            loaded,
                        )?;
                    }
                    loaded.views.digests.insert(path, crc32fast::hash(&bytes));
                    loaded.views.state.apply(&change);
                }
                Err(reason) => loaded.unreadable.push(Unreadable { path, reason }),
            }
        }
    }
    Ok(())
}

/// The older runtime kept a request's history inside its record; it moves to a file of its own, because
/// the record is written anew without it.
fn keep_history(
    disk: &dyn Disk,
    root: &Path,
    path: &str,
    record: &[u8],
    loaded: &mut Loaded,
) -> Result<(), StoreError> {
    let mut lines = Vec::new();
    for event in embedded_events(record) {
        serde_json::to_writer(&mut lines, &event)?;
        lines.push(b'\n');
    }
    let there = match disk.read(&root.join(path)) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if lines.starts_with(&there) && !lines.is_empty() {
        let rest = lines[there.len()..].to_vec();
        loaded.views.resume(path, there.len() as u64, rest);
    }
    Ok(())
}

/// The history inside a record of the older runtime (`spec/teams.md` 4.2); empty for our own.
pub(super) fn embedded_events(record: &[u8]) -> Vec<serde_json::Value> {
    #[derive(serde::Deserialize)]
    struct Record {
        #[serde(default)]
        events: Vec<serde_json::Value>,
    }
    serde_json::from_slice::<Record>(record).map_or_else(|_| Vec::new(), |record| record.events)
}
