//! The languages of the team.

use crate::domain::word::words;

words! {
    /// The language that a person is answered in.
    #[derive(Default)]
    pub enum Language {
        /// English.
        #[default]
        En = "en",
        /// Korean.
        Ko = "ko",
    }
}

/// A text without what stands in it between two of the same signs, or in code.
fn unquoted(text: &str) -> String {
    let closing = |c: char| match c {
        '"' | '`' => Some(c),
        '“' => Some('”'),
        '‘' => Some('’'),
        '「' => Some('」'),
        _ => None,
    };
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        match closing(c).and_then(|end| behind.split_once(end)) {
            Some((_, after)) => rest = after,
            None => {
                kept.push(c);
                rest = behind;
            }
        }
    }
    kept
}

impl Language {
    /// The language of a text: Korean where it has Hangul. What is quoted in it counts only where nothing else is said.
    #[must_use]
    pub fn of(text: &str) -> Option<Language> {
        Language::of_words(&unquoted(text)).or_else(|| Language::of_words(text))
    }

    fn of_words(text: &str) -> Option<Language> {
        let hangul = |c: char| matches!(c, '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7a3}');
        if text.chars().any(hangul) {
            Some(Language::Ko)
        } else if text.chars().any(|c| c.is_ascii_alphabetic()) {
            Some(Language::En)
        } else {
            None
        }
    }

    /// The language of a locale as Discord names it, such as `ko` or `en-GB`.
    #[must_use]
    pub fn of_locale(locale: &str) -> Language {
        if locale.starts_with("ko") { Language::Ko } else { Language::En }
    }
}

#[cfg(test)]
mod tests {
    use super::Language;

    #[test]
    fn what_is_quoted_counts_where_nothing_else_is_said() {
        for (text, language) in [
            ("replace \"Ask Mina or 미나\" with \"Ask Mina\"", Some(Language::En)),
            ("docs/limits.md 에서 \"gives\" 를 \"returns\" 로 바꿔 주세요", Some(Language::Ko)),
            ("\"안녕하세요\"", Some(Language::Ko)),
            ("say “안녕 to them", Some(Language::Ko)),
            ("123", None),
        ] {
            assert_eq!(Language::of(text), language, "{text}");
        }
    }
}
