//! Files of settings: their text, and YAML as a type.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::{ConfigError, MAX_CONFIG_BYTES};
use crate::domain::config::Problem;
use crate::platform::files;

/// The text of a file of settings; `None` where nothing has its name.
pub(super) fn text_if_present(path: &Path) -> Result<Option<String>, ConfigError> {
    let text = files::read_settings(path, MAX_CONFIG_BYTES)?;
    text.map(|text| within_limit(path, text)).transpose()
}

/// The same of one that has to be there.
pub(super) fn text(path: &Path) -> Result<String, ConfigError> {
    match text_if_present(path)? {
        Some(text) => Ok(text),
        // Its error says that it is not.
        None => Ok(files::read_text(path)?),
    }
}

/// A text that was read up to a byte beyond the limit.
pub(super) fn within_limit(path: &Path, text: String) -> Result<String, ConfigError> {
    if text.len() <= MAX_CONFIG_BYTES {
        return Ok(text);
    }
    let bytes = files::metadata(path).map_or(0, |found| found.len());
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(text.len());
    Err(ConfigError::TooLarge { path: path.to_owned(), bytes })
}

/// A YAML text as a type; the error names the key.
pub(super) fn from_yaml<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    if is_too_deep(text) {
        let message = format!("maps and lists stand in each other more than {DEEPEST} times");
        return Err(ConfigError::problem_in(path, text, Problem::at("", message)));
    }
    let read_as_type = read(path, text)?;
    // Of a key that stands twice in a map the type takes the last.
    let _: serde_yaml::Value = read(path, text)?;
    Ok(read_as_type)
}

/// Brackets that are open at once: the parser takes the square of that in time.
const DEEPEST: usize = 500;

fn is_too_deep(text: &str) -> bool {
    let mut open = 0_usize;
    text.bytes().any(|byte| {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        open > DEEPEST
    })
}

fn read<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    serde_path_to_error::deserialize(serde_yaml::Deserializer::from_str(text))
        .map_err(|error| ConfigError::yaml(path, text, &error))
}
