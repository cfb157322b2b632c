//! The checkpoint: an index of what is open, so that opening reads no finished record.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::entry::VERSION;
use super::error::StoreError;
use super::layout::{self, Lost};
use super::views::Views;
use crate::domain::change::ChannelMark;
use crate::domain::ids::{ChannelId, ItemId, RequestId, SprintId};
use crate::domain::record::{RUNTIME, RecordKind, inside, pretty};
use crate::platform::disk::{Disk, replace_synced};

/// The record of an open thing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) kind: RecordKind,
    pub(super) path: String,
    /// CRC-32 of the file as the runtime wrote it, to tell an edit from outside.
    pub(super) digest: u32,
}

/// What the checkpoint knows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Index {
    /// The version of what it speaks about.
    #[serde(skip)]
    pub(super) version: u32,
    /// The last entry whose effect on the files is durable.
    pub(super) seq: u64,
    pub(super) ended_requests: u64,
    pub(super) open: Vec<Open>,
    pub(super) channels: Vec<ChannelMark>,
    pub(super) rooms: Vec<(ChannelId, RequestId)>,
    #[serde(default)]
    pub(super) settled_items: Vec<(ItemId, String)>,
    #[serde(default)]
    pub(super) sprint_ids: Vec<SprintId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lost: Vec<Lost>,
}

const HEADER: &str = "teams-checkpoint ";

/// CRC-32 of the index; version 1 did not cover its number.
fn checksum(version: u32, body: &str) -> String {
    let mut hasher = crc32fast::Hasher::new();
    if version > 1 {
        hasher.update(&version.to_le_bytes());
    }
    hasher.update(body.as_bytes());
    format!("{:08x}", hasher.finalize())
}

/// The version and the checksum that the first line says.
fn read_header(line: &str) -> Option<(u32, &str)> {
    let (version, digest) = line.strip_prefix(HEADER)?.split_once(' ')?;
    Some((version.parse().ok()?, digest))
}

impl Index {
    /// The index of the views' present state, which is that after entry `seq`.
    pub(super) fn of(views: &Views, seq: u64) -> Self {
        let digest = |path: &str| views.digests.get(path).copied().unwrap_or(0);
        Self {
            version: VERSION,
            seq,
            ended_requests: views.state.ended_requests,
            open: (views.state.records())
                .map(|record| (record.kind(), inside(&record.path())))
                .map(|(kind, path)| Open { kind, digest: digest(&path), path })
                .collect(),
            channels: views.state.channels.values().cloned().collect(),
            rooms: (views.state.rooms.iter())
                .map(|(channel, request)| (*channel, request.clone()))
                .collect(),
            settled_items: (views.state.settled_items.iter())
                .map(|(id, print)| (id.clone(), print.clone()))
                .collect(),
            sprint_ids: views.state.sprint_ids.iter().cloned().collect(),
            lost: views.lost.clone(),
        }
    }

    /// Reads the index; `None` where the workspace has none yet.
    pub(super) fn read(disk: &dyn Disk, root: &Path) -> Result<Option<Self>, StoreError> {
        let path = root.join(layout::INDEX);
        let bytes = match disk.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let bad = |reason: &str| StoreError::CorruptIndex {
            path: path.clone(),
            reason: reason.to_owned(),
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| bad("it is not UTF-8"))?;
        let (header, body) = text.split_once('\n').ok_or_else(|| bad("it is cut"))?;
        let (version, digest) =
            read_header(header).ok_or_else(|| bad("its first line is not ours"))?;
        if digest != checksum(version, body) {
            return Err(bad("its checksum does not match"));
        }
        if version > VERSION {
            return Err(StoreError::Newer { path, version, known: VERSION });
        }
        let index: Self = serde_json::from_str(body).map_err(|error| bad(&error.to_string()))?;
        Ok(Some(Self { version, ..index }))
    }

    /// Replaces the index durably (`spec/rust.md` C8: write aside, sync, rename, sync the folder).
    pub(super) fn write(&self, disk: &dyn Disk, root: &Path) -> Result<(), StoreError> {
        let path = root.join(layout::INDEX);
        let body = serde_json::to_string(self)?;
        let text = format!("{HEADER}{VERSION} {}\n{body}", checksum(VERSION, &body));
        replace_synced(disk, &path, text.as_bytes())?;
        disk.sync_dir(&root.join(RUNTIME))?;
        Ok(())
    }
}

/// There is a journal and no index: one is written before the first entry, so it was lost.
pub(super) fn missing(root: &Path) -> StoreError {
    let reason = "it is gone, and the journal is not".to_owned();
    StoreError::CorruptIndex { path: root.join(layout::INDEX), reason }
}

/// The version that the index says, also where the rest of it is damaged.
pub(super) fn version_said(disk: &dyn Disk, root: &Path) -> Result<Option<u32>, StoreError> {
    let bytes = match disk.read(&root.join(layout::INDEX)) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).unwrap_or_default();
    Ok(read_header(line).map(|(version, _)| version))
}

/// Makes the views durable, writes the index for entry `seq` and removes the journal up to there.
pub(super) fn checkpoint(
    disk: &dyn Disk,
    root: &Path,
    views: &mut Views,
    seq: u64,
) -> Result<(), StoreError> {
    views.materialise()?;
    let marks: Vec<&ChannelMark> = views.state.channels.values().collect();
    let channels = root.join(layout::CHANNELS);
    replace_synced(disk, &channels, &pretty(&marks)?)?;
    // What could not be made durable is not tried again, also where the disk says that it is full: the pages count as
    // written then. The journal still has all of it.
    views.sync().map_err(|error| StoreError::File(Arc::new(error)))?;
    // Behind an empty tail this file counts: an index must not be there without the one that it belongs to.
    disk.sync_dir(&root.join(RUNTIME))?;
    let index = Index::of(views, seq);
    let open: std::collections::BTreeSet<&str> =
        index.open.iter().map(|open| open.path.as_str()).collect();
    views.digests.retain(|path, _| open.contains(path.as_str()));
    index.write(disk, root)?;
    for name in disk.list(&root.join(layout::JOURNAL))? {
        if super::layout::first_seq(&name).is_some_and(|first| first <= seq) {
            disk.remove(&root.join(layout::JOURNAL).join(name))?;
        }
    }
    Ok(())
}
