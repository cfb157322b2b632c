//! A copy of a folder as it was left by another program or build, made once and before anything is written.
//!
//! The copy has a mark of its own, written last: a folder that was begun and is without it was not finished, and is
//! gone on with, because until the mark is there nothing else is touched. Copies that people made are left alone.

use std::path::{Path, PathBuf};

use crate::platform::clock;
use crate::platform::disk::{Disk, Node, replace_synced};
use crate::platform::files::Result;

/// The mark of a copy that is whole; its text is a digest of what was copied.
const MARK: &str = "backup-is-whole";

/// The mark of a copy of ours, whole or not.
const BEGUN: &str = "backup-is-begun";

/// A copy.
pub struct Backup {
    /// Its folder, beside the one that it copies.
    pub name: String,
    /// What is no file and not in it; paths from the folder that both lie in.
    pub left: Vec<String>,
}

/// Makes the copy of what is wanted of a folder of `root`, or finds it. What is `wanted` is asked by paths inside of
/// the folder.
///
/// # Errors
/// What the disk reports.
pub fn make(
    disk: &dyn Disk,
    root: &Path,
    folder: &str,
    wanted: fn(&Path) -> bool,
) -> Result<Backup> {
    let mut found = Contents { folders: vec![PathBuf::new()], ..Contents::default() };
    let place = root.join(folder);
    walk(disk, &place, Path::new(""), wanted, &mut found)?;
    let Contents { mut files, folders, left } = found;
    // Of a copy that was put back.
    files.retain(|file| ![MARK, BEGUN].iter().any(|mark| file == Path::new(mark)));
    let left = left.iter().map(|path| format!("{folder}/{}", path.display())).collect();
    let mut digest = crc32fast::Hasher::new();
    for file in &files {
        digest.update(file.to_string_lossy().as_bytes());
        digest.update(&disk.read(&place.join(file))?);
    }
    let digest = format!("{:08x}\n", digest.finalize());
    let (name, whole) = choose(disk, root, folder, &digest)?;
    if whole {
        return Ok(Backup { name, left });
    }
    let target = root.join(&name);
    disk.create_dir(&target)?;
    disk.write(&target.join(BEGUN), b"")?;
    for folder in &folders {
        disk.create_dir(&target.join(folder))?;
    }
    for file in &files {
        disk.write(&target.join(file), &disk.read(&place.join(file))?)?;
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
///
/// # Errors
/// What the disk reports.
pub fn whole_with(
    disk: &dyn Disk,
    root: &Path,
    folder: &str,
    file: &str,
) -> Result<Option<String>> {
    let now = disk.read(&root.join(folder).join(file))?;
    let prefix = prefix(folder);
    for name in disk.list(root)?.into_iter().filter(|name| name.starts_with(&prefix)) {
        let copy = root.join(&name);
        let is_folder = disk.node(&copy)? == Some(Node::Folder);
        if !is_folder || disk.len(&copy.join(MARK))?.is_none() {
            continue;
        }
        match disk.read(&copy.join(file)) {
            Ok(bytes) if bytes == now => return Ok(Some(name)),
            Ok(_) => {}
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The folder for the copy, and whether it is there already.
fn choose(disk: &dyn Disk, root: &Path, folder: &str, digest: &str) -> Result<(String, bool)> {
    let prefix = prefix(folder);
    let mut taken = Vec::new();
    for name in disk.list(root)?.into_iter().filter(|name| name.starts_with(&prefix)) {
        let copy = root.join(&name);
        if disk.node(&copy)? != Some(Node::Folder) {
            taken.push(name);
            continue;
        }
        match disk.read(&copy.join(MARK)) {
            Ok(bytes) if bytes == digest.as_bytes() => return Ok((name, true)),
            // A copy of another time.
            Ok(_) => taken.push(name),
            Err(error) if error.is_missing() && disk.len(&copy.join(BEGUN))?.is_some() => {
                return Ok((name, false));
            }
            // Somebody's own.
            Err(error) if error.is_missing() => taken.push(name),
            Err(error) => return Err(error),
        }
    }
    let stamp = clock::now().format("%Y%m%d-%H%M%SZ");
    let mut name = format!("{prefix}{stamp}");
    let mut number = 1;
    while taken.contains(&name) {
        number += 1;
        name = format!("{prefix}{stamp}-{number}");
    }
    Ok((name, false))
}

fn prefix(folder: &str) -> String {
    format!("{folder}.backup-")
}

#[derive(Default)]
struct Contents {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    left: Vec<PathBuf>,
}

fn walk(
    disk: &dyn Disk,
    place: &Path,
    folder: &Path,
    wanted: fn(&Path) -> bool,
    found: &mut Contents,
) -> Result<()> {
    for name in disk.list(&place.join(folder))? {
        let path = folder.join(&name);
        if !wanted(&path) {
            continue;
        }
        match disk.node(&place.join(&path))? {
            Some(Node::File) => found.files.push(path),
            Some(Node::Folder) => {
                found.folders.push(path.clone());
                walk(disk, place, &path, wanted, found)?;
            }
            Some(Node::Other) => found.left.push(path),
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::disk::RealDisk;
    use crate::platform::files;

    #[test]
    fn what_a_person_copied_themselves_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        files::create_dir_all(&at("state/sub")).unwrap();
        files::write(&at("state/sub/one"), "now").unwrap();
        files::create_dir_all(&at("state.backup-0320")).unwrap();
        files::write(&at("state.backup-0320/old"), "theirs").unwrap();
        files::write(&at("state.backup-0320.tar.gz"), "theirs").unwrap();
        let all = |_: &Path| true;
        let first = make(&RealDisk, root.path(), "state", all).unwrap();
        assert_eq!(files::read_text(&at(&first.name).join("sub/one")).unwrap(), "now");
        assert_eq!(files::list(&at("state.backup-0320")).unwrap().len(), 1);
        // The same again is found, one that was cut off is gone on with, and another time has another.
        assert_eq!(make(&RealDisk, root.path(), "state", all).unwrap().name, first.name);
        files::remove_file(&at(&first.name).join(MARK)).unwrap();
        assert_eq!(make(&RealDisk, root.path(), "state", all).unwrap().name, first.name);
        files::write(&at("state/sub/one"), "later").unwrap();
        assert_ne!(make(&RealDisk, root.path(), "state", all).unwrap().name, first.name);
        let found = whole_with(&RealDisk, root.path(), "state", "sub/one").unwrap();
        assert!(found.is_some_and(|name| name != first.name));
    }
}
