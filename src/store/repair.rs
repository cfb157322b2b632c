//! Putting a damaged journal or index right, for `teams doctor --fix`. First comes a copy of everything as it was found.
//!
//! What can be read of the journal tells of each record what it was up to the damage; its file may be behind that, where
//! the machine lost power, or ahead, where it followed entries that cannot be read any more. So it is judged record by
//! record: a file with a text of which the journal and the index know nothing is ahead and counts, else the journal's last
//! word does. What no record says is made of the index, the journal and the records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::{Entry, VERSION, good_frames};
use super::error::StoreError;
use super::index::{self, Index, checkpoint};
use super::layout::{self, Lost};
use super::load::{self, Tail};
use super::loaded::{LoadedWorkspace, Unreadable};
use super::migrate;
use super::open::{self, SetAside};
use super::views::Views;
use crate::domain::change::{Change, ChannelMark};
use crate::domain::envelope::EnvelopeFolder;
use crate::domain::ids::{ChannelId, MessageId, RequestId, RunId};
use crate::domain::outgoing::Outgoing;
use crate::domain::record::{AnyRecord, RecordId, RecordKind, inside, request_path, sprint_path};
use crate::domain::request::Request;
use crate::domain::state::{ROOMS_KEPT, SETTLED_ITEMS_KEPT, SPRINT_IDS_KEPT, State};
use crate::platform::disk::{Disk, RealDisk, replace_synced};

/// How a damaged workspace was put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRepair {
    /// The folder beside the records with a copy of them, and of the journal, as they were found.
    pub copy: String,
    /// How many requests are open.
    pub requests: usize,
    /// Record files that do not parse and of which the journal says nothing.
    pub set_aside: Vec<SetAside>,
    /// Open records whose files are gone.
    pub missing: Vec<String>,
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
        Ok(None) if !load::segments(&**disk, root)?.is_empty() => (None, false),
        Ok(index) => (index, true),
        Err(StoreError::CorruptIndex { .. }) => (None, false),
        Err(error) => return Err(error),
    };
    let version = match &index {
        Some(index) => index.version,
        None => index::version_said(&**disk, root)?.unwrap_or(VERSION),
    };
    if version > VERSION {
        return Err(StoreError::Newer { path: root.join(layout::INDEX), version, known: VERSION });
    }
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
    let seq = last_entry(&**disk, root)?.max(after.unwrap_or(0));
    let copy = migrate::copy(&**disk, root)?;
    let files = RecordFiles::read(&**disk, root)?;
    let told = Told::of(index.as_ref(), &tail, journal_is_good)?;
    let merged = merge(&**disk, root, &files, &told)?;
    let unreadable = files.unreadable.iter().filter(|(_, it)| !told.has_last_word(&it.path));
    let unreadable: Vec<_> = unreadable.cloned().collect();
    let unread = unreadable.iter().map(|(kind, it)| Lost { kind: *kind, path: it.path.clone() });
    let mut lost = index.as_ref().map(|index| index.lost.clone()).unwrap_or_default();
    lost.extend(unread.chain(merged.missing.iter().cloned()));
    let marks = marks(&**disk, root, index.as_ref(), &tail, &files)?;
    let mut state = state_of(&merged.records, &told, index, &tail, marks);
    migrate::give_items_their_todos(version, &mut state);

    let mut views = Views::new(disk.clone(), root.to_owned(), state, BTreeMap::new());
    lost.into_iter().for_each(|lost| views.lose(lost));
    let gone = files.read.keys().filter(|path| told.is_removed(path)).chain(&merged.handled);
    let gone = gone.filter(|path| !merged.records.contains_key(*path)).cloned().collect();
    make_durable(&**disk, root, &mut views, &files, (merged.records, gone))?;
    let mut loaded = LoadedWorkspace::new(views, None, &tail);
    loaded.replay(&**disk, root, histories_of(tail))?;
    let unreadable: Vec<Unreadable> = unreadable.into_iter().map(|(_, it)| it).collect();
    let set_aside = open::set_aside(&**disk, root, &unreadable)?;
    checkpoint(&**disk, root, &mut loaded.views, seq)?;
    disk.sync_dir(&root.join(layout::JOURNAL))?;
    let requests = loaded.views.state.requests.values();
    Ok(Some(StoreRepair {
        copy,
        requests: requests.filter(|request| !request.status.is_terminal()).count(),
        set_aside,
        missing: merged.missing.into_iter().map(|lost| lost.path).collect(),
    }))
}

/// The last entry of which anything is left.
fn last_entry(disk: &dyn Disk, root: &Path) -> Result<u64, StoreError> {
    let mut last = 0;
    for (first, path) in load::segments(disk, root)? {
        last = last.max(first);
        for frame in good_frames(&disk.read(&path)?) {
            if frame.version > VERSION {
                return Err(StoreError::Newer { path, version: frame.version, known: VERSION });
            }
            let lines = frame.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            last = last.max(frame.first_seq + (lines.count() as u64).saturating_sub(1));
        }
    }
    Ok(last)
}

/// The files of all records, without those of envelopes that were handled.
#[derive(Default)]
struct RecordFiles {
    /// By their paths, with the CRC-32 of the file.
    read: BTreeMap<String, (AnyRecord, u32)>,
    unreadable: Vec<(RecordKind, Unreadable)>,
}

impl RecordFiles {
    fn read(disk: &dyn Disk, root: &Path) -> Result<RecordFiles, StoreError> {
        let mut files = RecordFiles::default();
        for (kind, path) in load::all_record_files(disk, root)? {
            let bytes = disk.read(&root.join(&path))?;
            match layout::parse(kind, &path, &bytes) {
                Ok(record) => drop(files.read.insert(path, (record, crc32fast::hash(&bytes)))),
                // The watcher of the queue judges it.
                Err(_) if kind == RecordKind::Envelope => {}
                Err(reason) => files.unreadable.push((kind, Unreadable { path, reason })),
            }
        }
        Ok(files)
    }

    fn requests(&self) -> impl Iterator<Item = &Request> {
        self.read.values().filter_map(|(record, _)| {
            let AnyRecord::Request(request) = record else { return None };
            Some(&**request)
        })
    }
}

/// What the index and the readable part of the journal tell of a record.
#[derive(Default)]
struct ToldRecord {
    /// The CRC-32 of each text that its file has had.
    texts: BTreeSet<u32>,
    /// What the journal says last.
    last: Option<LastWord>,
}

enum LastWord {
    Saved(AnyRecord),
    Removed,
}

/// What the index and the readable part of the journal tell.
#[derive(Default)]
struct Told {
    /// By the paths of their files.
    records: BTreeMap<String, ToldRecord>,
    /// The paths of those that were in memory.
    in_memory: BTreeSet<String>,
    /// Whether the index is there, and with it a text of each record that was open.
    is_indexed: bool,
    /// Whether nothing of the journal is damaged: then no file is ahead of it.
    is_whole: bool,
}

impl Told {
    fn of(index: Option<&Index>, tail: &Tail, is_whole: bool) -> Result<Told, StoreError> {
        let mut told = Told { is_indexed: index.is_some(), is_whole, ..Told::default() };
        for open in index.into_iter().flat_map(|index| &index.open) {
            told.records.entry(open.path.clone()).or_default().texts.insert(open.digest);
            told.in_memory.insert(open.path.clone());
        }
        for change in tail.entries.iter().flat_map(|(_, entry)| &entry.changes) {
            match change {
                Change::Save(record) => told.saved(record)?,
                Change::Remove(id) => told.removed(id),
                Change::Event(..)
                | Change::SprintEvent(..)
                | Change::Channel(_)
                | Change::Append { .. } => {}
            }
        }
        Ok(told)
    }

    /// Whether the journal says what became of the record of a path.
    fn has_last_word(&self, path: &str) -> bool {
        self.records.get(path).is_some_and(|told| told.last.is_some())
    }

    /// Whether a record is no further than what is told: as its file has it, whose text has one of these CRC-32.
    fn covers(&self, path: &str, record: &AnyRecord, texts: [u32; 2]) -> bool {
        let Some(told) = self.records.get(path) else { return false };
        if texts.iter().any(|text| told.texts.contains(text)) {
            return true;
        }
        match &told.last {
            None => false,
            Some(_) if self.is_whole => true,
            // Without the index nobody knows what was in it before.
            Some(LastWord::Removed) => !self.is_indexed,
            Some(LastWord::Saved(last)) => {
                !self.is_indexed && record.updated_at() <= last.updated_at()
            }
        }
    }

    fn is_removed(&self, path: &str) -> bool {
        let last = self.records.get(path).and_then(|told| told.last.as_ref());
        matches!(last, Some(LastWord::Removed))
    }

    fn saved(&mut self, record: &AnyRecord) -> Result<(), StoreError> {
        let path = inside(&record.path());
        if let AnyRecord::Envelope(envelope) = record {
            // It lies in one folder of the queue.
            for place in [EnvelopeFolder::Inbox, EnvelopeFolder::Archive, EnvelopeFolder::Dead] {
                let other = inside(&envelope.path_in(place));
                if other != path {
                    self.in_memory.remove(&other);
                    self.records.entry(other).or_default().last = Some(LastWord::Removed);
                }
            }
        }
        if record.is_open() {
            self.in_memory.insert(path.clone());
        } else {
            self.in_memory.remove(&path);
        }
        let told = self.records.entry(path).or_default();
        told.texts.insert(crc32fast::hash(&record.bytes()?));
        told.last = Some(LastWord::Saved(record.clone()));
        Ok(())
    }

    fn removed(&mut self, id: &RecordId) {
        let path = match id {
            // Their files stay.
            RecordId::Request(id) => inside(&request_path(id)),
            RecordId::Sprint(id) => inside(&sprint_path(id)),
            RecordId::Run(_)
            | RecordId::Effect(_)
            | RecordId::Outgoing(_)
            | RecordId::Session(..)
            | RecordId::Lifecycle(_) => {
                let Some(path) = id.path().map(|path| inside(&path)) else { return };
                self.records.entry(path.clone()).or_default().last = Some(LastWord::Removed);
                path
            }
        };
        self.in_memory.remove(&path);
    }
}

/// The records as they are to be.
struct Merged {
    /// By the paths of their files, ended ones among them.
    records: BTreeMap<String, AnyRecord>,
    /// Those of which nobody can tell what they were.
    missing: Vec<Lost>,
    /// Files of envelopes that were handled.
    handled: Vec<String>,
}

fn merge(
    disk: &dyn Disk,
    root: &Path,
    files: &RecordFiles,
    told: &Told,
) -> Result<Merged, StoreError> {
    let mut merged = Merged { records: BTreeMap::new(), missing: Vec::new(), handled: Vec::new() };
    // The requests that have gone on since, with the run that they wait for.
    let mut ahead: BTreeMap<&RequestId, Option<&RunId>> = BTreeMap::new();
    for (path, (record, digest)) in &files.read {
        let own = crc32fast::hash(&record.bytes()?);
        if let AnyRecord::Request(request) = record
            && !told.covers(path, record, [*digest, own])
        {
            ahead.insert(&request.request_id, request.work.active_run.as_ref());
        }
    }
    for (path, (record, digest)) in &files.read {
        let own = crc32fast::hash(&record.bytes()?);
        let counts = match told.records.get(path) {
            // Its file goes last: where its request has not gone on, what came of it may not be in the files.
            _ if is_handled(disk, root, record)?
                && matches!(record, AnyRecord::Envelope(it) if ahead.contains_key(&it.envelope.request_id)) =>
            {
                merged.handled.push(path.clone());
                false
            }
            Some(known) if told.covers(path, record, [*digest, own]) => match &known.last {
                Some(LastWord::Saved(last)) => {
                    merged.records.insert(path.clone(), last.clone());
                    false
                }
                Some(LastWord::Removed) => false,
                None => true,
            },
            Some(_) => true,
            // What others dropped into the queue is for its watcher to judge.
            None if record.kind() == RecordKind::Envelope => own == *digest,
            None => true,
        };
        if counts {
            merged.records.insert(path.clone(), record.clone());
        }
    }
    for (path, told) in &told.records {
        if files.read.contains_key(path) {
            continue;
        }
        match &told.last {
            Some(LastWord::Removed) => {}
            Some(LastWord::Saved(record)) => {
                if !is_left_behind(record, &ahead) && !is_handled(disk, root, record)? {
                    merged.records.insert(path.clone(), maybe_sent(record));
                }
            }
            // Its file was durable at the checkpoint: it went with its record, or somebody removed it.
            None => {
                let lost = layout::kind_of(path).filter(|kind| Lost::is_kept(*kind));
                let lost = lost.map(|kind| Lost { kind, path: path.clone() });
                let is_unread = files.unreadable.iter().any(|(_, it)| it.path == *path);
                merged.missing.extend(lost.filter(|_| !is_unread));
            }
        }
    }
    Ok(merged)
}

/// Whether a request that has gone on does without this record.
fn is_left_behind(record: &AnyRecord, ahead: &BTreeMap<&RequestId, Option<&RunId>>) -> bool {
    if let AnyRecord::Run(run) = record {
        return ahead.get(&run.request_id).is_some_and(|active| *active != Some(&run.run_id));
    }
    let AnyRecord::Effect(effect) = record else { return false };
    effect.kind.request_id().is_some_and(|id| ahead.contains_key(id))
}

/// A message to Discord whose file is gone may have been sent: what is there is looked at before it is sent again.
fn maybe_sent(record: &AnyRecord) -> AnyRecord {
    let AnyRecord::Outgoing(outgoing) = record else { return record.clone() };
    let attempts = outgoing.attempts.max(1);
    Outgoing { attempts, ..Outgoing::clone(outgoing) }.into()
}

/// Whether an envelope of an inbox lies where handled ones do.
fn is_handled(disk: &dyn Disk, root: &Path, record: &AnyRecord) -> Result<bool, StoreError> {
    let AnyRecord::Envelope(envelope) = record else { return Ok(false) };
    if envelope.place != EnvelopeFolder::Inbox {
        return Ok(false);
    }
    for place in [EnvelopeFolder::Archive, EnvelopeFolder::Dead] {
        if disk.len(&root.join(inside(&envelope.path_in(place))))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How far each channel was read, by the index, or for want of it by their file, and by the readable part of the journal.
/// What was written behind that and became part of a request is not taken in a second time.
fn marks(
    disk: &dyn Disk,
    root: &Path,
    index: Option<&Index>,
    tail: &Tail,
    files: &RecordFiles,
) -> Result<BTreeMap<ChannelId, ChannelMark>, StoreError> {
    let marks: Vec<ChannelMark> = match index {
        Some(index) => index.channels.clone(),
        None => match disk.read(&root.join(layout::CHANNELS)) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(error) if error.is_missing() => Vec::new(),
            Err(error) => return Err(error.into()),
        },
    };
    let mut channels: BTreeMap<ChannelId, ChannelMark> =
        marks.into_iter().map(|mark| (mark.channel_id, mark)).collect();
    for change in tail.entries.iter().flat_map(|(_, entry)| &entry.changes) {
        if let Change::Channel(mark) = change {
            channels.insert(mark.channel_id, mark.clone());
        }
    }
    let taken: BTreeSet<(ChannelId, MessageId)> = (files.requests())
        .flat_map(|request| {
            let route = &request.conversation.reply_route;
            let words = request.params.followups.iter();
            let words = words.map(|words| (words.channel_id, words.message_id));
            words.chain([(route.channel_id, route.message_id)])
        })
        .filter_map(|(channel, message)| Some((channel?, message?)))
        .collect();
    for (channel, message) in taken {
        let mark = channels.get_mut(&channel);
        // What stands before it may not have been taken in yet.
        if let Some(mark) =
            mark.filter(|it| it.watermark < message && !it.recent.contains(&message))
        {
            mark.recent.push(message);
        }
    }
    Ok(channels)
}

/// What is in memory.
fn state_of(
    records: &BTreeMap<String, AnyRecord>,
    told: &Told,
    index: Option<Index>,
    tail: &Tail,
    channels: BTreeMap<ChannelId, ChannelMark>,
) -> State {
    let Some(index) = index else {
        let records: Vec<AnyRecord> = records.values().cloned().collect();
        return State { channels, ..State::from_records(&records) };
    };
    let mut state = State {
        channels,
        rooms: index.rooms.into_iter().collect(),
        settled_items: index.settled_items.into_iter().collect(),
        sprint_ids: index.sprint_ids.into_iter().collect(),
        ..State::default()
    };
    for (path, record) in records {
        if told.in_memory.contains(path) || record.is_at_work() {
            state.apply(&Change::Save(record.clone()));
        }
    }
    state.forget_ended_requests();
    let requests = &state.requests;
    state.sessions.retain(|_, session| requests.contains_key(&session.request_id));
    let changes = tail.entries.iter().flat_map(|(_, entry)| &entry.changes);
    let ended = changes.filter(|it| matches!(it, Change::Remove(RecordId::Request(_))));
    let known = index.ended_requests + ended.count() as u64;
    let over = records.values().filter(|record| matches!(record, AnyRecord::Request(_)));
    let over = over.filter(|record| !record.is_at_work()).count() as u64;
    state.ended_requests = known.max(over);
    // What is remembered of the ended ones, the latest first.
    for record in records.values().rev() {
        if let AnyRecord::Request(request) = record
            && let Some(room) = request.conversation.thread()
            && state.rooms.len() < ROOMS_KEPT
        {
            state.rooms.entry(room).or_insert_with(|| request.request_id.clone());
        }
        if let AnyRecord::Backlog(item) = record
            && !item.status.is_active()
            && state.settled_items.len() < SETTLED_ITEMS_KEPT
        {
            let print = || item.fingerprint.clone();
            state.settled_items.entry(item.backlog_id.clone()).or_insert_with(print);
        }
        if let AnyRecord::Sprint(sprint) = record
            && state.sprint_ids.len() < SPRINT_IDS_KEPT
        {
            state.sprint_ids.insert(sprint.sprint_id.clone());
        }
    }
    state
}

/// Every record lies in its file as this build writes it, whole at any instant, before an index names it. What is gone
/// has no file.
fn make_durable(
    disk: &dyn Disk,
    root: &Path,
    views: &mut Views,
    files: &RecordFiles,
    (mut records, gone): (BTreeMap<String, AnyRecord>, Vec<String>),
) -> Result<(), StoreError> {
    let open: BTreeMap<String, AnyRecord> =
        views.state.records().map(|record| (inside(&record.path()), record)).collect();
    // What has ended and lies there stays as it is.
    let is_as_it_was = |path: &String, record: &AnyRecord| {
        files.read.get(path).is_some_and(|(it, _)| it == record)
    };
    records.retain(|path, record| !is_as_it_was(path, record));
    records.extend(open);
    let mut touched: BTreeSet<PathBuf> = files.read.keys().map(|path| root.join(path)).collect();
    for (path, record) in &records {
        let (bytes, file) = (record.bytes()?, root.join(path));
        let digest = crc32fast::hash(&bytes);
        views.digests.insert(path.clone(), digest);
        let is_there = match files.read.get(path) {
            Some((_, written)) => *written == digest,
            // Of what was handled the folders are not read.
            None => layout::kind_of(path).is_none() && disk.len(&file)?.is_some(),
        };
        if !is_there {
            if let Some(folder) = file.parent() {
                disk.create_dir(folder)?;
            }
            replace_synced(disk, &file, &bytes)?;
        }
        touched.insert(file);
    }
    for path in gone {
        let file = root.join(path);
        disk.remove(&file)?;
        touched.insert(file);
    }
    // What was written since the checkpoint may be in memory only, the histories too.
    let histories = touched.iter().map(|file| file.with_extension("events.jsonl"));
    let all: Vec<PathBuf> = touched.iter().cloned().chain(histories).collect();
    let folders: BTreeSet<PathBuf> =
        all.iter().filter_map(|file| file.parent()).map(Path::to_owned).collect();
    let folders: Vec<PathBuf> = folders.into_iter().collect();
    disk.sync_many(root, &all, &folders)?;
    Ok(())
}

/// What the tail says of the histories and documents, and nothing of the records.
fn histories_of(tail: Tail) -> Tail {
    let is_line = |change: &Change| match change {
        Change::Event(..) | Change::SprintEvent(..) | Change::Append { .. } => true,
        Change::Save(_) | Change::Remove(_) | Change::Channel(_) => false,
    };
    let entries = tail.entries.into_iter().map(|(seq, Entry { base, changes })| {
        (seq, Entry { base, changes: changes.into_iter().filter(is_line).collect() })
    });
    Tail { entries: entries.collect(), ..Tail::default() }
}
