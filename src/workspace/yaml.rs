//! YAML as a type.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::ConfigError;
use crate::domain::config::Problem;

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
