//! What of a change's content a person may have to see: files that are gone or back, dependencies, large binaries and
//! secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;

use git2::{Blob, Delta, Diff, DiffFile, DiffLineType, Oid, Repository};

use super::links::Links;
use super::path_name::{name_of, path_of};
use super::tracked::of_tree;
use super::{CommitId, Project, Result, file_parts, manifest, tree_diff};
use crate::domain::evidence::Candidate;
use crate::domain::guard::{ContentFact, ContentMark};
use crate::platform::redact;

/// Commits of the branch that are looked at for a file that was deleted.
const DEPTH: usize = 200;
/// A binary file below this is nobody's concern, in bytes.
const SMALL: usize = 1_024;

/// Everything that is worth a person's look in a candidate, in the order of its paths.
pub fn content_marks(project: &Project, candidate: &Candidate) -> Result<Vec<ContentMark>> {
    let repository = project.repository()?;
    let base: CommitId = candidate.base.parse()?;
    let commit: CommitId = candidate.commit.parse()?;
    let (old, new) =
        (repository.find_commit(base.0)?.tree()?, repository.find_commit(commit.0)?.tree()?);
    let diff = tree_diff::diff(&repository, &old, &new)?;
    // A file that only moved is at another path with the same content: one that came for one that went.
    let of = |status: Delta| diff.deltas().filter(move |delta| delta.status() == status);
    let mut came: BTreeMap<Oid, usize> = BTreeMap::new();
    for delta in of(Delta::Added) {
        *came.entry(delta.new_file().id()).or_default() += 1;
    }
    let links = Links::of(&repository, &*of_tree(&old)?);
    let went: BTreeSet<Oid> = of(Delta::Deleted).map(|delta| delta.old_file().id()).collect();
    let mut marks = Vec::new();
    let mut added: Vec<String> = Vec::new();
    for delta in diff.deltas() {
        let (before, now) = (delta.old_file().id(), delta.new_file().id());
        let Some(path) = name(&delta.new_file()).or_else(|| name(&delta.old_file())) else {
            continue;
        };
        let mark = |what| ContentMark { path: path.clone(), what };
        let names = links.names(&path_of(&path));
        if names.is_none() {
            marks.push(mark(ContentFact::LinkedOften));
        }
        let names = names.unwrap_or_default();
        let names: Vec<String> =
            names.iter().map(|name| name_of(name.as_os_str().as_bytes())).collect();
        marks.extend(names.iter().map(|name| mark(ContentFact::Linked { name: name.clone() })));
        let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let called = names.iter().filter(|name| file(name) != file(&path));
        if delta.status() == Delta::Deleted {
            match came.get_mut(&before) {
                Some(left @ 1..) => *left -= 1,
                Some(0) | None => marks.push(mark(ContentFact::Gone)),
            }
            // Where it is now, its name says nothing to what ran by it.
            let old = repository.find_blob(before).ok();
            let old = old.as_ref().map(Blob::content);
            marks.extend(called.chain([&path]).flat_map(|path| parts(path, old, b"")));
            continue;
        }
        if delta.status() == Delta::Added {
            added.push(path.clone());
        }
        let Ok(blob) = repository.find_blob(now) else { continue };
        let old = repository.find_blob(before).ok();
        for name in new_dependencies(&path, old.as_ref().map(Blob::content), blob.content()) {
            marks.push(mark(ContentFact::Dependency { name }));
        }
        let old = old.as_ref().map(Blob::content);
        // What runs by a file finds it by the name that a link gives it as well.
        for path in called.chain([&path]) {
            let mark = |what| ContentMark { path: path.clone(), what };
            let scripts = manifest::changed_scripts(path, old, blob.content());
            marks.extend(scripts.into_iter().map(|name| mark(ContentFact::Script { name })));
            marks.extend(parts(path, old, blob.content()));
        }
        if blob.is_binary() && blob.size() >= SMALL && now != before && !went.contains(&now) {
            marks.push(mark(ContentFact::Binary { bytes: blob.size() as u64 }));
        }
    }
    marks.extend(restored(&repository, base.0, added));
    marks.extend(secrets(&diff, &went)?);
    marks.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(marks)
}

/// The parts of a file, by the name that it has for what runs by it, that say something else now.
fn parts(path: &str, before: Option<&[u8]>, now: &[u8]) -> Vec<ContentMark> {
    let mark = |name: &str| ContentMark {
        path: path.to_owned(),
        what: ContentFact::Part { name: name.to_owned() },
    };
    file_parts::changed_parts(path, before, now).into_iter().map(mark).collect()
}

fn name(file: &DiffFile<'_>) -> Option<String> {
    file.path_bytes().map(name_of)
}

fn new_dependencies(path: &str, before: Option<&[u8]>, now: &[u8]) -> Vec<String> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let now = manifest::dependencies(file, now).unwrap_or_default();
    let before = before.and_then(|text| manifest::dependencies(file, text)).unwrap_or_default();
    now.difference(&before).cloned().collect()
}

/// Those of the added paths that the branch had before and deleted, as far back as its history lies here.
fn restored(repository: &Repository, base: Oid, mut added: Vec<String>) -> Vec<ContentMark> {
    let mut marks = Vec::new();
    let mut commit = repository.find_commit(base);
    for _ in 0..DEPTH {
        if added.is_empty() {
            break;
        }
        let Ok(now) = commit else { break };
        let Ok(parent) = now.parent(0) else { break };
        let (Ok(before), Ok(after)) = (parent.tree(), now.tree()) else { break };
        let paths: Vec<_> = added.iter().map(|name| path_of(name)).collect();
        let Ok(diff) = tree_diff::diff_of(repository, &before, &after, &paths) else { break };
        for delta in diff.deltas().filter(|delta| delta.status() == Delta::Deleted) {
            let Some(path) = name(&delta.old_file()) else { continue };
            added.retain(|one| *one != path);
            let what = ContentFact::Restored { commit: now.id().to_string() };
            marks.push(ContentMark { path, what });
        }
        commit = Ok(parent);
    }
    marks
}

/// The first added line of each file that did not only move that looks like a secret.
fn secrets(diff: &Diff<'_>, moved: &BTreeSet<Oid>) -> Result<Vec<ContentMark>> {
    let mut marks = Vec::new();
    let mut seen = BTreeSet::new();
    diff.foreach(
        &mut |_, _| true,
        None,
        None,
        Some(&mut |delta, _, line| {
            let is_new = !moved.contains(&delta.new_file().id());
            let added = line.origin_value() == DiffLineType::Addition && is_new;
            let Some(path) = name(&delta.new_file()).filter(|_| added) else { return true };
            let words = String::from_utf8_lossy(line.content());
            let is_secret = redact::redact(&words) != words || redact::assigns_secret(&words);
            if is_secret && seen.insert(path.clone()) {
                let what = ContentFact::Secret { line: line.new_lineno().unwrap_or_default() };
                marks.push(ContentMark { path, what });
            }
            true
        }),
    )?;
    Ok(marks)
}
