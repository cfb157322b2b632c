//! Matching terms as words and phrases (`spec/teams.md` 13.A #15): "ui" is in "the ui", not in
//! "require".

use std::collections::BTreeSet;

/// A text prepared for matching.
#[derive(Debug, Clone)]
pub struct Text {
    words: Vec<String>,
    set: BTreeSet<String>,
}

impl Text {
    /// Prepares a text: lower case, split at everything that is neither letter nor digit.
    #[must_use]
    pub fn new(text: &str) -> Text {
        let words = split(text);
        let set = words.iter().cloned().collect();
        Text { words, set }
    }

    /// Whether the term occurs as whole words in a row. A Korean word also counts with its particle
    /// ("코드를" has "코드"), because Korean attaches particles without a blank.
    #[must_use]
    pub fn has(&self, term: &str) -> bool {
        let term = split(term);
        let Some((first, rest)) = term.split_first() else {
            return false;
        };
        if rest.is_empty() && !is_korean(first) {
            return self.set.contains(first);
        }
        self.words.windows(term.len()).any(|window| {
            window.iter().zip(&term).all(|(word, wanted)| {
                word == wanted || (is_korean(wanted) && word.starts_with(wanted.as_str()))
            })
        })
    }
}

/// The words of a text in lower case. A word also ends where Hangul begins or ends, because Korean
/// particles follow foreign words without a blank ("scope와").
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last: Option<bool> = None;
    for letter in text.to_lowercase().chars() {
        let script = letter.is_alphanumeric().then(|| is_hangul(letter));
        if let Some(hangul) = script {
            match words.last_mut().filter(|_| last == Some(hangul)) {
                Some(word) => word.push(letter),
                None => words.push(letter.to_string()),
            }
        }
        last = script;
    }
    words
}

fn is_hangul(letter: char) -> bool {
    ('가'..='힣').contains(&letter) || ('ㄱ'..='ㅣ').contains(&letter)
}

/// Whether a word is Korean, so that a particle may follow.
fn is_korean(word: &str) -> bool {
    word.chars().last().is_some_and(is_hangul)
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn terms_match_as_words_13a_15() {
        for (text, term, expected) in [
            ("we require it", "ui", false),
            ("the UI, please", "ui", true),
            ("an async handler", "sync", false),
            ("acceptance-criteria: none", "acceptance criteria", true),
            ("criteria of acceptance", "acceptance criteria", false),
            ("코드를 고쳐줘", "코드", true),
            ("scope와 plan을", "scope", true),
            ("planner가", "plan", false),
            ("spec.md is wrong", "spec.md", true),
            ("", "ui", false),
            ("x", "", false),
        ] {
            assert_eq!(Text::new(text).has(term), expected, "{term:?} in {text:?}");
        }
    }
}
