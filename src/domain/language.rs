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

impl Language {
    /// The language of a text: Korean where it has Hangul.
    #[must_use]
    pub fn of(text: &str) -> Option<Language> {
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
