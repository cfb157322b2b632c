//! Whether a text asks to begin a sprint (`spec/teams.md` 5.7).

const START: [&str; 6] = ["start", "begin", "kickoff", "run", "open", "create"];
const START_KOREAN: [&str; 5] = ["시작", "열어", "열기", "만들", "생성"];
/// How far apart the two words may stand, in characters.
const ENGLISH_GAP: usize = 24;
const KOREAN_GAP: usize = 12;

/// Whether a text asks to begin a sprint.
#[must_use]
pub fn is_sprint_start_text(text: &str) -> bool {
    let blank_or = |letter: char| if letter.is_whitespace() { ' ' } else { letter };
    let text: Vec<char> = text.to_lowercase().chars().map(blank_or).collect();
    let sprint = find(&text, "sprint", true);
    let near = |start: usize, end: usize, gap: usize| start >= end && start - end <= gap;
    let english = START.iter().flat_map(|verb| find(&text, verb, true));
    if english.into_iter().any(|(_, end)| sprint.iter().any(|(at, _)| near(*at, end, ENGLISH_GAP)))
    {
        return true;
    }
    let verbs: Vec<(usize, usize)> =
        START_KOREAN.iter().flat_map(|verb| find(&text, verb, false)).collect();
    find(&text, "스프린트", false)
        .iter()
        .any(|(_, end)| verbs.iter().any(|(at, _)| near(*at, *end, KOREAN_GAP)))
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
