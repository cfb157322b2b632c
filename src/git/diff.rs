//! Differences for people and prompts.

use std::fmt::Write as _;

use git2::{Diff, DiffFormat, Repository, Tree};

use super::{CommitId, Project, Result, tree_diff};
use crate::domain::evidence::Candidate;

/// The longest line that an excerpt shows, in characters.
const MAX_LINE: usize = 400;

/// The candidate's difference to its base as a unified diff, at most `max_lines` lines of it; the last line
/// says how much was left out. Binary files are named only, control characters are replaced.
pub fn diff_excerpt(project: &Project, candidate: &Candidate, max_lines: usize) -> Result<String> {
    let repository = project.repository()?;
    let tree = |id: &str| -> Result<Tree<'_>> {
        let id: CommitId = id.parse()?;
        Ok(repository.find_commit(id.0)?.tree()?)
    };
    let (old, new) = (tree(&candidate.base)?, tree(&candidate.commit)?);
    let mut diff = tree_diff::diff(&repository, &old, &new)?;
    diff.find_similar(None)?;
    excerpt(&diff, max_lines)
}

/// The same of any difference.
pub(super) fn excerpt(diff: &Diff<'_>, max_lines: usize) -> Result<String> {
    let (mut text, mut lines) = (String::new(), 0_usize);
    diff.print(DiffFormat::Patch, |_, _, line| {
        // A file's or hunk's header arrives as one piece of several lines.
        let piece = String::from_utf8_lossy(line.content());
        let origin = line.origin();
        for one in piece.lines() {
            lines += 1;
            if lines <= max_lines {
                if matches!(origin, '+' | '-' | ' ') {
                    text.push(origin);
                }
                text.extend(one.chars().take(MAX_LINE).map(printable));
                text.push('\n');
            }
        }
        true
    })?;
    if lines > max_lines {
        let _ = writeln!(text, "[{} more lines]", lines - max_lines);
    }
    Ok(text)
}

fn printable(c: char) -> char {
    if c.is_control() && c != '\t' { '\u{fffd}' } else { c }
}

/// Lines added and removed between two trees.
pub(super) fn line_counts(
    repository: &Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
) -> Result<(u64, u64)> {
    let stats = tree_diff::diff(repository, old, new)?.stats()?;
    Ok((
        u64::try_from(stats.insertions()).unwrap_or(u64::MAX),
        u64::try_from(stats.deletions()).unwrap_or(u64::MAX),
    ))
}
