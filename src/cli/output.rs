//! What people see: lines on stdout, and one readable line with a hint on stderr.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::builder::styling::{AnsiColor, Effects, Style};

use crate::assets::catalog::CatalogError;
use crate::engine::parse::display_width;
use crate::import::older::ImportError;
use crate::platform::files::FileError;
use crate::platform::hidden::{escaped_in_json, shown};
use crate::platform::redact::redact;
use crate::service::RunError;
use crate::store::StoreError;
use crate::workspace::ConfigError;
use crate::workspace::edit::EditError;
use crate::workspace::init::InitError;

/// The first line that standard output did not take, and why.
static NOT_WRITTEN: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints a line without secrets, with what is hidden in it shown: titles and names are what people wrote. What standard
/// output does not take is told by [`all_written`].
pub fn say(line: impl std::fmt::Display) {
    put(&shown(&redact(&line.to_string())).0);
}

/// Prints a JSON value for programs, over several lines where `pretty`.
pub(super) fn say_json(value: &serde_json::Value, pretty: bool) {
    let text = if pretty { format!("{value:#}") } else { value.to_string() };
    put(&escaped_in_json(&redact(&text)));
}

fn put(line: &str) {
    let mut stdout = io::stdout().lock();
    // One call: a full disk or a closed pipe is then told by the line that it cut.
    if let Err(error) =
        stdout.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdout.flush())
    {
        note(error);
    }
}

fn note(error: io::Error) {
    NOT_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

/// Whether standard output still takes what is said.
pub(super) fn is_read() -> bool {
    NOT_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).is_none()
}

/// Whether everything that was said was taken. A reader that has read enough and closed its end is no
/// failure.
///
/// # Errors
/// Where standard output refused a line, such as on a full disk.
pub(super) fn all_written() -> Result<(), Failure> {
    match &*NOT_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Tells what the parser of the arguments has to say: help on standard output, mistakes on standard error.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let plain = error.render().to_string();
    let (seen, hidden) = shown(&plain);
    // Colours are control characters too; a mistake with hidden ones in it is shown without any.
    let told = match (hidden, error.use_stderr()) {
        (0, _) => error.print(),
        (_, true) => io::stderr().write_all(seen.as_bytes()),
        (_, false) => io::stdout().write_all(seen.as_bytes()),
    };
    match told {
        Err(cause) if !error.use_stderr() => note(cause),
        Ok(()) | Err(_) => {}
    }
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// As much of a text as fits into so many columns.
pub(super) fn fit(text: &str, columns: usize) -> &str {
    if display_width(text) <= columns {
        return text;
    }
    let starts = text.char_indices().map(|(at, _)| &text[..at]);
    starts.take_while(|start| display_width(start) <= columns).last().unwrap_or_default()
}

/// The exit code of a fault of this program.
pub(super) const FAULT: u8 = 70;

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

    /// A fault of this program: exit code 70, as `sysexits.h` has it.
    #[must_use]
    pub fn fault(message: impl Into<String>) -> Failure {
        Failure { code: FAULT, ..Failure::new(message) }
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
        let safe = |text: &str| shown(&redact(text)).0;
        let _ = writeln!(stderr, "{}: {}", paint(red, "error"), safe(&self.message));
        if let Some(detail) = &self.detail {
            let _ = writeln!(stderr, "{}", safe(detail));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(stderr, "{}: {}", paint(cyan, "hint"), safe(hint));
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

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
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
            RunError::Task(_) => Failure::fault(error.to_string()),
            RunError::Older { .. }
            | RunError::Import(_)
            | RunError::Store(_)
            | RunError::Git(_)
            | RunError::Link(_)
            | RunError::Id(_)
            | RunError::Catalog(_)
            | RunError::File(_)
            | RunError::ModelProxy(_)
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
