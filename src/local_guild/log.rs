//! The guild's disk: a log of changes, one JSON line a request, and a folder of files.
//!
//! A line is written and synced before its request is answered. A torn last line (the process or the
//! machine died while writing it) was never answered, so it is cut; damage before the end refuses to
//! open, because cutting there would lose what was answered.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use serde::de::IgnoredAny;

use super::error::GuildError;
use super::ids::Snowflakes;
use super::state::{Change, State};
use crate::platform::{clock, files, machine};

/// Lines beyond the size of the state at which opening rewrites the log.
const SLACK_LINES: usize = 2_000;

/// Bytes that a log may grow by, beyond what it was when it was written anew, until that is done again.
const SLACK_BYTES: u64 = 64 << 20;

/// The append side. Without a folder nothing is kept.
#[derive(Debug, Default)]
pub(crate) struct Log {
    file: Option<File>,
    path: PathBuf,
    /// Held while the log is open, so that two servers never share a folder.
    lock: Option<File>,
    /// Its length, and the length at which it is written anew.
    bytes: u64,
    most: u64,
    broken: bool,
}

impl Log {
    /// Opens the log in `dir`, replaying it into a state.
    pub(crate) fn open(
        dir: Option<&Path>,
        ids: &mut Snowflakes,
    ) -> Result<(Log, State), GuildError> {
        let mut state = State::default();
        let Some(dir) = dir else {
            return Ok((Log::default(), state));
        };
        // What is in it speaks for everybody here; a folder that was there is not ours to close.
        let is_new = !files::exists(dir);
        files::create_dir_all(dir)?;
        if is_new {
            files::set_mode(dir, 0o700)?;
        }
        let lock = files::open_append(&dir.join("guild.lock"))?;
        if lock.try_lock().is_err() {
            let by = machine::lock_holders(&dir.join("guild.lock"));
            return Err(GuildError::Busy { dir: dir.to_owned(), by });
        }
        let path = dir.join("guild.jsonl");
        let text = files::read_if_present(&path)?.unwrap_or_default();
        let (lines, good) = replay(&text, &mut state, ids)?;
        let file = files::open_append(&path)?;
        files::set_mode(&path, 0o600)?;
        if good < text.len() {
            tracing::warn!(bytes = text.len() - good, "cut a torn line off the guild's log");
            file.set_len(good as u64).map_err(GuildError::Log)?;
            file.sync_data().map_err(GuildError::Log)?;
        }
        let mut log =
            Log { file: Some(file), path, lock: Some(lock), bytes: good as u64, ..Log::default() };
        state.forget_interactions(clock::now());
        log.most = log.bytes * 2 + SLACK_BYTES;
        if lines > state.snapshot().len() + SLACK_LINES
            && let Err(error) = log.rewrite(&state)
        {
            // Such as on a full disk: what there is, is whole, and only longer than it has to be.
            tracing::warn!(%error, "the guild's log stays as long as it is");
            if log.broken {
                return Err(error);
            }
        }
        files::sync_dir(dir)?;
        Ok((log, state))
    }

    /// Whether most of the log tells what is no more.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes > self.most
    }

    /// Writes the log anew, with what makes the state and no more. Where that fails, the old one stays and is
    /// left alone until it has grown once more by as much.
    pub(crate) fn rewrite(&mut self, state: &State) -> Result<(), GuildError> {
        self.most = self.bytes * 2 + SLACK_BYTES;
        let mut written = Vec::new();
        for change in state.snapshot() {
            encode(std::slice::from_ref(&change), &mut written)?;
        }
        let length = written.len() as u64;
        let put = files::write_private_durable(&self.path, written);
        let opened = files::open_append(&self.path);
        // Nothing is written any more into a file that has lost its name.
        let inode = |file: &File| file.metadata().map(|it| it.ino()).ok();
        let is_same = match (&opened, &self.file) {
            (Ok(opened), Some(file)) => inode(opened) == inode(file),
            (_, _) => false,
        };
        self.broken |= !is_same && (put.is_err() || opened.is_err());
        self.file = Some(opened?);
        put?;
        self.bytes = length;
        self.most = self.bytes * 2 + SLACK_BYTES;
        Ok(())
    }

    /// Ends the log: nothing is accepted any more, and another server may open the folder.
    pub(crate) fn close(&mut self) {
        self.broken = true;
        self.file = None;
        if let Some(lock) = self.lock.take() {
            // A process that is being spawned holds a copy of the open file for an instant.
            let _ = lock.unlock();
        }
    }

    /// Makes changes durable. Where there is no room for them, nothing of them is kept, and there may be room later.
    /// After any other failure the log accepts nothing more: what the disk holds is then unknown, and a sync is not to
    /// be tried twice.
    pub(crate) fn append(&mut self, changes: &[Change]) -> Result<(), GuildError> {
        if self.broken {
            let error = std::io::Error::other("closed, or an earlier write failed");
            return Err(GuildError::Log(error));
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut line = Vec::new();
        encode(changes, &mut line)?;
        if let Err(error) = file.write_all(&line) {
            let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            if is_full && file.set_len(self.bytes).is_ok() {
                return Err(GuildError::NoSpace);
            }
            self.broken = true;
            return Err(GuildError::Log(error));
        }
        let synced = file.sync_data();
        self.broken = synced.is_err();
        self.bytes += line.len() as u64;
        synced.map_err(GuildError::Log)
    }
}

fn encode(changes: &[Change], into: &mut Vec<u8>) -> Result<(), GuildError> {
    serde_json::to_writer(&mut *into, changes).map_err(|error| GuildError::Log(error.into()))?;
    into.push(b'\n');
    Ok(())
}

/// Applies every whole line; returns their number and the length they take.
fn replay(
    text: &[u8],
    state: &mut State,
    ids: &mut Snowflakes,
) -> Result<(usize, usize), GuildError> {
    let (mut lines, mut good) = (0, 0);
    while let Some(length) = text[good..].iter().position(|byte| *byte == b'\n') {
        let line = &text[good..good + length];
        let end = good + length + 1;
        let changes: Vec<Change> = match serde_json::from_slice(line) {
            Ok(changes) => changes,
            // Torn, or made by a later build than this.
            Err(_) if end == text.len() && serde_json::from_slice::<IgnoredAny>(line).is_err() => {
                break;
            }
            Err(error) => {
                return Err(GuildError::Damaged { line: lines + 1, reason: error.to_string() });
            }
        };
        for change in changes {
            state.apply(change, ids);
        }
        lines += 1;
        good = end;
    }
    Ok((lines, good))
}

/// Bytes of attachments and avatars, by key.
#[derive(Debug)]
pub(crate) struct Blobs {
    dir: Option<PathBuf>,
    memory: Mutex<HashMap<String, Bytes>>,
}

impl Blobs {
    /// Blobs under `dir`, or in memory.
    pub(crate) fn open(dir: Option<&Path>) -> Result<Blobs, GuildError> {
        let dir = dir.map(|dir| dir.join("files"));
        if let Some(dir) = &dir {
            files::create_dir_all(dir)?;
            files::set_mode(dir, 0o700)?;
        }
        Ok(Blobs { dir, memory: Mutex::default() })
    }

    /// Keeps bytes, durable on return. Keys are ids and digests of our own making.
    pub(crate) fn put(&self, key: &str, bytes: Bytes) -> Result<(), GuildError> {
        match &self.dir {
            Some(dir) => files::write_private_durable(&dir.join(key), &bytes)?,
            None => {
                let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
                memory.insert(key.to_owned(), bytes);
            }
        }
        Ok(())
    }

    /// Removes what has a key that is not among these. Other files that lie there are somebody else's.
    pub(crate) fn keep(&self, keys: &BTreeSet<String>) {
        let Some(dir) = &self.dir else { return };
        for path in files::list(dir).unwrap_or_default() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_id = name.len() <= 20 && name.bytes().all(|it| it.is_ascii_digit());
            let is_digest = name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit());
            let is_file = files::symlink_metadata(&path).is_ok_and(|it| it.is_file());
            if (is_id || is_digest) && is_file && !keys.contains(name.as_ref()) {
                self.remove(&name);
            }
        }
    }

    /// Removes what nothing shows.
    pub(crate) fn remove(&self, key: &str) {
        match &self.dir {
            Some(dir) => {
                if let Err(error) = files::remove_file(&dir.join(key)) {
                    tracing::warn!(%error, "a file that nothing shows stays");
                }
            }
            None => {
                self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
            }
        }
    }

    /// The bytes of a key, if it exists.
    pub(crate) fn get(&self, key: &str) -> Option<Bytes> {
        if !key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        match &self.dir {
            Some(dir) => files::read(&dir.join(key)).ok().map(Bytes::from),
            None => {
                let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
                memory.get(key).cloned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_guild::model::Role;
    use crate::platform::clock;

    fn role(ids: &mut Snowflakes, name: &str) -> Change {
        Change::Role(Role {
            id: ids.next(clock::now()),
            name: name.to_owned(),
            color: 0,
            position: 1,
            mentionable: true,
            hoist: false,
            permissions: 0,
            managed: None,
        })
    }

    fn written(dir: &Path, names: &[&str]) -> Vec<u8> {
        let mut ids = Snowflakes::default();
        let (mut log, _) = Log::open(Some(dir), &mut ids).unwrap();
        for name in names {
            let change = role(&mut ids, name);
            log.append(&[change]).unwrap();
        }
        files::read(&dir.join("guild.jsonl")).unwrap()
    }

    fn names(dir: &Path) -> Result<Vec<String>, GuildError> {
        let (_, state) = Log::open(Some(dir), &mut Snowflakes::default())?;
        Ok(state.roles.into_values().map(|role| role.name).collect())
    }

    #[test]
    fn a_log_cut_anywhere_in_its_last_line_opens_without_that_line() {
        let dir = tempfile::tempdir().unwrap();
        let whole = written(dir.path(), &["one", "two"]);
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in first..whole.len() {
            files::write(&dir.path().join("guild.jsonl"), &whole[..cut]).unwrap();
            assert_eq!(names(dir.path()).unwrap(), ["one"], "cut at {cut}");
        }
        files::write(&dir.path().join("guild.jsonl"), &whole).unwrap();
        assert_eq!(names(dir.path()).unwrap(), ["one", "two"]);
    }

    #[test]
    fn what_a_later_build_wrote_is_not_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let mut whole = written(dir.path(), &["one"]);
        whole.extend(b"[{\"c\":\"of_tomorrow\",\"v\":1}]\n");
        files::write(&dir.path().join("guild.jsonl"), &whole).unwrap();
        assert!(matches!(names(dir.path()), Err(GuildError::Damaged { line: 2, .. })));
        assert_eq!(files::read(&dir.path().join("guild.jsonl")).unwrap(), whole);
    }

    #[test]
    fn a_log_that_has_grown_is_written_anew_and_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut ids = Snowflakes::default();
        let (mut log, mut state) = Log::open(Some(dir.path()), &mut ids).unwrap();
        let one = role(&mut ids, "one");
        for _ in 0..3 {
            log.append(std::slice::from_ref(&one)).unwrap();
            state.apply(one.clone(), &mut ids);
        }
        assert!(!log.is_long());
        log.most = 1;
        assert!(log.is_long());
        log.rewrite(&state).unwrap();
        assert!(!log.is_long());
        log.append(&[role(&mut ids, "two")]).unwrap();
        drop(log);
        let text = files::read_text(&dir.path().join("guild.jsonl")).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert_eq!(names(dir.path()).unwrap(), ["one", "two"]);
    }

    #[test]
    fn files_that_nothing_shows_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(Some(dir.path())).unwrap();
        for key in ["12", "34"] {
            blobs.put(key, Bytes::from_static(b"x")).unwrap();
        }
        let other = dir.path().join("files/of a person.txt");
        files::write(&other, "x").unwrap();
        blobs.keep(&BTreeSet::from(["34".to_owned()]));
        assert!(files::exists(&other));
        assert_eq!((blobs.get("12"), blobs.get("34")), (None, Some(Bytes::from_static(b"x"))));
    }

    #[test]
    fn damage_before_the_end_is_refused_by_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut whole = written(dir.path(), &["one", "two"]);
        whole[0] = b'x';
        files::write(&dir.path().join("guild.jsonl"), &whole).unwrap();
        assert!(matches!(names(dir.path()), Err(GuildError::Damaged { line: 1, .. })));
    }

    #[test]
    fn a_folder_has_one_server() {
        let dir = tempfile::tempdir().unwrap();
        let (_held, _) = Log::open(Some(dir.path()), &mut Snowflakes::default()).unwrap();
        let second = Log::open(Some(dir.path()), &mut Snowflakes::default());
        assert!(matches!(second, Err(GuildError::Busy { .. })));
    }
}
