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

fn split(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Whether a word ends in a Hangul syllable, so that a particle may follow.
fn is_korean(word: &str) -> bool {
    word.chars()
        .last()
        .is_some_and(|letter| ('가'..='힣').contains(&letter))
}
