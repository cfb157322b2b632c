//! A Markdown document as the parts that plans are written in, each with its line. What stands in code or HTML is never
//! a heading, an entry or a row; comments and other HTML are left out.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// A heading.
    Heading { level: u8, text: String },
    /// A line of a paragraph.
    Line(String),
    /// An entry of a list: 0 is the outermost; and whether its box is ticked, where it has one.
    Entry { depth: usize, text: String, ticked: Option<bool> },
    /// A row of a table.
    Row(Vec<String>),
    /// Code, with its fences.
    Code(String),
}

/// A part and the number of its line: 1 is the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberedBlock {
    pub(super) line: u32,
    pub(super) block: Block,
}

enum Kind {
    Heading(u8),
    Paragraph,
    Entry(usize),
    Row,
    Code,
    Html,
}

/// The parts of a document, in their order.
pub(super) fn blocks(text: &str) -> Vec<NumberedBlock> {
    let found = structure(text);
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_of =
        |at: usize| u32::try_from(starts.partition_point(|start| *start <= at)).unwrap_or(u32::MAX);
    let mut blocks: Vec<NumberedBlock> = Vec::new();
    for (number, (range, kind)) in found.iter().enumerate() {
        // What an entry has inside of it comes as parts of its own.
        let next = found.get(number + 1).map_or(range.end, |(next, _)| next.start);
        let end = if matches!(kind, Kind::Entry(_)) { range.end.min(next) } else { range.end };
        let source = &text[range.start..end];
        let mut lines = Vec::new();
        let mut at = range.start;
        for line in source.split_inclusive('\n') {
            lines.push((line_of(at), line.trim_end()));
            at += line.len();
        }
        let mut put = |line: u32, block: Block| blocks.push(NumberedBlock { line, block });
        match kind {
            Kind::Heading(level) if source.trim_start().starts_with('#') => {
                let text = source.trim().trim_start_matches('#');
                // Signs at the end close the heading where a blank is before them.
                let open = text.trim_end_matches('#');
                let text = plain(if open.ends_with(char::is_whitespace) { open } else { text });
                put(line_of(range.start), Block::Heading { level: *level, text });
            }
            // Text over a rule is no heading to anybody who writes plans.
            Kind::Heading(_) => {
                lines.pop();
                for (line, text) in lines {
                    put(line, Block::Line(text.trim().to_owned()));
                }
            }
            Kind::Paragraph => {
                for (line, text) in lines.into_iter().filter(|(_, text)| !text.trim().is_empty()) {
                    // Far in below a line, a list is more of that line to Markdown alone.
                    if text.starts_with(['\t', ' ']) && is_entry(text) {
                        entry(0, &[(line, text)], &mut put);
                    } else {
                        put(line, Block::Line(text.trim().to_owned()));
                    }
                }
            }
            Kind::Entry(depth) => {
                entry(*depth, &lines, &mut put);
                for gap in gaps(&found[number..]) {
                    let mut at = gap.start;
                    for line in text[gap].split_inclusive('\n') {
                        let words = line.trim().trim_start_matches(['>', ' ', '\t']);
                        // The rules of tables and the like are no words.
                        let is_mark = |c: char| c.is_whitespace() || "|-:*_=".contains(c);
                        if !words.chars().all(is_mark) {
                            put(line_of(at), Block::Line(words.to_owned()));
                        }
                        at += line.len();
                    }
                }
            }
            Kind::Row => put(line_of(range.start), Block::Row(cells(source))),
            Kind::Code => put(line_of(range.start), Block::Code(source.trim_end().to_owned())),
            Kind::Html => {}
        }
    }
    // What an entry says after its inner parts was put before them.
    blocks.sort_by_key(|it| it.line);
    blocks
}

/// Whether a line begins as an entry of a list does.
fn is_entry(line: &str) -> bool {
    let marker = line.split_whitespace().next().unwrap_or_default();
    let number = marker.strip_suffix(['.', ')']);
    matches!(marker, "-" | "*" | "+")
        || number.is_some_and(|it| !it.is_empty() && it.bytes().all(|c| c.is_ascii_digit()))
}

/// What lies in the first part between the parts within it, and behind the last of them.
fn gaps(found: &[(Range<usize>, Kind)]) -> Vec<Range<usize>> {
    let Some(((whole, _), rest)) = found.split_first() else { return Vec::new() };
    let mut gaps = Vec::new();
    let mut end = None;
    for (inner, _) in rest.iter().take_while(|(inner, _)| inner.start < whole.end) {
        match end {
            Some(end) if inner.start < end => continue,
            Some(end) => gaps.push(end..inner.start),
            None => {}
        }
        end = Some(inner.end);
    }
    gaps.extend(end.map(|end| end..whole.end.max(end)));
    gaps
}

fn structure(text: &str) -> Vec<(Range<usize>, Kind)> {
    let options = Options::ENABLE_TABLES;
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        if matches!(event, Event::End(TagEnd::List(_))) {
            depth -= 1;
        }
        let Event::Start(tag) = event else { continue };
        let kind = if let Tag::Heading { level, .. } = tag {
            Kind::Heading(level as u8)
        } else if matches!(tag, Tag::List(_)) {
            depth += 1;
            continue;
        } else if matches!(tag, Tag::Item) {
            Kind::Entry(depth.saturating_sub(1))
        } else if matches!(tag, Tag::Paragraph) && depth == 0 {
            Kind::Paragraph
        } else if matches!(tag, Tag::TableHead | Tag::TableRow) {
            Kind::Row
        } else if matches!(tag, Tag::CodeBlock(_)) {
            Kind::Code
        } else if matches!(tag, Tag::HtmlBlock) {
            Kind::Html
        } else {
            continue;
        };
        found.push((range, kind));
    }
    found
}

/// An entry, whose further lines are its own where they are indented. One that is not is a line after the list, which
/// Markdown alone would take for a part of the entry.
fn entry(depth: usize, lines: &[(u32, &str)], put: &mut dyn FnMut(u32, Block)) {
    let Some(((line, first), rest)) = lines.split_first() else { return };
    let first = first.trim_start();
    let marker = first.find(|c: char| c.is_whitespace()).unwrap_or(first.len());
    let first = first[marker..].trim_start();
    let (ticked, first) = match first.get(..3) {
        Some("[x]" | "[X]") => (Some(true), &first[3..]),
        Some("[ ]") => (Some(false), &first[3..]),
        Some(_) | None => (None, first),
    };
    let is_own = |text: &str| text.trim().is_empty() || text.starts_with(char::is_whitespace);
    let own = rest.iter().take_while(|(_, text)| is_own(text)).count();
    let mut text = first.trim().to_owned();
    for (_, more) in rest[..own].iter().filter(|(_, more)| !more.trim().is_empty()) {
        text.push(' ');
        text.push_str(more.trim());
    }
    put(*line, Block::Entry { depth, text, ticked });
    for (line, text) in rest[own..].iter().filter(|(_, text)| !text.trim().is_empty()) {
        put(*line, Block::Line(text.trim().to_owned()));
    }
}

/// The cells of a row, as many as were written.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let (mut cells, mut cell, mut escaped) = (Vec::new(), String::new(), false);
    for c in row.chars() {
        match c {
            '|' if escaped => {
                cell.pop();
                cell.push('|');
            }
            '|' => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            c => cell.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    if !cell.trim().is_empty() {
        cells.push(cell.trim().to_owned());
    }
    cells
}

/// An entry as it stands in the scope of an item: what is done of it already is seen there.
pub(super) fn entry_line(text: &str, ticked: Option<bool>) -> String {
    format!("- {}{text}", if ticked == Some(true) { "[x] " } else { "" })
}

/// Words without the marks of bold text and code.
pub(super) fn plain(text: &str) -> String {
    text.replace("**", "").replace('`', "").trim().to_owned()
}

/// `**Name:** words` or `**Name**: words`: the name in small letters, and the words.
pub(super) fn bold_label(text: &str) -> Option<(String, &str)> {
    let (name, rest) = text.trim_start().strip_prefix("**")?.split_once("**")?;
    let rest = rest.trim_start();
    let (name, rest) = match (name.trim_end().strip_suffix(':'), rest.strip_prefix(':')) {
        (Some(name), _) => (name, rest),
        (None, Some(rest)) => (name, rest),
        // A remark in brackets may stand between the name and the colon.
        (None, None) => (name, rest.strip_prefix('(')?.split_once("):")?.1),
    };
    Some((name.trim().to_lowercase().replace(['-', '_'], " "), rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let blocks = blocks(text).into_iter();
        blocks
            .map(|it| match it.block {
                Block::Heading { level, text } => format!("{} h{level} {text}", it.line),
                Block::Line(text) => format!("{} {text}", it.line),
                Block::Entry { depth, text, ticked } => {
                    let tick = if ticked == Some(true) { "x" } else { "-" };
                    format!("{} {depth}{tick} {text}", it.line)
                }
                Block::Row(cells) => format!("{} {}", it.line, cells.join("/")),
                Block::Code(text) => format!("{} {text:?}", it.line),
            })
            .collect()
    }

    #[test]
    fn headings_in_code_and_html_are_none() {
        let text = "# A\n```\n## no\n```\n<!--\n## no\n-->\n~~~md\n### no\n~~~\n\n## **B** #\n";
        let code = ["2 \"```\\n## no\\n```\"", "8 \"~~~md\\n### no\\n~~~\""];
        assert_eq!(told(text), ["1 h1 A", code[0], code[1], "12 h2 B"]);
    }

    #[test]
    fn headings_keep_what_is_their_own() {
        assert_eq!(told("# C#\n## `a` ##\n## __init__\n"), ["1 h1 C#", "2 h2 a", "3 h2 __init__"]);
    }

    #[test]
    fn a_rule_below_words_makes_no_heading() {
        assert_eq!(told("Roles: a\nGoal: b\n---\nmore\n"), ["1 Roles: a", "2 Goal: b", "4 more"]);
    }

    #[test]
    fn entries_have_their_lines_and_depth() {
        let text =
            "- [ ] one\n  goes on\n  - inner\n- [x] two\n\n  later\n1. three\nDirective: x\n";
        assert_eq!(
            told(text),
            ["1 0- one goes on", "3 1- inner", "4 0x two later", "7 0- three", "8 Directive: x"]
        );
    }

    #[test]
    fn what_an_entry_says_after_its_inner_parts_is_kept_in_its_place() {
        let text = "- given this\n\n      code\n\n  the output is y\n- two\n  - inner\n\n  more about two\n- three\n";
        let code = "3 \"code\"";
        let told = told(text);
        assert_eq!(
            told,
            [
                "1 0- given this",
                code,
                "5 the output is y",
                "6 0- two",
                "7 1- inner",
                "9 more about two",
                "10 0- three"
            ]
        );
    }

    #[test]
    fn a_list_far_in_below_a_line_is_a_list() {
        assert_eq!(
            told("**Acceptance Criteria:**\n\t- [ ] a works\n    - [x] b - works\n"),
            ["1 **Acceptance Criteria:**", "2 0- a works", "3 0x b - works"]
        );
    }

    #[test]
    fn rows_have_the_cells_that_were_written() {
        let text = "| a | b |\n|---|---|\n| x \\| y | `c` |\n| one |\n| 1 | 2 | 3 |\n";
        assert_eq!(told(text), ["1 a/b", "3 x | y/`c`", "4 one", "5 1/2/3"]);
    }

    #[test]
    fn labels() {
        for (text, label) in [
            ("**Description:** words", Some(("description", "words"))),
            ("**Depends on**: Phase 1", Some(("depends on", "Phase 1"))),
            ("**Success Criteria** (what is TRUE):", Some(("success criteria", ""))),
            ("**bold** words", None),
            ("words", None),
        ] {
            let found = bold_label(text);
            assert_eq!(found.as_ref().map(|(name, rest)| (name.as_str(), *rest)), label);
        }
    }
}
