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
                    loaded.views.digests.insert(path, crc32fast::hash(&bytes));
                    loaded.views.state.apply(&change);
                }
                Err(reason) => loaded.unreadable.push(Unreadable { path, reason }),
            }
        }
    }
    Ok(())
}
