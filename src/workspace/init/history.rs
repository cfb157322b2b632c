//! Sprint history over a reset: its files stay, and its index is made again from the old index and
//! from the files (`spec/teams.md` 3.3).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::platform::files::{self, FileError};
use crate::workspace::papers::history::{COLUMNS, Row, TITLE, parse_row, table};

/// Where the history waits while a reset is under way. A cut-off reset leaves it there, and the next
/// one takes it up.
fn waiting(root: &Path) -> PathBuf {
    root.join(".sprint_history.kept")
}

fn place(root: &Path) -> PathBuf {
    root.join("shared_workspace/sprint_history")
}

/// Moves the history out of the way.
pub(super) fn take(root: &Path) -> Result<PathBuf, FileError> {
    let (from, to) = (place(root), waiting(root));
    if files::exists(&from) && !files::exists(&to) {
        files::rename(&from, &to)?;
        files::sync_dir(root)?;
    }
    Ok(to)
}

/// Moves it back and writes the index.
pub(super) fn put_back(root: &Path, kept: &Path) -> Result<(), FileError> {
    let to = place(root);
    let mut rows = BTreeMap::new();
    // What people wrote there need not be UTF-8.
    let text = |path: &Path| files::read(path).map(|it| String::from_utf8_lossy(&it).into_owned());
    let index = kept.join("index.md");
    if files::exists(&index) {
        for row in text(&index)?.lines().filter_map(parse_row) {
            rows.insert(row[0].clone(), row);
        }
    }
    for path in files::list(kept)? {
        let Some(name) = path.file_name() else {
            continue;
        };
        if name == "index.md" {
            continue;
        }
        let is_file = files::metadata(&path).is_ok_and(|it| it.is_file());
        if is_file && path.extension().is_some_and(|extension| extension == "md") {
            let id = path.file_stem().unwrap_or_default().to_string_lossy();
            let row = row_of_history(&id, &text(&path)?);
            rows.entry(row[0].clone()).or_insert(row);
        }
        files::rename(&path, &to.join(name))?;
    }
    let text = format!("{TITLE}\n\n{}", table(rows.into_values().collect()));
    files::write_durable(&to.join("index.md"), text)?;
    files::remove_dir_all(kept)
}

/// What a history file says about itself in its first bullets.
fn row_of_history(id: &str, text: &str) -> Row {
    let mut row: Row = std::array::from_fn(|_| String::new());
    for line in text.lines() {
        let Some((name, value)) = line.strip_prefix("- ").and_then(|line| line.split_once(':'))
        else {
            continue;
        };
        if let Some(at) = COLUMNS.iter().position(|column| *column == name.trim())
            && row[at].is_empty()
        {
            row[at] = value.trim().trim_matches('`').replace('|', "/");
        }
    }
    if row[0].is_empty() {
        row[0] = id.to_owned();
    }
    if row[5].is_empty() {
        row[5] = text.lines().filter(|line| line.starts_with("### ")).count().to_string();
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_milestone_is_read_as_the_older_table_c09() {
        let row = parse_row("| s1 | completed | 2026 | 2026 | 3 | abc |").unwrap();
        assert_eq!(row, ["s1", "completed", "", "2026", "2026", "3", "abc"]);
        assert!(parse_row("|---|---|---|---|---|---|---|").is_none());
        assert!(table(vec![row]).contains("| s1 | completed | N/A | 2026 | 2026 | 3 | abc |"));
    }
}
