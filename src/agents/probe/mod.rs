//! Whether an agent's program is there and fit, without starting work or reading anybody's login.

use std::path::{Path, PathBuf};

use crate::agents::codex::CodexSettings;
use crate::agents::error::RunError;
use crate::agents::login::link_codex;
use crate::platform::ask::{ProgramOutput, ask};
use crate::platform::beneath::Folder;
use crate::platform::{files, ids};

mod acp;
mod claude;
pub mod known;
mod login;

pub use acp::{AcpProbe, Answer, acp};
pub use claude::{ClaudeInstallation, claude};
pub use known::Age;
pub use login::Login;
use login::{LIMIT, environment};

/// An agent that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledAgent {
    /// Its program.
    pub program: PathBuf,
    /// What it calls its version; `None` where it is not what it should be.
    pub version: Option<(String, Age)>,
    /// Its login.
    pub login: Login,
}

/// Looks at Codex CLI.
///
/// # Errors
/// Where its program is not there, or no scratch folder can be made.
pub async fn codex(settings: &CodexSettings) -> Result<InstalledAgent, RunError> {
    let program = settings.program()?;
    let scratch = std::env::temp_dir().join(format!("teams-doctor-{}", ids::random_hex(12)));
    files::create_private_dir(&scratch)?;
    let env = environment(&scratch);
    let version = ask(&program, &["--version"], &env, LIMIT).await.ok();
    let version = version.and_then(|said| read_version(&said, "codex"));
    let elsewhere = settings.model_url.as_ref().or(settings.server.as_ref());
    let login = match (elsewhere, &settings.login_home) {
        (Some(_), _) => Login::NotNeeded,
        (None, None) => Login::Nowhere,
        (None, Some(home)) if !files::exists(home) => Login::No(home.clone()),
        (None, Some(home)) => {
            match Folder::open(&scratch).and_then(|scratch| link_codex(&scratch, home)) {
                Ok(()) => {
                    let said = ask(&program, &["login", "status"], &env, LIMIT).await.ok();
                    read_login(said.as_ref(), home)
                }
                Err(_) => Login::No(home.clone()),
            }
        }
    };
    files::remove_dir_all(&scratch)?;
    let age = version.map(|(text, number)| (text, known::CODEX.age(number)));
    Ok(InstalledAgent { program, version: age, login })
}

/// `codex-cli 0.169.0` → its text and its numbers. Another program's words are no version.
fn read_version(said: &ProgramOutput, name: &str) -> Option<(String, known::Number)> {
    let line = said.stdout.lines().find(|line| line.starts_with(name))?;
    let text = line.split_whitespace().last().filter(|_| said.code == Some(0))?;
    Some((text.to_owned(), known::number(text)?))
}

fn read_login(said: Option<&ProgramOutput>, home: &Path) -> Login {
    match said {
        Some(said) if said.code == Some(0) => Login::Yes,
        Some(said) if format!("{}{}", said.stdout, said.stderr).contains("Not logged in") => {
            Login::No(home.to_owned())
        }
        Some(_) | None => Login::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: i32, stdout: &str, stderr: &str) -> ProgramOutput {
        ProgramOutput { code: Some(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() }
    }

    #[test]
    fn a_version_is_read_from_the_right_program_only() {
        let read = |out: &str| read_version(&said(0, out, ""), "codex").map(|(_, number)| number);
        assert_eq!(read("codex-cli 0.169.0\n"), Some((0, 169, 0)));
        assert_eq!(read("a warning\ncodex-cli 1.2.0-alpha.3\n"), Some((1, 2, 0)));
        for other in ["", "codex-cli soon", "GNU bash 5.2", "v22.1.0"] {
            assert_eq!(read(other), None, "{other}");
        }
        assert!(read_version(&said(1, "codex-cli 0.169.0", ""), "codex").is_none());
    }

    #[test]
    fn a_login_is_what_the_cli_says() {
        let home = Path::new("/h");
        let read = |answer: Option<ProgramOutput>| read_login(answer.as_ref(), home);
        assert_eq!(read(Some(said(0, "Logged in using ChatGPT", ""))), Login::Yes);
        assert_eq!(read(Some(said(1, "", "Not logged in\n"))), Login::No(home.to_owned()));
        assert_eq!(read(Some(said(2, "", "unrecognized subcommand"))), Login::Unknown);
        assert_eq!(read(None), Login::Unknown);
    }
}
