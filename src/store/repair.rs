//! Putting a damaged journal or index right, for `teams doctor --fix`. First comes a copy of everything as it was found.
//!
//! The record files follow the journal closely, so that after damage within it they are ahead of what can still be read
//! of it: then they count, and nothing is played over them. Where none is ahead, what can be read of the journal counts,
//! as at every opening. What the index alone has is made of the files as well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::{Entry, good_frames, read_line};
use super::error::StoreError;
use super::images::JournalChange;
use super::index::{Index, checkpoint};
use super::layout::{self, Lost, targets};
use super::load::{self, Tail};
use super::loaded::LoadedWorkspace;
use super::migrate;
use super::open;
use super::views::Views;
use crate::domain::change::{Change, ChannelMark};
use crate::domain::envelope::EnvelopeFolder;
use crate::domain::ids::{ChannelId, MessageId};
use crate::domain::record::{AnyRecord, RUNTIME, RecordKind, inside};
use crate::domain::role::Role;
use crate::domain::state::{ROOMS_KEPT, SETTLED_ITEMS_KEPT, SPRINT_IDS_KEPT, State};
use crate::platform::backup;
use crate::platform::disk::{Disk, RealDisk, replace_synced};

/// How a damaged workspace was put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRepair {
    /// The folder beside the records with a copy of them, and of the journal, as they were found.
    pub copy: String,
    /// How many requests are open.
    pub requests: usize,
    /// Record files that do not parse; they stay where they are, and are taken in once they are mended.
    pub unreadable: Vec<String>,
}

/// Puts the journal and the index of a workspace right; `None` where neither is damaged. Blocks.
///
/// # Errors
/// [`StoreError::Locked`] where a team owns the workspace, [`StoreError::Newer`] where a newer build wrote it, and what
/// the disk reports; then nothing has changed, or the next call goes on.
pub fn repair(root: &Path) -> Result<Option<StoreRepair>, StoreError> {
    repair_on(&(Arc::new(RealDisk) as Arc<dyn Disk>), root)
}

pub(super) fn repair_on(
    disk: &Arc<dyn Disk>,
    root: &Path,
) -> Result<Option<StoreRepair>, StoreError> {
    let _locks = open::take_locks(&**disk, root)?;
    let (index, index_is_good) = match Index::read(&**disk, root) {
        Ok(index) => (index, true),
        Err(StoreError::CorruptIndex { .. }) => (None, false),
        Err(error) => return Err(error),
    };
    let mut tail = Tail::default();
    let after = index.as_ref().map(|index| index.seq);
    let journal_is_good = match load::read_into(&mut tail, &**disk, root, after) {
        Ok(()) => true,
        Err(StoreError::Corrupt { .. }) => false,
        Err(error) => return Err(error),
    };
    if index_is_good && journal_is_good {
        return Ok(None);
    }
    let copy = backup::make(&**disk, root, RUNTIME, migrate::is_stored)?.name;
    let mut files = RecordFiles::read(&**disk, root)?;
    let written = files.digests();
    let asked = files.asked();
    let files_count = !journal_is_good && files.are_ahead(index.as_ref(), &tail)?;
    let journal = read_journal(&**disk, root)?;
    let version = index.as_ref().map(|index| index.version);
    let seq = journal.seq.max(after.unwrap_or(0));
    if !files_count {
        files.leave_to(&tail);
    }
    let unreadable = files.unreadable.clone();
    let lost = unreadable.iter().filter(|lost| Lost::is_kept(lost.kind)).cloned();
    let lost = lost.chain(index.iter().flat_map(|index| index.lost.clone())).collect();
    let mut views = files.views(disk, root);
    if !files_count {
        let mut loaded = LoadedWorkspace::new(views, index.as_ref(), &tail);
        loaded.replay(&**disk, root, tail)?;
        views = loaded.views;
    }
    views.lost = lost;
    let marks = marks(&**disk, root, index.as_ref(), journal.marks, asked)?;
    complete(&mut views.state, index, marks);
    if let Some(version) = version {
        migrate::give_items_their_todos(version, &mut views.state);
    }
    make_durable(&**disk, root, &mut views, &written, seq)?;
    checkpoint(&**disk, root, &mut views, seq)?;
    disk.sync_dir(&root.join(layout::JOURNAL))?;
    let open = views.state.requests.values().filter(|request| !request.status.is_terminal());
    Ok(Some(StoreRepair {
        copy,
        requests: open.count(),
        unreadable: unreadable.into_iter().map(|lost| lost.path).collect(),
    }))
}

/// Every open record lies in its file as this build writes it before an index names it. What the journal does not have
/// is whole there at any instant.
fn make_durable(
    disk: &dyn Disk,
    root: &Path,
    views: &mut Views,
    written: &BTreeMap<String, u32>,
    seq: u64,
) -> Result<(), StoreError> {
    let replayed: BTreeSet<String> = views.records().into_iter().collect();
    let (mut changes, mut files) = (Vec::new(), BTreeSet::new());
    for record in views.state.records() {
        let path = inside(&record.path());
        if replayed.contains(&path) {
            changes.push(Change::Save(record));
            continue;
        }
        let bytes = record.bytes()?;
        let digest = crc32fast::hash(&bytes);
        if written.get(&path) != Some(&digest) {
            replace_synced(disk, &root.join(&path), &bytes)?;
        }
        files.insert(path.clone());
        views.digests.insert(path, digest);
    }
    views.apply(seq, &Entry { base: BTreeMap::new(), changes })?;
    // What was written since the checkpoint may be in memory only.
    files.extend(written.keys().cloned());
    let histories = files.iter().filter_map(|path| path.strip_suffix(".json"));
    let histories: Vec<String> = histories.map(|path| format!("{path}.events.jsonl")).collect();
    let files: Vec<PathBuf> = files.iter().chain(&histories).map(|path| root.join(path)).collect();
    let folders: BTreeSet<PathBuf> =
        files.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
    let folders: Vec<PathBuf> = folders.into_iter().collect();
    disk.sync_many(root, &files, &folders)?;
    Ok(())
}

/// The files of all records.
struct RecordFiles {
    /// By their paths, with the CRC-32 of the file.
    read: BTreeMap<String, (AnyRecord, u32)>,
    unreadable: Vec<Lost>,
}

impl RecordFiles {
    fn read(disk: &dyn Disk, root: &Path) -> Result<RecordFiles, StoreError> {
        let mut paths = load::record_files(disk, root)?;
        for (kind, folder, ending) in [
            (RecordKind::Session, "role_sessions", ".json"),
            (RecordKind::Lifecycle, "lifecycles", ".yaml"),
        ] {
            let files = load::files_in(disk, root, folder, ending)?;
            paths.extend(files.map(|path| (kind, path)));
        }
        for role in Role::ALL {
            let folder = format!("internal_relay/{}/{role}", EnvelopeFolder::Inbox.as_str());
            let files = load::files_in(disk, root, &folder, ".json")?;
            paths.extend(files.map(|path| (RecordKind::Envelope, path)));
        }
        for (kind, name) in [
            (RecordKind::Spending, "spending.json"),
            (RecordKind::Interactions, "interactions.json"),
        ] {
            if disk.len(&root.join(inside(name)))?.is_some() {
                paths.push((kind, inside(name)));
            }
        }
        let mut files = RecordFiles { read: BTreeMap::new(), unreadable: Vec::new() };
        for (kind, path) in paths {
            let bytes = disk.read(&root.join(&path))?;
            match layout::parse(kind, &path, &bytes) {
                Ok(record) if is_consumed(disk, root, &record)? => {}
                Ok(record) => {
                    files.read.insert(path, (record, crc32fast::hash(&bytes)));
                }
                // What somebody dropped there that is none of ours; the watcher of the queue judges it.
                Err(_) if kind == RecordKind::Envelope => {}
                Err(_) => files.unreadable.push(Lost { kind, path }),
            }
        }
        Ok(files)
    }

    /// Whether a file says more than what can be read of the journal: it is none of the texts that the index and the
    /// journal know of its record.
    fn are_ahead(&self, index: Option<&Index>, tail: &Tail) -> Result<bool, StoreError> {
        let mut known: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for open in index.into_iter().flat_map(|index| &index.open) {
            known.entry(open.path.clone()).or_default().insert(open.digest);
        }
        for (seq, entry) in &tail.entries {
            for change in &entry.changes {
                for target in targets(*seq, change)? {
                    if let layout::Target::File(path, bytes) = target {
                        known.entry(path).or_default().insert(crc32fast::hash(&bytes));
                    }
                }
            }
        }
        Ok(self.read.iter().any(|(path, (record, digest))| match known.get(path) {
            Some(known) => !known.contains(digest),
            // Of what had ended by then nobody knows the text.
            None => index.is_some() && is_at_work(record),
        }))
    }

    /// Forgets what the journal tells.
    fn leave_to(&mut self, tail: &Tail) {
        let changes = tail.entries.iter().flat_map(|(_, entry)| &entry.changes);
        let told: BTreeSet<String> = changes.filter_map(layout::path_of).collect();
        self.read.retain(|path, _| !told.contains(path));
        self.unreadable.retain(|lost| !told.contains(&lost.path));
    }

    /// What the files say.
    fn views(self, disk: &Arc<dyn Disk>, root: &Path) -> Views {
        let records: Vec<AnyRecord> = self.read.into_values().map(|(record, _)| record).collect();
        let state = State::from_records(&records);
        Views::new(disk.clone(), root.to_owned(), state, BTreeMap::new())
    }

    fn digests(&self) -> BTreeMap<String, u32> {
        self.read.iter().map(|(path, (_, digest))| (path.clone(), *digest)).collect()
    }

    /// The messages that became requests, by their channels.
    fn asked(&self) -> BTreeSet<(ChannelId, MessageId)> {
        let asked = self.read.values().filter_map(|(record, _)| {
            let AnyRecord::Request(request) = record else { return None };
            let route = &request.conversation.reply_route;
            Some((route.channel_id?, route.message_id?))
        });
        asked.collect()
    }
}

/// Whether a record is open; a plan stays a record for ever.
fn is_at_work(record: &AnyRecord) -> bool {
    match record {
        AnyRecord::Request(request) => !request.status.is_terminal(),
        AnyRecord::Sprint(sprint) => !sprint.status.is_terminal(),
        AnyRecord::Plan(_) => false,
        AnyRecord::Envelope(_)
        | AnyRecord::Run(_)
        | AnyRecord::Effect(_)
        | AnyRecord::Outgoing(_)
        | AnyRecord::Gate(_)
        | AnyRecord::Operation(_)
        | AnyRecord::Session(_)
        | AnyRecord::Backlog(_)
        | AnyRecord::Verification(_)
        | AnyRecord::Scheduler(_)
        | AnyRecord::Spending(_)
        | AnyRecord::Interactions(_)
        | AnyRecord::Lifecycle(_) => record.is_open(),
    }
}

/// Whether a record is an envelope that has been handled, and whose file in the inbox was about to go.
fn is_consumed(disk: &dyn Disk, root: &Path, record: &AnyRecord) -> Result<bool, StoreError> {
    let AnyRecord::Envelope(envelope) = record else { return Ok(false) };
    let archived = inside(&envelope.path_in(EnvelopeFolder::Archive));
    Ok(disk.len(&root.join(archived))?.is_some())
}

/// What every good entry says, also behind a damaged one.
#[derive(Default)]
struct JournalRemains {
    /// The last entry.
    seq: u64,
    /// How far channels were read: whole in each entry, unlike the records.
    marks: Vec<ChannelMark>,
}

fn read_journal(disk: &dyn Disk, root: &Path) -> Result<JournalRemains, StoreError> {
    let mut found = JournalRemains::default();
    for (first, path) in load::segments(disk, root)? {
        found.seq = found.seq.max(first);
        let bytes = disk.read(&path)?;
        for frame in good_frames(&bytes) {
            let lines = frame.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            for (seq, line) in (frame.first_seq..).zip(lines) {
                found.seq = found.seq.max(seq);
                let changes = read_line(frame.version, line).map(|line| line.changes);
                found.marks.extend(changes.unwrap_or_default().into_iter().filter_map(|change| {
                    if let JournalChange::Channel(mark) = change { Some(mark) } else { None }
                }));
            }
        }
    }
    Ok(found)
}

/// How far each channel was read, by the index, or for want of it by their file, and by the journal. A message that
/// became a request is not taken in a second time.
fn marks(
    disk: &dyn Disk,
    root: &Path,
    index: Option<&Index>,
    journaled: Vec<ChannelMark>,
    asked: BTreeSet<(ChannelId, MessageId)>,
) -> Result<BTreeMap<ChannelId, ChannelMark>, StoreError> {
    let marks: Vec<ChannelMark> = match index {
        Some(index) => index.channels.clone(),
        None => match disk.read(&root.join(layout::CHANNELS)) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(error) if error.is_missing() => Vec::new(),
            Err(error) => return Err(error.into()),
        },
    };
    let mut channels: BTreeMap<ChannelId, ChannelMark> = BTreeMap::new();
    for mark in marks.into_iter().chain(journaled) {
        let known = channels.get(&mark.channel_id).map(|known| known.watermark);
        if known.is_none_or(|known| known <= mark.watermark) {
            channels.insert(mark.channel_id, mark);
        }
    }
    for (channel, message) in asked {
        let mark = channels.get_mut(&channel);
        if let Some(mark) = mark.filter(|mark| mark.watermark < message) {
            mark.watermark = message;
            mark.recent.push(message);
        }
    }
    Ok(channels)
}

/// Adds what no record says.
fn complete(state: &mut State, index: Option<Index>, marks: BTreeMap<ChannelId, ChannelMark>) {
    state.channels = marks;
    let Some(index) = index else { return };
    state.ended_requests = state.ended_requests.max(index.ended_requests);
    for (channel, request) in index.rooms {
        if state.rooms.len() < ROOMS_KEPT {
            state.rooms.entry(channel).or_insert(request);
        }
    }
    for (item, print) in index.settled_items {
        if state.settled_items.len() < SETTLED_ITEMS_KEPT && !state.backlog.contains_key(&item) {
            state.settled_items.entry(item).or_insert(print);
        }
    }
    for sprint in index.sprint_ids {
        if state.sprint_ids.len() < SPRINT_IDS_KEPT {
            state.sprint_ids.insert(sprint);
        }
    }
}
