//! What people see: lines on stdout, and one readable line with a hint on stderr.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Effects, Style};

use crate::assets::catalog::CatalogError;
use crate::engine::parse::display_width;
use crate::platform::files::FileError;
use crate::platform::redact::redact;
use crate::service::RunError;
use crate::store::StoreError;
use crate::workspace::ConfigError;
use crate::workspace::edit::EditError;
use crate::workspace::init::InitError;

/// Prints a line. A closed pipe is not an error.
pub fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// As much of a text as fits into so many columns.
pub(super) fn fit(text: &str, columns: usize) -> &str {
    if display_width(text) <= columns {
        return text;
    }
    let starts = text.char_indices().map(|(at, _)| &text[..at]);
    starts.take_while(|start| display_width(start) <= columns).last().unwrap_or_default()
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// A failure with exit code 1.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), detail: None, hint: None, code: 1 }
    }

    /// Wrong usage: exit code 2.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { code: 2, ..Failure::new(message) }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: Option<String>) -> Failure {
        self.hint = hint.or(self.hint);
        self
    }

    /// The same with lines that show the place.
    #[must_use]
    pub fn detail(mut self, detail: Option<String>) -> Failure {
        self.detail = detail.or(self.detail);
        self
    }

    /// Tells the person and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let mut stderr = std::io::stderr().lock();
        let coloured = stderr.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let paint = |style: Style, word: &str| {
            if coloured {
                format!("{}{word}{}", style.render(), style.render_reset())
            } else {
                word.to_owned()
            }
        };
        let red = AnsiColor::Red.on_default().effects(Effects::BOLD);
        let cyan = AnsiColor::Cyan.on_default().effects(Effects::BOLD);
        let _ = writeln!(stderr, "{}: {}", paint(red, "error"), redact(&self.message));
        if let Some(detail) = &self.detail {
            let _ = writeln!(stderr, "{}", redact(detail));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(stderr, "{}: {}", paint(cyan, "hint"), redact(hint));
        }
        ExitCode::from(self.code)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        // The first line of the snippet would say "error" a second time.
        let place = error.snippet();
        let place = place.as_deref().and_then(|text| text.split_once('\n'));
        Failure::new(error.to_string())
            .detail(place.map(|(_, lines)| lines.to_owned()))
            .hint(error.hint())
    }
}

impl From<InitError> for Failure {
    fn from(error: InitError) -> Failure {
        Failure::new(error.to_string()).hint(error.hint())
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Failure {
        match error {
            EditError::Config(error) => error.into(),
            EditError::Nothing | EditError::Empty(_) => Failure::usage(error.to_string()),
            EditError::File(_) | EditError::Unsafe { .. } => Failure::new(error.to_string()),
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        Failure::new(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::new(error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::Config(error) => error.into(),
            RunError::Store(_)
            | RunError::Git(_)
            | RunError::Link(_)
            | RunError::Catalog(_)
            | RunError::File(_)
            | RunError::Door(_)
            | RunError::System(_)
            | RunError::Cut(_) => Failure::new(error.to_string()),
        }
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Failure {
        Failure::new(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_its_columns_and_not_by_its_letters() {
        for (text, columns, shown) in [
            ("greet", 5, "greet"),
            ("greeting", 5, "greet"),
            ("인사하기", 8, "인사하기"),
            ("인사하기", 5, "인사"),
            ("a인사", 2, "a"),
            ("", 0, ""),
        ] {
            assert_eq!(fit(text, columns), shown, "{text:?} in {columns}");
        }
    }
}
