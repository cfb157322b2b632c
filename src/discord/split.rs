//! Long texts become several messages: at most 2000 characters each, cut where a reader would cut,
//! code blocks closed and opened again.

use crate::domain::markdown::{FENCE, open_after};

/// The longest message a bot may post.
pub const MESSAGE_LIMIT: usize = 2_000;
/// The most parts that a person wants to read in a row; what is longer belongs into a file.
pub const MAX_PARTS: usize = 10;

/// The length as counted here: UTF-16 units, never less than what Discord counts.
#[must_use]
pub fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Splits a text into parts of at most `limit` units; `None` where that would be more than `most` of them.
/// More than one part are numbered `[1/3]` in a line of their own. Nothing but white space at the cuts is
/// lost.
#[must_use]
pub fn split(text: &str, limit: usize, most: usize) -> Option<Vec<String>> {
    let text = text.trim_end();
    if length(text) <= limit {
        return Some(vec![text.to_owned()]);
    }
    // "[10/10]\n" and a closing fence must fit as well.
    let digits = most.to_string().len();
    let room = limit.saturating_sub(2 * digits + 4 + 4).max(16);
    let bodies = cut(text, room);
    let count = bodies.len();
    let numbered = |(at, body)| format!("[{}/{count}]\n{body}", at + 1);
    (count <= most).then(|| bodies.into_iter().enumerate().map(numbered).collect())
}

/// The beginning of a text, in at most `limit` units, open code blocks closed.
#[must_use]
pub fn beginning(text: &str, limit: usize) -> String {
    cut(text.trim_end(), limit.saturating_sub(4).max(16)).into_iter().next().unwrap_or_default()
}

/// Cuts a text to at most `limit` units, marked by "…" where something was cut.
#[must_use]
pub fn shorten(text: &str, limit: usize) -> String {
    if length(text) <= limit {
        return text.to_owned();
    }
    let mut short = String::from(&text[..fitting(text, limit.saturating_sub(1))]);
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// The byte index up to which `text` has at most `limit` units.
fn fitting(text: &str, limit: usize) -> usize {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += character.len_utf16();
        if used > limit {
            return at;
        }
    }
    text.len()
}

fn cut(text: &str, room: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut open: Option<String> = None;
    for line in text.split('\n') {
        let mut rest = line;
        loop {
            let used = length(&part) + usize::from(!part.is_empty());
            let space = room.saturating_sub(used);
            // For what closes a block there is always room.
            let closes = open.is_some() && rest == FENCE;
            if length(rest) <= space || closes {
                if !part.is_empty() {
                    part.push('\n');
                }
                part.push_str(rest);
                open = open_after(open, rest);
                break;
            }
            // A line that fits into a part of its own goes there whole.
            let empty = open.as_deref().map_or(0, |opened| length(opened) + 1);
            let fresh = used <= empty + 1;
            if !fresh && (length(rest) <= room.saturating_sub(empty) || space < 200) {
                flush(&mut parts, &mut part, open.as_deref());
                continue;
            }
            let head = &rest[..fitting(rest, space.max(1))];
            let at = if open.is_some() { head.len() } else { word_end(head) };
            if !part.is_empty() {
                part.push('\n');
            }
            part.push_str(&rest[..at]);
            open = open_after(open, &rest[..at]);
            rest = if open.is_some() { &rest[at..] } else { rest[at..].trim_start() };
            flush(&mut parts, &mut part, open.as_deref());
        }
    }
    if !part.trim().is_empty() {
        parts.push(part);
    }
    parts
}

/// Ends a part; an open code block is closed in it and opened again in the next.
fn flush(parts: &mut Vec<String>, part: &mut String, open: Option<&str>) {
    let mut done = std::mem::take(part);
    if let Some(opening) = open {
        part.push_str(opening);
        if done == opening {
            return;
        }
        done.push('\n');
        done.push_str(FENCE);
    }
    if !done.trim().is_empty() {
        parts.push(done);
    }
}

/// The end of the last word in the second half of `head`, else all of it.
fn word_end(head: &str) -> usize {
    match head.rfind(char::is_whitespace) {
        Some(at) if at > head.len() / 2 => at,
        Some(_) | None => head.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(text: &str) -> Vec<String> {
        split(text, 2_000, MAX_PARTS).unwrap()
    }

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(parts("hello"), ["hello"]);
        assert_eq!(parts(&"x".repeat(2_000)).len(), 1);
    }

    #[test]
    fn an_unbroken_text_is_cut_and_numbered() {
        let parts = parts(&"x".repeat(4_500));
        assert_eq!(parts.len(), 3);
        for (at, part) in parts.iter().enumerate() {
            assert!(part.starts_with(&format!("[{}/3]\n", at + 1)));
            assert!(length(part) <= 2_000);
        }
        let total: usize = parts.iter().map(|part| part.matches('x').count()).sum();
        assert_eq!(total, 4_500);
    }

    #[test]
    fn a_code_block_is_closed_and_opened_again() {
        let code: String = (0..300).map(|n| format!("    let x{n} = {n};\n")).collect();
        let text = format!("Before.\n```rust\n{code}```\nAfter.");
        let parts = parts(&text);
        assert!(parts.len() > 2);
        for part in &parts {
            assert_eq!(part.matches("```").count() % 2, 0, "{part}");
            assert!(length(part) <= 2_000);
        }
        assert!(parts[1].starts_with(&format!("[2/{}]\n```rust\n    let", parts.len())));
        assert!(parts.last().unwrap().ends_with("After."));
    }

    #[test]
    fn prose_stays_prose_where_a_block_opens_or_closes_within_a_line() {
        let code = "    let x = 1;\n".repeat(160);
        for (before, after) in [("- ```rs", "  ```"), ("Output: ```", "```"), ("```", "last()```")]
        {
            let prose = "Some words of prose. ".repeat(120);
            let parts = parts(&format!("{before}\n{code}{after}\n{prose}"));
            assert!(parts.len() > 2, "{parts:?}");
            for part in &parts {
                assert_eq!(part.matches("```").count() % 2, 0, "{part}");
            }
            let last = parts.last().unwrap();
            assert!(last.contains("prose") && !last.contains("```"), "{last}");
        }
    }

    #[test]
    fn a_part_does_not_begin_with_an_empty_block() {
        for lines in 150..190 {
            let text =
                format!("```rust\n{}```\n{}", "let x = 1;\n".repeat(lines), "word ".repeat(200));
            for part in split(&text, 2_000, MAX_PARTS).unwrap() {
                assert!(!part.contains("```rust\n```"), "{lines}: {part}");
            }
        }
    }

    #[test]
    fn wide_characters_count_as_two() {
        let parts = parts(&"🙂".repeat(1_500));
        assert!(parts.iter().all(|part| length(part) <= 2_000));
        let total: usize = parts.iter().map(|part| part.matches('🙂').count()).sum();
        assert_eq!(total, 1_500);
    }

    #[test]
    fn what_is_too_long_to_read_has_a_beginning() {
        let long = format!("```\n{}", "word ".repeat(100_000));
        assert_eq!(split(&long, 2_000, MAX_PARTS), None);
        let short = beginning(&long, 500);
        assert!(
            length(&short) <= 500 && short.starts_with("```\nword") && short.ends_with("\n```")
        );
        assert_eq!(beginning("", 500), "");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_too_long(
            lines in proptest::collection::vec("[a-c가 `]{0,90}|```(rs)?", 0..60),
            limit in 60usize..400,
        ) {
            let text = lines.join("\n");
            let parts = split(&text, limit, 999).unwrap();
            for part in &parts {
                prop_assert!(length(part) <= limit, "{} > {limit}", length(part));
            }
            if parts.len() > 1 {
                let kept: usize = parts.iter().map(|p| p.matches(['a', 'b', 'c', '가']).count()).sum();
                prop_assert!(kept >= text.matches(['a', 'b', 'c', '가']).count());
            }
        }
    }
}
