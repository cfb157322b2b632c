//! A disk in memory that forgets at a crash whatever was not synced, and fails where a test wants.
//!
//! The model is that of ALICE (`spec/rust.md` C8): each write, cut and name change since the last sync
//! of its file or folder may have reached the disk or not, independently of the others; a write may have
//! arrived in part, or as length without bytes. Folders themselves are taken as durable.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::platform::disk::{Disk, DiskFile, FileLock, Node};
use crate::platform::files::{FileError, Result};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails with an input/output error; a failed sync also forgets what it was to keep.
    Eio,
    /// The operation, if it writes, is done by half and fails for want of space.
    Full,
    /// The machine stops before the operation: it and all later ones fail.
    Crash,
}

/// The simulated disk. Clones share it.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<Sim>>);

#[derive(Default)]
struct Sim {
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending_names: Vec<NameChange>,
    inodes: Vec<Inode>,
    locks: BTreeSet<PathBuf>,
    operations: u64,
    fault: Option<(u64, Fault)>,
    full: bool,
    crashed: bool,
}

#[derive(Clone)]
enum NameChange {
    Link(PathBuf, usize),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, usize),
}

impl NameChange {
    fn in_folder(&self, folder: &Path) -> bool {
        let inside = |path: &Path| path.parent() == Some(folder);
        match self {
            NameChange::Link(path, _) | NameChange::Unlink(path) => inside(path),
            NameChange::Rename(from, to, _) => inside(from) || inside(to),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            NameChange::Link(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            NameChange::Unlink(path) => {
                names.remove(path);
            }
            NameChange::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

#[derive(Default, Clone)]
struct Inode {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<ByteChange>,
}

#[derive(Clone)]
enum ByteChange {
    Write(usize, Vec<u8>),
    Cut(usize),
}

impl ByteChange {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            ByteChange::Write(offset, new) => {
                let end = offset + new.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(new);
            }
            ByteChange::Cut(len) => bytes.resize(*len, 0),
        }
    }
}

impl Inode {
    fn change(&mut self, change: ByteChange) {
        change.apply(&mut self.bytes);
        self.pending.push(change);
    }
}

fn fail(action: &'static str, path: &Path, source: io::Error) -> FileError {
    FileError { action, path: path.to_owned(), source }
}

fn missing(action: &'static str, path: &Path) -> FileError {
    fail(action, path, io::ErrorKind::NotFound.into())
}

impl Sim {
    /// Counts an operation that changes the disk. `Ok(false)`: it is done by half and then fails.
    fn count(&mut self, action: &'static str, path: &Path, writes: bool) -> Result<bool> {
        if self.crashed {
            return Err(fail(action, path, io::Error::other("the machine is off")));
        }
        self.operations += 1;
        let due = match self.fault {
            Some((at, fault)) if at == self.operations => Some(fault),
            Some(_) | None => None,
        };
        match due {
            Some(Fault::Eio) => Err(fail(action, path, io::Error::other("simulated fault"))),
            Some(Fault::Crash) => {
                self.crashed = true;
                Err(fail(action, path, io::Error::other("the machine is off")))
            }
            Some(Fault::Full) => Ok(!writes),
            None => Ok(!(writes && self.full)),
        }
    }

    fn inode(&self, action: &'static str, path: &Path) -> Result<usize> {
        self.names.get(path).copied().ok_or_else(|| missing(action, path))
    }

    fn link(&mut self, path: &Path) -> usize {
        let inode = self.inodes.len();
        self.inodes.push(Inode::default());
        self.rename_to(NameChange::Link(path.to_owned(), inode));
        inode
    }

    fn rename_to(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    fn write(&mut self, path: &Path, inode: usize, offset: usize, bytes: &[u8]) -> Result<()> {
        let whole = self.count("write", path, true)?;
        let kept = if whole { bytes.len() } else { bytes.len() / 2 };
        self.inodes[inode].change(ByteChange::Write(offset, bytes[..kept].to_vec()));
        if whole { Ok(()) } else { Err(fail("write", path, io::ErrorKind::StorageFull.into())) }
    }

    fn sync(&mut self, path: &Path, inode: usize) -> Result<()> {
        let counted = self.count("sync", path, false);
        let crashed = self.crashed;
        let file = &mut self.inodes[inode];
        match counted {
            Ok(_) => {
                file.durable = file.bytes.clone();
                file.pending.clear();
                Ok(())
            }
            Err(error) => {
                // The pages are marked clean although they were lost: a second sync would succeed.
                if !crashed {
                    file.pending.clear();
                }
                Err(error)
            }
        }
    }
}

/// A small generator, so that a seed names a crash.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % (sides.max(1) as u64)).unwrap_or(0)
    }
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn sim(&self) -> MutexGuard<'_, Sim> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a file there that is durable already.
    pub fn place(&self, path: &Path, bytes: Vec<u8>) {
        let mut sim = self.sim();
        let inode = sim.inodes.len();
        sim.inodes.push(Inode { durable: bytes.clone(), bytes, pending: Vec::new() });
        sim.names.insert(path.to_owned(), inode);
        sim.durable_names.insert(path.to_owned(), inode);
    }

    /// Every file with its bytes.
    #[must_use]
    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let sim = self.sim();
        let bytes = |inode: &usize| sim.inodes[*inode].bytes.clone();
        sim.names.iter().map(|(path, inode)| (path.clone(), bytes(inode))).collect()
    }

    /// Operations so far that changed the disk.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.sim().operations
    }

    /// Lets the operation with this number (the first is 1) fail.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.sim().fault = Some((operation, fault));
    }

    /// From now on every write fails for want of space, or no longer.
    pub fn set_full(&self, full: bool) {
        self.sim().full = full;
    }

    /// What a machine finds that was switched off now: each unsynced change was kept, lost or kept in
    /// part, as the seed decides.
    #[must_use]
    pub fn after_crash(&self, seed: u64) -> SimDisk {
        let sim = self.sim();
        let mut dice = Dice(seed);
        let mut names = sim.durable_names.clone();
        for change in &sim.pending_names {
            if dice.roll(2) == 0 {
                change.apply(&mut names);
            }
        }
        let inodes = sim.inodes.iter().map(|inode| {
            let mut bytes = inode.durable.clone();
            for change in &inode.pending {
                match (dice.roll(4), change) {
                    (0, _) => {}
                    (1, ByteChange::Write(offset, new)) => {
                        let part = dice.roll(new.len());
                        ByteChange::Write(*offset, new[..part].to_vec()).apply(&mut bytes);
                    }
                    (2, ByteChange::Write(offset, new)) => {
                        let end = offset + new.len();
                        if bytes.len() < end {
                            bytes.resize(end, 0);
                        }
                    }
                    _ => change.apply(&mut bytes),
                }
            }
            Inode { durable: bytes.clone(), bytes, pending: Vec::new() }
        });
        SimDisk(Arc::new(Mutex::new(Sim {
            inodes: inodes.collect(),
            durable_names: names.clone(),
            names,
            ..Sim::default()
        })))
    }

    /// What the next process finds after `kill -9`: the page cache stays, so everything is there.
    #[must_use]
    pub fn after_kill(&self) -> SimDisk {
        let sim = self.sim();
        let inodes = sim.inodes.iter().map(|inode| Inode {
            bytes: inode.bytes.clone(),
            durable: inode.bytes.clone(),
            pending: Vec::new(),
        });
        SimDisk(Arc::new(Mutex::new(Sim {
            inodes: inodes.collect(),
            durable_names: sim.names.clone(),
            names: sim.names.clone(),
            ..Sim::default()
        })))
    }
}

struct SimFile {
    disk: SimDisk,
    path: PathBuf,
    inode: usize,
}

impl DiskFile for SimFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.disk.sim().write(&self.path, self.inode, offset, bytes)
    }

    fn sync(&mut self) -> Result<()> {
        self.disk.sim().sync(&self.path, self.inode)
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        let mut sim = self.disk.sim();
        sim.count("cut", &self.path, false)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        sim.inodes[self.inode].change(ByteChange::Cut(len));
        Ok(())
    }
}

struct SimLock(SimDisk, PathBuf);

impl FileLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.0.sim().locks.remove(&self.1);
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let mut sim = self.sim();
        sim.count("create", path, false)?;
        let inode = match sim.names.get(path).copied() {
            Some(inode) => {
                sim.inodes[inode].change(ByteChange::Cut(0));
                inode
            }
            None => sim.link(path),
        };
        Ok(Box::new(SimFile { disk: self.clone(), path: path.to_owned(), inode }))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let sim = self.sim();
        Ok(sim.inodes[sim.inode("read", path)?].bytes.clone())
    }

    fn len(&self, path: &Path) -> Result<Option<u64>> {
        let sim = self.sim();
        Ok(sim.names.get(path).map(|inode| sim.inodes[*inode].bytes.len() as u64))
    }

    /// Long ago: this disk has no clock.
    fn written(&self, path: &Path) -> Result<Option<u64>> {
        Ok(self.sim().names.get(path).map(|_| 0))
    }

    fn node(&self, path: &Path) -> Result<Option<Node>> {
        let sim = self.sim();
        if sim.names.contains_key(path) {
            return Ok(Some(Node::File));
        }
        let folder = sim.names.keys().any(|name| name.starts_with(path));
        Ok(folder.then_some(Node::Folder))
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        let sim = self.sim();
        let names: BTreeSet<String> = sim
            .names
            .keys()
            .filter_map(|name| name.strip_prefix(path).ok())
            .filter_map(|rest| rest.components().next())
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        Ok(names.into_iter().collect())
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.sim().count("create", path, false).map(|_| ())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = self.create(path)?;
        file.write_at(0, bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut sim = self.sim();
        let inode = match sim.names.get(path).copied() {
            Some(inode) => inode,
            None => sim.link(path),
        };
        let end = sim.inodes[inode].bytes.len();
        sim.write(path, inode, end, bytes)
    }

    fn sync(&self, path: &Path) -> Result<()> {
        let mut sim = self.sim();
        let inode = sim.inode("sync", path)?;
        sim.sync(path, inode)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let mut sim = self.sim();
        sim.count("sync", path, false)?;
        let pending = std::mem::take(&mut sim.pending_names);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|change| change.in_folder(path));
        for change in here {
            change.apply(&mut sim.durable_names);
        }
        sim.pending_names = elsewhere;
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut sim = self.sim();
        sim.count("rename", from, false)?;
        let inode = sim.inode("rename", from)?;
        sim.rename_to(NameChange::Rename(from.to_owned(), to.to_owned(), inode));
        Ok(())
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<()> {
        let inode = self.sim().inode("cut", path)?;
        SimFile { disk: self.clone(), path: path.to_owned(), inode }.truncate(len)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut sim = self.sim();
        if !sim.names.contains_key(path) {
            return Ok(());
        }
        sim.count("remove", path, false)?;
        sim.rename_to(NameChange::Unlink(path.to_owned()));
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Option<Box<dyn FileLock>>> {
        let mut sim = self.sim();
        if sim.locks.insert(path.to_owned()) {
            Ok(Some(Box::new(SimLock(self.clone(), path.to_owned()))))
        } else {
            Ok(None)
        }
    }
}
