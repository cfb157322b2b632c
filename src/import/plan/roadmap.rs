//! Roadmaps: a heading for each phase, with goal, requirements and success criteria.

use std::collections::BTreeMap;

use super::document::{Block, NumberedBlock, bold_label, entry_line, plain};
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
    let mut depth = 0_i32;
    let outside = |c: &char| {
        depth += i32::from(*c == '(');
        let is_outside = depth <= 0;
        depth -= i32::from(*c == ')');
        is_outside
    };
    let text: String = text.chars().filter(outside).collect();
    let name = |name: String| {
        let number = name.strip_prefix("Phase ").unwrap_or(&name).trim();
        format!("phase-{number}")
    };
    names(&text).into_iter().map(name).collect()
}

pub(super) fn read(blocks: &[NumberedBlock]) -> Reader {
    let mut reader = Reader::default();
    let (mut field, mut inside) = (Field::Scope, false);
    // The level of the heading of the phase.
    let mut of_phase = 0;
    // The boxes of the overview, which have the last word.
    let mut boxes: BTreeMap<String, bool> = BTreeMap::new();
    // The plans of each phase: whether all are ticked.
    let mut plans: BTreeMap<String, bool> = BTreeMap::new();
    let mut lists_plans = false;
    // What a table of progress calls finished: phases by number, each with the name that stands there.
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    for NumberedBlock { line, block } in blocks {
        match block {
            Block::Heading { level: 1, text } if reader.plan.title.is_empty() => {
                let title = text.strip_prefix("Roadmap:").unwrap_or(text).trim();
                title.clone_into(&mut reader.plan.title);
            }
            Block::Heading { level, text }
                if inside && *level > of_phase && phase(text).is_none() =>
            {
                // A label as a heading of its own, perhaps with a remark in brackets.
                let (label, rest) = text.split_once(':').unwrap_or((text, ""));
                let label = label.split('(').next().unwrap_or_default().trim();
                let label = label.to_lowercase().replace(['-', '_'], " ");
                lists_plans = label == "plans";
                field = labelled(&mut reader, &label, rest.trim(), text, *line);
            }
            Block::Heading { level, text } => {
                (field, lists_plans) = (Field::Scope, false);
                of_phase = *level;
                let begun = phase(text).and_then(|(number, title)| {
                    Some((PlanItemId::parse(&format!("phase-{number}")).ok()?, title))
                });
                inside = begun.is_some();
                match begun {
                    Some((id, title)) => reader.item(id, title, *line),
                    None if phase(text).is_some() || reader.is_misspelt(text, "phase") => {
                        let message = format!("\"{text}\" begins no phase");
                        reader.fault(*line, message, "write `Phase 2.1: Title`");
                    }
                    None => {}
                }
            }
            Block::Row(cells) if !inside => rows.extend(finished_row(cells)),
            Block::Entry { text, ticked: Some(ticked), .. } if !inside => {
                if let Some((number, _)) = phase(&plain(text)) {
                    boxes.insert(format!("phase-{number}"), *ticked);
                }
            }
            Block::Line(text) if inside => match bold_label(text) {
                Some((label, rest)) => {
                    lists_plans = label == "plans";
                    field = labelled(&mut reader, &label, rest, text, *line);
                }
                None if text.eq_ignore_ascii_case("plans:") => {
                    (field, lists_plans) = (Field::Scope, true);
                }
                None if field == Field::Criteria => reader.criterion(text, 1, *line),
                None => reader.scope(text),
            },
            Block::Entry { depth, text, ticked } if inside => match field {
                Field::Criteria => reader.criterion(text, *depth, *line),
                Field::DependsOn => reader.depends_on(&ids(text), *line),
                Field::Scope => {
                    if let (true, 0, Some(item)) = (lists_plans, *depth, reader.plan.items.last()) {
                        *plans.entry(item.id.to_string()).or_insert(true) &= *ticked == Some(true);
                    }
                    reader.scope(&entry_line(text, *ticked));
                }
            },
            Block::Code(text) if inside => reader.scope(text),
            Block::Row(cells) if inside => reader.scope(&cells.join(" | ")),
            Block::Line(_) | Block::Entry { .. } | Block::Row(_) | Block::Code(_) => {}
        }
    }
    for item in &mut reader.plan.items {
        let id = item.id.as_str();
        let is_named = |name: &String| name.eq_ignore_ascii_case(&item.title);
        let follows = plans.get(id) == Some(&true) || rows.get(id).is_some_and(is_named);
        item.done = boxes.get(id).copied().unwrap_or(follows);
    }
    reader
}

/// The phase that a row of a table of progress calls finished, and its name: `| 1. Foundation | 3/3 | Complete |`.
fn finished_row(cells: &[String]) -> Option<(String, String)> {
    let (first, rest) = cells.split_first()?;
    let first = plain(first);
    let first = first.strip_prefix("Phase ").unwrap_or(&first);
    let end = first.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(first.len());
    let number = first[..end].trim_end_matches('.');
    let has_plans_left = |cell: &String| {
        let count = cell.split_once('/');
        let number = |text: &str| text.trim().parse::<u32>().ok();
        count.is_some_and(|(some, all)| number(some).zip(number(all)).is_some_and(|(a, b)| a < b))
    };
    let state = |cell: &String| {
        let cell = plain(cell).to_lowercase();
        match cell.trim_start_matches(['✅', '✓', ' ']) {
            "complete" | "completed" | "done" | "shipped" => Some(true),
            "not started" | "in progress" | "planned" | "pending" | "deferred" | "blocked"
            | "open" | "todo" => Some(false),
            _ => None,
        }
    };
    // Of several cells that are states the last one counts.
    let is_over =
        rest.iter().filter_map(state).next_back() == Some(true) && !rest.iter().any(has_plans_left);
    let name = first[end..].trim_start_matches([':', '-', '–', '—', ' ']).trim();
    (!number.is_empty() && is_over).then(|| (format!("phase-{number}"), name.to_owned()))
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
