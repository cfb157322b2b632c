//! A change and a branch that do not fit together: what both wrote is marked in the files, the marks are found
//! again, and both sides are told.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{
    Blob, ErrorCode, Index, IndexConflict, IndexEntry, MergeFileInput, MergeFileOptions,
    ObjectType, Repository, Sort, Tree,
};

use super::path_name::{name_of, path_of};
use super::{CommitId, Project, Result, TreeId, diff, tree_diff};
use crate::domain::conflict::Conflict;
use crate::domain::evidence::ChangedPath;
use crate::domain::ids::RequestId;

/// How lines begin between which both sides of a conflict stand.
const MARKS: [&[u8]; 3] = [b"<<<<<<< ", b"||||||| ", b">>>>>>> "];
/// Commits of the branch that are told of a conflict, and those that are looked through for them.
const MOST_COMMITS: usize = 20;
const MOST_LOOKED_AT: usize = 2_000;
/// Lines, and characters of each, of one side that a person is shown.
const SIDE_LINES: usize = 8;
const SIDE_WIDTH: usize = 120;

/// An index in which every conflict of `merged` is settled for now, and the paths that were in conflict; `None` where
/// none was. Where both sides have a text, its lines are marked; anywhere else the side of the branch, whose tree is
/// `onto`, stands, so that nothing that is on the branch is lost by nobody looking.
pub(super) fn mark(
    repository: &Repository,
    merged: &Index,
    onto: &Tree<'_>,
    branch: &str,
    request: &RequestId,
) -> Result<Option<(Index, Vec<String>)>> {
    let mut paths = BTreeSet::new();
    let mut entries: BTreeMap<Vec<u8>, IndexEntry> = merged
        .iter()
        .filter(|entry| stage(entry) == 0)
        .map(|entry| (entry.path.clone(), entry))
        .collect();
    for conflict in merged.conflicts()? {
        let conflict = conflict?;
        let sides = [&conflict.our, &conflict.their, &conflict.ancestor];
        if let Some(side) = sides.into_iter().flatten().next() {
            paths.insert(side.path.clone());
        }
        if let Some(entry) = marked(repository, &conflict, branch, request)?.or(conflict.our) {
            entries.insert(entry.path.clone(), IndexEntry { flags: 0, ..entry });
        }
    }
    // A file of one side where the other one has a folder is no conflict to libgit2.
    for (file, inside) in files_with_something_inside(&entries) {
        let of_branch = onto.get_path(Path::new(OsStr::from_bytes(&file)));
        let is_file = of_branch.is_ok_and(|entry| entry.kind() != Some(ObjectType::Tree));
        entries.remove(if is_file { &inside } else { &file });
        paths.insert(file);
    }
    if paths.is_empty() {
        return Ok(None);
    }
    let mut settled = Index::new()?;
    for entry in entries.values() {
        settled.add(entry)?;
    }
    Ok(Some((settled, paths.iter().map(|path| name_of(path)).collect())))
}

/// Each path that another one has for a folder, with that other one.
fn files_with_something_inside(entries: &BTreeMap<Vec<u8>, IndexEntry>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    for path in entries.keys() {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for folder in slashes.filter_map(|(at, _)| path.get(..at)) {
            if entries.contains_key(folder) {
                found.push((folder.to_vec(), path.clone()));
            }
        }
    }
    found
}

fn stage(entry: &IndexEntry) -> u16 {
    (entry.flags >> 12) & 3
}

/// The text of both sides with marks; `None` where they are not two texts at one path.
fn marked(
    repository: &Repository,
    conflict: &IndexConflict,
    branch: &str,
    request: &RequestId,
) -> Result<Option<IndexEntry>> {
    let (Some(ours), Some(theirs)) = (&conflict.our, &conflict.their) else {
        return Ok(None);
    };
    let regular = |entry: &IndexEntry| matches!(entry.mode, 0o100_644 | 0o100_755);
    if ours.path != theirs.path || !regular(ours) || !regular(theirs) {
        return Ok(None);
    }
    let (our_text, their_text) = (text(repository, ours)?, text(repository, theirs)?);
    let old = match conflict.ancestor.as_ref().filter(|old| regular(old)) {
        Some(old) => text(repository, old)?,
        None => None,
    };
    let (Some(our_text), Some(their_text)) = (our_text, their_text) else {
        return Ok(None);
    };
    let (mut old_side, mut our_side, mut their_side) =
        (MergeFileInput::new(), MergeFileInput::new(), MergeFileInput::new());
    old_side.content(old.as_ref().map_or(b"", Blob::content));
    our_side.content(our_text.content());
    their_side.content(their_text.content());
    let mut options = MergeFileOptions::new();
    options.our_label(branch).their_label(request.as_str());
    let merged = git2::merge_file(&old_side, &our_side, &their_side, Some(&mut options))?;
    let id = repository.blob(merged.content())?;
    // Whichever side changed it; both can only have changed it to the same.
    let untouched = conflict.ancestor.as_ref().is_some_and(|old| old.mode == ours.mode);
    let mode = if untouched { theirs.mode } else { ours.mode };
    Ok(Some(IndexEntry { id, mode, ..copy(ours) }))
}

fn copy(entry: &IndexEntry) -> IndexEntry {
    IndexEntry {
        ctime: entry.ctime,
        mtime: entry.mtime,
        dev: entry.dev,
        ino: entry.ino,
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        file_size: 0,
        id: entry.id,
        flags: 0,
        flags_extended: entry.flags_extended,
        path: entry.path.clone(),
    }
}

fn text<'r>(repository: &'r Repository, entry: &IndexEntry) -> Result<Option<Blob<'r>>> {
    let blob = repository.find_blob(entry.id)?;
    Ok((!blob.is_binary()).then_some(blob))
}

/// The paths of a conflict in which marks of it still stand in `tree`. A line that reads like a mark and stood
/// there before, in either side's version, is none.
pub fn unsolved(project: &Project, conflict: &Conflict, tree: TreeId) -> Result<Vec<String>> {
    let repository = project.repository()?;
    let tree = repository.find_tree(tree.0)?;
    let (head, own): (CommitId, CommitId) = (conflict.head.parse()?, conflict.commit.parse()?);
    let sides = [repository.find_commit(head.0)?.tree()?, repository.find_commit(own.0)?.tree()?];
    let mut found = Vec::new();
    for path in &conflict.paths {
        let mut known = BTreeSet::new();
        for side in &sides {
            known.extend(marks(&repository, side, path)?);
        }
        if marks(&repository, &tree, path)?.iter().any(|mark| !known.contains(mark)) {
            found.push(path.clone());
        }
    }
    Ok(found)
}

/// Those of the paths that a commit on `base` changes which neither side of the conflict changed. None where somebody asked
/// for more since. The branch may have gone on, and what it did since then counts to its side; `solution` is what the
/// candidate before changes, where there is one.
pub fn beyond(
    project: &Project,
    conflict: &Conflict,
    (base, changed): (CommitId, &[ChangedPath]),
    solution: &[ChangedPath],
) -> Result<Vec<String>> {
    if conflict.answered {
        return Ok(Vec::new());
    }
    let repository = project.repository()?;
    let mut known = changed_by_either(&repository, conflict)?;
    let head = repository.find_commit(conflict.head.parse::<CommitId>()?.0)?.tree()?;
    let base = repository.find_commit(base.0)?.tree()?;
    let since = tree_diff::changes(&repository, &head, &base)?;
    known.extend(since.into_iter().chain(solution.iter().cloned()).map(|it| it.path));
    let changed = changed.iter().map(|it| &it.path);
    Ok(changed.filter(|path| !known.contains(*path)).cloned().collect())
}

/// The paths that one of the sides changed.
fn changed_by_either(repository: &Repository, conflict: &Conflict) -> Result<BTreeSet<String>> {
    let of = |id: &str| -> Result<Tree<'_>> {
        Ok(repository.find_commit(id.parse::<CommitId>()?.0)?.tree()?)
    };
    let base = of(&conflict.base)?;
    let mut known = BTreeSet::new();
    for side in [&conflict.head, &conflict.commit] {
        let changed = tree_diff::changes(repository, &base, &of(side)?)?;
        known.extend(changed.into_iter().map(|it| it.path));
    }
    Ok(known)
}

/// What a person reads of a conflict who has to decide about it: the first marked place in `tree`, each side of it cut by
/// itself, and what else there is.
pub(super) fn excerpt(
    repository: &Repository,
    tree: &Tree<'_>,
    paths: &[String],
    (branch, request): (&str, &RequestId),
) -> Result<String> {
    let (begin, end) = (format!("<<<<<<< {branch}"), format!(">>>>>>> {request}"));
    let mut shown = Vec::new();
    let mut more = 0_usize;
    let mut unmarked = Vec::new();
    for path in paths {
        let entry = tree.get_path(&path_of(path)).and_then(|entry| entry.to_object(repository));
        let blob = entry.ok().and_then(|object| object.into_blob().ok());
        let text = blob.map(|blob| String::from_utf8_lossy(blob.content()).into_owned());
        let text = text.unwrap_or_default();
        let mut lines = text.lines().enumerate();
        let mut is_marked = false;
        while let Some((number, _)) = lines.find(|(_, line)| *line == begin) {
            is_marked = true;
            let mut inside = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != end);
            if !shown.is_empty() {
                more += 1;
                inside.for_each(drop);
                continue;
            }
            let ours: Vec<&str> = inside.by_ref().take_while(|line| *line != "=======").collect();
            let theirs: Vec<&str> = inside.collect();
            shown = vec![format!("{path}:{}", number + 1), begin.clone()];
            shown.extend(beginning(&ours));
            shown.push("=======".to_owned());
            shown.extend(beginning(&theirs));
            shown.push(end.clone());
        }
        if !is_marked {
            unmarked
                .push(format!("{path}: no text on both sides; the branch's version stands there"));
        }
    }
    match more {
        0 => {}
        1 => shown.push("and one more place like this".to_owned()),
        _ => shown.push(format!("and {more} more places like this")),
    }
    shown.extend(unmarked);
    Ok(shown.join("\n"))
}

/// The first lines of one side, and how many there are beside them.
fn beginning(side: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> =
        side.iter().take(SIDE_LINES).map(|line| line.chars().take(SIDE_WIDTH).collect()).collect();
    if side.len() > SIDE_LINES {
        lines.push(format!("… +{}", side.len() - SIDE_LINES));
    }
    lines
}

/// The lines of a file that read like marks; none where there is no such file.
fn marks(repository: &Repository, tree: &Tree<'_>, path: &str) -> Result<Vec<Vec<u8>>> {
    let entry = match tree.get_path(&path_of(path)) {
        Ok(entry) => entry,
        Err(error) if error.code() == ErrorCode::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let Some(blob) = entry.to_object(repository)?.as_blob().cloned() else {
        return Ok(Vec::new());
    };
    let lines = blob.content().split(|byte| *byte == b'\n');
    let marks = lines.filter(|line| MARKS.iter().any(|mark| line.starts_with(mark)));
    Ok(marks.map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec()).collect())
}

/// A commit that brought the other side of a conflict onto the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherCommit {
    /// Its id.
    pub commit: String,
    /// The request that it is of, where the team made it.
    pub request: Option<RequestId>,
    /// Who wrote it, as git has it.
    pub author: String,
    /// Its whole message.
    pub message: String,
}

/// Both sides of a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// What the request changed in the paths, as a diff.
    pub own: String,
    /// What came onto the branch in the same paths, as a diff.
    pub branch: String,
    /// All paths that one of the two changed.
    pub changed: Vec<String>,
    /// The commits that it came by, newest first.
    pub commits: Vec<OtherCommit>,
}

/// What both sides of a conflict changed, each diff at most `max_lines` lines, and by which commits.
pub fn sides(project: &Project, conflict: &Conflict, max_lines: usize) -> Result<Sides> {
    let repository = project.repository()?;
    let (head, own, base): (CommitId, CommitId, CommitId) =
        (conflict.head.parse()?, conflict.commit.parse()?, conflict.base.parse()?);
    let tree = |id: CommitId| -> Result<Tree<'_>> { Ok(repository.find_commit(id.0)?.tree()?) };
    let (head_tree, own_tree, base_tree) = (tree(head)?, tree(own)?, tree(base)?);
    let paths: Vec<PathBuf> = conflict.paths.iter().map(|path| path_of(path)).collect();
    let excerpt = |new: &Tree<'_>| {
        let changed = tree_diff::diff_of(&repository, &base_tree, new, &paths)?;
        diff::excerpt(&changed, max_lines)
    };
    let (own, branch) = (excerpt(&own_tree)?, excerpt(&head_tree)?);
    let mut walk = repository.revwalk()?;
    walk.set_sorting(Sort::TOPOLOGICAL)?;
    walk.push(head.0)?;
    walk.hide(base.0)?;
    let mut commits = Vec::new();
    for id in walk.take(MOST_LOOKED_AT) {
        let commit = repository.find_commit(id?)?;
        let before = match commit.parent(0) {
            Ok(parent) => parent.tree()?,
            Err(_) => continue,
        };
        let changed = tree_diff::diff_of(&repository, &before, &commit.tree()?, &paths)?;
        if changed.deltas().len() == 0 {
            continue;
        }
        let message = String::from_utf8_lossy(commit.message_bytes()).trim().to_owned();
        commits.push(OtherCommit {
            commit: commit.id().to_string(),
            request: super::message::request_of(&message),
            author: String::from_utf8_lossy(commit.author().name_bytes()).into_owned(),
            message,
        });
        if commits.len() >= MOST_COMMITS {
            break;
        }
    }
    let changed = changed_by_either(&repository, conflict)?.into_iter().collect();
    Ok(Sides { own, branch, changed, commits })
}
