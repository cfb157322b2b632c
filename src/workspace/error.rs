//! What is wrong with a configuration, said so that a person can put it right: file, line, key, what
//! was expected and the nearest valid word.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use regex::Regex;

use super::locate::locate;
use crate::domain::config::Problem;
use crate::platform::files::FileError;

/// Why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The folder is no workspace.
    #[error("{} is not a workspace: it has no {file}", root.display())]
    NotAWorkspace {
        /// The folder.
        root: PathBuf,
        /// The file that is not there.
        file: &'static str,
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
pub const MAX_CONFIG_BYTES: usize = 1024 * 1024;

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
    pub fn yaml(path: &Path, text: &str, error: &serde_yaml::Error) -> ConfigError {
        ConfigError::Invalid(Box::new(Invalid::from_yaml(path, text, error)))
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            ConfigError::NotAWorkspace { .. } => {
                Some("`teams init` makes one, `--workspace-root` names another".to_owned())
            }
            ConfigError::Invalid(invalid) => invalid.hint.clone(),
            ConfigError::TokenMissing { name, .. } => Some(format!(
                "export {name}=… or write it into a `.env` beside the workspace"
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
        if !self.key.is_empty() {
            write!(f, "`{}` ", self.key)?;
            if !self.message.starts_with("is ") {
                f.write_str("is wrong: ")?;
            }
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

    fn from_yaml(path: &Path, text: &str, error: &serde_yaml::Error) -> Invalid {
        let said = error.to_string();
        let said = LOCATION.replace(&said, "").into_owned();
        let (key, message) = match KEY.captures(&said) {
            Some(found) => (
                found[1].replace('[', ".").replace(']', ""),
                found[2].to_owned(),
            ),
            None => (String::new(), said),
        };
        let key_words: Vec<String> = key
            .split('.')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        // The key's own place is better than the parser's where both exist: for a mapping the parser
        // points at its beginning, and for a doubled key at the top of the file.
        let wrong = UNKNOWN.captures(&message).map(|found| found[2].to_owned());
        let doubled = DUPLICATE
            .captures(&message)
            .map(|found| found[1].to_owned());
        let is_field = message.starts_with("unknown field");
        let mut target = key_words.clone();
        if let (true, Some(word)) = (is_field, &wrong) {
            if target.last() != Some(word) {
                target.push(word.clone());
            }
        }
        if let Some(word) = &doubled {
            target.push(word.clone());
        }
        let parsers = error.location().map(|place| place.index());
        let span = (!target.is_empty())
            .then(|| locate(text, &target))
            .flatten()
            .or_else(|| parsers.map(|at| word_at(text, at)))
            .unwrap_or(0..0);
        let mut invalid = Invalid {
            path: path.to_owned(),
            line: 0,
            column: 0,
            key: target.join("."),
            hint: nearest(&message),
            message,
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
        let annotation = AnnotationKind::Primary
            .span(self.span.clone())
            .label(self.message.as_str());
        let source = Snippet::source(self.text.as_str())
            .path(path.as_str())
            .annotation(annotation);
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
static KEY: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)^([A-Za-z_][\w.\[\]-]*): (.*)$"));
static UNKNOWN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"unknown (field|variant) `([^`]*)`, (?:expected|there are no)(.*)"));
static DUPLICATE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"duplicate (?:field|entry with key) [`"]([^`"]*)[`"]"#));
static QUOTED: LazyLock<Regex> = LazyLock::new(|| pattern(r"`([^`]+)`"));

/// "did you mean" for a message that lists what was expected.
fn nearest(message: &str) -> Option<String> {
    let found = UNKNOWN.captures(message)?;
    let wrong = found[2].to_lowercase();
    let best = QUOTED
        .captures_iter(found.get(3)?.as_str())
        .map(|valid| valid[1].to_owned())
        .min_by_key(|valid| strsim::damerau_levenshtein(&wrong, valid))?;
    let distance = strsim::damerau_levenshtein(&wrong, &best);
    (distance <= 1 + wrong.chars().count() / 3).then(|| format!("did you mean `{best}`?"))
}

/// The word that begins at or after a byte of the text.
fn word_at(text: &str, at: usize) -> Range<usize> {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let rest = &text[at..];
    let end = rest
        .find(|c: char| c.is_whitespace() || c == ',')
        .unwrap_or(rest.len());
    at..at + end
}
