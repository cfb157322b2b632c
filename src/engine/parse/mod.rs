//! Reading text: what people and roles write becomes facts. Pure.

pub mod terms;
mod width;

mod kickoff;
mod paths;
mod relay;
mod sprint_words;

pub use kickoff::{Kickoff, names_milestone, normalize_requirements, parse_kickoff};
pub use paths::normalize_artifact_hint;
pub use relay::is_hand_off;
pub use sprint_words::is_sprint_start_text;
pub use width::display_width;

/// The lines of a text, at every break that Unicode and older runtimes know.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    let is_break = |letter: char| {
        matches!(
            letter,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((at, letter)) = rest.char_indices().find(|(_, letter)| is_break(*letter)) {
        let (line, tail) = rest.split_at(at);
        found.push(line);
        rest = tail
            .strip_prefix("\r\n")
            .unwrap_or_else(|| tail.get(letter.len_utf8()..).unwrap_or_default());
    }
    found.push(rest);
    found
}

#[cfg(test)]
mod tests;
