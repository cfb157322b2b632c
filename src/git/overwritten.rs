//! What people committed while a change was under way, and the change undoes.
//!
//! Whoever brings two versions together decides about lines that neither a check nor QA may know of: a commit by hand has
//! no criteria.

use std::collections::{BTreeMap, BTreeSet};

use git2::{Blob, Diff, DiffLineType, Oid, Repository, Sort, Tree};

use super::path_name::{name_of, path_of};
use super::{CommitId, Project, Result, message, tree_diff};
use crate::domain::evidence::{Candidate, ChangeKind};
use crate::domain::guard::{ContentFact, ContentMark};
use crate::domain::ids::RequestId;
use crate::platform::redact;

/// Commits of the branch that are looked through.
const MOST_COMMITS: usize = 2_000;
/// Characters of a line that a person is shown.
const LINE_WIDTH: usize = 80;
/// Lines in one place among which the one is looked for that a new line was before, and bytes of such a line. Beyond, the
/// whole line counts as new.
const MOST_BEFORE: usize = 200;
const LONGEST: usize = 4_096;

/// What people committed to the branch after `since` and the candidate undoes, one mark for each path. What they wrote in a
/// line counts as kept where a line of that file, or of a new one, has it in its order, and most words of the line: whoever
/// brings two versions together may have to write one line of two. What they took away is undone where it is there again.
/// `is_of_team` says whether a request has brought a commit to the branch as it is.
pub fn overwritten(
    project: &Project,
    since: CommitId,
    candidate: &Candidate,
    is_of_team: impl Fn(&RequestId, &str) -> bool,
) -> Result<Vec<ContentMark>> {
    let repository = project.repository()?;
    let (base, own): (CommitId, CommitId) = (candidate.base.parse()?, candidate.commit.parse()?);
    let (base_tree, own_tree) =
        (repository.find_commit(base.0)?.tree()?, repository.find_commit(own.0)?.tree()?);
    // Lines may have moved to a new file.
    let (mut kept, mut moved): (BTreeMap<&str, Lines>, Lines) = Default::default();
    for changed in &candidate.paths {
        let lines = kept.entry(changed.path.as_str()).or_default();
        if let Some(blob) = blob(&repository, &own_tree, &changed.path)? {
            lines.add(&blob);
            if changed.kind == ChangeKind::Added {
                moved.add(&blob);
            }
        }
    }
    let mut walk = repository.revwalk()?;
    walk.set_sorting(Sort::TOPOLOGICAL)?;
    walk.simplify_first_parent()?;
    walk.push(base.0)?;
    walk.hide(since.0)?;
    let mut undone: BTreeMap<String, Reversal> = BTreeMap::new();
    for id in walk.take(MOST_COMMITS) {
        let commit = repository.find_commit(id?)?;
        let named = message::request_of(&String::from_utf8_lossy(commit.message_bytes()));
        let is_own = named.is_some_and(|request| is_of_team(&request, &commit.id().to_string()));
        let Some(parent) = commit.parents().next().filter(|_| !is_own) else { continue };
        let diff = tree_diff::diff(&repository, &parent.tree()?, &commit.tree()?)?;
        for (path, written) in written_in(&diff, &kept)? {
            let Some(lines) = kept.get(path.as_str()) else { continue };
            let base_blob = blob(&repository, &base_tree, &path)?;
            if let Some(before) = base_blob.as_ref().filter(|before| before.is_binary()) {
                if written.blob == before.id() {
                    undone.entry(path).or_insert_with(|| Reversal::new(commit.id()));
                }
                continue;
            }
            let at_base: BTreeSet<String> = base_blob.iter().flat_map(lines_of).collect();
            let gone = written.lines.into_iter().filter(|line| {
                at_base.contains(&line.text) && !lines.has(line) && !moved.has(line)
            });
            let back = written
                .taken
                .into_iter()
                .filter(|line| !at_base.contains(line) && lines.whole.contains(line));
            let found = gone.map(|line| format!("- {}", line.text));
            let found: Vec<String> = found.chain(back.map(|line| format!("+ {line}"))).collect();
            if !found.is_empty() {
                let of_path = undone.entry(path).or_insert_with(|| Reversal::new(commit.id()));
                of_path.lines.extend(found);
            }
        }
    }
    Ok(undone.into_iter().map(|(path, undone)| undone.mark(path)).collect())
}

/// What is undone of one path.
struct Reversal {
    /// The last commit that it is of.
    commit: Oid,
    /// As in a diff; none where it is no text.
    lines: Vec<String>,
}

impl Reversal {
    const fn new(commit: Oid) -> Reversal {
        Reversal { commit, lines: Vec::new() }
    }

    fn mark(self, path: String) -> ContentMark {
        let line = self.lines.first().map(|line| redact::redact(line)).unwrap_or_default();
        let what = ContentFact::Overwritten {
            line: line.chars().take(LINE_WIDTH).collect(),
            more: self.lines.len().saturating_sub(1),
            commit: self.commit.to_string(),
        };
        ContentMark { path, what }
    }
}

/// What a commit did to one path.
struct PathChange {
    blob: Oid,
    /// Its new lines, without those that it has only moved.
    lines: Vec<NewLine>,
    /// Those that it took away.
    taken: BTreeSet<String>,
}

/// A line that a commit wrote.
struct NewLine {
    text: String,
    /// The words and signs of it that the line did not have before.
    own: Vec<String>,
}

impl NewLine {
    /// Of the lines that it came for, the one that it has most in common with is what it was before.
    fn new(text: String, before: &[Vec<String>]) -> NewLine {
        let all = parts(&text);
        let is_short = before.len() <= MOST_BEFORE && text.len() <= LONGEST;
        let less = before.iter().filter(|_| is_short).map(|before| without(&all, before));
        let own = less.min_by_key(Vec::len).unwrap_or(all);
        NewLine { text, own }
    }
}

/// What of `parts` is left when each of `others` is taken out of it once.
fn without(parts: &[String], others: &[String]) -> Vec<String> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for other in others {
        *left.entry(other).or_default() += 1;
    }
    let is_new = |part: &&String| match left.get_mut(part.as_str()) {
        Some(count @ 1..) => {
            *count -= 1;
            false
        }
        Some(0) | None => true,
    };
    parts.iter().filter(is_new).cloned().collect()
}

fn written_in(
    diff: &Diff<'_>,
    paths: &BTreeMap<&str, Lines>,
) -> Result<BTreeMap<String, PathChange>> {
    let mut written: BTreeMap<String, PathChange> = BTreeMap::new();
    for delta in diff.deltas() {
        let (old, new) = (delta.old_file(), delta.new_file());
        let Some(path) = new.path_bytes().or(old.path_bytes()).map(name_of) else { continue };
        if paths.contains_key(path.as_str()) {
            let (lines, taken) = (Vec::new(), BTreeSet::new());
            written.insert(path, PathChange { blob: new.id(), lines, taken });
        }
    }
    if written.is_empty() {
        return Ok(written);
    }
    let (mut added, mut taken): (BTreeSet<String>, BTreeSet<String>) = Default::default();
    // Those that stood where the next added lines stand.
    let mut before: Vec<Vec<String>> = Vec::new();
    let mut last = DiffLineType::Context;
    diff.foreach(
        &mut |_, _| true,
        None,
        None,
        Some(&mut |delta, _, line| {
            let (kind, text) = (line.origin_value(), trimmed(line.content()));
            let path = delta.new_file().path_bytes().map(name_of).unwrap_or_default();
            let of_path = written.get_mut(&path);
            if kind == DiffLineType::Deletion {
                if last != DiffLineType::Deletion {
                    before.clear();
                }
                taken.insert(text.clone());
                if let Some(of_path) = of_path {
                    if before.len() <= MOST_BEFORE && text.len() <= LONGEST {
                        before.push(parts(&text));
                    }
                    of_path.taken.insert(text);
                }
            } else if kind == DiffLineType::Addition {
                added.insert(text.clone());
                if let Some(of_path) = of_path {
                    of_path.lines.push(NewLine::new(text, &before));
                }
            } else {
                before.clear();
            }
            last = kind;
            true
        }),
    )?;
    let says_something = |text: &str| text.chars().any(is_of_word);
    for of_path in written.values_mut() {
        let is_moved = |line: &NewLine| taken.contains(&line.text);
        of_path.lines.retain(|it| says_something(&it.text) && !it.own.is_empty() && !is_moved(it));
        of_path.taken.retain(|text| says_something(text) && !added.contains(text));
    }
    Ok(written)
}

/// Lines to look for others in.
#[derive(Default)]
struct Lines {
    whole: BTreeSet<String>,
    parts: Vec<Vec<String>>,
    /// The lines that each part stands in.
    places: BTreeMap<String, Vec<usize>>,
}

impl Lines {
    fn add(&mut self, blob: &Blob<'_>) {
        for line in lines_of(blob) {
            let (parts, at) = (parts(&line), self.parts.len());
            for part in parts.iter().collect::<BTreeSet<_>>() {
                self.places.entry(part.clone()).or_default().push(at);
            }
            self.parts.push(parts);
            self.whole.insert(line);
        }
    }

    /// Whether one of them has what is new in this one, in its order, and most of its words.
    fn has(&self, line: &NewLine) -> bool {
        if self.whole.contains(&line.text) {
            return true;
        }
        let places = |part: &String| self.places.get(part).map_or(&[][..], Vec::as_slice);
        let fewest = line.own.iter().map(places).min_by_key(|it| it.len()).unwrap_or_default();
        let words = parts(&line.text).into_iter().filter(|it| it.chars().all(is_of_word));
        let words: Vec<String> = words.collect();
        fewest.iter().filter_map(|place| self.parts.get(*place)).any(|there| {
            let mut rest = there.iter();
            let has_own = line.own.iter().all(|part| rest.any(|it| it == part));
            has_own && without(&words, there).len() * 2 < words.len()
        })
    }
}

fn is_of_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// The words and signs of a line.
fn parts(line: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut goes_on = false;
    for sign in line.chars() {
        match parts.last_mut().filter(|_| goes_on && is_of_word(sign)) {
            Some(word) => word.push(sign),
            None if sign.is_whitespace() => {}
            None => parts.push(sign.to_string()),
        }
        goes_on = is_of_word(sign);
    }
    parts
}

fn lines_of<'b>(blob: &'b Blob<'_>) -> impl Iterator<Item = String> + use<'b> {
    let text = if blob.is_binary() { &[][..] } else { blob.content() };
    text.split(|byte| *byte == b'\n').map(trimmed)
}

fn trimmed(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim().to_owned()
}

fn blob<'r>(repository: &'r Repository, tree: &Tree<'_>, path: &str) -> Result<Option<Blob<'r>>> {
    let Ok(entry) = tree.get_path(&path_of(path)) else { return Ok(None) };
    Ok(entry.to_object(repository)?.into_blob().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_has_new_is_kept_where_a_line_like_it_has_it() {
        for (before, line, by, is_kept) in [
            ("", "a = 1", "a = 1", true),
            ("def f(a):", "def f(a, mine):", "    def f(a, theirs, mine):", true),
            ("echo hello", "echo hello there", "echo good evening there", true),
            ("import a", "import a, b", "import a, c, b", true),
            ("timeout = 30", "timeout = 60", "timeout = 600", false),
            ("timeout = 30", "timeout = 60", "timeout = 45\nretries = 60", false),
            ("if x == 5:", "if x > 5:", "if x < 5:", false),
            ("", "if x > 5:", "if x < 5:", false),
            ("", "인사말 = \"안녕하세요\"", "인사말 = \"안녕하세요, 여러분\"", true),
            ("", "인사말 = \"안녕하세요\"", "인사말 = \"안녕\"", false),
            ("", "a line of a person", "", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let repository = Repository::init(folder.path()).unwrap();
            let id = repository.blob(by.as_bytes()).unwrap();
            let mut lines = Lines::default();
            lines.add(&repository.find_blob(id).unwrap());
            let before: Vec<Vec<String>> = before.lines().map(parts).collect();
            let line = NewLine::new(line.to_owned(), &before);
            assert_eq!(lines.has(&line), is_kept, "{} in {by}", line.text);
        }
    }
}
