//! Where a key stands in a YAML text. A scanner of lines, not a parser: it serves the files that
//! people write (block style, and flow style within a line), and whoever edits by it parses the
//! outcome again to be sure.

use std::ops::Range;

/// One line with something on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Byte offset of the content, after the indentation and any `- `.
    pub(super) start: usize,
    /// Columns before the content.
    pub(super) indent: usize,
    /// The content without a comment.
    pub(super) text: &'a str,
    /// Whether a `- ` stands before it, and its column.
    pub(super) dash: Option<usize>,
}

/// The lines of a text that are neither blank nor comment nor inside a block scalar.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let mut offset = 0;
    let mut scalar: Option<usize> = None;
    for raw in text.split_inclusive('\n') {
        let here = offset;
        offset += raw.len();
        let body = raw.trim_end();
        let content = body.trim_start();
        let mut indent = body.len() - content.len();
        if content.is_empty() {
            continue;
        }
        if let Some(owner) = scalar {
            if indent > owner {
                continue;
            }
            scalar = None;
        }
        if content.starts_with('#') {
            continue;
        }
        let outer = indent;
        let mut dash = None;
        let mut rest = content;
        while let Some(after) = rest.strip_prefix("- ").or((rest == "-").then_some("")) {
            dash = Some(indent);
            let trimmed = after.trim_start();
            indent += rest.len() - trimmed.len();
            rest = trimmed;
        }
        let value = without_comment(rest);
        if value.ends_with(['|', '>']) || value.ends_with("|-") || value.ends_with(">-") {
            scalar = Some(if dash.is_some() { indent } else { outer });
        }
        found.push(Line { start: here + indent, indent, text: value, dash });
    }
    found
}

/// The part before ` #`, quotes respected.
fn without_comment(text: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return text[..at].trim_end(),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None | Some(_), _) => {}
        }
        before = c;
    }
    text
}

impl<'a> Line<'a> {
    /// The key and the byte range of its value (empty at the line's end for a mapping below).
    pub(super) fn entry(&self) -> Option<(&'a str, Range<usize>)> {
        let colon = if let Some(quote) = self.text.chars().next().filter(|c| "\"'".contains(*c)) {
            let close = self.text[1..].find(quote)? + 1;
            self.text[close..].find(':')? + close
        } else {
            self.text
                .match_indices(':')
                .map(|(at, _)| at)
                .find(|at| self.text[at + 1..].is_empty() || self.text[at + 1..].starts_with(' '))?
        };
        let key = self.text[..colon].trim().trim_matches(['"', '\'']);
        let after = &self.text[colon + 1..];
        let value = after.trim_start();
        let start = self.start + colon + 1 + (after.len() - value.len());
        Some((key, start..start + value.len()))
    }
}

/// The lines below an entry: deeper ones, and list items at the same column.
pub(super) fn block<'l, 'a>(lines: &'l [Line<'a>], indent: usize) -> &'l [Line<'a>] {
    let end = lines
        .iter()
        .position(|line| match line.dash {
            Some(column) => column < indent,
            None => line.indent <= indent,
        })
        .unwrap_or(lines.len());
    &lines[..end]
}

/// The bytes of the value of a key; of the key itself where the value stands below it; of the
/// nearest parent that exists where the key does not. `None` for an empty path or text.
pub(super) fn locate(text: &str, key: &[String]) -> Option<Range<usize>> {
    let lines = lines(text);
    let mut scope: &[Line<'_>] = &lines;
    let mut best = None;
    for (depth, word) in key.iter().enumerate() {
        let Some(at) = find(scope, word) else { break };
        let line = &scope[at];
        if word.parse::<usize>().is_ok() && line.dash.is_some() {
            best = Some(line.start..line.start + line.text.len());
            let column = line.dash.unwrap_or(0);
            let end = scope[at + 1..]
                .iter()
                .position(|next| {
                    next.dash.is_some_and(|dash| dash <= column) || next.indent <= column
                })
                .map_or(scope.len(), |next| at + 1 + next);
            scope = &scope[at..end];
            continue;
        }
        let (name, value) = line.entry()?;
        best = Some(if value.is_empty() {
            line.start..line.start + name.len()
        } else {
            value.clone()
        });
        if text[value.clone()].starts_with(['{', '[']) {
            best = flow(text, value, &key[depth + 1..]).or(best);
            break;
        }
        scope = block(&scope[at + 1..], line.indent);
    }
    best
}

/// The line of a key, or of the n-th list item, at the top of a scope.
fn find(scope: &[Line<'_>], word: &str) -> Option<usize> {
    let first = scope.first()?;
    if let (Ok(index), Some(column)) = (word.parse::<usize>(), first.dash) {
        return scope
            .iter()
            .enumerate()
            .filter(|(_, line)| line.dash == Some(column))
            .map(|(at, _)| at)
            .nth(index);
    }
    scope.iter().position(|line| {
        line.indent == first.indent && line.entry().is_some_and(|(key, _)| key == word)
    })
}

/// The same within a flow value such as `{model: x, reasoning: high}`.
pub(super) fn flow(text: &str, value: Range<usize>, key: &[String]) -> Option<Range<usize>> {
    let (word, rest) = key.split_first()?;
    let parts = flow_parts(text, value);
    let found = match word.parse::<usize>() {
        Ok(index) => parts.get(index)?.clone(),
        Err(_) => parts.into_iter().find_map(|part| {
            let (name, value) = text[part.clone()].split_once(':')?;
            (name.trim().trim_matches(['"', '\'']) == word).then(|| {
                let lead = value.len() - value.trim_start().len();
                let start = part.start + name.len() + 1 + lead;
                start..start + value.trim().len()
            })
        })?,
    };
    flow(text, found.clone(), rest).or(Some(found))
}

/// The parts between the commas of a flow value.
pub(super) fn flow_parts(text: &str, value: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut depth, mut quote) = (0_usize, None);
    let mut start = value.start + 1;
    let mut push = |from: usize, to: usize| {
        let part = text[from..to].trim();
        if !part.is_empty() {
            let lead = text[from..to].len() - text[from..to].trim_start().len();
            parts.push(from + lead..from + lead + part.len());
        }
    };
    for (at, c) in text[value.clone()].char_indices() {
        let at = value.start + at;
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    push(start, at);
                    break;
                }
            }
            (None, ',') if depth == 1 => {
                push(start, at);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    parts
}
