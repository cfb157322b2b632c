//! What an agent's last words are where they are no result: whoever reads why a step failed sees what the model
//! said, and not only that it was no result.

use crate::domain::run::{AnswerFault, BadAnswer};
use crate::platform::hidden::shown;
use crate::platform::redact::redact;

/// Bytes from which on an answer that is no result is called too large.
const LARGE: usize = 256 << 10;
/// Bytes of an answer that are looked at for its beginning, lines of that, and characters.
const LOOKED_AT: usize = 16 << 10;
const LINES: usize = 8;
const CHARACTERS: usize = 600;

/// Names of the fields in which agents have the words of their model, as they stand in a line of JSON.
const FIELDS: [&str; 3] = [r#""text":""#, r#""result":""#, r#""structured_output":"#];

/// What an answer is that was not taken as a result. `too_long` is how a line began that was too long to be
/// kept whole; `has_object` says whether a JSON object was found in the text.
pub(super) fn of(text: Option<&str>, too_long: Option<&str>, has_object: bool) -> BadAnswer {
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    let text = text.unwrap_or_default().trim_matches(blank);
    let (fault, words) = match (text, too_long) {
        ("", Some(line)) => return too_large(line),
        ("", None) => (AnswerFault::Empty, text),
        (text, _) if text.len() > LARGE => (AnswerFault::TooLarge, text),
        (text, _) if has_object => (AnswerFault::WrongSchema, text),
        (text, _) if looks_like_json(text) => (AnswerFault::NotJson, text),
        (text, _) => (AnswerFault::Prose, text),
    };
    BadAnswer { fault, beginning: beginning(words) }
}

/// An answer whose line was too long to be kept whole, by how that line began.
pub(super) fn too_large(line: &str) -> BadAnswer {
    BadAnswer { fault: AnswerFault::TooLarge, beginning: beginning(&words_in(line)) }
}

/// The model declined with these words.
pub(super) fn refused(words: &str) -> BadAnswer {
    BadAnswer { fault: AnswerFault::Refused, beginning: beginning(words) }
}

/// One line that says what an answer is; `issues` are those of an object.
pub(super) fn describe(fault: AnswerFault, issues: &[String]) -> String {
    match fault {
        AnswerFault::Refused => "the model declined to answer".to_owned(),
        AnswerFault::Prose => "its answer is prose and no result".to_owned(),
        AnswerFault::Empty => "its answer is empty".to_owned(),
        AnswerFault::TooLarge => "its answer is too large to be a result".to_owned(),
        AnswerFault::NotJson => "its answer is no valid JSON".to_owned(),
        AnswerFault::WrongSchema => {
            format!("its answer is no valid result: {}", issues.join(", "))
        }
    }
}

/// JSON that was meant: the text or a line of it begins as an object does, or a fence says so.
fn looks_like_json(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with('{') || line.starts_with('[') || line.starts_with("```json")
    })
}

/// The first lines of what a model said: bounded, printable, and without secrets.
#[must_use]
pub fn beginning(text: &str) -> String {
    let text = head(text.trim(), LOOKED_AT);
    let (text, _) = shown(&redact(text));
    let lines: Vec<&str> = text.lines().map(str::trim_end).take(LINES).collect();
    let mut lines = lines.join("\n");
    if let Some((at, _)) = lines.char_indices().nth(CHARACTERS) {
        lines.truncate(at);
        lines.push('…');
    }
    lines.trim_end().to_owned()
}

/// The words in a line of JSON that was cut off, as far as they go; the line itself where none are found.
fn words_in(line: &str) -> String {
    let line = head(line, LOOKED_AT);
    let found = FIELDS.iter().find_map(|field| Some(&line[line.find(field)? + field.len()..]));
    let Some(rest) = found else { return line.to_owned() };
    let mut words = String::new();
    let mut chars = rest.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => break,
            '\\' => match chars.next() {
                Some('n') => words.push('\n'),
                Some('t') => words.push('\t'),
                Some(other @ ('"' | '\\' | '/')) => words.push(other),
                Some(_) => words.push('\u{fffd}'),
                // Cut off in the middle of an escape.
                None => {}
            },
            char => words.push(char),
        }
    }
    words
}

/// At most so many bytes of a text, cut between characters.
fn head(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_no_result_is_called_what_it_is_and_quoted() {
        use AnswerFault as F;
        let long = "x".repeat(LARGE + 1);
        let table = [
            (None, None, false, F::Empty, ""),
            (Some(" \n\u{feff}"), None, false, F::Empty, ""),
            (Some("I am done."), None, false, F::Prose, "I am done."),
            (Some("I cannot help {with} that"), None, false, F::Prose, "I cannot help {with} that"),
            (Some("{\"status\":"), None, false, F::NotJson, "{\"status\":"),
            (
                Some("Here:\n```json\n{\"a\": }"),
                None,
                false,
                F::NotJson,
                "Here:\n```json\n{\"a\": }",
            ),
            (Some("{\"status\": 7}"), None, true, F::WrongSchema, "{\"status\": 7}"),
            (None, Some(r#"{"item":{"text":"one\ntwo \"q\"#), false, F::TooLarge, "one\ntwo \"q"),
            (None, Some("{\"strange"), false, F::TooLarge, "{\"strange"),
        ];
        for (text, line, object, fault, beginning) in table {
            let beginning = beginning.to_owned();
            assert_eq!(of(text, line, object), BadAnswer { fault, beginning }, "{text:?} {line:?}");
        }
        let large = of(Some(&long), None, true);
        assert_eq!((large.fault, large.beginning.chars().count()), (F::TooLarge, CHARACTERS + 1));
    }

    #[test]
    fn what_is_quoted_is_bounded_printable_and_without_secrets() {
        let secret = format!("sk-{}", "x1".repeat(12));
        let text = format!("key {secret}\n\u{202e}evil\u{7}\n{}", "line\n".repeat(100));
        let quoted = of(Some(&text), None, false).beginning;
        assert!(!quoted.contains(&secret) && !quoted.contains('\u{202e}'), "{quoted}");
        assert!(quoted.contains("<U+202E>evil<U+0007>"), "{quoted}");
        assert_eq!(quoted.lines().count(), LINES);
        let wide = of(Some(&"한".repeat(LOOKED_AT)), None, false).beginning;
        assert_eq!(wide.chars().count(), CHARACTERS + 1);
    }
}
