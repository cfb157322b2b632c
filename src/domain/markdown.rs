//! Code in a text, as Discord reads it.

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Its markup counts.
    Plain(&'t str),
    /// Code, with its backquotes: markup in it is shown as it stands.
    Code(&'t str),
}

/// The parts of a text, and the opening of the code block that its end leaves open, such as "```rust".
#[must_use]
pub fn pieces(text: &str) -> (Vec<Piece<'_>>, Option<String>) {
    let mut pieces = Vec::new();
    let (mut plain_from, mut at) = (0, 0);
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let run = text[start..].bytes().take_while(|byte| *byte == b'`').count();
        let end = match run {
            3.. => text[start + 3..].find(FENCE).map(|it| start + 3 + it + 3),
            _ => end_of_span(text, start + run, run),
        };
        match end {
            None if run < 3 => at = start + run,
            end => {
                pieces.push(Piece::Plain(&text[plain_from..start]));
                pieces.push(Piece::Code(&text[start..end.unwrap_or(text.len())]));
                let Some(end) = end else { return (pieces, Some(opening(&text[start + 3..]))) };
                (plain_from, at) = (end, end);
            }
        }
    }
    pieces.push(Piece::Plain(&text[plain_from..]));
    (pieces, None)
}

/// The opening of the code block that is open behind a line, where `open` is the one before it.
#[must_use]
pub fn open_after(open: Option<String>, line: &str) -> Option<String> {
    match open {
        None => pieces(line).1,
        Some(opened) => match line.split_once(FENCE) {
            Some((_, rest)) => pieces(rest).1,
            None => Some(opened),
        },
    }
}

/// A text for one line, in which there are no code blocks: what would be one is a span of code.
#[must_use]
pub fn without_blocks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(FENCE) {
        out.push_str(&rest[..at]);
        out.push('`');
        rest = rest[at..].trim_start_matches('`');
    }
    out + rest
}

/// What opens and closes a code block.
pub const FENCE: &str = "```";

/// The end of a span of code within a text, whose backquotes stand before `from`.
fn end_of_span(text: &str, from: usize, run: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let length = text[start..].bytes().take_while(|byte| *byte == b'`').count();
        if length == run {
            return Some(start + length);
        }
        at = start + length;
    }
    None
}

/// The opening of a block in front of `rest`: with its language, where that stands alone behind it.
fn opening(rest: &str) -> String {
    let line = rest.lines().next().unwrap_or_default().trim_end();
    let is_language =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '.' | '#');
    match line.chars().all(is_language) && line.len() <= LONGEST_LANGUAGE {
        true => format!("{FENCE}{line}"),
        false => FENCE.to_owned(),
    }
}

const LONGEST_LANGUAGE: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_opens_and_closes_wherever_its_backquotes_stand() {
        for (text, open) in [
            ("plain", None),
            ("```rust\nlet a;", Some("```rust")),
            ("- ```sh\n  ls\n  ```", None),
            ("Output: ```\nx", Some("```")),
            ("Output: ```x y", Some("```")),
            ("```\nfoo()```", None),
            ("`` ``` `` is how it is written", None),
            ("`a` and ```b``` and ```", Some("```")),
            ("an odd ` one", None),
        ] {
            assert_eq!(pieces(text).1.as_deref(), open, "{text}");
            let by_line = text.split('\n').fold(None, open_after);
            assert_eq!(by_line.as_deref(), open, "{text}");
        }
        assert_eq!(without_blocks("a ```b````` c`` ````````"), "a `b` c`` `");
        assert_eq!(open_after(Some("```".to_owned()), "``` and ```sh").as_deref(), Some("```sh"));
        let (parts, _) = pieces("a `b` c");
        assert_eq!(parts, [Piece::Plain("a "), Piece::Code("`b`"), Piece::Plain(" c")]);
    }
}
