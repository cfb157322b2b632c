//! The sections of a text that begins a sprint (`spec/teams.md` 5.7).

use serde_json::Value;

use super::{is_sprint_start_text, lines};
use crate::domain::lenient;

const MILESTONE: [&str; 2] = ["milestone", "마일스톤"];
const BRIEF: [&str; 7] = ["brief", "details", "context", "notes", "설명", "배경", "메모"];
const REQUIREMENTS: [&str; 9] = [
    "requirements",
    "requirement",
    "constraints",
    "constraint",
    "needs",
    "need",
    "요구사항",
    "요건",
    "제약",
];

/// What a kickoff says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kickoff {
    /// The milestone; blank where none was named ("now" and "today" name none).
    pub milestone: String,
    /// What it is about.
    pub brief: String,
    /// What has to hold, each once.
    pub requirements: Vec<String>,
}

/// Reads the sections of a kickoff text.
#[must_use]
pub fn parse_kickoff(text: &str) -> Kickoff {
    let mut kickoff = Kickoff::default();
    let mut brief: Vec<&str> = Vec::new();
    let mut listing = false;
    for line in lines(text).into_iter().map(str::trim) {
        if line.is_empty() {
            listing = false;
        } else if let Some(milestone) = labelled(line, &MILESTONE) {
            if kickoff.milestone.is_empty() && !is_no_milestone(milestone) {
                milestone.clone_into(&mut kickoff.milestone);
            }
            listing = false;
        } else if let Some(rest) = labelled(line, &BRIEF) {
            brief.extend(Some(rest).filter(|rest| !rest.is_empty()));
            listing = false;
        } else if let Some(rest) = labelled(line, &REQUIREMENTS) {
            add(&mut kickoff.requirements, bullet(rest).unwrap_or(rest));
            listing = true;
        } else if let Some(item) = bullet(line) {
            add(&mut kickoff.requirements, item);
        } else if listing {
            add(&mut kickoff.requirements, line);
        } else if !is_start_line(line) {
            brief.push(line);
        }
    }
    kickoff.brief = brief.join("\n");
    kickoff
}

/// Whether a text names a milestone in a line of its own, by its label with `:` or `=` behind it.
#[must_use]
pub fn names_milestone(text: &str) -> bool {
    let names = |line: &str| {
        let label = MILESTONE.iter().find_map(|it| line.trim().strip_prefix(it));
        label.is_some_and(|rest| rest.trim_start().starts_with([':', '=']))
    };
    text.to_lowercase().lines().any(names)
}

/// The requirements of a JSON value: a list of texts, or one text; trimmed, each once.
#[must_use]
pub fn normalize_requirements(value: &Value) -> Vec<String> {
    let mut requirements = Vec::new();
    for entry in lenient::list(Some(value)) {
        add(&mut requirements, &entry);
    }
    requirements
}

fn add(requirements: &mut Vec<String>, item: &str) {
    let item = item.trim();
    if !item.is_empty() && requirements.iter().all(|known| known != item) {
        requirements.push(item.to_owned());
    }
}

/// What follows a label: after `:`, `=`, `-` or a blank; the label may stand alone.
fn labelled<'a>(line: &'a str, labels: &[&str]) -> Option<&'a str> {
    labels.iter().find_map(|label| {
        let head = line.get(..label.len())?;
        let rest = line.get(label.len()..)?;
        if !head.eq_ignore_ascii_case(label) {
            return None;
        }
        let trimmed = rest.trim_start();
        match trimmed.strip_prefix([':', '=', '-']) {
            Some(value) => Some(value.trim()),
            None if rest.len() != trimmed.len() || rest.is_empty() => Some(trimmed.trim()),
            None => None,
        }
    })
}

/// The text of a bullet: `-`, `*`, `•`, `1.` or `1)`, then a blank.
fn bullet(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let rest = if digits.len() == line.len() {
        line.strip_prefix(['-', '*', '•'])?
    } else {
        digits.strip_prefix(['.', ')'])?
    };
    let item = rest.trim_start();
    (item.len() != rest.len() && !item.is_empty()).then_some(item)
}

fn is_no_milestone(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    matches!(text.as_str(), "" | "now" | "today")
}

/// A line that only says that a sprint begins.
fn is_start_line(line: &str) -> bool {
    is_sprint_start_text(line) && line.split_whitespace().count() <= 3 && !line.contains([':', '='])
}
