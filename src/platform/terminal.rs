//! Asking the person at the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use secrecy::SecretString;

/// The longest line that is taken.
const MOST: usize = 4096;

/// Whether a person sits at standard input and sees standard error.
#[must_use]
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Puts the terminal back as it was, however the question ends.
struct Quiet {
    before: Termios,
}

impl Quiet {
    fn begin() -> io::Result<Quiet> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        // Keys come one by one, none is shown, and Ctrl-C comes as a key: were it a signal, it would end
        // us with the terminal left silent.
        quiet.local_modes -=
            LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Quiet { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Nothing more can be done for a terminal that is gone.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        let _ = writeln!(io::stderr());
    }
}

/// Asks for a line that is not shown while it is typed or pasted. `None` for Ctrl-C, Ctrl-D or the end of
/// input. Blocks.
pub fn hidden_line(question: &str) -> io::Result<Option<SecretString>> {
    // Silent before it asks: what comes after the question is never shown.
    let _quiet = Quiet::begin()?;
    write!(io::stderr(), "{question}")?;
    io::stderr().flush()?;
    read_keys(io::stdin().lock())
}

fn read_keys(input: impl io::BufRead) -> io::Result<Option<SecretString>> {
    let mut line: Vec<u8> = Vec::new();
    for key in input.bytes() {
        match key? {
            b'\r' | b'\n' => {
                let text = String::from_utf8(line).map_err(io::Error::other)?;
                return Ok(Some(SecretString::from(text)));
            }
            // Ctrl-C, Ctrl-D.
            3 | 4 => return Ok(None),
            // Backspace and delete; Ctrl-U for all of it.
            8 | 127 => {
                line.pop();
            }
            21 => line.clear(),
            byte if line.len() < MOST => line.push(byte),
            _ => return Err(io::Error::other("the line is too long")),
        }
    }
    Ok(None)
}

/// Asks a question that is answered by a shown line; blank at the end of input. Blocks.
pub fn line(question: &str) -> io::Result<String> {
    write!(io::stderr(), "{question}")?;
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// One line on standard error that is written over again and again; nothing where nobody sees it.
#[derive(Debug)]
pub struct LiveLine {
    is_seen: bool,
    is_there: bool,
}

impl LiveLine {
    /// A line that shows nothing yet.
    #[must_use]
    pub fn new() -> LiveLine {
        LiveLine { is_seen: io::stderr().is_terminal(), is_there: false }
    }

    /// How many columns fit.
    #[must_use]
    pub fn columns(&self) -> usize {
        let size = termios::tcgetwinsize(io::stderr());
        // The last column stays free: some terminals begin a new line in it.
        size.map_or(79, |size| usize::from(size.ws_col).saturating_sub(1).max(20))
    }

    /// Shows this instead of what stands there; it has to be one line that fits.
    pub fn show(&mut self, line: &str) {
        if self.is_seen {
            // A terminal that is gone is noticed elsewhere.
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
            let _ = io::stderr().flush();
            self.is_there = true;
        }
    }

    /// Takes it away, so that other lines can be written.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_there) {
            let _ = write!(io::stderr(), "\r\x1b[K");
            let _ = io::stderr().flush();
        }
    }
}

impl Default for LiveLine {
    fn default() -> LiveLine {
        LiveLine::new()
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn keys_make_a_line_or_give_up() {
        let read =
            |keys: &[u8]| read_keys(keys).unwrap().map(|secret| secret.expose_secret().to_owned());
        assert_eq!(read(b"abx\x7fc\r"), Some("abc".to_owned()));
        assert_eq!(read(b"wrong\x15right\nrest"), Some("right".to_owned()));
        assert_eq!(read(b"ab\x03"), None);
        assert_eq!(read(b"\x04"), None);
        assert_eq!(read(b"cut off"), None);
        assert!(read_keys(vec![b'x'; MOST + 1].as_slice()).is_err());
    }
}
