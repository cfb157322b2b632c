//! The history of ended sprints: a file each, and a table of them all (`spec/teams.md` 3.5).

use serde_json::json;

use super::values::{record, todos};
use super::{Keep, Paper, fill, folder_name, is_korean, nothing, sprint_folder};
use crate::assets::AssetError;
use crate::domain::sprint::Sprint;

/// The table, relative to the workspace.
pub const INDEX: &str = "shared_workspace/sprint_history/index.md";

/// The columns of the table.
pub(in crate::workspace) const COLUMNS: [&str; 7] = [
    "sprint_id",
    "status",
    "milestone_title",
    "started_at",
    "ended_at",
    "todo_count",
    "commit_sha",
];

/// A row of the table.
pub(in crate::workspace) type Row = [String; 7];

/// The file of an ended sprint.
pub fn sprint_history(sprint: &Sprint, report: &str) -> Result<Paper, AssetError> {
    // Deeper headings: a reader of older files counts todos by their headings.
    // The history lies elsewhere than the report.
    let mut report = report.to_owned();
    for name in ["burndown", "lanes"] {
        let there = format!("](../sprints/{}/{name}.png)", folder_name(sprint));
        report = report.replace(&format!("]({name}.png)"), &there);
    }
    let inner: Vec<String> = report
        .lines()
        .map(|line| if line.starts_with("## ") { format!("##{line}") } else { line.to_owned() })
        .collect();
    let context = json!({
        "s": record(sprint)?,
        "todos": todos(sprint)?,
        "folder": sprint_folder(sprint),
        "report": inner.join("\n"),
        "ko": is_korean(sprint.language),
        "nothing": nothing(sprint.language),
    });
    Ok(Paper {
        path: format!("shared_workspace/sprint_history/{}.md", folder_name(sprint)),
        heading: "Sprint History",
        name: "history",
        text: fill("history", context)?,
        keep: Keep::Once,
    })
}

/// The table with the sprint in it. Reads nothing but the table that there is; a row of the same sprint
/// is replaced, and what stands around the table stays.
#[must_use]
pub fn index_with_row(old: Option<&str>, sprint: &Sprint) -> String {
    let text = |value: Option<String>| value.unwrap_or_default();
    let row = [
        sprint.sprint_id.to_string(),
        sprint.status.to_string(),
        cell(&sprint.milestone_title),
        text(sprint.started_at.map(|at| at.to_string())),
        text(sprint.ended_at.map(|at| at.to_string())),
        sprint.work.todos.len().to_string(),
        cell(&sprint.work.commit_sha),
    ];
    let (mut before, mut rows, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for line in old.unwrap_or_default().lines() {
        if let Some(row) = parse_row(line) {
            rows.push(row);
        } else if is_frame(line) {
            // The frame of the table is written anew.
        } else if rows.is_empty() {
            before.push(line);
        } else {
            after.push(line);
        }
    }
    rows.retain(|one| one[0] != row[0]);
    rows.push(row);
    let mut text = String::new();
    let before = before.join("\n");
    text.push_str(if before.trim().is_empty() { TITLE } else { before.trim_end() });
    text.push_str("\n\n");
    text.push_str(&table(rows));
    let after = after.join("\n");
    if !after.trim().is_empty() {
        text.push_str(&format!("\n{}\n", after.trim_matches('\n')));
    }
    text
}

/// The heading of a new table.
pub(in crate::workspace) const TITLE: &str = "# Sprint history";

/// The head of the table, and the line below it.
fn is_frame(line: &str) -> bool {
    let Some(inner) = line.trim().strip_prefix('|') else {
        return false;
    };
    let first = inner.split('|').next().unwrap_or_default().trim();
    first == COLUMNS[0] || (!first.is_empty() && first.chars().all(|c| c == '-' || c == ':'))
}

/// A row: seven cells, or the six of older files without a milestone.
pub(in crate::workspace) fn parse_row(line: &str) -> Option<Row> {
    let cells: Vec<&str> =
        line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    if is_frame(line) || cells[0].is_empty() {
        return None;
    }
    let text = |at: usize| cells[at].to_owned();
    match cells.len() {
        7 => Some(std::array::from_fn(text)),
        6 => Some([text(0), text(1), String::new(), text(2), text(3), text(4), text(5)]),
        _ => None,
    }
}

/// The table, newest first; an empty milestone reads N/A.
pub(in crate::workspace) fn table(mut rows: Vec<Row>) -> String {
    rows.sort_by(|a, b| (&b[3], &b[0]).cmp(&(&a[3], &a[0])));
    let mut text = format!("| {} |\n|{}\n", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len()));
    for mut row in rows {
        if row[2].is_empty() {
            "N/A".clone_into(&mut row[2]);
        }
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/")
}
