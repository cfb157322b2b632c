//! A message without what is not its author's own words: code, logs, quotations and names become
//! single letters that no list of words holds.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// One sentence in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// Its words, with placeholders for what was taken out.
    pub(super) words: String,
    /// Whether it ends in a question mark.
    pub(super) asks: bool,
    /// Whether it holds Hangul.
    pub(super) korean: bool,
}

/// Code, a flag, a command or an identifier.
const CODE: &str = "ⓒ";
/// The name of an error that a program printed.
const ERROR: &str = "ⓔ";
/// A file, a folder or a branch.
const FILE: &str = "ⓕ";
/// A document: a specification, a plan, a note.
const DOCUMENT: &str = "ⓓ";
/// Words in quotation marks.
const QUOTE: &str = "ⓠ";
/// The id of a request.
const REQUEST: &str = "ⓘ";
/// The id of a criterion, a requirement or a decision.
const RECORD: &str = "ⓡ";
/// A name in capitals within a sentence.
const NAME: &str = "ⓥ";

type Shape = (Regex, &'static str);

fn shapes(list: &[(&str, &'static str)]) -> Vec<Shape> {
    let made = list.iter().map(|(shape, with)| Regex::new(shape).map(|regex| (regex, *with)));
    made.filter_map(Result::ok).collect()
}

/// What is replaced, in this order. A break between sentences is a full stop with blanks.
const TAKEN_OUT: &[(&str, &str)] = &[
    (r"(?s)```.*?(?:```|\z)", "\n"),
    (r"(?m)^\s*>.*$", "\n"),
    (
        r"(?m)^\s*(?:\[?\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d|\[?(?:ERROR|WARN|INFO|FATAL|DEBUG)\b).*$",
        "\n",
    ),
    (r"(?m)^\s*(?:at \S+\(|Traceback|Caused by:).*$", "\n"),
    (
        r"`[^`\n]*(?:[A-Z]\w*(?:Error|Exception|Fault)|panic|[Ee]rror:|FATAL|Unexpected token|unexpected token)[^`\n]*`",
        ERROR,
    ),
    (r"`[^`\n]*(?i:spec|plan|prd|rfc)[^`\n]*\.(?:md|pdf|docx?|txt)`", DOCUMENT),
    (r"`[^`\n]*(?:/[^`\n]*|\.[a-z]{1,5})`", FILE),
    (r"`[^`\n]*`", CODE),
    (r"<(?:@[!&]?|#)\d+>|(?:^|\s)@[\w.-]+", " "),
    (r"<a?:\w+:\d+>|:[a-z_]{3,}:", "\n"),
    (r"https?://\S*(?:figma|notion|docs\.google|confluence)\S*", DOCUMENT),
    (r"https?://\S+", FILE),
    (
        r#""[^"\n]{1,160}"|“[^”\n]{1,160}”|‘[^’\n]{1,160}’|「[^」\n]*」|『[^』\n]*』|«[^»\n]*»"#,
        QUOTE,
    ),
    (r"\b[A-Z]\w*(?:Error|Exception)\b", ERROR),
    (r"\b(?:REQ|TODO|TASK|ITEM)-\d+\b|\b\d{8}-[0-9a-f]{8}\b", REQUEST),
    (r"\b(?:RFC|ADR|PRD|SPEC)[- ]?\d+\b", DOCUMENT),
    (r"\b(?:AC|C|R|D|FR|NFR)-\d+\b", RECORD),
    // A particle of Korean may follow a name at once.
    (r"(?i)\b[\w/-]*(?:spec|plan|prd|rfc|design|requirement)[\w/-]*\.md(?-u:\b)", DOCUMENT),
    // What a project tells its users is a file like any other.
    (
        r"(?i)\b(?:[\w-]+/)*(?:readme|changelog|changes|contributing|license|code_of_conduct|security|authors|install|history|news|faq|usage|guide|tutorial|quickstart|getting[-_]started)(?:\.[a-z]{2})?\.md(?-u:\b)",
        FILE,
    ),
    (r"\b[\w-]*/?[\w/-]+\.(?:md|pdf|docx?)(?-u:\b)", DOCUMENT),
    (
        r"\b[\w/-]+\.(?:rs|py|ts|tsx|js|jsx|go|java|kt|rb|c|h|cpp|cs|swift|sql|ya?ml|json|toml|sh|css|html|vue|log|txt|csv|xml|lock|env)(?-u:\b)",
        FILE,
    ),
    (
        r"\b(?:feat|feature|fix|bugfix|hotfix|refactor|chore|release|docs|src|tests?|lib|spike|improve|resume|plan)/[\w./-]+",
        FILE,
    ),
    (r"(^|\s)/[a-z가-힣][\w-]*", "$1ⓒ"),
    (r"(^|\s)--?[a-z][\w-]*", "$1ⓒ"),
    (r"\b\w*[A-Za-z]\w*_\w+\b|\b[a-z]{2,}[A-Z]\w*\b", CODE),
    (r"\bv?\d+(?:[.,:]\d+)+\b", "0"),
];

/// Straight single quotes: no letter before the first, none of the Latin alphabet after the last.
const SINGLE: &str = r"(^|[\s(\[>:,→])'[^'\s\n](?:[^'\n]{0,80}[^'\s\n])?'([^A-Za-z]|$)";

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| shapes(TAKEN_OUT));
static SINGLE_QUOTE: LazyLock<Vec<Shape>> = LazyLock::new(|| shapes(&[(SINGLE, "${1}ⓠ$2")]));
static CAPITAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"([a-z0-9,ⓐ-ⓩ'’)] )([A-Z][a-z]+)\b").ok());
/// Names of time that a capital does not hide.
const DATES: &[&str] = &[
    "Mon",
    "Tue",
    "Wed",
    "Thu",
    "Fri",
    "Sat",
    "Sun",
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "June",
    "July",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
    "Christmas",
];

/// The message without code, quotations, ids and names.
pub(super) fn plain(text: &str) -> String {
    let mut plain = text.replace(['’', '´'], "'").replace("**", "").replace('\r', "");
    for (shape, with) in SHAPES.iter().chain(SINGLE_QUOTE.iter()) {
        if let Cow::Owned(changed) = shape.replace_all(&plain, *with) {
            plain = changed;
        }
    }
    let Some(capital) = CAPITAL.as_ref() else { return plain };
    let hide = |found: &Captures<'_>| {
        let (before, name) = (&found[1], &found[2]);
        let date = DATES.iter().any(|date| name.starts_with(date));
        format!("{before}{}", if date { name } else { NAME })
    };
    // A second pass sees the names whose blank the first one used up.
    let once = capital.replace_all(&plain, hide).into_owned();
    capital.replace_all(&once, hide).into_owned()
}

fn is_inner(letter: char) -> bool {
    letter.is_alphanumeric()
        || matches!(
            letter,
            ' ' | ','
                | ':'
                | '('
                | ')'
                | '-'
                | '\''
                | '/'
                | '%'
                | '+'
                | '&'
                | '→'
                | '>'
                | '\t'
                | '_'
                | '*'
        )
}

fn is_filler(letter: char) -> bool {
    matches!(letter, 'ㅋ' | 'ㅎ' | 'ㅠ' | 'ㅜ' | '~' | '!' | '.' | '?' | ';' | '…')
}

/// The sentences of a message that was made plain.
pub(super) fn sentences(plain: &str) -> Vec<Sentence> {
    let mut found: Vec<Sentence> = Vec::new();
    let mut words = String::new();
    let mut close = |words: &mut String, asks: bool| {
        let trimmed = words.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let trimmed =
            trimmed.trim_matches(|l: char| matches!(l, '-' | '*' | ',' | ' ' | ':' | '>' | ')'));
        if trimmed.chars().any(char::is_alphanumeric) {
            let korean = trimmed
                .chars()
                .any(|letter| ('가'..='힣').contains(&letter) || ('ㄱ'..='ㅎ').contains(&letter));
            found.push(Sentence { words: trimmed.to_owned(), asks, korean });
        } else if asks && let Some(last) = found.last_mut() {
            last.asks = true;
        }
        words.clear();
    };
    let mut letters = plain.chars().peekable();
    while let Some(letter) = letters.next() {
        // A doubt in brackets ends no sentence.
        if letter == '?' && letters.peek() == Some(&')') {
            words.push(' ');
        } else if letter == '?' {
            close(&mut words, true);
        } else if letter == '\n' || is_filler(letter) || !is_inner(letter) {
            close(&mut words, false);
        } else {
            words.push(letter);
        }
    }
    close(&mut words, false);
    found
}
