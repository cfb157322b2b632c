//! Plans that others wrote, into [`Plan`], with a line for whatever is wrong: product requirement documents, `PLAN.md`
//! files with epics, backlog tables with nine columns, roadmaps with phases and the plans of one phase.

use std::collections::BTreeMap;

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::domain::ids::{IdError, PlanId};
use crate::domain::plan::{Plan, PlanPart};
use crate::domain::word::words;

mod backlog_table;
mod document;
mod epics;
mod phase_plan;
mod prd;
mod reader;
mod roadmap;

use document::Block;
pub use reader::LineProblem;
use reader::Reader;

/// Bytes of the largest file.
pub const LARGEST: usize = 3 << 20;
/// Items of the largest plan.
const MOST_ITEMS: usize = 2_000;

words! {
    /// How a plan is written.
    pub enum PlanFormat {
        /// A product requirement document with user stories.
        Prd = "prd",
        /// A `PLAN.md` with epics.
        Epics = "epics",
        /// A table of nine columns, one row an item.
        BacklogTable = "backlog_table",
        /// A roadmap with phases.
        Roadmap = "roadmap",
        /// The plan of one part of a phase, with a head in YAML.
        PhasePlan = "phase_plan",
    }
}

/// Why a file is no plan at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanReadError {
    /// Larger than [`LARGEST`].
    #[error("{bytes} bytes, where a plan has at most 3 MiB; cut it into several files")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Another encoding.
    #[error("line {line} is not UTF-8; save the file as UTF-8")]
    NotText {
        /// The line of the first byte that is not.
        line: u32,
    },
    /// None of the formats.
    #[error(
        "no plan is seen in it. Known are: a section `## User Stories` with a heading for each story; headings such as \
         `## EPIC-001: Title`; a table with the columns {}; headings such as `### Phase 1: Title` with a goal and \
         success criteria; and a head in YAML with `phase` and `plan`", backlog_table::COLUMNS.join(", ")
    )]
    Unknown,
    /// More than can be worked with.
    #[error("{items} items, where a plan has at most {MOST_ITEMS}; cut it into several files")]
    TooMany {
        /// How many.
        items: usize,
    },
    /// A name that cannot be an id.
    #[error("its name cannot name a plan: {0}; rename the file")]
    Name(IdError),
}

/// A plan that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// How it is written.
    pub format: PlanFormat,
    /// What it says.
    pub plan: Plan,
    /// Whether items may depend on those of other files, as the plans of a roadmap's phases do.
    pub elsewhere: bool,
    /// What is wrong with how it is written, by lines.
    pub problems: Vec<LineProblem>,
    lines: BTreeMap<PlanPart, u32>,
}

impl PlanFile {
    /// Reads a plan.
    ///
    /// # Errors
    /// Where it is none of the formats, too large or no text.
    pub fn read(bytes: &[u8]) -> Result<PlanFile, PlanReadError> {
        if bytes.len() > LARGEST {
            return Err(PlanReadError::TooLarge { bytes: bytes.len() });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
            PlanReadError::NotText { line: u32::try_from(before).unwrap_or(u32::MAX - 1) + 1 }
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let mut file = read(&text)?;
        if file.plan.items.len() > MOST_ITEMS {
            return Err(PlanReadError::TooMany { items: file.plan.items.len() });
        }
        file.problems.sort_by_key(|problem| problem.line);
        Ok(file)
    }

    /// The line at which a part of the plan stands; that of its item where it has none of its own.
    #[must_use]
    pub fn line(&self, part: PlanPart) -> u32 {
        let item = match part {
            PlanPart::Dependency(item, _)
            | PlanPart::Criterion(item, _)
            | PlanPart::Path(item, _) => PlanPart::Item(item),
            PlanPart::Whole | PlanPart::Requirement(_) | PlanPart::Item(_) => part,
        };
        self.lines.get(&part).or_else(|| self.lines.get(&item)).copied().unwrap_or(1)
    }
}

/// The id of the plan that a file holds, by the file's name.
///
/// # Errors
/// Where nothing of the name could stand in an id.
pub fn plan_id(file_name: &str) -> Result<PlanId, PlanReadError> {
    let stem = file_name.rsplit('/').next().unwrap_or_default();
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem).to_lowercase();
    // One computer composes letters where another does not.
    let stem = ComposingNormalizerBorrowed::new_nfc().normalize(&stem);
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' };
    let name: String = stem.chars().map(kept).collect();
    let name: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
    let mut name = name.join("-");
    name.truncate(80);
    if !stem.is_ascii() {
        // Names in other letters would all be the same.
        use sha2::{Digest as _, Sha256};
        let digest = Sha256::digest(stem.as_bytes());
        let tail: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        name = if name.is_empty() { format!("plan-{tail}") } else { format!("{name}-{tail}") };
    }
    PlanId::parse(&name).map_err(PlanReadError::Name)
}

fn read(text: &str) -> Result<PlanFile, PlanReadError> {
    if let Some(reader) = phase_plan::read(text) {
        return Ok(finish(reader, PlanFormat::PhasePlan, true));
    }
    let blocks = document::blocks(text);
    let is_in = |fits: fn(&Block) -> bool| blocks.iter().any(|it| fits(&it.block));
    let (format, reader) = if is_in(epics::begins_item) {
        (PlanFormat::Epics, epics::read(&blocks))
    } else if is_in(backlog_table::is_head) {
        (PlanFormat::BacklogTable, backlog_table::read(&blocks))
    } else if is_in(prd::is_section) {
        (PlanFormat::Prd, prd::read(&blocks))
    } else if is_in(roadmap::begins_item) {
        (PlanFormat::Roadmap, roadmap::read(&blocks))
    } else {
        return Err(PlanReadError::Unknown);
    };
    Ok(finish(reader, format, false))
}

fn finish(mut reader: Reader, format: PlanFormat, elsewhere: bool) -> PlanFile {
    for item in &mut reader.plan.items {
        item.scope = item.scope.trim().to_owned();
    }
    PlanFile {
        format,
        plan: reader.plan,
        elsewhere,
        problems: reader.problems,
        lines: reader.lines,
    }
}

#[cfg(test)]
mod tests;
