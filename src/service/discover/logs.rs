//! Errors in the log files, each place read once.
//!
//! A log that grows too large is put aside under another name while its content stays the same file, so a
//! position belongs to the file itself and not to its name.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use super::finding::{PER_SOURCE, Watermarks, finding, newest, short_digest};
use crate::domain::finding::{Finding, Signal};
use crate::domain::origin::Origin;
use crate::platform::files::{self, FileError};

/// Bytes of one log that are read at a time; of more, the end.
const AT_ONCE: u64 = 4 << 20;
/// Words at the beginning of a line among which the level stands.
const LEVEL_WITHIN: usize = 5;

static VARIABLE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[0-9a-fA-F]{8,}|\d+").ok());

/// The errors that were logged since.
pub(super) fn errors(folder: &Path, marks: &mut Watermarks) -> Result<Vec<Finding>, FileError> {
    let before: BTreeMap<u64, u64> =
        marks.get("logs").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut after = BTreeMap::new();
    // One finding a trace, with how often, the last of its lines and when that was met among all.
    let mut found: BTreeMap<String, (usize, String, String, usize)> = BTreeMap::new();
    let mut met = 0;
    for path in files::list(folder)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name.filter(|name| name.ends_with(".log")) else {
            continue;
        };
        let log = files::open(&path)?;
        let Ok(about) = log.metadata() else { continue };
        let from = before.get(&about.ino()).copied().unwrap_or_default();
        // A file that shrank was begun anew under the same number.
        let from = if from > about.len() { 0 } else { from };
        let from = from.max(about.len().saturating_sub(AT_ONCE));
        let mut bytes = vec![0; usize::try_from(about.len() - from).unwrap_or_default()];
        let read = log.read_at(&mut bytes, from).unwrap_or_default();
        bytes.truncate(read);
        // A line that is being written is read the next time, whole.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        after.insert(about.ino(), from + whole as u64);
        for line in String::from_utf8_lossy(&bytes[..whole]).lines().filter(|it| is_error(it)) {
            let kind = kind(line);
            let entry = found
                .entry(format!("log:{}", short_digest(&kind)))
                .or_insert_with(|| (0, String::new(), name.clone(), 0));
            entry.0 += 1;
            entry.1 = line.to_owned();
            met += 1;
            entry.3 = met;
        }
    }
    marks.insert("logs".to_owned(), json!(after).to_string());
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, (.., met))| *met);
    let findings = found.into_iter().map(|(trace, (count, line, name, _))| {
        let origin =
            Origin::default().with("log_file", name.as_str()).with("trace", trace.as_str());
        let message = message(&line);
        let title = format!("Error in {name}: {message}");
        let summary = format!("{line}\n×{count}");
        finding(Signal::RuntimeLogError, trace, &title, &summary, origin)
    });
    Ok(newest(findings.collect(), PER_SOURCE))
}

fn is_error(line: &str) -> bool {
    let level = |word: &str| word.trim_matches(['[', ']', ':', '|']) == "ERROR";
    line.split_whitespace().take(LEVEL_WITHIN).any(level) || line.starts_with("Traceback (most")
}

/// What was said, without when and how loud.
fn message(line: &str) -> &str {
    line.split_once("ERROR").map_or(line, |(_, rest)| rest).trim_start_matches([':', ']', ' '])
}

/// The message without what differs from time to time: numbers, ids.
fn kind(line: &str) -> String {
    match VARIABLE.as_ref() {
        Some(variable) => variable.replace_all(message(line), "#").into_owned(),
        None => message(line).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(folder: &Path, marks: &mut Watermarks) -> Vec<String> {
        errors(folder, marks).unwrap().into_iter().map(|found| found.title).collect()
    }

    #[test]
    fn each_line_is_found_once_also_when_its_log_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("teams.log");
        let mut marks = Watermarks::new();
        assert!(titles(folder.path(), &mut marks).is_empty());
        let first = "2026-03-24T00:00:01Z  INFO ERRORS are counted\n2026-03-24T00:00:02Z ERROR cannot reach 10.0.0.1\n2026-03-24T00:00:03Z ERROR cannot reach 10.0.0.2\n2026-03-24T00:00:04Z ERR";
        files::write(&log, first).unwrap();
        let found = errors(folder.path(), &mut marks).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].title, "Error in teams.log: cannot reach 10.0.0.2");
        assert!(found[0].summary.ends_with("×2"), "{}", found[0].summary);
        assert!(titles(folder.path(), &mut marks).is_empty());
        files::append(&log, "OR the disk is full\n").unwrap();
        files::rename(&log, &folder.path().join("teams.1.log")).unwrap();
        files::write(&log, "[ERROR] anew\n").unwrap();
        let found = titles(folder.path(), &mut marks);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.contains(&"Error in teams.1.log: the disk is full".to_owned()));
        assert!(found.contains(&"Error in teams.log: anew".to_owned()));
        assert!(titles(folder.path(), &mut marks).is_empty());
    }

    #[test]
    fn the_same_error_has_the_same_trace_at_another_time() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("teams.log");
        let mut marks = Watermarks::new();
        let mut trace = |line: &str| {
            files::append(&log, line).unwrap();
            errors(folder.path(), &mut marks).unwrap().remove(0).trace
        };
        let first = trace("2026-03-24T00:00:02Z ERROR request 20260324-0a1b2c3d failed\n");
        let second = trace("2026-03-25T11:11:11Z ERROR request 20260325-ffffffff failed\n");
        assert_eq!(first, second);
        assert_ne!(first, trace("2026-03-25T11:11:11Z ERROR something else\n"));
    }
}
