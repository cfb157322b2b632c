//! `PLAN.md` files: headings `EPIC-001` with directives, lists of criteria and tasks below.

use super::document::{Block, NumberedBlock, bold_label, entry_line};
use super::reader::{Reader, id_and_title, names};
use crate::domain::ids::PlanItemId;

/// What is being read of an epic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Scope,
    Criteria,
    DependsOn,
    Allowed,
    Excluded,
    /// What belongs to a directive that is not used.
    Unused,
}

fn begins(level: u8, text: &str) -> Option<(String, &str)> {
    let prefixes: &[&str] = if level == 2 { &["EPIC", "TASK"] } else { &["EPIC"] };
    if level == 2 || level == 3 { id_and_title(text, prefixes) } else { None }
}

/// Whether a part begins an epic, or a task that stands by itself.
pub(super) fn begins_item(block: &Block) -> bool {
    matches!(block, Block::Heading { level, text } if begins(*level, text).is_some())
}

pub(super) fn read(blocks: &[NumberedBlock]) -> Reader {
    let mut reader = Reader::default();
    let (mut field, mut inside, mut own_level) = (Field::Scope, false, 2);
    for NumberedBlock { line, block } in blocks {
        match block {
            Block::Heading { level: 1, text }
                if reader.plan.title.is_empty()
                    && (reader.plan.items.is_empty() || !reader.is_misspelt(text, "epic")) =>
            {
                let title = text.strip_prefix("Plan:").unwrap_or(text).trim();
                title.clone_into(&mut reader.plan.title);
            }
            Block::Heading { level, text }
                if begins(*level, text).is_none() && reader.is_misspelt(text, "epic") =>
            {
                inside = false;
                let message = format!("\"{text}\" begins no epic");
                reader.fault(*line, message, "write `## EPIC-001: Title`, or `###` before it");
            }
            Block::Heading { level, text } => {
                field = Field::Scope;
                if let Some((id, title)) = begins(*level, text) {
                    (inside, own_level) = (true, *level);
                    match PlanItemId::parse(&id) {
                        Ok(id) => reader.item(id, title, *line),
                        Err(error) => {
                            let message = format!("\"{id}\" is no id: {error}");
                            reader.fault(*line, message, "write `EPIC-001: Title`");
                        }
                    }
                    continue;
                }
                match text.to_lowercase().trim_end_matches(':') {
                    "definition of done" | "acceptance criteria" => field = Field::Criteria,
                    "dependencies" | "depends on" | "depends_on" => field = Field::DependsOn,
                    "files" | "paths" | "allowed paths" if inside => field = Field::Allowed,
                    "excluded paths" if inside => field = Field::Excluded,
                    "tasks" => {}
                    _ if *level <= own_level => inside = false,
                    _ if inside => reader.scope(text),
                    _ => {}
                }
            }
            Block::Line(text) if inside => match directive(text) {
                Some((name, rest)) => field = directed(&mut reader, &name, rest, *line),
                None if field == Field::DependsOn => {
                    reader.depends_on(&names(text), *line);
                }
                None => {
                    if matches!(field, Field::Allowed | Field::Excluded) {
                        field = Field::Scope;
                    }
                    reader.scope(text);
                }
            },
            Block::Entry { depth, text, ticked } if inside => match field {
                Field::Criteria => reader.criterion(text, *depth, *line),
                Field::DependsOn => reader.depends_on(&names(text), *line),
                Field::Scope | Field::Allowed | Field::Excluded | Field::Unused => {
                    // A task may begin with such a word.
                    let found = directive(text).filter(|_| ticked.is_none());
                    match found.filter(|(name, _)| is_known(name)) {
                        Some((name, rest)) => field = directed(&mut reader, &name, rest, *line),
                        None if field == Field::Allowed => reader.allowed(paths(text), *line),
                        None if field == Field::Excluded => reader.excluded(paths(text)),
                        None => {
                            let entry = entry_line(text, *ticked);
                            reader.scope(&format!("{}{entry}", "  ".repeat(*depth)));
                        }
                    }
                }
            },
            Block::Code(text) if inside && field != Field::Unused => reader.scope(text),
            Block::Row(cells) if inside => reader.scope(&cells.join(" | ")),
            Block::Line(_) | Block::Entry { .. } | Block::Row(_) | Block::Code(_) => {}
        }
    }
    reader
}

/// The paths of an entry. What stands behind one in backquotes says something about it.
fn paths(text: &str) -> Vec<String> {
    match text.strip_prefix('`').and_then(|text| text.split_once('`')) {
        Some((path, rest)) if !rest.trim_start().starts_with(',') => vec![path.to_owned()],
        Some(_) | None => names(text),
    }
}

/// `Name: words`, also in bold: one word, or the words of a name that is known, which may stand in bold alone.
fn directive(text: &str) -> Option<(String, &str)> {
    if let Some((name, rest)) = bold_label(text) {
        return Some((name.replace(' ', "_"), rest));
    }
    let written = |name: &str| name.trim().to_lowercase().replace([' ', '-'], "_");
    let alone = text.trim().strip_prefix("**").and_then(|text| text.strip_suffix("**"));
    if let Some(name) = alone.map(written).filter(|name| is_known(name)) {
        return Some((name, ""));
    }
    let (name, rest) = text.split_once(':')?;
    let is_word = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    // An address is no directive.
    let is_meant = (is_word(name) || is_known(&written(name))) && !rest.starts_with("//");
    is_meant.then(|| (written(name), rest.trim()))
}

fn is_known(name: &str) -> bool {
    const KNOWN: [&str; 20] = [
        "roles",
        "role",
        "objective",
        "description",
        "depends_on",
        "dependencies",
        "definition_of_done",
        "acceptance_criteria",
        "priority",
        "estimate",
        "effort",
        "files",
        "paths",
        "allowed_paths",
        "excluded_paths",
        "working_dir",
        "pipeline",
        "capabilities",
        "skills",
        "lifecycle",
    ];
    KNOWN.contains(&name)
}

fn directed(reader: &mut Reader, name: &str, rest: &str, line: u32) -> Field {
    match name {
        "objective" | "description" => reader.scope(rest),
        "depends_on" | "dependencies" => {
            reader.depends_on(&names(rest), line);
            // What is named in the line is all of it.
            let goes_on = rest.is_empty() || rest.starts_with('[') && !rest.ends_with(']');
            return if goes_on { Field::DependsOn } else { Field::Scope };
        }
        "definition_of_done" | "acceptance_criteria" => {
            reader.criterion(rest, 0, line);
            return Field::Criteria;
        }
        "priority" => reader.rank(rest, line),
        "estimate" | "effort" => {
            reader.scope(&format!("Estimate: {rest}"));
            reader.effort(rest, line);
        }
        "files" | "paths" | "allowed_paths" => {
            reader.allowed(names(rest), line);
            return if rest.is_empty() { Field::Allowed } else { Field::Scope };
        }
        "excluded_paths" => {
            reader.excluded(names(rest));
            return if rest.is_empty() { Field::Excluded } else { Field::Scope };
        }
        "roles" | "role" | "working_dir" | "pipeline" | "capabilities" | "skills" | "lifecycle" => {
            let message = format!("the directive `{name}` is not used");
            let hint = "the team's own roles, lifecycle and project hold for every item";
            reader.warn(line, message, hint);
            return Field::Unused;
        }
        _ => {
            let known = "Objective, depends_on, Priority, Estimate, Files, Acceptance Criteria, Definition of Done";
            let message = format!("the directive `{name}` is not known");
            reader.warn(
                line,
                message,
                &format!("known are {known}; it is kept as words of the scope"),
            );
            reader.scope(&format!("{name}: {rest}"));
        }
    }
    Field::Scope
}
