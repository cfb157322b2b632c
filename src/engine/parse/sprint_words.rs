//! Whether a text asks to begin or to end a sprint (`spec/teams.md` 5.7).

const START: [&str; 6] = ["start", "begin", "kickoff", "run", "open", "create"];
const START_KOREAN: [&str; 5] = ["시작", "열어", "열기", "만들", "생성"];
const END: [&str; 6] = ["finalize", "finish", "close", "wrap up", "wrapup", "end"];
const END_KOREAN: [&str; 4] = ["종료", "마무리", "랩업", "끝내"];
/// How far apart the two words may stand, in characters.
const ENGLISH_GAP: usize = 24;
const KOREAN_GAP: usize = 12;

/// Whether a text asks to begin a sprint.
#[must_use]
pub fn is_sprint_start_text(text: &str) -> bool {
    asks(text, &START, &START_KOREAN)
}

/// Whether a text asks to end a sprint.
#[must_use]
pub fn is_sprint_finalize_text(text: &str) -> bool {
    asks(text, &END, &END_KOREAN)
}

fn asks(text: &str, english: &[&str], korean: &[&str]) -> bool {
    let text: Vec<char> = squeezed(text).chars().collect();
    let verb_first = english.iter().any(|verb| {
        find(&text, verb, true).iter().any(|(_, end)| {
            find(&text, "sprint", true)
                .iter()
                .any(|(start, _)| start >= end && start - end <= ENGLISH_GAP)
        })
    });
    verb_first
        || find(&text, "스프린트", false).iter().any(|(_, end)| {
            korean.iter().any(|verb| {
                find(&text, verb, false)
                    .iter()
                    .any(|(start, _)| start >= end && start - end <= KOREAN_GAP)
            })
        })
}

/// Lower case, with every run of blanks inside "wrap up" as one.
fn squeezed(text: &str) -> String {
    let lower = text.to_lowercase();
    let mut squeezed = String::with_capacity(lower.len());
    for letter in lower.chars() {
        let blank = letter.is_whitespace();
        if blank && squeezed.ends_with("wrap ") {
            continue;
        }
        squeezed.push(if blank { ' ' } else { letter });
    }
    squeezed
}

/// Where a word stands, in characters; as a whole word if wanted.
fn find(text: &[char], word: &str, whole: bool) -> Vec<(usize, usize)> {
    let word: Vec<char> = word.chars().collect();
    let is_word =
        |at: Option<&char>| at.is_some_and(|letter| letter.is_alphanumeric() || *letter == '_');
    text.windows(word.len())
        .enumerate()
        .filter(|(_, window)| *window == word.as_slice())
        .map(|(start, _)| (start, start + word.len()))
        .filter(|(start, end)| {
            let before = start.checked_sub(1).and_then(|before| text.get(before));
            !whole || (!is_word(before) && !is_word(text.get(*end)))
        })
        .collect()
}
