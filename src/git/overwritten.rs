//! Lines that people committed while a change was under way, and that are not in it any more.
//!
//! Whoever brings two versions together decides about lines that neither a check nor QA may know of: a commit by hand has
//! no criteria.

use std::collections::{BTreeMap, BTreeSet};

use git2::{Blob, Diff, DiffLineType, Oid, Repository, Sort, Tree};

use super::path_name::{name_of, path_of};
use super::{CommitId, Project, Result, message, tree_diff};
use crate::domain::evidence::Candidate;
use crate::domain::guard::{ContentFact, ContentMark};
use crate::platform::redact;

/// Commits of the branch that are looked through.
const MOST_COMMITS: usize = 2_000;
/// Characters of a line that a person is shown.
const LINE_WIDTH: usize = 80;

/// What people committed to the branch after `since` and the candidate takes away, one mark for each path. What they wrote
/// in a line counts as kept where a line of a file that the candidate changes has it in its order, and most words of the
/// line: whoever brings two versions together may have to write one line of two.
pub fn overwritten(
    project: &Project,
    since: CommitId,
    candidate: &Candidate,
) -> Result<Vec<ContentMark>> {
    let repository = project.repository()?;
    let (base, own): (CommitId, CommitId) = (candidate.base.parse()?, candidate.commit.parse()?);
    let (base_tree, own_tree) =
        (repository.find_commit(base.0)?.tree()?, repository.find_commit(own.0)?.tree()?);
    let paths: BTreeSet<&str> = candidate.paths.iter().map(|it| it.path.as_str()).collect();
    let mut kept = Lines::default();
    for path in &paths {
        if let Some(blob) = blob(&repository, &own_tree, path)? {
            kept.add(&blob);
        }
    }
    let mut walk = repository.revwalk()?;
    walk.set_sorting(Sort::TOPOLOGICAL)?;
    walk.simplify_first_parent()?;
    walk.push(base.0)?;
    walk.hide(since.0)?;
    let mut gone: BTreeMap<String, Gone> = BTreeMap::new();
    for id in walk.take(MOST_COMMITS) {
        let commit = repository.find_commit(id?)?;
        let is_of_team =
            message::request_of(&String::from_utf8_lossy(commit.message_bytes())).is_some();
        let Some(parent) = commit.parents().next().filter(|_| !is_of_team) else { continue };
        let diff = tree_diff::diff(&repository, &parent.tree()?, &commit.tree()?)?;
        for (path, written) in written_in(&diff, &paths)? {
            let Some(before) = blob(&repository, &base_tree, &path)? else { continue };
            if before.is_binary() {
                if written.blob == before.id() {
                    gone.entry(path).or_insert_with(|| Gone::new(commit.id()));
                }
                continue;
            }
            let still_there: BTreeSet<String> = lines(&before).collect();
            for line in written.lines {
                if still_there.contains(&line.text) && !kept.has(&line) {
                    let of_path = gone.entry(path.clone());
                    of_path.or_insert_with(|| Gone::new(commit.id())).lines.push(line.text);
                }
            }
        }
    }
    Ok(gone.into_iter().map(|(path, gone)| gone.mark(path)).collect())
}

/// What of one path is gone.
struct Gone {
    /// The last commit that wrote something of it.
    commit: Oid,
    /// None where it is no text.
    lines: Vec<String>,
}

impl Gone {
    const fn new(commit: Oid) -> Gone {
        Gone { commit, lines: Vec::new() }
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

/// What a commit wrote to one path.
struct Written {
    blob: Oid,
    /// Its new lines, without those that it has only moved.
    lines: Vec<WrittenLine>,
}

/// A line that a commit wrote.
struct WrittenLine {
    text: String,
    /// The words and signs of it that the line did not have before.
    own: Vec<String>,
}

impl WrittenLine {
    /// Of the lines that it came for, the one that it has most in common with is what it was before.
    fn new(text: String, before: &[String]) -> WrittenLine {
        let all = parts(&text);
        let mut own = all.clone();
        let less = before.iter().map(|before| without(&all, &parts(before)));
        if let Some(fewest) = less.min_by_key(Vec::len) {
            own = fewest;
        }
        WrittenLine { text, own }
    }
}

/// What of `parts` is left when each of `others` is taken out of it once.
fn without(parts: &[String], others: &[String]) -> Vec<String> {
    let mut others = others.to_vec();
    let is_new = |part: &&String| match others.iter().position(|it| it == *part) {
        Some(at) => {
            others.swap_remove(at);
            false
        }
        None => true,
    };
    parts.iter().filter(is_new).cloned().collect()
}

fn written_in(diff: &Diff<'_>, paths: &BTreeSet<&str>) -> Result<BTreeMap<String, Written>> {
    let mut written: BTreeMap<String, Written> = BTreeMap::new();
    for delta in diff.deltas() {
        let Some(path) = delta.new_file().path_bytes().map(name_of) else { continue };
        if paths.contains(path.as_str()) {
            written.insert(path, Written { blob: delta.new_file().id(), lines: Vec::new() });
        }
    }
    if written.is_empty() {
        return Ok(written);
    }
    let mut taken: BTreeSet<String> = BTreeSet::new();
    // Those that stood where the next added lines stand.
    let mut before: Vec<String> = Vec::new();
    let mut last = DiffLineType::Context;
    diff.foreach(
        &mut |_, _| true,
        None,
        None,
        Some(&mut |delta, _, line| {
            let (kind, text) = (line.origin_value(), trimmed(line.content()));
            if kind == DiffLineType::Deletion {
                if last != DiffLineType::Deletion {
                    before.clear();
                }
                before.push(text.clone());
                taken.insert(text);
            } else if kind == DiffLineType::Addition {
                let path = delta.new_file().path_bytes().map(name_of).unwrap_or_default();
                if let Some(written) = written.get_mut(&path) {
                    written.lines.push(WrittenLine::new(text, &before));
                }
            } else {
                before.clear();
            }
            last = kind;
            true
        }),
    )?;
    let says_something = |it: &WrittenLine| it.text.chars().any(is_of_word) && !it.own.is_empty();
    for of_path in written.values_mut() {
        of_path.lines.retain(|it| says_something(it) && !taken.contains(&it.text));
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
        for line in lines(blob) {
            let (parts, at) = (parts(&line), self.parts.len());
            for part in parts.iter().collect::<BTreeSet<_>>() {
                self.places.entry(part.clone()).or_default().push(at);
            }
            self.parts.push(parts);
            self.whole.insert(line);
        }
    }

    /// Whether one of them has what is new in this one, in its order, and most of its words.
    fn has(&self, line: &WrittenLine) -> bool {
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

fn lines<'b>(blob: &'b Blob<'_>) -> impl Iterator<Item = String> + 'b {
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
            let before: Vec<String> = before.lines().map(str::to_owned).collect();
            let line = WrittenLine::new(line.to_owned(), &before);
            assert_eq!(lines.has(&line), is_kept, "{} in {by}", line.text);
        }
    }
}
