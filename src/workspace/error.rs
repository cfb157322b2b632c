//! What is wrong with a configuration, said so that a person can put it right: file, line, key, what
//! was expected and the nearest valid word.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use regex::Regex;
use serde_path_to_error::Segment;

use super::locate::{lines, locate};
use crate::domain::config::Problem;
use crate::platform::files::FileError;

/// What the parser says, with the key at which it said it.
pub(super) type YamlError = serde_path_to_error::Error<serde_yaml::Error>;

/// Why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The folder is no workspace.
    #[error("no workspace here: {} has no {file}", root.display())]
    NotAWorkspace {
        /// The folder.
        root: PathBuf,
        /// The file that is not there.
        file: &'static str,
    },
    /// A reset has begun and did not come to its end.
    #[error("a reset of {} was cut off", root.display())]
    HalfReset {
        /// The folder.
        root: PathBuf,
    },
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is larger than [`MAX_CONFIG_BYTES`].
    #[error("{} has {bytes} bytes; a configuration has at most {MAX_CONFIG_BYTES}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: usize,
    },
    /// A value is wrong.
    #[error("{0}")]
    Invalid(Box<Invalid>),
    /// A token is not in the environment.
    #[error("the variable {name} is not set; it holds the Discord token of {whose}")]
    TokenMissing {
        /// The variable.
        name: String,
        /// Whose token it is.
        whose: String,
    },
    /// A built-in or overriding file of a role or prompt is wrong.
    #[error(transparent)]
    Asset(#[from] crate::assets::AssetError),
}

/// The largest configuration that is parsed: beyond it the parser's time could be abused.
pub(super) const MAX_CONFIG_BYTES: usize = 1024 * 1024;

/// A wrong value in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The file; empty where the problem is not about a place in one.
    pub path: PathBuf,
    /// The line, from 1; 0 where unknown.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The key, from the top of the file, with dots.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    text: String,
    span: Range<usize>,
}

impl ConfigError {
    /// A problem without a file.
    #[must_use]
    pub fn problem(problem: Problem) -> ConfigError {
        ConfigError::Invalid(Box::new(Invalid::of(Path::new(""), "", problem)))
    }

    /// A problem in a file.
    #[must_use]
    pub fn problem_in(path: &Path, text: &str, problem: Problem) -> ConfigError {
        ConfigError::Invalid(Box::new(Invalid::of(path, text, problem)))
    }

    /// What the parser says about a file.
    #[must_use]
    pub(super) fn yaml(path: &Path, text: &str, error: &YamlError) -> ConfigError {
        ConfigError::Invalid(Box::new(Invalid::from_yaml(path, text, error)))
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            ConfigError::NotAWorkspace { .. } => {
                Some("`teams setup` makes one and connects it with Discord, `teams init` only writes it; `--workspace-root` names another".to_owned())
            }
            ConfigError::HalfReset { .. } => {
                Some("`teams init --reset` finishes it, into the same backup".to_owned())
            }
            ConfigError::Invalid(invalid) => invalid.hint.clone(),
            ConfigError::TokenMissing { name, .. } => Some(format!(
                "`teams setup` asks for it; or export {name}=…, or write it into a `.env` beside the workspace"
            )),
            ConfigError::File(_) | ConfigError::TooLarge { .. } | ConfigError::Asset(_) => None,
        }
    }

    /// The lines around the mistake; `None` where there is no place to show.
    #[must_use]
    pub fn snippet(&self) -> Option<String> {
        match self {
            ConfigError::Invalid(invalid) => invalid.snippet(),
            ConfigError::NotAWorkspace { .. }
            | ConfigError::HalfReset { .. }
            | ConfigError::File(_)
            | ConfigError::TooLarge { .. }
            | ConfigError::TokenMissing { .. }
            | ConfigError::Asset(_) => None,
        }
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.as_os_str().is_empty() {
            write!(f, "{}", self.path.display())?;
            if self.line > 0 {
                write!(f, ":{}:{}", self.line, self.column)?;
            }
            f.write_str(": ")?;
        }
        match (self.key.is_empty(), self.message.starts_with("is ")) {
            (true, _) => {}
            (false, true) => write!(f, "`{}` ", self.key)?,
            (false, false) => write!(f, "`{}`: ", self.key)?,
        }
        f.write_str(&self.message)
    }
}

impl Invalid {
    fn of(path: &Path, text: &str, problem: Problem) -> Invalid {
        let span = locate(text, &problem.key).unwrap_or(0..0);
        let mut invalid = Invalid {
            path: path.to_owned(),
            line: 0,
            column: 0,
            key: problem.key_path(),
            message: problem.message,
            hint: problem.hint,
            text: text.to_owned(),
            span,
        };
        invalid.place();
        invalid
    }

    fn from_yaml(path: &Path, text: &str, error: &YamlError) -> Invalid {
        // What is no YAML has no keys yet: the parser of types says where it gave up, not what is open.
        if let Some(open) = unclosed(text)
            && serde_yaml::from_str::<serde_yaml::Value>(text).is_err()
        {
            let sign = &text[open.clone()];
            let mut invalid = Invalid {
                path: path.to_owned(),
                line: 0,
                column: 0,
                key: String::new(),
                message: format!("this `{sign}` is never closed"),
                hint: Some(format!("end it with `{}`", closing(sign))),
                text: text.to_owned(),
                span: open,
            };
            invalid.place();
            return invalid;
        }
        let said = error.inner().to_string();
        let said = LOCATION.replace(&said, "");
        let yamls_path = KEY.find(&said).map_or("", |found| found.as_str());
        let yamls_path: Vec<&str> =
            yamls_path.split(['.', '[', ']', ':', ' ']).filter(|word| !word.is_empty()).collect();
        let message = KEY.replace(&said, "").into_owned();
        let wrong = UNKNOWN.captures(&message).map(|found| found[2].to_owned());
        // A key that is a word of ours is unknown to the one path, and known to the other unless it
        // is itself what is wrong.
        let mut key: Vec<String> = error
            .path()
            .iter()
            .enumerate()
            .filter_map(|(depth, segment)| match segment {
                Segment::Seq { index } => Some(index.to_string()),
                Segment::Map { key } => Some(key.clone()),
                Segment::Enum { .. } => None,
                Segment::Unknown => {
                    yamls_path.get(depth).map(|word| (*word).to_owned()).or_else(|| wrong.clone())
                }
            })
            .collect();
        // A word that should not be there is shown itself, not what it stands before.
        let bad_key = matches!(error.path().iter().next_back(), Some(Segment::Unknown))
            && yamls_path.len() < key.len();
        let stray = STRAY_KEY
            .captures(&message)
            .map(|found| found[1].to_owned())
            .or_else(|| wrong.filter(|_| bad_key));
        if let Some(word) = stray.as_ref().filter(|word| key.last() != Some(*word)) {
            key.push(word.clone());
        }
        let parsers = error.inner().location().map(|place| place.index());
        let found = (!key.is_empty()).then(|| locate(text, &key)).flatten();
        let span = match (found, stray) {
            (_, Some(word)) if message.starts_with("duplicate") => last_key(text, &word),
            (Some(span), Some(word)) => Some(key_before(text, &span, &word)),
            (found, _) => found,
        };
        let span = span.or_else(|| parsers.map(|at| word_at(text, at))).unwrap_or(0..0);
        let mut invalid = Invalid {
            path: path.to_owned(),
            line: 0,
            column: 0,
            key: key.join("."),
            hint: nearest(&message),
            message: plainly(message),
            text: text.to_owned(),
            span,
        };
        invalid.place();
        invalid
    }

    fn place(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let before = self.text.get(..self.span.start).unwrap_or_default();
        self.line = before.matches('\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        self.column = before[line_start..].chars().count() + 1;
    }

    fn snippet(&self) -> Option<String> {
        if self.line == 0 {
            return None;
        }
        let path = self.path.display().to_string();
        let annotation = AnnotationKind::Primary.span(self.span.clone());
        let source = Snippet::source(self.text.as_str()).path(path.as_str()).annotation(annotation);
        let title = if self.key.is_empty() {
            "this is wrong".to_owned()
        } else {
            format!("`{}`", self.key)
        };
        let report = [Level::ERROR.primary_title(title.as_str()).element(source)];
        Some(Renderer::plain().render(&report))
    }
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and the tests read with each of them"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

static LOCATION: LazyLock<Regex> = LazyLock::new(|| pattern(r" at line \d+ column \d+$"));
static KEY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:[a-z_][\w-]*|\[\d+\])(?:[.\[][\w\]-]+)*: "));
static UNKNOWN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"unknown (field|variant) `([^`]*)`, (?:expected|there are no)(.*)"));
static STRAY_KEY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^(?:duplicate|unknown) field `([^`]*)`"#));
static QUOTED: LazyLock<Regex> = LazyLock::new(|| pattern(r"`([^`]+)`"));

/// "did you mean" for a message that lists what was expected.
fn nearest(message: &str) -> Option<String> {
    let found = UNKNOWN.captures(message)?;
    let wrong = found[2].to_lowercase();
    let distance = |valid: &String| strsim::damerau_levenshtein(&wrong, valid);
    // A word that was left off, or one too many, is no misspelling: `timeout` for `timeout_seconds`.
    let begins = |valid: &String| {
        let (short, long) =
            if valid.len() < wrong.len() { (valid, &wrong) } else { (&wrong, valid) };
        short.len() >= 3 && long.starts_with(short.as_str())
    };
    let limit = 1 + wrong.chars().count() / 3;
    let best = QUOTED
        .captures_iter(found.get(3)?.as_str())
        .map(|valid| valid[1].to_owned())
        .filter(|valid| distance(valid) <= limit || begins(valid))
        .min_by_key(|valid| (distance(valid) > limit, distance(valid)))?;
    Some(format!("did you mean `{best}`?"))
}

/// The parser's words for types, as people say them.
fn plainly(message: String) -> String {
    let mut said = message;
    for (theirs, ours) in [
        ("expected i64", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("expected a boolean", "expected true or false"),
        ("unknown variant", "unknown word"),
    ] {
        said = said.replace(theirs, ours);
    }
    shortened(&STRUCT.replace(&said, "expected a mapping"))
}

/// A message on one line; a value that is quoted in it may be as long as the file.
fn shortened(said: &str) -> String {
    const LONGEST: usize = 600;
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    let start: String = line.chars().take(LONGEST / 3).collect();
    let end: Vec<char> = line.chars().rev().take(LONGEST / 3).collect();
    format!("{start} … {}", end.into_iter().rev().collect::<String>())
}

/// What ends what a sign begins.
fn closing(sign: &str) -> &str {
    match sign {
        "[" => "]",
        "{" => "}",
        quote => quote,
    }
}

/// The first bracket or quote of a value that nothing closes: none where they all are, or where what is wrong
/// is something else.
fn unclosed(text: &str) -> Option<Range<usize>> {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut quote: Option<(char, usize)> = None;
    for line in lines(text) {
        // A bracket within plain words is one of the words.
        let value = match line.entry() {
            Some((_, value)) if open.is_empty() && quote.is_none() => value.start - line.start,
            Some(_) | None => 0,
        };
        let rest = line.text.get(value..).unwrap_or_default();
        if open.is_empty() && quote.is_none() && !rest.starts_with(['[', '{', '"', '\'']) {
            continue;
        }
        let mut before = '\n';
        for (at, c) in rest.char_indices() {
            let place = line.start + value + at;
            match (quote, c) {
                (Some((sign, _)), c) if sign == c && before != '\\' => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some((c, place)),
                (None, '[' | '{') => open.push((c, place)),
                (None, ']' | '}') => match open.pop() {
                    Some(('[', _)) if c == ']' => {}
                    Some(('{', _)) if c == '}' => {}
                    Some((_, at)) => return Some(at..at + 1),
                    None => return None,
                },
                (None, _) => {}
            }
            before = c;
        }
        if open.is_empty() && quote.is_some_and(|(sign, _)| sign == '\'') {
            // A single quote may be an apostrophe of the words around it.
            quote = None;
        }
    }
    let first = open.first().map(|(_, at)| *at).into_iter().chain(quote.map(|(_, at)| at)).min()?;
    Some(first..first + 1)
}

static STRUCT: LazyLock<Regex> = LazyLock::new(|| pattern(r"expected (?:struct \w+|a map)$"));

/// The bytes of a key, given those of its value.
fn key_before(text: &str, value: &Range<usize>, word: &str) -> Range<usize> {
    let before = &text[..value.end.min(text.len())];
    match before.rfind(word) {
        Some(start) => start..start + word.len(),
        None => value.clone(),
    }
}

/// The last line that begins with a key: of two equal ones the second is the stray one.
fn last_key(text: &str, word: &str) -> Option<Range<usize>> {
    lines(text)
        .iter()
        .rev()
        .find(|line| line.entry().is_some_and(|(key, _)| key == word))
        .map(|line| line.start..line.start + word.len())
}

/// The word that begins at or after a byte of the text.
fn word_at(text: &str, at: usize) -> Range<usize> {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let rest = &text[at..];
    let end = rest.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(rest.len());
    at..at + end
}
