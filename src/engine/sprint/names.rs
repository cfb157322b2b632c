//! What sprints and their folders are called (`spec/teams.md` 4.1), by the clock of the workspace's zone.

use std::collections::BTreeSet;

use chrono_tz::Tz;

use crate::domain::ids::SprintId;
use crate::domain::time::Timestamp;

/// What stands for a name of which nothing is left.
const NAMELESS: &str = "sprint";

/// Characters that some file system does not take in a name.
const UNSAFE: &[char] = &['<', '>', ':', '"', '/', '\\', '|', '?', '*'];

/// The longest milestone within a display name, in characters.
const MAX_LABEL: usize = 120;

/// A fresh id: `YYMMDD-Sprint-HH:MM`, with `-2`, `-3`, … where that is taken (13.A #32).
#[must_use]
pub fn sprint_id(now: Timestamp, zone: Tz, taken: &BTreeSet<SprintId>) -> SprintId {
    // One more than there are taken ids is always free.
    let mut nth = 1;
    let mut id = SprintId::at(now, zone, nth);
    while taken.contains(&id) {
        nth += 1;
        id = SprintId::at(now, zone, nth);
    }
    id
}

/// The name of a sprint's folder: `260324-Sprint-09:00` lies in `260324-Sprint-09-00`.
#[must_use]
pub fn folder_name(id: &SprintId) -> String {
    slug(id.as_str())
}

/// A text as the name of a folder: blanks and unsafe characters become single dashes.
#[must_use]
pub fn slug(text: &str) -> String {
    let spaced = safe(text);
    let parts: Vec<&str> = spaced
        .split(|c: char| c == '-' || c.is_whitespace())
        .filter(|part| !part.is_empty())
        .collect();
    if parts.is_empty() { NAMELESS.to_owned() } else { parts.join("-") }
}

/// The name of a sprint for people: `YYYY-MM-DD-<milestone>`.
#[must_use]
pub fn display_name(now: Timestamp, zone: Tz, milestone: &str) -> String {
    let label: String = sprint_label(milestone).chars().take(MAX_LABEL).collect();
    format!("{}-{}", now.format_in(zone, "%Y-%m-%d"), label.trim_end())
}

/// A milestone on one line, without the characters that no file name can have.
#[must_use]
pub fn sprint_label(text: &str) -> String {
    let label = safe(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if label.is_empty() { NAMELESS.to_owned() } else { label }
}

fn safe(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || UNSAFE.contains(&c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEOUL: Tz = chrono_tz::Asia::Seoul;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn s02_id_and_folder() {
        let id = sprint_id(at("2026-03-24T00:00:00Z"), SEOUL, &BTreeSet::new());
        assert_eq!(id.as_str(), "260324-Sprint-09:00");
        assert_eq!(folder_name(&id), "260324-Sprint-09-00");
        let berlin = chrono_tz::Europe::Berlin;
        let id = sprint_id(at("2026-03-24T00:00:00Z"), berlin, &BTreeSet::new());
        assert_eq!(id.as_str(), "260324-Sprint-01:00");
    }

    #[test]
    fn row_13a_32_no_two_sprints_share_an_id_or_a_folder() {
        let mut taken = BTreeSet::new();
        let mut folders = BTreeSet::new();
        for second in 0..120 {
            let id = sprint_id(at("2026-03-24T00:00:00Z").plus_seconds(second), SEOUL, &taken);
            assert!(folders.insert(folder_name(&id)), "{id}");
            assert!(taken.insert(id));
        }
        assert!(taken.contains(&SprintId::parse("260324-Sprint-09:00-2").unwrap()));
        assert!(taken.contains(&SprintId::parse("260324-Sprint-09:01-60").unwrap()));
    }

    #[test]
    fn s04_display_name() {
        let now = at("2026-03-24T12:00:00+09:00");
        for (milestone, name) in [
            ("a/b: \"c\"  d", "2026-03-24-a b c d"),
            ("", "2026-03-24-sprint"),
            ("<>", "2026-03-24-sprint"),
            ("로그인 정리\n둘째 줄", "2026-03-24-로그인 정리 둘째 줄"),
        ] {
            assert_eq!(display_name(now, SEOUL, milestone), name, "S04 {milestone:?}");
        }
        assert!(display_name(now, SEOUL, &"긴".repeat(10_000)).chars().count() < 140);
    }
}
