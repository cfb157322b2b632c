//! Reading text: what people and roles write becomes facts. Pure.

pub mod terms;
mod width;

mod chunks;
mod kickoff;
mod message;
mod paths;
mod reassembly;
mod relay;
mod sprint_words;

pub use chunks::{discord_length, number_chunks, split_discord_chunks};
pub use kickoff::{Kickoff, normalize_requirements, parse_kickoff};
pub use message::{ParsedMessage, parse_message_content, parse_user_text};
pub use paths::normalize_artifact_hint;
pub use reassembly::{PartHeader, part_header, strip_boundary_lines};
pub use relay::{
    RelayAction, detect_target_role, is_hand_off, resolve_internal_relay_action, strip_mentions,
};
pub use sprint_words::{is_sprint_finalize_text, is_sprint_start_text};
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
