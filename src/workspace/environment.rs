//! Values from outside the files: environment variables, the tokens that setup keeps, the nearest `.env`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::error::ConfigError;
use crate::domain::config::{DiscordConfig, EnvName, names_a_secret};
use crate::domain::role::Role;
use crate::platform::{files, redact};

/// `NAME=token` lines.
pub(super) const TOKENS_FILE: &str = ".teams_setup/tokens.env";
/// Bytes of the shortest value that a name alone makes a secret.
const SHORTEST: usize = 12;

/// The variables that a workspace sees. A variable of the process beats the files, so that what an
/// operator exports is what counts (the older runtime did it the other way round).
#[derive(Clone, Default)]
pub struct Environment {
    kept: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
    path: Option<PathBuf>,
}

/// Where the value of a variable comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The environment of this process.
    Process,
    /// What `teams setup` keeps.
    Kept,
    /// A `.env` file.
    File(PathBuf),
}

// Values may be secrets, so only the names are shown.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("path", &self.path)
            .field("names", &self.file.keys())
            .field("kept", &self.kept.keys())
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
    /// Reads the tokens that setup keeps, and the nearest `.env` at or above the workspace.
    ///
    /// Whatever of it is a secret is registered as one, so that no sink says it.
    pub fn read(root: &Path) -> Result<Environment, ConfigError> {
        let environment = Environment::found(root)?;
        environment.register();
        Ok(environment)
    }

    fn register(&self) {
        self.kept.values().for_each(|token| redact::register(token));
        let own = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let file = self.file.iter().map(|(name, value)| (name.clone(), value.clone()));
        for (_, value) in own.chain(file).filter(|(name, value)| is_secret(name, value)) {
            redact::register(&value);
        }
    }

    fn found(root: &Path) -> Result<Environment, ConfigError> {
        let kept = files::read_text_if_present(&root.join(TOKENS_FILE))?;
        let kept = kept.map(|text| parse(&text)).unwrap_or_default();
        for folder in root.ancestors() {
            let path = folder.join(".env");
            // A Python environment may have this name, too.
            if !files::is_file(&path) {
                continue;
            }
            match files::read(&path) {
                Ok(text) => {
                    let file = parse(&String::from_utf8_lossy(&text));
                    return Ok(Environment { kept, file, path: Some(path) });
                }
                Err(error) if folder == root => return Err(error.into()),
                // It is none of the workspace's own.
                Err(error) => tracing::warn!(%error, "a .env above the workspace is left out"),
            }
        }
        Ok(Environment { kept, ..Environment::default() })
    }

    /// For tests and the demo: only these values, over those of the process.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = (String, String)>) -> Environment {
        Environment { file: values.into_iter().collect(), ..Environment::default() }
    }

    /// The value of a variable; an empty one counts as not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        self.find(name).map(|(value, _)| value)
    }

    /// Where the value of a variable comes from; `None` where it is not set.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<Origin> {
        self.find(name).map(|(_, origin)| origin)
    }

    fn find(&self, name: &str) -> Option<(String, Origin)> {
        let set = |value: &String| !value.is_empty();
        let process = || Some((std::env::var(name).ok().filter(set)?, Origin::Process));
        let kept = || Some((self.kept.get(name).filter(|it| set(it))?.clone(), Origin::Kept));
        let file = || {
            let path = self.path.clone().unwrap_or_default();
            Some((self.file.get(name).filter(|it| set(it))?.clone(), Origin::File(path)))
        };
        process().or_else(kept).or_else(file)
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

/// Whether a variable's name says that its value is a secret. A short one could be any word, and a path is
/// where a secret lies.
fn is_secret(name: &str, value: &str) -> bool {
    value.len() >= SHORTEST && names_a_secret(name) && !files::exists(Path::new(value))
}

/// `NAME=value` lines; `export` before and quotes around are allowed, `#` begins a comment.
pub(super) fn parse(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
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

    #[test]
    fn what_is_no_file_of_ours_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("team");
        files::create_dir_all(&root.join(".env")).unwrap();
        files::write(&folder.path().join(".env"), b"# \xc7\xd1\xb1\xdb\nA=1\n").unwrap();
        let found = Environment::found(&root).unwrap();
        assert_eq!(found.path, Some(folder.path().join(".env")));
        assert_eq!(found.file.get("A").map(String::as_str), Some("1"));
    }
}
