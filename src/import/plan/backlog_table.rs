//! Backlog tables: nine columns in this order, one row an item.

use super::document::{Block, NumberedBlock, plain};
use super::reader::{Reader, names};
use crate::domain::ids::PlanItemId;

/// The columns.
pub(super) const COLUMNS: [&str; 9] = [
    "ID",
    "Priority",
    "Task",
    "Description",
    "Estimate",
    "Dependencies",
    "Acceptance Criteria",
    "Allowed Paths",
    "Out of Scope",
];

fn has(cells: &[String], name: &str) -> bool {
    cells.iter().any(|cell| plain(cell).eq_ignore_ascii_case(name))
}

/// Whether a part is the head of such a table, be it complete or not.
pub(super) fn is_head(block: &Block) -> bool {
    matches!(block, Block::Row(cells)
        if has(cells, "ID") && has(cells, "Task") && has(cells, "Acceptance Criteria"))
}

pub(super) fn read(blocks: &[NumberedBlock]) -> Reader {
    let mut reader = Reader::default();
    let mut inside = false;
    for NumberedBlock { line, block } in blocks {
        match block {
            Block::Heading { level: 1, text } if reader.plan.title.is_empty() => {
                reader.plan.title.clone_from(text);
            }
            Block::Row(cells) if is_head(block) => {
                inside = cells.len() == COLUMNS.len()
                    && cells
                        .iter()
                        .zip(COLUMNS)
                        .all(|(cell, name)| plain(cell).eq_ignore_ascii_case(name));
                if !inside {
                    let message = "these are not the columns of a backlog".to_owned();
                    let hint = format!("write, in this order: {}", COLUMNS.join(", "));
                    reader.fault(*line, message, &hint);
                }
            }
            Block::Row(cells) if inside => row(&mut reader, cells, *line),
            // To Markdown, too, it is none.
            Block::Line(text)
                if text.starts_with('|') && text.matches('|').count() >= COLUMNS.len() =>
            {
                let message = "this row stands outside of the table".to_owned();
                reader.fault(
                    *line,
                    message,
                    "put it right below the rows above, without text between",
                );
            }
            Block::Heading { .. } | Block::Line(_) | Block::Entry { .. } | Block::Code(_) => {
                inside = false;
            }
            Block::Row(_) => {}
        }
    }
    reader
}

fn row(reader: &mut Reader, cells: &[String], line: u32) {
    let [id, priority, task, description, estimate, depends_on, criteria, allowed, out] = cells
    else {
        let message = format!("{} cells, where a row has {}", cells.len(), COLUMNS.len());
        return reader.fault(
            line,
            message,
            "a `|` inside of a cell is written `\\|`; an empty cell is `none`",
        );
    };
    match PlanItemId::parse(&plain(id)) {
        Ok(id) => reader.item(id, &plain(task), line),
        Err(error) => {
            let message = format!("\"{}\" is no id: {error}", id.escape_debug());
            return reader.fault(line, message, "write an id such as T-1");
        }
    }
    reader.rank(priority, line);
    reader.scope(description);
    if !names(estimate).is_empty() {
        reader.scope(&format!("Estimate: {estimate}"));
        reader.effort(estimate, line);
    }
    for criterion in criteria.split(';').filter(|text| !names(text).is_empty()) {
        reader.criterion(criterion, 0, line);
    }
    reader.depends_on(&names(depends_on), line);
    reader.allowed(names(allowed), line);
    let is_path =
        |text: &&String| !text.contains(char::is_whitespace) && text.contains(['/', '*', '.']);
    let all = names(out);
    reader.excluded(all.iter().filter(is_path).cloned().collect());
    let words: Vec<&str> = all.iter().filter(|it| !is_path(it)).map(String::as_str).collect();
    if !words.is_empty() {
        reader.scope(&format!("Out of scope: {}", words.join(", ")));
    }
}
