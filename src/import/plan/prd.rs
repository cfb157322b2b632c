//! Product requirement documents: below `## User Stories` a heading for each story, with bold blocks.

use super::document::{Block, NumberedBlock, bold_label, entry_line, plain};
use super::reader::{Reader, id_and_title, names};
use crate::domain::ids::{PlanItemId, RequirementId};
use crate::domain::plan::{PlanPart, Requirement, RequirementTime};

/// The level of a section, and of a story below it.
const SECTION: u8 = 2;
const STORY: u8 = 3;

/// What the ids of stories begin with.
const STORIES: [&str; 2] = ["US", "RI"];

/// The block of a story that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Scope,
    Criteria,
    DependsOn,
    Requirements,
    Allowed,
    Excluded,
}

/// The section that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Stories,
    Requirements,
    NonGoals,
    Other,
}

fn section(title: &str) -> Section {
    let title = title.to_lowercase().replace('-', " ");
    let title = title.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ');
    match title {
        "user stories" | "stories" => Section::Stories,
        "functional requirements" | "requirements" => Section::Requirements,
        "non goals" | "out of scope" => Section::NonGoals,
        _ => Section::Other,
    }
}

/// Whether a part begins the section with the stories.
pub(super) fn is_section(block: &Block) -> bool {
    matches!(block, Block::Heading { level: SECTION, text } if section(text) == Section::Stories)
}

/// A heading such as `Phase 2: Later` groups stories.
fn is_group(text: &str) -> bool {
    let rest = text.strip_prefix("Phase ").unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(':')
}

pub(super) fn read(blocks: &[NumberedBlock]) -> Reader {
    let mut reader = Reader::default();
    let (mut place, mut field, mut story_level) = (Section::Other, Field::Scope, STORY);
    let mut counted = 0;
    // What is listed next belongs to a requirement that stands in a paragraph.
    let mut is_open = false;
    // Whether the block that is being read is an entry of a list of blocks.
    let mut is_listed = false;
    // Below the heading of a subject, before its first story.
    let mut is_between = false;
    for (at, NumberedBlock { line, block }) in blocks.iter().enumerate() {
        is_open &= !matches!(block, Block::Heading { .. });
        match block {
            Block::Heading { level: 1, text } if reader.plan.title.is_empty() => {
                reader.plan.title.clone_from(text);
            }
            Block::Heading { level, text } if *level <= SECTION => {
                (place, story_level) = (section(text), STORY);
                if place == Section::Other && text.to_lowercase().contains("user stories") {
                    let message = format!("the stories of \"{text}\" are not read");
                    reader.warn(*line, message, "stories stand below `## User Stories`");
                }
            }
            Block::Heading { level: STORY, text }
                if place == Section::Stories
                    && (is_group(text) || !is_named(text) && holds_stories(&blocks[at + 1..])) =>
            {
                (story_level, is_between) = (STORY + 1, true);
            }
            Block::Heading { level, text }
                if place == Section::Stories
                    && (*level <= story_level || is_another(&reader, text)) =>
            {
                is_between = false;
                story_level = *level;
                story(&mut reader, text, *line, &mut counted);
                (field, is_listed) = (Field::Scope, false);
            }
            Block::Line(_) | Block::Entry { .. } | Block::Row(_) | Block::Code(_)
                if place == Section::Stories && is_between => {}
            Block::Heading { text, .. } if place == Section::Stories => {
                let named = known(&text.to_lowercase().replace(['-', '_'], " "));
                if named.is_none() {
                    reader.scope(text);
                }
                (field, is_listed) = (named.unwrap_or(Field::Scope), false);
            }
            Block::Line(text) if place == Section::Stories => {
                is_listed &= bold_label(text).is_none();
                field = match bold_label(text) {
                    Some((label, rest)) => labelled(&mut reader, &label, rest, text, *line),
                    None => {
                        said(&mut reader, field, text, 1, *line);
                        field
                    }
                };
            }
            Block::Entry { depth, text, ticked } if place == Section::Stories => {
                match (field, bold_label(text)) {
                    // Blocks as entries of a list.
                    (_, Some((label, rest)))
                        if *depth == 0
                            && is_label(&label)
                            && (is_listed || field == Field::Scope) =>
                    {
                        field = labelled(&mut reader, &label, rest, text, *line);
                        is_listed = true;
                    }
                    (Field::Scope, _) => reader.scope(&entry_line(text, *ticked)),
                    (field, _) => said(&mut reader, field, text, *depth, *line),
                }
            }
            Block::Entry { depth, text, .. } if let Some(when) = when(place) => {
                let is_own = is_requirement(text) || *depth == 0 && !is_open;
                match reader.plan.requirements.last_mut() {
                    // What belongs to the one above it.
                    Some(last) if !is_own && last.when == when => {
                        last.text = format!("{}\n{}", last.text, plain(text));
                    }
                    Some(_) | None => {
                        requirement(&mut reader, text, when, *line);
                        is_open = false;
                    }
                }
            }
            Block::Row(cells) if let Some(when) = when(place) => {
                let text =
                    cells.split_first().map(|(id, rest)| format!("{id}: {}", rest.join(" | ")));
                // A table may also tell where each of them is done.
                if let Some(text) = text.filter(|text| is_new(&reader, text)) {
                    requirement(&mut reader, &text, when, *line);
                }
            }
            Block::Line(text) if let Some(when) = when(place) => {
                // Words about some of them are not one of them.
                is_open = is_new(&reader, text) && is_titled(text);
                if is_open {
                    requirement(&mut reader, text, when, *line);
                }
            }
            Block::Code(text) if place == Section::Stories => reader.scope(text),
            Block::Row(cells) if place == Section::Stories => reader.scope(&cells.join(" | ")),
            Block::Heading { .. }
            | Block::Line(_)
            | Block::Entry { .. }
            | Block::Row(_)
            | Block::Code(_) => {}
        }
    }
    reader
}

/// Whether a heading has the id of a story.
fn is_named(text: &str) -> bool {
    id_and_title(unmarked(text), &STORIES).is_some()
}

/// Whether a heading has the id of another story than the one that is being read.
fn is_another(reader: &Reader, text: &str) -> bool {
    let named = id_and_title(unmarked(text), &STORIES);
    let last = reader.plan.items.last().map(|item| item.id.as_str());
    named.is_some_and(|(id, _)| last != Some(&id))
}

/// Whether the next heading is that of a story one level below.
fn holds_stories(rest: &[NumberedBlock]) -> bool {
    let heading = rest.iter().find_map(|it| match &it.block {
        Block::Heading { level, text } => Some((*level, text)),
        Block::Line(_) | Block::Entry { .. } | Block::Row(_) | Block::Code(_) => None,
    });
    heading.is_some_and(|(level, text)| level > STORY && is_named(text))
}

fn unmarked(text: &str) -> &str {
    text.trim_start_matches(['✅', '\u{fe0f}', ' '])
}

fn story(reader: &mut Reader, text: &str, line: u32, counted: &mut u32) {
    let text = unmarked(text);
    let (id, title) = id_and_title(text, &STORIES).unwrap_or_else(|| {
        *counted += 1;
        (format!("US-{counted:03}"), text)
    });
    match PlanItemId::parse(&id) {
        Ok(id) => reader.item(id, title, line),
        Err(error) => {
            reader.fault(line, format!("\"{id}\" is no id: {error}"), "write `US-001: Title`")
        }
    }
}

fn is_label(label: &str) -> bool {
    known(label).is_some() || matches!(label, "priority" | "estimate" | "effort")
}

fn known(label: &str) -> Option<Field> {
    match label {
        "description" | "story" | "user story" => Some(Field::Scope),
        "acceptance criteria" | "criteria" | "definition of done" => Some(Field::Criteria),
        "depends on" | "dependencies" => Some(Field::DependsOn),
        "requirements" | "serves" | "covers" => Some(Field::Requirements),
        "allowed paths" | "paths" | "files" => Some(Field::Allowed),
        "excluded paths" | "out of scope paths" => Some(Field::Excluded),
        _ => None,
    }
}

fn labelled(reader: &mut Reader, label: &str, rest: &str, all: &str, line: u32) -> Field {
    if label == "priority" {
        reader.rank(rest, line);
        return Field::Scope;
    }
    if matches!(label, "estimate" | "effort") {
        reader.effort(rest, line);
    }
    let Some(field) = known(label) else {
        reader.scope(&plain(all));
        return Field::Scope;
    };
    if !rest.is_empty() {
        said(reader, field, rest, 0, line);
    }
    field
}

/// Words that stand in a block of a story.
fn said(reader: &mut Reader, field: Field, text: &str, depth: usize, line: u32) {
    match field {
        Field::Scope => reader.scope(text),
        Field::Criteria => reader.criterion(text, depth, line),
        Field::DependsOn => reader.depends_on(&names(text), line),
        Field::Requirements => reader.serves(&names(text), line),
        Field::Allowed => reader.allowed(names(text), line),
        Field::Excluded => reader.excluded(names(text)),
    }
}

/// When what a section lists is wanted.
const fn when(place: Section) -> Option<RequirementTime> {
    match place {
        Section::Requirements => Some(RequirementTime::Now),
        Section::NonGoals => Some(RequirementTime::OutOfScope),
        Section::Stories | Section::Other => None,
    }
}

/// What the ids of requirements begin with.
const REQUIREMENTS: [&str; 4] = ["FR", "R", "REQ", "NG"];

/// Whether a text begins with the id of a requirement.
fn is_requirement(text: &str) -> bool {
    id_and_title(&plain(text), &REQUIREMENTS).is_some()
}

/// Whether what is said of it stands right behind the id: what names several of them is about them.
fn is_titled(text: &str) -> bool {
    let is_id = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name_of = |text: &str| text.trim_start_matches(is_id).trim_start().to_owned();
    let names_another = |rest: &str| {
        let mut beginnings = REQUIREMENTS.iter().map(|name| format!("{name}-"));
        beginnings.any(|beginning| rest.contains(&beginning))
    };
    match text.strip_prefix("**").and_then(|text| text.split_once("**")) {
        Some((bold, rest)) => {
            let behind = name_of(bold);
            behind.starts_with([':', '—', '–', '-']) || behind.is_empty() && !names_another(rest)
        }
        None => name_of(text).starts_with([':', '—', '–', '-']),
    }
}

/// Whether it is one that was not read yet.
fn is_new(reader: &Reader, text: &str) -> bool {
    let text = plain(text);
    let named = id_and_title(&text, &REQUIREMENTS);
    let known = |id: &str| reader.plan.requirements.iter().any(|it| it.id.as_str() == id);
    named.is_some_and(|(id, _)| !known(&id))
}

fn requirement(reader: &mut Reader, text: &str, when: RequirementTime, line: u32) {
    let text = plain(text);
    let named = id_and_title(&text, &REQUIREMENTS);
    let (id, text) = match named {
        Some((id, text)) => (id, text.to_owned()),
        None => {
            let prefix = if when == RequirementTime::Now { "R" } else { "N" };
            let before = reader.plan.requirements.iter().filter(|it| it.when == when).count();
            (format!("{prefix}-{}", before + 1), text)
        }
    };
    if let Ok(id) = RequirementId::parse(&id) {
        let part = PlanPart::Requirement(reader.plan.requirements.len());
        reader.lines.insert(part, line);
        reader.plan.requirements.push(Requirement { id, text, when });
    }
}
