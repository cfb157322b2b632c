//! The bytes of the journal. A frame is what one group commit wrote: it is whole or it is not there.
//!
//! `TJ1\n`, length (u32), CRC-32 (u32), sequence of the first entry (u64), then one JSON line an entry;
//! numbers little-endian; the CRC covers sequence, length and lines. Frames follow each other without
//! gaps and zeros fill the segment. As a frame is written only after the one before it is durable, only
//! the last frame can be torn; a bad one with a good one after it is damage.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::change::Change;

const MAGIC: [u8; 4] = *b"TJ1\n";
/// Bytes before the lines of a frame.
pub(super) const HEADER: usize = 20;
/// More than any batch that the writer makes; a longer length is not one of ours.
const MAX_LENGTH: usize = 1 << 30;

/// One append.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Lengths of append-only files before this entry, where it is the first since the checkpoint to
    /// add to them: replay cuts them to this.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) base: BTreeMap<String, u64>,
    /// What it changes.
    pub(super) changes: Vec<Change>,
}

/// Appends the line of an entry whose changes are already JSON.
pub(super) fn push_line(out: &mut Vec<u8>, base: &BTreeMap<String, u64>, changes: &[u8]) {
    out.push(b'{');
    if !base.is_empty() {
        out.extend_from_slice(b"\"base\":");
        // A map of strings and numbers always has a JSON form.
        out.extend_from_slice(serde_json::json!(base).to_string().as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(b"\"changes\":");
    out.extend_from_slice(changes);
    out.extend_from_slice(b"}\n");
}

fn checksum(seq: u64, lines: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&seq.to_le_bytes());
    hasher.update(&(lines.len() as u64).to_le_bytes());
    hasher.update(lines);
    hasher.finalize()
}

/// Fills in the header of a frame that was built behind [`HEADER`] empty bytes.
pub(super) fn seal(frame: &mut [u8], first_seq: u64) {
    let (header, lines) = frame.split_at_mut(HEADER);
    let length = u32::try_from(lines.len()).unwrap_or(u32::MAX);
    header[..4].copy_from_slice(&MAGIC);
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..12].copy_from_slice(&checksum(first_seq, lines).to_le_bytes());
    header[12..20].copy_from_slice(&first_seq.to_le_bytes());
}

/// A good frame: the sequence of its first entry and its lines.
pub(super) struct Frame<'a> {
    pub(super) first_seq: u64,
    pub(super) lines: &'a [u8],
}

fn frame_at(bytes: &[u8], offset: usize) -> Option<Frame<'_>> {
    let rest = bytes.get(offset..)?;
    let header = rest.get(..HEADER)?;
    if header[..4] != MAGIC {
        return None;
    }
    let word = |at: usize| -> Option<[u8; 4]> { header.get(at..at + 4)?.try_into().ok() };
    let length = usize::try_from(u32::from_le_bytes(word(4)?)).ok()?;
    let crc = u32::from_le_bytes(word(8)?);
    let first_seq = u64::from_le_bytes(header.get(12..20)?.try_into().ok()?);
    if length > MAX_LENGTH {
        return None;
    }
    let lines = rest.get(HEADER..HEADER + length)?;
    (checksum(first_seq, lines) == crc).then_some(Frame { first_seq, lines })
}

/// What a segment holds.
pub(super) struct Scan<'a> {
    pub(super) frames: Vec<Frame<'a>>,
    /// Where the good frames end.
    pub(super) end: usize,
    /// Bytes that are not zero stand behind the end: a frame that was being written.
    pub(super) torn: bool,
}

/// Reads a segment. `Err` is the offset of a bad frame that has a good one after it.
pub(super) fn scan(bytes: &[u8]) -> Result<Scan<'_>, usize> {
    let mut frames = Vec::new();
    let mut end = 0;
    while let Some(frame) = frame_at(bytes, end) {
        end += HEADER + frame.lines.len();
        frames.push(frame);
    }
    let rest = &bytes[end..];
    let torn = rest.iter().any(|byte| *byte != 0);
    if torn {
        let later = (1..rest.len().saturating_sub(HEADER))
            .filter(|at| rest[*at..].starts_with(&MAGIC))
            .any(|at| frame_at(rest, at).is_some());
        if later {
            return Err(end);
        }
    }
    Ok(Scan { frames, end, torn })
}
