//! YAML as a type.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::ConfigError;

/// A YAML text as a type; the error names the key.
pub(super) fn from_yaml<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    let read_as_type = read(path, text)?;
    // Of a key that stands twice in a map the type takes the last.
    let _: serde_yaml::Value = read(path, text)?;
    Ok(read_as_type)
}

fn read<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    serde_path_to_error::deserialize(serde_yaml::Deserializer::from_str(text))
        .map_err(|error| ConfigError::yaml(path, text, &error))
}
