//! The bytes of the journal. A frame is what one group commit wrote: it is whole or it is not there.
//!
//! `TJ`, the digit of the version, `\n`, length (u32), CRC-32 (u32), sequence of the first entry (u64), then one
//! JSON line an entry; numbers little-endian; the CRC covers version, sequence, length and lines. Frames follow
//! each other without gaps and zeros fill the segment. As a frame is written only after the one before it is
//! durable, only the last frame can be torn; a bad one with a good one after it is damage.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::images::{ChangeDraft, JournalChange, WrittenRecords};
use crate::domain::change::Change;

/// The version of frames and of the index that this build writes; it reads that and every older one.
pub(super) const VERSION: u32 = 5;
/// What a frame begins with, before the digit of its version.
const MAGIC: [u8; 2] = *b"TJ";
/// Bytes before the lines of a frame.
pub(super) const HEADER: usize = 20;
/// More than any batch that the writer makes; a longer length is not one of ours.
const MAX_LENGTH: usize = 1 << 30;

/// One append.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Lengths of append-only files before this entry, where it is the first since the checkpoint to
    /// add to them: replay cuts them to this.
    pub(super) base: BTreeMap<String, u64>,
    /// What it changes.
    pub(super) changes: Vec<Change>,
}

/// The line of an entry.
#[derive(Deserialize)]
pub(super) struct Line<C> {
    #[serde(default)]
    pub(super) base: BTreeMap<String, u64>,
    pub(super) changes: Vec<C>,
}

/// Appends the line of an entry: a [`Line`], written without a copy of what is in it.
pub(super) fn push_line(
    out: &mut Vec<u8>,
    seq: u64,
    base: &BTreeMap<String, u64>,
    drafts: Vec<ChangeDraft>,
    written: &mut WrittenRecords,
) -> serde_json::Result<()> {
    out.push(b'{');
    if !base.is_empty() {
        out.extend_from_slice(b"\"base\":");
        serde_json::to_writer(&mut *out, base)?;
        out.push(b',');
    }
    out.extend_from_slice(b"\"changes\":[");
    for (at, draft) in drafts.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        written.write(seq, draft, out)?;
    }
    out.extend_from_slice(b"]}\n");
    Ok(())
}

/// Reads the line of an entry from a frame of a version.
pub(super) fn read_line(version: u32, line: &[u8]) -> serde_json::Result<Line<JournalChange>> {
    if version > 1 {
        return serde_json::from_slice(line);
    }
    let Line { base, changes } = serde_json::from_slice::<Line<Value>>(line)?;
    let changes = changes.into_iter().map(|change| serde_json::from_value(of_version_1(change)));
    Ok(Line { base, changes: changes.collect::<Result<_, _>>()? })
}

/// A change as version 1 wrote it: each kind of record had a word for being saved and one for being gone.
fn of_version_1(change: Value) -> Value {
    let Some((word, content)) = change.as_object().and_then(|fields| fields.iter().next()) else {
        return change;
    };
    let gone = |kind: &str| serde_json::json!({"remove": {kind: content}});
    match word.as_str() {
        "event" | "sprint_event" | "channel" | "append" => change,
        "retire_request" => gone("request"),
        "retire_sprint" => gone("sprint"),
        "run_gone" => gone("run"),
        "effect_gone" => gone("effect"),
        "outgoing_gone" => gone("outgoing"),
        kind => serde_json::json!({"save": [kind, content]}),
    }
}

fn checksum(version: u32, seq: u64, lines: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    if version > 1 {
        hasher.update(&version.to_le_bytes());
    }
    hasher.update(&seq.to_le_bytes());
    hasher.update(&(lines.len() as u64).to_le_bytes());
    hasher.update(lines);
    hasher.finalize()
}

/// Fills in the header of a frame that was built behind [`HEADER`] empty bytes.
pub(super) fn seal(frame: &mut [u8], first_seq: u64) {
    let (header, lines) = frame.split_at_mut(HEADER);
    let length = u32::try_from(lines.len()).unwrap_or(u32::MAX);
    header[..2].copy_from_slice(&MAGIC);
    header[2] = b'0' + VERSION as u8;
    header[3] = b'\n';
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..12].copy_from_slice(&checksum(VERSION, first_seq, lines).to_le_bytes());
    header[12..20].copy_from_slice(&first_seq.to_le_bytes());
}

/// A good frame: its version, the sequence of its first entry and its lines.
pub(super) struct Frame<'a> {
    pub(super) version: u32,
    pub(super) first_seq: u64,
    pub(super) lines: &'a [u8],
}

/// The version that a frame says, where these bytes begin one.
fn version_of(bytes: &[u8]) -> Option<u32> {
    let digit = *bytes.get(2)?;
    let is_frame =
        bytes.starts_with(&MAGIC) && digit.is_ascii_digit() && bytes.get(3) == Some(&b'\n');
    is_frame.then(|| u32::from(digit - b'0'))
}

fn frame_at(bytes: &[u8], offset: usize) -> Option<Frame<'_>> {
    let rest = bytes.get(offset..)?;
    let header = rest.get(..HEADER)?;
    let version = version_of(header)?;
    let word = |at: usize| -> Option<[u8; 4]> { header.get(at..at + 4)?.try_into().ok() };
    let length = usize::try_from(u32::from_le_bytes(word(4)?)).ok()?;
    let crc = u32::from_le_bytes(word(8)?);
    let first_seq = u64::from_le_bytes(header.get(12..20)?.try_into().ok()?);
    if length > MAX_LENGTH {
        return None;
    }
    let lines = rest.get(HEADER..HEADER + length)?;
    (checksum(version, first_seq, lines) == crc).then_some(Frame { version, first_seq, lines })
}

/// What a segment holds.
pub(super) struct Scan<'a> {
    /// Up to the first bad one.
    pub(super) frames: Vec<Frame<'a>>,
    /// Where the good frames end.
    pub(super) end: usize,
    /// Bytes that are not zero stand behind the end: a frame that was being written.
    pub(super) torn: bool,
    /// A good frame is among them: what is bad was not being written, it is damaged.
    pub(super) has_good_behind: bool,
}

/// What a segment is filled up with.
const ZEROS: [u8; 4096] = [0; 4096];

/// Reads a segment.
pub(super) fn scan(bytes: &[u8]) -> Scan<'_> {
    let mut frames = Vec::new();
    let mut end = 0;
    while let Some(frame) = frame_at(bytes, end) {
        end += HEADER + frame.lines.len();
        frames.push(frame);
    }
    let rest = &bytes[end..];
    let torn = rest.chunks(ZEROS.len()).any(|part| part != &ZEROS[..part.len()]);
    let has_good_behind = torn && good_frame(rest).is_some();
    Scan { frames, end, torn, has_good_behind }
}

/// The first good frame behind a bad one, and where it ends.
fn good_frame(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    (1..bytes.len().saturating_sub(HEADER))
        .filter(|at| version_of(&bytes[*at..]).is_some())
        .find_map(|at| {
            let frame = frame_at(bytes, at)?;
            let end = at + HEADER + frame.lines.len();
            Some((frame, end))
        })
}

/// Every good frame of a segment, whatever is bad between them.
pub(super) fn good_frames(bytes: &[u8]) -> Vec<Frame<'_>> {
    let Scan { mut frames, end, .. } = scan(bytes);
    let mut rest = &bytes[end..];
    while let Some((frame, end)) = good_frame(rest) {
        frames.push(frame);
        rest = &rest[end..];
        // Those that follow it without a gap.
        let Scan { frames: more, end, .. } = scan(rest);
        frames.extend(more);
        rest = &rest[end..];
    }
    frames
}
