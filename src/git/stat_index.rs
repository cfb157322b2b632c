//! What a look at a folder's files found, so that the next look need not read the files again.
//!
//! The format is that of git's own index (version 2), with what the entries rest on in an extension. A file is
//! taken for what it was while size, inode, time of modification and time of change are the same: the last of
//! these nobody can set. A file that was changed in the moment of the look itself has no times here, and is
//! read again the next time. The index itself bears the time of the look: the git program, to which an index is
//! given with these entries, compares whole seconds, and reads what changed in the second of its index.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use git2::Oid;
use sha1::{Digest as _, Sha1};

use super::Result;
use super::tracked::mode_of_today;
use crate::platform::files;

/// The signature of our extension. A capital letter in front means that a reader may pass it over.
const OURS: &[u8; 4] = b"TEAM";
/// Bytes of an entry before its path.
const FIXED: usize = 62;
/// Bytes of an object id, and of the checksum at the end.
const ID: usize = 20;

/// What the file system says of a file, cut to what the format holds. All zero means: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stat {
    ctime: [u32; 2],
    mtime: [u32; 2],
    inode: u32,
    size: u32,
    /// Device, user and group: only for git's use.
    owner: [u32; 3],
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the format cuts them")]
impl Stat {
    pub(super) fn of(meta: &Metadata) -> Stat {
        Stat {
            ctime: [meta.ctime() as u32, meta.ctime_nsec() as u32],
            mtime: [meta.mtime() as u32, meta.mtime_nsec() as u32],
            inode: meta.ino() as u32,
            size: meta.size() as u32,
            owner: [meta.dev() as u32, meta.uid(), meta.gid()],
        }
    }

    /// Whether a file with these marks has not been touched since they were taken.
    pub(super) fn is_still(&self, now: &Stat) -> bool {
        self.is_known() && Stat { owner: now.owner, ..*self } == *now
    }

    pub(super) fn is_known(&self) -> bool {
        *self != Stat::default()
    }
}

/// A file as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its content as git stores it.
    pub(super) id: Oid,
    /// Its kind as git stores it.
    pub(super) mode: u32,
    /// By what it is known again.
    pub(super) stat: Stat,
}

/// All files of a folder.
#[derive(Debug, Default)]
pub(super) struct StatIndex {
    /// Digest of everything beside the files that their entries rest on.
    pub(super) rests_on: [u8; 32],
    pub(super) entries: BTreeMap<Vec<u8>, Entry>,
}

impl StatIndex {
    /// The index at `path`; an empty one where it is not there, not whole, or not ours.
    pub(super) fn read(path: &Path) -> StatIndex {
        files::read(path).ok().and_then(|bytes| parse(&bytes)).unwrap_or_default()
    }

    /// Replaces the index at `path` by that of a look at a moment, in seconds and nanoseconds of the file system's
    /// clock. Its loss would only cost time, so nothing is synced.
    pub(super) fn write(&self, path: &Path, moment: (i64, i64)) -> Result<()> {
        let mut bytes = body(self.entries.iter().map(|(path, entry)| (&**path, *entry)));
        bytes.extend(OURS);
        bytes.extend(32_u32.to_be_bytes());
        bytes.extend(self.rests_on);
        let part = |value: i64| u64::try_from(value).unwrap_or_default();
        let moment = Duration::from_secs(part(moment.0)) + Duration::from_nanos(part(moment.1));
        Ok(files::write_atomic_dated(path, sealed(bytes), SystemTime::UNIX_EPOCH + moment)?)
    }

    /// An index for the git program, of files that have these ids and modes; what is known of them here comes along.
    pub(super) fn for_git(&self, files: impl Iterator<Item = (Vec<u8>, Oid, u32)>) -> Vec<u8> {
        let all: Vec<_> = files
            .map(|(path, id, mode)| {
                let same = |entry: &&Entry| entry.id == id && entry.mode == mode;
                let stat = self.entries.get(&path).filter(same).map(|entry| entry.stat);
                (path, Entry { id, mode, stat: stat.unwrap_or_default() })
            })
            .collect();
        sealed(body(all.iter().map(|(path, entry)| (&**path, *entry))))
    }
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = Sha1::digest(&bytes);
    bytes.extend(sum);
    bytes
}

fn body<'a>(entries: impl Iterator<Item = (&'a [u8], Entry)>) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02\0\0\0\0".to_vec();
    let mut count = 0_u32;
    for (path, Entry { id, mode, stat }) in entries {
        count += 1;
        let [device, user, group] = stat.owner;
        let [changed, written] = [stat.ctime, stat.mtime];
        let start = bytes.len();
        for field in
            [changed, written, [device, stat.inode], [mode, user], [group, stat.size]].concat()
        {
            bytes.extend(field.to_be_bytes());
        }
        bytes.extend(id.as_bytes());
        bytes.extend(u16::try_from(path.len()).unwrap_or(0xfff).min(0xfff).to_be_bytes());
        bytes.extend(path);
        // One to eight zeros, so that the next entry begins at a multiple of eight.
        let length = bytes.len() - start;
        bytes.resize(start + (length / 8 + 1) * 8, 0);
    }
    bytes[8..12].copy_from_slice(&count.to_be_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Option<StatIndex> {
    let (bytes, sum) = bytes.split_at_checked(bytes.len().checked_sub(ID)?)?;
    if Sha1::digest(bytes).as_slice() != sum || bytes.get(..8)? != b"DIRC\0\0\0\x02" {
        return None;
    }
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let mut index = StatIndex::default();
    let mut at = 12;
    for _ in 0..number(8)? {
        let field = |nth: usize| number(at + nth * 4);
        let stat = Stat {
            ctime: [field(0)?, field(1)?],
            mtime: [field(2)?, field(3)?],
            inode: field(5)?,
            size: field(9)?,
            owner: [field(4)?, field(7)?, field(8)?],
        };
        let id = Oid::from_bytes(bytes.get(at + 40..at + 40 + ID)?).ok()?;
        let rest = bytes.get(at + FIXED..)?;
        let path = rest.get(..rest.iter().position(|byte| *byte == 0)?)?;
        let mode = mode_of_today(field(6)?);
        index.entries.insert(path.to_vec(), Entry { id, mode, stat });
        at += ((FIXED + path.len()) / 8 + 1) * 8;
    }
    let ours = bytes.get(at..)?;
    if ours.get(..8)? != [OURS.as_slice(), &32_u32.to_be_bytes()].concat() {
        return None;
    }
    index.rests_on = ours.get(8..)?.try_into().ok()?;
    Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seed: u32) -> Entry {
        let stat = Stat { ctime: [seed, 1], mtime: [seed, 2], inode: 3, size: 4, owner: [5, 6, 7] };
        Entry { id: Oid::from_bytes(&[9; 20]).unwrap(), mode: 0o100_644, stat }
    }

    #[test]
    fn an_index_is_read_as_it_was_written_and_a_torn_one_is_none() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("index");
        let names = [&b"a"[..], b"a/b", b"new\nline", b"odd\xff", &[b'x'; 5_000]];
        let entries = names.iter().map(|name| (name.to_vec(), entry(8))).collect();
        let index = StatIndex { rests_on: [4; 32], entries };
        index.write(&path, (1_000, 5)).unwrap();
        let written = files::metadata(&path).unwrap();
        assert_eq!((written.mtime(), written.mtime_nsec()), (1_000, 5));
        let again = StatIndex::read(&path);
        assert_eq!((again.rests_on, &again.entries), (index.rests_on, &index.entries));
        let whole = files::read(&path).unwrap();
        for cut in [0, 1, 30, whole.len() - 1] {
            files::write(&path, &whole[..cut]).unwrap();
            assert!(StatIndex::read(&path).entries.is_empty(), "{cut}");
        }
        let mut bent = whole;
        bent[20] ^= 1;
        files::write(&path, bent).unwrap();
        assert!(StatIndex::read(&path).entries.is_empty());
    }

    #[test]
    fn a_file_is_known_again_by_every_mark_and_never_without() {
        let known = entry(8).stat;
        assert!(known.is_still(&known));
        for other in [
            Stat { ctime: [8, 2], ..known },
            Stat { mtime: [9, 2], ..known },
            Stat { inode: 4, ..known },
            Stat { size: 5, ..known },
        ] {
            assert!(!known.is_still(&other), "{other:?}");
        }
        assert!(known.is_still(&Stat { owner: [0; 3], ..known }));
        assert!(!Stat::default().is_still(&Stat::default()));
    }
}
