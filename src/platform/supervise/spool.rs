//! The spool files: written within their caps by the supervisor, read from an offset by the team.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::platform::files::{self, FileError, Result};

/// Bytes of the end that are kept where the middle is dropped.
const TAIL: usize = 64 << 10;
/// How many times the cap may be cut from lines that are too long before a program is ended for its output: of a line
/// without end too little is kept to reach the cap itself.
const MOST_CUT: u64 = 16;
/// Most bytes that one read returns.
const PIECE: u64 = 256 << 10;

/// What to do with a program that writes more to stdout than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCap {
    /// End it.
    Kill,
    /// Keep the beginning and the end, and say how much is missing between.
    Drop,
}

/// Reads a spool as it grows.
#[derive(Debug)]
pub struct SpoolReader {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
}

impl SpoolReader {
    /// Reads the file from its beginning.
    #[must_use]
    pub fn new(path: PathBuf) -> SpoolReader {
        SpoolReader { path, file: None, offset: 0 }
    }

    /// What was written since the last call, at most 256 KiB; empty where there is nothing new yet, or no spool because
    /// the program never began.
    pub fn read(&mut self) -> Result<Vec<u8>> {
        let file = match &mut self.file {
            Some(file) => file,
            None if !files::exists(&self.path) => return Ok(Vec::new()),
            None => self.file.insert(files::open(&self.path)?),
        };
        let mut piece = Vec::new();
        let read = file
            .seek(SeekFrom::Start(self.offset))
            .and_then(|_| file.take(PIECE).read_to_end(&mut piece));
        let read =
            read.map_err(|source| FileError { action: "read", path: self.path.clone(), source })?;
        self.offset = self.offset.saturating_add(read as u64);
        Ok(piece)
    }
}

/// Whether more may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpoolSpace {
    Left,
    Full,
}

/// Writes a spool within its caps.
pub(super) struct SpoolWriter {
    file: File,
    on_cap: OnCap,
    max_line: u64,
    max_total: u64,
    line: u64,
    written: u64,
    tail: VecDeque<u8>,
    over: u64,
    cut_from_lines: u64,
}

impl SpoolWriter {
    pub(super) fn new(file: File, on_cap: OnCap, max_line: u64, max_total: u64) -> SpoolWriter {
        SpoolWriter {
            file,
            on_cap,
            max_line,
            max_total,
            line: 0,
            written: 0,
            tail: VecDeque::new(),
            over: 0,
            cut_from_lines: 0,
        }
    }

    /// Takes the next bytes; `Full` where the program has to be ended.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<SpoolSpace> {
        let mut kept = Vec::with_capacity(bytes.len());
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ends = part.last() == Some(&b'\n');
            let text = part.len() - usize::from(ends);
            let room = usize::try_from(self.max_line.saturating_sub(self.line)).unwrap_or(text);
            let fits = room.min(text);
            kept.extend_from_slice(&part[..fits]);
            self.cut_from_lines += (text - fits) as u64;
            self.line += text as u64;
            if ends {
                kept.push(b'\n');
                self.line = 0;
            }
        }
        let room = self.max_total.saturating_sub(self.written);
        let fits = usize::try_from(room).unwrap_or(kept.len()).min(kept.len());
        self.file.write_all(&kept[..fits])?;
        self.written += fits as u64;
        let rest = &kept[fits..];
        let is_endless = self.cut_from_lines > self.max_total.saturating_mul(MOST_CUT);
        if rest.is_empty() && !is_endless {
            return Ok(SpoolSpace::Left);
        }
        self.over += rest.len() as u64;
        match self.on_cap {
            OnCap::Kill => Ok(SpoolSpace::Full),
            OnCap::Drop => {
                self.tail.extend(rest);
                let surplus = self.tail.len().saturating_sub(TAIL);
                self.tail.drain(..surplus);
                Ok(SpoolSpace::Left)
            }
        }
    }

    /// Writes the kept end, makes the file durable where that is wanted and says how many bytes are missing.
    pub(super) fn finish(mut self, durable: bool) -> io::Result<u64> {
        let lost = self.over - self.tail.len() as u64;
        if lost > 0 && self.on_cap == OnCap::Drop {
            write!(self.file, "\n[{lost} bytes dropped]\n")?;
        }
        let (front, back) = self.tail.as_slices();
        self.file.write_all(front)?;
        self.file.write_all(back)?;
        if durable {
            self.file.sync_data()?;
        }
        Ok(lost + self.cut_from_lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(
        on_cap: OnCap,
        max_line: u64,
        max_total: u64,
        pieces: &[&str],
    ) -> (SpoolSpace, u64, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let mut writer =
            SpoolWriter::new(files::open_append(&path).unwrap(), on_cap, max_line, max_total);
        let mut room = SpoolSpace::Left;
        for piece in pieces {
            room = writer.push(piece.as_bytes()).unwrap();
        }
        let dropped = writer.finish(true).unwrap();
        (room, dropped, files::read_text(&path).unwrap())
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let (room, dropped, text) = spool(OnCap::Kill, 4, 100, &["abc", "def\nxy", "\n"]);
        assert_eq!((room, dropped, text.as_str()), (SpoolSpace::Left, 2, "abcd\nxy\n"));
    }

    #[test]
    fn the_total_cap_ends_or_drops() {
        let (room, dropped, text) = spool(OnCap::Kill, 100, 4, &["abcdef"]);
        assert_eq!((room, dropped, text.as_str()), (SpoolSpace::Full, 2, "abcd"));
        // A line without end never comes to the cap.
        let endless = ["abcdefgh"; 9];
        let (room, dropped, text) = spool(OnCap::Kill, 2, 4, &endless);
        assert_eq!((room, dropped, text.as_str()), (SpoolSpace::Full, 70, "ab"));
        let (room, ..) = spool(OnCap::Drop, 2, 4, &endless);
        assert_eq!(room, SpoolSpace::Left);
        let long = "x".repeat(TAIL) + "end";
        let (room, dropped, text) = spool(OnCap::Drop, 1 << 20, 4, &["head", "gone", &long]);
        assert_eq!((room, dropped), (SpoolSpace::Left, 7));
        assert!(text.starts_with("head\n[7 bytes dropped]\nxxx") && text.ends_with("xend"));
    }
}
