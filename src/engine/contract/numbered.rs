//! Texts that prompts number (`C-1`, `R-2`), found again by their number or by their own words; and the rows of a
//! verdict held against the criteria that they are about.

use std::fmt;

use crate::domain::criterion::{self, Criterion};

/// The letter of acceptance criteria.
pub const CRITERION: char = 'C';
/// The letter of a sprint's requirements.
pub const REQUIREMENT: char = 'R';

/// The name of a text by its place in the list, from 0.
#[must_use]
pub fn name(letter: char, index: usize) -> String {
    format!("{letter}-{}", index + 1)
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The place of the text that `given` names: by its words, or by its number with or without words behind it.
#[must_use]
pub fn find(texts: &[String], letter: char, given: &str) -> Option<usize> {
    let given = flat(given);
    let by_words = || texts.iter().position(|text| flat(text) == given);
    by_words().or_else(|| numbered(letter, &given).filter(|index| *index < texts.len()))
}

/// The place that a number at the beginning names.
fn numbered(letter: char, given: &str) -> Option<usize> {
    let mut chars = given.chars();
    if !chars.next()?.eq_ignore_ascii_case(&letter) {
        return None;
    }
    let rest = chars.as_str();
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, behind) = rest.split_at(end);
    if behind.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '-') {
        return None;
    }
    digits.parse::<usize>().ok()?.checked_sub(1)
}

/// The text nearest to `given`, for whoever named one that is not there.
#[must_use]
pub fn nearest<'t>(texts: &'t [String], given: &str) -> Option<(usize, &'t str)> {
    let given = flat(given).to_lowercase();
    let distance = |text: &str| strsim::damerau_levenshtein(&flat(text).to_lowercase(), &given);
    texts.iter().map(String::as_str).enumerate().min_by_key(|(_, text)| distance(text))
}

/// How the rows of a verdict differ from the criteria.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFaults {
    /// Criteria without a row.
    pub missing: Vec<String>,
    /// Criteria with more than one.
    pub doubled: Vec<String>,
    /// Rows that are about no criterion, in their own words.
    pub unknown: Vec<String>,
}

impl RowFaults {
    /// Whether there is exactly one row for each criterion.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.doubled.is_empty() && self.unknown.is_empty()
    }
}

impl fmt::Display for RowFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all =
            [("missing", &self.missing), ("doubled", &self.doubled), ("unknown", &self.unknown)];
        let said: Vec<String> = all
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(word, names)| format!("{word}: {}", names.join(", ")))
            .collect();
        f.write_str(&said.join("; "))
    }
}

/// Holds the criteria that rows name against those that there are. Any rows will do where there are none but those of
/// people, which need no row.
#[must_use]
pub fn row_faults<'r>(criteria: &[Criterion], rows: impl Iterator<Item = &'r str>) -> RowFaults {
    let mut faults = RowFaults::default();
    if criteria.iter().all(Criterion::is_manual) {
        return faults;
    }
    let written = criterion::written(criteria);
    let mut count = vec![0_usize; criteria.len()];
    for row in rows {
        // Of two criteria in the same words each has a row of its own.
        let says = |index: usize| {
            [&written[index], &criteria[index].text].into_iter().any(|text| flat(text) == flat(row))
        };
        let free = (0..criteria.len()).find(|index| count[*index] == 0 && says(*index));
        match free.or_else(|| find(&written, CRITERION, row)) {
            Some(index) => count[index] += 1,
            None => faults.unknown.push(short(row)),
        }
    }
    for (index, count) in count.into_iter().enumerate() {
        let name = || name(CRITERION, index);
        match count {
            0 if criteria[index].is_manual() => {}
            0 => faults.missing.push(name()),
            1 => {}
            _ => faults.doubled.push(name()),
        }
    }
    faults.unknown.truncate(SHOWN);
    faults
}

/// Rows about nothing that are named, and characters of each.
const SHOWN: usize = 8;
const SHOWN_CHARS: usize = 60;

fn short(row: &str) -> String {
    let text: String = flat(row).chars().take(SHOWN_CHARS).collect();
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_text_is_found_by_its_number_or_its_words_and_by_nothing_else() {
        let texts = list(&["it  works", "it is fast", "C-1 stays"]);
        for (given, found) in [
            ("C-1", Some(0)),
            (" c-2 ", Some(1)),
            ("C2", Some(1)),
            ("C-2: it is fast", Some(1)),
            ("C-3 (seen in the diff)", Some(2)),
            ("it works", Some(0)),
            ("C-1 stays", Some(2)),
            ("C-0", None),
            ("C-4", None),
            ("C-99999999999999999999999", None),
            ("C-1.2", None),
            ("C-1a", None),
            ("C-", None),
            ("C", None),
            ("R-1", None),
            ("It works", None),
            ("works", None),
            ("", None),
            ("한글", None),
        ] {
            assert_eq!(find(&texts, 'C', given), found, "{given:?}");
        }
    }

    #[test]
    fn rows_are_missing_doubled_or_unknown() {
        let criteria = ["a", "b", "b"].map(Criterion::from);
        let faults = |rows: &[&str]| row_faults(&criteria, rows.iter().copied()).to_string();
        assert_eq!(faults(&["C-1", "C-2", "C-3"]), "");
        assert_eq!(faults(&["b", "a", "b"]), "");
        assert_eq!(faults(&["a"]), "missing: C-2, C-3");
        assert_eq!(faults(&["a", "a", "b", "b"]), "doubled: C-1");
        assert_eq!(faults(&["a", "b", "b", "b"]), "doubled: C-2");
        assert_eq!(faults(&["a", "b", "C-3", "and it is green"]), "unknown: \"and it is green\"");
        assert_eq!(faults(&[]), "missing: C-1, C-2, C-3");
        assert_eq!(faults(&["", " "]), "missing: C-1, C-2, C-3; unknown: \"\", \"\"");
        assert!(row_faults(&[], ["whatever"].into_iter()).is_empty());
        let many = vec!["x"; 1_000];
        assert_eq!(row_faults(&criteria, many.into_iter()).unknown.len(), SHOWN);
    }
}
