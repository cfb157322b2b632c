//! Characters that nobody sees, or that make others look different than they are.

/// Characters that show nothing, or that turn around what others show: with them a text reads differently
/// than it looks.
#[must_use]
pub const fn is_hidden(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e01ef}')
}

/// The text with what is hidden in it shown by its number, and how much that was. A joiner between two
/// pictures is part of the picture.
#[must_use]
pub fn shown(text: &str) -> (String, usize) {
    let mut out = String::with_capacity(text.len());
    let mut hidden = 0;
    let mut before = '\n';
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let next = chars.peek().copied().unwrap_or('\n');
        let joins = char == '\u{200d}' && before >= '\u{2190}' && next >= '\u{2190}';
        match char {
            '\n' | '\t' => out.push(char),
            _ if char.is_control() || (is_hidden(char) && !joins) => {
                hidden += 1;
                out.push_str(&format!("<U+{:04X}>", u32::from(char)));
            }
            _ => out.push(char),
        }
        before = char;
    }
    (out, hidden)
}

/// A JSON text in which what is hidden stands as an escape: the same value to a program, and seen by people.
/// Such characters can only stand within its strings.
#[must_use]
pub fn escaped_in_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if is_hidden(char) || (char.is_control() && char != '\n') {
            let mut units = [0; 2];
            for unit in char.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(char);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_shown_and_pictures_stay() {
        for (text, seen, hidden) in [
            ("plain\n\tand 한국어", "plain\n\tand 한국어", 0),
            ("a\u{202e}b\u{200b}", "a<U+202E>b<U+200B>", 2),
            ("\u{1b}[31mred", "<U+001B>[31mred", 1),
            ("👨\u{200d}👩", "👨\u{200d}👩", 0),
        ] {
            assert_eq!(shown(text), (seen.to_owned(), hidden));
        }
    }

    #[test]
    fn json_means_the_same_with_what_is_hidden_escaped() {
        let value = serde_json::json!({"a": "x\u{202e}y\u{e0041}\u{7f}", "b": ["\u{200b}"]});
        let text = escaped_in_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.chars().any(is_hidden), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
