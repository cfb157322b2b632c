//! Where prepared environments are kept: a folder each, named after the digest of all that decides about it.
//!
//! One is never changed once it is there. What a change asked for that has not landed stays apart, in a folder of its
//! request, and nothing else is given it. Whoever uses one holds a lock on its folder, and so does what watches over an
//! agent that outlives the team: nothing is removed that somebody holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;
use crate::git::{GitError, Result, path_name};
use crate::platform::folder_lock::{FolderLock, hold, unused};
use crate::platform::{clock, files, ids};

const RECORD: &str = "environment.json";
const FILES: &str = "files";
const HOME: &str = "home";
const APART: &str = "apart";
const CACHE: &str = "cache";
/// How the name of a folder begins that is not whole, or not needed any more.
const PART: &str = ".part-";

/// Environments that are kept, and the bytes that they may have together; beyond, those go that were used longest
/// ago and that nobody uses. The last one stays however large it is.
const KEPT: usize = 12;
const KEPT_BYTES: u64 = 20_000_000_000;
/// Bytes that the cache of packages may have; it begins anew beyond.
const CACHE_BYTES: u64 = 10_000_000_000;
/// Where a file system knows no locks, what was used within this time may be in use.
const IN_USE: Duration = Duration::from_secs(24 * 60 * 60);

/// What is known of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentRecord {
    /// The name of its entry in the configuration.
    pub name: String,
    /// The command that made it.
    pub command: Vec<String>,
    /// The commit in whose files it was run.
    pub commit: String,
    /// When it was ready.
    pub made_at: Timestamp,
    /// How long that took, in milliseconds.
    pub duration_ms: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// What it left in the project's folder beside the files of the commit: the outermost paths.
    #[serde(with = "path_name::list")]
    pub made: Vec<PathBuf>,
}

/// A prepared environment, which stays where it is as long as this is held.
#[derive(Debug, Clone)]
pub struct PreparedEnvironment {
    /// The digest of all that decides about it.
    pub(super) key: String,
    /// What is known of it.
    pub(super) record: EnvironmentRecord,
    /// Whether it was made just now.
    pub(super) is_new: bool,
    folder: PathBuf,
    _hold: Arc<FolderLock>,
}

impl PreparedEnvironment {
    /// The folder that holds all of it, and that is locked as long as somebody uses it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it has in the project's folder.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.folder.join(FILES)
    }

    /// What it has in the home.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder.join(HOME)
    }
}

/// An environment as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptEnvironment {
    /// Where it lies.
    folder: PathBuf,
    /// What is known of it.
    pub record: EnvironmentRecord,
    /// When it was used last.
    pub used_at: SystemTime,
    /// The request whose change asked for it and has not landed.
    pub apart: Option<String>,
}

/// The folder with all of them.
#[derive(Debug, Clone)]
pub struct EnvironmentStore(PathBuf);

impl EnvironmentStore {
    /// The store in a folder.
    #[must_use]
    pub fn at(folder: &Path) -> EnvironmentStore {
        EnvironmentStore(folder.to_owned())
    }

    /// The environment of a key that somebody may be given, shared or of the folder `apart`, noted as used.
    pub(super) fn find(&self, key: &str, apart: &str) -> Result<Option<PreparedEnvironment>> {
        match self.shared(key)? {
            Some(found) => Ok(Some(found)),
            None => self.noted(key, self.apart(apart).join(key)),
        }
    }

    /// The environments of these keys; none where one of them is not there.
    ///
    /// # Errors
    /// Where the disk does.
    pub fn find_all(&self, keys: &[String], apart: &str) -> Result<Vec<PreparedEnvironment>> {
        let found: Result<Option<Vec<_>>> = keys.iter().map(|key| self.find(key, apart)).collect();
        Ok(found?.unwrap_or_default())
    }

    /// An environment that is everybody's.
    pub(super) fn shared(&self, key: &str) -> Result<Option<PreparedEnvironment>> {
        self.noted(key, self.0.join(key))
    }

    fn noted(&self, key: &str, folder: PathBuf) -> Result<Option<PreparedEnvironment>> {
        let Some(hold) = hold(&folder)? else { return Ok(None) };
        let Some(record) = read(&folder)? else { return Ok(None) };
        files::set_modified(&folder.join(RECORD), clock::now().into())?;
        let key = key.to_owned();
        Ok(Some(PreparedEnvironment { key, record, is_new: false, folder, _hold: hold.into() }))
    }

    /// A new folder to prepare one in, with its lock; to be removed by whoever asked for it.
    pub(super) fn begin(&self) -> Result<(PathBuf, FolderLock)> {
        loop {
            let part = self.0.join(format!("{PART}{}", ids::uuid_v7()));
            files::create_dir_all(&part)?;
            // Another process may have removed it before it was locked.
            if let Some(lock) = hold(&part)? {
                files::create_dir_all(&part.join(CACHE))?;
                return Ok((part, lock));
            }
        }
    }

    /// The cache of packages: the one of all, or, in the folder of what a change asks for, one that ends with it.
    pub(super) fn cache(&self, part: &Path, is_apart: bool) -> Result<PathBuf> {
        let cache = if is_apart { part.join(CACHE) } else { self.0.join(CACHE) };
        files::create_dir_all(&cache)?;
        Ok(cache)
    }

    /// Where the result is put together within such a folder.
    pub(super) fn result(part: &Path) -> (PathBuf, PathBuf) {
        let made = part.join("made");
        (made.join(FILES), made.join(HOME))
    }

    /// Makes what was put together in `part` the environment of a key, whole or not at all.
    pub(super) fn keep(
        &self,
        part: &Path,
        key: &str,
        record: EnvironmentRecord,
        apart: Option<&str>,
    ) -> Result<PreparedEnvironment> {
        let made = part.join("made");
        let text = serde_json::to_vec_pretty(&record)
            .map_err(|error| GitError::Interrupted { reason: error.to_string() })?;
        files::write(&made.join(RECORD), text)?;
        files::sync_filesystem(&made)?;
        let above = apart.map_or_else(|| self.0.clone(), |apart| self.apart(apart));
        files::create_dir_all(&above)?;
        let folder = above.join(key);
        let mut record = record;
        if let Err(error) = files::rename(&made, &folder) {
            // Another process may have been quicker.
            record = read(&folder)?.ok_or(error)?;
        }
        let gone = || GitError::Interrupted { reason: "it was removed at once".to_owned() };
        let hold = hold(&folder)?.ok_or_else(gone)?;
        self.trim()?;
        Ok(PreparedEnvironment {
            key: key.to_owned(),
            record,
            is_new: true,
            folder,
            _hold: hold.into(),
        })
    }

    fn apart(&self, name: &str) -> PathBuf {
        self.0.join(APART).join(name)
    }

    /// What a request's change asked for is for all once it has landed; else nobody needs it any more.
    ///
    /// # Errors
    /// Where the disk does.
    pub fn settle(&self, request: &str, has_landed: bool) -> Result<()> {
        let apart = self.apart(request);
        if has_landed {
            for folder in files::folders(&apart)? {
                let Some(key) = folder.file_name() else { continue };
                if read(&self.0.join(key))?.is_none() {
                    files::rename(&folder, &self.0.join(key))?;
                }
            }
        }
        Ok(files::remove_dir_all(&apart)?)
    }

    /// All of them, the ones used last first.
    ///
    /// # Errors
    /// Where the disk does.
    pub fn list(&self) -> Result<Vec<KeptEnvironment>> {
        let mut found = Vec::new();
        let name = |path: &Path| path.file_name().map(|it| it.to_string_lossy().into_owned());
        let mut folders: Vec<_> =
            files::folders(&self.0)?.into_iter().map(|it| (it, None)).collect();
        for request in files::folders(&self.0.join(APART))? {
            let apart = name(&request);
            folders.extend(files::folders(&request)?.into_iter().map(|it| (it, apart.clone())));
        }
        let is_whole = |(folder, _): &(PathBuf, Option<String>)| !is_part(folder);
        for (folder, apart) in folders.into_iter().filter(is_whole) {
            let Some(record) = read(&folder)? else { continue };
            let used = files::metadata(&folder.join(RECORD))?.modified();
            let used_at = used.unwrap_or(SystemTime::UNIX_EPOCH);
            found.push(KeptEnvironment { folder, record, used_at, apart });
        }
        found.sort_by_key(|one| std::cmp::Reverse(one.used_at));
        Ok(found)
    }

    /// Forgets the environment of a key, so that it is made anew.
    ///
    /// # Errors
    /// [`GitError::EnvironmentUsed`].
    pub(super) fn forget(&self, key: &str) -> Result<()> {
        let folder = self.0.join(key);
        if files::exists(&folder) {
            let name = read(&folder)?.map_or_else(|| key.to_owned(), |record| record.name);
            let lock = unused(&folder, || is_old(&folder))?;
            let _lock = lock.ok_or(GitError::EnvironmentUsed { name })?;
            self.set_aside(&folder)?;
        }
        self.remove_parts()
    }

    fn trim(&self) -> Result<()> {
        let cache = self.0.join(CACHE);
        let is_beyond = match size(&cache) {
            Ok(bytes) => bytes > CACHE_BYTES,
            // Somebody else may be at work in it; one that cannot be measured would grow for ever.
            Err(GitError::File(error)) => !error.is_missing(),
            Err(_) => false,
        };
        if is_beyond {
            self.set_aside(&cache)?;
        }
        let mut bytes = 0_u64;
        for (number, kept) in self.list()?.into_iter().enumerate() {
            bytes = bytes.saturating_add(kept.record.bytes);
            let is_beyond = number >= KEPT || (number > 0 && bytes > KEPT_BYTES);
            // Locked until it has another name: whoever comes meanwhile waits, and finds it gone.
            if is_beyond && let Some(_lock) = unused(&kept.folder, || is_old(&kept.folder))? {
                self.set_aside(&kept.folder)?;
            }
        }
        self.remove_parts()
    }

    /// Under another name nobody finds it half removed.
    fn set_aside(&self, folder: &Path) -> Result<()> {
        match files::rename(folder, &self.0.join(format!("{PART}{}", ids::uuid_v7()))) {
            Ok(()) => Ok(()),
            Err(error) if error.is_missing() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what a crash left half done, and what was set aside and nobody uses any more.
    fn remove_parts(&self) -> Result<()> {
        for folder in files::folders(&self.0)? {
            if is_part(&folder)
                && let Some(_lock) = unused(&folder, || is_old(&folder))?
            {
                files::remove_dir_all(&folder)?;
            }
        }
        Ok(())
    }
}

fn is_part(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PART))
}

/// Whether nothing was done with a folder for longer than any run takes.
fn is_old(folder: &Path) -> bool {
    let record = folder.join(RECORD);
    let at = if files::exists(&record) { &record } else { folder };
    let used = files::metadata(at).ok().and_then(|meta| meta.modified().ok());
    let age = used.and_then(|used| SystemTime::from(clock::now()).duration_since(used).ok());
    age.is_some_and(|age| age > IN_USE)
}

/// The record of a whole environment.
fn read(folder: &Path) -> Result<Option<EnvironmentRecord>> {
    let text = files::read_text_if_present(&folder.join(RECORD))?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Bytes of the files in a folder.
pub(super) fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0_u64;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in files::list(&folder)? {
            let meta = files::symlink_metadata(&path)?;
            if meta.is_dir() {
                folders.push(path)
            } else {
                bytes = bytes.saturating_add(meta.len())
            }
        }
    }
    Ok(bytes)
}
