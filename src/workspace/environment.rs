//! Values from outside the files: environment variables and the nearest `.env`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::error::ConfigError;
use crate::domain::config::{DiscordConfig, EnvName};
use crate::domain::role::Role;
use crate::platform::files;

/// The variables that a workspace sees. A variable of the process beats the file, so that what an
/// operator exports is what counts (the older runtime did it the other way round).
#[derive(Clone, Default)]
pub struct Environment {
    file: BTreeMap<String, String>,
    path: Option<PathBuf>,
}

// Values may be secrets, so only the names are shown.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("path", &self.path)
            .field("names", &self.file.keys())
            .finish()
    }
}

/// The bots' tokens.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// The bot that listens.
    pub main: SecretString,
    /// `voice: bots`: each role's own.
    pub roles: BTreeMap<Role, SecretString>,
}

impl Environment {
    /// Reads the nearest `.env` at or above the workspace.
    pub fn read(root: &Path) -> Result<Environment, ConfigError> {
        for folder in root.ancestors() {
            let path = folder.join(".env");
            if let Some(text) = files::read_text_if_present(&path)? {
                return Ok(Environment { file: parse(&text), path: Some(path) });
            }
        }
        Ok(Environment::default())
    }

    /// For tests and the demo: only these values, over those of the process.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = (String, String)>) -> Environment {
        Environment { file: values.into_iter().collect(), path: None }
    }

    /// The value of a variable; an empty one counts as not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        std::env::var(name)
            .ok()
            .filter(|value| !value.is_empty())
            .or_else(|| self.file.get(name).cloned())
            .filter(|value| !value.is_empty())
    }

    /// The tokens that the configuration names; the error names the variable that is missing.
    pub fn tokens(&self, config: &DiscordConfig) -> Result<Tokens, ConfigError> {
        let names = config.token_names().map_err(ConfigError::problem)?;
        let read = |name: &EnvName, whose: &str| {
            self.get(name.as_str()).map(SecretString::from).ok_or_else(|| {
                ConfigError::TokenMissing { name: name.to_string(), whose: whose.to_owned() }
            })
        };
        let mut roles = BTreeMap::new();
        for (role, name) in &names.roles {
            roles.insert(*role, read(name, role.as_str())?);
        }
        Ok(Tokens { main: read(&names.main, "the team's bot")?, roles })
    }
}

/// `NAME=value` lines; `export` before and quotes around are allowed, `#` begins a comment.
fn parse(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.starts_with('#') {
            continue;
        }
        let quoted = ['"', '\''].into_iter().find_map(|quote| {
            let rest = value.strip_prefix(quote)?;
            rest.split_once(quote).map(|(inside, _)| inside)
        });
        let value = quoted.unwrap_or_else(|| value.split(" #").next().unwrap_or(value).trim());
        values.insert(name.to_owned(), value.to_owned());
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn env_files_as_people_write_them() {
        let values =
            parse("# c\nexport A=1\nB = \"two words\" # why\nC='x#y'\nD=e # f\n#E=1\nbad\n");
        let seen: Vec<_> = values.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(seen, ["A=1", "B=two words", "C=x#y", "D=e"]);
    }
}
