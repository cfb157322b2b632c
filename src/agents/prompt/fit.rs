//! Making a prompt fit: which sections are shortened, and by how much.

use serde::{Deserialize, Serialize};

use super::error::PromptError;

/// Room for blank lines and the closing remark.
const SPARE: usize = 1024;
/// Less of a section than this is of no use.
const LEAST: usize = 400;

/// How a section may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Never,
    KeepBeginning,
    KeepEnd,
}

/// A section of a prompt that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its size in the prompt, in bytes; 0 where it was left out.
    pub bytes: usize,
    /// Its size before it was shortened.
    pub whole: usize,
    /// Quotes in it that give orders.
    #[serde(default)]
    pub orders: usize,
    /// Characters in it that nobody would have seen.
    #[serde(default)]
    pub hidden: usize,
}

impl Section {
    /// Whether something of it is missing.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.bytes < self.whole
    }
}

/// A section on its way into the prompt.
pub(super) struct Part {
    pub(super) section: Section,
    pub(super) cut: Cut,
    pub(super) text: String,
}

/// Shortens sections from the last on until all fit.
pub(super) fn fit(parts: &mut [Part], budget: usize) -> Result<(), PromptError> {
    let needed: usize =
        parts.iter().filter(|part| part.cut == Cut::Never).map(|part| part.text.len()).sum();
    if needed + SPARE > budget {
        return Err(PromptError::TooLong { needed: needed + SPARE, budget });
    }
    for index in (0..parts.len()).rev() {
        let size = parts.iter().map(|part| part.text.len()).sum::<usize>() + SPARE;
        let over = size.saturating_sub(budget);
        if over == 0 {
            break;
        }
        let Some(part) = parts.get_mut(index) else { continue };
        if part.cut == Cut::Never || part.text.is_empty() {
            continue;
        }
        let keep = part.text.len().saturating_sub(over);
        part.text =
            if keep < LEAST { String::new() } else { shorten(&part.text, keep - 60, part.cut) };
        part.section.bytes = part.text.len();
    }
    Ok(())
}

/// The fence that is open at the end of a text, if one is.
fn open_fence(text: &str) -> Option<&str> {
    let mut open: Option<&str> = None;
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        let fence = line.get(..ticks).filter(|fence| fence.len() >= 3 && line.len() == ticks);
        match (open, fence) {
            (None, Some(fence)) => open = Some(fence),
            (Some(known), Some(fence)) if fence == known => open = None,
            (_, _) => {}
        }
    }
    open
}

/// Cuts a text so that what is quoted in it stays quoted.
fn shorten(text: &str, keep: usize, cut: Cut) -> String {
    match cut {
        Cut::Never => text.to_owned(),
        Cut::KeepBeginning => {
            let kept = beginning(text, keep);
            match open_fence(kept) {
                Some(fence) => format!("{kept}\n{fence}\n[… cut …]"),
                None => format!("{kept}\n[… cut …]"),
            }
        }
        Cut::KeepEnd => {
            // The heading stays, so that what follows is known for what it is.
            let (heading, rest) = text.split_once('\n').unwrap_or(("", text));
            let from = rest.len().saturating_sub(keep.saturating_sub(heading.len()));
            let kept = end(rest, from);
            let left = rest.get(..rest.len() - kept.len()).unwrap_or_default();
            match open_fence(left) {
                Some(fence) => format!("{heading}\n[… cut …]\n{fence}\n{kept}"),
                None => format!("{heading}\n[… cut …]\n{kept}"),
            }
        }
    }
}

/// The text up to a byte, whole characters only.
fn beginning(text: &str, bytes: usize) -> &str {
    (0..=bytes).rev().find_map(|at| text.get(..at)).unwrap_or_default()
}

/// The text from a byte on, whole characters only.
fn end(text: &str, from: usize) -> &str {
    (from..=text.len()).find_map(|at| text.get(at..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_stays_quoted_where_it_is_cut() {
        let body = "x".repeat(600);
        let text = format!("# Heading\n\nWords:\n````\n```\n{body}\n```\n````\n");
        let beginning = shorten(&text, 300, Cut::KeepBeginning);
        assert!(beginning.ends_with("x\n````\n[… cut …]"), "{beginning}");
        let end = shorten(&text, 300, Cut::KeepEnd);
        assert!(end.starts_with("# Heading\n[… cut …]\n````\nx"), "{end}");
        assert!(end.ends_with("```\n````\n"));
        for short in [beginning, end] {
            assert_eq!(open_fence(&short), None, "{short}");
            assert!(short.len() < 360);
        }
    }
}
