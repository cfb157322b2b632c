//! The machine's disk, rehearsing a power failure: when the plug is pulled ([`plug`]), it writes down
//! which of the store's files were not synced, and of these which a seed lets come through.
//!
//! `kill -9` alone leaves the page cache, and with it whatever was written. With
//! `TEAMS_FORGETFUL_DISK=<seed>:<file>` beside `TEAMS_PULL_PLUG`, `<file>` says what a power failure would
//! have left, and [`apply`] makes it so once the process is gone: a dying process must not see files come
//! back. Only the files that the store writes are forgotten; what stands there at the start counts as
//! durable.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::platform::disk::{Disk, DiskFile, FileLock, Node, RealDisk};
use crate::platform::files::{self, Result};
use crate::platform::plug;
use crate::platform::sim_disk::SimDisk;

/// The variable with the seed and the file for what is left.
pub const FORGET_VARIABLE: &str = "TEAMS_FORGETFUL_DISK";

/// The disk of this process: the real one, forgetful where [`FORGET_VARIABLE`] says so.
#[must_use]
pub fn disk() -> Arc<dyn Disk> {
    let order = std::env::var(FORGET_VARIABLE).ok();
    let order = order.as_deref().and_then(|text| text.split_once(':'));
    let Some((Ok(seed), file)) = order.map(|(seed, file)| (seed.parse(), PathBuf::from(file)))
    else {
        return Arc::new(RealDisk);
    };
    let disk = ForgetfulDisk::default();
    let dying = disk.clone();
    plug::before_death(Box::new(move || {
        let left = serde_json::to_vec(&dying.forget(seed)).unwrap_or_default();
        // There is nobody to tell; whoever applies it finds nothing.
        let _ = files::write(&file, left);
    }));
    Arc::new(disk)
}

/// What a power failure leaves of one file: its bytes, or nothing.
type FileAfterCrash = (PathBuf, Option<Vec<u8>>);

/// Puts the files back to what was left, as a process that is gone by now has written it down.
pub fn apply(file: &Path) -> Result<()> {
    let left: Vec<FileAfterCrash> = serde_json::from_slice(&files::read(file)?).unwrap_or_default();
    for (path, bytes) in left {
        match bytes {
            Some(bytes) => files::write(&path, bytes)?,
            None => files::remove_file(&path)?,
        }
    }
    files::remove_file(file)
}

/// The real disk with a model beside it that knows what is durable.
#[derive(Clone, Default)]
struct ForgetfulDisk {
    model: SimDisk,
    /// Paths that the model was told about; the lock keeps disk and model in step.
    known: Arc<Mutex<BTreeSet<PathBuf>>>,
}

type KnownPaths<'a> = MutexGuard<'a, BTreeSet<PathBuf>>;

impl ForgetfulDisk {
    fn lock(&self) -> KnownPaths<'_> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks, and tells the model of a file that was there before.
    fn about(&self, path: &Path) -> KnownPaths<'_> {
        let mut known = self.lock();
        if known.insert(path.to_owned())
            && let Ok(bytes) = RealDisk.read(path)
        {
            self.model.place(path, bytes);
        }
        known
    }

    /// What a power failure leaves where that differs from what stands there; nobody writes any more.
    fn forget(&self, seed: u64) -> Vec<FileAfterCrash> {
        let known = self.lock();
        let now = self.model.contents();
        let left = self.model.after_crash(seed).contents();
        std::mem::forget(known);
        let gone = now.keys().filter(|path| !left.contains_key(*path));
        let gone: Vec<FileAfterCrash> = gone.map(|path| (path.clone(), None)).collect();
        let other = left.into_iter().filter(|(path, bytes)| now.get(path) != Some(bytes));
        gone.into_iter().chain(other.map(|(path, bytes)| (path, Some(bytes)))).collect()
    }
}

struct ForgetfulFile {
    disk: ForgetfulDisk,
    real: Box<dyn DiskFile>,
    model: Box<dyn DiskFile>,
}

impl DiskFile for ForgetfulFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _step = self.disk.lock();
        self.real.write_at(offset, bytes)?;
        self.model.write_at(offset, bytes)
    }

    fn sync(&mut self) -> Result<()> {
        let _step = self.disk.lock();
        self.real.sync()?;
        self.model.sync()
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        let _step = self.disk.lock();
        self.real.truncate(len)?;
        self.model.truncate(len)
    }
}

impl Disk for ForgetfulDisk {
    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let _step = self.about(path);
        let (real, model) = (RealDisk.create(path)?, self.model.create(path)?);
        Ok(Box::new(ForgetfulFile { disk: self.clone(), real, model }))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        RealDisk.read(path)
    }

    fn len(&self, path: &Path) -> Result<Option<u64>> {
        RealDisk.len(path)
    }

    fn written(&self, path: &Path) -> Result<Option<u64>> {
        RealDisk.written(path)
    }

    fn node(&self, path: &Path) -> Result<Option<Node>> {
        RealDisk.node(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        RealDisk.list(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        RealDisk.create_dir(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let _step = self.about(path);
        RealDisk.write(path, bytes)?;
        self.model.write(path, bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let _step = self.about(path);
        RealDisk.append(path, bytes)?;
        self.model.append(path, bytes)
    }

    fn sync(&self, path: &Path) -> Result<()> {
        let _step = self.about(path);
        RealDisk.sync(path)?;
        self.model.sync(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let _step = self.lock();
        RealDisk.sync_dir(path)?;
        self.model.sync_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        drop(self.about(from));
        let _step = self.about(to);
        RealDisk.rename(from, to)?;
        self.model.rename(from, to)
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<()> {
        let _step = self.about(path);
        RealDisk.truncate(path, len)?;
        self.model.truncate(path, len)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let _step = self.about(path);
        RealDisk.remove(path)?;
        self.model.remove(path)
    }

    fn lock(&self, path: &Path) -> Result<Option<Box<dyn FileLock>>> {
        RealDisk.lock(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_stays_and_the_rest_is_up_to_the_seed() {
        let mut kept = BTreeSet::new();
        for seed in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            files::write(&path("old"), "before").unwrap();
            let disk = ForgetfulDisk::default();
            disk.write(&path("old"), b"after!").unwrap();
            disk.write(&path("synced"), b"synced").unwrap();
            disk.sync(&path("synced")).unwrap();
            disk.sync_dir(folder.path()).unwrap();
            disk.write(&path("new"), b"new").unwrap();
            let plan = path("plan");
            files::write(&plan, serde_json::to_vec(&disk.forget(seed)).unwrap()).unwrap();
            apply(&plan).unwrap();
            assert_eq!(files::read(&path("synced")).unwrap(), b"synced", "seed {seed}");
            kept.insert((files::read(&path("old")).unwrap(), files::exists(&path("new"))));
        }
        assert!(kept.contains(&(b"before".to_vec(), false)), "{kept:?}");
        assert!(kept.contains(&(b"after!".to_vec(), true)), "{kept:?}");
    }
}
