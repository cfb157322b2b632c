//! Writing the journal: one write and one `fdatasync` a group of appends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::entry::{Entry, HEADER, push_line, seal};
use super::error::StoreError;
use super::images::{ChangeDraft, WrittenRecords};
use super::layout;
use crate::domain::change::Change;
use crate::platform::disk::{Disk, DiskFile, is_full};
use crate::platform::files::{FileError, Result as FileResult};
use crate::platform::plug::{self, Point};

/// Segments grow by this many zero bytes at a time. Overwriting zeros that are already on disk changes no
/// file size, so that most syncs flush the data alone; and what is left of them lets the team finish
/// its work when the disk is full.
const GROWTH: u64 = 512 * 1024;

/// An append on its way: its changes and the same as JSON.
pub(super) struct PreparedAppend {
    pub(super) changes: Vec<Change>,
    pub(super) drafts: Vec<ChangeDraft>,
}

/// How a commit failed.
pub(super) enum Failure {
    /// No space; the journal is as it was before.
    Full,
    /// Nothing is known about what is durable.
    Broken(Arc<FileError>),
    /// An entry has no JSON form; the journal is as it was before.
    Unwritable(String),
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure::Broken(Arc::new(error))
    }
}

struct Segment {
    file: Box<dyn DiskFile>,
    /// Where the next frame goes.
    end: u64,
    /// Zeros reach up to here.
    filled: u64,
    /// Whether its name is durable.
    named: bool,
}

/// Adds zeros.
fn fill(segment: &mut Segment, count: u64) -> FileResult<()> {
    let zeros = vec![0; usize::try_from(count).unwrap_or(0)];
    segment.file.write_at(segment.filled, &zeros)?;
    segment.filled += zeros.len() as u64;
    Ok(())
}

/// The open end of the journal.
pub(super) struct Journal {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    segment: Option<Segment>,
    next_seq: u64,
    /// Append-only files that an entry since the last checkpoint adds to.
    touched: BTreeSet<String>,
    /// Their lengths once every entry is materialised, for this checkpoint's span and the last one's.
    lengths: [BTreeMap<String, u64>; 2],
    /// How much a segment grows at a time.
    pub(super) growth: u64,
    /// The open records as the entries since the last checkpoint have them.
    written: WrittenRecords,
    /// Entries and bytes since the last checkpoint.
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// The path of the segment that begins with an entry.
pub(super) fn segment_path(first_seq: u64) -> String {
    format!("{}/{first_seq:020}.log", layout::JOURNAL)
}

impl Journal {
    /// An empty journal whose first entry will have the given sequence.
    pub(super) fn new(disk: Arc<dyn Disk>, root: PathBuf, next_seq: u64) -> Self {
        Self {
            disk,
            root,
            segment: None,
            next_seq,
            touched: BTreeSet::new(),
            lengths: [BTreeMap::new(), BTreeMap::new()],
            growth: GROWTH,
            written: WrittenRecords::default(),
            entries: 0,
            bytes: 0,
        }
    }

    /// The sequence of the next entry.
    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Makes a group of appends durable: the sequence of the first, and the entries.
    pub(super) fn commit(
        &mut self,
        batch: Vec<PreparedAppend>,
    ) -> Result<(u64, Vec<Entry>), Failure> {
        let outcome = self.commit_group(batch);
        if outcome.is_err() {
            // They may have been compared with what was not written.
            self.written.clear();
        }
        outcome
    }

    fn commit_group(&mut self, batch: Vec<PreparedAppend>) -> Result<(u64, Vec<Entry>), Failure> {
        let mut frame = vec![0; HEADER];
        let mut grown: BTreeMap<String, u64> = BTreeMap::new();
        let mut entries = Vec::with_capacity(batch.len());
        for (seq, PreparedAppend { changes, drafts }) in (self.next_seq..).zip(batch) {
            let base = self.measure(seq, &changes, &mut grown)?;
            push_line(&mut frame, seq, &base, drafts, &mut self.written)
                .map_err(|error| Failure::Unwritable(error.to_string()))?;
            entries.push(Entry { base, changes });
        }
        seal(&mut frame, self.next_seq);
        plug::point(Point::BeforeAppend);
        self.write(&frame)?;
        plug::point(Point::AfterSync);
        let first = self.next_seq;
        self.touched.extend(grown.keys().cloned());
        self.lengths[0].append(&mut grown);
        self.next_seq += entries.len() as u64;
        self.entries += entries.len() as u64;
        self.bytes += frame.len() as u64;
        Ok((first, entries))
    }

    /// Adds what an entry appends to the lengths; returns the lengths that it is the first to change.
    fn measure(
        &self,
        seq: u64,
        changes: &[Change],
        grown: &mut BTreeMap<String, u64>,
    ) -> Result<BTreeMap<String, u64>, Failure> {
        let mut base = BTreeMap::new();
        for change in changes {
            let Some(file) = layout::appended_file(change) else {
                continue;
            };
            let known = (grown.get(&file))
                .or_else(|| self.lengths[0].get(&file))
                .or_else(|| self.lengths[1].get(&file))
                .copied();
            let is_first = !self.touched.contains(&file) && !grown.contains_key(&file);
            let length = match known {
                Some(length) if !is_first => length,
                // Somebody may have written to it since; what is not in it yet will be.
                known => {
                    let there = match self.disk.len(&self.root.join(&file)) {
                        Ok(there) => there,
                        // It is put aside when it is written to.
                        Err(_) if layout::is_document(&file) => None,
                        Err(error) => return Err(error.into()),
                    };
                    there.unwrap_or(0).max(known.unwrap_or(0))
                }
            };
            if is_first {
                base.insert(file.clone(), length);
            }
            let added = match layout::targets(seq, change) {
                Ok(targets) => targets
                    .iter()
                    .map(|target| match target {
                        layout::Target::Append(_, text) => text.len() as u64,
                        layout::Target::File(..)
                        | layout::Target::Moved { .. }
                        | layout::Target::Gone(_) => 0,
                    })
                    .sum(),
                // It had a JSON form a moment ago, when it was queued.
                Err(_) => 0,
            };
            grown.insert(file, length + added);
        }
        Ok(base)
    }

    fn write(&mut self, frame: &[u8]) -> Result<(), Failure> {
        if self.segment.is_none() {
            let path = self.root.join(segment_path(self.next_seq));
            let file = match self.disk.create(&path) {
                Ok(file) => file,
                Err(error) if is_full(&error) => return Err(Failure::Full),
                Err(error) => return Err(error.into()),
            };
            self.segment = Some(Segment { file, end: 0, filled: 0, named: false });
        }
        let Some(segment) = &mut self.segment else {
            return Ok(());
        };
        let end = segment.end + frame.len() as u64;
        if end > segment.filled {
            let least = end - segment.filled + self.growth;
            // A busy segment grows in larger steps: each changes the file's size, which the file system
            // has to make durable in its own journal.
            let more = least + segment.filled.min(self.growth * 7);
            let outcome = match fill(segment, more) {
                Err(error) if is_full(&error) && more > least => fill(segment, least),
                outcome => outcome,
            };
            match outcome {
                Ok(()) => {}
                // Zeros behind the end mean nothing, however many of them there are.
                Err(error) if is_full(&error) => return Err(Failure::Full),
                Err(error) => return Err(error.into()),
            }
        }
        if let Err(error) = segment.file.write_at(segment.end, frame) {
            if !is_full(&error) {
                return Err(error.into());
            }
            // Part of the frame may be there: cut it, and go on in another file.
            segment.file.truncate(segment.end)?;
            segment.file.sync()?;
            self.segment = None;
            return Err(Failure::Full);
        }
        segment.file.sync()?;
        if !segment.named {
            self.disk.sync_dir(&self.root.join(layout::JOURNAL))?;
            segment.named = true;
        }
        segment.end = end;
        Ok(())
    }

    /// Ends the segment: what follows belongs to the span of the next checkpoint. `complete` says that
    /// the checkpoint before succeeded: lengths that are older than it can be read from the disk, because
    /// the files do not lie behind.
    pub(super) fn rotate(&mut self, complete: bool) {
        self.segment = None;
        self.touched.clear();
        self.written.clear();
        let [recent, older] = &mut self.lengths;
        if complete {
            older.clear();
        }
        older.append(recent);
        self.entries = 0;
        self.bytes = 0;
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full => StoreError::NoSpace,
            Failure::Broken(cause) => StoreError::Poisoned { cause },
            Failure::Unwritable(reason) => StoreError::Encode { reason },
        }
    }
}
