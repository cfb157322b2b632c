//! A copy of the whole state folder as the older runtime left it, made once and before anything is written.
//!
//! The copy has a mark of its own, written last: a folder without it is one that was not finished, and is
//! gone on with, because until the mark is there nothing else is touched.

use std::path::{Path, PathBuf};

use super::notes::Notes;
use crate::domain::time::Timestamp;
use crate::platform::clock;
use crate::platform::disk::{Disk, Node};
use crate::store::error::StoreError;
use crate::store::layout::RUNTIME;
use crate::store::views::replace_synced;

/// The mark of a copy that is whole; its text is a digest of what was copied.
const MARK: &str = "backup-is-whole";

/// Makes the copy, or finds it; its name.
pub(super) fn make(disk: &dyn Disk, root: &Path, notes: &mut Notes) -> Result<String, StoreError> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    walk(disk, root, Path::new(""), &mut files, &mut folders, notes)?;
    let mut digest = crc32fast::Hasher::new();
    for file in &files {
        digest.update(file.to_string_lossy().as_bytes());
        digest.update(&disk.read(&root.join(RUNTIME).join(file))?);
    }
    let digest = format!("{:08x}\n", digest.finalize());
    let (name, whole) = choose(disk, root, &digest)?;
    if whole {
        return Ok(name);
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
    Ok(name)
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

fn walk(
    disk: &dyn Disk,
    root: &Path,
    folder: &Path,
    files: &mut Vec<PathBuf>,
    folders: &mut Vec<PathBuf>,
    notes: &mut Notes,
) -> Result<(), StoreError> {
    for name in disk.list(&root.join(RUNTIME).join(folder))? {
        let path = folder.join(&name);
        match disk.node(&root.join(RUNTIME).join(&path))? {
            Some(Node::File) if !is_ours(&path) => files.push(path),
            Some(Node::Folder) => {
                folders.push(path.clone());
                walk(disk, root, &path, files, folders, notes)?;
            }
            Some(Node::Other) => {
                notes.left(
                    &format!("{RUNTIME}/{}", path.display()),
                    "it is no file, and not in the backup",
                );
            }
            Some(Node::File) | None => {}
        }
    }
    Ok(())
}

/// What opening itself made before: the lock, when this team began to listen, and the notes, where a crash
/// came before their name was durable.
fn is_ours(path: &Path) -> bool {
    ["lock", "born", "import.json", ".import.json.tmp"].iter().any(|name| path == Path::new(name))
}
