//! Roadmaps: a heading for each phase, with goal, requirements and success criteria.

use std::collections::BTreeSet;

use super::document::{Block, NumberedBlock, bold_label, plain};
use super::reader::{Reader, names};
use crate::domain::ids::{PlanItemId, RequirementId};
use crate::domain::plan::{PlanPart, Requirement, RequirementTime};

/// What is being read of a phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Scope,
    Criteria,
    DependsOn,
}

/// `Phase 2.1: Title`: its number and its title.
fn phase(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("Phase ")?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, rest) = rest.split_at(end);
    let title = rest.trim_start().strip_prefix([':', '-', '–', '—'])?;
    (!number.is_empty()).then(|| (number.trim_end_matches('.'), title.trim()))
}

/// Whether a part begins a phase.
pub(super) fn begins_item(block: &Block) -> bool {
    matches!(block, Block::Heading { text, .. } if phase(text).is_some())
}

/// Phases are named by their numbers.
fn ids(text: &str) -> Vec<String> {
    // What is said in brackets is for people.
    let end = text.find('(').unwrap_or(text.len());
    let name = |name: String| {
        let number = name.strip_prefix("Phase ").unwrap_or(&name).trim();
        format!("phase-{number}")
    };
    names(&text[..end]).into_iter().map(name).collect()
}

pub(super) fn read(blocks: &[NumberedBlock]) -> Reader {
    let mut reader = Reader::default();
    let (mut field, mut inside) = (Field::Scope, false);
    let mut done: BTreeSet<String> = BTreeSet::new();
    for NumberedBlock { line, block } in blocks {
        match block {
            Block::Heading { level: 1, text } if reader.plan.title.is_empty() => {
                let title = text.strip_prefix("Roadmap:").unwrap_or(text).trim();
                title.clone_into(&mut reader.plan.title);
            }
            Block::Heading { text, .. } => {
                field = Field::Scope;
                inside = match phase(text) {
                    Some((number, title)) => {
                        if let Ok(id) = PlanItemId::parse(&format!("phase-{number}")) {
                            reader.item(id, title, *line);
                        }
                        true
                    }
                    None => false,
                };
            }
            Block::Entry { text, checked: true, .. } if !inside => {
                if let Some((number, _)) = phase(&plain(text)) {
                    done.insert(format!("phase-{number}"));
                }
            }
            Block::Line(text) if inside => match bold_label(text) {
                Some((label, rest)) => field = labelled(&mut reader, &label, rest, text, *line),
                None if text.eq_ignore_ascii_case("plans:") => field = Field::Scope,
                None if field == Field::Criteria => reader.criterion(text, 1, *line),
                None => reader.scope(text),
            },
            Block::Entry { depth, text, .. } if inside => match field {
                Field::Criteria => reader.criterion(text, *depth, *line),
                Field::DependsOn => reader.depends_on(&ids(text), *line),
                Field::Scope => reader.scope(&format!("- {text}")),
            },
            Block::Code(text) if inside => reader.scope(text),
            Block::Line(_) | Block::Entry { .. } | Block::Row(_) | Block::Code(_) => {}
        }
    }
    for item in &mut reader.plan.items {
        item.done = done.contains(item.id.as_str());
    }
    reader
}

fn labelled(reader: &mut Reader, label: &str, rest: &str, all: &str, line: u32) -> Field {
    match label {
        "goal" => reader.scope(rest),
        "depends on" => {
            reader.depends_on(&ids(rest), line);
            return Field::DependsOn;
        }
        "requirements" => {
            let named = names(rest);
            for name in &named {
                // A roadmap names requirements that another file writes out.
                if let Ok(id) = RequirementId::parse(name)
                    && reader.plan.requirements.iter().all(|known| known.id != id)
                {
                    let part = PlanPart::Requirement(reader.plan.requirements.len());
                    reader.lines.insert(part, line);
                    let (text, when) = (String::new(), RequirementTime::Now);
                    reader.plan.requirements.push(Requirement { id, text, when });
                }
            }
            reader.serves(&named, line);
        }
        "success criteria" => {
            reader.criterion(rest, 0, line);
            return Field::Criteria;
        }
        _ => reader.scope(&plain(all)),
    }
    Field::Scope
}
