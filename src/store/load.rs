//! Reading a workspace without changing it: the checkpoint's index, the records that it names, the tail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::{Entry, VERSION, read_line, scan};
use super::error::StoreError;
use super::images::ReadRecords;
use super::index::{self, Index};
use super::layout::{self, Lost, first_seq};
use super::loaded::{LoadedWorkspace, Unreadable};
use super::migrate;
use super::views::{Views, cannot_be_opened, is_text};
use crate::domain::change::{Change, ChannelMark};
use crate::domain::envelope::EnvelopeFolder;
use crate::domain::ids::RequestId;
use crate::domain::record::{RecordKind, SCHEDULER, inside};
use crate::domain::request::Request;
use crate::domain::role::Role;
use crate::domain::state::State;
use crate::platform::disk::Disk;

/// The entries since the checkpoint.
#[derive(Default)]
pub(super) struct Tail {
    pub(super) entries: Vec<(u64, Entry)>,
    pub(super) torn: bool,
    pub(super) end: TailEnd,
}

/// Where the entries end that were read, for whoever reads on from there.
#[derive(Default)]
pub(super) struct TailEnd {
    /// The last segment, and how many of its bytes were read.
    segment: Option<(PathBuf, usize)>,
    /// The entry that comes next.
    next: u64,
    records: ReadRecords,
}

/// Reads the entries behind `after`.
pub(super) fn read_tail(
    disk: &dyn Disk,
    root: &Path,
    after: Option<u64>,
) -> Result<Tail, StoreError> {
    let mut tail = Tail::default();
    read_into(&mut tail, disk, root, after)?;
    Ok(tail)
}

/// The segments of the journal by their first entries, in order.
pub(super) fn segments(disk: &dyn Disk, root: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let folder = root.join(layout::JOURNAL);
    let names = disk.list(&folder)?;
    let segments = names.iter().filter_map(|name| Some((first_seq(name)?, folder.join(name))));
    let mut segments: Vec<_> = segments.collect();
    segments.sort();
    Ok(segments)
}

/// Reads the entries behind `after`; where some are damaged, those before the damage.
pub(super) fn read_into(
    tail: &mut Tail,
    disk: &dyn Disk,
    root: &Path,
    after: Option<u64>,
) -> Result<(), StoreError> {
    let segments = segments(disk, root)?;
    let mut last = after;
    for (position, (first, path)) in segments.iter().enumerate() {
        let next = segments.get(position + 1).map(|(first, _)| *first);
        let seen = after.unwrap_or(0);
        if next.is_some_and(|next| next <= seen + 1) {
            // A leftover from before the checkpoint.
            continue;
        }
        let bytes = disk.read(path)?;
        let corrupt = |offset: usize, reason: String| StoreError::Corrupt {
            path: path.clone(),
            offset,
            reason,
        };
        let found = scan(&bytes);
        let mut expected = *first;
        for frame in &found.frames {
            if frame.version > VERSION {
                let (path, version) = (path.clone(), frame.version);
                return Err(StoreError::Newer { path, version, known: VERSION });
            }
            if frame.first_seq != expected {
                return Err(corrupt(0, format!("entry {expected} is missing")));
            }
            for line in frame.lines.split(|byte| *byte == b'\n') {
                if line.is_empty() {
                    continue;
                }
                if expected > seen {
                    if last.is_some_and(|last| expected != last + 1) {
                        let missing = last.unwrap_or(0) + 1;
                        return Err(corrupt(0, format!("entry {missing} is missing")));
                    }
                    let records = &mut tail.end.records;
                    let entry = read_entry((frame.version, expected), line, records)
                        .map_err(|reason| corrupt(0, format!("entry {expected}: {reason}")))?;
                    tail.entries.push((expected, entry));
                    last = Some(expected);
                }
                expected += 1;
            }
        }
        if found.has_good_behind {
            return Err(corrupt(found.end, "a bad entry has good ones after it".to_owned()));
        }
        if found.torn && next.is_some() {
            let reason = "a bad entry in a segment that is not the last";
            return Err(corrupt(found.end, reason.to_owned()));
        }
        tail.torn |= found.torn;
        tail.end.segment = Some((path.clone(), found.end));
        tail.end.next = expected;
    }
    Ok(())
}

impl TailEnd {
    /// Applies what was appended since. `false` where that cannot be told from here, and everything is to be read.
    pub(super) fn read_on(
        &mut self,
        disk: &dyn Disk,
        root: &Path,
        state: &mut State,
    ) -> Result<bool, StoreError> {
        let Some((segment, read)) = &mut self.segment else { return Ok(false) };
        let names = disk.list(&root.join(layout::JOURNAL))?;
        let newest = names.iter().filter_map(|name| Some((first_seq(name)?, name))).max();
        if newest.map(|(_, name)| name.as_str()) != segment.file_name().and_then(|it| it.to_str()) {
            return Ok(false);
        }
        let bytes = disk.read(segment)?;
        let Some(found) = bytes.get(*read..).map(scan) else { return Ok(false) };
        if found.has_good_behind {
            return Ok(false);
        }
        for frame in &found.frames {
            if frame.version > VERSION || frame.first_seq != self.next {
                return Ok(false);
            }
            for line in frame.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let seq = (frame.version, self.next);
                let Ok(entry) = read_entry(seq, line, &mut self.records) else { return Ok(false) };
                entry.changes.iter().for_each(|change| state.apply(change));
                self.next += 1;
            }
        }
        *read += found.end;
        Ok(true)
    }
}

fn read_entry(
    (version, seq): (u32, u64),
    line: &[u8],
    records: &mut ReadRecords,
) -> Result<Entry, String> {
    let line = read_line(version, line).map_err(|error| error.to_string())?;
    let changes = line.changes.into_iter().map(|written| records.read(version, seq, written));
    Ok(Entry { base: line.base, changes: changes.collect::<Result<_, _>>()? })
}

/// Reads the state alone, and nothing of what the tail means for the files; and where to read on, unless an older build
/// wrote it.
pub(super) fn load_state(
    disk: &Arc<dyn Disk>,
    root: &Path,
) -> Result<(State, Option<TailEnd>), StoreError> {
    let (loaded, tail) = begin(disk, root)?;
    let mut state = loaded.views.state;
    let changes = tail.entries.iter().flat_map(|(_, entry)| &entry.changes);
    changes.for_each(|change| state.apply(change));
    migrate::give_items_their_todos(loaded.version, &mut state);
    Ok((state, (loaded.version == VERSION).then_some(tail.end)))
}

/// Reads the whole workspace.
pub(super) fn load(disk: &Arc<dyn Disk>, root: &Path) -> Result<LoadedWorkspace, StoreError> {
    let (mut loaded, tail) = begin(disk, root)?;
    loaded.replay(&**disk, root, tail)?;
    migrate::give_items_their_todos(loaded.version, &mut loaded.views.state);
    Ok(loaded)
}

/// Reads the workspace as the checkpoint has it, and the tail.
fn begin(disk: &Arc<dyn Disk>, root: &Path) -> Result<(LoadedWorkspace, Tail), StoreError> {
    let index = Index::read(&**disk, root)?;
    if index.is_none() && !segments(&**disk, root)?.is_empty() {
        return Err(index::missing(root));
    }
    let tail = read_tail(&**disk, root, index.as_ref().map(|index| index.seq))?;
    let covered: BTreeSet<String> = (tail.entries.iter())
        .flat_map(|(_, entry)| &entry.changes)
        .filter_map(layout::path_of)
        .collect();
    let views = Views::new(disk.clone(), root.to_owned(), State::default(), BTreeMap::new());
    let mut loaded = LoadedWorkspace::new(views, index.as_ref(), &tail);
    match index {
        Some(index) => loaded.base(&**disk, root, index, &covered)?,
        None => loaded.first(&**disk, root, &covered)?,
    }
    Ok((loaded, tail))
}

impl LoadedWorkspace {
    /// Nothing of the checkpoint and the tail is read yet.
    pub(super) fn new(views: Views, index: Option<&Index>, tail: &Tail) -> LoadedWorkspace {
        LoadedWorkspace {
            views,
            seq: index.map_or(0, |index| index.seq),
            tail: tail.entries.len(),
            indexed: index.is_some(),
            version: index.map_or(VERSION, |index| index.version),
            unreadable: Vec::new(),
            missing: Vec::new(),
            overridden: Vec::new(),
            edited: Vec::new(),
            torn: tail.torn,
        }
    }

    /// Reads the records that the checkpoint names.
    fn base(
        &mut self,
        disk: &dyn Disk,
        root: &Path,
        index: Index,
        covered: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        for open in index.open {
            self.views.digests.insert(open.path.clone(), open.digest);
            if covered.contains(&open.path) {
                // The file may be torn, and the tail says what it is. A request still has to be known
                // to be open, for the count of ended ones.
                if let Some(id) = placeholder(open.kind, &open.path) {
                    let request = Request { request_id: id.clone(), ..Request::default() };
                    self.views.state.requests.insert(id, Arc::new(request));
                }
                continue;
            }
            let bytes = match disk.read(&root.join(&open.path)) {
                Ok(bytes) => bytes,
                Err(error) if error.is_missing() => {
                    self.lose(open.kind, &open.path);
                    self.missing.push(open.path);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match layout::parse(open.kind, &open.path, &bytes) {
                Ok(record) => {
                    if crc32fast::hash(&bytes) != open.digest {
                        self.edited.push(open.path.clone());
                        self.views.digests.insert(open.path, crc32fast::hash(&bytes));
                    }
                    self.views.state.apply(&Change::Save(record));
                }
                Err(reason) => {
                    self.lose(open.kind, &open.path);
                    self.unreadable.push(Unreadable { path: open.path, reason });
                }
            }
        }
        for lost in index.lost {
            // It may have been saved anew since.
            if !self.views.digests.contains_key(&lost.path) && !covered.contains(&lost.path) {
                self.find_again(disk, root, lost)?;
            }
        }
        let state = &mut self.views.state;
        state.rooms = index.rooms.into_iter().collect();
        state.settled_items = index.settled_items.into_iter().collect();
        state.sprint_ids = index.sprint_ids.into_iter().collect();
        state.ended_requests = index.ended_requests;
        state.channels = (index.channels.into_iter()).map(|mark| (mark.channel_id, mark)).collect();
        if self.tail == 0 {
            self.channels(disk, root)?;
        }
        Ok(())
    }

    /// Remembers where the file of a record belongs that is not there, or cannot be read.
    fn lose(&mut self, kind: RecordKind, path: &str) {
        self.views.lose(Lost { kind, path: path.to_owned() });
    }

    /// Takes in a record whose file somebody has mended, or put back.
    fn find_again(&mut self, disk: &dyn Disk, root: &Path, lost: Lost) -> Result<(), StoreError> {
        let bytes = match disk.read(&root.join(&lost.path)) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => {
                self.lose(lost.kind, &lost.path);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        match layout::parse(lost.kind, &lost.path, &bytes) {
            Ok(record) => {
                self.views.digests.insert(lost.path.clone(), crc32fast::hash(&bytes));
                self.views.state.apply(&Change::Save(record));
                self.edited.push(lost.path);
            }
            Err(reason) => {
                self.lose(lost.kind, &lost.path);
                self.unreadable.push(Unreadable { path: lost.path, reason });
            }
        }
        Ok(())
    }

    /// Reads every record, where there is no checkpoint yet: the workspace is new, or was another program's, and its
    /// records have been brought into our shape. Envelopes are left to the watcher: what lies in an inbox is a drop.
    fn first(
        &mut self,
        disk: &dyn Disk,
        root: &Path,
        covered: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let mut records = Vec::new();
        let paths = record_files(disk, root)?;
        for (kind, path) in paths.into_iter().filter(|(_, path)| !covered.contains(path)) {
            let bytes = disk.read(&root.join(&path))?;
            match layout::parse(kind, &path, &bytes) {
                Ok(record) => {
                    self.views.digests.insert(path, crc32fast::hash(&bytes));
                    records.push(record);
                }
                Err(reason) => self.unreadable.push(Unreadable { path, reason }),
            }
        }
        self.views.state = State::from_records(&records);
        Ok(())
    }

    /// The marks are in the index as well; their file counts after a clean stop, where it reads.
    fn channels(&mut self, disk: &dyn Disk, root: &Path) -> Result<(), StoreError> {
        let bytes = match disk.read(&root.join(layout::CHANNELS)) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        match serde_json::from_slice::<Vec<ChannelMark>>(&bytes) {
            Ok(marks) => {
                let marks: BTreeMap<_, _> =
                    (marks.into_iter()).map(|mark| (mark.channel_id, mark)).collect();
                if marks != self.views.state.channels {
                    self.edited.push(layout::CHANNELS.to_owned());
                    self.views.state.channels = marks;
                }
            }
            Err(error) => self
                .unreadable
                .push(Unreadable { path: layout::CHANNELS.to_owned(), reason: error.to_string() }),
        }
        Ok(())
    }

    /// Applies the tail.
    pub(super) fn replay(
        &mut self,
        disk: &dyn Disk,
        root: &Path,
        tail: Tail,
    ) -> Result<(), StoreError> {
        // Every text that the runtime itself gave a file since the checkpoint, and the one before.
        let mut ours: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (path, digest) in &self.views.digests {
            ours.entry(path.clone()).or_default().push(*digest);
        }
        let indexed: BTreeSet<String> = ours.keys().cloned().collect();
        let mut in_tail = BTreeSet::new();
        for (seq, entry) in &tail.entries {
            self.views.apply(*seq, entry)?;
            for path in entry.changes.iter().filter_map(layout::path_of) {
                if let Some(digest) = self.views.digests.get(&path) {
                    ours.entry(path.clone()).or_default().push(*digest);
                }
                in_tail.insert(path);
            }
            self.seq = *seq;
        }
        // What an older runtime wrote is replaced as well, but by nothing of the tail.
        for path in self.views.records().into_iter().filter(|path| in_tail.contains(path)) {
            let Ok(bytes) = disk.read(&root.join(&path)) else {
                continue;
            };
            let digest = crc32fast::hash(&bytes);
            let Some(ours) = ours.get(&path) else {
                continue;
            };
            // A record that had ended before the checkpoint and is open again may still be as it was then,
            // which nobody remembers.
            let judged = indexed.contains(&path) || !layout::outlives_its_end(&path);
            // An earlier build wrote the same record in other bytes.
            let judged = judged && self.version == VERSION;
            // A file that does not parse was being written when the machine stopped, and so was one that lacks
            // nothing but its last newline: no edits.
            let mut ended = bytes.clone();
            ended.push(b'\n');
            let is_edit = judged
                && !ours.contains(&digest)
                && !ours.contains(&crc32fast::hash(&ended))
                && serde_json::from_slice::<serde_json::Value>(&bytes).is_ok();
            if is_edit {
                self.overridden.push(path);
            }
        }
        for (path, base, text) in self.views.appended() {
            self.resume(disk, root, &path, base, text)?;
        }
        Ok(())
    }

    /// Finds out how much of the tail's text an append-only file has already.
    fn resume(
        &mut self,
        disk: &dyn Disk,
        root: &Path,
        path: &str,
        base: u64,
        text: Vec<u8>,
    ) -> Result<(), StoreError> {
        let content = match disk.read(&root.join(path)) {
            Ok(content) => content,
            Err(error) if error.is_missing() => Vec::new(),
            // It is put aside when it is written to.
            Err(error) if layout::is_document(path) && cannot_be_opened(&error) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let base = usize::try_from(base).unwrap_or(usize::MAX);
        let Some(there) = content.get(base..) else {
            // Somebody made it shorter than it was at the checkpoint; what is left stays.
            self.overridden.push(path.to_owned());
            let (kept, done) = match layout::is_document(path) {
                true => matched(&content, &text),
                false => (content.len(), 0),
            };
            self.views.resume(path, kept as u64, text[done..].to_vec());
            return Ok(());
        };
        if text.starts_with(there) {
            let rest = text[there.len()..].to_vec();
            self.views.resume(path, content.len() as u64, rest);
        } else if let Some(more) = there.strip_prefix(&text[..])
            && is_text(more)
        {
            // Lines of entries that cannot be read any more, or of somebody else.
            self.views.resume(path, content.len() as u64, Vec::new());
        } else if layout::is_document(path) && is_text(there) {
            // A document, into which somebody has written since the checkpoint.
            let (kept, done) = matched(there, &text);
            self.views.resume(path, (base + kept) as u64, text[done..].to_vec());
        } else {
            if is_text(there) {
                self.overridden.push(path.to_owned());
            }
            self.views.resume(path, base as u64, text);
        }
        Ok(())
    }
}

/// The files of records that another program may have written as well, ended ones among them.
pub(super) fn record_files(
    disk: &dyn Disk,
    root: &Path,
) -> Result<Vec<(RecordKind, String)>, StoreError> {
    let mut paths = Vec::new();
    for (kind, folder) in layout::SHARED_FOLDERS {
        paths.extend(files_in(disk, root, inside(folder))?.map(|path| (kind, path)));
    }
    if disk.len(&root.join(inside(SCHEDULER)))?.is_some() {
        paths.push((RecordKind::Scheduler, inside(SCHEDULER)));
    }
    Ok(paths)
}

/// The files of all records, without those of envelopes that were handled.
pub(super) fn all_record_files(
    disk: &dyn Disk,
    root: &Path,
) -> Result<Vec<(RecordKind, String)>, StoreError> {
    let mut paths = record_files(disk, root)?;
    for (kind, folder) in layout::OWN_FOLDERS {
        paths.extend(files_in(disk, root, inside(folder))?.map(|path| (kind, path)));
    }
    for role in Role::ALL {
        let files = files_in(disk, root, layout::relay_folder(EnvelopeFolder::Inbox, role))?;
        paths.extend(files.map(|path| (RecordKind::Envelope, path)));
    }
    for (kind, name) in layout::SINGLE {
        if disk.len(&root.join(inside(name)))?.is_some() {
            paths.push((kind, inside(name)));
        }
    }
    Ok(paths)
}

/// The files of records in a folder.
fn files_in(
    disk: &dyn Disk,
    root: &Path,
    folder: String,
) -> Result<impl Iterator<Item = String>, StoreError> {
    let names = disk.list(&root.join(&folder))?.into_iter();
    let names = names.filter(|name| !name.starts_with('.'));
    let names = names.filter(|name| name.ends_with(".json") || name.ends_with(".yaml"));
    Ok(names.map(move |name| format!("{folder}/{name}")))
}

/// How much of a document's end stays, and how much of the tail's text that has, line by line, with the lines of others
/// between: all but a last line of ours that was cut off.
fn matched(there: &[u8], text: &[u8]) -> (usize, usize) {
    let (mut kept, mut rest) = (0, text);
    for line in there.split_inclusive(|byte| *byte == b'\n') {
        let next = rest.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        if line == next {
            rest = &rest[next.len()..];
        } else if let Some(behind) = behind_only(line, rest) {
            // One of ours before it was reworded, or removed.
            rest = behind;
        } else if !line.ends_with(b"\n") && next.starts_with(line) {
            break;
        }
        kept += line.len();
    }
    (kept, text.len() - rest.len())
}

/// What follows a line that stands in a text just once; none for a blank one.
fn behind_only<'t>(line: &[u8], text: &'t [u8]) -> Option<&'t [u8]> {
    let mut at = 0;
    let ends = text.split_inclusive(|byte| *byte == b'\n').filter_map(|one| {
        at += one.len();
        (one == line && !line.trim_ascii().is_empty()).then_some(at)
    });
    let ends: Vec<usize> = ends.take(2).collect();
    if let [end] = ends[..] { text.get(end..) } else { None }
}

fn placeholder(kind: RecordKind, path: &str) -> Option<RequestId> {
    let name = path.rsplit('/').next()?.strip_suffix(".json")?;
    (kind == RecordKind::Request).then(|| RequestId::parse(name).ok())?
}

/// The last image of a request in the tail, if it has one.
pub(super) fn last_image(tail: &Tail, id: &RequestId) -> Option<Request> {
    let mut changes = tail.entries.iter().flat_map(|(_, entry)| &entry.changes).rev();
    let saved = changes.find_map(|it| it.saved_request().filter(|it| it.request_id == *id));
    saved.map(|request| Request::clone(request))
}
