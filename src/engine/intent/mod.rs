//! What a message asks for, by rules: they answer, or say that they are unsure.
//!
//! A message is made plain (code, logs, quotations and names are taken out), cut into pieces where
//! it says itself that something else follows, and into sentences. The rules of its language find
//! signs in the clauses, and from all the signs of a piece follows its intent.

mod english;
mod korean;
mod signs;
mod text;

use std::sync::LazyLock;

use regex::Regex;

use crate::domain::intent::Intent;
pub use signs::{Evidence, Sign};

/// What the rules make of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What the message asks for; `None` where the rules are unsure.
    pub intent: Option<Intent>,
    /// The signs that were seen, piece by piece.
    pub why: Vec<Evidence>,
    /// The pieces of work: one, or two where the message clearly holds two.
    pub parts: Vec<Part>,
}

/// One piece of work in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its words as they were written.
    pub text: String,
    /// What it asks for; `None` where the rules are unsure.
    pub intent: Option<Intent>,
}

/// Words with which a message says that what follows is another matter.
static OTHER_MATTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)(^|[.!?;,/)~\n]|\sand)\s*(?:(?:oh|and|also|then|ps|p\.s\.)[,:]?\s+)*",
        r"(?:(?:totally |completely )?unrelated(?:ly)?(?: to (?:this|that))?(?: question| thing| request)?|separate(?:ly)?(?: thing| question| matter| topic)?|(?:on )?an?other (?:note|thing|topic|matter|subject)|other (?:topic|thing|subject|matter)|different (?:topic|thing|subject|matter|question)|something (?:else|different)|one more thing)(?: entirely| completely| too)?\s*[:,.–—-]?\s",
        r"|(^|[.!?~,/)\n요]|니다|고)\s*(?:아\s?|그리고[,]?\s*|참[,]?\s*|또\s*)*(?:(?:이거랑|이거와|이와|그거랑|위와|이건)\s*(?:는\s*)?(?:상관\s?없|별개|무관)\S*|별개\S*|별건\S*|별도로|따로|다른\s?(?:얘기|이야기|질문|건|주제|거)\S*)(?:\s*(?:하나|한\s?가지)(?:\s?더)?)?[:,.]?\s"
    ))
    .ok()
});

/// Reads a message.
///
/// ```
/// use teams::domain::intent::Intent;
/// use teams::engine::intent::read;
///
/// assert_eq!(read("could you rename `tmp` to `scratch`?").intent, Some(Intent::Refactor));
/// assert_eq!(read("do not add a cache, just tell me how it works").intent, Some(Intent::Question));
/// ```
#[must_use]
pub fn read(message: &str) -> Reading {
    let mut pieces = vec![message];
    if let Some(found) = OTHER_MATTER.as_ref().and_then(|other| other.captures(message))
        && let (Some(all), Some(end)) = (found.get(0), found.get(1).or_else(|| found.get(2)))
    {
        // What ended the sentence before stays with it.
        let (before, after) = (&message[..end.end()], &message[all.end()..]);
        if has_words(before) && has_words(after) {
            pieces = vec![before, after];
        }
    }
    let mut why = Vec::new();
    let mut parts = Vec::new();
    for piece in pieces {
        let evidence = evidence(piece);
        parts.push(Part { text: piece.trim().to_owned(), intent: signs::settle(&evidence) });
        for sign in evidence {
            if !why.contains(&sign) {
                why.push(sign);
            }
        }
    }
    let intent = match parts.as_slice() {
        [one] => one.intent,
        many => first_of(many),
    };
    Reading { intent, why, parts }
}

/// The first of the intents in their order. Of a piece that is not understood nothing is known, so
/// that only what would come before anything it may be is an answer.
fn first_of(parts: &[Part]) -> Option<Intent> {
    let known = parts.iter().filter_map(|part| part.intent).min()?;
    let all = parts.iter().all(|part| part.intent.is_some());
    (all || known == Intent::Hotfix).then_some(known)
}

fn has_words(text: &str) -> bool {
    text.chars().filter(|letter| letter.is_alphabetic()).count() >= 4
}

fn evidence(piece: &str) -> Vec<Evidence> {
    let plain = text::plain(piece);
    let mut found = Vec::new();
    for sentence in text::sentences(&plain) {
        if sentence.korean {
            korean::read(&sentence, &mut found);
        } else {
            english::read(&sentence, &mut found);
        }
    }
    found
}
