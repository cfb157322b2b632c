//! A copy of the state folder as an older runtime or build left it, made once and before anything is written.
//!
//! The copy has a mark of its own, written last: a folder without it is one that was not finished, and is
//! gone on with, because until the mark is there nothing else is touched.

use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::layout::RUNTIME;
use super::views::replace_synced;
use crate::domain::time::Timestamp;
use crate::platform::clock;
use crate::platform::disk::{Disk, Node};

/// The mark of a copy that is whole; its text is a digest of what was copied.
const MARK: &str = "backup-is-whole";

/// A copy.
pub(super) struct Backup {
    /// Its folder in the workspace.
    pub(super) name: String,
    /// What is no file and not in it; paths are relative to the workspace.
    pub(super) left: Vec<String>,
}

/// Makes the copy of what is wanted, or finds it.
pub(super) fn make(
    disk: &dyn Disk,
    root: &Path,
    wanted: fn(&Path) -> bool,
) -> Result<Backup, StoreError> {
    let mut found = Contents { folders: vec![PathBuf::new()], ..Contents::default() };
    walk(disk, root, Path::new(""), wanted, &mut found)?;
    let Contents { files, folders, left } = found;
    let mut digest = crc32fast::Hasher::new();
    for file in &files {
        digest.update(file.to_string_lossy().as_bytes());
        digest.update(&disk.read(&root.join(RUNTIME).join(file))?);
    }
    let digest = format!("{:08x}\n", digest.finalize());
    let (name, whole) = choose(disk, root, &digest)?;
    if whole {
        return Ok(Backup { name, left });
    }
    let target = root.join(&name);
    for folder in &folders {
        disk.create_dir(&target.join(folder))?;
    }
    for file in &files {
        disk.write(&target.join(file), &disk.read(&root.join(RUNTIME).join(file))?)?;
    }
    let copies: Vec<PathBuf> = files.iter().map(|file| target.join(file)).collect();
    let mut named: Vec<PathBuf> = folders.iter().map(|folder| target.join(folder)).collect();
    named.push(root.to_owned());
    disk.sync_many(root, &copies, &named)?;
    replace_synced(disk, &target.join(MARK), digest.as_bytes())?;
    disk.sync_dir(&target)?;
    Ok(Backup { name, left })
}

/// The whole copy, if there is one, in which a file is what it is now.
pub(super) fn whole_with(
    disk: &dyn Disk,
    root: &Path,
    file: &str,
) -> Result<Option<String>, StoreError> {
    let now = disk.read(&root.join(RUNTIME).join(file))?;
    let prefix = format!("{RUNTIME}.backup-");
    for name in disk.list(root)?.into_iter().filter(|name| name.starts_with(&prefix)) {
        let copy = root.join(&name);
        if disk.len(&copy.join(MARK))?.is_none() {
            continue;
        }
        match disk.read(&copy.join(file)) {
            Ok(bytes) if bytes == now => return Ok(Some(name)),
            Ok(_) => {}
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// The folder for the copy, and whether it is there already.
fn choose(disk: &dyn Disk, root: &Path, digest: &str) -> Result<(String, bool), StoreError> {
    let prefix = format!("{RUNTIME}.backup-");
    let mut taken = Vec::new();
    for name in disk.list(root)?.into_iter().filter(|name| name.starts_with(&prefix)) {
        match disk.read(&root.join(&name).join(MARK)) {
            Ok(bytes) if bytes == digest.as_bytes() => return Ok((name, true)),
            // A copy of another time.
            Ok(_) => taken.push(name),
            Err(error) if error.is_missing() => return Ok((name, false)),
            Err(error) => return Err(error.into()),
        }
    }
    let stamp = Timestamp::new(clock::now()).format_in(chrono_tz::Tz::UTC, "%Y%m%d-%H%M%SZ");
    let mut name = format!("{prefix}{stamp}");
    let mut number = 1;
    while taken.contains(&name) {
        number += 1;
        name = format!("{prefix}{stamp}-{number}");
    }
    Ok((name, false))
}

#[derive(Default)]
struct Contents {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    left: Vec<String>,
}

fn walk(
    disk: &dyn Disk,
    root: &Path,
    folder: &Path,
    wanted: fn(&Path) -> bool,
    found: &mut Contents,
) -> Result<(), StoreError> {
    for name in disk.list(&root.join(RUNTIME).join(folder))? {
        let path = folder.join(&name);
        if is_ours(&path) || !wanted(&path) {
            continue;
        }
        match disk.node(&root.join(RUNTIME).join(&path))? {
            Some(Node::File) => found.files.push(path),
            Some(Node::Folder) => {
                found.folders.push(path.clone());
                walk(disk, root, &path, wanted, found)?;
            }
            Some(Node::Other) => found.left.push(format!("{RUNTIME}/{}", path.display())),
            None => {}
        }
    }
    Ok(())
}

/// What opening itself made before: the lock, when this team began to listen, and the notes, where a crash
/// came before their name was durable.
fn is_ours(path: &Path) -> bool {
    ["lock", "born", "import.json", ".import.json.tmp"].iter().any(|name| path == Path::new(name))
}
