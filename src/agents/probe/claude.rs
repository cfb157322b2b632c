//! A look at Claude Code: what it says about its version and its login.

use serde_json::Value;

use super::known::{self, Age};
use super::login::{LIMIT, Login, environment};
use crate::agents::claude::ClaudeSettings;
use crate::agents::error::RunError;
use crate::platform::ask::{ProgramOutput, ask};
use crate::platform::{files, ids};

/// What it calls its version, where it is Claude Code at all, and its login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaudeInstallation {
    /// Its program.
    pub program: std::path::PathBuf,
    /// What it calls its version; `None` where it is not what it should be.
    pub version: Option<(String, Age)>,
    /// Its login.
    pub login: Login,
}

/// Settings are not read: whoever runs it may write the folder with the login, and a program can be named there
/// that says a key.
const STATUS: [&str; 3] = ["--setting-sources=", "auth", "status"];

/// Looks at Claude Code.
///
/// # Errors
/// Where its program is not there, or no scratch folder can be made.
pub async fn claude(settings: &ClaudeSettings) -> Result<ClaudeInstallation, RunError> {
    let program = settings.program()?;
    let scratch = std::env::temp_dir().join(format!("teams-doctor-{}", ids::random_hex(12)));
    files::create_private_dir(&scratch)?;
    let mut env = environment(&scratch);
    let home = settings.login_home.as_deref().filter(|home| files::exists(home));
    let home = home.unwrap_or(&scratch).to_string_lossy().into_owned();
    env.extend(
        [
            ("CLAUDE_CONFIG_DIR", home.as_str()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let version = ask(&program, &["--version"], &env, LIMIT).await.ok();
    let version = version.and_then(|said| read_version(&said));
    let elsewhere = settings.model_url.as_ref().or(settings.server.as_ref());
    let login = match (elsewhere, &settings.login_home) {
        (Some(_), _) => Login::NotNeeded,
        (None, None) => Login::Nowhere,
        (None, Some(home)) if !files::exists(home) => Login::No(home.clone()),
        // A program that is something else is not asked.
        (None, Some(_)) if version.is_none() => Login::Unknown,
        (None, Some(home)) => match ask(&program, &STATUS, &env, LIMIT).await {
            Ok(said) => match logged_in(&said) {
                Some(true) => Login::Yes,
                Some(false) => Login::No(home.clone()),
                None => Login::Unknown,
            },
            Err(_) => Login::Unknown,
        },
    };
    files::remove_dir_all(&scratch)?;
    Ok(ClaudeInstallation { program, version, login })
}

/// `2.1.329 (Claude Code)` → its version. Another program's words are none.
fn read_version(said: &ProgramOutput) -> Option<(String, Age)> {
    let line = said.stdout.lines().find(|line| line.contains("(Claude Code)"))?;
    let text = line.split_whitespace().next().filter(|_| said.code == Some(0))?;
    Some((text.to_owned(), known::CLAUDE.age(known::number(text)?)))
}

/// What `claude auth status` says; older ones have no such word.
fn logged_in(said: &ProgramOutput) -> Option<bool> {
    let from = said.stdout.find('{')?;
    let status: Value = serde_json::from_str(said.stdout[from..].trim()).ok()?;
    status.get("loggedIn")?.as_bool()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: i32, stdout: &str) -> ProgramOutput {
        ProgramOutput { code: Some(code), stdout: stdout.to_owned(), stderr: String::new() }
    }

    #[test]
    fn its_words_are_read() {
        let age = |text: &str| read_version(&said(0, text)).map(|(_, age)| age);
        assert_eq!(age("2.1.329 (Claude Code)\n"), Some(Age::Tested));
        assert_eq!(age("2.1.197 (Claude Code)\n"), Some(Age::TooOld));
        assert_eq!(age("codex-cli 2.1.329\n"), None);
        assert_eq!(read_version(&said(1, "2.1.329 (Claude Code)")), None);
        assert_eq!(logged_in(&said(1, "{\n \"loggedIn\": false\n}\n")), Some(false));
        assert_eq!(logged_in(&said(0, "{\"loggedIn\": true}")), Some(true));
        assert_eq!(logged_in(&said(1, "unknown command")), None);
    }
}
