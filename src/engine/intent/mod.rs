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
pub use signs::{Sign, SignMatch};

/// What the rules make of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentReading {
    /// What the message asks for; `None` where the rules are unsure.
    pub intent: Option<Intent>,
    /// The signs that were seen, piece by piece.
    pub why: Vec<SignMatch>,
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
        r"(?:(?:totally |completely )?unrelated(?:ly)?(?: to (?:this|that))?(?: question| thing| request)?|(?:totally |completely |entirely |and )?separate(?:ly)?(?: thing| question| matter| topic)?|independently(?: of (?:this|that))?|apart from (?:this|that)|besides|a second thing|other than that|(?:on )?an?other (?:note|thing|topic|matter|subject)|other (?:topic|thing|subject|matter)|different (?:topic|thing|subject|matter|question)|something (?:else|different)|one more thing)(?: entirely| completely| too)?\s*[:,.–—-]?\s",
        r"|(^|[.!?~,/)\n요]|니다|고)\s*(?:아\s?|그리고[,]?\s*|참[,]?\s*|또\s*)*(?:(?:이거랑|이거와|이와|그거랑|위와|이건)\s*(?:는\s*)?(?:상관\s?없|별개|별건|무관|다른)\S*|별개\S*|별건\S*|별도로|따로|다른\s?(?:얘기|얘긴|이야기|이야긴|질문|건|주제|거)\S*)(?:\s*(?:하나|한\s?가지)(?:\s?더)?)?[:,.]?\s"
    ))
    .ok()
});

/// Words that go on, with the same matter or another one.
static MORE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)([.!?\n)~]|니다|요)\s+(?:(?:oh|ah|아|아참|참)[,]?\s+)?(?:and|also|plus|그리고|또|추가로)[,:]?\s+").ok()
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
pub fn read(message: &str) -> IntentReading {
    let mut pieces = vec![message];
    if let Some(two) = cut(message, &OTHER_MATTER) {
        pieces = two.to_vec();
    } else if let Some(two) = cut(message, &MORE)
        && let [Some(first), Some(second)] = two.map(|piece| signs::settle(&signs_in(piece)))
        && first != second
        && (is_answered(first) || is_answered(second))
    {
        pieces = two.to_vec();
    }
    let mut why = Vec::new();
    let mut parts = Vec::new();
    for piece in pieces {
        let found = signs_in(piece);
        parts.push(Part { text: piece.trim().to_owned(), intent: signs::settle(&found) });
        for sign in found {
            if !why.contains(&sign) {
                why.push(sign);
            }
        }
    }
    let intent = match parts.as_slice() {
        [one] => one.intent,
        many => first_of(many),
    };
    IntentReading { intent, why, parts }
}

/// The first of the intents in their order. Of a piece that is not understood nothing is known, so
/// that only what would come before anything it may be is an answer.
fn first_of(parts: &[Part]) -> Option<Intent> {
    let known = parts.iter().filter_map(|part| part.intent).min()?;
    let all = parts.iter().all(|part| part.intent.is_some());
    (all || known == Intent::Hotfix).then_some(known)
}

/// Whether a piece of this kind changes nothing, so that it is no step of another one.
fn is_answered(intent: Intent) -> bool {
    match intent {
        Intent::Question | Intent::Control | Intent::Resume | Intent::Incident => true,
        Intent::Hotfix
        | Intent::Feature
        | Intent::SpecRevision
        | Intent::Refinement
        | Intent::ImplementationOnly
        | Intent::Refactor
        | Intent::BugFix => false,
    }
}

/// What stands before and after the first words of a kind; what ended the sentence before stays.
fn cut<'a>(message: &'a str, at: &LazyLock<Option<Regex>>) -> Option<[&'a str; 2]> {
    let found = at.as_ref()?.captures(message)?;
    let (all, end) = (found.get(0)?, found.get(1).or_else(|| found.get(2))?);
    let two = [&message[..end.end()], &message[all.end()..]];
    two.iter().all(|piece| has_words(piece)).then_some(two)
}

fn has_words(text: &str) -> bool {
    text.chars().filter(|letter| letter.is_alphabetic()).count() >= 4
}

fn signs_in(piece: &str) -> Vec<SignMatch> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(message: &str) -> Vec<(String, Option<Intent>)> {
        read(message).parts.into_iter().map(|part| (part.text, part.intent)).collect()
    }

    #[test]
    fn two_pieces_are_cut_where_the_message_says_so_and_the_first_of_the_order_counts() {
        let message = "Resume REQ-0007. Unrelated: the total is wrong, please fix.";
        assert_eq!(
            parts(message),
            [
                ("Resume REQ-0007.".to_owned(), Some(Intent::Resume)),
                ("the total is wrong, please fix.".to_owned(), Some(Intent::BugFix)),
            ]
        );
        assert_eq!(read(message).intent, Some(Intent::BugFix));

        let message = "REQ-0007 재개해 주세요. 그리고 별개로 합계가 틀려요 고쳐주세요";
        assert_eq!(
            parts(message),
            [
                ("REQ-0007 재개해 주세요.".to_owned(), Some(Intent::Resume)),
                ("합계가 틀려요 고쳐주세요".to_owned(), Some(Intent::BugFix)),
            ]
        );
        // Of the second piece nothing is known.
        assert_eq!(read("Resume REQ-0007. Unrelated: hm, the colours").intent, None);
    }

    #[test]
    fn what_is_to_stay_stopped_does_not_go_on() {
        let intent = |text: &str| read(text).intent;
        for text in [
            "keep 20260324-1a2b3c4d on hold",
            "please keep 20260324-1a2b3c4d paused for now",
            "keep 20260324-1a2b3c4d blocked until monday",
            "20260324-1a2b3c4d 계속 진행하지 마세요",
        ] {
            assert_ne!(intent(text), Some(Intent::Resume), "{text}");
        }
        for text in [
            "keep working on 20260324-1a2b3c4d",
            "20260324-1a2b3c4d 이어서 해 주세요",
            "20260324-1a2b3c4d 이어서 진행해 주세요",
            "20260324-1a2b3c4d 계속 진행해 주세요",
        ] {
            assert_eq!(intent(text), Some(Intent::Resume), "{text}");
        }
    }

    #[test]
    fn what_is_quoted_named_or_negated_is_not_asked_for() {
        for question in [
            "what does `fix --all` do?",
            "what does \"cancel the sprint\" on the card mean?",
            "who owns the branch fix/login-crash?",
            "```\nERROR please fix the build\n```\nwhich file does this come from?",
            "do not fix the parser, just tell me how it reads dates",
            "파서 고치지 말고 날짜를 어떻게 읽는지만 알려주세요",
            "'수정해 주세요' 문구는 누가 정하나요?",
        ] {
            assert_eq!(read(question).intent, Some(Intent::Question), "{question}");
        }
    }

    #[test]
    fn empty_and_foreign_messages_say_nothing() {
        for message in ["", " ", "```", "🙂", "1234", "안녕하세요", "hello", "\u{0}?", "''\"`"]
        {
            assert_eq!(read(message).intent, None, "{message:?}");
        }
    }
}
